//! The NG response envelope (`ResponseDTO`).

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use uuid::Uuid;

/// An id for messages and logs, new for each answer.
pub(crate) fn correlation_id() -> String {
    Uuid::new_v4().to_string()
}

/// A successful answer: clients read `data`.
pub(crate) fn success(data: Value) -> Response {
    Json(json!({
        "status": "SUCCESS",
        "data": data,
        "metaData": null,
        "correlationId": correlation_id(),
    }))
    .into_response()
}
