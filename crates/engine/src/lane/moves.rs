//! What a lane can do next, as closed sets.

use slipway_model::status::{Failure, Status};
use slipway_plan::{GroupPlan, Node, ParallelPlan, StepPlan};

/// What a lane does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Move<'p> {
    /// Evaluate the condition of a node, add the answer to the facts, and ask again.
    Evaluate {
        /// The node.
        node: &'p Node,
        /// Its condition.
        condition: &'p str,
    },
    /// Record that a node does not run.
    Skip {
        /// The node.
        node: &'p Node,
        /// Why, for people.
        reason: String,
    },
    /// Record that a step, group or parallel block begins.
    Start {
        /// What begins.
        node: Opening<'p>,
        /// 0 for the first attempt.
        attempt: u32,
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

/// Why a step is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The run was aborted.
    Abort,
    /// The step's own time limit.
    StepTimeout,
    /// The time limit of the stage or of the run.
    StageTimeout,
}

/// Why a lane does not go on to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// A failure whose action ends the stage.
    Failure {
        /// The stage's rollback steps shall run.
        rolls_back: bool,
    },
    /// The run was aborted.
    Abort,
    /// The stage or run is out of time.
    Deadline,
}
