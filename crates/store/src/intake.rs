//! Events that start runs: accepted once each, handled later, kept with what became of them.

use aws_sdk_dynamodb::types::ReturnValue;
use serde::{Deserialize, Serialize};
use slipway_model::id::{AccountId, EntityId, Scope};

use crate::dynamo::{Keys, Range};
use crate::entity::skipped;
use crate::error::StoreError;
use crate::item::{
    Change, Expression, FORMAT, Item, Row, Write, json, number, read_json, read_number, read_text,
    row, text,
};
use crate::key::{self, Key, Table};
use crate::layout::SK;
use crate::record::{EventRecord, FeedRecord, OutcomeRecord};
use crate::{Listing, Page, Store};

/// Which trigger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TriggerPlace {
    /// Its project.
    pub scope: Scope,
    /// Its pipeline.
    pub pipeline: EntityId,
    /// Its `identifier`.
    pub trigger: EntityId,
}

impl TriggerPlace {
    /// A text that no other trigger has: `account/org/project/pipeline/trigger`, each part escaped.
    pub fn key(&self) -> String {
        let (pipeline, trigger) = (self.pipeline.as_str(), self.trigger.as_str());
        let scope = key::scope(&self.scope);
        format!("{scope}/{}/{}", key::part(pipeline), key::part(trigger))
    }
}

/// What became of an event that was offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accept {
    /// It is new, and will be handled.
    New,
    /// It was accepted before: this is its id.
    Known(String),
    /// Another body came with this delivery's id before, for the event of this id. The first stands.
    Altered(String),
}

/// An event that waits to be handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedEvent {
    /// Its id.
    pub event: String,
    /// When it came, epoch milliseconds.
    pub received_ms: i64,
    /// How often handling it failed.
    pub attempts: u32,
    /// Why it failed the last time.
    pub why: Option<String>,
    key: (String, String),
}

impl Store {
    /// Lists of [`Store::list_accepted`] and [`Store::list_due`].
    pub const INTAKE_LISTS: u8 = key::SHARDS;

    /// Accepts an event, once: it is listed until [`Store::handled`].
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn accept_event(&self, event: &EventRecord) -> Result<Accept, StoreError> {
        let writes = self.of_event(event).await?;
        match self.transact(&format!("event {}", event.id), writes).await {
            Ok(()) => Ok(Accept::New),
            Err(StoreError::AlreadyExists { .. } | StoreError::Conflict { .. }) => {
                let known = self.known_delivery(event).await?;
                Ok(known.unwrap_or_else(|| Accept::Known(event.id.clone())))
            }
            Err(error) => Err(error),
        }
    }

    /// Notes that a delivery is one more of an event that is there.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn note_delivery(&self, event: &EventRecord) -> Result<(), StoreError> {
        let Some((key, item)) = delivered(event) else {
            return Ok(());
        };
        match self.put(&key, item, Some(Expression::absent())).await {
            Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn of_event(&self, event: &EventRecord) -> Result<Vec<Write>, StoreError> {
        let own = event_key(&event.id);
        let what = format!("event {}", event.id);
        let body = self.store_value(&what, event).await?;
        let mut writes = vec![
            Write::Create(own.clone(), row(&own).with("body", body)),
            listed(event),
        ];
        writes.extend(delivered(event).map(|(key, item)| Write::Create(key, item)));
        Ok(writes)
    }

    /// The event that a delivery brought the first time.
    pub(crate) async fn known_delivery(
        &self,
        event: &EventRecord,
    ) -> Result<Option<Accept>, StoreError> {
        let Some((key, _)) = delivered(event) else {
            return Ok(None);
        };
        let Some(item) = self.get(&key).await? else {
            return Ok(None);
        };
        let same = read_text(&item, "digest") == Some(&event.digest);
        let first = read_text(&item, "event").map(str::to_owned);
        Ok(first.map(|first| match same {
            true => Accept::Known(first),
            false => Accept::Altered(first),
        }))
    }

    /// An event, if there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn find_event(&self, id: &str) -> Result<Option<EventRecord>, StoreError> {
        let key = event_key(id);
        if key.check().is_err() {
            return Ok(None);
        }
        match self.get(&key).await? {
            Some(item) => self.load_value(&item, "body").await,
            None => Ok(None),
        }
    }

