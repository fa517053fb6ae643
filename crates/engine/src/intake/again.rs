//! Deliveries that their sender's people send again, because what refused them was mended meanwhile.
//!
//! A delivery that comes again is the same event, and starts no second run. Where a trigger refused it, it is decided anew:
//! that is what people press *Redeliver* for. Only triggers that have refused it are asked, and only for a few days: whoever
//! plays an old delivery again must not start what was made since.

use slipway_store::record::OutcomeRecord;

use super::handle::{Starting, handle_for};
use super::read;
use crate::error::{Doing, RunError};
use crate::runs::Runs;

/// How long after it came an event is decided anew: GitHub sends deliveries of the last three days again, others of fewer
/// (docs.github.com: "Redelivering webhooks").
const MENDED_MS: i64 = 3 * 24 * 60 * 60 * 1000;

/// Whether a trigger has refused an event that may be decided anew.
///
/// # Errors
/// When the store cannot be read.
pub async fn may_be_mended(runs: &Runs, event: &str) -> Result<bool, RunError> {
    Ok(!refused(runs, event).await?.is_empty())
}

async fn refused(runs: &Runs, event: &str) -> Result<Vec<OutcomeRecord>, RunError> {
    let noted = runs.store.list_outcomes(event).await;
    let mut noted = noted.doing(|| format!("list what became of event {event}"))?;
    let now_ms = runs.clock.now_ms();
    noted.retain(|outcome| {
        outcome.run.is_none() && now_ms.saturating_sub(outcome.received_ms) <= MENDED_MS
    });
    Ok(noted)
}

/// Has the triggers that refused an event decide anew.
///
/// # Errors
/// As [`handle`](super::handle::handle).
pub async fn decide_anew(on: Starting<'_>, event: &str) -> Result<Vec<OutcomeRecord>, RunError> {
    let refused = refused(on.runs, event).await?;
    let found = on.runs.store.find_event(event).await;
    let Some(event) = found.doing(|| format!("read event {event}"))? else {
        return Ok(Vec::new());
    };
    let places: Vec<_> = refused.into_iter().map(|outcome| outcome.place).collect();
    handle_for(on, (&event, &read(&event)?), &places).await
}
