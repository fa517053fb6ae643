//! From the environment of the Lambda function to [`Deps`].

use std::env::VarError;

use slipway_clock::Clock;
use slipway_engine::intake::handler::Handler;
use slipway_engine::runs::Runs;
use slipway_store::Store;
use slipway_store::layout::{Layout, LayoutError};

use crate::{Deps, LaneFunctions};

/// The environment of the function is not complete.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A name of the store is missing.
    #[error("reading the names of the store")]
    Layout(#[source] LayoutError),
    /// A variable is missing.
    #[error("reading the environment variable {name}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// Why it cannot be read.
        #[source]
        source: VarError,
    },
}

/// What `infra/app.yaml` gives to the function: read once, when it starts.
pub async fn wire() -> Result<Deps, ConfigError> {
    let config = aws_config::load_from_env().await;
    let clock = Clock::system();
    let store = Store::new(
        aws_sdk_dynamodb::Client::new(&config),
        aws_sdk_s3::Client::new(&config),
        Layout::from_env().map_err(ConfigError::Layout)?,
        clock.clone(),
    );
    Ok(Deps {
        runs: Runs {
            store,
            workflows: aws_sdk_sfn::Client::new(&config),
            clock,
            pipeline_machine: variable("SLIPWAY_PIPELINE_MACHINE_ARN")?,
            notify_machine: Some(variable("SLIPWAY_NOTIFY_MACHINE_ARN")?),
            errand_machine: None,
            // No run is accepted here.
            url: None,
        },
        lanes: LaneFunctions {
            common: variable("SLIPWAY_LANE_COMMON_FUNCTION_ARN")?,
            asg: variable("SLIPWAY_LANE_ASG_FUNCTION_ARN")?,
            ecs: variable("SLIPWAY_LANE_ECS_FUNCTION_ARN")?,
            lambda: variable("SLIPWAY_LANE_LAMBDA_FUNCTION_ARN")?,
        },
        handler: Handler {
            lambda: aws_sdk_lambda::Client::new(&config),
            function: variable("SLIPWAY_TRIGGER_FUNCTION")?,
        },
    })
}

fn variable(name: &'static str) -> Result<String, ConfigError> {
    std::env::var(name).map_err(|source| ConfigError::Variable { name, source })
}
