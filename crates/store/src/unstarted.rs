//! Runs that were accepted and have not begun: listed until they do, so that none is lost when starting one fails, and
//! none overtakes another.

use slipway_model::id::{EntityId, RunId, Scope};
use slipway_model::status::Status;

use crate::Store;
use crate::dynamo::{Keys, Range};
use crate::error::StoreError;
use crate::item::{Change, Expression, FORMAT, Item, Row, Write, number, read_text, row, text};
use crate::key::{self, Key, Table};
use crate::layout::SK;
use crate::record::{RunRecord, StageSummary};
use crate::run::status;

/// Attribute of a pipeline's sequence: runs of it wait for their start.
pub(crate) const BEHIND: &str = "behind";

/// The number of a new run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// 1, 2, ….
    pub number: u64,
    /// Earlier runs of the pipeline wait for their start; this one must not overtake them.
    pub behind: bool,
}

/// A run that has not begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unstarted {
    /// The run.
    pub run: RunId,
    /// Where it stands in the list.
    key: (String, String),
    /// Partition of the sequence of its pipeline.
    sequence: String,
}

impl Store {
    /// How many lists of runs that have not begun there are; [`Store::shard_of`] tells which is a scope's.
    pub const UNSTARTED_LISTS: u8 = key::SHARDS;

    /// The list that the runs of a scope are in.
    pub fn shard_of(scope: &Scope) -> u8 {
        key::shard(scope)
    }

    /// Runs of one list that were accepted before this time (epoch milliseconds) and have not begun, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_unstarted(
        &self,
        shard: u8,
        before_ms: i64,
        limit: usize,
    ) -> Result<Vec<Unstarted>, StoreError> {
        let keys = Keys::Between("0".to_owned(), format!("{:015}", before_ms.max(0)));
        let mut range = Range::new(Table::Runs, key::unstarted(shard), keys);
        range.limit = Some(limit);
        let pk = &range.pk.clone();
        let items = self.query(range).await?;
        let read = |item: &Item| {
            Some(Unstarted {
                run: RunId::new(read_text(item, "run")?),
                key: (pk.clone(), read_text(item, SK)?.to_owned()),
                sequence: read_text(item, "sequence")?.to_owned(),
            })
        };
        Ok(items.iter().filter_map(read).collect())
    }

    /// Takes a run off the list, which has begun or never will.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn forget_unstarted(&self, unstarted: &Unstarted) -> Result<(), StoreError> {
        let (pk, sk) = unstarted.key.clone();
        let key = Key::new(Table::Runs, pk, sk);
        self.delete(&key, None).await.map(drop)
    }

    /// Notes that a run has begun, and takes it off the list of those that have not. With `first`, the stage that begins
    /// with it, this is done once: nobody who comes late may write over what became of the stage.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it has ended, or, with `first`, when it has begun.
    pub async fn begin_run(
        &self,
        run: &RunRecord,
        first: Option<&StageSummary>,
    ) -> Result<(), StoreError> {
        let new = status(Status::NotStarted);
        let open = match first {
            Some(_) => Expression::new("#status = :new").value(":new", new),
            None => Expression::new("#status IN (:new, :running)")
                .value(":new", new)
                .value(":running", status(Status::Running)),
        };
        let change = Change::new(key::run(&run.id))
            .set("status", status(Status::Running))
            .when(open);
        let listed = key::unstarted_run(&run.scope, run.started_ms, &run.id);
        let mut writes = vec![Write::Change(change), Write::Delete(listed)];
        if let Some(stage) = first {
            let key = key::stage(&run.id, &stage.id);
            let body = self.store_value(&key.what(), stage).await?;
            let format = number(FORMAT);
            let stage = Change::new(key).set("format", format).set("body", body);
            writes.push(Write::Change(stage));
        }
        self.transact(&format!("run {}", run.id), writes).await
    }

    /// Notes that a pipeline has runs which could not be started.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn fall_behind(&self, scope: &Scope, pipeline: &EntityId) -> Result<(), StoreError> {
        let change = Change::new(key::sequence(scope, pipeline)).set(BEHIND, number(1));
        let none = aws_sdk_dynamodb::types::ReturnValue::None;
        self.change(change, none).await.map(drop)
    }

    /// Notes that no run of the pipeline of `unstarted` waits for its start any more.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn catch_up(&self, unstarted: &Unstarted) -> Result<(), StoreError> {
        let key = Key::new(Table::Runs, unstarted.sequence.clone(), "sequence");
        let change = Change::new(key).remove(BEHIND);
        let none = aws_sdk_dynamodb::types::ReturnValue::None;
        self.change(change, none).await.map(drop)
    }
}

/// The entry of a new run.
pub(crate) fn unstarted(run: &RunRecord) -> Write {
    let key = key::unstarted_run(&run.scope, run.started_ms, &run.id);
    let sequence = key::sequence(&run.scope, &run.pipeline);
    let item = row(&key)
        .with("run", text(run.id.as_str()))
        .with("sequence", text(sequence.pk));
    Write::Beside(key, item)
}
