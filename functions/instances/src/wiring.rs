//! From the environment of the Lambda function to [`Deps`].

use slipway_fn_lane_common::ConfigError;

use crate::Deps;

/// What `infra/app.yaml` gives to the function: the same as to a lane function, read once.
///
/// # Errors
/// When a variable is missing.
pub async fn wire() -> Result<Deps, ConfigError> {
    let lane = slipway_fn_lane_common::wire(slipway_fn_lane_common::find, None).await?;
    Ok(Deps {
        services: lane.services,
    })
}
