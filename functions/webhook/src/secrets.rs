//! Secrets of triggers: asked for once in a while, with the value before, which counts for a day after it was changed, so
//! that both sides need not change at one moment. For a trigger that is not there the same is done with a secret of nobody,
//! so that a stranger does not see by the time of an answer whether there is one.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest as _, Sha256};
use slipway_model::id::{EntityId, Scope};
use slipway_store::{StoreError, TriggerPlace};
use slipway_trigger::signature::{Unauthenticated, verify};
use slipway_trigger::{Delivery, Provider};

use crate::Deps;

/// How long values are taken for what they are.
const FRESH_MS: i64 = 60_000;

/// Values that did not fit are asked for again, not more often than this.
const AGAIN_MS: i64 = 1_000;

/// How long the value before counts.
const OVERLAP_MS: i64 = 24 * 60 * 60 * 1000;

/// Most secrets that are kept in memory.
const MOST: usize = 1_000;

/// Secrets by scope and id, with when they were asked for.
#[derive(Default)]
pub(crate) struct Secrets {
    known: Mutex<Kept>,
    /// Those of nobody, apart from the others: whoever makes names up takes no memory from these.
    nobodys: Mutex<Kept>,
}

type Kept = BTreeMap<(String, String), Known>;

#[derive(Clone)]
struct Known {
    asked_ms: i64,
    /// `None` of a secret that is not there.
    values: Option<Vec<SecretString>>,
}

impl Secrets {
    /// Verifies a delivery with a secret; why it is not believed, without a word of the secret.
    pub(crate) async fn verify(
        &self,
        deps: &Deps,
        named: (&Scope, &str),
        provider: Provider,
        delivery: &Delivery,
    ) -> Result<(), String> {
        let verdict = verify_in(&self.known, deps, named, provider, delivery).await;
        verdict.map_err(|why| match why {
            Doubt::Unauthenticated(why) => why.to_string(),
            Doubt::Unread(error) => {
                tracing::error!(secret = named.1, %error, "the secret of a trigger cannot be read");
                // A stranger may hear it: what it is called is in the log.
                UNREAD.to_owned()
            }
        })
    }

    /// Does for a trigger that is not there what [`Secrets::verify`] does for one that is; nothing comes of it.
    pub(crate) async fn verify_nobodys(
        &self,
        deps: &Deps,
        place: &TriggerPlace,
        delivery: &Delivery,
    ) {
        let digest = Sha256::digest(place.key());
        let id: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let named = (&place.scope, id.as_str());
        let verdict = verify_in(&self.nobodys, deps, named, Provider::Custom, delivery).await;
        drop(verdict);
    }
}

/// What is said of a secret that cannot be read.
const UNREAD: &str = "the secret of the trigger cannot be read";

/// Why a delivery is not believed.
enum Doubt {
    Unauthenticated(Unauthenticated),
    /// The secret cannot be read, or is not there.
    Unread(StoreError),
}

/// Verifies a delivery with a secret, from memory where it was read just now.
async fn verify_in(
    kept: &Mutex<Kept>,
    deps: &Deps,
    (scope, id): (&Scope, &str),
    provider: Provider,
    delivery: &Delivery,
) -> Result<(), Doubt> {
    let now_ms = deps.runs.clock.now_ms();
    let key = (format!("{scope:?}"), id.to_owned());
    let known = lock(kept).get(&key).cloned();
    if let Some(known) = known.filter(|known| now_ms.saturating_sub(known.asked_ms) < FRESH_MS) {
        let verdict = fits(&known, id, provider, delivery, now_ms);
        // What does not fit may have been changed meanwhile.
        if verdict.is_ok() || now_ms.saturating_sub(known.asked_ms) < AGAIN_MS {
            return verdict;
        }
    }
    let secret = EntityId::new(id);
    let read = deps.secrets.recent(scope, &secret, OVERLAP_MS, now_ms);
    let values = match read.await {
        Ok(values) => Some(values),
        // Kept as what is there is: nothing may tell the two apart.
        Err(StoreError::NotFound { .. }) => None,
        Err(why) => return Err(Doubt::Unread(why)),
    };
    let known = Known {
        asked_ms: now_ms,
        values,
    };
    let verdict = fits(&known, id, provider, delivery, now_ms);
    let mut all = lock(kept);
    if all.len() >= MOST {
        all.clear();
    }
    all.insert(key, known);
    verdict
}

fn lock(kept: &Mutex<Kept>) -> std::sync::MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a delivery is signed with what is known. Where that is nothing it is verified all the same, with what signs
/// nothing: a large body takes its time.
fn fits(
    known: &Known,
    id: &str,
    provider: Provider,
    delivery: &Delivery,
    now_ms: i64,
) -> Result<(), Doubt> {
    let Some(values) = &known.values else {
        let nobodys = uuid::Uuid::new_v4().to_string();
        drop(verify(provider, &[&nobodys], delivery, now_ms));
        return Err(Doubt::Unread(StoreError::NotFound {
            what: format!("secret {id}"),
        }));
    };
    let values: Vec<&str> = values.iter().map(|it| it.expose_secret()).collect();
    verify(provider, &values, delivery, now_ms).map_err(Doubt::Unauthenticated)
}
