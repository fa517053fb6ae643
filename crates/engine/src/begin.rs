//! Use cases of the stage machine's beginning: `Begin` and `HoldInfrastructure`.

use serde::Serialize;
use slipway_expr::Limits;
use slipway_model::id::{LaneId, NodeId, RunId, StageId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::{Plan, StagePlan};
use slipway_store::record::{RunRecord, StageSummary, WaitRecord};
use slipway_store::{Holder, Turn};

use crate::by_hand;
use crate::context::RunContext;
use crate::end::tell_barriers;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::freeze::{self, Freezes};
use crate::name::{self, Lane};
use crate::notify::Event;
use crate::queue;
use crate::rollback;
use crate::runs::{Runs, StageOfRun, not_started};
use crate::stage::{Gate, gate};
use crate::stage_loop;
use crate::stage_word;

/// Kind of the wait for an infrastructure.
const RESOURCE: &str = "resource";

/// Kind of the wait of a stage for a queue that its run holds: whoever gives the key back wakes the run.
const QUEUE: &str = "queue";

/// Answer of `Begin`: what the stage machine needs to start the lanes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Begun {
    /// The run.
    pub run_id: RunId,
    /// The stage.
    pub stage_id: StageId,
    /// Which attempt of it.
    pub attempt: u32,
    /// The lane of its steps.
    pub steps: LaneStart,
    /// The lane of its rollback steps.
    pub roll_back: LaneStart,
}

/// How to start a lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaneStart {
    /// Name of the execution.
    pub execution: String,
    /// Its input.
    pub input: LaneInput,
}

/// Input of the lane machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LaneInput {
    /// The run.
    pub run_id: RunId,
    /// The lane.
    pub lane_id: LaneId,
    /// Name or ARN of the function that walks it.
    pub function: String,
}

/// Decides whether a stage runs, takes its infrastructure, and records that it has begun. `function_of`
/// tells the function of a stage's swimlane. Repeating it changes nothing.
///
/// Fails with `StageSkipped`, `StageNotStarted`, `InfrastructureBusy` or `RunAborted` where the stage does not go on, and
/// with `RollBackStage` where it has ended before and is to be rolled back with its run.
pub async fn stage_begin(
    runs: &Runs,
    run: &RunId,
    stage: &StageId,
    attempt: u32,
    function_of: &(dyn Fn(&StagePlan) -> String + Sync),
) -> Result<Begun, RunError> {
    let of_run = runs.load_stage(run, stage).await?;
    let status = of_run.summary().status;
    if status == Status::Skipped {
        tell_barriers(runs, &of_run, 0).await?;
        return Err(skipped("its condition is not met"));
    }
    if status.is_final() {
        return Err(rollback::begin(runs, &of_run, attempt).await?);
    }
    if of_run.run.abort.is_some() {
        let message = format!("run {run} was aborted before stage {stage} began");
        return Err(RunError::refused(ErrorName::RunAborted, message));
    }
    if status != Status::Running {
        if let Some(why) = stage_word::barred(&of_run) {
            let message = format!("stage {stage}: {why}");
            return Err(RunError::refused(ErrorName::RunAborted, message));
        }
        stage_word::check_given_up(runs, &of_run).await?;
    }
    // A stage that waits for its infrastructure has passed its condition already.
    if status == Status::NotStarted {
        check_condition(runs, &of_run).await?;
    }
    check_time(runs, &of_run).await?;
    stage_loop::check_whole(runs, &of_run).await?;
    if status != Status::Running {
        by_hand::check_started(runs, &of_run, attempt).await?;
    }
    // Nothing waits behind a freeze. What waited meets the freezes of the moment at which its turn has come: not those
    // that came and went meanwhile, which it would meet or miss as it happens to look.
    if status == Status::NotStarted {
        check_freeze(runs, &of_run).await?;
    }
    take_queues(runs, &of_run, attempt).await?;
    take_infrastructure(runs, &of_run, attempt).await?;
    if !matches!(status, Status::NotStarted | Status::Running) {
        check_freeze(runs, &of_run).await?;
    }
    if status != Status::Running {
        let summary = StageSummary {
            status: Status::Running,
            started_ms: Some(runs.clock.now_ms()),
            ..not_started(of_run.stage())
        };
        runs.put_stage(run, &summary).await?;
        // One that never waited was never said anything about.
        if status != Status::NotStarted {
            stage_word::check_again(runs, &of_run).await?;
        }
    }
    let stage_id = stage.clone();
    let events = [Event::StageStart { stage_id }];
    runs.tell(run, &of_run.plan, &events).await;
    Ok(lanes(&of_run, attempt, function_of(of_run.stage())))
}

