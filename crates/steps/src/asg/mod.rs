//! Amazon EC2 Auto Scaling groups: the steps of deployment type `Asg`.
//!
//! A deployment makes a version of the group's launch template, which is named like the group, and brings instances of
//! that version into service: by an instance refresh (rolling), in a group beside it (canary, blue-green), or by
//! moving capacity from group to group (phased). It writes down how to undo itself before its first change, and looks
//! before it changes. What the user wrote reaches AWS whole (see [`crate::aws::document`] and [`crate::aws::query`]).

mod base;
mod before;
mod blue_green;
mod canary_delete;
mod canary_deploy;
mod group;
mod health;
mod hooks;
mod image;
pub mod instances;
mod manifest;
mod name;
mod phased;
mod refresh;
mod removal;
mod rolling_deploy;
mod rolling_prepare;
mod rolling_rollback;
mod scale;
mod scaling;
mod scaling_loss;
mod served;
mod site;
mod spec;
mod steady;
mod steady_state;
mod template;

use crate::deployment::{DEPLOY, FETCH, PREPARE, ROLLBACK, invalid, told, wrong};

pub use blue_green::{BlueGreenDeploy, BlueGreenRollback, BlueGreenSwapService, ShiftTraffic};
pub use canary_delete::CanaryDelete;
pub use canary_deploy::CanaryDeploy;
pub use phased::{PhasedDeploy, Rollback, Setup};
pub use rolling_deploy::RollingDeploy;
pub use rolling_rollback::RollingRollback;
pub use scale::Scale;
pub use steady_state::SteadyState;
