//! Use cases of the ends: `End` of the stage machine and `Finish` of the pipeline machine.

use std::collections::BTreeMap;

use slipway_model::id::{NodeId, PrincipalId, RunId, StageId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_store::record::{NodeRecord, RunRecord, SignalRecord, StageSummary};
use slipway_store::{NodeEnd, StoreError};

use crate::begin::{release_infrastructure, stage_node};
use crate::directive::PAUSE_WAIT;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::intake::{self, handler::Handler};
use crate::kept;
use crate::name::Lane;
use crate::notify;
use crate::owed;
use crate::queue::{self, release_run, release_stage};
use crate::rollback;
use crate::runs::{Runs, StageOfRun, newest, summary};
use crate::signal::warn;
use crate::stage::{AfterSteps, Ending, after_rollback, after_steps, run_ending, undo_ending};
use crate::stage_loop::is_more_to_plan;
use crate::stage_word::barred;
use crate::undone;
use crate::wake::{tell_end, wake};

/// Records how a stage ended and gives its infrastructure to the next in line. Fails with `RollBackStage`
/// when its rollback steps must run first; `rolled_back` tells that they did, or could not. Repeating it
/// changes nothing.
pub async fn stage_end(
    runs: &Runs,
    run: &RunId,
    stage: &StageId,
    attempt: u32,
    rolled_back: bool,
) -> Result<Status, RunError> {
    let (of_run, nodes) = runs.load_stage_with_nodes(run, stage).await?;
    end_stage(runs, &of_run, &newest(nodes), attempt, rolled_back).await
}

/// [`stage_end`] for a caller that has loaded the stage and its nodes already.
pub async fn end_stage(
    runs: &Runs,
    of_run: &StageOfRun,
    nodes: &BTreeMap<NodeId, NodeRecord>,
    attempt: u32,
    rolled_back: bool,
) -> Result<Status, RunError> {
    let summary = of_run.summary();
    let account = &of_run.plan.scope.account;
    let own = || nodes.values().filter(|node| node.stage == summary.id);
    if summary.status.is_final() {
        let mut shown = summary.status;
        if rolled_back {
            let undone = rollback::end(runs, of_run, nodes).await?;
            close_open_nodes(runs, own(), summary.status).await?;
            // A run that does nothing else tells how that came out.
            let undone = undone.filter(|_| of_run.run.undoes().is_some());
            shown = undone.unwrap_or(shown);
        }
        release_infrastructure(runs, of_run, attempt).await?;
        release_stage(runs, account, own()).await?;
        tell_barriers(runs, of_run, attempt).await?;
        tell_stage(runs, of_run, shown).await;
        return Ok(summary.status);
    }
    let (ending, undoes_run) = match summary.status {
        Status::Running => decide(runs, of_run, nodes, rolled_back)?,
        _ => (never_began(of_run), false),
    };
    let ending = match rolled_back || undoes_run {
        true => ending,
        false => tell_missing(runs, of_run, own().collect(), ending).await?,
    };
    close_open_nodes(runs, own(), ending.status).await?;
    let ended = StageSummary {
        status: ending.status,
        started_ms: summary.started_ms.or(Some(runs.clock.now_ms())),
        ended_ms: Some(runs.clock.now_ms()),
        failure: ending.failure,
        rolled_back,
        undoes_run,
        ..summary.clone()
    };
    runs.put_stage(&of_run.run.id, &ended).await?;
    release_infrastructure(runs, of_run, attempt).await?;
    release_stage(runs, account, own()).await?;
    tell_barriers(runs, of_run, attempt).await?;
    tell_stage(runs, of_run, ended.status).await;
    Ok(ended.status)
}

/// Tells what the steps of a stage that is not rolled back took off and did not put on again: as what its failure left
/// behind, unless that says it already, or as a warning of the run where the failure counts as none.
async fn tell_missing(
    runs: &Runs,
    of_run: &StageOfRun,
    nodes: Vec<&NodeRecord>,
    mut ending: Ending,
) -> Result<Ending, RunError> {
    let stage = &of_run.stage().id;
    for (number, one) in owed::missing(nodes).into_iter().enumerate() {
        let Some(failure) = &mut ending.failure else {
            let told = format!("When stage {stage} ended: {}", one.told);
            let (run, about) = (&of_run.run.id, format!("missing-{number}"));
            warn(runs, run, stage_node(stage), &about, told).await?;
            continue;
        };
        let left = failure.left_behind.clone().unwrap_or_default();
        if failure.message.contains(&one.name) || left.contains(&one.name) {
            continue;
        }
        let left = left.trim_end_matches('.');
        failure.left_behind = Some(match left.is_empty() {
            true => one.told,
            false => format!("{left}. {}", one.told),
        });
    }
    Ok(ending)
}

/// What still stands of a stage whose rollback steps have run, as clauses.
fn standing(of_run: &StageOfRun, nodes: &BTreeMap<NodeId, NodeRecord>) -> Vec<String> {
    let stage = &of_run.stage().id;
    let own = || nodes.values().filter(|node| node.stage == *stage).collect();
    let mut all = kept::left(own());
    all.extend(undone::standing(own()));
    all
}

/// Warns of what still stands of a stage that was rolled back with its run, which has no failure that could tell it.
pub(crate) async fn warn_of_standing(
    runs: &Runs,
    of_run: &StageOfRun,
    nodes: &BTreeMap<NodeId, NodeRecord>,
) -> Result<(), RunError> {
    for (number, one) in standing(of_run, nodes).into_iter().enumerate() {
        let (run, stage) = (&of_run.run.id, &of_run.stage().id);
        let told = format!("Stage {stage} was rolled back: {one}.");
        let about = format!("standing-{number}");
        warn(runs, run, stage_node(stage), &about, told).await?;
    }
    Ok(())
}

async fn tell_stage(runs: &Runs, of_run: &StageOfRun, status: Status) {
    let events = notify::end_of_stage(&of_run.stage().id, status);
    let events: Vec<_> = events.into_iter().collect();
    runs.tell(&of_run.run.id, &of_run.plan, &events).await;
}

/// Who waits at a barrier for this stage waits in vain; in another attempt, who waits for its rollback with the run.
pub(crate) async fn tell_barriers(
    runs: &Runs,
    of_run: &StageOfRun,
    attempt: u32,
) -> Result<(), RunError> {
    if of_run.plan.barriers.is_empty() {
        return Ok(());
    }
    let stage = NodeId::new(format!("stages.{}", of_run.stage().id));
    tell_end(runs, &of_run.run.id, &stage, attempt).await
}

/// How a stage ended, and whether its run is to be rolled back.
fn decide(
    runs: &Runs,
    of_run: &StageOfRun,
    nodes: &BTreeMap<NodeId, NodeRecord>,
    rolled_back: bool,
) -> Result<(Ending, bool), RunError> {
    let (stage, now_ms) = (of_run.stage(), runs.clock.now_ms());
    if rolled_back {
        let facts = of_run.facts(&Lane::rollback(&stage.id), nodes);
        let stays = standing(of_run, nodes);
        return Ok((after_rollback(stage, &facts, &stays, now_ms), false));
    }
    let lane = Lane::steps(&stage.id);
    let facts = of_run.facts(&lane, nodes);
    match after_steps(stage, &facts, now_ms) {
        AfterSteps::End(ending) => {
            let mut own = nodes.values().filter(|node| node.stage == stage.id);
            let told = own.any(|node| node.status == Status::Aborted);
            let aborted = ending.status == Status::Aborted && facts.aborted && !told;
            let ending = match aborted {
                true => aborted_between(of_run, &lane, ending),
                false => ending,
            };
            Ok((ending, false))
        }
        AfterSteps::EndAndUndoRun(ending) => Ok((ending, true)),
        AfterSteps::RollBack => Err(RunError::refused(
            ErrorName::RollBackStage,
            format!("stage {} must be rolled back", stage.id),
        )),
    }
}

/// The end of a stage that was aborted while none of its steps ran, because one waited for its next attempt: the failure of
/// that step is not why it ended.
fn aborted_between(of_run: &StageOfRun, lane: &Lane, ending: Ending) -> Ending {
    let what = match (&of_run.run.abort, of_run.stage_aborted_by(lane)) {
        (Some((who, _)), _) => format!("the run was aborted by {who}"),
        (None, Some(who)) => format!("it was aborted by {who}"),
        (None, None) => return ending,
    };
    let why = format!("Stage {}: {what}.", of_run.stage().identifier);
    let failure = ending.failure.map(|failure| Failure {
        message: match failure.message.starts_with("Stage ") {
            // Nothing of it failed.
            true => why,
            false => format!("{why} Before that: {}", failure.message),
        },
        ..failure
    });
    Ending { failure, ..ending }
}

fn never_began(of_run: &StageOfRun) -> Ending {
    let (status, why) = match (&of_run.run.abort, barred(of_run)) {
        (Some(_), _) => (
            Status::Aborted,
            "the run was aborted before it began".to_owned(),
        ),
        (None, Some(why)) => (Status::Aborted, why),
        (None, None) => (
            Status::Errored,
            "it could not begin; its execution has the reason".to_owned(),
        ),
    };
    Ending {
        status,
        failure: Some(Failure {
            error: ErrorType::Unknown,
            message: format!("Stage {}: {why}.", of_run.stage().identifier),
            left_behind: None,
        }),
    }
}

/// Ends the records of nodes whose lane was lost, so that nothing looks as if it still ran.
async fn close_open_nodes(
    runs: &Runs,
    nodes: impl Iterator<Item = &NodeRecord>,
    status: Status,
) -> Result<(), RunError> {
    let status = if status == Status::Aborted {
        status
    } else {
        Status::Errored
    };
    for node in nodes.filter(|node| !node.status.is_final()) {
        let end = NodeEnd {
            run: node.run.clone(),
            node: node.id.clone(),
            attempt: node.attempt,
            status,
            failure: Some(Failure {
                error: ErrorType::Unknown,
                message: "It was stopped together with its stage.".to_owned(),
                left_behind: None,
            }),
            outputs: node.outputs.clone(),
            refused: node.refused.clone(),
            units: node.units.clone(),
            progress: None,
        };
        match runs.store.end_node(&end).await {
            // It has ended by itself in the meantime.
            Ok(()) | Err(StoreError::NotFound { .. }) => {}
            Err(error) => Err(error).doing(|| format!("record the end of {}", node.id))?,
        }
    }
    Ok(())
}

/// What the pipeline machine knows when it comes to `Finish`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finished {
    /// The part of the run whose stages ran last.
    pub part: usize,
    /// Whether the parts after it could not be planned.
    pub stopped: bool,
    /// Whether the stages were rolled back, or could not be.
    pub rolled_back: bool,
}

