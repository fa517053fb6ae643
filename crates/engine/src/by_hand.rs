//! Stages that somebody must start: `runMode: Manual` (developer.harness.io, *Run stages manually*).
//!
//! Such a stage waits, as `InputWaiting`, when its condition holds and before it takes its infrastructure: what others
//! deploy meanwhile is not held up. What it asks for is given before it can be started. Its own time begins when it is started. Where nobody starts it in time, the stage's
//! failure strategies answer that.

use serde::Serialize;
use serde_json::{Map, Value};
use slipway_model::id::{NodeId, PrincipalId, RunId, StageId};
use slipway_model::status::{ErrorType, Status};
use slipway_plan::{Node, Plan, STAGE_INPUTS, StagePlan, StepPlan};
use slipway_store::StoreError;
use slipway_store::record::{RunRecord, SignalRecord, StageSummary, WaitRecord};

use crate::begin::{complete, forget, stage_node};
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::execution_input;
use crate::lane::{children, undoing};
use crate::runs::{Runs, StageOfRun, not_started};
use crate::stage_word::{end_unbegun_by_strategy, is_called};

/// Kind of the wait for somebody to start a stage, and of the signal that somebody did.
pub(crate) const START: &str = "start";

/// Kind of the signal that notes when a stage began to wait: not said by a person.
const ASKED: &str = "asked-start";

/// Longest wait at a time, in seconds: half of the time limit of the stage's machine.
const LONGEST: i64 = 1_500_000;

/// Answer of `TimeToStart`: how long the machine waits for somebody to start the stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TimeToStart {
    /// The run.
    pub run_id: RunId,
    /// The stage.
    pub stage_id: StageId,
    /// Which attempt of it.
    pub attempt: u32,
    /// At least 1.
    pub seconds: i64,
}

/// Lets a stage go on that need not be started by anybody, or that somebody has started.
///
/// # Errors
/// `StageNotStarted` while it is waited for; that the stage has ended, where that took too long.
pub(crate) async fn check_started(
    runs: &Runs,
    of_run: &StageOfRun,
    attempt: u32,
) -> Result<(), RunError> {
    let stage = of_run.stage();
    if stage.start_within.is_none() {
        return Ok(());
    }
    if is_started(&of_run.run, &stage_node(&stage.id)) {
        return forget(runs, of_run, attempt, START).await;
    }
    match deadline_ms(&of_run.run, stage) {
        Some(deadline) if runs.clock.now_ms() >= deadline => {
            forget(runs, of_run, attempt, START).await?;
            give_up(runs, of_run).await
        }
        _ => Err(RunError::refused(
            ErrorName::StageNotStarted,
            format!("stage {} waits until somebody starts it", stage.id),
        )),
    }
}

/// Whether somebody started a stage.
pub(crate) fn is_started(run: &RunRecord, stage: &NodeId) -> bool {
    said(run, stage, START).is_some()
}

fn said<'r>(run: &'r RunRecord, stage: &NodeId, kind: &str) -> Option<&'r SignalRecord> {
    let mut signals = run.signals.iter();
    signals.find(|signal| signal.kind == kind && signal.node == *stage)
}

/// When a stage that waits is out of time, in epoch milliseconds; `None` before it waits.
fn deadline_ms(run: &RunRecord, stage: &StagePlan) -> Option<i64> {
    let asked = said(run, &stage_node(&stage.id), ASKED)?;
    let limit = stage.start_within?.saturating_mul(1_000);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Some(asked.at_ms.saturating_add(limit))
}

/// Ends a stage that nobody started, as its failure strategies say.
async fn give_up(runs: &Runs, of_run: &StageOfRun) -> Result<(), RunError> {
    let stage = of_run.stage();
    let limit = std::time::Duration::from_secs(stage.start_within.unwrap_or_default());
    let message = format!(
        "Nobody started stage {} within {}.",
        stage.identifier,
        slipway_model::duration::shown(limit)
    );
    let failed = (ErrorType::Timeout, Status::Expired);
    end_unbegun_by_strategy(runs, of_run, failed, message).await
}

/// Notes that a stage waits for somebody to start it, the first time, and tells for how long it may still.
///
/// # Errors
/// When the store cannot be reached.
pub async fn time_to_start(
    runs: &Runs,
    run: &RunId,
    stage: &StageId,
    attempt: u32,
) -> Result<TimeToStart, RunError> {
    let signal = SignalRecord {
        run: run.clone(),
        node: stage_node(stage),
        attempt: 0,
        kind: ASKED.to_owned(),
        says: String::new(),
        who: PrincipalId::new("slipway"),
        at_ms: runs.clock.now_ms(),
    };
    match runs.store.put_signal(&signal).await {
        Ok(()) | Err(StoreError::AlreadyExists { .. }) => {}
        Err(error) => Err(error).doing(|| format!("note that stage {stage} waits"))?,
    }
    let of_run = runs.load_stage(run, stage).await?;
    if !of_run.summary().status.is_final() {
        let waiting = StageSummary {
            status: Status::InputWaiting,
            ..not_started(of_run.stage())
        };
        runs.put_stage(run, &waiting).await?;
    }
    let now_ms = runs.clock.now_ms();
    let until_ms = deadline_ms(&of_run.run, of_run.stage()).unwrap_or(now_ms);
    let left = until_ms.min(of_run.deadline_ms()).saturating_sub(now_ms);
    Ok(TimeToStart {
        run_id: run.clone(),
        stage_id: stage.clone(),
        attempt,
        // A part of a second counts as one, so that it is over then.
        seconds: left.saturating_add(999).div_euclid(1_000).clamp(1, LONGEST),
    })
}

