//! The steps: one folder per swimlane, one registry.
//!
//! A step is a small state machine over what it saved ([`step::Step::advance`]); the lane loop of the
//! functions calls it, waits where it says so, and calls it again. [`context::StepContext`] is all that a
//! step can touch.

pub mod approval;
pub mod artifact_feed;
pub mod asg;
pub mod aws;
pub mod barrier;
pub mod chained;
pub mod context;
mod criteria;
pub mod custom_approval;
mod custom_artifact;
pub mod delegate;
mod deployment;
pub mod ecs;
pub mod http;
pub mod instances;
pub mod jira;
pub mod lambda;
mod log;
mod names;
pub mod outage;
mod pin_artifacts;
pub mod queue;
pub mod registry;
pub mod secrets;
pub mod service_now;
pub mod shell;
pub mod stage_inputs;
pub mod step;
pub mod ticket;
mod variable;
pub mod wait;

pub use context::patience::advance;
pub use context::{Expressions, StepContext, StepInput, StepServices};
pub use registry::{STEPS, Swimlane, find, runnable, swimlane};
pub use step::{DelegateWork, Progress, Step, Undo};