/// Records how a run ended. Fails with `StagesLeft` where stages are still to be planned, and with `RollBackRun` where
/// its stages must be rolled back first. Fails with `RunFailed` or `RunAborted`, which is how the machine learns of it.
/// Has the triggers start what waits for the end. Repeating it changes nothing.
pub async fn finish_run(
    runs: &Runs,
    handler: &Handler,
    run: &RunId,
    finished: Finished,
) -> Result<Status, RunError> {
    let record = runs.run(run).await?;
    if record.plan.is_none() {
        return told(run, end_run(runs, &record, finished).await?);
    }
    let (record, plan) = runs.load_written(run).await?;
    let goes_on = !finished.stopped && !finished.rolled_back && !record.status.is_final();
    if goes_on && is_more_to_plan(&record, &plan, finished.part) {
        let message = format!("run {run} has stages left to plan");
        return Err(RunError::refused(ErrorName::StagesLeft, message));
    }
    if queue::is_used(&plan) && !is_rolled_back_next(&record, finished) {
        // Nothing of the run needs what it holds any more.
        release_run(runs, &plan.scope.account, run).await?;
    }
    let status = end_run(runs, &record, finished).await?;
    forget_pauses(runs, run).await?;
    runs.tell(run, &plan, &notify::end_of_run(status)).await;
    Box::pin(intake::tell_ended(runs, &record, handler)).await?;
    told(run, status)
}

