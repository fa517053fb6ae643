//! Amazon ECS: the steps of deployment type `ECS`.
//!
//! A deployment writes down how to undo itself before its first change, looks before it changes, and is
//! followed by polling until it is steady. What the user wrote in task and service definitions reaches AWS
//! whole (see [`crate::aws::document`]).

mod change;
mod flags;
pub mod instances;
mod manifest;
mod rollback;
mod rolling_deploy;
mod rolling_rollback;
mod scaling;
mod service;
mod site;
mod task_definition;
mod watch;

pub use rolling_deploy::RollingDeploy;
pub use rolling_rollback::RollingRollback;

/// Command unit that reads the manifests.
const FETCH: &str = "Fetch manifests";
/// Command unit that writes down how to undo.
const PREPARE: &str = "Prepare rollback data";
/// Command unit that changes the service.
const DEPLOY: &str = "Deploy";
/// Command unit of the rollback step.
const ROLLBACK: &str = "Rollback";
