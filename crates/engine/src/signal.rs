//! What people say about a run while it goes on: recorded first, then what waits is woken to read it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use slipway_model::id::{NodeId, PrincipalId, RunId, StageId};
use slipway_model::status::Status;
use slipway_plan::{Node, Plan, StagePlan};
use slipway_store::StoreError;
use slipway_store::record::{NodeRecord, RunRecord, SignalRecord};

use crate::awaited;
use crate::by_hand;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::execution_input;
use crate::lane::{Awaited, StopReason, Stopped, contains, is_rollback};
use crate::notify::Event;
use crate::runs::Runs;
use crate::stage_word::{self, Said, StageWord, about_all, about_stage};
use crate::strategy::{self, Answer};
use crate::wake::wake;

/// Kind of the signal with which a step warns whoever looks at the run; further warnings of a step, and notices that nobody
/// got, add which after a colon.
pub const WARNING: &str = "warning";

/// What steps of a run have warned of, and notices that nobody got, oldest first.
pub fn warnings(run: &RunRecord) -> Vec<&SignalRecord> {
    let all = run.signals.iter();
    let of_kind = |signal: &&SignalRecord| {
        let rest = signal.kind.strip_prefix(WARNING);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    let mut warnings: Vec<_> = all.filter(of_kind).collect();
    warnings.sort_by_key(|signal| signal.at_ms);
    let mut told = BTreeSet::new();
    warnings.retain(|signal| told.insert((&signal.node, signal.attempt, &signal.says)));
    warnings
}

/// Notes in a run what whoever looks at it shall know, once for each thing that it is `about`: of a node, or of the whole run
/// with an empty `node`.
///
/// # Errors
/// When the store cannot be written.
pub async fn warn(
    runs: &Runs,
    run: &RunId,
    node: NodeId,
    about: &str,
    says: String,
) -> Result<(), RunError> {
    let signal = SignalRecord {
        run: run.clone(),
        node,
        attempt: 0,
        kind: format!("{WARNING}:{about}"),
        says,
        who: PrincipalId::new("slipway"),
        at_ms: runs.clock.now_ms(),
    };
    match runs.store.put_signal(&signal).await {
        Ok(()) | Err(StoreError::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error).doing(|| format!("note in run {run} what it warns of")),
    }
}

/// An answer to a failure that asked for one (`ManualIntervention`).
pub(crate) const ANSWER: &str = "answer";
/// A step is to stop.
pub(crate) const STOP: &str = "stop";
/// Nothing new shall begin, or may again.
pub(crate) const PAUSE: &str = "pause";

/// Most bytes of the inputs of one step, as JSON.
const LARGEST_INPUTS: usize = 256 * 1024;

/// A node or stage has ended: not said by a person.
pub const ENDED: &str = "ended";

/// What a person can say about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Begin nothing new.
    Pause,
    /// Go on.
    Resume,
    /// Every step that runs has failed.
    MarkAsFailed,
    /// Every step that runs is out of time.
    Expire,
    /// The failure of this node, which asks for an answer, is answered by an action of a failure strategy.
    Answer {
        /// The node.
        node: NodeId,
        /// `Ignore`, `Retry`, ….
        action: String,
    },
    /// Something for the step itself to read: one word of each kind about an attempt.
    Step {
        /// The step, which waits for an approval.
        node: NodeId,
        /// Its attempt.
        attempt: u32,
        /// What it is about.
        kind: String,
        /// The word.
        says: String,
    },
    /// The inputs that a step asked for, by field ([`crate::execution_input`]).
    Input {
        /// The step.
        node: NodeId,
        /// The values.
        values: Map<String, Value>,
    },
    /// A stage that waits for it begins (`runMode` Manual).
    Start {
        /// The stage.
        stage: StageId,
    },
    /// This step has failed, or what runs in this step group or parallel block.
    MarkNodeAsFailed {
        /// The node.
        node: NodeId,
    },
    /// Something about one stage ([`crate::stage_word`]).
    Stage {
        /// The stage.
        stage: StageId,
        /// What.
        word: StageWord,
    },
    /// Every stage that goes on is rolled back.
    RollBackStages,
    /// Every failure that asks for an answer, of the run or of one stage, is answered so.
    AnswerAll {
        /// The stage; all where there is none.
        stage: Option<StageId>,
        /// As in [`Word::Answer`].
        action: String,
    },
}

