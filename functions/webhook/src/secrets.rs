//! Secrets of triggers: asked for once in a while, with the value before, which counts for a day after it was changed, so
//! that both sides need not change at one moment.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use secrecy::{ExposeSecret, SecretString};
use slipway_model::id::{EntityId, Scope};
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
pub(crate) struct Secrets(Mutex<BTreeMap<(String, String), Known>>);

#[derive(Clone)]
struct Known {
    asked_ms: i64,
    values: Vec<SecretString>,
}

impl Secrets {
    /// Verifies a delivery with a secret; why it is not believed, without a word of the secret.
    pub(crate) async fn verify(
        &self,
        deps: &Deps,
        (scope, id): (&Scope, &str),
        provider: Provider,
        delivery: &Delivery,
    ) -> Result<(), String> {
        let now_ms = deps.runs.clock.now_ms();
        let key = (format!("{scope:?}"), id.to_owned());
        let kept = self.lock().get(&key).cloned();
        if let Some(known) = kept.filter(|known| now_ms.saturating_sub(known.asked_ms) < FRESH_MS) {
            let verdict = fits(&known, provider, delivery, now_ms);
            // What does not fit may have been changed meanwhile.
            if verdict.is_ok() || now_ms.saturating_sub(known.asked_ms) < AGAIN_MS {
                return verdict.map_err(|why| why.to_string());
            }
        }
        let values = deps
            .secrets
            .recent(scope, &EntityId::new(id), OVERLAP_MS, now_ms)
            .await
            .map_err(|why| {
                tracing::error!(secret = id, error = %why, "the secret of a trigger cannot be read");
                // A stranger may hear it: what it is called is in the log.
                "the secret of the trigger cannot be read".to_owned()
            })?;
        let known = Known {
            asked_ms: now_ms,
            values,
        };
        let verdict = fits(&known, provider, delivery, now_ms);
        let mut all = self.lock();
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(key, known);
        verdict.map_err(|why| why.to_string())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, String), Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fits(
    known: &Known,
    provider: Provider,
    delivery: &Delivery,
    now_ms: i64,
) -> Result<(), Unauthenticated> {
    let values: Vec<&str> = known.values.iter().map(|it| it.expose_secret()).collect();
    verify(provider, &values, delivery, now_ms)
}
