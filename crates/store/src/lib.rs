//! DynamoDB and S3 layout of Slipway: every access pattern, no Scan.
//!
//! Three tables, each with a string partition key `pk` and a string sort key `sk`. Items carry what keys
//! and conditions need as attributes and the rest as one JSON text, `body`. Parts of keys that users
//! chose are percent-escaped. `<scope>` is `account/org/project`, the last two empty above
//! their level.
//!
//! | pattern | table | key | consistency |
//! |---|---|---|---|
//! | entity by id | entities | `entity#<scope>#<kind>#<parent>`, `<id>` | strong; create if absent, change and delete if the version is the expected one |
//! | entities of a kind in a scope | entities | the same partition, in order of id | strong, per page |
//! | version of a template | entities | `entity#<scope>#template#<template>`, `<versionLabel>` | as an entity |
//! | stable version of a template, templates of a scope | entities | `entity#<scope>#template#`, `<template>`; its `yaml` is the label of the stable version | as an entity; written after the version that it names |
//! | overrides | entities | `entity#<scope>#overrides#<environmentRef>`, `<type>/<serviceRef>/<infraIdentifier>`, the last two empty where they do not apply | as an entity |
//! | overrides by identifier, overrides of a scope | entities | `entity#<scope>#overrides#`, `<identifier>`; its `yaml` is the environmentRef and the key below it, a line each | as an entity; written before what it names |
//! | overrides V1 | entities | `entity#<scope>#serviceOverrides#<environmentRef>`, `<serviceRef>` | as an entity |
//! | input sets and overlays of a pipeline; its triggers | entities | `entity#<scope>#inputSet#<pipeline>`, `<id>`; `entity#<scope>#trigger#<pipeline>`, `<id>` | as an entity |
//! | content of a file by path | entities | `entity#<scope>#file#`, `</path>`; of a folder, which has none, `entity#<scope>#file#folder`, `</path>` | as an entity; written before the file, deleted after it |
//! | files and folders of a scope | entities | `entity#<scope>#file#node`, `<identifier>` | as an entity |
//! | token by hash | entities | `token#<sha256>`, `token` | strong |
//! | blob by digest | runs | `blob#<sha256>`, `blob`; S3 `blobs/<sha256>` above 100 KB | immutable |
//! | next number of a pipeline's runs | runs | `sequence#<scope>#<pipeline>`, `sequence` | atomic; a number may be lost, none is given twice |
//! | runs accepted and not begun, oldest first | runs | `unstarted#<shard>`, `<start>#<run>`; 16 shards by scope | strong; created with the run, deleted as it begins |
//! | event by id | runs | `event#<event>`, `event`; its id is made of what happened, so that one happening is one event | strong; created once, with its delivery and its place in the list of those to handle |
//! | delivery by the sender's id | runs | `delivery#<account>#<delivery>`, `delivery`: the event, and the digest of the body | strong; created with the event |
//! | what a ref points at after its last event | runs | `ref#<ref>`, `ref`; of providers that say no time of a push | strong; changed with the creation of the event; by one that nobody signed only where none was signed |
//! | events accepted and not handled, oldest first | runs | `accepted#<shard>`, `<time>#<event>`; 16 shards by account | strong; deleted when handled |
//! | events that could not be handled, oldest first | runs | `dead#<account>`, `<time>#<event>` | strong; in the place of the entry above |
//! | what became of an event, by trigger | runs | `event#<event>`, `outcome#<trigger>` | strong; written with the history of the trigger |
//! | event history of a trigger, newest first | runs | `history#<trigger>`, `<time>#<event>` | strong |
//! | newest event that a trigger took of a ref | runs | `newest#<trigger>`, `<ref>` | strong; replaced by a newer one only; its run is created while it is the newest |
//! | triggers that listen to a source | entities | `listen#<account>#<source>`, `<trigger>` | strong; written before the trigger, deleted after it |
//! | triggers of all accounts that listen to a source of AWS | entities | `hear#<source>`, `<trigger>` | as above |
//! | how often that list changed | entities | `listening#<account>#<source>`, `changes` | atomic; counted after the list has changed |
//! | what has a time to be looked at | entities | `due#<shard>`, `<what>` | strong; moved on if nobody else did |
//! | what a feed had when it was last asked | entities | `feed#<feed>`, `feed` | strong; changed if nobody else did |
//! | run by id | runs | `run#<run>`, `run` | strong; created once, status changes only from the expected ones |
//! | tags added to a run | runs | `run#<run>`, `run#tags#<digest>`: same query as the run | strong; each set of tags once |
//! | stages of a run | runs | `run#<run>`, `stage#<stage>`: same query as the run | strong |
//! | a run with the nodes of one stage | runs | `run#<run>`, from `node#` to `stage#…`, backwards | strong |
//! | nodes of a run, one node | runs | `run#<run>`, `node#<node>#<attempt>` | strong; an attempt starts once and ends once; end and start are one transaction |
//! | open waits of a run | runs | `run#<run>`, `wait#<node>#<attempt>#<kind>` | strong; one taker |
//! | runs of a scope, newest first | runs | `runs#<scope>`, `<start>#<run>` | list strong (written with the run), each run read by itself |
//! | runs of a pipeline, newest first | runs | `runs#<scope>#<pipeline>`, `<start>#<run>` | the same |
//! | retries of a run | runs | `retries#<first run>`, `<run>`: the run that it was retried by | strong; written with that run, one for each |
//! | delegate task by id | runs | `task#<id>`, `task` | strong; created once, first claim and first result win |
//! | hold of an infrastructure | runs | `hold#<key>`, `hold` | strong; a queue, first come first served |
//! | lease | runs | `lease#<name>`, `lease` | strong; one holder until it ends |
//! | messages that a receiver missed, oldest first | runs | `missed#<receiver>`, `<time>#<message>`; `count`: how many were left out | strong; one transaction for a message that comes and one that goes for it |
//! | log of a unit from a line on | runs | `log#<run>#<node>#<unit>`, `<first line>`; S3 `logs/…` for large chunks | strong, in order of writing |
//! | what was deployed, with its instances | instances | `deployed#<shard>`, `<scope>/<service>/<environment>/<infrastructure>` | strong; the set of instances is replaced as one |
//! | all that was deployed | instances | the 16 shards of it | strong per shard |
//!
//! Values above 4 KB are compressed; above 48 KB compressed they become blobs, so that no item comes near
//! DynamoDB's 400 KB. Every item carries the `format` it was written with; readers accept missing and
//! unknown fields, and a record that cannot be read is left out of lists with a warning.