    /// Events of one of [`Store::INTAKE_LISTS`] lists that came before `before_ms` and are not handled, oldest first, at
    /// most `limit`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_accepted(
        &self,
        list: u8,
        before_ms: i64,
        limit: usize,
    ) -> Result<Vec<AcceptedEvent>, StoreError> {
        let range = Range::new(Table::Runs, accepted(list), Keys::All);
        let (items, _) = self.query_page(&range, None, Some(limit)).await?;
        let waiting = items.iter().filter_map(read_accepted);
        Ok(waiting
            .filter(|entry| entry.received_ms < before_ms)
            .collect())
    }

    /// Takes an event off the list: whatever it starts was started.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn handled(&self, event: &EventRecord) -> Result<(), StoreError> {
        self.delete(&accepted_key(event), None).await.map(drop)
    }

    /// Notes that handling an event failed. After `most` failures it goes to those that are given up, and `true` is
    /// answered.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn not_handled(
        &self,
        entry: &AcceptedEvent,
        account: &AccountId,
        why: &str,
        most: u32,
    ) -> Result<bool, StoreError> {
        let (pk, sk) = entry.key.clone();
        let key = Key::new(Table::Runs, pk, sk);
        let attempts = entry.attempts.saturating_add(1);
        if attempts < most {
            let change = Change::new(key)
                .set("attempts", number(attempts))
                .set("why", text(why))
                .when(Expression::present());
            return match self.change(change, ReturnValue::None).await {
                // Somebody else has handled it meanwhile.
                Ok(_) | Err(StoreError::Conflict { .. }) => Ok(false),
                Err(error) => Err(error),
            };
        }
        let dead = dead_key(account, entry.received_ms, &entry.event);
        let item = row(&dead)
            .with("event", text(&*entry.event))
            .with("received", number(entry.received_ms))
            .with("attempts", number(attempts))
            .with("why", text(why));
        let writes = vec![Write::Beside(dead, item), Write::Delete(key)];
        self.transact("an event that cannot be handled", writes)
            .await?;
        Ok(true)
    }

    /// Events of an account that could not be handled, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_dead(&self, account: &AccountId) -> Result<Vec<AcceptedEvent>, StoreError> {
        let range = Range::new(Table::Runs, dead(account), Keys::All);
        let items = self.query(range).await?;
        Ok(items.iter().filter_map(read_accepted).collect())
    }

    /// Lists an event that was given up among those to handle again; `false` when it is not there any more.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn redrive(&self, event: &EventRecord) -> Result<bool, StoreError> {
        let key = dead_key(&event.account, event.received_ms, &event.id);
        if self.get(&key).await?.is_none() {
            return Ok(false);
        }
        let writes = vec![listed(event), Write::Delete(key)];
        self.transact("an event to handle again", writes).await?;
        Ok(true)
    }

    /// Notes what became of an event for a trigger, in the history of the trigger and beside the event. What was noted
    /// before for the two is replaced.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn put_outcome(&self, outcome: &OutcomeRecord) -> Result<(), StoreError> {
        let place = outcome.place.key();
        let beside = Key::new(
            Table::Runs,
            event_partition(&outcome.event),
            format!("outcome#{place}"),
        );
        let (at, event) = (outcome.received_ms.max(0), key::part(&outcome.event));
        let in_history = Key::new(Table::Runs, history(&place), format!("{at:015}#{event}"));
        let body = json("an outcome", outcome)?;
        let write = |key: Key| {
            let change = Change::new(key);
            Write::Change(
                change
                    .set("format", number(FORMAT))
                    .set("body", body.clone()),
            )
        };
        let writes = vec![write(beside), write(in_history)];
        self.transact("what became of an event", writes).await
    }

    /// What became of an event, for each trigger that it was for.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_outcomes(&self, event: &str) -> Result<Vec<OutcomeRecord>, StoreError> {
        let keys = Keys::Prefix("outcome#".to_owned());
        let range = Range::new(Table::Runs, event_partition(event), keys);
        Ok(read_all(&self.query(range).await?))
    }

    /// The history of a trigger, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_history(
        &self,
        place: &TriggerPlace,
        page: Page,
    ) -> Result<Listing<OutcomeRecord>, StoreError> {
        let keys = page.after.map_or(Keys::All, Keys::Behind);
        let mut range = Range::new(Table::Runs, history(&place.key()), keys);
        range.backward = true;
        let (items, start) = self.query_page(&range, None, Some(page.limit)).await?;
        let next = start.and_then(|key| read_text(&key, SK).map(str::to_owned));
        Ok(Listing {
            items: read_all(&items),
            next,
        })
    }

    /// What a feed had when it was last asked.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn find_feed(&self, feed: &str) -> Result<Option<FeedRecord>, StoreError> {
        let Some(item) = self.get(&feed_key(feed)).await? else {
            return Ok(None);
        };
        let record: Option<FeedRecord> = self.load_value(&item, "body").await?;
        let version = read_number(&item, "version").unwrap_or_default();
        Ok(record.map(|record| FeedRecord { version, ..record }))
    }

    /// Notes what a feed has now, if nobody else did since `record.version`.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when somebody did.
    pub async fn put_feed(&self, feed: &str, record: &FeedRecord) -> Result<(), StoreError> {
        let key = feed_key(feed);
        let free = match record.version {
            0 => Expression::absent(),
            version => Expression::new("#version = :expected").value(":expected", number(version)),
        };
        let item = row(&key)
            .with("version", number(record.version.saturating_add(1)))
            .with("body", self.store_value(feed, record).await?);
        self.put(&key, item, Some(free)).await
    }
}

