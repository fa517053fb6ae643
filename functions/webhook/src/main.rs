//! Wires webhooks to API Gateway and AWS.

use anyhow::Context as _;
use slipway_clock::Clock;
use slipway_engine::runs::Runs;
use slipway_fn_webhook::{Deps, router};
use slipway_store::layout::Layout;
use slipway_store::{SecretStore, Store};

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
        // Nothing is started here, and the role does not permit it.
        workflows: aws_sdk_sfn::Client::new(&config),
        clock,
        pipeline_machine: String::new(),
        notify_machine: None,
        errand_machine: None,
        url: Some(variable("SLIPWAY_URL")?),
    };
    let values = aws_sdk_secretsmanager::Client::new(&config);
    let values = SecretStore::new(values, variable("SLIPWAY_SECRET_PREFIX")?);
    let lambda = aws_sdk_lambda::Client::new(&config);
    let function = variable("SLIPWAY_TRIGGER_FUNCTION")?;
    lambda_http::run(router(Deps::new(runs, values, lambda, function))).await
}