/// Forgets pauses that were noted after they were over, by a function that was slow or died. Nobody waits in them, and
/// one that is noted from now on finds that the run has ended.
async fn forget_pauses(runs: &Runs, run: &RunId) -> Result<(), RunError> {
    let waits = runs.store.list_waits(run).await;
    let waits = waits.doing(|| format!("read what run {run} waits for"))?;
    for wait in waits.iter().filter(|wait| wait.kind == PAUSE_WAIT) {
        let taken = runs
            .store
            .take_wait(run, &wait.node, wait.attempt, PAUSE_WAIT);
        taken
            .await
            .doing(|| format!("forget a pause of run {run}"))?;
    }
    Ok(())
}

/// Whether the stages of a run must be rolled back before it ends.
fn is_rolled_back_next(record: &RunRecord, finished: Finished) -> bool {
    let open = !record.status.is_final() && record.status != Status::NotStarted;
    open && rollback::is_wanted(record) && !finished.rolled_back
}

async fn end_run(runs: &Runs, record: &RunRecord, finished: Finished) -> Result<Status, RunError> {
    let run = &record.id;
    if record.status.is_final() {
        tell_parent(runs, record, record.status).await?;
        return Ok(record.status);
    }
    if is_rolled_back_next(record, finished) {
        let message = format!("run {run} must be rolled back");
        return Err(RunError::refused(ErrorName::RollBackRun, message));
    }
    // Where `Plan` failed for good, no stage has begun, whatever was taken over from another run.
    let planned =
        record.plan.is_some() && (record.status != Status::NotStarted || record.abort.is_some());
    let ending = match planned {
        true => end_of_stages(runs, run).await?,
        false => unplanned("The run could not be planned; its execution has the reason."),
    };
    let ending = match finished.stopped && ending.status.is_good() {
        true => {
            unplanned("The later stages could not be planned; the run's execution has the reason.")
        }
        false => ending,
    };
    let open = [Status::NotStarted, Status::Running, Status::Discontinuing];
    let why = ending.failure.as_ref();
    let set = runs
        .store
        .set_run_status(run, &open, ending.status, why)
        .await;
    let status = match set {
        Ok(()) => ending.status,
        // Recorded already: by another invocation, or by this one, whose answer was lost on the way.
        Err(error @ StoreError::Conflict { .. }) => {
            let ended = runs.run(run).await?.status;
            match ended.is_final() {
                true => ended,
                false => Err(error).doing(|| format!("record the end of run {run}"))?,
            }
        }
        Err(error) => Err(error).doing(|| format!("record the end of run {run}"))?,
    };
    tell_parent(runs, record, status).await?;
    Ok(status)
}

