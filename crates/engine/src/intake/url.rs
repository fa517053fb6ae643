//! The URLs of triggers: those of custom webhooks hold a token that nobody can guess.

use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;
use slipway_model::id::AccountId;
use slipway_store::{SecretStore, StoreError, TriggerPlace};
use slipway_trigger::{Provider, Source, Trigger};

/// The secret of Slipway that tokens of URLs are made with.
pub const KEY: &str = "webhook-urls";

/// The token in the URL of a trigger: unlike that of any other, and nobody can make it without the key.
pub fn url_token(key: &[u8], place: &TriggerPlace) -> String {
    // HMAC takes keys of every length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return String::new();
    };
    mac.update(place.key().as_bytes());
    let bytes = mac.finalize().into_bytes();
    bytes
        .iter()
        .take(20)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The key of [`url_token`], made when it is first wanted.
///
/// # Errors
/// When Secrets Manager does not answer.
pub async fn key(secrets: &SecretStore) -> Result<Vec<u8>, StoreError> {
    if let Some(known) = secrets.own(KEY).await? {
        return Ok(known.expose_secret().as_bytes().to_vec());
    }
    // Two random UUIDs: 244 bits that nobody can guess.
    let random = || uuid::Uuid::new_v4().simple().to_string();
    let new = SecretString::from(format!("{}{}", random(), random()));
    match secrets.create_own(KEY, &new).await {
        Ok(()) => Ok(new.expose_secret().as_bytes().to_vec()),
        // Somebody was faster, and all must take the same.
        Err(StoreError::AlreadyExists { .. }) => {
            let known = secrets.own(KEY).await?;
            let known = known.ok_or_else(|| StoreError::NotFound {
                what: format!("the secret {KEY}"),
            })?;
            Ok(known.expose_secret().as_bytes().to_vec())
        }
        Err(error) => Err(error),
    }
}

/// Where the sender of a trigger's webhook posts to, below the base URL of the API; `None` for triggers that nobody posts
/// to.
pub fn url_path(trigger: &Trigger, place: &TriggerPlace, key: &[u8]) -> Option<String> {
    let Source::Webhook(spec) = &trigger.source else {
        return None;
    };
    let account = &place.scope.account;
    match spec.provider {
        Provider::AwsCodeCommit => None,
        Provider::Custom => {
            let token = url_token(key, place);
            let org = place.scope.org.as_ref().map(|it| it.as_str());
            let project = place.scope.project.as_ref().map(|it| it.as_str());
            Some(format!(
                "/gateway/pipeline/api/webhook/custom/{token}/v3?accountIdentifier={account}&orgIdentifier={}&projectIdentifier={}&pipelineIdentifier={}&triggerIdentifier={}",
                org.unwrap_or_default(),
                project.unwrap_or_default(),
                place.pipeline,
                place.trigger
            ))
        }
        _ => Some(of_account(account)),
    }
}

/// Where Git providers post to, for all triggers of an account.
pub(super) fn of_account(account: &AccountId) -> String {
    format!("/gateway/ng/api/webhook?accountIdentifier={account}")
}
