//! Takes over what earlier runs did: the records of the nodes of stages that are not walked again.

use std::collections::{BTreeMap, BTreeSet};

use slipway_model::id::{RunId, StageId};
use slipway_store::StoreError;
use slipway_store::record::{NodeRecord, RunRecord, StageSummary};

use crate::error::{Doing, RunError};
use crate::runs::Runs;
use crate::stage_loop::with_loops;

/// Records that are written at once: with the largest values that a record holds in itself they stay below what
/// a transaction may carry (4 MB).
const AT_ONCE: usize = 16;

/// Writes what a run takes over of the one that it goes on from, or rolls back, as nodes of its own, in every
/// attempt. Expressions, the graph and barriers then read them as if they had happened there. Logs and instances stay
/// with the run that made them.
///
/// This is the first thing that a run does. Where it breaks off, the next time writes what is missing.
pub(crate) async fn take_over(runs: &Runs, run: &RunRecord) -> Result<(), RunError> {
    let Some(origin) = run.origin.as_ref().filter(|origin| !origin.kept.is_empty()) else {
        return Ok(());
    };
    let kept: BTreeSet<StageId> = origin.kept.iter().map(|(stage, _)| stage.clone()).collect();
    let (_, plan) = runs.load(&origin.run).await?;
    let stages = with_loops(&plan, &kept);
    let there = list(runs, &run.id).await?;
    let there: BTreeSet<_> = there.iter().map(|node| (&node.id, node.attempt)).collect();
    let missing: Vec<NodeRecord> = list(runs, &origin.run)
        .await?
        .into_iter()
        .filter(|node| stages.contains(&node.stage) && !there.contains(&(&node.id, node.attempt)))
        .map(|node| NodeRecord {
            run: run.id.clone(),
            ..node
        })
        .collect();
    for part in missing.chunks(AT_ONCE) {
        let written = match runs.store.record_nodes(&[], part).await {
            Err(StoreError::Conflict { .. }) => complete(runs, part).await,
            written => written,
        };
        written.doing(|| format!("take over the steps of run {}", origin.run))?;
    }
    Ok(())
}

async fn list(runs: &Runs, run: &RunId) -> Result<Vec<NodeRecord>, RunError> {
    let nodes = runs.store.list_nodes(run, None).await;
    nodes.doing(|| format!("read the steps of run {run}"))
}

/// Writes those of the records that are not there: another invocation takes over too.
async fn complete(runs: &Runs, copies: &[NodeRecord]) -> Result<(), StoreError> {
    for copy in copies {
        match runs.store.start_node(copy).await {
            Ok(()) | Err(StoreError::AlreadyExists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Puts the summaries of stages that are taken over in the place of those that have not begun; turns of loops that the
/// plan does not know yet come last.
pub(crate) fn copy_summaries(
    into: &mut Vec<StageSummary>,
    from: &[StageSummary],
    stages: &BTreeSet<StageId>,
) {
    let from: BTreeMap<_, _> = from.iter().map(|stage| (&stage.id, stage)).collect();
    for stage in into.iter_mut().filter(|stage| stages.contains(&stage.id)) {
        if let Some(ended) = from.get(&stage.id) {
            *stage = (*ended).clone();
        }
    }
    let known: BTreeSet<StageId> = into.iter().map(|stage| stage.id.clone()).collect();
    let turns = stages.iter().filter(|id| !known.contains(*id));
    into.extend(turns.filter_map(|id| from.get(id).map(|ended| (*ended).clone())));
}