/// The record of the first stage of a run, where it begins with the run whatever there is: no condition and no freeze
/// decides about it, and it waits for nobody and for nothing. Written with the run's own, it saves a write; `Begin` finds a
/// stage that has begun.
pub(crate) fn begins_at_once(run: &RunRecord, plan: &Plan, now_ms: i64) -> Option<StageSummary> {
    let [stage] = plan.groups.first()?.as_slice() else {
        return None;
    };
    let waits = stage.start_within.is_some() || infrastructure_key(plan, stage).is_some();
    let surely = run.origin.is_none()
        && run.abort.is_none()
        && stage.each.is_none()
        && !waits
        && !freeze::concerns(stage)
        && gate(stage, &[]) == Gate::Run;
    surely.then(|| StageSummary {
        status: Status::Running,
        started_ms: Some(now_ms),
        ..not_started(stage)
    })
}

fn lanes(of_run: &StageOfRun, attempt: u32, function: String) -> Begun {
    let (run, stage) = (&of_run.run.id, &of_run.stage().id);
    let start = |lane: &Lane| LaneStart {
        execution: name::lane_execution(run, lane, attempt),
        input: LaneInput {
            run_id: run.clone(),
            lane_id: lane.id(),
            function: function.clone(),
        },
    };
    Begun {
        run_id: run.clone(),
        stage_id: stage.clone(),
        attempt,
        steps: start(&Lane::steps(stage)),
        roll_back: start(&Lane::rollback(stage)),
    }
}

async fn check_condition(runs: &Runs, of_run: &StageOfRun) -> Result<(), RunError> {
    let stage = of_run.stage();
    if of_run.is_given_up() {
        let reason = "an earlier turn of its loop failed, and those that wait are given up";
        return skip(runs, of_run, reason).await;
    }
    let reason = match gate(stage, &of_run.earlier()) {
        Gate::Run => return Ok(()),
        Gate::Skip(reason) => reason,
        Gate::Condition(condition) => match condition_holds(runs, of_run, condition).await? {
            Ok(true) => return Ok(()),
            Ok(false) => format!("its condition is false: {condition}"),
            Err(message) => {
                let failure = Failure {
                    error: ErrorType::Unknown,
                    message: format!("The condition of stage {}: {message}", stage.identifier),
                    left_behind: None,
                };
                return end_unbegun(runs, of_run, Status::Errored, failure).await;
            }
        },
    };
    skip(runs, of_run, &reason).await
}

/// Records that a stage does not run.
pub(crate) async fn skip(runs: &Runs, of_run: &StageOfRun, reason: &str) -> Result<(), RunError> {
    let now = Some(runs.clock.now_ms());
    let summary = StageSummary {
        status: Status::Skipped,
        started_ms: now,
        ended_ms: now,
        failure: None,
        ..not_started(of_run.stage())
    };
    runs.put_stage(&of_run.run.id, &summary).await?;
    tell_barriers(runs, of_run, 0).await?;
    Err(skipped(reason))
}

async fn condition_holds(
    runs: &Runs,
    of_run: &StageOfRun,
    condition: &str,
) -> Result<Result<bool, String>, RunError> {
    let nodes = runs.nodes(&of_run.run.id, None).await?;
    let context = RunContext {
        plan: &of_run.plan,
        run: &of_run.run,
        nodes: &nodes,
        stage: Some(of_run.stage()),
        node: None,
    };
    let holds = slipway_expr::condition(condition, &context, &Limits::default());
    Ok(holds.map_err(|error| error.full_text()))
}

async fn check_time(runs: &Runs, of_run: &StageOfRun) -> Result<(), RunError> {
    if runs.clock.now_ms() < of_run.deadline_ms() {
        return Ok(());
    }
    let failure = Failure {
        error: ErrorType::Timeout,
        message: format!(
            "The time of the run was up before stage {} could begin.",
            of_run.stage().identifier
        ),
        left_behind: None,
    };
    end_unbegun(runs, of_run, Status::Expired, failure).await
}

