//! The levels around a step whose failure strategies may answer its failure.

use std::collections::BTreeMap;

use slipway_model::id::NodeId;
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::{FailureStrategy, GroupPlan, Node, StagePlan, StepPlan};

use super::facts::{Facts, NodeFact, Stopped};
use super::moves::{Opening, StopReason};
use super::plan::{LanePlan, children, is_rollback, runs_in, undoing};
use super::walk::begins_again;
use crate::name::Lane;
use crate::strategy::{self, Failed, Level, Undo, Verdict};

/// What failed: a step, or a step group or loop of which it cannot be told whether it runs, or how often.
#[derive(Clone, Copy, Debug)]
pub struct Failing<'p> {
    /// Which node.
    pub id: &'p NodeId,
    /// `failureStrategies` of its own.
    pub strategies: &'p [FailureStrategy],
    /// Whether it is a step group: its own strategies may begin it again.
    pub(crate) is_group: bool,
}

impl<'p> From<Opening<'p>> for Failing<'p> {
    /// A loop has the strategies of the element that loops.
    fn from(node: Opening<'p>) -> Self {
        match node {
            Opening::Step(step) => step.into(),
            Opening::Group(group) => Self {
                id: &group.id,
                strategies: &group.failure_strategies,
                is_group: true,
            },
            Opening::Parallel(block) => {
                let element = block.branches.first().filter(|_| block.each.is_some());
                let element = element.map(|element| Self::from(Opening::of(element)));
                Self {
                    id: &block.id,
                    strategies: element.map_or(&[], |element| element.strategies),
                    is_group: element.is_some_and(|element| element.is_group),
                }
            }
        }
    }
}

impl<'p> From<&'p StepPlan> for Failing<'p> {
    fn from(step: &'p StepPlan) -> Self {
        Self {
            id: &step.id,
            strategies: &step.failure_strategies,
            is_group: false,
        }
    }
}

/// A group that has begun, on the way to a node in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'p> {
    pub(super) strategies: &'p [FailureStrategy],
    /// How often the group was begun again in its round.
    pub(super) retried: u32,
    /// The round of the nodes in it.
    pub(super) round: u32,
}

/// The way through `groups`, from the outside in. A group that has not begun in its round is at its start.
pub(super) fn frames<'p>(groups: &[&'p GroupPlan], facts: &Facts) -> Vec<Frame<'p>> {
    let mut round = 0;
    let mut frames = Vec::with_capacity(groups.len());
    for group in groups {
        let fact = facts
            .nodes
            .get(&group.id)
            .filter(|fact| fact.round >= round);
        let frame = frame(group, fact, round);
        round = frame.round;
        frames.push(frame);
    }
    frames
}

pub(super) fn frame<'p>(group: &'p GroupPlan, fact: Option<&NodeFact>, round: u32) -> Frame<'p> {
    Frame {
        strategies: &group.failure_strategies,
        retried: fact.map_or(0, NodeFact::retried),
        round: round.saturating_add(fact.map_or(0, |fact| fact.attempt)),
    }
}

/// The levels around a node, nearest first.
pub(super) fn levels<'p>(
    own: &'p [FailureStrategy],
    retried: u32,
    frames: &[Frame<'p>],
    stage: &'p StagePlan,
) -> Vec<Level<'p>> {
    let of_frame = |frame: &Frame<'p>| Level {
        strategies: frame.strategies,
        retried: frame.retried,
    };
    let own = Level {
        strategies: own,
        retried,
    };
    let stage = Level {
        strategies: &stage.failure_strategies,
        retried: 0,
    };
    let groups = frames.iter().rev().map(of_frame);
    std::iter::once(own).chain(groups).chain([stage]).collect()
}

