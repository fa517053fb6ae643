//! Rolling a whole run back: its stages' rollback steps run, those of the last stage first. Source:
//! developer.harness.io, *Rollback pipelines*. Other runs that stages have started are not rolled back.
//!
//! A run that rolls another one back after it (`crate::undo`) does nothing else.

use std::collections::BTreeMap;

use slipway_model::id::{NodeId, PrincipalId, RunId, StageId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::{Plan, StagePlan};
use slipway_store::record::{NodeRecord, RunRecord, StageSummary, UndoRecord};

use crate::begin::{LaneInput, LaneStart, release_infrastructure, skipped, take_infrastructure};
use crate::end::{tell_barriers, warn_of_standing};
use crate::error::RunError;
use crate::error_name::ErrorName;
use crate::lane::Facts;
use crate::name::{self, Lane};
use crate::plan_run::{Group, Line, Planned, StageInput, StageStart};
use crate::runs::{Runs, StageOfRun, fact, summary};
use crate::stage::{after_undo, can_be_undone};
use crate::stage_word::{self, Part};
use crate::undo::taken_by;

/// The attempt of a stage in which it is rolled back with its run: its executions have names of their own.
pub(crate) const ATTEMPT: u32 = 1;

/// Whether a run whose stages have ended is to be rolled back first.
pub(crate) fn is_wanted(run: &RunRecord) -> bool {
    let failed = || run.stages.iter().any(|stage| stage.undoes_run);
    run.abort.is_none() && (run.undoes().is_some() || failed())
}

/// Notes the stages of a run that are to be rolled back, and tells their order: groups in reverse, the stages of a
/// group side by side, but for those that deployed to one place, of which the last one comes first. `function_of` tells
/// the function of a stage's swimlane. Repeating it changes nothing.
///
/// # Errors
/// When the store cannot be reached.
pub async fn roll_back_run(
    runs: &Runs,
    run: &RunId,
    function_of: &(dyn Fn(&StagePlan) -> String + Sync),
) -> Result<Planned, RunError> {
    let (record, plan) = runs.load(run).await?;
    let nodes = runs.nodes(run, None).await?;
    let mut groups = Vec::new();
    for stages in plan.groups.iter().rev() {
        let mut due = Vec::new();
        for stage in stages {
            let known = summary(&record.stages, stage);
            if is_due(runs, &record, stage, &known, &nodes).await? {
                due.push(stage);
            }
        }
        if !due.is_empty() {
            let lines = lines(&due, &nodes).into_iter();
            let lines = lines.map(|(concurrency, stages)| Line {
                concurrency,
                stages: stages
                    .into_iter()
                    .map(|stage| start(run, stage, function_of(stage)))
                    .collect(),
            });
            groups.push(Group::of(lines.collect()));
        }
    }
    tracing::info!(run.id = %run, "the run is rolled back");
    // What is planned is over.
    let part = 0;
    Ok(Planned { groups, part })
}

/// Stages that are rolled back side by side, in lines with the limit of each. What several of them deployed to, one after the
/// other, is left by each as the one before it left it: the last one must go first.
fn lines<'p>(
    due: &[&'p StagePlan],
    nodes: &BTreeMap<NodeId, NodeRecord>,
) -> Vec<(u32, Vec<&'p StagePlan>)> {
    let mut places: BTreeMap<[&str; 4], Vec<&'p StagePlan>> = BTreeMap::new();
    for stage in due {
        if let Some(place) = stage.deploys_alone_to() {
            places.entry(place).or_default().push(stage);
        }
    }
    let began = |stage: &StagePlan| {
        let own = nodes.values().filter(|node| node.stage == stage.id);
        own.map(|node| node.started_ms).min()
    };
    let mut shared: Vec<(u32, Vec<&'p StagePlan>)> = Vec::new();
    for (_, mut stages) in places.into_iter().filter(|(_, stages)| stages.len() > 1) {
        // A stable order: of those that began at once the one that is written last goes first.
        stages.sort_by_key(|stage| began(stage));
        stages.reverse();
        shared.push((1, stages));
    }
    let in_line = |stage: &&&StagePlan| {
        let mut lines = shared.iter().flat_map(|(_, stages)| stages);
        lines.any(|known| known.id == stage.id)
    };
    let beside: Vec<_> = due
        .iter()
        .filter(|stage| !in_line(stage))
        .copied()
        .collect();
    let beside = Some((0, beside)).filter(|(_, stages)| !stages.is_empty());
    beside.into_iter().chain(shared).collect()
}

/// Whether a stage is still to be rolled back; noted where it was not yet.
async fn is_due(
    runs: &Runs,
    run: &RunRecord,
    stage: &StagePlan,
    known: &StageSummary,
    nodes: &BTreeMap<NodeId, NodeRecord>,
) -> Result<bool, RunError> {
    if let Some(undo) = &known.undo {
        return Ok(!undo.status.is_final());
    }
    if run
        .undoes()
        .is_some_and(|of| !of.stages.contains(&stage.id))
    {
        return Ok(false);
    }
    let facts = Facts {
        nodes: nodes
            .iter()
            .map(|(id, node)| (id.clone(), fact(node)))
            .collect(),
        ..Facts::default()
    };
    if !can_be_undone(stage, known, &facts) {
        return Ok(false);
    }
    let undo = UndoRecord {
        status: Status::NotStarted,
        started_ms: None,
        ended_ms: None,
        failure: None,
    };
    put(runs, &run.id, known, undo).await?;
    Ok(true)
}

fn start(run: &RunId, stage: &StagePlan, function: String) -> StageStart {
    let lane = Lane::rollback(&stage.id);
    StageStart {
        execution: name::stage_execution(run, &stage.id, ATTEMPT),
        input: StageInput {
            run_id: run.clone(),
            stage_id: stage.id.clone(),
            attempt: ATTEMPT,
            roll_back: Some(LaneStart {
                execution: name::lane_execution(run, &lane, ATTEMPT),
                input: LaneInput {
                    run_id: run.clone(),
                    lane_id: lane.id(),
                    function,
                },
            }),
        },
    }
}

async fn put(
    runs: &Runs,
    run: &RunId,
    known: &StageSummary,
    undo: UndoRecord,
) -> Result<(), RunError> {
    let summary = StageSummary {
        rolled_back: known.rolled_back || undo.status.is_good(),
        undo: Some(undo),
        ..known.clone()
    };
    runs.put_stage(run, &summary).await
}

/// What the stage machine is told about a stage that has ended: to run its rollback steps, or that there is nothing
/// to do.
pub(crate) async fn begin(
    runs: &Runs,
    of_run: &StageOfRun,
    attempt: u32,
) -> Result<RunError, RunError> {
    let known = of_run.summary();
    let open = known.undo.clone().filter(|undo| !undo.status.is_final());
    let Some(undo) = open else {
        // A crash may have kept it from those who wait for it.
        tell_barriers(runs, of_run, attempt).await?;
        let (stage, status) = (&known.id, known.status);
        let message = format!("stage {stage} has ended: {status:?}");
        return Ok(RunError::refused(ErrorName::LaneFailed, message));
    };
    let run = &of_run.run.id;
    let own = stage_word::aborted_by(&of_run.run, &known.id, Part::WithRun);
    if of_run.run.abort.is_some() || own.is_some() {
        let failure = stopped(of_run.stage(), own);
        refuse(runs, of_run, attempt, (undo, Status::Aborted, failure)).await?;
        return Ok(skipped("it was aborted"));
    }
    take_infrastructure(runs, of_run, attempt).await?;
    if let Some(other) = taken_by(runs, of_run).await? {
        let failure = outrun(of_run.stage(), &other);
        refuse(runs, of_run, attempt, (undo, Status::Failed, failure)).await?;
        return Ok(skipped("another run has deployed there"));
    }
    let begun = UndoRecord {
        status: Status::Running,
        started_ms: undo.started_ms.or(Some(runs.clock.now_ms())),
        ..undo
    };
    put(runs, run, &known, begun).await?;
    let message = format!("stage {} is rolled back with its run", known.id);
    Ok(RunError::refused(ErrorName::RollBackStage, message))
}

/// Ends the rollback of a stage before it has begun.
async fn refuse(
    runs: &Runs,
    of_run: &StageOfRun,
    attempt: u32,
    (undo, status, failure): (UndoRecord, Status, Failure),
) -> Result<(), RunError> {
    let ended = UndoRecord {
        status,
        ended_ms: Some(runs.clock.now_ms()),
        failure: Some(failure),
        ..undo
    };
    put(runs, &of_run.run.id, &of_run.summary(), ended).await?;
    release_infrastructure(runs, of_run, attempt).await?;
    tell_barriers(runs, of_run, attempt).await
}

fn stopped(stage: &StagePlan, by: Option<&PrincipalId>) -> Failure {
    let why = by.map_or_else(
        || "the run was aborted".to_owned(),
        |who| format!("its rollback was aborted by {who}"),
    );
    Failure {
        error: ErrorType::Unknown,
        message: format!("Stage {} was not rolled back: {why}.", stage.identifier),
        left_behind: None,
    }
}

fn outrun(stage: &StagePlan, other: &RunId) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!(
            "Stage {} was not rolled back: run {other} has deployed there since. What that run deployed is still \
             there; roll that run back if it is to go.",
            stage.identifier
        ),
        left_behind: None,
    }
}

