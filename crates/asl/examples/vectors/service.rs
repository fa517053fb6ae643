//! The engine's API, called as a client calls it.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// A client of one engine.
#[derive(Clone)]
pub struct Service(pub Router);

impl Service {
    /// Calls an operation; the error is the API's own, with `__type` and `message`.
    pub async fn call(&self, operation: &str, request: Value) -> Result<Value, Value> {
        let request = Request::post("/")
            .header("x-amz-target", format!("AWSStepFunctions.{operation}"))
            .body(Body::from(request.to_string()))
            .map_err(|error| json!(error.to_string()))?;
        let Ok(response) = self.0.clone().oneshot(request).await;
        let ok = response.status().is_success();
        let body = to_bytes(response.into_body(), usize::MAX)
            .await
            .map_err(|error| json!(error.to_string()))?;
        let value = serde_json::from_slice(&body).unwrap_or_default();
        if ok { Ok(value) } else { Err(value) }
    }
}

/// An API error in the form of the runner protocol.
pub fn exception(error: &Value) -> Value {
    json!({"exception": {"error": error["__type"], "message": error["message"]}})
}
