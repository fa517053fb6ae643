//! Attempts that steps and step groups wait for: after a failure, until the time of the next one has come. Meanwhile nothing
//! of such a step or group runs, and its record is that of the attempt that failed.

use std::collections::BTreeMap;

use slipway_model::id::{NodeId, RunId};
use slipway_plan::{Plan, StagePlan};
use slipway_store::record::{NodeRecord, RunRecord};

use crate::error::RunError;
use crate::lane::{Awaited, awaited_retries, is_rollback};
use crate::runs::{Runs, deadline_ms, fact, summary};
use crate::signal::stopped;
use crate::stage_word::{Part, aborted_by, part_of};

/// The attempts that steps and step groups of a run wait for. `nodes` are its newest attempts.
pub fn of_run(
    run: &RunRecord,
    plan: &Plan,
    nodes: &BTreeMap<NodeId, NodeRecord>,
    now_ms: i64,
) -> Vec<Awaited> {
    let stages = plan.groups.iter().flatten();
    let all = stages.flat_map(|stage| of_stage(run, plan, stage, nodes, now_ms));
    all.collect()
}

/// The attempts that steps and step groups of a stage wait for: none where it does not go on, and none that somebody stopped already.
fn of_stage(
    run: &RunRecord,
    plan: &Plan,
    stage: &StagePlan,
    nodes: &BTreeMap<NodeId, NodeRecord>,
    now_ms: i64,
) -> Vec<Awaited> {
    let known = summary(&run.stages, stage);
    let Ok(part) = part_of(&run.id, &known) else {
        return Vec::new();
    };
    if run.abort.is_some() || aborted_by(run, &stage.id, part).is_some() {
        return Vec::new();
    }
    // Where it is out of time, or is rolled back with its run, only what rolls it back comes again.
    let is_over = part == Part::WithRun || now_ms >= deadline_ms(run, plan, stage, &known);
    let stopped = stopped(run);
    let facts = nodes.iter();
    let facts = facts.map(|(id, node)| (id.clone(), fact(node))).collect();
    let mut found = awaited_retries(stage, facts, now_ms);
    found.retain(|next| {
        let comes = !is_over || is_rollback(stage, &next.node);
        comes && !stopped.contains_key(&(next.node.clone(), next.attempt))
    });
    found
}

/// The attempts that steps and step groups of a run wait for, as they are recorded.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn read(
    runs: &Runs,
    run: &RunId,
    nodes: &BTreeMap<NodeId, NodeRecord>,
) -> Result<Vec<Awaited>, RunError> {
    let (record, plan) = runs.load(run).await?;
    Ok(of_run(&record, &plan, nodes, runs.clock.now_ms()))
}
