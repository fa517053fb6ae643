//! Wires the function to Lambda.

use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde_json::Value;
use slipway_fn_trigger::{answer, wire};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    tracing_subscriber::fmt()
        .json()
        .with_env_filter("info")
        .with_current_span(false)
        .init();
    let deps = wire().await?;
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| async {
        answer(&deps, event.payload)
            .await
            .map_err(|error| Diagnostic {
                error_type: error.name.to_string(),
                error_message: error.message,
            })
    }))
    .await
}