/// Records how rolling back a stage came out, where that has begun and not ended. Answers how it came out, once that
/// is known.
pub(crate) async fn end(
    runs: &Runs,
    of_run: &StageOfRun,
    nodes: &BTreeMap<NodeId, NodeRecord>,
) -> Result<Option<Status>, RunError> {
    let known = of_run.summary();
    let undo = match known.undo.clone() {
        Some(undo) if !undo.status.is_final() => undo,
        ended => return Ok(ended.map(|undo| undo.status)),
    };
    let lane = Lane::rollback(&known.id);
    let now_ms = runs.clock.now_ms();
    let ending = after_undo(of_run.stage(), &of_run.facts(&lane, nodes), now_ms);
    let ended = UndoRecord {
        status: ending.status,
        started_ms: undo.started_ms,
        ended_ms: Some(now_ms),
        failure: ending.failure,
    };
    if ending.status.is_good() {
        warn_of_standing(runs, of_run, nodes).await?;
    }
    put(runs, &of_run.run.id, &known, ended).await?;
    Ok(Some(ending.status))
}

/// The stages of a run whose rollback never came to its end: their machine broke.
pub(crate) fn lost(record: &RunRecord, plan: &Plan) -> Vec<StageId> {
    let stages = plan.groups.iter().flatten();
    let open = |stage: &&StagePlan| {
        let undo = summary(&record.stages, stage).undo;
        undo.is_some_and(|undo| !undo.status.is_final())
    };
    stages.filter(open).map(|stage| stage.id.clone()).collect()
}
