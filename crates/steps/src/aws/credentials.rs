//! The credentials that a connector asks for (Harness's AWS connector settings reference).

use std::fmt;

use aws_credential_types::Credentials;
use secrecy::SecretString;
use serde_json::Value;
use slipway_model::id::Scope;
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::ConnectorPlan;

use super::error::{Doing, failure};
use super::runtime::Backoff;
use crate::secrets::Secrets;

/// Seconds of an assumed session; AWS's shortest, renewed before it ends.
const SESSION_SECONDS: i32 = 900;

/// Where the first credentials come from.
pub(super) enum Base {
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
    external_id: Option<String>,
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
            "InheritFromDelegate" => Base::Ambient,
            "ManualConfig" => keys(connector, &credential["spec"], scope, secrets).await?,
            "Irsa" => Base::ServiceAccount,
            "OidcAuthentication" => {
                return Err(refused(
                    connector,
                    "credential type OidcAuthentication is not supported by this version: use Irsa, ManualConfig or \
                     InheritFromDelegate, with crossAccountAccess where needed",
                ));
            }
            other => {
                return Err(refused(
                    connector,
                    format!(
                        "its credential type `{other}` is unknown: InheritFromDelegate, ManualConfig \
                         and Irsa are supported"
                    ),
                ));
            }
        };
        let access = [
            &credential["crossAccountAccess"],
            &spec["crossAccountAccess"],
        ];
        let role = access.into_iter().find_map(|access| {
            text(&access["crossAccountRoleArn"]).map(|arn| Role {
                arn,
                external_id: text(&access["externalId"]),
            })
        });
        Ok(Self {
            base,
            role,
            backoff: Backoff::of_connector(spec),
        })
    }
}

async fn keys(
    connector: &ConnectorPlan,
    spec: &Value,
    scope: &Scope,
    secrets: &mut Secrets<'_>,
) -> Result<Base, Failure> {
    let access_key = match (text(&spec["accessKey"]), text(&spec["accessKeyRef"])) {
        (Some(plain), _) => secrets.reveal_text(&plain).await?,
        (None, Some(reference)) => secrets.value_in(scope, &reference).await?,
        (None, None) => return Err(refused(connector, "it has no accessKey")),
    };
    let Some(reference) = text(&spec["secretKeyRef"]) else {
        return Err(refused(connector, "it has no secretKeyRef"));
    };
    let secret_key = secrets.value_in(scope, &reference).await?;
    let session_token = match text(&spec["sessionTokenRef"]) {
        Some(reference) => Some(secrets.value_in(scope, &reference).await?),
        None => None,
    };
    Ok(Base::Keys {
        access_key,
        secret_key,
        session_token,
    })
}

impl Role {
    /// Credentials of the role for a session of 15 minutes.
    pub(super) async fn assume(
        &self,
        sts: &aws_sdk_sts::Client,
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
            .set_external_id(self.external_id.clone())
            .duration_seconds(SESSION_SECONDS)
            .send()
            .await
            .map_err(|error| failure(Doing::with(&doing), error))?;
        let given = answer.credentials().ok_or_else(|| {
            refused(
                connector,
                format!("STS gave no credentials for {}", self.arn),
            )
        })?;
        let ends = std::time::SystemTime::try_from(*given.expiration()).ok();
        Ok(Credentials::new(
            given.access_key_id(),
            given.secret_access_key(),
            Some(given.session_token().to_owned()),
            ends,
            "slipway-assumed-role",
        ))
    }
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
