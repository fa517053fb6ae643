//! What people say about one stage of a run: abort it, mark it as failed, let it expire, roll it back.
//!
//! An abort stops what runs in the stage and rolls nothing back; stages beside it go on, those after it do not begin, and
//! the run ends as `Aborted` (developer.harness.io, *Abort a pipeline, stage, or step*). A stage that is marked as failed
//! stops what runs in it, and its failure strategies decide what follows; so does one that waits for its infrastructure or
//! for somebody to start it (*Mark stage as failed*, *Mark pipeline as failed*).
//!
//! An abort is a word about the stage, heard by whatever of it looks at the run next. The other words are about the
//! attempts of steps that are open when they are said, and about the stage itself only while that waits to begin: what is
//! said of steps that run is not kept for later ones.

use std::collections::BTreeMap;

use slipway_model::id::{NodeId, PrincipalId, RunId, StageId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::{Node, Plan, StagePlan};
use slipway_store::record::{NodeRecord, RunRecord, SignalRecord, StageSummary, WaitRecord};

use crate::abort::{FAILURE_STRATEGY, abort_run};
use crate::awaited;
use crate::begin::stage_node;
use crate::error::RunError;
use crate::error_name::ErrorName;
use crate::lane::{Awaited, awaited_retries, is_rollback};
use crate::rollback;
use crate::runs::{Runs, StageOfRun, fact, not_started, summary};
use crate::signal::{ANSWER, STOP, asks, nothing_runs, runs_now};
use crate::stage::unbegun;

/// Kind of the signal that a stage is aborted. Its attempt says which part of the stage: see [`Part`].
pub(crate) const ABORT: &str = "abort-stage";

/// Kind of the signal about a stage that waits to begin; says what a signal about a step says.
pub(crate) const GIVE_UP: &str = "give-up-stage";

/// What is said about a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageWord {
    /// It stops, and nothing of it is rolled back.
    Abort,
    /// What runs in it has failed.
    MarkAsFailed,
    /// What runs in it is out of time.
    Expire,
    /// What runs in it has failed, and the stage is rolled back whatever its failure strategies say.
    RollBack,
}

impl StageWord {
    /// What a signal about a step says.
    fn of_steps(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::MarkAsFailed => "fail",
            Self::Expire => "expire",
            Self::RollBack => "rollback",
        }
    }
}

/// What of a stage a word is about: a stage that has ended may be rolled back later, with its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Its steps, and its own rollback.
    Own,
    /// Its rollback with its run.
    WithRun,
}

impl Part {
    fn number(self) -> u32 {
        match self {
            Self::Own => 0,
            Self::WithRun => rollback::ATTEMPT,
        }
    }
}

/// Node, attempt, kind, and what is said.
pub(crate) type Said = (NodeId, u32, String, String);

/// Who aborted a part of a stage, if somebody did.
pub(crate) fn aborted_by<'r>(
    run: &'r RunRecord,
    stage: &StageId,
    part: Part,
) -> Option<&'r PrincipalId> {
    let node = stage_node(stage);
    let mut signals = run.signals.iter();
    let found = signals.find(|signal| {
        signal.kind == ABORT && signal.attempt == part.number() && signal.node == node
    });
    found.map(|signal| &signal.who)
}

/// Whether something was said for which a stage that waits must look again: it is aborted, or given up. What was said of
/// the stage itself does not end a wait of its rollback with the run, whose attempt is [`Part::WithRun`]'s.
pub(crate) fn is_called(run: &RunRecord, wait: &WaitRecord) -> bool {
    let mut signals = run.signals.iter();
    signals.any(|signal| {
        let about = signal.node == wait.node && signal.attempt == wait.attempt;
        about && matches!(&*signal.kind, ABORT | GIVE_UP)
    })
}

/// Whether an open node belongs to a stage that was aborted, in the part of it that goes on now.
pub(crate) fn is_in_aborted(run: &RunRecord, node: &NodeId) -> bool {
    let mut stages = run.stages.iter();
    stages.any(|stage| {
        let own = stage_node(&stage.id);
        let below = node.as_str().strip_prefix(own.as_str());
        let part = match stage.undo {
            Some(_) => Part::WithRun,
            None => Part::Own,
        };
        below.is_some_and(|rest| rest.starts_with('.'))
            && aborted_by(run, &stage.id, part).is_some()
    })
}

