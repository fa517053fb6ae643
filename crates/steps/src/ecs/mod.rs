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
pub(crate) mod change;
mod cluster;
mod flags;
pub mod instances;
pub(crate) mod manifest;
mod phases;
mod removal;
mod resize;
pub(crate) mod rollback;
mod rolling_deploy;
mod rolling_rollback;
mod run_task;
mod scale;
mod scaling;
mod service;
mod site;
pub(crate) mod spec;
mod task_definition;
mod task_end;
mod watch;

use slipway_model::status::Failure;

use crate::context::StepContext;

pub(crate) use manifest::{Reader, invalid, kept, once};
pub(crate) use rollback::Replaced;
pub(crate) use spec::{Kind, check, text};

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

/// Command unit that reads the manifests.
pub(crate) const FETCH: &str = "Fetch manifests";
/// Command unit that writes down how to undo.
const PREPARE: &str = "Prepare rollback data";
/// Command unit that changes the service.
const DEPLOY: &str = "Deploy";
/// Command unit of the rollback step.
const ROLLBACK: &str = "Rollback";

/// Writes into a step's log why it failed, if it did.
pub(crate) fn told<T>(
    cx: &mut StepContext<'_>,
    units: &[&'static str],
    result: Result<T, Failure>,
) -> Result<T, Failure> {
    if let Err(failure) = &result {
        let unit = open_unit(cx, units);
        cx.error(unit, &failure.message);
    }
    result
}

/// The unit that a failure belongs to: the one that is open, or the last.
fn open_unit(cx: &StepContext<'_>, units: &[&'static str]) -> &'static str {
    let open = units.iter().find(|name| cx.unit_is_open(name));
    open.or(units.last()).copied().unwrap_or(DEPLOY)
}
