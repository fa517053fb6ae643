//! Takes over what earlier runs did: the records of the nodes of stages that are not walked again.

use std::collections::{BTreeMap, BTreeSet};

use slipway_model::id::{RunId, StageId};
use slipway_store::record::{NodeRecord, StageSummary};

use crate::error::{Doing, RunError};
use crate::runs::Runs;

/// Records that are written at once: with the largest values that a record holds in itself they stay below what
/// a transaction may carry (4 MB).
const AT_ONCE: usize = 16;

/// Writes the nodes of some stages of a run as those of another, in every attempt. Expressions, the graph and
/// barriers then read them as if they had happened there. Logs and instances stay with the run that made them.
///
/// The other run is not there yet: when this breaks off, what was written belongs to no run.
pub async fn copy_nodes(
    runs: &Runs,
    from: &RunId,
    to: &RunId,
    stages: &BTreeSet<StageId>,
) -> Result<(), RunError> {
    if stages.is_empty() {
        return Ok(());
    }
    let nodes = runs.store.list_nodes(from, None).await;
    let nodes = nodes.doing(|| format!("read the steps of run {from}"))?;
    let copies: Vec<NodeRecord> = nodes
        .into_iter()
        .filter(|node| stages.contains(&node.stage))
        .map(|node| NodeRecord {
            run: to.clone(),
            ..node
        })
        .collect();
    for part in copies.chunks(AT_ONCE) {
        let written = runs.store.record_nodes(&[], part).await;
        written.doing(|| format!("take over the steps of run {from}"))?;
    }
    Ok(())
}

/// Puts the summaries of stages that are taken over in the place of those that have not begun.
pub(crate) fn copy_summaries(
    into: &mut [StageSummary],
    from: &[StageSummary],
    stages: &BTreeSet<StageId>,
) {
    let from: BTreeMap<_, _> = from.iter().map(|stage| (&stage.id, stage)).collect();
    for stage in into.iter_mut().filter(|stage| stages.contains(&stage.id)) {
        if let Some(ended) = from.get(&stage.id) {
            *stage = (*ended).clone();
        }
    }
}
