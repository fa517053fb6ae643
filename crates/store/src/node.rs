//! Nodes of runs: each attempt starts once and ends once.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use serde::Deserialize;
use serde_json::Value;
use slipway_model::id::{NodeId, RunId, StageId};
use slipway_model::status::{Failure, Status};

use crate::Store;
use crate::dynamo::{Keys, LARGEST_TRANSACTION, Range, place};
use crate::entity::skipped;
use crate::error::StoreError;
use crate::item::{
    Change, Expression, Item, Row, Write, number, read_json, read_number, read_text, row, text,
};
use crate::key::{self, Key, Table};
use crate::layout::SK;
use crate::record::{NodeRecord, RunRecord, UnitRecord};
use crate::run::{failure, read_status, status};

/// How a node's attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeEnd {
    /// The run.
    pub run: RunId,
    /// The node.
    pub node: NodeId,
    /// The attempt.
    pub attempt: u32,
    /// A final status.
    pub status: Status,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// What expressions may read of it.
    pub outputs: Value,
    /// Conditions of retries that did not hold when it failed.
    pub refused: Vec<String>,
    /// Its command units.
    pub units: Vec<UnitRecord>,
    /// What it saved last; `None` leaves what is there.
    pub progress: Option<Value>,
}

impl Store {
    /// Stores that an attempt of a node has started, or started and ended at once.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] when that attempt has been started before.
    pub async fn start_node(&self, node: &NodeRecord) -> Result<(), StoreError> {
        let (key, item) = self.node_item(node).await?;
        let started = self.put(&key, item, Some(Expression::absent())).await;
        started.map_err(|error| named(error.or_exists(), &node.id, node.attempt))
    }

    /// Stores what an attempt must find again after a wait or a crash.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when that attempt was never started.
    pub async fn save_progress(
        &self,
        run: &RunId,
        node: &NodeId,
        attempt: u32,
        progress: &Value,
    ) -> Result<(), StoreError> {
        let what = describe(node, attempt);
        let change = Change::new(key::node(run, node, attempt))
            .set("progress", self.store_value(&what, progress).await?)
            .when(Expression::present());
        self.change_node(change, node, attempt).await
    }

    /// Notes where a running attempt stands (waiting, for instance), and the delegate that works on it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when that attempt was never started or has ended.
    pub async fn set_node_status(
        &self,
        run: &RunId,
        node: &NodeId,
        attempt: u32,
        to: Status,
        delegate: Option<&str>,
    ) -> Result<(), StoreError> {
        let change = Change::new(key::node(run, node, attempt))
            .set("status", status(to))
            .set_some("delegate", delegate.map(text))
            .when(open());
        self.change_node(change, node, attempt).await
    }

    /// Stores the spec that an attempt goes on with, which was not known when it started.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when that attempt was never started or has ended.
    pub async fn give_spec(
        &self,
        run: &RunId,
        node: &NodeId,
        attempt: u32,
        spec: &Value,
    ) -> Result<(), StoreError> {
        let what = describe(node, attempt);
        let change = Change::new(key::node(run, node, attempt))
            .set("status", status(Status::Running))
            .put("spec", self.some_value(&what, spec).await?)
            .when(open());
        self.change_node(change, node, attempt).await
    }

    /// Stores that an attempt has ended, or that it failed and a person is asked about it
    /// ([`Status::InterventionWaiting`]).
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when that attempt was never started or has ended before.
    pub async fn end_node(&self, end: &NodeEnd) -> Result<(), StoreError> {
        let change = self.end_change(end).await?;
        self.change_node(change, &end.node, end.attempt).await
    }

    /// Stores that one attempt has ended and another has started, together and in one round trip.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the first has ended before or the second was started before.
    pub async fn end_and_start(
        &self,
        ended: &NodeEnd,
        started: Option<&NodeRecord>,
    ) -> Result<(), StoreError> {
        match started {
            None => self.end_node(ended).await,
            Some(started) => {
                self.record_nodes(std::slice::from_ref(ended), std::slice::from_ref(started))
                    .await
            }
        }
    }

