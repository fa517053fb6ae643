//! The walk itself.

use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::{FailureStrategy, Node, ParallelPlan, StepPlan, When, WhenStatus};

use super::facts::{Facts, NodeFact, worst};
use super::moves::{Halt, Move, Opening, StopReason};
use super::plan::{LanePlan, children, node_id};
use crate::strategy::{self, Verdict};

/// Result of looking at a node, or at several in order.
#[derive(Debug)]
enum Visit<'p> {
    Move(Move<'p>),
    /// Ended; what follows may run.
    Through,
    /// Ended; what follows does not run.
    Halt(Halt),
}

/// Decides what `lane` does next at `now_ms` (epoch milliseconds). Ends after finitely many moves that
/// are carried out: each makes a node begin or end, except those that wait for a step or for time.
pub fn next<'p>(lane: &LanePlan<'p>, facts: &Facts, now_ms: i64) -> Move<'p> {
    let walker = Walker {
        lane,
        facts,
        now_ms,
    };
    match walker.visit_all(lane.nodes, &mut lane.groups.clone()) {
        Visit::Move(next) => next,
        Visit::Through => Move::Done {
            status: walker.status_of(lane.nodes, None),
        },
        Visit::Halt(halt) => Move::Done {
            status: walker.status_of(lane.nodes, Some(halt)),
        },
    }
}

/// How a lane came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkOutcome {
    /// It is not over.
    Unfinished,
    /// It was walked to its end.
    Walked,
    /// It was halted before its end.
    Halted(Halt),
}

/// How the lane of a stage's steps came out.
pub fn steps_verdict(lane: &LanePlan<'_>, facts: &Facts, now_ms: i64) -> WalkOutcome {
    let walker = Walker {
        lane,
        facts,
        now_ms,
    };
    match walker.visit_all(lane.nodes, &mut lane.groups.clone()) {
        Visit::Move(_) => WalkOutcome::Unfinished,
        Visit::Through => WalkOutcome::Walked,
        Visit::Halt(halt) => WalkOutcome::Halted(halt),
    }
}

struct Walker<'a, 'p> {
    lane: &'a LanePlan<'p>,
    facts: &'a Facts,
    now_ms: i64,
}