/// What a failure of a node of `lane`, that has just happened, comes to: what to record of it. `refused` are those of
/// its [`retry_conditions`] that do not hold.
pub fn judge(
    lane: &LanePlan<'_>,
    facts: &Facts,
    node: Failing<'_>,
    failure: &Failure,
    refused: &[String],
    failed: Status,
    now_ms: i64,
) -> Verdict {
    let attempt = facts.nodes.get(node.id).map_or(0, |fact| fact.attempt);
    if let Some(ruled) = ruled(lane, facts, (node.id, attempt), failure.error, failed) {
        return ruled;
    }
    let failed = Failed {
        is_group: node.is_group,
        refused,
        error: failure.error,
        status: failed,
        at_ms: now_ms,
        limit_ms: None,
        answer: None,
        now_ms,
    };
    strategy::judge(&around(lane, facts, node), &failed)
}

/// Why a person stopped an attempt of a step: itself, or that of a group around it, of which nothing runs then but what
/// rolls it back.
pub(super) fn stopped(
    lane: &LanePlan<'_>,
    facts: &Facts,
    step: &NodeId,
    attempt: u32,
) -> Option<Stopped> {
    if facts.stopped.is_empty() {
        return None;
    }
    let own = facts.stopped.get(&(step.clone(), attempt));
    own.copied().or_else(|| {
        let mut groups = lane.around(step)?.into_iter().rev();
        groups.find_map(|group| {
            let begun = facts.nodes.get(&group.id)?;
            let said = facts.stopped.get(&(group.id.clone(), begun.attempt))?;
            runs_in(&group.nodes, step).then_some(*said)
        })
    })
}

/// What a person said with the word that stopped a step, which no failure strategy is asked about.
fn ruled(
    lane: &LanePlan<'_>,
    facts: &Facts,
    (step, attempt): (&NodeId, u32),
    error: ErrorType,
    status: Status,
) -> Option<Verdict> {
    let said = stopped(lane, facts, step, attempt)?;
    let rolls_back =
        said.reason == StopReason::MarkedForRollback && error == ErrorType::UserMarkedFailure;
    rolls_back.then_some(Verdict::Over {
        status,
        halt: Some(Undo::Stage),
    })
}

/// The next attempt of a step or step group that waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The step or group.
    pub node: NodeId,
    /// The attempt, from 0.
    pub attempt: u32,
    /// When it begins, in epoch milliseconds.
    pub at_ms: i64,
}

/// The attempts that steps and step groups of a stage wait for after a failure, by what is known of its nodes.
pub(crate) fn awaited_retries(
    stage: &StagePlan,
    nodes: BTreeMap<NodeId, NodeFact>,
    now_ms: i64,
) -> Vec<Awaited> {
    let facts = Facts {
        nodes,
        ..Facts::default()
    };
    let Some(lane) = LanePlan::of(stage, &Lane::steps(&stage.id)) else {
        return Vec::new();
    };
    let waits = |step: &StepPlan| {
        let fact = facts.nodes.get(&step.id)?;
        if !fact.status.is_final() || fact.status.is_good() {
            return None;
        }
        let groups = lane.around(&step.id)?;
        let frames = frames(&groups, &facts);
        if fact.round < frames.last().map_or(0, |frame| frame.round) {
            return None;
        }
        let levels = levels(&step.failure_strategies, fact.retried(), &frames, stage);
        let verdict = recorded(&lane, &levels, &facts, step.into(), fact, now_ms);
        let Verdict::Again(wait) = verdict else {
            return None;
        };
        Some(Awaited {
            node: step.id.clone(),
            attempt: fact.again().number,
            at_ms: later(fact.ended_ms.unwrap_or(fact.started_ms), wait),
        })
    };
    let group_waits = |group: &GroupPlan| {
        let fact = facts.nodes.get(&group.id)?;
        Some(Awaited {
            node: group.id.clone(),
            attempt: fact.again().number,
            at_ms: begins_again(&lane, &facts, group, now_ms)?,
        })
    };
    let mut found = Vec::new();
    for nodes in [&stage.steps, &stage.rollback_steps] {
        each(nodes, &mut |node| match node {
            Node::Step(step) => found.extend(waits(step)),
            Node::Group(group) => found.extend(group_waits(group)),
            Node::Parallel(_) => {}
        });
    }
    found
}

