//! Messages that a receiver was not there for: kept until it is back, in the order of what they tell, and not more than
//! so many of them.

use aws_sdk_dynamodb::types::ReturnValue;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Store;
use crate::dynamo::{Keys, LARGEST_TRANSACTION, Range};
use crate::error::StoreError;
use crate::item::{
    Change, Expression, Item, Row, Write, json, number, read_json, read_number, row,
};
use crate::key::{self, Key, Table};

/// Most messages that are kept for one receiver. Where more come, the oldest are left out and counted.
const MOST_MISSED: usize = 50;

/// Attempts to keep a message while others change the list.
const ATTEMPTS: usize = 10;

/// Attribute that counts what was left out.
const LEFT_OUT: &str = "leftOut";

/// A message that was not taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissedRecord {
    /// The message's own: the same message is kept once.
    pub id: String,
    /// When happened what it tells, in epoch milliseconds.
    pub at_ms: i64,
    /// The message.
    pub message: Value,
}

/// What a receiver missed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Missed {
    /// The newest messages, oldest first.
    pub messages: Vec<MissedRecord>,
    /// How many older ones there were.
    pub left_out: u64,
}

impl Store {
    /// Keeps a message for a receiver. One that is kept already is not kept twice; the oldest one goes where there is no
    /// room.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn keep_missed(
        &self,
        receiver: &str,
        missed: &MissedRecord,
    ) -> Result<(), StoreError> {
        let own = key_of(receiver, missed);
        let mut last = Ok(());
        for _ in 0..ATTEMPTS {
            let known = self.missed(receiver).await?;
            let kept = known.messages;
            if kept.iter().any(|known| known.id == missed.id) {
                return Ok(());
            }
            let item = row(&own).with("body", json("a missed message", missed)?);
            let mut writes = vec![Write::Create(own.clone(), item)];
            let too_many = kept.len().saturating_add(1).saturating_sub(MOST_MISSED);
            for oldest in kept.iter().take(too_many) {
                writes.push(Write::Delete(key_of(receiver, oldest)));
            }
            if too_many > 0 {
                // Whoever made room meanwhile has counted too: the list is read again.
                let same = Expression::new(match known.left_out {
                    0 => "attribute_not_exists(#leftOut) OR #leftOut = :known",
                    _ => "#leftOut = :known",
                });
                let count = Change::new(count(receiver)).add(LEFT_OUT, number(too_many));
                let same = same.value(":known", number(known.left_out));
                writes.push(Write::Change(count.when(same)));
            }
            last = self.transact("a missed message", writes).await;
            match &last {
                Err(StoreError::Conflict { .. } | StoreError::AlreadyExists { .. }) => {}
                _ => return last,
            }
        }
        last
    }

    /// What a receiver missed.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn missed(&self, receiver: &str) -> Result<Missed, StoreError> {
        let items = self
            .query(Range::new(Table::Runs, partition(receiver), Keys::All))
            .await?;
        let mut missed = Missed::default();
        for item in &items {
            missed.left_out += read_number::<u64>(item, LEFT_OUT).unwrap_or_default();
            missed.messages.extend(read(item)?);
        }
        Ok(missed)
    }

    /// Forgets what was read by [`Store::missed`]; what came after it stays.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn forget_missed(&self, receiver: &str, told: &Missed) -> Result<(), StoreError> {
        for part in told.messages.chunks(LARGEST_TRANSACTION) {
            let gone = part.iter().map(|one| Write::Delete(key_of(receiver, one)));
            self.transact("missed messages", gone.collect()).await?;
        }
        if told.left_out > 0 {
            let less = i64::try_from(told.left_out).unwrap_or(i64::MAX);
            let change = Change::new(count(receiver)).add(LEFT_OUT, number(-less));
            self.change(change, ReturnValue::None).await?;
        }
        Ok(())
    }
}

fn read(item: &Item) -> Result<Option<MissedRecord>, StoreError> {
    read_json("a missed message", item, "body")
}

fn partition(receiver: &str) -> String {
    format!("missed#{}", key::part(receiver))
}

fn count(receiver: &str) -> Key {
    Key::new(Table::Runs, partition(receiver), "count")
}

fn key_of(receiver: &str, missed: &MissedRecord) -> Key {
    let (at, id) = (missed.at_ms.max(0), key::part(&missed.id));
    Key::new(Table::Runs, partition(receiver), format!("{at:015}#{id}"))
}
