//! The function of Auto Scaling lanes: the lane loop of `lane-common` with the steps of the Auto Scaling swimlane,
//! in a function of its own because its role may assume the connectors' roles.

pub use slipway_fn_lane_common::{ConfigError, Deps, Event, HandlerError, answer, handle, wire};

use slipway_steps::Step;

/// The steps of Auto Scaling lanes: those that run everywhere, and those of the deployment type Asg.
pub fn find(step_type: &str) -> Option<&'static dyn Step> {
    let types = slipway_steps::registry::deployment_types(step_type);
    let here = types.is_empty() || types.contains(&"Asg");
    here.then(|| slipway_steps::find(step_type)).flatten()
}
