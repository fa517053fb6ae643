//! Lambda's own API, as far as Slipway's functions invoke each other: `Invoke` of the type `Event`.

use std::sync::Arc;

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use slipway_asl::Lambda;
use slipway_store::embedded::in_process;

use super::functions::Functions;
use super::{IN_PROCESS, place};

/// A client that invokes the functions of this process.
pub(super) fn client(functions: Arc<Functions>) -> aws_sdk_lambda::Client {
    let http: SharedHttpClient = in_process(router(functions));
    let config = aws_sdk_lambda::Config::builder()
        .behavior_version_latest()
        .http_client(http)
        .endpoint_url(IN_PROCESS)
        .region(aws_sdk_lambda::config::Region::new(place::REGION))
        // Nobody looks at a signature in this process.
        .allow_no_auth()
        .stalled_stream_protection(
            aws_sdk_lambda::config::StalledStreamProtectionConfig::disabled(),
        )
        .build();
    aws_sdk_lambda::Client::from_conf(config)
}

fn router(functions: Arc<Functions>) -> Router {
    Router::new()
        .route("/2015-03-31/functions/{name}/invocations", post(invoke))
        .with_state(functions)
}

/// Answers at once, as Lambda does for the type `Event`, and goes on. What fails is found by the next sweep, as on AWS
/// when an invocation is lost.
async fn invoke(
    State(functions): State<Arc<Functions>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let kind = headers.get("x-amz-invocation-type");
    if kind.and_then(|kind| kind.to_str().ok()) != Some("Event") {
        return StatusCode::BAD_REQUEST;
    }
    let Ok(payload) = serde_json::from_slice(&body) else {
        return StatusCode::BAD_REQUEST;
    };
    tokio::spawn(async move {
        if let Err(why) = functions.invoke(&name, payload).await {
            tracing::warn!(function = name, error = why.message, "an invocation failed");
        }
    });
    StatusCode::ACCEPTED
}
