//! What starts runs by itself. Pure: no store, no network, and time only as an argument.
//!
//! [`Trigger`] is the entity as its YAML says it. A webhook's [`Delivery`] is verified by `signature`, becomes an
//! [`Event`] in `webhook`, and `decide` says whether a trigger starts a run for it, or the [`Refusal`] that people
//! read in the trigger's history.

pub mod condition;
pub mod decide;
mod delivery;
pub mod draft;
mod event;
pub mod facts;
pub mod feed;
mod key;
pub mod payload;
mod refusal;
pub mod repository;
mod schedule;
pub mod signature;
mod text;
mod trigger;
pub mod webhook;

pub use delivery::{Delivery, MOST_BODY};
pub use event::{ChangedFiles, Event, Provider};
pub use refusal::{Outcome, Refusal};
pub use schedule::Schedule;
pub use trigger::{
    Condition, FeedSpec, Operator, RegionSource, Source, SystemEvent, Texts, Trigger, WebhookSpec,
};
