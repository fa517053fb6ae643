//! The credentials that a connector asks for (Harness's AWS connector settings reference).

use std::fmt;

use aws_credential_types::Credentials;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use slipway_model::id::Scope;
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::ConnectorPlan;

use super::backoff::Backoff;
use super::error::{Doing, failure};
use super::oidc::{Bearer, Issuer};
use crate::context::told;
use crate::secrets::Secrets;

/// Seconds of an assumed session; AWS's shortest, renewed before it ends.
const SESSION_SECONDS: i32 = 900;

/// Where the first credentials come from.
pub(super) enum Base {
    /// What is here already.
    Local(Local),
    /// `OidcAuthentication`.
    Oidc(Federation),
}

/// A role for a token of Slipway's own.
pub(super) struct Federation {
    pub(super) role: String,
    /// Who the token is for.
    pub(super) audience: String,
}

/// Credentials that are had without asking AWS.
pub(super) enum Local {
    /// `InheritFromDelegate`.
    Ambient,
    /// `Irsa`: the role of the Kubernetes service account that the delegate runs under.
    ServiceAccount,
    /// `ManualConfig`.
    Keys {
        access_key: SecretString,
        secret_key: SecretString,
        session_token: Option<SecretString>,
    },
}

/// `crossAccountAccess` of a connector.
pub(super) struct Role {
    arn: String,
    pub(super) external_id: Option<String>,
}

/// What a connector asks for, with its secrets looked up.
pub(super) struct ConnectorCredentials {
    pub(super) base: Base,
    pub(super) role: Option<Role>,
    pub(super) backoff: Backoff,
}

impl ConnectorCredentials {
    /// Reads the `spec` of an AWS connector that lives in `scope`.
    pub(super) async fn read(
        connector: &ConnectorPlan,
        spec: &Value,
        scope: &Scope,
        secrets: &mut Secrets<'_>,
    ) -> Result<Self, Failure> {
        if connector.kind != "Aws" {
            return Err(refused(
                connector,
                format!(
                    "it is of type {}, and an AWS connector is needed",
                    connector.kind
                ),
            ));
        }
        let credential = &spec["credential"];
        let kind = text(&credential["type"]).unwrap_or_default();
        let base = match kind.as_str() {
            "InheritFromDelegate" => Base::Local(Local::Ambient),
            "ManualConfig" => keys(connector, &credential["spec"], scope, secrets).await?,
            "Irsa" => Base::Local(Local::ServiceAccount),
            "OidcAuthentication" => oidc(connector, &credential["spec"])?,
            other => {
                return Err(refused(
                    connector,
                    format!(
                        "its credential type `{other}` is unknown: InheritFromDelegate, ManualConfig, \
                         OidcAuthentication and Irsa are supported"
                    ),
                ));
            }
        };
        Ok(Self {
            base,
            role: role(spec),
            backoff: Backoff::of_connector(spec),
        })
    }
}

/// The role that a connector's `spec` says to assume, in either of the places where it may.
fn role(spec: &Value) -> Option<Role> {
    let access = [
        &spec["credential"]["crossAccountAccess"],
        &spec["crossAccountAccess"],
    ];
    access.into_iter().find_map(|access| {
        text(&access["crossAccountRoleArn"]).map(|arn| Role {
            arn,
            external_id: text(&access["externalId"]),
        })
    })
}

/// Whether a connector with this `spec` assumes a role with the credentials that it has.
pub fn assumes_role(spec: &Value) -> bool {
    role(spec).is_some()
}

/// Whether the credentials of a connector with this `spec` are those of a session that Slipway takes, and can take anew.
pub fn takes_session(spec: &Value) -> bool {
    assumes_role(spec) || spec["credential"]["type"] == "OidcAuthentication"
}

/// The role and the audience of `OidcAuthentication`; Harness has one audience, and here a connector may name its own.
fn oidc(connector: &ConnectorPlan, spec: &Value) -> Result<Base, Failure> {
    let Some(role) = text(&spec["iamRoleArn"]) else {
        return Err(refused(
            connector,
            "it has no iamRoleArn: name the role that trusts Slipway as an OIDC provider",
        ));
    };
    // AWS's documentation of IAM in China names another audience.
    let usual = match role.starts_with("arn:aws-cn:") {
        true => "sts.amazonaws.com.cn",
        false => "sts.amazonaws.com",
    };
    let audience = text(&spec["audience"]).unwrap_or_else(|| usual.to_owned());
    Ok(Base::Oidc(Federation { role, audience }))
}

