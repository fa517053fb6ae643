//! Slipway as an OpenID Connect provider, for AWS connectors of type `OidcAuthentication`: it signs a token that says
//! which connector asks, and AWS gives credentials of a role for it (`sts:AssumeRoleWithWebIdentity`). No key of AWS is
//! kept anywhere.
//!
//! Paths and audience are Harness's (AWS connector settings reference, *Use OIDC*): the issuer of an account is
//! `<public URL>/ng/api/oidc/account/<account>`, its documents are public, and the audience is `sts.amazonaws.com`.
//! Harness names the account alone in its tokens; the subject here names the connector too, so that a role can trust
//! one and no other:
//!
//! ```text
//! account/ACCOUNT:org/ORG:project/PROJECT:connector/CONNECTOR      (org and project as the connector has them)
//! ```
//!
//! One ring of keys serves all accounts ([`ring`]); the issuer in a token says whose it is.

mod jwt;
mod ring;

use std::sync::Arc;

use jiff::SignedDuration;
use secrecy::SecretString;
use serde_json::{Value, json};
use slipway_clock::Clock;
use slipway_model::id::{AccountId, EntityId, Scope};
use slipway_store::{SecretStore, StoreError};

use super::external_id::ExternalIds;

pub use jwt::{Refused, sign, sign_with};
pub use ring::KeyError;

/// How long a token is good for: long enough for one call of STS, its retries included.
const LIFETIME: SignedDuration = SignedDuration::from_mins(10);

/// Clocks differ: a token is good from a little before it was made.
const SKEW: SignedDuration = SignedDuration::from_mins(1);

/// Signs tokens, and publishes the keys that they can be checked with. Clones are the same one.
#[derive(Clone)]
pub struct Issuer(Arc<Inner>);

struct Inner {
    public_url: String,
    clock: Clock,
    keys: ring::Ring,
    external_ids: ExternalIds,
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Issuer({})", self.0.public_url)
    }
}

/// Whom a token speaks for.
#[derive(Clone, Copy, Debug)]
pub struct Bearer<'a> {
    /// Where the connector lives.
    pub scope: &'a Scope,
    /// The connector.
    pub connector: &'a EntityId,
    /// Who is to accept the token.
    pub audience: &'a str,
}

impl Issuer {
    /// An issuer that the world knows as `public_url`, whose keys are a secret of Slipway.
    pub fn new(public_url: &str, secrets: SecretStore, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            public_url: public_url.trim_end_matches('/').to_owned(),
            keys: ring::Ring::new(secrets.clone(), clock.clone()),
            external_ids: ExternalIds::new(secrets),
            clock,
        }))
    }

    /// External ids that this installation makes.
    pub fn external_ids(&self) -> &ExternalIds {
        &self.0.external_ids
    }

    /// The issuer of an account's tokens: what AWS calls the URL of the identity provider.
    pub fn url(&self, account: &AccountId) -> String {
        format!("{}/ng/api/oidc/account/{account}", self.0.public_url)
    }

    /// The discovery document, `<issuer>/.well-known/openid-configuration` (OpenID Connect Discovery 1.0, section 3).
    pub fn configuration(&self, account: &AccountId) -> Value {
        let issuer = self.url(account);
        json!({
            "issuer": issuer,
            "jwks_uri": format!("{issuer}/.well-known/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "scopes_supported": ["openid"],
            "claims_supported": [
                "sub", "aud", "exp", "iat", "nbf", "iss", "jti", "account_id", "organization_id", "project_id",
                "connector_id",
            ],
        })
    }

    /// The public keys, `<issuer>/.well-known/jwks` (RFC 7517). The first question makes the first key.
    ///
    /// # Errors
    /// When the keys cannot be read or made.
    pub async fn jwks(&self) -> Result<Value, KeyError> {
        Ok(json!({"keys": self.0.keys.published().await?}))
    }

    /// A token for `bearer`, good for ten minutes.
    ///
    /// # Errors
    /// When there is no key to sign with.
    pub async fn token(&self, bearer: Bearer<'_>) -> Result<SecretString, KeyError> {
        let now = self.0.clock.now();
        let Bearer {
            scope,
            connector,
            audience,
        } = bearer;
        let mut claims = json!({
            "iss": self.url(&scope.account),
            "sub": subject(scope, connector),
            "aud": audience,
            "iat": now.as_second(),
            "nbf": now.as_second() - SKEW.as_secs(),
            "exp": now.as_second() + LIFETIME.as_secs(),
            "jti": uuid::Uuid::new_v4().to_string(),
            "account_id": scope.account.as_str(),
            "connector_id": connector.as_str(),
        });
        if let Some(org) = &scope.org {
            claims["organization_id"] = org.as_str().into();
        }
        if let Some(project) = &scope.project {
            claims["project_id"] = project.as_str().into();
        }
        self.0.keys.sign(&claims).await
    }
}

/// The subject of tokens of a connector. Identifiers hold neither `/` nor `:`, so no two connectors share one.
pub(super) fn subject(scope: &Scope, connector: &EntityId) -> String {
    let mut text = format!("account/{}", scope.account);
    if let Some(org) = &scope.org {
        text.push_str(&format!(":org/{org}"));
    }
    if let Some(project) = &scope.project {
        text.push_str(&format!(":project/{project}"));
    }
    text + &format!(":connector/{connector}")
}

impl From<StoreError> for KeyError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slipway_model::id::{OrgId, ProjectId};

    #[test]
    fn subjects_name_the_connector_where_it_lives() {
        let account = AccountId::new("acme");
        let org = Scope::org(account.clone(), OrgId::new("o"));
        let project = Scope::project(account.clone(), OrgId::new("o"), ProjectId::new("p"));
        let connector = EntityId::new("aws");
        let scopes = [Scope::account(account), org, project];
        assert_eq!(
            scopes.map(|scope| subject(&scope, &connector)),
            [
                "account/acme:connector/aws",
                "account/acme:org/o:connector/aws",
                "account/acme:org/o:project/p:connector/aws",
            ]
        );
    }
}
