//! Answers from outside, as a run takes them.

use serde_json::Value;

/// What somebody says about a task with its token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// `SendTaskSuccess`.
    Success(Value),
    /// `SendTaskFailure`.
    Failure {
        error: Option<String>,
        cause: Option<String>,
    },
}