/// Records what a person said about a run, and wakes what waits.
///
/// # Errors
/// `Conflict` where it does not fit: the run has ended, nothing asks, or somebody was faster.
pub async fn say(runs: &Runs, run: &RunId, who: &PrincipalId, word: &Word) -> Result<(), RunError> {
    let record = runs.run(run).await?;
    if record.status.is_final() {
        return Err(conflict(format!(
            "run {run} has ended ({:?})",
            record.status
        )));
    }
    let signals = Box::pin(said(runs, &record, word)).await?;
    Box::pin(record_all(runs, run, who, word, &signals)).await?;
    let more = Box::pin(stage_word::overtaken(runs, run, &signals)).await?;
    Box::pin(record_all(runs, run, who, word, &more)).await?;
    Box::pin(wake(runs, run)).await
}

/// What a word says, about which nodes.
async fn said(runs: &Runs, record: &RunRecord, word: &Word) -> Result<Vec<Said>, RunError> {
    let run = &record.id;
    Ok(match word {
        Word::Pause | Word::Resume => vec![pausing(record, *word == Word::Pause)?],
        Word::MarkAsFailed => about_all(runs, run, StageWord::MarkAsFailed).await?,
        Word::Expire => about_all(runs, run, StageWord::Expire).await?,
        Word::RollBackStages => about_all(runs, run, StageWord::RollBack).await?,
        Word::Stage { stage, word } => about_stage(runs, run, stage, *word).await?,
        Word::MarkNodeAsFailed { node } => failed_node(runs, run, node).await?,
        Word::AnswerAll { stage, action } => {
            check_answer(action)?;
            let nodes = runs.nodes(run, stage.as_ref()).await?;
            let (_, plan) = runs.load(run).await?;
            let own = |node: &&NodeRecord| stage.as_ref().is_none_or(|stage| node.stage == *stage);
            // A rollback is not rolled back.
            let spared = |id: &NodeId| undoes(action) && undoing_stage(&plan, id).is_some();
            let asking = nodes.values().filter(own).filter(|node| asks(node));
            let asking = asking.filter(|node| !spared(&node.id));
            let said: Vec<Said> = asking
                .map(|node| {
                    let id = node.id.clone();
                    (id, node.attempt, ANSWER.to_owned(), action.clone())
                })
                .collect();
            if said.is_empty() {
                return Err(conflict(format!(
                    "no failure of run {run} waits for an answer, and `{action}` is one (ManualIntervention); a run that \
                     has failed is retried by `slipway retry {run}`"
                )));
            }
            said
        }
        Word::Answer { node, action } => {
            check_answer(action)?;
            let known = node_in(runs, run, node, "waiting for an answer", asks).await?;
            if action == "StepGroupRollback" {
                check_in_group(&runs.load(run).await?.1, node)?;
            } else if undoes(action) {
                check_not_undoing(&runs.load(run).await?.1, node, action)?;
            }
            vec![(node.clone(), known, ANSWER.to_owned(), action.clone())]
        }
        Word::Input { node, values } => {
            if record.abort.is_some() {
                return Err(conflict(format!("run {run} is being aborted")));
            }
            let (_, plan) = runs.load(run).await?;
            let known = match by_hand::asks_before_start(&plan, record, node.as_str()) {
                Some(_) => 0,
                None => node_in(runs, run, node, "waiting for inputs", asks_for_inputs).await?,
            };
            let says = inputs_of(runs, run, node, values).await?;
            vec![(node.clone(), known, execution_input::INPUT.to_owned(), says)]
        }
        Word::Start { stage } => {
            if record.abort.is_some() {
                return Err(conflict(format!("run {run} is being aborted")));
            }
            let words = by_hand::starting(runs, record, stage).await?.into_iter();
            words
                .map(|(node, kind, says)| (node, 0, kind.to_owned(), says))
                .collect()
        }
        Word::Step {
            node,
            attempt,
            kind,
            says,
        } => {
            if record.abort.is_some() {
                return Err(conflict(format!("run {run} is being aborted")));
            }
            let known = node_in(runs, run, node, "waiting for an approval", approves).await?;
            if known != *attempt {
                return Err(conflict(format!("{node} is at its attempt {known} by now")));
            }
            vec![(node.clone(), known, kind.clone(), says.clone())]
        }
    })
}