fn read_all(items: &[Item]) -> Vec<OutcomeRecord> {
    let read = items.iter().filter_map(|item| {
        match read_json::<OutcomeRecord>("an outcome", item, "body") {
            Ok(found) => found,
            Err(error) => {
                skipped(item, &error);
                None
            }
        }
    });
    read.collect()
}

fn read_accepted(item: &Item) -> Option<AcceptedEvent> {
    Some(AcceptedEvent {
        event: read_text(item, "event")?.to_owned(),
        received_ms: read_number(item, "received")?,
        attempts: read_number(item, "attempts").unwrap_or_default(),
        why: read_text(item, "why").map(str::to_owned),
        key: (
            read_text(item, crate::layout::PK)?.to_owned(),
            read_text(item, SK)?.to_owned(),
        ),
    })
}

fn event_partition(event: &str) -> String {
    format!("event#{}", key::part(event))
}

pub(crate) fn event_key(event: &str) -> Key {
    Key::new(Table::Runs, event_partition(event), "event")
}

fn delivery_key(account: &AccountId, delivery: &str) -> Key {
    let (account, delivery) = (key::part(account.as_str()), key::part(delivery));
    Key::new(
        Table::Runs,
        format!("delivery#{account}#{delivery}"),
        "delivery",
    )
}

/// The item of a delivery, where the sender gave it an id.
fn delivered(event: &EventRecord) -> Option<(Key, Item)> {
    let key = delivery_key(&event.account, event.delivery.as_ref()?);
    let item = row(&key)
        .with("event", text(&*event.id))
        .with("digest", text(&*event.digest));
    Some((key, item))
}

fn accepted(list: u8) -> String {
    format!("accepted#{list:02}")
}

fn accepted_key(event: &EventRecord) -> Key {
    let list = key::shard(&Scope::account(event.account.clone()));
    let (at, id) = (event.received_ms.max(0), key::part(&event.id));
    Key::new(Table::Runs, accepted(list), format!("{at:015}#{id}"))
}

fn listed(event: &EventRecord) -> Write {
    let key = accepted_key(event);
    let item = row(&key)
        .with("event", text(&*event.id))
        .with("received", number(event.received_ms));
    Write::Beside(key, item)
}

fn dead(account: &AccountId) -> String {
    format!("dead#{}", key::part(account.as_str()))
}

fn dead_key(account: &AccountId, received_ms: i64, event: &str) -> Key {
    let (at, id) = (received_ms.max(0), key::part(event));
    Key::new(Table::Runs, dead(account), format!("{at:015}#{id}"))
}

fn history(trigger: &str) -> String {
    format!("history#{trigger}")
}

fn feed_key(feed: &str) -> Key {
    Key::new(Table::Entities, format!("feed#{}", key::part(feed)), "feed")
}