async fn keys(
    connector: &ConnectorPlan,
    spec: &Value,
    scope: &Scope,
    secrets: &mut Secrets<'_>,
) -> Result<Base, Failure> {
    // Without its secrets nobody knows who asks.
    let unread = |failure: Failure| Failure {
        error: ErrorType::Authentication,
        message: format!(
            "Connector {} cannot be used: {}",
            connector.reference, failure.message
        ),
        ..failure
    };
    let access_key = match (text(&spec["accessKey"]), text(&spec["accessKeyRef"])) {
        (Some(plain), _) => secrets.reveal_text(&plain).await.map_err(unread)?,
        (None, Some(reference)) => secrets.value_in(scope, &reference).await.map_err(unread)?,
        (None, None) => return Err(refused(connector, "it has no accessKey")),
    };
    let Some(reference) = text(&spec["secretKeyRef"]) else {
        return Err(refused(connector, "it has no secretKeyRef"));
    };
    let secret_key = secrets.value_in(scope, &reference).await.map_err(unread)?;
    let session_token = match text(&spec["sessionTokenRef"]) {
        Some(reference) => Some(secrets.value_in(scope, &reference).await.map_err(unread)?),
        None => None,
    };
    Ok(Base::Local(Local::Keys {
        access_key,
        secret_key,
        session_token,
    }))
}

impl Role {
    /// Credentials of the role for a session of 15 minutes.
    pub(super) async fn assume(
        &self,
        sts: &aws_sdk_sts::Client,
        external_id: Option<String>,
        connector: &ConnectorPlan,
        region: &str,
    ) -> Result<Credentials, Failure> {
        let doing = AssumeRole {
            role: &self.arn,
            connector: &connector.reference,
            region,
        };
        let answer = sts
            .assume_role()
            .role_arn(&self.arn)
            .role_session_name("slipway")
            .set_external_id(external_id.clone())
            .duration_seconds(SESSION_SECONDS)
            .send()
            .await
            .map_err(|error| {
                let mut failure = failure(Doing::with(&doing), error);
                if let Some(id) = external_id {
                    failure
                        .message
                        .push_str(&format!(" The external id of the connector is {id}."));
                }
                failure
            })?;
        given(connector, &self.arn, answer.credentials())
    }
}

/// Credentials of `role` for a session of 15 minutes, for a token that says which connector asks.
pub(super) async fn assume_with_token(
    sts: &aws_sdk_sts::Client,
    (issuer, bearer): (&Issuer, Bearer<'_>),
    role: &str,
    connector: &ConnectorPlan,
    region: &str,
) -> Result<Credentials, Failure> {
    let token = issuer.token(bearer).await.map_err(|error| {
        let mut failure = told(
            &format!("sign a token for connector {}", connector.reference),
            &error,
        );
        failure.error = ErrorType::Authentication;
        failure
    })?;
    let doing = AssumeRole {
        role,
        connector: &connector.reference,
        region,
    };
    let answer = sts
        .assume_role_with_web_identity()
        .role_arn(role)
        .role_session_name("slipway")
        .web_identity_token(token.expose_secret())
        .duration_seconds(SESSION_SECONDS)
        .send()
        .await
        .map_err(|error| {
            let mut failure = failure(Doing::with(&doing), error);
            failure.message.push_str(&format!(
                " The account of the role needs an IAM identity provider for {} with audience {}, and the role must trust it.",
                issuer.url(&bearer.scope.account),
                bearer.audience
            ));
            failure
        })?;
    given(connector, role, answer.credentials())
}

fn given(
    connector: &ConnectorPlan,
    role: &str,
    given: Option<&aws_sdk_sts::types::Credentials>,
) -> Result<Credentials, Failure> {
    let given =
        given.ok_or_else(|| refused(connector, format!("STS gave no credentials for {role}")))?;
    let ends = std::time::SystemTime::try_from(*given.expiration()).ok();
    Ok(Credentials::new(
        given.access_key_id(),
        given.secret_access_key(),
        Some(given.session_token().to_owned()),
        ends,
        "slipway-assumed-role",
    ))
}

struct AssumeRole<'a> {
    role: &'a str,
    connector: &'a str,
    region: &'a str,
}

impl fmt::Display for AssumeRole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            role,
            connector,
            region,
        } = self;
        write!(f, "assume role {role} of connector {connector} in {region}")
    }
}

/// A connector that cannot give credentials.
pub(super) fn refused(connector: &ConnectorPlan, why: impl fmt::Display) -> Failure {
    Failure {
        error: ErrorType::Authentication,
        message: format!("Connector {} cannot be used: {why}.", connector.reference),
        left_behind: None,
    }
}

fn text(value: &Value) -> Option<String> {
    value
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}
