//! What has happened to the nodes of a stage.

use std::collections::{BTreeMap, BTreeSet};

use slipway_model::id::NodeId;
use slipway_model::status::{Failure, Status};

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
}

/// What a decision may know.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Nodes of the stage that have begun.
    pub nodes: BTreeMap<NodeId, NodeFact>,
    /// Conditions that were evaluated for nodes that have not begun.
    pub conditions: BTreeMap<NodeId, bool>,
    /// Parallel blocks whose branches have been walked to their end by child lanes.
    pub joined: BTreeSet<NodeId>,
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
