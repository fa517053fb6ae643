//! The ways out: Lambda functions, and the other services that tasks and distributed `Map`s use.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
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

    /// Carries out what a task asks for. Without a word of its own: [`Self::invoke`], whoever asks and whatever else
    /// `lambda:invoke` says.
    async fn carry_out(&self, invocation: Invocation) -> Result<Invoked, LambdaError> {
        let Invocation {
            function, payload, ..
        } = invocation;
        let payload = self.invoke(&function, payload).await?;
        Ok(Invoked::of(payload))
    }
}

/// An invocation that a task asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// ARN of the state machine whose execution asks; of one that is there for a test of a state only, nobody's.
    pub machine: String,
    /// A name or an ARN, as the definition gives it.
    pub function: String,
    /// The event.
    pub payload: Value,
    /// What else `lambda:invoke` says.
    pub settings: InvokeSettings,
}

/// The parameters of `lambda:invoke` beside `FunctionName` and `Payload`, as they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct InvokeSettings {
    /// Version or alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qualifier: Option<String>,
    /// `RequestResponse`, `Event` or `DryRun`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invocation_type: Option<String>,
    /// `Tail` for the end of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_type: Option<String>,
    /// JSON in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_context: Option<String>,
}

/// What a function has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invoked {
    /// Its result; an empty text where nobody waits for one.
    pub payload: Value,
    /// `ExecutedVersion`.
    pub version: Option<String>,
    /// HTTP status of the answer: 200, 202 for an event, 204 for a dry run.
    pub status: u16,
    /// `LogResult`, in base64, where it was asked for.
    pub log: Option<String>,
}

impl Invoked {
    /// The result of a function that has no versions.
    pub fn of(payload: Value) -> Self {
        Self {
            payload,
            version: Some("$LATEST".to_owned()),
            status: 200,
            log: None,
        }
    }

    /// The result of a task `lambda:invoke`.
    pub(crate) fn into_result(self) -> Value {
        let mut result = json!({});
        if let Some(version) = self.version {
            result["ExecutedVersion"] = version.into();
        }
        if let Some(log) = self.log {
            result["LogResult"] = log.into();
        }
        result["Payload"] = self.payload;
        result["StatusCode"] = self.status.into();
        result
    }
}

/// Whoever reaches other services for tasks such as `arn:aws:states:::sqs:sendMessage`, and S3 for the
/// items and results of distributed `Map`s. As with functions, a call may be made again after a crash.
#[async_trait]
pub trait Services: Send + Sync {
    /// Makes a call and gives the answer in the form of Step Functions: members start with a capital.
    async fn call(&self, call: &ServiceCall) -> Result<Value, LambdaError>;

    /// Waits for the end of the job that a call with `.sync` has submitted; gives the job's description.
    async fn finish(&self, call: &ServiceCall, submitted: &Value) -> Result<Value, LambdaError>;
}

/// A call of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceCall {
    /// The service, as `sqs` or `aws-sdk:s3`.
    pub service: String,
    /// The action with the pattern behind it, as `sendMessage.waitForTaskToken`.
    pub action: String,
    /// The evaluated parameters.
    pub parameters: Value,
    /// The name of the state that calls.
    pub state: String,
}

/// Services of an engine that was given none: every call fails, and says so.
pub(crate) struct NoServices;

#[async_trait]
impl Services for NoServices {
    async fn call(&self, call: &ServiceCall) -> Result<Value, LambdaError> {
        Err(LambdaError {
            error_type: "States.TaskFailed".to_owned(),
            message: format!(
                "The engine reaches no service '{}': it was opened without services, and {} cannot be called",
                call.service, call.action
            ),
        })
    }

    async fn finish(&self, call: &ServiceCall, _: &Value) -> Result<Value, LambdaError> {
        self.call(call).await
    }
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

    /// The failure of a task that called another service: error and cause as they came.
    pub(crate) fn into_service_failure(self) -> Failure {
        let cause = Some(self.message).filter(|cause| !cause.is_empty());
        Failure::named(Some(self.error_type), cause)
    }
}
