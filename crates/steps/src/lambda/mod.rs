//! AWS Lambda: the steps of deployment type `AwsLambda`.
//!
//! A deployment publishes what is there as a version before it changes anything: that version is how it finds its
//! way back. Code and configuration are changed one after the other, each awaited; then a version is published, and
//! only when that version is Active do aliases point to it. Every change names the revision that was seen, so that
//! nobody else's change is overwritten unseen.

mod alias;
mod artifact;
mod calls;
mod canary_deploy;
mod deploy;
mod function;
pub mod instances;
mod manifest;
mod ours;
mod package;
mod prepare;
mod ready;
mod release;
mod restore;
mod rollback;
mod sharing;
mod site;
mod snapshot;
mod traffic_shift;
mod undo;
mod undo_alias;

pub use canary_deploy::CanaryDeploy;
pub use deploy::Deploy;
pub use rollback::{CanaryRollback, Rollback};
pub use traffic_shift::TrafficShift;

/// Command unit that writes down how to undo.
const PREPARE: &str = "Prepare Rollback";
/// Command unit that changes the function.
const DEPLOY: &str = "Deploy";
/// Command unit of the steps that undo.
const ROLLBACK: &str = "Rollback";