/// Why a stage does not begin, where a person aborted it, or one before it.
pub(crate) fn barred(of_run: &StageOfRun) -> Option<String> {
    let (run, stage) = (&of_run.run, &of_run.stage().id);
    if let Some(who) = aborted_by(run, stage, Part::Own) {
        return Some(format!("it was aborted by {who} before it began"));
    }
    of_run.earlier().iter().find_map(|earlier| {
        let who = aborted_by(run, &earlier.id, Part::Own)?;
        let was_aborted = earlier.status == Status::Aborted;
        was_aborted.then(|| format!("stage {} was aborted by {who} before it", earlier.id))
    })
}

/// Ends a stage that waited to begin, where somebody said that it has failed.
///
/// # Errors
/// That the stage has ended, where it did.
pub(crate) async fn check_given_up(runs: &Runs, of_run: &StageOfRun) -> Result<(), RunError> {
    let node = stage_node(&of_run.stage().id);
    let mut signals = of_run.run.signals.iter();
    let Some(word) = signals.find(|signal| signal.kind == GIVE_UP && signal.node == node) else {
        return Ok(());
    };
    let (stage, who) = (&of_run.stage().identifier, &word.who);
    let (error, status, how) = match word.says.as_str() {
        "expire" => (ErrorType::Timeout, Status::Expired, "made to expire"),
        _ => (
            ErrorType::UserMarkedFailure,
            Status::Failed,
            "marked as failed",
        ),
    };
    let message = format!("Stage {stage} was {how} by {who} before it began.");
    end_unbegun_by_strategy(runs, of_run, (error, status), message).await
}

/// As [`check_given_up`], for a stage that has just been recorded as begun: a word that was said meanwhile is either
/// seen here, or its author sees that the stage has begun.
///
/// # Errors
/// As [`check_given_up`].
pub(crate) async fn check_again(runs: &Runs, of_run: &StageOfRun) -> Result<(), RunError> {
    let mut now = of_run.clone();
    now.run = runs.run(&of_run.run.id).await?;
    check_given_up(runs, &now).await
}

/// Ends a stage that never began with a failure, as its own failure strategies say. Nobody is asked, and nothing is tried
/// again.
///
/// # Errors
/// Always: that the run was aborted, or that the stage has ended.
pub(crate) async fn end_unbegun_by_strategy(
    runs: &Runs,
    of_run: &StageOfRun,
    (error, failed): (ErrorType, Status),
    message: String,
) -> Result<(), RunError> {
    let (run, stage) = (&of_run.run.id, of_run.stage());
    let now_ms = runs.clock.now_ms();
    let (status, undoes_run) = unbegun(stage, error, failed, now_ms);
    if status == Status::Aborted {
        abort_run(runs, run, &PrincipalId::new(FAILURE_STRATEGY)).await?;
        let message = format!("{message} Its failure strategy aborts the run.");
        return Err(RunError::refused(ErrorName::RunAborted, message));
    }
    let summary = StageSummary {
        status,
        started_ms: Some(now_ms),
        ended_ms: Some(now_ms),
        failure: (status != Status::Success).then(|| Failure {
            error,
            message: message.clone(),
            left_behind: None,
        }),
        undoes_run,
        ..not_started(stage)
    };
    runs.put_stage(run, &summary).await?;
    Err(RunError::refused(ErrorName::RunFailed, message))
}

/// What a word about one stage comes to.
///
/// # Errors
/// `NotFound` where the run has no such stage, `Conflict` where the word does not fit it now.
pub(crate) async fn about_stage(
    runs: &Runs,
    run: &RunId,
    stage: &StageId,
    word: StageWord,
) -> Result<Vec<Said>, RunError> {
    let (record, plan) = runs.load(run).await?;
    let planned = find(&record, &plan, stage)?;
    let known = summary(&record.stages, planned);
    let part = part_of(run, &known)?;
    if word == StageWord::Abort {
        let node = stage_node(stage);
        let says = word.of_steps().to_owned();
        return Ok(vec![(node, part.number(), ABORT.to_owned(), says)]);
    }
    let said = open_in(runs, &record, planned, &known, word).await?;
    if !said.is_empty() {
        return Ok(said);
    }
    if word == StageWord::RollBack {
        let message = format!(
            "nothing runs in stage {stage} that could be stopped to roll it back; mark it as failed \
             (`slipway fail {run} --stage {stage}`) or abort it (`slipway abort {run} --stage {stage}`)"
        );
        return Err(conflict(message));
    }
    let nodes = runs.nodes(run, Some(stage)).await?;
    let own = nodes.values().filter(|node| node.stage == *stage);
    Err(nothing_runs(run, own, &[]))
}