    /// Stores ends and starts of attempts of one run, together and in one round trip: all or none.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when one has ended or was started before, [`StoreError::TooLarge`] for
    /// more than 100.
    pub async fn record_nodes(
        &self,
        ended: &[NodeEnd],
        started: &[NodeRecord],
    ) -> Result<(), StoreError> {
        let size = ended.len() + started.len();
        let Some(first) = ended
            .first()
            .map(|e| &e.node)
            .or(started.first().map(|s| &s.id))
        else {
            return Ok(());
        };
        let what = format!("node {first}");
        if size > LARGEST_TRANSACTION {
            return Err(StoreError::TooLarge {
                what,
                size,
                limit: LARGEST_TRANSACTION,
            });
        }
        let mut writes = Vec::with_capacity(size);
        for end in ended {
            writes.push(Write::Change(self.end_change(end).await?));
        }
        for start in started {
            let (key, item) = self.node_item(start).await?;
            writes.push(Write::Create(key, item));
        }
        self.transact(&what, writes).await
    }

    /// The newest attempt of a node, if there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn get_node(
        &self,
        run: &RunId,
        node: &NodeId,
    ) -> Result<Option<NodeRecord>, StoreError> {
        let keys = Keys::Prefix(key::attempts(node));
        let mut range = Range::new(Table::Runs, key::of_run(run), keys);
        range.backward = true;
        range.limit = Some(1);
        match self.query(range).await?.first() {
            Some(item) => self.read_node(item).await.map(Some),
            None => Ok(None),
        }
    }

    /// All attempts of all nodes of a run, or of one of its stages, oldest start first.
    ///
    /// # Errors
    /// When the store cannot be read. A record that cannot be read is an error too: what happens next
    /// is decided from this list.
    pub async fn list_nodes(
        &self,
        run: &RunId,
        stage: Option<&StageId>,
    ) -> Result<Vec<NodeRecord>, StoreError> {
        self.nodes(run, stage, false).await
    }

    /// A run with its stages, and the attempts of the nodes of one of its stages, oldest start first: one round trip for
    /// who needs both. They lie side by side and are read backwards, so that a node is no older than what was said about
    /// the run: who counts the words and then waits hears of all that it did not see.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no run. A node that cannot be read is an error, as in
    /// [`Store::list_nodes`].
    pub async fn get_run_with_nodes(
        &self,
        run: &RunId,
        stage: &StageId,
    ) -> Result<(RunRecord, Vec<NodeRecord>), StoreError> {
        let keys = Keys::Between("node#".to_owned(), "stage#\u{10FFFF}".to_owned());
        let mut range = Range::new(Table::Runs, key::of_run(run), keys);
        range.backward = true;
        // Of what is read here, nodes alone have this attribute.
        let filter = Expression::new("attribute_not_exists(#stage) OR #stage = :stage");
        range.filter = Some(filter.value(":stage", text(stage.as_str())));
        let mut items = self.query(range).await?;
        items.reverse();
        let own = items
            .iter()
            .position(|item| read_text(item, SK) == Some("run"));
        let Some((nodes, [head, rest @ ..])) = own.map(|at| items.split_at(at)) else {
            return Err(StoreError::NotFound {
                what: format!("run {run}"),
            });
        };
        let record = self.read_run(head, rest).await?;
        let mut read = Vec::with_capacity(nodes.len());
        for node in nodes {
            read.push(self.read_node(node).await?);
        }
        read.sort_by_key(|node| node.started_ms);
        Ok((record, read))
    }

    /// Like [`Store::list_nodes`], for showing: a record that cannot be read is left out with a warning.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn show_nodes(&self, run: &RunId) -> Result<Vec<NodeRecord>, StoreError> {
        self.nodes(run, None, true).await
    }

    async fn nodes(
        &self,
        run: &RunId,
        stage: Option<&StageId>,
        lenient: bool,
    ) -> Result<Vec<NodeRecord>, StoreError> {
        let keys = Keys::Prefix("node#".to_owned());
        let mut range = Range::new(Table::Runs, key::of_run(run), keys);
        range.filter = stage
            .map(|stage| Expression::new("#stage = :stage").value(":stage", text(stage.as_str())));
        let mut nodes = Vec::new();
        for item in self.query(range).await? {
            match self.read_node(&item).await {
                Ok(node) => nodes.push(node),
                Err(error @ StoreError::Unreadable { .. }) if lenient => skipped(&item, &error),
                Err(error) => return Err(error),
            }
        }
        nodes.sort_by_key(|node| node.started_ms);
        Ok(nodes)
    }

    async fn change_node(
        &self,
        change: Change,
        node: &NodeId,
        attempt: u32,
    ) -> Result<(), StoreError> {
        let changed = self.change(change, ReturnValue::None).await;
        changed
            .map(drop)
            .map_err(|error| named(error.or_missing(), node, attempt))
    }

    async fn end_change(&self, end: &NodeEnd) -> Result<Change, StoreError> {
        let what = describe(&end.node, end.attempt);
        let asks = end.status == Status::InterventionWaiting;
        let refused = match end.refused.as_slice() {
            [] => None,
            refused => Some(self.store_value(&what, &refused).await?),
        };
        let progress = match &end.progress {
            Some(progress) => Some(self.store_value(&what, progress).await?),
            None => None,
        };
        Ok(Change::new(key::node(&end.run, &end.node, end.attempt))
            .set("status", status(end.status))
            .set(if asks { "asked" } else { "ended" }, number(self.now_ms()))
            .put("failure", failure(&what, end.failure.as_ref())?)
            .put("outputs", self.some_value(&what, &end.outputs).await?)
            .set("units", self.store_value(&what, &end.units).await?)
            .set_some("progress", progress)
            .set_some("refused", refused)
            .when(open()))
    }

    async fn node_item(&self, node: &NodeRecord) -> Result<(Key, Item), StoreError> {
        let key = key::node(&node.run, &node.id, node.attempt);
        let what = describe(&node.id, node.attempt);
        let bare = NodeRecord {
            status: Status::NotStarted,
            ended_ms: None,
            failure: None,
            spec: Value::Null,
            outputs: Value::Null,
            progress: Value::Null,
            units: Vec::new(),
            delegate: None,
            asked_ms: None,
            refused: Vec::new(),
            ..node.clone()
        };
        let units = match node.units.is_empty() {
            true => None,
            false => Some(self.store_value(&what, &node.units).await?),
        };
        let refused = match node.refused.as_slice() {
            [] => None,
            refused => Some(self.store_value(&what, &refused).await?),
        };
        let item = row(&key)
            .with("body", self.store_value(&what, &bare).await?)
            .with("stage", text(node.stage.as_str()))
            .with("status", status(node.status))
            .with_some("ended", node.ended_ms.map(number))
            .with_some("failure", failure(&what, node.failure.as_ref())?)
            .with_some("spec", self.some_value(&what, &node.spec).await?)
            .with_some("outputs", self.some_value(&what, &node.outputs).await?)
            .with_some("progress", self.some_value(&what, &node.progress).await?)
            .with_some("units", units)
            .with_some("delegate", node.delegate.clone().map(text))
            .with_some("refused", refused)
            .with_some("asked", node.asked_ms.map(number));
        Ok((key, item))
    }

    /// Null takes no attribute.
    async fn some_value(
        &self,
        what: &str,
        value: &Value,
    ) -> Result<Option<AttributeValue>, StoreError> {
        match value {
            Value::Null => Ok(None),
            value => self.store_value(what, value).await.map(Some),
        }
    }

    async fn read_node(&self, item: &Item) -> Result<NodeRecord, StoreError> {
        let what = place(item);
        let damaged = |why: &'static str| StoreError::unreadable(&*what, why);
        let mut node: NodeRecord = self
            .load_value(item, "body")
            .await?
            .ok_or_else(|| damaged("it has no body"))?;
        node.status = read_text(item, "status")
            .and_then(read_status)
            .ok_or_else(|| damaged("its status"))?;
        node.ended_ms = read_number(item, "ended");
        node.failure = read_json(&what, item, "failure")?;
        node.spec = self.load_value(item, "spec").await?.unwrap_or_default();
        node.outputs = self.load_value(item, "outputs").await?.unwrap_or_default();
        node.progress = self.load_value(item, "progress").await?.unwrap_or_default();
        node.units = match self.load_value(item, "units").await? {
            Some(units) => units,
            None => units_so_far(&node.progress),
        };
        node.delegate = read_text(item, "delegate").map(str::to_owned);
        node.asked_ms = read_number(item, "asked");
        node.refused = self.load_value(item, "refused").await?.unwrap_or_default();
        Ok(node)
    }
}

/// The command units of a step that has not ended: it keeps them in its progress, with its state. What reads otherwise is
/// left to the step, whose own it is.
fn units_so_far(progress: &Value) -> Vec<UnitRecord> {
    Vec::<UnitRecord>::deserialize(&progress["units"]).unwrap_or_default()
}

/// That an attempt was started and has not ended.
fn open() -> Expression {
    Expression::new("attribute_exists(#pk) AND attribute_not_exists(#ended)")
}

fn describe(node: &NodeId, attempt: u32) -> String {
    format!("attempt {attempt} of node {node}")
}

fn named(error: StoreError, node: &NodeId, attempt: u32) -> StoreError {
    let what = describe(node, attempt);
    match error {
        StoreError::AlreadyExists { .. } => StoreError::AlreadyExists { what },
        StoreError::NotFound { .. } => StoreError::NotFound { what },
        other => other,
    }
}
