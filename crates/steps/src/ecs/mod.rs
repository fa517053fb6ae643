//! Amazon ECS: the steps of deployment type `ECS`.
//!
//! A deployment writes down how to undo itself before its first change, looks before it changes, and is
//! followed by polling until it is steady. What the user wrote in task and service definitions reaches AWS
//! whole (see [`crate::aws::document`]).

mod basic;
mod beside;
mod blue_green;
mod canary_delete;
mod canary_deploy;
mod change;
mod cluster;
mod divergence;
mod flags;
mod foreign;
pub mod instances;
mod manifest;
mod removal;
mod resize;
mod rollback;
mod rolling_deploy;
mod rolling_rollback;
mod run_task;
mod scale;
mod scaling;
mod scaling_loss;
mod schedule;
mod served;
mod service;
mod site;
mod task_definition;
mod task_end;
mod watch;

use crate::deployment::{DEPLOY, FETCH, PREPARE, ROLLBACK, open_unit, told};

pub use basic::{BasicRollback, ServiceSetup, UpgradeContainer};
pub use blue_green::{
    CreateService as BlueGreenCreateService, Rollback as BlueGreenRollback,
    StandaloneRollback as StandaloneTrafficShiftRollback,
    SwapTargetGroups as BlueGreenSwapTargetGroups, TrafficShift as BlueGreenTrafficShift,
};
pub use canary_delete::CanaryDelete;
pub use canary_deploy::CanaryDeploy;
pub use rolling_deploy::RollingDeploy;
pub use rolling_rollback::RollingRollback;
pub use run_task::RunTask;
pub use scale::Scale;
