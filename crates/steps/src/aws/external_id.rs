//! External ids that Slipway makes, one for each connector (docs/decisions/0011).

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use slipway_model::id::{EntityId, Scope};
use slipway_store::{SecretStore, StoreError};
use tokio::sync::OnceCell;

use super::oidc::subject;

/// Made ids begin so; no other connector may be given one of these by hand.
const MADE: &str = "slipway-";
/// Name of the secret that they are made with.
const SECRET: &str = "external-id-key";

/// Makes external ids: the same one for a connector each time, another one for every other.
pub struct ExternalIds {
    secrets: SecretStore,
    key: OnceCell<hmac::Key>,
}

impl ExternalIds {
    /// Ids of the installation whose secrets these are.
    pub fn new(secrets: SecretStore) -> Self {
        Self {
            secrets,
            key: OnceCell::new(),
        }
    }

    /// The id of a connector.
    ///
    /// # Errors
    /// When the secret that ids are made with cannot be read or made.
    pub async fn of(&self, scope: &Scope, connector: &EntityId) -> Result<String, StoreError> {
        let key = self.key.get_or_try_init(|| self.key()).await?;
        let tag = hmac::sign(key, subject(scope, connector).as_bytes());
        let digits = tag
            .as_ref()
            .iter()
            .take(20)
            .map(|byte| format!("{byte:02x}"));
        Ok(format!("{MADE}{}", digits.collect::<String>()))
    }

    async fn key(&self) -> Result<hmac::Key, StoreError> {
        let kept = match self.secrets.own(SECRET).await? {
            Some(kept) => kept,
            None => self.make().await?,
        };
        Ok(hmac::Key::new(
            hmac::HMAC_SHA256,
            kept.expose_secret().as_bytes(),
        ))
    }

    async fn make(&self) -> Result<SecretString, StoreError> {
        // 244 random bits.
        let parts = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
        let made = SecretString::from(STANDARD.encode(parts.map(uuid::Uuid::into_bytes).concat()));
        match self.secrets.create_own(SECRET, &made).await {
            Ok(()) => Ok(made),
            Err(StoreError::AlreadyExists { what }) => {
                let theirs = self.secrets.own(SECRET).await?;
                theirs.ok_or(StoreError::NotFound { what })
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether an id that somebody wrote has the form of a made one.
pub(super) fn is_made(id: &str) -> bool {
    id.trim().to_ascii_lowercase().starts_with(MADE)
}
