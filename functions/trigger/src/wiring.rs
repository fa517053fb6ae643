//! From the environment of the Lambda function to [`Deps`].

use std::env::VarError;
use std::sync::Arc;

use slipway_clock::Clock;
use slipway_engine::runs::Runs;
use slipway_source::{Source, SourceConfig};
use slipway_steps::aws::oidc::Issuer;
use slipway_steps::aws::{AwsTargets, TargetConfig};
use slipway_steps::secrets::KeptSecrets;
use slipway_store::layout::{Layout, LayoutError};
use slipway_store::{SecretStore, Store};

use crate::Deps;

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
///
/// # Errors
/// When a variable is missing or cannot be understood.
pub async fn wire() -> Result<Deps, ConfigError> {
    let variable =
        |name| std::env::var(name).map_err(|source| ConfigError::Variable { name, source });
    let config = aws_config::load_from_env().await;
    let clock = Clock::system();
    let store = Store::new(
        aws_sdk_dynamodb::Client::new(&config),
        aws_sdk_s3::Client::new(&config),
        Layout::from_env().map_err(ConfigError::Layout)?,
        clock.clone(),
    );
    let url = variable("SLIPWAY_URL")?;
    let values = aws_sdk_secretsmanager::Client::new(&config);
    let values = SecretStore::new(values, variable("SLIPWAY_SECRET_PREFIX")?);
    let issuer = Issuer::new(&url, values.clone(), clock.clone());
    let targets = AwsTargets::with_issuer(TargetConfig::from_env(), clock.clone(), Some(issuer));
    let sources = Source::new(
        SourceConfig::default(),
        targets,
        Arc::new(KeptSecrets::new(values, store.clone())),
        clock.clone(),
    );
    Ok(Deps {
        runs: Runs {
            store,
            workflows: aws_sdk_sfn::Client::new(&config),
            clock,
            pipeline_machine: variable("SLIPWAY_PIPELINE_MACHINE_ARN")?,
            notify_machine: Some(variable("SLIPWAY_NOTIFY_MACHINE_ARN")?),
            errand_machine: Some(variable("SLIPWAY_ERRAND_MACHINE_ARN")?),
            url: Some(url),
        },
        sources: Arc::new(sources),
    })
}
