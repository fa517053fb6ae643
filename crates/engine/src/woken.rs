//! That all that waited was woken after a word: whoever comes back after a crash, and finds the word said, wakes the others once
//! more only where that is not known.

use slipway_model::id::{NodeId, PrincipalId, RunId};
use slipway_store::StoreError;
use slipway_store::record::{RunRecord, SignalRecord};

use crate::error::{Doing, RunError};
use crate::runs::Runs;

/// Kind of the signal; the kind of the word comes after a colon.
const WOKEN: &str = "woken";

/// Whether `said` has that the lanes of a run were woken after a word of this kind about an attempt of a node
/// ([`note_woken`]).
pub fn were_woken(said: &[SignalRecord], node: &NodeId, attempt: u32, kind: &str) -> bool {
    let woken = |signal: &&SignalRecord| {
        let of = signal.kind.strip_prefix(WOKEN);
        of.and_then(|of| of.strip_prefix(':')) == Some(kind)
    };
    let mut signals = said.iter().filter(woken);
    signals.any(|signal| signal.node == *node && signal.attempt == attempt)
}

/// Records that the lanes of a run were woken after a word of this kind about an attempt of a node.
///
/// # Errors
/// When the store cannot be written.
pub async fn note_woken(
    runs: &Runs,
    run: &RunId,
    (node, attempt): (&NodeId, u32),
    kind: &str,
) -> Result<(), RunError> {
    let signal = SignalRecord {
        run: run.clone(),
        node: node.clone(),
        attempt,
        kind: format!("{WOKEN}:{kind}"),
        says: String::new(),
        who: PrincipalId::new("slipway"),
        at_ms: runs.clock.now_ms(),
    };
    match runs.store.put_signal(&signal).await {
        Ok(()) | Err(StoreError::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error).doing(|| format!("note that run {run} was woken for {node}")),
    }
}

/// How much has been said about a run that whoever is about to wait must have heard. That others were woken is nothing
/// to hear.
pub fn words(run: &RunRecord) -> usize {
    let said = |signal: &&SignalRecord| !signal.kind.starts_with(WOKEN);
    run.signals.iter().filter(said).count()
}
