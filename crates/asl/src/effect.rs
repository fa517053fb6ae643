//! The way out to Lambda functions.

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::run::Failure;

/// Whoever runs Lambda functions.
///
/// After a crash an invocation that was under way is made again, so functions must be idempotent, as
/// Lambda's own contract demands.
#[async_trait]
pub trait Lambda: Send + Sync {
    /// Invokes `function`, a name or an ARN as the definition gives it, and waits for its answer.
    async fn invoke(&self, function: &str, payload: Value) -> Result<Value, LambdaError>;
}

/// The error that a function answered with, or that Lambda answered with in its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error_type}: {message}")]
pub struct LambdaError {
    /// What `ErrorEquals` compares with: the function's `errorType`, or a name such as
    /// `Lambda.ServiceException`.
    pub error_type: String,
    /// The message, without secrets: it becomes part of the history. It may also be the whole error
    /// payload that the function's runtime answered with, an object with `errorMessage`.
    pub message: String,
}

impl LambdaError {
    /// The failure of the task. A function's own error is given as the JSON that Lambda returns;
    /// errors of the service are text.
    pub(crate) fn into_failure(self) -> Failure {
        let Self {
            error_type,
            message,
        } = self;
        let is_service = error_type.starts_with("Lambda.") || error_type.starts_with("States.");
        let is_payload = serde_json::from_str::<Value>(&message)
            .is_ok_and(|payload| payload.get("errorMessage").is_some());
        let cause = if is_service || is_payload {
            message
        } else {
            json!({"errorMessage": message, "errorType": error_type}).to_string()
        };
        Failure::new(error_type, cause)
    }
}
