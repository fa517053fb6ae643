//! Which state of a ref is the last: what it points at, by all events of it, and what each trigger took of it.

use slipway_model::id::RunId;

use crate::Store;
use crate::error::StoreError;
use crate::intake::{Accept, TriggerPlace, event_key};
use crate::item::{self, Change, Expression, FORMAT, Row, Write, json, read_json, row, text};
use crate::key::{self, Key, Table};
use crate::record::{EventRecord, InRef, NewestRecord, RefRecord};

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
    /// Whether its sender is known by a signature, or is a person who may start runs.
    pub signed: bool,
}

impl RefMove {
    /// Whether the ref points there now, as far as can be told: not where the last event followed on this one, or has a
    /// later commit and follows on another. Such an event was overtaken.
    fn is_last_after(&self, head: &RefRecord) -> bool {
        if self.signed && !head.signed {
            // Anybody may have made that up.
            return true;
        }
        if self.base.as_ref() == Some(&head.commit) {
            return true;
        }
        let dates = self.committed_ms.zip(head.committed_ms);
        head.base.as_ref() != Some(&self.commit) && dates.is_none_or(|(own, last)| own >= last)
    }
}

/// That an event is the newest of a line for a trigger, as [`Store::take_newest`] noted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StillNewest {
    /// The trigger.
    pub place: TriggerPlace,
    /// The line.
    pub line: String,
    /// The event.
    pub event: String,
}

impl StillNewest {
    /// For a transaction that may only be done as long as nothing newer took its place. A change that changes nothing
    /// rather than a `ConditionCheck`, for which roles would need another action.
    pub(crate) fn holds(&self) -> Write {
        let own = || text(&*self.event);
        let same = Expression::new("#event = :event").value(":event", own());
        let change = Change::new(newest_key(&self.place, &self.line)).set("event", own());
        Write::Change(change.when(same))
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

impl Store {
    /// As [`Store::accept_event`], for an event that moves a ref: with it goes what the ref points at.
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
        // What nobody signed moves no ref that a known sender told of: others would be held back by it.
        let may_move = moved.signed || head.as_ref().is_none_or(|head| !head.signed);
        let is_last = overtaken_by.is_none() && may_move;
        let before = head.as_ref().map_or(0, |head| head.number);
        let number = before.saturating_add(1);
        let event = &EventRecord {
            overtaken_by,
            in_ref: is_last.then(|| InRef {
                of: moved.of.clone(),
                number,
            }),
            ..event.clone()
        };
        let mut writes = self.of_event(event).await?;
        if is_last {
            let now = RefRecord {
                commit: moved.commit.clone(),
                base: moved.base.clone(),
                committed_ms: moved.committed_ms,
                event: event.id.clone(),
                signed: moved.signed,
                number,
            };
            let same = match last {
                Some(last) => Expression::new("#event = :last").value(":last", text(&**last)),
                None => Expression::absent(),
            };
            let change = Change::new(key)
                .set("format", item::number(FORMAT))
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
        let key = newest_key(place, of);
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
}

fn ref_key(of: &str) -> Key {
    Key::new(Table::Runs, format!("ref#{}", key::part(of)), "ref")
}

/// Where the newest event of a line is kept that a trigger took.
fn newest_key(place: &TriggerPlace, line: &str) -> Key {
    let partition = format!("newest#{}", place.key());
    Key::new(Table::Runs, partition, key::part(line))
}