/// Records what one word says. Where somebody else was faster, it is refused, unless it may be said twice.
async fn record_all(
    runs: &Runs,
    run: &RunId,
    who: &PrincipalId,
    word: &Word,
    signals: &[Said],
) -> Result<(), RunError> {
    let of_several = matches!(
        word,
        Word::Stage { .. } | Word::MarkAsFailed | Word::Expire | Word::RollBackStages
    );
    for said in signals.iter().cloned() {
        let signal = stage_word::signal(run, who, runs.clock.now_ms(), said);
        let repeatable = of_several || signal.kind == STOP;
        if signal.kind == PAUSE {
            tell_pause(runs, &signal).await?;
        }
        match runs.store.put_signal(&signal).await {
            Ok(()) => {}
            Err(StoreError::AlreadyExists { .. }) if repeatable => {}
            Err(error @ StoreError::AlreadyExists { .. }) => {
                // Whoever was faster may have died before anybody was woken.
                wake(runs, run).await?;
                if let Word::Step { node, .. } = word {
                    return Err(conflict(format!("{who} has answered {node} already")));
                }
                return Err(conflict(format!("somebody was faster: {error}")));
            }
            Err(error) => Err(error).doing(|| format!("record what was said about run {run}"))?,
        }
    }
    Ok(())
}

fn check_answer(action: &str) -> Result<(), RunError> {
    if strategy::answer(action).is_some() {
        return Ok(());
    }
    let message = format!(
        "`{action}` is no answer to a failure; Retry, Ignore, MarkAsSuccess, MarkAsFailure, StageRollback, StepGroupRollback, PipelineRollback and Abort are"
    );
    Err(RunError::refused(ErrorName::InvalidRequest, message))
}

/// A step that runs or waits for its next attempt, or all such below a step group or parallel block; a group that waits
/// for its own next attempt is such a step itself.
async fn failed_node(runs: &Runs, run: &RunId, node: &NodeId) -> Result<Vec<Said>, RunError> {
    let says = |id: &NodeId, attempt| (id.clone(), attempt, STOP.to_owned(), "fail".to_owned());
    let nodes = runs.nodes(run, None).await?;
    let awaited = awaited::read(runs, run, &nodes).await?;
    if let Some(known) = nodes.get(node).filter(|known| is_container(known)) {
        let (_, plan) = runs.load(run).await?;
        let open = stage_word::open_below(&plan, &nodes, &awaited, node);
        let open: Vec<_> = open
            .iter()
            .map(|(id, attempt)| says(id, *attempt))
            .collect();
        return match open.is_empty() {
            false => Ok(open),
            true => Err(conflict(format!(
                "nothing runs in {node}, which is {:?}",
                known.status
            ))),
        };
    }
    // Its next attempt is stopped before it does anything.
    if let Some(next) = awaited.iter().find(|next| next.node == *node) {
        return Ok(vec![says(node, next.attempt)]);
    }
    let known = node_in(runs, run, node, "running", runs_now).await?;
    Ok(vec![says(node, known)])
}

/// Nothing can be stopped: no step has begun yet, or one waits for an answer or for its next attempt. What is said of
/// steps that run is not kept for later ones.
pub(crate) fn nothing_runs<'n>(
    run: &RunId,
    mut nodes: impl Iterator<Item = &'n NodeRecord>,
    awaited: &[Awaited],
) -> RunError {
    let advice = match (nodes.find(|node| asks(node)), awaited.first()) {
        (Some(node), _) => format!(
            "{} waits for an answer to its failure: `slipway answer {run} {} MarkAsFailure`, or `slipway abort {run}`",
            node.id, node.identifier
        ),
        (None, Some(next)) => format!(
            "{} waits to be tried again: `slipway fail {run} --step {}`, or `slipway abort {run}`",
            next.node, next.node
        ),
        (None, None) => format!("say it again when one does, or `slipway abort {run}`"),
    };
    conflict(format!("no step of run {run} runs now; {advice}"))
}

/// Whether an answer rolls back what rollback steps are of.
fn undoes(action: &str) -> bool {
    matches!(action, "StageRollback" | "PipelineRollback")
}

/// The stage that a node rolls back, or a group of it.
fn undoing_stage<'p>(plan: &'p Plan, node: &NodeId) -> Option<&'p StagePlan> {
    let mut stages = plan.groups.iter().flatten();
    stages.find(|stage| is_rollback(stage, node))
}

/// A rollback is not rolled back: such an answer would do nothing but leave the rest of it out.
fn check_not_undoing(plan: &Plan, node: &NodeId, action: &str) -> Result<(), RunError> {
    let Some(stage) = undoing_stage(plan, node) else {
        return Ok(());
    };
    let message = format!(
        "{node} is a step of the rollback of stage {}, and a rollback is not rolled back ({action}); Retry, Ignore and \
         MarkAsSuccess go on with it, MarkAsFailure leaves the rest of it out",
        stage.identifier
    );
    Err(RunError::refused(ErrorName::InvalidRequest, message))
}

