//! The NG response envelope (`ResponseDTO`).

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use slipway_model::Diagnostic;
use uuid::Uuid;

/// An id for messages and logs, new for each answer.
pub(crate) fn correlation_id() -> String {
    Uuid::new_v4().to_string()
}

/// A successful answer: clients read `data`.
pub(crate) fn success(data: Value) -> Response {
    success_with(data, &[])
}

/// A successful answer with what the author of a document should look at, in `metaData.warnings`.
pub(crate) fn success_with(data: Value, warnings: &[Diagnostic]) -> Response {
    let meta = match warnings {
        [] => Value::Null,
        some => json!({"warnings": some.iter().map(warning).collect::<Vec<_>>()}),
    };
    Json(json!({
        "status": "SUCCESS",
        "data": data,
        "metaData": meta,
        "correlationId": correlation_id(),
    }))
    .into_response()
}

/// A warning as answers show it.
pub(crate) fn warning(found: &Diagnostic) -> Value {
    json!({
        "message": found.message,
        "line": found.line,
        "column": found.column,
        "path": found.path,
        "rendered": found.to_string(),
    })
}