/// What a word about every stage comes to that has begun and not ended. What is said of the run as a whole is about the
/// steps that run, and about stages that wait for their turn; a rollback is about its stages.
///
/// # Errors
/// `Conflict` where there is nothing that it could be about.
pub(crate) async fn about_all(
    runs: &Runs,
    run: &RunId,
    word: StageWord,
) -> Result<Vec<Said>, RunError> {
    let nodes = runs.nodes(run, None).await?;
    let mut said = Vec::new();
    if word != StageWord::RollBack {
        let open = nodes.values().filter(|node| runs_now(node));
        said.extend(open.filter_map(|node| of_node(node, word)));
    }
    let (record, plan) = runs.load(run).await?;
    for stage in plan.groups.iter().flatten() {
        let known = summary(&record.stages, stage);
        let has_begun = part_of(run, &known).is_ok();
        if has_begun && (word == StageWord::RollBack || waits(&known)) {
            said.extend(open_in(runs, &record, stage, &known, word).await?);
        }
    }
    match said.is_empty() {
        true => {
            let awaited = awaited::of_run(&record, &plan, &nodes, runs.clock.now_ms());
            Err(nothing_runs(run, nodes.values(), &awaited))
        }
        false => Ok(said),
    }
}

/// What is left to say of stages that waited to begin, after a word about them was recorded: one may have begun while it
/// was, and then the word is about its steps.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn overtaken(
    runs: &Runs,
    run: &RunId,
    said: &[Said],
) -> Result<Vec<Said>, RunError> {
    let waited = said.iter().filter(|(.., kind, _)| kind == GIVE_UP);
    let waited: Vec<_> = waited.collect();
    let mut more = Vec::new();
    if waited.is_empty() {
        return Ok(more);
    }
    let (record, plan) = runs.load(run).await?;
    for (node, _, _, says) in waited {
        let mut stages = plan.groups.iter().flatten();
        let Some(stage) = stages.find(|stage| stage_node(&stage.id) == *node) else {
            continue;
        };
        let known = summary(&record.stages, stage);
        let word = match says.as_str() {
            "expire" => StageWord::Expire,
            _ => StageWord::MarkAsFailed,
        };
        if known.status == Status::Running {
            more.extend(open_in(runs, &record, stage, &known, word).await?);
        }
    }
    Ok(more)
}

/// Whether a stage waits to begin.
fn waits(known: &StageSummary) -> bool {
    !known.status.is_final() && known.status != Status::Running
}

/// What is said about the steps of a stage that are open, or about the stage while it waits to begin.
async fn open_in(
    runs: &Runs,
    run: &RunRecord,
    stage: &StagePlan,
    known: &StageSummary,
    word: StageWord,
) -> Result<Vec<Said>, RunError> {
    let says = word.of_steps();
    if waits(known) {
        let said = (
            stage_node(&stage.id),
            0,
            GIVE_UP.to_owned(),
            says.to_owned(),
        );
        let may = word != StageWord::RollBack;
        return Ok(may.then_some(said).into_iter().collect());
    }
    let nodes = runs.nodes(&run.id, Some(&stage.id)).await?;
    // A rollback is not rolled back.
    let spared = |node: &NodeId| word == StageWord::RollBack && is_rollback(stage, node);
    let mut said: Vec<Said> = nodes
        .values()
        .filter(|node| node.stage == stage.id && !spared(&node.id))
        .filter_map(|node| of_node(node, word))
        .collect();
    let again = retries(stage, &nodes, runs.clock.now_ms(), says);
    said.extend(again.filter(|(node, ..)| !spared(node)));
    Ok(said)
}