mod blob;
mod cache;
mod delegate;
mod due;
mod dynamo;
#[cfg(feature = "embedded")]
pub mod embedded;
mod entity;
mod error;
mod hold;
mod hook;
mod instance;
mod intake;
mod item;
mod key;
#[cfg(feature = "embedded")]
mod known;
pub mod layout;
mod lease;
mod line;
mod listening;
mod log;
mod missed;
mod node;
mod order;
mod person;
pub mod record;
mod run;
mod secret;
mod signal;
mod token;
mod unstarted;
mod wait;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slipway_clock::Clock;

pub use due::Due;
pub use error::StoreError;
pub use hold::{Claimed, Holder, Turn};
pub use instance::InstanceFilter;
pub use intake::{Accept, AcceptedEvent, TriggerPlace};
pub use layout::Layout;
pub use line::Claim;
pub use listening::Listeners;
pub use log::LogPage;
pub use missed::{Missed, MissedRecord};
pub use node::NodeEnd;
pub use order::{AcceptOfRef, RefMove, StillNewest};
pub use secret::SecretStore;
pub use token::ValidToken;
pub use unstarted::{Sequence, Unstarted};

/// Plans kept in memory.
const PLANS: usize = 32;
/// Digests of stored blobs kept in memory.
const STORED: usize = 512;

/// The store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    dynamodb: aws_sdk_dynamodb::Client,
    s3: aws_sdk_s3::Client,
    layout: Layout,
    clock: Clock,
    plans: cache::Newest<Arc<slipway_plan::Plan>>,
    /// When blobs were stored by this process, in milliseconds since the epoch.
    stored: cache::Newest<i64>,
    /// Lists of triggers, with how often they had changed.
    listeners: cache::Newest<(u64, Listeners)>,
    lines: log::Ends,
    /// Items of entities, where all writes of them are known.
    #[cfg(feature = "embedded")]
    known: Option<known::Known>,
    writes: AtomicU64,
    reads: AtomicU64,
}

/// Which part of a list is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Most records of the answer; at least 1.
    pub limit: usize,
    /// [`Listing::next`] of the part before; `None` for the first.
    pub after: Option<String>,
}

impl Page {
    /// The first `limit` records.
    pub fn first(limit: usize) -> Self {
        Self { limit, after: None }
    }
}

/// Part of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing<T> {
    /// The records, in the order of the list; those that cannot be read are left out.
    pub items: Vec<T>,
    /// For [`Page::after`] of the next part; `None` when this was the last.
    pub next: Option<String>,
}

impl Inner {
    fn new(
        dynamodb: aws_sdk_dynamodb::Client,
        s3: aws_sdk_s3::Client,
        layout: Layout,
        clock: Clock,
    ) -> Self {
        Self {
            dynamodb,
            s3,
            layout,
            clock,
            plans: cache::Newest::new(PLANS),
            stored: cache::Newest::new(STORED),
            listeners: cache::Newest::new(listening::LISTS),
            lines: log::Ends::default(),
            #[cfg(feature = "embedded")]
            known: None,
            writes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        }
    }
}

impl Store {
    /// A store over these clients.
    pub fn new(
        dynamodb: aws_sdk_dynamodb::Client,
        s3: aws_sdk_s3::Client,
        layout: Layout,
        clock: Clock,
    ) -> Self {
        Self {
            inner: Arc::new(Inner::new(dynamodb, s3, layout, clock)),
        }
    }

    /// As [`Store::new`], where all writes of entities are noted in `entities`: what was read since the last of them is
    /// not read again.
    #[cfg(feature = "embedded")]
    fn knowing(
        dynamodb: aws_sdk_dynamodb::Client,
        s3: aws_sdk_s3::Client,
        layout: Layout,
        clock: Clock,
        entities: Arc<known::Writes>,
    ) -> Self {
        let inner = Inner {
            known: Some(known::Known::new(entities)),
            ..Inner::new(dynamodb, s3, layout, clock)
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Names of the tables and the bucket.
    pub fn layout(&self) -> &Layout {
        &self.inner.layout
    }

    /// Calls that wrote, so far: DynamoDB and S3, a transaction as one.
    pub fn writes(&self) -> u64 {
        self.inner.writes.load(Ordering::Relaxed)
    }

    /// Calls that read, so far: DynamoDB and S3.
    pub fn reads(&self) -> u64 {
        self.inner.reads.load(Ordering::Relaxed)
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.inner.clock.now_ms()
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("layout", &self.inner.layout)
            .finish_non_exhaustive()
    }
}