/// A group is rolled back only where there is one.
fn check_in_group(plan: &Plan, node: &NodeId) -> Result<(), RunError> {
    fn in_group(nodes: &[Node], id: &NodeId) -> bool {
        nodes.iter().any(|node| match node {
            Node::Step(_) => false,
            Node::Group(group) => contains(&group.nodes, id) || in_group(&group.rollback_steps, id),
            Node::Parallel(block) => in_group(&block.branches, id),
        })
    }
    let mut stages = plan.groups.iter().flatten();
    let found =
        stages.any(|stage| in_group(&stage.steps, node) || in_group(&stage.rollback_steps, node));
    if found {
        return Ok(());
    }
    let message = format!(
        "{node} is in no step group that could be rolled back; StageRollback undoes what its stage did"
    );
    Err(RunError::refused(ErrorName::InvalidRequest, message))
}

/// What is said of inputs that are given: all of them, defaults filled in.
async fn inputs_of(
    runs: &Runs,
    run: &RunId,
    node: &NodeId,
    values: &Map<String, Value>,
) -> Result<String, RunError> {
    let (_, plan) = runs.load(run).await?;
    let step = plan.step(node).ok_or_else(|| {
        let message = format!("run {run} has no step {node}");
        RunError::refused(ErrorName::NotFound, message)
    })?;
    let all = execution_input::complete(&execution_input::asked(&step.spec), values).map_err(
        |faults| {
            RunError::refused(
                ErrorName::InvalidRequest,
                format!("{node}: {}", faults.join("; ")),
            )
        },
    )?;
    let says = Value::Object(all).to_string();
    if says.len() > LARGEST_INPUTS {
        let message = format!("the inputs of {node} have more than {LARGEST_INPUTS} bytes");
        return Err(RunError::refused(ErrorName::TooLarge, message));
    }
    Ok(says)
}

/// Tells that a run is paused or goes on. Before it is recorded: nobody would come back to tell it.
async fn tell_pause(runs: &Runs, signal: &SignalRecord) -> Result<(), RunError> {
    let (_, plan) = runs.load(&signal.run).await?;
    let number = signal.attempt;
    let event = match signal.says.as_str() {
        "pause" => Event::PipelinePaused { number },
        _ => Event::PipelineResumed { number },
    };
    runs.tell(&signal.run, &plan, &[event]).await;
    Ok(())
}

/// The signal of this number that paused a run, or let it go on.
pub fn pause_signal(run: &RunRecord, number: u32) -> Option<&SignalRecord> {
    let mut all = run.signals.iter();
    all.find(|signal| signal.kind == PAUSE && signal.attempt == number)
}

fn pausing(record: &RunRecord, pause: bool) -> Result<Said, RunError> {
    if is_paused(record) == pause {
        let state = if pause {
            "paused already"
        } else {
            "not paused"
        };
        return Err(conflict(format!("run {} is {state}", record.id)));
    }
    let before = record.signals.iter().filter(|signal| signal.kind == PAUSE);
    let number = u32::try_from(before.count()).unwrap_or(u32::MAX);
    let says = if pause { "pause" } else { "resume" };
    Ok((NodeId::new(""), number, PAUSE.to_owned(), says.to_owned()))
}

/// Whether a node runs nothing by itself.
fn is_container(node: &NodeRecord) -> bool {
    matches!(&*node.node_type, "STEP_GROUP" | "PARALLEL")
}

/// Whether a step has begun and can be stopped.
pub(crate) fn runs_now(node: &NodeRecord) -> bool {
    !is_container(node) && !node.status.is_final() && !asks(node)
}

pub(crate) fn asks(node: &NodeRecord) -> bool {
    node.status == Status::InterventionWaiting
}

fn asks_for_inputs(node: &NodeRecord) -> bool {
    node.status == Status::InputWaiting
}

fn approves(node: &NodeRecord) -> bool {
    node.status == Status::ApprovalWaiting
}