/// What is said about a node that is open.
fn of_node(node: &NodeRecord, word: StageWord) -> Option<Said> {
    let (id, attempt) = (node.id.clone(), node.attempt);
    let said = |kind: &str, says: &str| (id, attempt, kind.to_owned(), says.to_owned());
    if runs_now(node) {
        return Some(said(STOP, word.of_steps()));
    }
    match word {
        _ if !asks(node) => None,
        StageWord::MarkAsFailed => Some(said(ANSWER, "MarkAsFailure")),
        StageWord::RollBack => Some(said(ANSWER, "StageRollback")),
        // A question that nobody answers has a time of its own.
        StageWord::Expire | StageWord::Abort => None,
    }
}

/// Steps and step groups that wait for their next attempt: that is stopped before it does anything.
fn retries(
    stage: &StagePlan,
    nodes: &BTreeMap<NodeId, NodeRecord>,
    now_ms: i64,
    says: &'static str,
) -> impl Iterator<Item = Said> {
    let nodes = nodes.iter();
    let facts = nodes.map(|(id, node)| (id.clone(), fact(node))).collect();
    let next = awaited_retries(stage, facts, now_ms).into_iter();
    next.map(|next| (next.node, next.attempt, STOP.to_owned(), says.to_owned()))
}

/// The stage that a word names.
fn find<'p>(
    record: &RunRecord,
    plan: &'p Plan,
    stage: &StageId,
) -> Result<&'p StagePlan, RunError> {
    let all = || plan.groups.iter().flatten();
    all().find(|known| known.id == *stage).ok_or_else(|| {
        let names: Vec<_> = all().map(|stage| stage.id.as_str()).collect();
        let message = format!(
            "run {} has no stage {stage}; it has {}",
            record.id,
            names.join(", ")
        );
        RunError::refused(ErrorName::NotFound, message)
    })
}

/// The part of a stage that goes on now.
pub(crate) fn part_of(run: &RunId, known: &StageSummary) -> Result<Part, RunError> {
    let undone = known.undo.as_ref().map(|undo| undo.status);
    match (known.status, undone) {
        (Status::NotStarted, _) => Err(conflict(format!(
            "stage {} has not begun; `slipway abort {run}` stops the whole run",
            known.id
        ))),
        (status, Some(undo)) if status.is_final() && !undo.is_final() => Ok(Part::WithRun),
        (status, _) if status.is_final() => Err(conflict(format!(
            "stage {} has ended: {status:?}",
            known.id
        ))),
        _ => Ok(Part::Own),
    }
}

/// The open nodes below a step group or parallel block, and those that wait for their next attempt, as a word about that
/// one is about them: each with the attempt.
pub(crate) fn open_below(
    plan: &Plan,
    nodes: &BTreeMap<NodeId, NodeRecord>,
    awaited: &[Awaited],
    id: &NodeId,
) -> Vec<(NodeId, u32)> {
    let mut stages = plan.groups.iter().flatten();
    let Some(container) = stages.find_map(|stage| {
        let sections = [&stage.steps, &stage.rollback_steps];
        sections.into_iter().find_map(|nodes| node(nodes, id))
    }) else {
        return Vec::new();
    };
    let inside = |id: &NodeId| crate::lane::contains(std::slice::from_ref(container), id);
    let open = nodes.values().filter(|node| runs_now(node));
    let open = open.map(|node| (node.id.clone(), node.attempt));
    let again = awaited.iter();
    let again = again.map(|next| (next.node.clone(), next.attempt));
    open.chain(again).filter(|(id, _)| inside(id)).collect()
}

fn node<'p>(nodes: &'p [Node], id: &NodeId) -> Option<&'p Node> {
    nodes.iter().find_map(|known| {
        if crate::lane::node_id(known) == id {
            return Some(known);
        }
        let below = node(crate::lane::children(known), id);
        below.or_else(|| node(crate::lane::undoing(known), id))
    })
}

/// Signals of what was said.
pub(crate) fn signal(run: &RunId, who: &PrincipalId, at_ms: i64, said: Said) -> SignalRecord {
    let (node, attempt, kind, says) = said;
    SignalRecord {
        run: run.clone(),
        node,
        attempt,
        kind,
        says,
        who: who.clone(),
        at_ms,
    }
}

fn conflict(message: String) -> RunError {
    RunError::refused(ErrorName::Conflict, message)
}
