//! Records of nodes, as they begin and end.

use serde_json::Value;
use slipway_engine::lane::{Attempt, Opening};
use slipway_model::id::{EntityId, LaneId, NodeId, RunId, StageId};
use slipway_model::status::{Failure, Status};
use slipway_plan::Node;
use slipway_store::record::NodeRecord;
use slipway_store::{NodeEnd, Store, StoreError};

/// Most records that are written at once; DynamoDB's limit for a transaction is 100.
const MOST_AT_ONCE: usize = 90;

/// What has happened to nodes and is not written yet.
#[derive(Default)]
pub(crate) struct Unwritten {
    ended: Vec<NodeEnd>,
    started: Vec<NodeRecord>,
}

impl Unwritten {
    pub(crate) fn starts(&mut self, record: NodeRecord) {
        self.started.push(record);
    }

    /// One transaction cannot touch an item twice: what started here starts as ended, and of two ends, as of a failure
    /// that a person would be asked about if there were time, the last one counts.
    pub(crate) fn ends(&mut self, record: NodeRecord) {
        let same =
            |known: &&mut NodeRecord| known.id == record.id && known.attempt == record.attempt;
        if let Some(started) = self.started.iter_mut().find(same) {
            *started = record;
            return;
        }
        let end = NodeEnd {
            run: record.run,
            node: record.id,
            attempt: record.attempt,
            status: record.status,
            failure: record.failure,
            outputs: record.outputs,
            refused: record.refused,
            units: record.units,
            progress: (!record.progress.is_null()).then_some(record.progress),
        };
        let same = |known: &&mut NodeEnd| known.node == end.node && known.attempt == end.attempt;
        match self.ended.iter_mut().find(same) {
            Some(known) => *known = end,
            None => self.ended.push(end),
        }
    }

    /// Puts a record in the place of that of an attempt that has started and is not written yet; false where none is.
    pub(crate) fn restates(&mut self, record: &NodeRecord) -> bool {
        let same =
            |known: &&mut NodeRecord| known.id == record.id && known.attempt == record.attempt;
        let started = self.started.iter_mut().find(same);
        started.map(|started| *started = record.clone()).is_some()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.ended.len() + self.started.len() >= MOST_AT_ONCE
    }

    pub(crate) async fn write(&self, store: &Store) -> Result<(), StoreError> {
        match (self.ended.as_slice(), self.started.as_slice()) {
            ([], []) => Ok(()),
            ([ended], []) => store.end_node(ended).await,
            ([], [started]) => store.start_node(started).await,
            (ended, started) => store.record_nodes(ended, started).await,
        }
    }
}

/// Type of the record of a step group.
const GROUP: &str = "STEP_GROUP";

/// Type of the record of a parallel block.
const PARALLEL: &str = "PARALLEL";

/// Whether a type of node runs nothing by itself.
pub(crate) fn is_container(node_type: &str) -> bool {
    node_type == GROUP || node_type == PARALLEL
}

/// Which lane of which run writes.
pub(crate) struct Writer<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) stage: &'a StageId,
    pub(crate) lane: LaneId,
    pub(crate) now_ms: i64,
}

/// What the record says of a node beside its state.
struct Label<'p> {
    id: &'p NodeId,
    identifier: EntityId,
    name: &'p str,
    node_type: &'p str,
}

impl Writer<'_> {
    /// The record of something that begins.
    pub(crate) fn begins(&self, node: Opening<'_>, attempt: Attempt, spec: Value) -> NodeRecord {
        let label = match node {
            Opening::Step(step) => Label {
                id: &step.id,
                identifier: step.identifier.clone(),
                name: &step.name,
                node_type: &step.step_type,
            },
            Opening::Group(group) => Label {
                id: &group.id,
                identifier: group.identifier.clone(),
                name: &group.name,
                node_type: GROUP,
            },
            Opening::Parallel(parallel) => Label {
                id: &parallel.id,
                identifier: EntityId::new(last_part(&parallel.id)),
                name: "parallel",
                node_type: PARALLEL,
            },
        };
        self.record(&label, attempt, spec)
    }

    /// The record of a node that ends without having run.
    pub(crate) fn ends_unrun(
        &self,
        node: &Node,
        attempt: Attempt,
        status: Status,
        failure: Option<Failure>,
    ) -> NodeRecord {
        let opening = match node {
            Node::Step(step) => Opening::Step(step),
            Node::Group(group) => Opening::Group(group),
            Node::Parallel(parallel) => Opening::Parallel(parallel),
        };
        NodeRecord {
            status,
            failure,
            ended_ms: Some(self.now_ms),
            ..self.begins(opening, attempt, Value::Null)
        }
    }

    fn record(&self, label: &Label<'_>, attempt: Attempt, spec: Value) -> NodeRecord {
        NodeRecord {
            run: self.run.clone(),
            id: label.id.clone(),
            stage: self.stage.clone(),
            lane: self.lane.clone(),
            attempt: attempt.number,
            identifier: label.identifier.clone(),
            name: label.name.to_owned(),
            node_type: label.node_type.to_owned(),
            status: Status::Running,
            started_ms: self.now_ms,
            ended_ms: None,
            failure: None,
            spec,
            outputs: Value::Null,
            progress: Value::Null,
            units: Vec::new(),
            delegate: None,
            asked_ms: None,
            round: attempt.round,
            base: attempt.base,
            refused: Vec::new(),
        }
    }
}

fn last_part(id: &NodeId) -> &str {
    id.as_str().rsplit('.').next().unwrap_or(id.as_str())
}
