//! What has happened to the nodes of a stage.

use std::collections::{BTreeMap, BTreeSet};

use slipway_model::id::NodeId;
use slipway_model::status::{Failure, Status};

use super::moves::StopReason;
use crate::strategy::Answer;

/// What is known about a node, in its newest attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeFact {
    /// 0 for the first attempt.
    pub attempt: u32,
    /// Where it stands.
    pub status: Status,
    /// Epoch milliseconds.
    pub started_ms: i64,
    /// Epoch milliseconds, once ended.
    pub ended_ms: Option<i64>,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// When a person was asked about its failure, in epoch milliseconds.
    pub asked_ms: Option<i64>,
    /// How often the groups around it had been begun again, all counted, when it began.
    pub round: u32,
    /// Its first attempt in that round.
    pub base: u32,
    /// Conditions of retries that did not hold when it failed.
    pub refused: Vec<String>,
    /// Whether its own condition, or what it loops over, could not be evaluated: another attempt asks it again before
    /// anything runs.
    pub undecided: bool,
}

/// An attempt of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// 0 for the first.
    pub number: u32,
    /// As [`NodeFact::round`].
    pub round: u32,
    /// As [`NodeFact::base`].
    pub base: u32,
}

impl NodeFact {
    /// The attempt after this one, in the same round.
    pub(crate) fn again(&self) -> Attempt {
        Attempt {
            number: self.attempt.saturating_add(1),
            round: self.round,
            base: self.base,
        }
    }

    /// The attempt after this one, which counts as the first.
    pub(crate) fn afresh(&self) -> Attempt {
        let number = self.attempt.saturating_add(1);
        Attempt {
            number,
            round: self.round,
            base: number,
        }
    }

    /// How often it was tried again in its round.
    pub(crate) fn retried(&self) -> u32 {
        self.attempt.saturating_sub(self.base)
    }
}

/// A person stopped an attempt of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// How.
    pub reason: StopReason,
    /// When it was said, in epoch milliseconds.
    pub at_ms: i64,
}

/// What a decision may know.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Nodes of the stage that have begun.
    pub nodes: BTreeMap<NodeId, NodeFact>,
    /// Conditions that were evaluated for attempts that have not begun.
    pub conditions: BTreeMap<(NodeId, u32), bool>,
    /// Attempts of parallel blocks whose branches have been walked to their end by child lanes.
    pub joined: BTreeSet<(NodeId, u32)>,
    /// What people said about failures that asked for it, by node and attempt.
    pub answers: BTreeMap<(NodeId, u32), Answer>,
    /// Steps that a person stopped, by node and attempt.
    pub stopped: BTreeMap<(NodeId, u32), Stopped>,
    /// When a step was given the inputs that it had asked for, in epoch milliseconds, by node and attempt: its time
    /// begins then.
    pub given: BTreeMap<(NodeId, u32), i64>,
    /// Nothing new shall begin for now.
    pub paused: bool,
    /// The run shall stop.
    pub aborted: bool,
    /// When the stage or the run is out of time, in epoch milliseconds. `None` for a rollback, which has
    /// only the limits of its steps.
    pub deadline_ms: Option<i64>,
}

impl Facts {
    /// The status of a node, once it has begun.
    pub fn status(&self, id: &NodeId) -> Option<Status> {
        self.nodes.get(id).map(|fact| fact.status)
    }
}

/// The status that several nodes come to together: that of the worst. Skipped nodes, and none at all,
/// count as success; one that never ended counts as an error.
pub fn worst(statuses: impl IntoIterator<Item = Status>) -> Status {
    statuses
        .into_iter()
        .map(|status| match status {
            Status::Skipped => Status::Success,
            other if other.is_final() => other,
            _ => Status::Errored,
        })
        .max_by_key(|status| severity(*status))
        .unwrap_or(Status::Success)
}

fn severity(status: Status) -> u8 {
    match status {
        Status::Success | Status::Skipped => 0,
        Status::IgnoreFailed => 1,
        Status::Expired => 2,
        Status::ApprovalRejected => 3,
        Status::Failed => 4,
        Status::Errored => 5,
        Status::AbortedByFreeze => 6,
        Status::Aborted => 7,
        Status::NotStarted
        | Status::Queued
        | Status::Running
        | Status::AsyncWaiting
        | Status::TimedWaiting
        | Status::ResourceWaiting
        | Status::InterventionWaiting
        | Status::ApprovalWaiting
        | Status::InputWaiting
        | Status::Paused
        | Status::Discontinuing => 5,
    }
}
