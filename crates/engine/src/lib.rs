//! Decides what a run does next, and the use cases around it.
//!
//! The deciding half ([`lane`], [`stage`], [`strategy`], [`context`], [`check`], [`name`],
//! [`error_name`]) is pure: no
//! clock, no I/O. The use cases take the store.

pub mod abort;
pub mod awaited;
pub mod begin;
pub mod by_hand;
pub mod check;
pub mod context;
pub mod copy;
pub mod directive;
pub mod end;
pub mod error;
pub mod error_name;
pub mod execution_input;
pub mod form;
pub mod freeze;
pub mod gather;
pub mod given;
pub mod intake;
pub mod interrupts;
pub mod kept;
pub mod lane;
pub mod line;
pub mod link;
pub mod name;
pub mod notes;
pub mod notify;
pub mod owed;
pub mod plan_run;
pub mod queue;
pub mod remote;
pub mod rerun;
pub mod retry;
pub mod rollback;
pub mod runs;
pub mod signal;
pub mod stage;
pub mod stage_loop;
pub mod stage_word;
pub mod start;
pub mod strategy;
mod tags;
pub mod undo;
pub mod undone;
pub mod unstarted;
pub mod user_group;
pub mod wake;
pub mod woken;
pub mod written;

#[cfg(test)]
mod fixture;
