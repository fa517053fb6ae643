//! Events that start runs: accepted once each, handled later, kept with what became of them.

use aws_sdk_dynamodb::types::ReturnValue;
use serde::{Deserialize, Serialize};
use slipway_model::id::{AccountId, EntityId, RunId, Scope};

use crate::dynamo::{Keys, Range};
use crate::entity::skipped;
use crate::error::StoreError;
use crate::item::{
    Change, Expression, FORMAT, Item, Row, Write, json, number, read_json, read_number, read_text,
    row, text,
};
use crate::key::{self, Key, Table};
use crate::layout::SK;
use crate::record::{EventRecord, FeedRecord, NewestRecord, OutcomeRecord, RefRecord};
use crate::{Listing, Page, Store};

/// Attribute with the time at which something is due, epoch milliseconds.
const AT: &str = "at";

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

/// What an event makes of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefMove {
    /// Which ref: unlike every other.
    pub of: String,
    /// What it points at afterwards.
    pub commit: String,
    /// What it pointed at before.
    pub base: Option<String>,
    /// What the commit says of its own time, epoch milliseconds.
    pub committed_ms: Option<i64>,
    /// The event before, where it must still be the last one.
    pub after: Option<String>,
}

impl RefMove {
    /// Whether the ref points there now, as far as can be told: not where the last event followed on this one, or has a
    /// later commit and follows on another. Such an event was overtaken.
    fn is_last_after(&self, head: &RefRecord) -> bool {
        if self.base.as_ref() == Some(&head.commit) {
            return true;
        }
        let dates = self.committed_ms.zip(head.committed_ms);
        head.base.as_ref() != Some(&self.commit) && dates.is_none_or(|(own, last)| own >= last)
    }
}

/// What became of an event of a ref that was offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptOfRef {
    /// As for other events.
    Settled(Accept),
    /// An event of this id is there, and this is another delivery; the last event of the ref is told, too.
    Repeated(Option<RefRecord>),
    /// Another event of the ref came meanwhile.
    Moved,
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

