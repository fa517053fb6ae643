//! The walk itself.

use slipway_model::id::NodeId;
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::{GroupPlan, Node, ParallelPlan, StepPlan, When, WhenStatus};

use super::facts::{Attempt, Facts, NodeFact, Stopped, worst};
use super::level::{self, Failing, Frame, later};
use super::moves::{GroupThen, Halt, Move, Opening, StopReason};
use super::plan::{LanePlan, children, groups_below, groups_to_undo, node_id, runs_in, undoing};
use crate::name::Walk;
use crate::strategy::{self, Failed, Undo, Verdict};

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
    let (walker, mut frames) = Walker::new(lane, facts, now_ms);
    let (ended, groups) = match walker.visit_lane(&mut frames) {
        (Visit::Move(next), _) => return next,
        over => over,
    };
    let own = walker.status_of(lane.nodes, &frames, &ended);
    Move::Done {
        status: worst(groups.into_iter().chain([own])),
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
    let (walker, mut frames) = Walker::new(lane, facts, now_ms);
    match walker.visit_lane(&mut frames).0 {
        Visit::Move(_) => WalkOutcome::Unfinished,
        Visit::Through => WalkOutcome::Walked,
        Visit::Halt(halt) => WalkOutcome::Halted(halt),
    }
}

/// When a step group begins again that has ended, in epoch milliseconds: where that is how the failures in it came out,
/// and what is around it goes on.
pub(super) fn begins_again(
    lane: &LanePlan<'_>,
    facts: &Facts,
    group: &GroupPlan,
    now_ms: i64,
) -> Option<i64> {
    let around = lane.around(&group.id)?;
    let ended = |fact: Option<&NodeFact>| fact.is_none_or(|fact| fact.status.is_final());
    // A group may have ended before its rollback steps run: when its stage, or the run, is rolled back.
    let mut holding = around
        .iter()
        .filter(|outer| runs_in(&outer.nodes, &group.id));
    if holding.any(|outer| ended(facts.nodes.get(&outer.id))) {
        return None;
    }
    let mut frames = level::frames(&around, facts);
    let (walker, _) = Walker::new(lane, facts, now_ms);
    let fact = walker.fact(&group.id, &frames)?;
    if !fact.status.is_final() || fact.status.is_good() {
        return None;
    }
    if fact.undecided {
        // Nothing of it ran: it was tried as a step is.
        let levels = level::levels(
            &group.failure_strategies,
            fact.retried(),
            &frames,
            lane.stage,
        );
        let own = Failing::from(Opening::Group(group));
        let ended = fact.ended_ms.unwrap_or(fact.started_ms);
        return match level::recorded(lane, &levels, facts, own, fact, now_ms) {
            Verdict::Again(wait) | Verdict::GroupAgain { level: 0, wait } => {
                Some(later(ended, wait))
            }
            _ => None,
        };
    }
    let own = frames.len();
    frames.push(level::frame(group, Some(fact), round(&frames)));
    match walker.visit_all(&group.nodes, &mut frames) {
        Visit::Halt(Halt::Group {
            depth,
            then: GroupThen::Again { at_ms },
        }) if depth == own => Some(at_ms),
        _ => None,
    }
}

struct Walker<'a, 'p> {
    lane: &'a LanePlan<'p>,
    /// What the `stageStatus` of a condition looks at, and the groups around it.
    section: &'p [Node],
    around: Vec<Frame<'p>>,
    facts: &'a Facts,
    /// When the stage is out of time, in epoch milliseconds; nothing cuts a rollback short.
    deadline_ms: Option<i64>,
    now_ms: i64,
}

/// The groups on the way to a node, from the outside in.
type Frames<'p> = Vec<Frame<'p>>;