/// Ends a deployment stage that a freeze holds back. What runs when a freeze begins finishes.
async fn check_freeze(runs: &Runs, of_run: &StageOfRun) -> Result<(), RunError> {
    let (plan, stage) = (&of_run.plan, of_run.stage());
    if !freeze::concerns(stage) {
        return Ok(());
    }
    let freezes = Freezes::of(runs, &plan.scope).await?;
    match freezes.hold(plan, stage, runs.clock.now()) {
        Some(failure) => {
            // Before it is recorded: nobody comes back to it.
            let (run, now) = (&of_run.run.id, runs.clock.now());
            let notices = freezes.notices(run, plan, stage, now);
            runs.start_notices(notices).await;
            end_unbegun(runs, of_run, Status::AbortedByFreeze, failure).await
        }
        None => Ok(()),
    }
}

/// Records that a stage ended before it began.
pub(crate) async fn end_unbegun(
    runs: &Runs,
    of_run: &StageOfRun,
    status: Status,
    failure: Failure,
) -> Result<(), RunError> {
    let now = Some(runs.clock.now_ms());
    let message = failure.message.clone();
    let summary = StageSummary {
        status,
        started_ms: now,
        ended_ms: now,
        failure: Some(failure),
        ..not_started(of_run.stage())
    };
    runs.put_stage(&of_run.run.id, &summary).await?;
    Err(RunError::refused(ErrorName::RunFailed, message))
}

/// Takes the queues again that the run holds since the run that it goes on from, if it is its turn.
async fn take_queues(runs: &Runs, of_run: &StageOfRun, attempt: u32) -> Result<(), RunError> {
    let stage = &of_run.stage().id;
    match queue::take_over(runs, &of_run.run, &of_run.plan).await? {
        None => forget(runs, of_run, attempt, QUEUE).await,
        Some(key) => Err(RunError::refused(
            ErrorName::InfrastructureBusy,
            format!("stage {stage} waits for the queue {key}, which its run holds to its end"),
        )),
    }
}

/// Takes the infrastructure if it is free; a wait that led here is over then.
pub(crate) async fn take_infrastructure(
    runs: &Runs,
    of_run: &StageOfRun,
    attempt: u32,
) -> Result<(), RunError> {
    let Some(key) = infrastructure_key(&of_run.plan, of_run.stage()) else {
        return Ok(());
    };
    let (run, stage) = (&of_run.run.id, &of_run.stage().id);
    let hold = runs
        .store
        .hold(&key, &holder(run, stage, attempt), None)
        .await;
    let hold = hold.doing(|| format!("take the infrastructure {key} for stage {stage}"))?;
    match hold {
        Turn::Held => forget(runs, of_run, attempt, RESOURCE).await,
        Turn::Waiting(position) => Err(RunError::refused(
            ErrorName::InfrastructureBusy,
            format!("stage {stage} is number {position} in the line for {key}"),
        )),
    }
}

/// Removes a wait of the stage, if there may be one: a stage that has ended may have waited to its end.
pub(crate) async fn forget(
    runs: &Runs,
    of_run: &StageOfRun,
    attempt: u32,
    kind: &str,
) -> Result<(), RunError> {
    let summary = of_run.summary();
    let never_waits = matches!(summary.status, Status::NotStarted | Status::Running);
    if never_waits && summary.undo.is_none() {
        return Ok(());
    }
    let (run, stage) = (&of_run.run.id, &of_run.stage().id);
    let taken = runs
        .store
        .take_wait(run, &stage_node(stage), attempt, kind)
        .await;
    taken
        .doing(|| format!("end the wait of stage {stage}"))
        .map(drop)
}