impl<'p> Walker<'_, 'p> {
    fn visit_all(&self, nodes: &'p [Node], groups: &mut Vec<&'p [FailureStrategy]>) -> Visit<'p> {
        for node in nodes {
            match self.visit(node, groups) {
                Visit::Through => {}
                other => return other,
            }
        }
        Visit::Through
    }

    fn visit(&self, node: &'p Node, groups: &mut Vec<&'p [FailureStrategy]>) -> Visit<'p> {
        let fact = self.facts.nodes.get(node_id(node));
        match (node, fact) {
            (_, None) => self.untouched(node),
            (_, Some(fact)) if fact.status == Status::Skipped => Visit::Through,
            (Node::Step(step), Some(fact)) => self.step(step, fact, groups),
            (Node::Group(group), Some(fact)) => {
                groups.push(&group.failure_strategies);
                let inside = self.visit_all(&group.nodes, groups);
                groups.pop();
                self.group(node, fact, inside)
            }
            (Node::Parallel(parallel), Some(fact)) => self.parallel(node, parallel, fact, groups),
        }
    }

    /// What stops everything that has not begun.
    fn stopping(&self) -> Option<Halt> {
        if self.facts.aborted {
            return Some(Halt::Abort);
        }
        let deadline = self.facts.deadline_ms?;
        (self.now_ms >= deadline).then_some(Halt::Deadline)
    }

    fn untouched(&self, node: &'p Node) -> Visit<'p> {
        if let Some(halt) = self.stopping() {
            return Visit::Halt(halt);
        }
        let (when, opening) = match node {
            Node::Step(step) => (step.when.as_ref(), Opening::Step(step)),
            Node::Group(group) => (group.when.as_ref(), Opening::Group(group)),
            Node::Parallel(parallel) => (None, Opening::Parallel(parallel)),
        };
        let start = Move::Start {
            node: opening,
            attempt: 0,
        };
        Visit::Move(match node {
            // A block has no condition; its branches have.
            Node::Parallel(_) => start,
            Node::Step(_) | Node::Group(_) => self.gate(node, when).unwrap_or(start),
        })
    }

    /// What the condition of a node demands instead of starting it.
    fn gate(&self, node: &'p Node, when: Option<&'p When>) -> Option<Move<'p>> {
        let wanted = when.map_or(WhenStatus::Success, |when| when.status);
        let failed = self.has_failed(self.lane.section, &mut Vec::new());
        if let Some(reason) = status_mismatch(wanted, failed, "stageStatus") {
            return Some(Move::Skip { node, reason });
        }
        let condition = when?.condition.as_deref()?;
        match self.facts.conditions.get(node_id(node)) {
            None => Some(Move::Evaluate { node, condition }),
            Some(true) => None,
            Some(false) => Some(Move::Skip {
                node,
                reason: format!("its condition is false: {condition}"),
            }),
        }
    }

    /// Whether a step below `nodes` has failed for good.
    fn has_failed(&self, nodes: &'p [Node], groups: &mut Vec<&'p [FailureStrategy]>) -> bool {
        nodes.iter().any(|node| {
            let Some(fact) = self.facts.nodes.get(node_id(node)) else {
                return false;
            };
            if fact.status.is_good() {
                return false;
            }
            if let Node::Step(step) = node {
                return fact.status.is_final()
                    && !matches!(self.judge(step, fact, groups), Verdict::Again(_));
            }
            if let Node::Group(group) = node {
                groups.push(&group.failure_strategies);
            }
            let failed = self.has_failed(children(node), groups);
            if matches!(node, Node::Group(_)) {
                groups.pop();
            }
            failed || fact.status == Status::Errored
        })
    }

    fn judge(
        &self,
        step: &'p StepPlan,
        fact: &NodeFact,
        groups: &[&'p [FailureStrategy]],
    ) -> Verdict {
        let levels = self.lane.levels(&step.failure_strategies, groups);
        let error = fact
            .failure
            .as_ref()
            .map_or(ErrorType::Unknown, |f| f.error);
        strategy::judge(&levels, error, fact.status, fact.attempt)
    }

    fn step(
        &self,
        step: &'p StepPlan,
        fact: &NodeFact,
        groups: &[&'p [FailureStrategy]],
    ) -> Visit<'p> {
        if fact.status.is_good() {
            return Visit::Through;
        }
        if fact.status == Status::Aborted {
            return Visit::Halt(Halt::Abort);
        }
        if !fact.status.is_final() {
            return Visit::Move(self.open_step(step, fact));
        }
        match self.judge(step, fact, groups) {
            Verdict::Again(wait) => self.retry(step, fact, wait),
            Verdict::Over {
                halts: true,
                rolls_back,
                ..
            } => Visit::Halt(Halt::Failure { rolls_back }),
            Verdict::Over { halts: false, .. } => Visit::Through,
        }
    }

    fn open_step(&self, step: &'p StepPlan, fact: &NodeFact) -> Move<'p> {
        let attempt = fact.attempt;
        let limit = i64::try_from(step.timeout.as_millis()).unwrap_or(i64::MAX);
        let reason = match self.stopping() {
            Some(Halt::Abort) => Some(StopReason::Abort),
            Some(Halt::Deadline | Halt::Failure { .. }) => Some(StopReason::StageTimeout),
            None => (self.now_ms >= fact.started_ms.saturating_add(limit))
                .then_some(StopReason::StepTimeout),
        };
        match reason {
            Some(reason) => Move::Stop {
                step,
                attempt,
                reason,
            },
            None => Move::Continue { step, attempt },
        }
    }

    fn retry(&self, step: &'p StepPlan, fact: &NodeFact, wait: std::time::Duration) -> Visit<'p> {
        if let Some(halt) = self.stopping() {
            return Visit::Halt(halt);
        }
        let ended = fact.ended_ms.unwrap_or(fact.started_ms);
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        let until_ms = ended.saturating_add(wait);
        Visit::Move(if self.now_ms >= until_ms {
            Move::Start {
                node: Opening::Step(step),
                attempt: fact.attempt + 1,
            }
        } else {
            let deadline = self.facts.deadline_ms.unwrap_or(i64::MAX);
            Move::Wait {
                until_ms: until_ms.min(deadline),
            }
        })
    }

    /// A group that has begun, from what its nodes say.
    fn group(&self, node: &'p Node, fact: &NodeFact, inside: Visit<'p>) -> Visit<'p> {
        if fact.status.is_final() {
            // Its nodes ended before it did: a move would be one that was lost with a crashed lane.
            return match inside {
                Visit::Move(_) => Visit::Halt(Halt::Failure { rolls_back: true }),
                ended => ended,
            };
        }
        match inside {
            Visit::Move(next) => Visit::Move(next),
            Visit::Through => Visit::Move(self.close(node, None)),
            Visit::Halt(halt) => Visit::Move(self.close(node, Some(halt))),
        }
    }

    fn parallel(
        &self,
        node: &'p Node,
        parallel: &'p ParallelPlan,
        fact: &NodeFact,
        groups: &mut Vec<&'p [FailureStrategy]>,
    ) -> Visit<'p> {
        let mut open = false;
        let mut halted: Option<Halt> = None;
        for branch in &parallel.branches {
            match self.visit(branch, groups) {
                Visit::Move(_) => open = true,
                Visit::Through => {}
                Visit::Halt(halt) => halted = Some(graver(halted, halt)),
            }
        }
        let closed = fact.status.is_final();
        match (closed, open) {
            (true, true) => self.lost_branch(fact, groups),
            (true, false) => halted.map_or(Visit::Through, Visit::Halt),
            (false, false) => Visit::Move(self.close(node, halted)),
            (false, true) if self.facts.joined.contains(&parallel.id) => Visit::Move(Move::Close {
                node,
                status: Status::Errored,
                failure: Some(Failure {
                    error: ErrorType::Unknown,
                    message: "a branch stopped without an end; its execution in Step Functions \
                              has the reason"
                        .to_owned(),
                    left_behind: None,
                }),
            }),
            (false, true) => Visit::Move(Move::Fork { parallel }),
        }
    }

    /// A block that was closed although a branch never ended.
    fn lost_branch(&self, fact: &NodeFact, groups: &[&'p [FailureStrategy]]) -> Visit<'p> {
        let levels = self.lane.levels(&[], groups);
        match strategy::judge(&levels, ErrorType::Unknown, fact.status, u32::MAX) {
            Verdict::Over {
                halts: true,
                rolls_back,
                ..
            } => Visit::Halt(Halt::Failure { rolls_back }),
            Verdict::Over { halts: false, .. } | Verdict::Again(_) => Visit::Through,
        }
    }

    fn close(&self, node: &'p Node, halt: Option<Halt>) -> Move<'p> {
        let nodes = children(node);
        let status = self.status_of(nodes, halt);
        let failure = nodes
            .iter()
            .filter_map(|child| self.facts.nodes.get(node_id(child)))
            .filter(|fact| !fact.status.is_good())
            .find_map(|fact| fact.failure.clone());
        Move::Close {
            node,
            status,
            failure,
        }
    }

    fn status_of(&self, nodes: &'p [Node], halt: Option<Halt>) -> Status {
        let begun = nodes.iter().filter_map(|n| self.facts.status(node_id(n)));
        let cut = match halt {
            Some(Halt::Abort) => Some(Status::Aborted),
            Some(Halt::Deadline) => Some(Status::Expired),
            Some(Halt::Failure { .. }) | None => None,
        };
        worst(begun.chain(cut))
    }
}

fn graver(before: Option<Halt>, found: Halt) -> Halt {
    match (before, found) {
        (Some(Halt::Abort), _) | (_, Halt::Abort) => Halt::Abort,
        (Some(Halt::Failure { rolls_back: a }), Halt::Failure { rolls_back: b }) => {
            Halt::Failure { rolls_back: a || b }
        }
        (Some(Halt::Failure { rolls_back }), Halt::Deadline)
        | (Some(Halt::Deadline) | None, Halt::Failure { rolls_back }) => {
            Halt::Failure { rolls_back }
        }
        (Some(Halt::Deadline) | None, Halt::Deadline) => Halt::Deadline,
    }
}

/// Why a status condition is not met, if it is not.
pub(crate) fn status_mismatch(wanted: WhenStatus, failed: bool, field: &str) -> Option<String> {
    match (wanted, failed) {
        (WhenStatus::All, _) | (WhenStatus::Success, false) | (WhenStatus::Failure, true) => None,
        (WhenStatus::Success, true) => Some(format!(
            "something failed before, and its {field} is Success"
        )),
        (WhenStatus::Failure, false) => {
            Some(format!("nothing failed before, and its {field} is Failure"))
        }
    }
}