/// Waits for somebody to start a stage, who completes `token`. Where somebody has, or the run is being aborted, it is
/// completed at once.
///
/// # Errors
/// When the store or Step Functions cannot be reached.
pub async fn await_start(
    runs: &Runs,
    run: &RunId,
    stage: &StageId,
    attempt: u32,
    token: &str,
) -> Result<(), RunError> {
    let wait = WaitRecord {
        run: run.clone(),
        node: stage_node(stage),
        attempt,
        kind: START.to_owned(),
        token: Some(token.to_owned()),
        task: None,
    };
    let put = runs.store.put_wait(&wait).await;
    put.doing(|| format!("record that stage {stage} waits for somebody to start it"))?;
    // Read after the wait was recorded: whoever starts or aborts either sees the wait, or is seen here.
    let record = runs.run(run).await?;
    if record.abort.is_some() || is_started(&record, &wait.node) || is_called(&record, &wait) {
        complete(runs, token).await?;
    }
    Ok(())
}

/// The step that asks for the inputs of a stage, where there is one.
fn question(stage: &StagePlan) -> Option<&StepPlan> {
    first_question(&stage.steps)
}

fn first_question(nodes: &[Node]) -> Option<&StepPlan> {
    match nodes.first() {
        Some(Node::Step(step)) if step.step_type == STAGE_INPUTS => Some(step),
        _ => None,
    }
}

/// Whether a stage waits to be started.
fn waits(record: &RunRecord, stage: &StagePlan) -> bool {
    let mut known = record.stages.iter();
    let known = known.find(|known| known.id == stage.id);
    stage.start_within.is_some() && known.is_some_and(|it| it.status == Status::InputWaiting)
}

/// The step that asks for the inputs of a stage that waits to be started, by its own name or that of the stage: its inputs
/// are given before the stage begins.
pub fn asks_before_start(plan: &Plan, record: &RunRecord, name: &str) -> Option<NodeId> {
    let stages = plan.groups.iter().flatten();
    let mut waiting = stages.filter(|stage| waits(record, stage));
    waiting.find_map(|stage| {
        let step = question(stage)?;
        (stage.id.as_str() == name || step.id.as_str() == name).then(|| step.id.clone())
    })
}

/// The step that asks for the inputs of a stage or step group, by the name of that: nobody has written the step, and so
/// nobody knows it. `None` where none or several have the name.
pub fn asks_for(plan: &Plan, name: &str) -> Option<NodeId> {
    fn search<'p>(nodes: &'p [Node], name: &str, found: &mut Vec<&'p StepPlan>) {
        for node in nodes {
            if let Node::Group(group) = node
                && (group.id.as_str() == name || group.identifier.as_str() == name)
            {
                found.extend(first_question(&group.nodes));
            }
            search(children(node), name, found);
            search(undoing(node), name, found);
        }
    }
    let mut found = Vec::new();
    for stage in plan.groups.iter().flatten() {
        if stage.id.as_str() == name {
            found.extend(question(stage));
        }
        search(&stage.steps, name, &mut found);
        search(&stage.rollback_steps, name, &mut found);
    }
    match found.as_slice() {
        [step] => Some(step.id.clone()),
        _ => None,
    }
}

/// What starts a stage: the defaults of the inputs that it asks for where nobody has given them, and the word itself; each
/// with the node that it is about, its kind and what it says.
///
/// # Errors
/// `NotFound` where the run has no such stage, `Conflict` where it does not wait for that, or asks for inputs first
/// (developer.harness.io, *Run stages manually*, "Handling inputs during Manual Execution").
pub(crate) async fn starting(
    runs: &Runs,
    record: &RunRecord,
    stage: &StageId,
) -> Result<Vec<(NodeId, &'static str, String)>, RunError> {
    let (_, plan) = runs.load(&record.id).await?;
    let by_hand = |stage: &&StagePlan| stage.start_within.is_some();
    let all: Vec<_> = plan.groups.iter().flatten().filter(by_hand).collect();
    let Some(planned) = all.iter().find(|known| known.id == *stage) else {
        let names: Vec<_> = all.iter().map(|stage| stage.id.as_str()).collect();
        let others = match names.is_empty() {
            true => "it has none".to_owned(),
            false => format!("they are {}", names.join(", ")),
        };
        let message = format!(
            "run {} has no stage {stage} with `runMode` Manual; {others}",
            record.id
        );
        return Err(RunError::refused(ErrorName::NotFound, message));
    };
    if !waits(record, planned) {
        let summary = record.stages.iter().find(|known| known.id == *stage);
        let status = summary.map_or(Status::NotStarted, |summary| summary.status);
        let message = format!("stage {stage} is {status:?} and does not wait to be started");
        return Err(RunError::refused(ErrorName::Conflict, message));
    }
    let mut said = Vec::new();
    if let Some(step) = question(planned)
        && execution_input::given(record, &step.id, 0).is_none()
    {
        let asked = execution_input::asked(&step.spec);
        let defaults = execution_input::complete(&asked, &Map::new()).map_err(|faults| {
            let message = format!(
                "stage {stage} asks for inputs before it can be started: {}; give them with `slipway input {} {stage}`, \
                 and then start it",
                faults.join("; "),
                record.id
            );
            RunError::refused(ErrorName::Conflict, message)
        })?;
        let defaults = Value::Object(defaults).to_string();
        said.push((step.id.clone(), execution_input::INPUT, defaults));
    }
    said.push((stage_node(stage), START, String::new()));
    Ok(said)
}
