//! An Amazon States Language engine: durable, served as Step Functions' own protocol.
//!
//! The engine runs state machines from one SQLite file. Every transition is committed before anybody
//! can see its effect, so after `kill -9` each execution goes on exactly where it was. Clients speak
//! Step Functions' own JSON protocol to [`Engine::router`]; Lambda functions are reached through
//! [`Lambda`], and other services' actions through [`Services`]. Time comes from [`slipway_clock::Clock`], so a test crosses a three-day timeout at once.
//!
//! How an execution moves:
//!
//! ```text
//! http ──▶ engine ──▶ driver (a task per execution awake) ───▶ run: decides, pure
//!                        │  commit events + branches             │
//!                        ▼                                       ▼
//!                     journal (SQLite, group commit)          effects: invoke, offer, start a child
//! ```
//!
//! - `definition`: the language, parsed and checked when a machine is created.
//! - `template`, `query`, `choice`: what a definition computes, in either query language:
//!   `jsonata`, or `jsonpath` with its `intrinsic` functions.
//! - `run`: one execution's branches and the rules that move them; no I/O and no waiting.
//! - `journal`: what is on disk, and the commits.
//! - `driver`, `effect`, `perform`: carry out what `run` decided, and bring back what happened.
//! - `redrive`: executions that ended without success, opened again.
//! - `rest`: executions that wait for long, of which nothing is kept in memory.
//! - `turns`: how many of those that were just started begin at once.
//! - `items`: what a distributed map reads from S3, batches and writes there.
//! - `test_state`: one state on its own, with mocks in place of the world.
//! - `http`: the API's operations.

mod activity;
mod arn;
mod choice;
mod definition;
mod driver;
mod effect;
mod engine;
mod error;
mod hash;
mod history;
mod http;
mod intrinsic;
mod items;
mod journal;
mod jsonata;
mod jsonpath;
mod perform;
mod query;
mod record;
mod redrive;
mod rest;
mod resume;
mod run;
mod start;
mod sync;
mod template;
mod test_state;
mod time;
mod token;
mod turns;

#[cfg(test)]
mod tests;

pub use crate::effect::{
    Invocation, InvokeSettings, Invoked, Lambda, LambdaError, ServiceCall, Services,
};
pub use crate::engine::{Counters, Engine, EngineConfig};
pub use crate::error::{JournalError, OpenError};
