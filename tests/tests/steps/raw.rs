//! Requests to the sandbox account that no SDK of these tests makes.

use axum::body::Body;
use axum::http::Request;
use axum::http::request::Builder;
use tower::ServiceExt as _;

use crate::world::World;

/// What the account answers to a request for a service, signed as far as it looks at signatures.
pub(crate) async fn answer(
    world: &World,
    (region, service): (&str, &str),
    request: Builder,
    body: String,
) -> String {
    let signed = format!(
        "AWS4-HMAC-SHA256 Credential=AKIATEST/20260101/{region}/{service}/aws4_request, SignedHeaders=host, Signature=0"
    );
    let request = request.header("authorization", signed);
    let request = request.body(Body::from(body.clone())).expect("a request");
    let router = world.sandbox.router();
    let answer = router.oneshot(request).await.expect("an answer");
    let status = answer.status();
    let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
    let told = String::from_utf8_lossy(&bytes.expect("a body")).into_owned();
    assert!(status.is_success(), "{service} {body}: {told}");
    told
}

/// A request that is posted.
pub(crate) fn post() -> Builder {
    Request::post("/")
}
