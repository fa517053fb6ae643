//! Lambda's own API, as far as Slipway's functions invoke each other: `Invoke` of the type `Event`.

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use slipway_store::embedded::{in_process, loopback};

use super::queue::Queue;
use super::{IN_PROCESS, place};

/// A client that invokes the functions of this process.
pub(super) fn client(queue: Queue) -> aws_sdk_lambda::Client {
    let http: SharedHttpClient = in_process(router(queue));
    let mut config = aws_sdk_lambda::Config::builder()
        .behavior_version_latest()
        .http_client(http)
        .endpoint_url(IN_PROCESS)
        .region(aws_sdk_lambda::config::Region::new(place::REGION))
        // Nobody looks at a signature in this process.
        .allow_no_auth()
        .stalled_stream_protection(
            aws_sdk_lambda::config::StalledStreamProtectionConfig::disabled(),
        );
    config.push_interceptor(loopback());
    aws_sdk_lambda::Client::from_conf(config.build())
}

fn router(queue: Queue) -> Router {
    Router::new()
        .route("/2015-03-31/functions/{name}/invocations", post(invoke))
        .with_state(queue)
}

/// Answers at once, as Lambda does for the type `Event`, and goes on. What fails is found by the next sweep, as on AWS
/// when an invocation is lost.
async fn invoke(
    State(queue): State<Queue>,
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
    queue.add(name, payload);
    StatusCode::ACCEPTED
}
