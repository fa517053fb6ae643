//! The keys that sign: a secret of Slipway, made once and renewed in time.
//!
//! ```text
//! made ── published, a day ──▶ signs, until the next one does ── published, another day ──▶ gone
//! ```
//!
//! A key is published for a day before it signs, and for a day after it signed last, so whoever keeps a copy of the
//! published keys for some hours never meets a token that it cannot check. The very first key signs at once. Every process reads
//! the secret again after [`FRESH`]; who finds that the newest key is old adds one. Of two who do at the same moment the later one
//! wins, and nobody has signed with the other's key yet.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_clock::Clock;
use slipway_store::{SecretStore, StoreError};
use tokio::sync::Mutex;

use super::jwt;

/// Name of the secret.
const SECRET: &str = "oidc-keys";
/// How long a copy of the secret is used without reading it again.
const FRESH: SignedDuration = SignedDuration::from_mins(5);
/// How long a key is published before it signs, and after it signed last.
const OVERLAP: SignedDuration = SignedDuration::from_hours(24);
/// Age of the newest key at which the next one is made.
const RENEWED_AFTER: SignedDuration = SignedDuration::from_hours(90 * 24);

/// Why there is no key, or no token.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The secret cannot be read or written.
    #[error("the signing keys of Slipway cannot be used")]
    Store(#[source] StoreError),
    /// The secret is not what this version writes.
    #[error(
        "the secret with the signing keys of Slipway is damaged: delete it, and new keys are made"
    )]
    Damaged,
    /// The library for cryptography refused.
    #[error("a signing key of Slipway cannot be used")]
    Refused(#[from] jwt::Refused),
}

/// A private key. It is shown nowhere.
#[derive(Clone, Serialize, Deserialize)]
struct Key {
    id: String,
    made_ms: i64,
    /// PKCS #8 in base64.
    key: String,
}

/// The keys, oldest first.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Keys {
    keys: Vec<Key>,
}

/// The keys of this installation.
pub(super) struct Ring {
    secrets: SecretStore,
    clock: Clock,
    copy: Mutex<Option<(Timestamp, Keys)>>,
}

impl Ring {
    pub(super) fn new(secrets: SecretStore, clock: Clock) -> Self {
        Self {
            secrets,
            clock,
            copy: Mutex::new(None),
        }
    }

    /// The public halves of the keys that sign, signed a while ago or will sign.
    pub(super) async fn published(&self) -> Result<Vec<Value>, KeyError> {
        let keys = self.keys().await?;
        let keys = keys.keys.iter();
        keys.map(|key| Ok(jwt::public(&key.id, &key.private()?)?))
            .collect()
    }

    /// A token with these claims.
    pub(super) async fn sign(&self, claims: &Value) -> Result<SecretString, KeyError> {
        let keys = self.keys().await?;
        let key = keys.signing(self.clock.now()).ok_or(KeyError::Damaged)?;
        let token = jwt::sign(&key.id, &key.private()?, claims)?;
        Ok(SecretString::from(token))
    }

    /// The keys as they are now, made or renewed if need be. One at a time, so that a process makes one key only.
    async fn keys(&self) -> Result<Keys, KeyError> {
        let mut copy = self.copy.lock().await;
        let now = self.clock.now();
        if let Some((read, keys)) = &*copy
            && now.duration_since(*read) < FRESH
        {
            return Ok(keys.clone());
        }
        let keys = match self.read().await? {
            None => self.create(now).await?,
            Some(keys) => self.renewed(keys, now).await?,
        };
        *copy = Some((now, keys.clone()));
        Ok(keys)
    }

    async fn read(&self) -> Result<Option<Keys>, KeyError> {
        let Some(text) = self.secrets.own(SECRET).await? else {
            return Ok(None);
        };
        // What is wrong with a damaged one is not told: the message could hold a part of a key.
        let keys: Keys =
            serde_json::from_str(text.expose_secret()).map_err(|_| KeyError::Damaged)?;
        match keys.keys.is_empty() {
            true => Err(KeyError::Damaged),
            false => Ok(Some(keys)),
        }
    }