/// Something that has a time: a schedule, a feed that is asked from time to time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// What: unique.
    pub what: String,
    /// When, epoch milliseconds.
    pub at_ms: i64,
    /// For whoever handles it.
    pub body: String,
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

    /// The same for an event that moves a ref: with it goes what the ref points at.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn accept_event_of_ref(
        &self,
        event: &EventRecord,
        moved: &RefMove,
    ) -> Result<AcceptOfRef, StoreError> {
        let key = ref_key(&moved.of);
        let head: Option<RefRecord> = match self.get(&key).await? {
            Some(item) => read_json("what a ref points at", &item, "body")?,
            None => None,
        };
        let last = head.as_ref().map(|head| &head.event);
        if moved.after.is_some() && moved.after.as_ref() != last {
            return Ok(AcceptOfRef::Moved);
        }
        let ahead = head.as_ref().filter(|head| !moved.is_last_after(head));
        let overtaken_by = ahead.map(|head| head.event.clone());
        let is_last = overtaken_by.is_none();
        let event = &EventRecord {
            overtaken_by,
            ..event.clone()
        };
        let mut writes = self.of_event(event).await?;
        if is_last {
            let now = RefRecord {
                commit: moved.commit.clone(),
                base: moved.base.clone(),
                committed_ms: moved.committed_ms,
                event: event.id.clone(),
            };
            let same = match last {
                Some(last) => Expression::new("#event = :last").value(":last", text(&**last)),
                None => Expression::absent(),
            };
            let change = Change::new(key)
                .set("format", number(FORMAT))
                .set("event", text(&*event.id))
                .set("body", json("what a ref points at", &now)?);
            writes.push(Write::Change(change.when(same)));
        }
        match self.transact(&format!("event {}", event.id), writes).await {
            Ok(()) => return Ok(AcceptOfRef::Settled(Accept::New)),
            Err(StoreError::AlreadyExists { .. } | StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        if let Some(known) = self.known_delivery(event).await? {
            return Ok(AcceptOfRef::Settled(known));
        }
        match self.get(&event_key(&event.id)).await? {
            Some(_) => Ok(AcceptOfRef::Repeated(head)),
            None => Ok(AcceptOfRef::Moved),
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

    async fn of_event(&self, event: &EventRecord) -> Result<Vec<Write>, StoreError> {
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
    async fn known_delivery(&self, event: &EventRecord) -> Result<Option<Accept>, StoreError> {
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

    /// Notes that a trigger takes a happening of a ref, unless it took a newer one: `Err` is that one. Answers with the
    /// run that it replaces; taking the same again answers the same.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn take_newest(
        &self,
        place: &TriggerPlace,
        of: &str,
        mut newest: NewestRecord,
    ) -> Result<Result<Option<RunId>, NewestRecord>, StoreError> {
        let partition = format!("newest#{}", place.key());
        let key = Key::new(Table::Runs, partition, key::part(of));
        let known = self.get(&key).await?;
        let known: Option<NewestRecord> = match &known {
            Some(item) => read_json("the newest event of a ref", item, "body")?,
            None => None,
        };
        let free = match known {
            Some(known) if known.event == newest.event => return Ok(Ok(known.replaces)),
            Some(known) if known.is_newer_than(&newest) => return Ok(Err(known)),
            Some(known) => {
                newest.follow(&known);
                newest.replaces = Some(known.run);
                Expression::new("#event = :known").value(":known", text(known.event))
            }
            None => Expression::absent(),
        };
        let item = row(&key)
            .with("event", text(&*newest.event))
            .with("body", json("the newest event of a ref", &newest)?);
        self.put(&key, item, Some(free)).await?;
        Ok(Ok(newest.replaces))
    }

    /// Lists a trigger among those that listen to `source`, with what is said of it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn listen(
        &self,
        source: &str,
        place: &TriggerPlace,
        about: &str,
    ) -> Result<(), StoreError> {
        let key = listener(source, place);
        key.check()?;
        let item = row(&key)
            .with("place", json("a listener", place)?)
            .with("about", text(about));
        self.put(&key, item, None).await?;
        self.listening_changed(&place.scope.account, source).await
    }

    /// Takes a trigger off the list of [`Store::listen`].
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn stop_listening(
        &self,
        source: &str,
        place: &TriggerPlace,
    ) -> Result<(), StoreError> {
        self.delete(&listener(source, place), None).await?;
        self.listening_changed(&place.scope.account, source).await
    }

    /// Lists a trigger among those of all accounts that listen to `source`, for events that say nothing of accounts.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn listen_everywhere(
        &self,
        source: &str,
        place: &TriggerPlace,
    ) -> Result<(), StoreError> {
        let key = Key::new(Table::Entities, everywhere(source), place.key());
        key.check()?;
        let item = row(&key).with("place", json("a listener", place)?);
        self.put(&key, item, None).await
    }

    /// Takes a trigger off the list of [`Store::listen_everywhere`].
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn stop_listening_everywhere(
        &self,
        source: &str,
        place: &TriggerPlace,
    ) -> Result<(), StoreError> {
        let key = Key::new(Table::Entities, everywhere(source), place.key());
        self.delete(&key, None).await.map(drop)
    }

    /// The triggers of all accounts that listen to `source`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn listeners_everywhere(
        &self,
        source: &str,
    ) -> Result<Vec<TriggerPlace>, StoreError> {
        let range = Range::new(Table::Entities, everywhere(source), Keys::All);
        let listed = read_listeners(&self.query(range).await?);
        Ok(listed.into_iter().map(|(place, _)| place).collect())
    }

    /// The triggers of an account that listen to `source`, each with what is said of it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn listeners(
        &self,
        account: &AccountId,
        source: &str,
    ) -> Result<Vec<(TriggerPlace, String)>, StoreError> {
        let range = Range::new(Table::Entities, listening(account, source), Keys::All);
        Ok(read_listeners(&self.query(range).await?))
    }

    /// Sets when something is due. `before` is the time that it was due at, where nobody else may have moved it on
    /// meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when somebody has.
    pub async fn put_due(
        &self,
        scope: &Scope,
        due: &Due,
        before: Option<i64>,
    ) -> Result<(), StoreError> {
        let key = due_key(key::shard(scope), &due.what);
        key.check()?;
        let item = row(&key)
            .with("what", text(&*due.what))
            .with(AT, number(due.at_ms))
            .with("body", text(&*due.body));
        let same =
            before.map(|before| Expression::new("#at = :before").value(":before", number(before)));
        self.put(&key, item, same).await
    }

    /// Something that is due some time, if it is there.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn find_due(&self, scope: &Scope, what: &str) -> Result<Option<Due>, StoreError> {
        let found = self.get(&due_key(key::shard(scope), what)).await?;
        Ok(found.as_ref().and_then(read_due))
    }

    /// Forgets something that was due.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn forget_due(&self, scope: &Scope, what: &str) -> Result<(), StoreError> {
        let key = due_key(key::shard(scope), what);
        self.delete(&key, None).await.map(drop)
    }

    /// What is due by `by_ms`, of one of [`Store::INTAKE_LISTS`] lists.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_due(&self, list: u8, by_ms: i64) -> Result<Vec<Due>, StoreError> {
        let range = Range::new(Table::Entities, due(list), Keys::All);
        let items = self.query(range).await?;
        let all = items.iter().filter_map(read_due);
        Ok(all.filter(|due| due.at_ms <= by_ms).collect())
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

fn read_listeners(items: &[Item]) -> Vec<(TriggerPlace, String)> {
    let found = items.iter().filter_map(|item| {
        match read_json::<TriggerPlace>("a listener", item, "place") {
            Ok(place) => {
                let about = read_text(item, "about").unwrap_or_default();
                Some((place?, about.to_owned()))
            }
            Err(error) => {
                skipped(item, &error);
                None
            }
        }
    });
    found.collect()
}

fn read_due(item: &Item) -> Option<Due> {
    Some(Due {
        what: read_text(item, "what")?.to_owned(),
        at_ms: read_number(item, AT)?,
        body: read_text(item, "body")?.to_owned(),
    })
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

fn event_key(event: &str) -> Key {
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

fn ref_key(of: &str) -> Key {
    Key::new(Table::Runs, format!("ref#{}", key::part(of)), "ref")
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

fn listening(account: &AccountId, source: &str) -> String {
    format!(
        "listen#{}#{}",
        key::part(account.as_str()),
        key::part(source)
    )
}

fn everywhere(source: &str) -> String {
    format!("hear#{}", key::part(source))
}

fn listener(source: &str, place: &TriggerPlace) -> Key {
    let partition = listening(&place.scope.account, source);
    Key::new(Table::Entities, partition, place.key())
}

fn due(list: u8) -> String {
    format!("due#{list:02}")
}

fn due_key(list: u8, what: &str) -> Key {
    Key::new(Table::Entities, due(list), key::part(what))
}

fn feed_key(feed: &str) -> Key {
    Key::new(Table::Entities, format!("feed#{}", key::part(feed)), "feed")
}
