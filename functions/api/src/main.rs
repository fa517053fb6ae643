//! Wires the API to API Gateway and AWS.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use slipway_clock::Clock;
use slipway_engine::runs::Runs;
use slipway_fn_api::{Deps, Intake, router};
use slipway_source::{Source, SourceConfig};
use slipway_steps::aws::oidc::Issuer;
use slipway_steps::aws::{AwsTargets, TargetConfig};
use slipway_steps::secrets::KeptSecrets;
use slipway_store::layout::Layout;
use slipway_store::{SecretStore, Store};

/// API Gateway gives up after 29 s; a stream ends before that and its client comes again.
const STREAM_LIMIT: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> Result<(), lambda_http::Error> {
    tracing_subscriber::fmt()
        .json()
        .with_env_filter("info")
        .with_current_span(false)
        .init();
    let variable = |name: &str| std::env::var(name).with_context(|| format!("reading {name}"));
    let config = aws_config::load_from_env().await;
    let clock = Clock::system();
    let dynamodb = aws_sdk_dynamodb::Client::new(&config);
    let s3 = aws_sdk_s3::Client::new(&config);
    let runs = Runs {
        store: Store::new(dynamodb, s3, Layout::from_env()?, clock.clone()),
        workflows: aws_sdk_sfn::Client::new(&config),
        clock,
        pipeline_machine: variable("SLIPWAY_PIPELINE_MACHINE_ARN")?,
        notify_machine: Some(variable("SLIPWAY_NOTIFY_MACHINE_ARN")?),
        errand_machine: None,
        url: Some(variable("SLIPWAY_URL")?),
    };
    let values = aws_sdk_secretsmanager::Client::new(&config);
    let values = SecretStore::new(values, variable("SLIPWAY_SECRET_PREFIX")?);
    let issuer = Issuer::new(
        &variable("SLIPWAY_URL")?,
        values.clone(),
        runs.clock.clone(),
    );
    let targets =
        AwsTargets::with_issuer(TargetConfig::from_env(), runs.clock.clone(), Some(issuer));
    let sources = Source::new(
        SourceConfig::default(),
        targets.clone(),
        Arc::new(KeptSecrets::new(values.clone(), runs.store.clone())),
        runs.clock.clone(),
    );
    let intake = Intake {
        lambda: aws_sdk_lambda::Client::new(&config),
        function: variable("SLIPWAY_TRIGGER_FUNCTION")?,
    };
    let deps = Deps::new(runs, values, Arc::new(sources), targets, STREAM_LIMIT);
    lambda_http::run(router(deps.with_intake(intake))).await
}