fn round(frames: &[Frame<'_>]) -> u32 {
    frames.last().map_or(0, |frame| frame.round)
}

impl<'a, 'p> Walker<'a, 'p> {
    fn new(lane: &'a LanePlan<'p>, facts: &'a Facts, now_ms: i64) -> (Self, Frames<'p>) {
        let frames = level::frames(&lane.groups, facts);
        // The groups around the lane that its section lies in: those that hold it as rollback steps.
        let within =
            |group: &&GroupPlan| std::ptr::eq(group.rollback_steps.as_slice(), lane.section);
        let depth = lane.groups.iter().position(within).map_or(0, |at| at + 1);
        let walker = Self {
            lane,
            section: lane.section,
            around: frames.iter().take(depth).copied().collect(),
            facts,
            deadline_ms: facts.deadline_ms,
            now_ms,
        };
        (walker, frames)
    }

    /// Walks the whole lane. A stage is rolled back group by group first, whatever becomes of each, and then by its own
    /// rollback steps; the statuses are what the groups came to.
    fn visit_lane(&self, frames: &mut Frames<'p>) -> (Visit<'p>, Vec<Status>) {
        let mut statuses = Vec::new();
        if self.lane.lane.walk == Walk::Rollback {
            for way in groups_to_undo(self.lane.stage, self.facts) {
                let Some(group) = way.last() else { continue };
                let mut frames = level::frames(&way, self.facts);
                match self.undo_own(group, &mut frames) {
                    Visit::Through | Visit::Halt(Halt::Failure { .. } | Halt::Group { .. }) => {}
                    open_or_stopped => return (open_or_stopped, statuses),
                }
                statuses.push(self.status_of(&group.rollback_steps, &frames, &Visit::Through));
            }
        }
        (self.visit_all(self.lane.nodes, frames), statuses)
    }

    fn visit_all(&self, nodes: &'p [Node], frames: &mut Frames<'p>) -> Visit<'p> {
        for node in nodes {
            match self.visit(node, frames) {
                Visit::Through => {}
                other => return other,
            }
        }
        Visit::Through
    }

    /// What is known of a node in the round of the groups around it.
    fn fact(&self, id: &NodeId, frames: &[Frame<'p>]) -> Option<&'a NodeFact> {
        let fact = self.facts.nodes.get(id);
        fact.filter(|fact| fact.round >= round(frames))
    }

    fn visit(&self, node: &'p Node, frames: &mut Frames<'p>) -> Visit<'p> {
        let fact = self.fact(node_id(node), frames);
        match (node, fact) {
            (_, None) => self.untouched(node, frames),
            (_, Some(fact)) if fact.status == Status::Skipped => Visit::Through,
            (_, Some(fact)) if fact.undecided => self.failed(node, fact, frames),
            (Node::Step(step), Some(fact)) => {
                match fact.status.is_final() || fact.status == Status::InterventionWaiting {
                    true => self.failed(node, fact, frames),
                    false => Visit::Move(self.open_step(step, fact)),
                }
            }
            (Node::Group(group), Some(fact)) => self.group(node, group, fact, frames),
            (Node::Parallel(parallel), Some(fact)) => self.parallel(node, parallel, fact, frames),
        }
    }

    /// What stops everything that has not begun.
    fn stopping(&self) -> Option<Halt> {
        if self.facts.aborted {
            return Some(Halt::Abort);
        }
        let deadline = self.deadline_ms?;
        (self.now_ms >= deadline).then_some(Halt::Deadline)
    }

    /// What keeps something from beginning.
    fn barred(&self) -> Option<Visit<'p>> {
        if let Some(halt) = self.stopping() {
            return Some(Visit::Halt(halt));
        }
        let until_ms = self.deadline_ms.unwrap_or(i64::MAX);
        let hold = Move::Hold { until_ms };
        self.facts.paused.then_some(Visit::Move(hold))
    }

    fn untouched(&self, node: &'p Node, frames: &[Frame<'p>]) -> Visit<'p> {
        if let Some(barred) = self.barred() {
            return barred;
        }
        let when = when_of(node);
        let opening = Opening::of(node);
        // Attempts of earlier rounds keep their numbers.
        let before = self.facts.nodes.get(node_id(node));
        let number = before.map_or(0, |fact| fact.attempt.saturating_add(1));
        let attempt = Attempt {
            number,
            round: round(frames),
            base: number,
        };
        let start = Move::Start {
            node: opening,
            attempt,
        };
        let beside = self.lane.gives_up_for(node);
        if self.has_failed(beside, &mut frames.to_vec()) {
            return Visit::Move(Move::Skip {
                node,
                attempt,
                reason: "an earlier turn failed, and its loop has onFailure: SkipQueued".to_owned(),
                given_up: true,
            });
        }
        Visit::Move(match node {
            Node::Parallel(parallel) if parallel.each.is_some() => self.unroll(parallel, attempt),
            Node::Parallel(parallel) if parallel.branches.is_empty() => Move::Skip {
                node,
                attempt,
                reason: "it is a loop of no turns".to_owned(),
                given_up: false,
            },
            // A block has no condition; its branches have.
            Node::Parallel(_) => start,
            Node::Step(_) | Node::Group(_) => self.gate(node, when, attempt).unwrap_or(start),
        })
    }

    fn unroll(&self, parallel: &'p ParallelPlan, attempt: Attempt) -> Move<'p> {
        let element = parallel.branches.first();
        let when = element.and_then(|element| when_of(element));
        Move::Unroll {
            parallel,
            attempt,
            unmet: self.unmet(when),
        }
    }

    /// Why the status condition of a node is not met, if it is not.
    fn unmet(&self, when: Option<&When>) -> Option<String> {
        let wanted = when.map_or(WhenStatus::Success, |when| when.status);
        let failed = self.has_failed(self.section, &mut self.around.clone());
        status_mismatch(wanted, failed, "stageStatus")
    }

    /// What the condition of a node demands instead of starting it.
    fn gate(&self, node: &'p Node, when: Option<&'p When>, attempt: Attempt) -> Option<Move<'p>> {
        let skip = |reason, given_up| Move::Skip {
            node,
            attempt,
            reason,
            given_up,
        };
        if let Some(reason) = self.unmet(when) {
            let given_up = when.is_none_or(|when| when.status == WhenStatus::Success);
            return Some(skip(reason, given_up));
        }
        let condition = when?.condition.as_deref()?;
        let number = attempt.number;
        match self.facts.conditions.get(&(node_id(node).clone(), number)) {
            None => Some(Move::Evaluate {
                node,
                attempt,
                condition,
            }),
            Some(true) => None,
            Some(false) => Some(skip(format!("its condition is false: {condition}"), false)),
        }
    }

    /// Whether a step below `nodes` has failed for good.
    fn has_failed(&self, nodes: &'p [Node], frames: &mut Frames<'p>) -> bool {
        nodes.iter().any(|node| {
            let Some(fact) = self.fact(node_id(node), frames) else {
                return false;
            };
            if fact.status.is_good() {
                return false;
            }
            if fact.undecided {
                let over = matches!(self.judge(node, fact, frames), Verdict::Over { .. });
                return fact.status.is_final() && over;
            }
            let below = match node {
                Node::Step(_) => {
                    let over = matches!(self.judge(node, fact, frames), Verdict::Over { .. });
                    return fact.status.is_final() && over;
                }
                Node::Group(group) => {
                    frames.push(level::frame(group, Some(fact), round(frames)));
                    let below = self.has_failed(children(node), frames);
                    frames.pop();
                    below
                }
                Node::Parallel(block) => match self.lane.own_turn(block) {
                    Some(turn) => return self.has_failed(std::slice::from_ref(turn), frames),
                    None => self.has_failed(children(node), frames),
                },
            };
            below || fact.status == Status::Errored
        })
    }

    fn judge(&self, node: &'p Node, fact: &NodeFact, frames: &[Frame<'p>]) -> Verdict {
        let node = Failing::from(Opening::of(node));
        let levels = level::levels(node.strategies, fact.retried(), frames, self.lane.stage);
        level::recorded(self.lane, &levels, self.facts, node, fact, self.now_ms)
    }

    /// A node that has ended, or of whose failure a person is asked: a step, or what could not be decided about.
    fn failed(&self, node: &'p Node, fact: &NodeFact, frames: &[Frame<'p>]) -> Visit<'p> {
        if fact.status.is_good() {
            return Visit::Through;
        }
        if fact.status == Status::Aborted {
            return Visit::Halt(Halt::Abort);
        }
        if fact.status == Status::InterventionWaiting {
            return Visit::Move(self.asked(node, fact, frames));
        }
        let ended = fact.ended_ms.unwrap_or(fact.started_ms);
        match self.judge(node, fact, frames) {
            Verdict::Again(wait) => self.once_more(node, fact, later(ended, wait)),
            // What could not be decided about is itself the group that its own strategies name.
            Verdict::GroupAgain { level: 0, wait } => {
                self.once_more(node, fact, later(ended, wait))
            }
            Verdict::Proceed => match self.barred() {
                Some(barred) => barred,
                None => Visit::Move(Move::Start {
                    node: Opening::of(node),
                    attempt: fact.afresh(),
                }),
            },
            Verdict::GroupAgain { level, wait } => Visit::Halt(Halt::Group {
                depth: depth(frames, level),
                then: GroupThen::Again {
                    at_ms: later(ended, wait),
                },
            }),
            Verdict::Over { halt: None, .. } => Visit::Through,
            // Nothing of it ran.
            Verdict::Over {
                halt: Some(Undo::Group(0)),
                ..
            } => Visit::Halt(Halt::Failure {
                undo: Undo::Nothing,
            }),
            Verdict::Over {
                halt: Some(Undo::Group(level)),
                ..
            } => Visit::Halt(Halt::Group {
                depth: depth(frames, level),
                then: GroupThen::RollBack,
            }),
            Verdict::Over {
                halt: Some(undo), ..
            } => Visit::Halt(Halt::Failure { undo }),
            // Its question was cut short by what stops the stage.
            Verdict::Ask { .. } => Visit::Halt(self.stopping().unwrap_or(Halt::Deadline)),
        }
    }

    /// Another attempt, when its time has come. What was not decided is asked again before anything runs.
    fn once_more(&self, node: &'p Node, fact: &NodeFact, at_ms: i64) -> Visit<'p> {
        match self.retry(Opening::of(node), fact, at_ms) {
            Visit::Move(Move::Start {
                node: opening,
                attempt,
            }) if fact.undecided => Visit::Move(match node {
                Node::Parallel(parallel) => self.unroll(parallel, attempt),
                Node::Step(_) | Node::Group(_) => {
                    let start = Move::Start {
                        node: opening,
                        attempt,
                    };
                    self.gate(node, when_of(node), attempt).unwrap_or(start)
                }
            }),
            visit => visit,
        }
    }

    /// A node whose failure waits for a person.
    fn asked(&self, node: &'p Node, fact: &NodeFact, frames: &[Frame<'p>]) -> Move<'p> {
        let settle = |status| Move::Settle {
            node: node_id(node),
            status,
        };
        match (self.stopping(), self.judge(node, fact, frames)) {
            (Some(Halt::Abort), _) => settle(Status::Aborted),
            (_, Verdict::Over { status, .. }) => settle(status),
            // A question that is cut short ends as a step whose time is up does.
            (Some(_), Verdict::Ask { .. }) => settle(Status::Expired),
            (_, Verdict::Again(_) | Verdict::GroupAgain { .. } | Verdict::Proceed) => {
                settle(level::failed_as(fact))
            }
            (None, Verdict::Ask { until_ms }) => {
                let deadline = self.deadline_ms.unwrap_or(i64::MAX);
                Move::Hold {
                    until_ms: until_ms.min(deadline),
                }
            }
        }
    }

    fn open_step(&self, step: &'p StepPlan, fact: &NodeFact) -> Move<'p> {
        let attempt = fact.attempt;
        let limit = i64::try_from(step.timeout.as_millis()).unwrap_or(i64::MAX);
        let given = self.facts.given.get(&(step.id.clone(), attempt));
        // Inputs of a stage that somebody must start are given before it begins.
        let from_ms = given.copied().unwrap_or(fact.started_ms);
        let from_ms = from_ms.max(fact.started_ms);
        let limit_ms = from_ms.saturating_add(limit);
        let group_ms = level::group_deadline(self.lane, self.facts, &step.id);
        let limits = [Some(limit_ms), group_ms, self.deadline_ms];
        let stopped = level::stopped(self.lane, self.facts, &step.id, attempt);
        // Said in time, it counts however late it is heard.
        let in_time = |said: &Stopped| limits.iter().flatten().all(|limit| said.at_ms < *limit);
        let reason = match (self.stopping(), stopped.filter(in_time)) {
            (Some(Halt::Abort), _) => Some(StopReason::Abort),
            (_, Some(said)) => Some(said.reason),
            (Some(_), None) => Some(StopReason::StageTimeout),
            (None, None) if self.now_ms >= limit_ms => Some(StopReason::StepTimeout),
            (None, None) if group_ms.is_some_and(|limit_ms| self.now_ms >= limit_ms) => {
                Some(StopReason::GroupTimeout)
            }
            (None, None) => stopped.map(|said| said.reason),
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

    /// Another attempt of a step or group, when its time has come.
    fn retry(&self, node: Opening<'p>, fact: &NodeFact, at_ms: i64) -> Visit<'p> {
        let next = fact.again();
        let id = match node {
            Opening::Step(step) => Some(&step.id),
            Opening::Group(group) => Some(&group.id),
            Opening::Parallel(_) => None,
        };
        let said = |id: &NodeId| self.facts.stopped.get(&(id.clone(), next.number));
        let stopped = id.and_then(said);
        match self.barred() {
            // Said in time, it counts however late it is heard. The attempt would not do anything any more.
            Some(Visit::Halt(Halt::Deadline)) if self.is_to_be_undone(stopped) => {
                return Visit::Halt(Halt::Failure { undo: Undo::Stage });
            }
            Some(barred) => return barred,
            None => {}
        }
        // An attempt that is stopped before its time has nothing to wait for.
        Visit::Move(if stopped.is_some() || self.now_ms >= at_ms {
            Move::Start {
                node,
                attempt: next,
            }
        } else {
            let deadline = self.deadline_ms.unwrap_or(i64::MAX);
            Move::Wait {
                until_ms: at_ms.min(deadline),
            }
        })
    }

    /// Whether somebody wanted the stage rolled back before its time was up.
    fn is_to_be_undone(&self, said: Option<&Stopped>) -> bool {
        let in_time = |at_ms| self.deadline_ms.is_none_or(|deadline| at_ms < deadline);
        said.is_some_and(|said| said.reason == StopReason::MarkedForRollback && in_time(said.at_ms))
    }

    /// A group that has begun, from what its nodes say.
    fn group(
        &self,
        node: &'p Node,
        group: &'p GroupPlan,
        fact: &NodeFact,
        frames: &mut Frames<'p>,
    ) -> Visit<'p> {
        let depth = frames.len();
        frames.push(level::frame(group, Some(fact), round(frames)));
        let mut inside = self.visit_all(&group.nodes, frames);
        let own = |halt: Halt| matches!(halt, Halt::Group { depth: of, .. } if of == depth);
        if let Visit::Halt(Halt::Group {
            then: GroupThen::RollBack,
            ..
        }) = inside
            && matches!(inside, Visit::Halt(halt) if own(halt))
        {
            inside = self.undo(group, frames);
        }
        let status = self.status_of(&group.nodes, frames, &inside);
        frames.pop();
        match (fact.status.is_final(), inside) {
            // Its nodes ended before it did: a move would be one that was lost with a crashed lane.
            (true, Visit::Move(_)) => Visit::Halt(Halt::Failure { undo: Undo::Stage }),
            (false, Visit::Move(next)) => Visit::Move(next),
            (false, _) => Visit::Move(self.close(node, status)),
            (true, Visit::Through) => Visit::Through,
            (
                true,
                Visit::Halt(Halt::Group {
                    depth: of,
                    then: GroupThen::Again { at_ms },
                }),
            ) if of == depth => self.retry(Opening::Group(group), fact, at_ms),
            (true, Visit::Halt(halt)) => Visit::Halt(halt),
        }
    }

    /// Rolls back a group that has its place in `frames`: the groups in it first, whatever becomes of each, as in a stage.
    fn undo(&self, group: &'p GroupPlan, frames: &mut Frames<'p>) -> Visit<'p> {
        for way in groups_below(&group.nodes, self.facts) {
            let mut inside = frames.clone();
            for inner in &way {
                let fact = self.fact(&inner.id, &inside);
                inside.push(level::frame(inner, fact, round(&inside)));
            }
            let Some(inner) = way.last() else { continue };
            match self.undo_own(inner, &mut inside) {
                Visit::Through | Visit::Halt(Halt::Failure { .. } | Halt::Group { .. }) => {}
                open_or_stopped => return open_or_stopped,
            }
        }
        self.undo_own(group, frames)
    }

    /// The rollback steps of a group itself.
    fn undo_own(&self, group: &'p GroupPlan, frames: &mut Frames<'p>) -> Visit<'p> {
        let walker = Walker {
            lane: self.lane,
            section: &group.rollback_steps,
            around: frames.clone(),
            facts: self.facts,
            deadline_ms: None,
            now_ms: self.now_ms,
        };
        match walker.visit_all(&group.rollback_steps, frames) {
            Visit::Move(next) => Visit::Move(next),
            Visit::Halt(halt @ (Halt::Abort | Halt::Deadline)) => Visit::Halt(halt),
            // A rollback that fails is not rolled back.
            Visit::Through | Visit::Halt(Halt::Failure { .. } | Halt::Group { .. }) => {
                Visit::Halt(Halt::Failure {
                    undo: Undo::Nothing,
                })
            }
        }
    }

    fn parallel(
        &self,
        node: &'p Node,
        parallel: &'p ParallelPlan,
        fact: &NodeFact,
        frames: &mut Frames<'p>,
    ) -> Visit<'p> {
        let mut open = false;
        let mut halted: Option<Halt> = None;
        for branch in &parallel.branches {
            match self.visit(branch, frames) {
                Visit::Move(_) => open = true,
                Visit::Through => {}
                Visit::Halt(halt) => halted = Some(halted.map_or(halt, |known| known.or(halt))),
            }
        }
        let ended = halted.map_or(Visit::Through, Visit::Halt);
        match (fact.status.is_final(), open) {
            (true, true) => self.lost_branch(fact, frames),
            (true, false) => ended,
            (false, false) => {
                let status = self.status_of(&parallel.branches, frames, &ended);
                Visit::Move(self.close(node, status))
            }
            (false, true) if self.has_joined(parallel, fact) => Visit::Move(Move::Close {
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

    fn has_joined(&self, parallel: &ParallelPlan, fact: &NodeFact) -> bool {
        let key = (parallel.id.clone(), fact.attempt);
        self.facts.joined.contains(&key)
    }

    /// A block that was closed although a branch never ended.
    fn lost_branch(&self, fact: &NodeFact, frames: &[Frame<'p>]) -> Visit<'p> {
        let mut levels = level::levels(&[], u32::MAX, frames, self.lane.stage);
        for level in &mut levels {
            level.retried = u32::MAX;
        }
        let failed = Failed {
            is_group: false,
            refused: &[],
            error: ErrorType::Unknown,
            status: fact.status,
            at_ms: i64::MIN,
            limit_ms: None,
            answer: None,
            now_ms: self.now_ms,
        };
        match strategy::judge(&levels, &failed) {
            Verdict::Over {
                halt: Some(undo), ..
            } => Visit::Halt(Halt::Failure { undo }),
            _ => Visit::Through,
        }
    }

    fn close(&self, node: &'p Node, status: Status) -> Move<'p> {
        let failure = children(node)
            .iter()
            .chain(undoing(node))
            .filter_map(|child| self.facts.nodes.get(node_id(child)))
            .filter(|fact| !fact.status.is_good())
            .find_map(|fact| fact.failure.clone());
        Move::Close {
            node,
            status,
            failure: failure.filter(|_| !status.is_good()),
        }
    }

    fn status_of(&self, nodes: &'p [Node], frames: &[Frame<'p>], visit: &Visit<'p>) -> Status {
        let begun = nodes
            .iter()
            .filter_map(|node| self.fact(node_id(node), frames));
        let begun = begun.map(|fact| fact.status);
        let cut = match visit {
            Visit::Halt(Halt::Abort) => Some(Status::Aborted),
            Visit::Halt(Halt::Deadline) => Some(Status::Expired),
            _ => None,
        };
        worst(begun.chain(cut))
    }
}

fn when_of(node: &Node) -> Option<&When> {
    match node {
        Node::Step(step) => step.when.as_ref(),
        Node::Group(group) => group.when.as_ref(),
        Node::Parallel(_) => None,
    }
}

/// How many groups are around the group that a verdict's level stands for.
fn depth(frames: &[Frame<'_>], level: usize) -> usize {
    frames.len().saturating_sub(level)
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