/// The newest attempt of a node, which must be as the word wants it.
async fn node_in(
    runs: &Runs,
    run: &RunId,
    node: &NodeId,
    wanted: &str,
    fits: fn(&NodeRecord) -> bool,
) -> Result<u32, RunError> {
    let found = runs.store.get_node(run, node).await;
    let found = found.doing(|| format!("read {node} of run {run}"))?;
    let Some(found) = found else {
        let message = format!("run {run} has no node {node} that has begun");
        return Err(RunError::refused(ErrorName::NotFound, message));
    };
    if !fits(&found) {
        return Err(conflict(format!(
            "{node} is {:?} and not {wanted}",
            found.status
        )));
    }
    Ok(found.attempt)
}

fn conflict(message: String) -> RunError {
    RunError::refused(ErrorName::Conflict, message)
}

/// Whether nothing new shall begin.
pub fn is_paused(run: &RunRecord) -> bool {
    last_pause(&run.signals).is_some_and(pauses)
}

/// The last of the words that pause a run or let it go on.
fn last_pause(said: &[SignalRecord]) -> Option<&SignalRecord> {
    let mut all = said.iter().rev();
    all.find(|signal| signal.kind == PAUSE)
}

fn pauses(signal: &SignalRecord) -> bool {
    signal.says == "pause"
}

/// Pauses a run with the one that it is a part of, about which `said` was said, and lets it go on with it. What a person
/// said about the run itself stays: who paused it before, or let it go on since, is not overruled.
///
/// # Errors
/// Where it cannot be recorded. A run that has ended, or about which somebody else says the same, is none.
pub async fn pause_with(
    runs: &Runs,
    run: &RunRecord,
    said: &[SignalRecord],
) -> Result<(), RunError> {
    let Some(word) = pause_to_follow(&run.signals, said) else {
        return Ok(());
    };
    let follows = match pauses(word) {
        true => Word::Pause,
        false => Word::Resume,
    };
    let recorded = async {
        let signal = pausing(run, follows == Word::Pause)?;
        record_all(runs, &run.id, &word.who, &follows, &[signal]).await
    };
    match recorded.await {
        // Somebody else said it meanwhile.
        Err(error) if error.name() == ErrorName::Conflict => return Ok(()),
        recorded => recorded?,
    }
    wake(runs, &run.id).await
}

/// The word about the run around that a run has still to follow.
fn pause_to_follow<'s>(
    own: &[SignalRecord],
    around: &'s [SignalRecord],
) -> Option<&'s SignalRecord> {
    let last = last_pause(around)?;
    let mut earlier = around.iter().rev().filter(|signal| signal.kind == PAUSE);
    let paused = earlier.find(|signal| pauses(signal))?;
    let own = last_pause(own);
    // Words come in the order in which they were said: what is younger than the pause came because of it, or of a person.
    let since = own.filter(|own| own.at_ms >= paused.at_ms);
    let follows = match pauses(last) {
        true => since.is_none() && !own.is_some_and(pauses),
        false => since.is_some_and(pauses),
    };
    follows.then_some(last)
}

pub(crate) fn answers(run: &RunRecord) -> BTreeMap<(NodeId, u32), Answer> {
    let answers = run.signals.iter().filter(|signal| signal.kind == ANSWER);
    answers
        .filter_map(|signal| {
            let answer = Answer {
                action: strategy::answer(&signal.says)?,
                at_ms: signal.at_ms,
            };
            Some(((signal.node.clone(), signal.attempt), answer))
        })
        .collect()
}

/// Who stopped an attempt of a node, or, where nobody did, of a step group around it.
pub fn stopped_by<'r>(run: &'r RunRecord, node: &NodeId, attempt: u32) -> Option<&'r PrincipalId> {
    let stops = || run.signals.iter().filter(|signal| signal.kind == STOP);
    let of_this = |signal: &&SignalRecord| signal.node == *node && signal.attempt == attempt;
    let around = |signal: &&SignalRecord| {
        let below = node.as_str().strip_prefix(signal.node.as_str());
        below.is_some_and(|below| below.starts_with('.'))
    };
    let found = stops().find(of_this);
    let found = found.or_else(|| stops().rfind(around));
    found.map(|signal| &signal.who)
}

pub(crate) fn stopped(run: &RunRecord) -> BTreeMap<(NodeId, u32), Stopped> {
    let stops = run.signals.iter().filter(|signal| signal.kind == STOP);
    stops
        .map(|signal| {
            let reason = match signal.says.as_str() {
                "expire" => StopReason::MadeToExpire,
                "rollback" => StopReason::MarkedForRollback,
                _ => StopReason::MarkedAsFailed,
            };
            let at_ms = signal.at_ms;
            (
                (signal.node.clone(), signal.attempt),
                Stopped { reason, at_ms },
            )
        })
        .collect()
}