/// The nodes among `nodes` and below them, rollback steps of groups too.
fn each<'p>(nodes: &'p [Node], visit: &mut impl FnMut(&'p Node)) {
    for node in nodes {
        visit(node);
        each(children(node), visit);
        each(undoing(node), visit);
    }
}

/// A time in epoch milliseconds, and a wait after it.
pub(crate) fn later(from_ms: i64, wait: std::time::Duration) -> i64 {
    from_ms.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

/// When the time of a node of `lane` is up by the `timeout` of the groups around it, in epoch milliseconds. A group that
/// is begun again has its time again; its rollback steps have their own limits only.
pub(super) fn group_deadline(lane: &LanePlan<'_>, facts: &Facts, node: &NodeId) -> Option<i64> {
    let groups = lane.around(node)?;
    let limits = groups.into_iter().filter_map(|group| {
        let limit = group.timeout.filter(|_| runs_in(&group.nodes, node))?;
        let began_ms = facts.nodes.get(&group.id)?.started_ms;
        Some(later(began_ms, limit))
    });
    limits.min()
}

/// When the time of a node of `lane` is up, whatever its own `timeout` says, in epoch milliseconds: by a step group around
/// it, its stage or its run. Rollback steps have their own limits only, also those of a group in a stage whose time is up.
pub fn deadline_around(lane: &LanePlan<'_>, facts: &Facts, node: &NodeId) -> Option<i64> {
    let of_stage = facts.deadline_ms.filter(|_| !is_rollback(lane.stage, node));
    let of_groups = group_deadline(lane, facts, node);
    of_stage.into_iter().chain(of_groups).min()
}

/// The conditions of retries that a failure of a node of `lane` may ask for, see [`strategy::conditions`].
pub fn retry_conditions(
    lane: &LanePlan<'_>,
    facts: &Facts,
    node: Failing<'_>,
    error: ErrorType,
) -> Vec<String> {
    strategy::conditions(&around(lane, facts, node), error)
}

/// The levels around a node of `lane`.
fn around<'p>(lane: &LanePlan<'p>, facts: &Facts, node: Failing<'p>) -> Vec<Level<'p>> {
    let frames = frames(&lane.around(node.id).unwrap_or_default(), facts);
    let fact = facts.nodes.get(node.id);
    let retried = fact.map_or(0, NodeFact::retried);
    levels(node.strategies, retried, &frames, lane.stage)
}

/// What the failure of a node of `lane` comes to that is recorded.
pub(super) fn recorded(
    lane: &LanePlan<'_>,
    levels: &[Level<'_>],
    facts: &Facts,
    node: Failing<'_>,
    fact: &NodeFact,
    now_ms: i64,
) -> Verdict {
    let ended = fact.ended_ms.unwrap_or(fact.started_ms);
    let error = fact.failure.as_ref().map(|failure| failure.error);
    let error = error.unwrap_or(ErrorType::Unknown);
    if let Some(ruled) = ruled(lane, facts, (node.id, fact.attempt), error, fact.status) {
        return ruled;
    }
    let failed = Failed {
        is_group: node.is_group,
        refused: &fact.refused,
        error,
        status: failed_as(fact),
        at_ms: fact.asked_ms.unwrap_or(ended),
        limit_ms: group_deadline(lane, facts, node.id),
        answer: facts.answers.get(&(node.id.clone(), fact.attempt)),
        // A question that is over stays as it was left, however late it is looked at.
        now_ms: match (fact.asked_ms, fact.ended_ms) {
            (Some(_), Some(ended_ms)) => ended_ms.min(now_ms),
            _ => now_ms,
        },
    };
    strategy::judge(levels, &failed)
}

/// The status that a failed step has, or had before a person was asked about it.
pub(super) fn failed_as(fact: &NodeFact) -> Status {
    let error = fact.failure.as_ref().map(|failure| failure.error);
    match (fact.status, error) {
        (Status::InterventionWaiting, Some(ErrorType::Timeout)) => Status::Expired,
        (Status::InterventionWaiting, Some(ErrorType::ApprovalRejection)) => {
            Status::ApprovalRejected
        }
        (Status::InterventionWaiting, _) => Status::Failed,
        (status, _) => status,
    }
}
