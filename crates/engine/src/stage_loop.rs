//! Stages that loop over what the run brings forth: taken apart when their group is about to begin.
//!
//! A run with such stages runs in parts ([`Plan::parts`]). `PlanMore` takes the loops apart that a part begins with and
//! records their turns; from then on every use case reads the plan with the turns in it ([`Runs::unrolled`]). A loop
//! that cannot be taken apart, or need not be, stays one stage, which `Begin` skips or fails.

use std::collections::{BTreeMap, BTreeSet};

use slipway_expr::Limits;
use slipway_model::id::{NodeId, RunId, StageId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::unroll::{RunTurn, loop_of_stage, turns};
use slipway_plan::{Plan, StagePlan};
use slipway_store::StoreError;
use slipway_store::record::{NodeRecord, RunRecord, StageSummary};

use crate::begin::{end_unbegun, skip};
use crate::context::RunContext;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::name::Lane;
use crate::plan_run::{Planned, groups};
use crate::runs::{Runs, StageOfRun, not_started, spec_of_turns, turns_in};
use crate::stage::{Gate, gate};

/// Type of the record that holds the turns of a stage's loop.
const STAGE: &str = "STAGE";

/// The stages of the part of a run after `part`. What they loop over is read now, and recorded: repeating it changes
/// nothing.
///
/// # Errors
/// When the store cannot be reached.
pub async fn plan_more(runs: &Runs, run: &RunId, part: usize) -> Result<Planned, RunError> {
    let (record, plan) = runs.load_written(run).await?;
    let part = part.saturating_add(1);
    let Some(range) = plan.parts().get(part).cloned() else {
        let message = format!("run {run} has no part {part}");
        return Err(RunError::refused(ErrorName::InvalidRequest, message));
    };
    let own = plan.groups.get(range).unwrap_or_default();
    let first = own.first().into_iter().flatten();
    let loops: Vec<&StagePlan> = first.filter(|stage| stage.each.is_some()).collect();
    take_apart(runs, run, &loops).await?;
    let part_plan = Plan {
        groups: own.to_vec(),
        ..Plan::clone(&plan)
    };
    let nodes = runs.nodes(run, None).await?;
    for stage in loops {
        if turns_in(&nodes, &loop_of_stage(&stage.id)).is_some() {
            let summary = StageSummary {
                taken_apart: true,
                ..not_started(stage)
            };
            runs.put_stage(run, &summary).await?;
        }
    }
    let unrolled = part_plan.unrolled(&|id| turns_in(&nodes, id));
    Ok(Planned {
        groups: groups(&record, &unrolled.groups),
        part,
    })
}

/// Whether stages of a run are still to be planned after `part`.
pub(crate) fn is_more_to_plan(record: &RunRecord, plan: &Plan, part: usize) -> bool {
    record.abort.is_none() && part.saturating_add(1) < plan.parts().len()
}

/// Records the turns of loops that begin together: all or none.
async fn take_apart(runs: &Runs, run: &RunId, loops: &[&StagePlan]) -> Result<(), RunError> {
    let nodes = runs.nodes(run, None).await?;
    let mut records = Vec::new();
    // Stages that the loops before add.
    let mut more = 0_usize;
    for stage in loops {
        let id = loop_of_stage(&stage.id);
        if nodes.contains_key(&id) {
            continue;
        }
        let of_run = runs.load_stage(run, &stage.id).await?;
        let found = turns_to_run(runs, &of_run).await?;
        let fits = |turns: &Vec<RunTurn>| of_run.plan.has_room(more.saturating_add(turns.len()));
        if let Some(found) = found.filter(fits) {
            more = more.saturating_add(found.len()).saturating_sub(1);
            records.push(record(runs, run, stage, id, &found));
        }
    }
    if records.is_empty() {
        return Ok(());
    }
    match runs.store.record_nodes(&[], &records).await {
        // Another invocation was faster: its turns count.
        Ok(()) | Err(StoreError::AlreadyExists { .. } | StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error).doing(|| format!("record the turns of loops of run {run}")),
    }
}

fn record(
    runs: &Runs,
    run: &RunId,
    stage: &StagePlan,
    id: NodeId,
    found: &[RunTurn],
) -> NodeRecord {
    let now_ms = runs.clock.now_ms();
    NodeRecord {
        run: run.clone(),
        id,
        stage: stage.id.clone(),
        lane: Lane::steps(&stage.id).id(),
        attempt: 0,
        identifier: stage.identifier.clone(),
        name: stage.name.clone(),
        node_type: STAGE.to_owned(),
        status: Status::Success,
        started_ms: now_ms,
        ended_ms: Some(now_ms),
        failure: None,
        spec: spec_of_turns(found),
        outputs: serde_json::Value::Null,
        progress: serde_json::Value::Null,
        units: Vec::new(),
        delegate: None,
        asked_ms: None,
        round: 0,
        base: 0,
        refused: Vec::new(),
    }
}

/// The turns of a stage's loop; `None` where the stage does not run, or why it cannot is for `Begin` to tell.
async fn turns_to_run(runs: &Runs, of_run: &StageOfRun) -> Result<Option<Vec<RunTurn>>, RunError> {
    let late = runs.clock.now_ms() >= of_run.deadline_ms();
    if of_run.run.abort.is_some() || late || of_run.is_given_up() {
        return Ok(None);
    }
    let condition = match gate(of_run.stage(), &of_run.earlier()) {
        Gate::Skip(_) => return Ok(None),
        Gate::Run => None,
        Gate::Condition(condition) => Some(condition),
    };
    let nodes = runs.nodes(&of_run.run.id, None).await?;
    let context = context(of_run, &nodes);
    // A condition that reads what only a turn has cannot be told here: each turn asks it.
    let holds = condition.map(|text| slipway_expr::condition(text, &context, &Limits::default()));
    if let Some(Ok(false)) = holds {
        return Ok(None);
    }
    let found = turns_of(of_run, &context).unwrap_or_default();
    Ok(Some(found).filter(|turns| !turns.is_empty()))
}

/// Ends a stage that is to begin and whose loop was not taken apart: it has no turns, or cannot be.
///
/// # Errors
/// That the stage has ended; when the store cannot be reached.
pub(crate) async fn check_whole(runs: &Runs, of_run: &StageOfRun) -> Result<(), RunError> {
    let stage = of_run.stage();
    if stage.each.is_none() {
        return Ok(());
    }
    let nodes = runs.nodes(&of_run.run.id, None).await?;
    let message = match turns_of(of_run, &context(of_run, &nodes)) {
        Ok(found) if found.is_empty() => return skip(runs, of_run, "its loop has no turns").await,
        Ok(_) => "what it goes over was not known when it was to begin".to_owned(),
        Err(message) => message,
    };
    let failure = Failure {
        error: ErrorType::Unknown,
        message: format!("The loop of stage {}: {message}.", stage.identifier),
        left_behind: None,
    };
    end_unbegun(runs, of_run, Status::Errored, failure).await
}

fn context<'a>(of_run: &'a StageOfRun, nodes: &'a BTreeMap<NodeId, NodeRecord>) -> RunContext<'a> {
    RunContext {
        plan: &of_run.plan,
        run: &of_run.run,
        nodes,
        stage: Some(of_run.stage()),
        node: None,
    }
}

fn turns_of(of_run: &StageOfRun, context: &RunContext<'_>) -> Result<Vec<RunTurn>, String> {
    let stage = of_run.stage();
    let Some(each) = &stage.each else {
        return Ok(Vec::new());
    };
    let found = turns(each, context)?;
    of_run.plan.check_stage_turns(stage, found.len())?;
    Ok(found)
}

/// `kept`, and with them the stages under whose names the loops of kept turns are recorded.
pub(crate) fn with_loops(plan: &Plan, kept: &BTreeSet<StageId>) -> BTreeSet<StageId> {
    let stages = plan.groups.iter().flatten();
    let kept_stages = stages.filter(|stage| kept.contains(&stage.id));
    let loops = kept_stages.filter_map(|stage| {
        let postfix = stage.iteration.as_ref()?.postfix();
        stage.id.as_str().strip_suffix(&postfix).map(StageId::new)
    });
    loops.chain(kept.iter().cloned()).collect()
}