/// Puts a stage into the line for its infrastructure, or for a queue that its run holds, to be woken by `token`. If
/// it is its turn by now, or the run is being aborted, the token is completed at once.
pub async fn stage_hold(
    runs: &Runs,
    run: &RunId,
    stage: &StageId,
    attempt: u32,
    token: &str,
) -> Result<(), RunError> {
    let of_run = runs.load_stage(run, stage).await?;
    let queue = queue::take_over(runs, &of_run.run, &of_run.plan).await?;
    let infrastructure = infrastructure_key(&of_run.plan, of_run.stage());
    let (kind, key) = match (&queue, &infrastructure) {
        (Some(queue), _) => (QUEUE, queue),
        (None, Some(key)) => (RESOURCE, key),
        (None, None) => return complete(runs, token).await,
    };
    let wait = WaitRecord {
        run: run.clone(),
        node: stage_node(stage),
        attempt,
        kind: kind.to_owned(),
        token: Some(token.to_owned()),
        task: None,
    };
    let put = runs.store.put_wait(&wait).await;
    put.doing(|| format!("record that stage {stage} waits for {key}"))?;
    // One that is rolled back with its run has ended before, and stays so.
    if !of_run.summary().status.is_final() {
        let waiting = StageSummary {
            status: Status::ResourceWaiting,
            ..not_started(of_run.stage())
        };
        runs.put_stage(run, &waiting).await?;
    }
    let held = match kind {
        // Whoever gives it back before this wakes nobody.
        QUEUE => queue::take_over(runs, &of_run.run, &of_run.plan)
            .await?
            .is_none(),
        _ => {
            let holder = holder(run, stage, attempt);
            let turn = runs.store.hold(key, &holder, Some(token)).await;
            turn.doing(|| format!("wait for the infrastructure {key}"))? == Turn::Held
        }
    };
    // Read after the wait was recorded: an abort either sees the wait, or is seen here.
    let record = runs.run(run).await?;
    if held || record.abort.is_some() || stage_word::is_called(&record, &wait) {
        complete(runs, token).await?;
    }
    Ok(())
}

/// Gives the infrastructure of a stage back and wakes the next in line. Repeating it changes nothing.
pub(crate) async fn release_infrastructure(
    runs: &Runs,
    of_run: &StageOfRun,
    attempt: u32,
) -> Result<(), RunError> {
    forget(runs, of_run, attempt, by_hand::START).await?;
    forget(runs, of_run, attempt, QUEUE).await?;
    let Some(key) = infrastructure_key(&of_run.plan, of_run.stage()) else {
        return Ok(());
    };
    forget(runs, of_run, attempt, RESOURCE).await?;
    let holder = holder(&of_run.run.id, &of_run.stage().id, attempt);
    let next = runs.store.release(&key, &holder).await;
    let next = next.doing(|| format!("give back the infrastructure {key}"))?;
    for token in &next {
        complete(runs, token).await?;
    }
    Ok(())
}

/// Completes a task token. One that was completed before, or whose wait timed out, is as good.
pub async fn complete(runs: &Runs, token: &str) -> Result<(), RunError> {
    let call = runs.workflows.send_task_success().task_token(token);
    match Box::pin(call.output("{}").send()).await {
        Ok(_) => Ok(()),
        Err(error) => match error.as_service_error() {
            Some(e)
                if e.is_task_timed_out() || e.is_task_does_not_exist() || e.is_invalid_token() =>
            {
                Ok(())
            }
            _ => Err(error).doing(|| "complete a wait".to_owned()),
        },
    }
}

/// What only one stage may deploy to at a time. `None` for stages that may run beside others.
pub(crate) fn infrastructure_key(plan: &Plan, stage: &StagePlan) -> Option<String> {
    let scope = &plan.scope;
    let of_scope = [
        scope.account.as_str(),
        scope.org.as_ref().map_or("-", |id| id.as_str()),
        scope.project.as_ref().map_or("-", |id| id.as_str()),
    ];
    let target = stage.deploys_alone_to()?;
    let parts: Vec<&str> = of_scope.into_iter().chain(target).collect();
    Some(parts.join("/"))
}

fn holder(run: &RunId, stage: &StageId, attempt: u32) -> Holder {
    Holder {
        run: run.clone(),
        stage: stage.clone(),
        attempt,
    }
}

/// The wait of a stage is recorded under this name.
pub(crate) fn stage_node(stage: &StageId) -> NodeId {
    NodeId::new(format!("stages.{stage}"))
}

pub(crate) fn skipped(reason: &str) -> RunError {
    RunError::refused(ErrorName::StageSkipped, reason)
}
