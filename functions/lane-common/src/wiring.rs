//! From the environment of a Lambda function to [`Deps`], and from its events to answers.

use std::sync::Arc;

use serde_json::Value;
use slipway_clock::Clock;
use slipway_engine::error_name::ErrorName;
use slipway_engine::runs::Runs;
use slipway_source::{Source, SourceConfig};
use slipway_steps::aws::oidc::Issuer;
use slipway_steps::aws::{AwsTargets, TargetConfig};
use slipway_steps::context::Starts;
use slipway_steps::secrets::{KeptSecrets, SecretSource};
use slipway_steps::{Step, StepServices};
use slipway_store::layout::{Layout, LayoutError};
use slipway_store::{SecretStore, Store};

use crate::{BUDGET, Deps, HandlerError, MOST_TURNS, handle};

/// Variable that gives the first part of the names of users' secrets.
const SECRET_PREFIX: &str = "SLIPWAY_SECRET_PREFIX";

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
        source: std::env::VarError,
    },
}

/// A variable of the environment.
///
/// # Errors
/// When it is missing.
pub fn variable(name: &'static str) -> Result<String, ConfigError> {
    std::env::var(name).map_err(|source| ConfigError::Variable { name, source })
}

/// What `infra/app.yaml` gives to a lane function: read once, when the function starts. `pipeline_machine` is the ARN
/// of the machine of runs, for steps that start some.
pub async fn wire(
    find: fn(&str) -> Option<&'static dyn Step>,
    pipeline_machine: Option<String>,
) -> Result<Deps, ConfigError> {
    let config = aws_config::load_from_env().await;
    let clock = Clock::system();
    let store = Store::new(
        aws_sdk_dynamodb::Client::new(&config),
        aws_sdk_s3::Client::new(&config),
        Layout::from_env().map_err(ConfigError::Layout)?,
        clock.clone(),
    );
    let values = aws_sdk_secretsmanager::Client::new(&config);
    let values = SecretStore::new(values, variable(SECRET_PREFIX)?);
    let runs = Runs {
        store: store.clone(),
        workflows: aws_sdk_sfn::Client::new(&config),
        clock: clock.clone(),
        pipeline_machine: pipeline_machine.unwrap_or_default(),
        notify_machine: Some(variable("SLIPWAY_NOTIFY_MACHINE_ARN")?),
        errand_machine: None,
        url: Some(variable("SLIPWAY_URL")?),
    };
    let issuer = Issuer::new(&variable("SLIPWAY_URL")?, values.clone(), clock.clone());
    let aws = AwsTargets::with_issuer(TargetConfig::from_env(), clock.clone(), Some(issuer));
    let secrets: Arc<dyn SecretSource> = Arc::new(KeptSecrets::new(values, store.clone()));
    let source = SourceConfig::default();
    let sources = Source::new(source, aws.clone(), secrets.clone(), clock.clone());
    let services = StepServices {
        store,
        clock,
        aws,
        secrets,
        starts: Starts {
            runs: runs.clone(),
            sources: Arc::new(sources),
        },
    };
    Ok(Deps {
        runs,
        services,
        find,
        budget: BUDGET,
        turns: MOST_TURNS,
    })
}

/// Answers one event, as Lambda and local mode send it.
pub async fn answer(deps: &Deps, event: Value) -> Result<Value, HandlerError> {
    let event = serde_json::from_value(event).map_err(|error| {
        let message = format!("the event of a lane function cannot be read: {error}");
        HandlerError::new(ErrorName::InvalidRequest, message)
    })?;
    let directive = handle(deps, event).await?;
    serde_json::to_value(directive).map_err(|error| {
        let message = format!("the directive cannot be written: {error}");
        HandlerError::new(ErrorName::Internal, message)
    })
}
