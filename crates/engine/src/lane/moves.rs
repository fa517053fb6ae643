//! What a lane can do next, as closed sets.

use slipway_model::id::NodeId;
use slipway_model::status::{Failure, Status};
use slipway_plan::{GroupPlan, Node, ParallelPlan, StepPlan};

use super::facts::Attempt;
use crate::strategy::Undo;

/// What a lane does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Move<'p> {
    /// Evaluate the condition of a node, add the answer to the facts, and ask again.
    Evaluate {
        /// The node.
        node: &'p Node,
        /// Its attempt that would begin.
        attempt: Attempt,
        /// Its condition.
        condition: &'p str,
    },
    /// Record that a node does not run.
    Skip {
        /// The node.
        node: &'p Node,
        /// Its attempt that does not.
        attempt: Attempt,
        /// Why, for people.
        reason: String,
        /// Whether it would run if nothing had failed before it.
        given_up: bool,
    },
    /// Record that a step, group or parallel block begins.
    Start {
        /// What begins.
        node: Opening<'p>,
        /// Which attempt of it.
        attempt: Attempt,
    },
    /// Take a loop apart that goes over what the run brings forth: record its turns with the start of its block, read
    /// the plan again, and ask again.
    Unroll {
        /// The block.
        parallel: &'p ParallelPlan,
        /// Its attempt that begins.
        attempt: Attempt,
        /// Why none of its turns would run, if none would: what it goes over need not be known then.
        unmet: Option<String>,
    },
    /// Let a step that has begun go on.
    Continue {
        /// The step.
        step: &'p StepPlan,
        /// Its attempt.
        attempt: u32,
    },
    /// Stop a step early and record its end.
    Stop {
        /// The step.
        step: &'p StepPlan,
        /// Its attempt.
        attempt: u32,
        /// Why.
        reason: StopReason,
    },
    /// Record what a person's answer, or none in time, makes of a node that had failed.
    Settle {
        /// The node.
        node: &'p NodeId,
        /// How it ended.
        status: Status,
    },
    /// Record the end of a group or parallel block.
    Close {
        /// The group or block.
        node: &'p Node,
        /// How it ended.
        status: Status,
        /// Why it failed, if it did.
        failure: Option<Failure>,
    },
    /// Walk the branches of a parallel block in child lanes.
    Fork {
        /// The block.
        parallel: &'p ParallelPlan,
    },
    /// Nothing to do before this time, in epoch milliseconds.
    Wait {
        /// Until when.
        until_ms: i64,
    },
    /// Nothing to do before this time, in epoch milliseconds, or before a person says something.
    Hold {
        /// Until when.
        until_ms: i64,
    },
    /// The lane has ended.
    Done {
        /// How.
        status: Status,
    },
}

/// Something that begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Opening<'p> {
    /// A step.
    Step(&'p StepPlan),
    /// A step group.
    Group(&'p GroupPlan),
    /// A parallel block.
    Parallel(&'p ParallelPlan),
}

impl<'p> Opening<'p> {
    /// A node of the plan.
    pub fn of(node: &'p Node) -> Self {
        match node {
            Node::Step(step) => Self::Step(step),
            Node::Group(group) => Self::Group(group),
            Node::Parallel(parallel) => Self::Parallel(parallel),
        }
    }
}

/// Why a step is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The run was aborted.
    Abort,
    /// The step's own time limit.
    StepTimeout,
    /// The time limit of a step group around it.
    GroupTimeout,
    /// The time limit of the stage or of the run.
    StageTimeout,
    /// A person marked it as failed.
    MarkedAsFailed,
    /// A person let it expire.
    MadeToExpire,
    /// A person wants its stage rolled back.
    MarkedForRollback,
}

/// Why a lane does not go on to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// A failure whose action ends the stage.
    Failure {
        /// What is undone.
        undo: Undo,
    },
    /// A failure whose action ends a group around it for now.
    Group {
        /// How many groups are around that group.
        depth: usize,
        /// What happens to the group.
        then: GroupThen,
    },
    /// The run was aborted.
    Abort,
    /// The stage or run is out of time.
    Deadline,
}

/// What happens to a group in which a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupThen {
    /// It begins again at this time, in epoch milliseconds.
    Again {
        /// The time.
        at_ms: i64,
    },
    /// Its rollback steps run.
    RollBack,
}

impl Halt {
    /// Of two, the one that counts.
    pub(crate) fn or(self, other: Self) -> Self {
        let rank = |halt: Self| match halt {
            Self::Deadline => (0, 0),
            Self::Failure {
                undo: Undo::Nothing | Undo::Group(_),
            } => (1, 0),
            // The outermost group takes the others with it.
            Self::Group { depth, .. } => (2, usize::MAX - depth),
            Self::Failure { undo: Undo::Stage } => (3, 0),
            Self::Failure { undo: Undo::Run } => (4, 0),
            Self::Abort => (5, 0),
        };
        if rank(other) > rank(self) {
            other
        } else {
            self
        }
    }
}