    async fn create(&self, now: Timestamp) -> Result<Keys, KeyError> {
        let keys = Keys {
            keys: vec![Key::new(now).await?],
        };
        match self.secrets.create_own(SECRET, &keys.text()?).await {
            Ok(()) => Ok(keys),
            // Somebody was faster, and theirs are the keys.
            Err(StoreError::AlreadyExists { .. }) => self.read().await?.ok_or(KeyError::Damaged),
            Err(error) => Err(error.into()),
        }
    }

    async fn renewed(&self, mut keys: Keys, now: Timestamp) -> Result<Keys, KeyError> {
        let old = keys.drop_old(now);
        let renew = keys.wants_renewal(now);
        if renew {
            keys.keys.push(Key::new(now).await?);
        }
        if old || renew {
            self.secrets.replace_own(SECRET, &keys.text()?).await?;
        }
        Ok(keys)
    }
}

impl Keys {
    fn text(&self) -> Result<SecretString, KeyError> {
        let text = serde_json::to_string(self).map_err(|_| KeyError::Damaged)?;
        Ok(SecretString::from(text))
    }

    /// The newest key that has been published long enough; without any, the oldest.
    fn signing(&self, now: Timestamp) -> Option<&Key> {
        let mut newest_first = self.keys.iter().rev();
        newest_first
            .find(|key| key.age(now) >= OVERLAP)
            .or_else(|| self.keys.first())
    }

    fn wants_renewal(&self, now: Timestamp) -> bool {
        let newest = self.keys.last();
        newest.is_none_or(|key| key.age(now) >= RENEWED_AFTER)
    }

    /// Drops the keys whose successor has signed for so long that no token of theirs is left; whether there were any.
    fn drop_old(&mut self, now: Timestamp) -> bool {
        let before = self.keys.len();
        while let [_, successor, ..] = self.keys.as_slice()
            && successor.age(now) >= OVERLAP + OVERLAP
        {
            self.keys.remove(0);
        }
        self.keys.len() < before
    }
}

impl Key {
    /// A new key. Making one takes a good part of a second.
    async fn new(now: Timestamp) -> Result<Self, KeyError> {
        let key = tokio::task::spawn_blocking(jwt::new_key).await;
        let key = key.map_err(|_| jwt::Refused)??;
        Ok(Self {
            id: uuid::Uuid::new_v4().to_string(),
            made_ms: now.as_millisecond(),
            key: STANDARD.encode(key),
        })
    }

    fn age(&self, now: Timestamp) -> SignedDuration {
        SignedDuration::from_millis(now.as_millisecond().saturating_sub(self.made_ms))
    }

    fn private(&self) -> Result<Vec<u8>, KeyError> {
        STANDARD.decode(&self.key).map_err(|_| KeyError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn keys(made_hours: &[i64]) -> Keys {
        let keys = made_hours.iter().map(|hours| Key {
            id: format!("made at {hours}"),
            made_ms: hours * HOUR,
            key: String::new(),
        });
        Keys {
            keys: keys.collect(),
        }
    }

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millisecond(hours * HOUR).expect("a time")
    }

    #[test]
    fn a_key_is_published_before_it_signs_and_after_it_signed() {
        let signing = |keys: &Keys, hours| keys.signing(at(hours)).map(|key| key.id.clone());
        let mut both = keys(&[0, 2160]);
        assert!(!keys(&[0]).wants_renewal(at(2159)));
        assert!(keys(&[0]).wants_renewal(at(2160)));
        assert_eq!(signing(&both, 2160).as_deref(), Some("made at 0"));
        assert_eq!(signing(&both, 2183).as_deref(), Some("made at 0"));
        assert_eq!(signing(&both, 2184).as_deref(), Some("made at 2160"));
        assert!(!both.drop_old(at(2207)), "tokens of the first may be about");
        assert!(both.drop_old(at(2208)));
        assert_eq!(both.keys.len(), 1);
        assert!(!both.drop_old(at(9_999)), "the last one stays");
        assert_eq!(signing(&keys(&[5]), 5).as_deref(), Some("made at 5"));
    }
}