fn unplanned(message: &str) -> Ending {
    Ending {
        status: Status::Errored,
        failure: Some(Failure {
            error: ErrorType::Unknown,
            message: message.to_owned(),
            left_behind: None,
        }),
    }
}

/// Tells the step of another run that waits for this one that it has ended.
async fn tell_parent(runs: &Runs, run: &RunRecord, status: Status) -> Result<(), RunError> {
    let Some(parent) = &run.parent else {
        return Ok(());
    };
    let signal = SignalRecord {
        run: parent.run.clone(),
        node: parent.node.clone(),
        attempt: parent.attempt,
        kind: "child".to_owned(),
        says: format!("{status:?}"),
        who: PrincipalId::new("slipway"),
        at_ms: runs.clock.now_ms(),
    };
    match runs.store.put_signal(&signal).await {
        // Told before a crash: whether the step was woken is not known.
        Ok(()) | Err(StoreError::AlreadyExists { .. }) => wake(runs, &parent.run).await,
        Err(error) => Err(error).doing(|| format!("tell run {} of its end", parent.run)),
    }
}

async fn end_of_stages(runs: &Runs, run: &RunId) -> Result<Ending, RunError> {
    let (mut record, plan) = runs.load(run).await?;
    let broken = |summary: &&StageSummary| {
        !summary.status.is_final() && summary.status != Status::NotStarted
    };
    let lost: Vec<StageId> = record
        .stages
        .iter()
        .filter(broken)
        .map(|summary| summary.id.clone())
        .collect();
    for stage in &lost {
        // Its machine broke; what it could not do about its nodes and infrastructure is done here.
        stage_end(runs, run, stage, 0, true).await?;
    }
    let unfinished = rollback::lost(&record, &plan);
    for stage in &unfinished {
        stage_end(runs, run, stage, rollback::ATTEMPT, true).await?;
    }
    if !lost.is_empty() || !unfinished.is_empty() {
        record = runs.run(run).await?;
    }
    let stages = plan.groups.iter().flatten();
    let stages: Vec<_> = stages.map(|stage| summary(&record.stages, stage)).collect();
    let aborted = record.abort.is_some();
    Ok(match record.undoes() {
        Some(origin) => undo_ending(&stages, &origin.stages, aborted),
        None => run_ending(&stages, aborted),
    })
}

fn told(run: &RunId, status: Status) -> Result<Status, RunError> {
    match status {
        Status::Aborted | Status::AbortedByFreeze => Err(RunError::refused(
            ErrorName::RunAborted,
            format!("run {run} was aborted"),
        )),
        status if status.is_good() => Ok(status),
        status => Err(RunError::refused(
            ErrorName::RunFailed,
            format!("run {run} ended {status:?}"),
        )),
    }
}
