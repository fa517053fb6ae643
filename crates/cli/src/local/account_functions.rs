//! The functions of the sandbox account, as state machines of local mode invoke them.
//!
//! Errors are named as Step Functions names them: by the exception of Lambda behind `Lambda.`, with the text of the SDK for
//! Java, and by the `errorType` of a function's own error (recordings of AWS, `shared/asl/vectors`).

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::config::{Region, StalledStreamProtectionConfig};
use aws_sdk_lambda::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_lambda::operation::RequestId as _;
use aws_sdk_lambda::operation::invoke::{InvokeError, InvokeOutput};
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::{InvocationType, LogType};
use serde_json::Value;
use slipway_asl::{Invocation, Invoked, LambdaError};
use slipway_clock::Clock;
use slipway_sandbox::Sandbox;
use slipway_store::embedded::in_process;

use super::{IN_PROCESS, place};

/// How long a machine waits for a function that is still being created, and how long between two looks. On AWS such an
/// invocation fails; here a client creates a function and starts a machine within less than a blink.
const CREATION: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

/// Invokes functions of the sandbox account.
pub(super) struct AccountFunctions {
    lambda: Client,
    clock: Clock,
}

impl AccountFunctions {
    /// Of this account.
    pub(super) fn new(sandbox: &Sandbox, clock: Clock) -> Self {
        let config = aws_sdk_lambda::Config::builder()
            .behavior_version_latest()
            .http_client(in_process(sandbox.router()))
            .endpoint_url(IN_PROCESS)
            .region(Region::new(place::REGION))
            .credentials_provider(Credentials::new(
                "slipway",
                "slipway-local",
                None,
                None,
                "local",
            ))
            // What is to be tried again is for the machine's retriers to say.
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build();
        Self {
            lambda: Client::from_conf(config),
            clock,
        }
    }

    /// Invokes one.
    pub(super) async fn invoke(&self, invocation: &Invocation) -> Result<Invoked, LambdaError> {
        let until = self.clock.now() + CREATION;
        loop {
            match self.call(invocation).await {
                Err(error) if is_pending(&error) && self.clock.now() < until => {
                    self.clock.sleep(LOOK).await;
                }
                Err(error) => return Err(refused(&error)),
                Ok(answer) => return answered(answer),
            }
        }
    }

    async fn call(&self, invocation: &Invocation) -> Result<InvokeOutput, SdkError<InvokeError>> {
        let settings = &invocation.settings;
        let kind = settings.invocation_type.as_deref();
        let log = settings.log_type.as_deref();
        let call = self.lambda.invoke().function_name(&invocation.function);
        let call = call
            .payload(Blob::new(invocation.payload.to_string()))
            .set_qualifier(settings.qualifier.clone())
            .set_client_context(settings.client_context.clone());
        call.set_invocation_type(kind.map(InvocationType::from))
            .set_log_type(log.map(LogType::from))
            .send()
            .await
    }
}

/// Whether the function is there, and only not yet ready.
fn is_pending(error: &SdkError<InvokeError>) -> bool {
    let conflict = error.code() == Some("ResourceConflictException");
    conflict
        && error
            .message()
            .is_some_and(|text| text.ends_with("Pending"))
}

fn answered(answer: InvokeOutput) -> Result<Invoked, LambdaError> {
    let bytes = answer.payload.map(Blob::into_inner).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // What is no JSON is passed on as text.
    let payload = serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.clone()));
    if answer.function_error.is_some() {
        return Err(raised(&payload, text));
    }
    Ok(Invoked {
        payload,
        version: answer.executed_version,
        status: u16::try_from(answer.status_code).unwrap_or_default(),
        log: answer.log_result,
    })
}

/// The error of a function, as its runtime gave it.
fn raised(payload: &Value, text: String) -> LambdaError {
    match payload["errorType"].as_str() {
        Some(error_type) if !error_type.is_empty() => LambdaError {
            error_type: error_type.to_owned(),
            message: text,
        },
        _ => LambdaError {
            error_type: "Lambda.Unknown".to_owned(),
            message: format!(
                "The cause could not be determined because Lambda did not return an error type. Returned payload: {text}"
            ),
        },
    }
}

/// An error of Lambda itself.
fn refused(error: &SdkError<InvokeError>) -> LambdaError {
    let (Some(code), Some(response)) = (error.code(), error.raw_response()) else {
        return LambdaError {
            error_type: "Lambda.SdkClientException".to_owned(),
            message: format!("Unable to execute HTTP request: {error}"),
        };
    };
    LambdaError {
        error_type: format!("Lambda.{code}"),
        message: format!(
            "{} (Service: AWSLambda; Status Code: {}; Error Code: {code}; Request ID: {}; Proxy: null)",
            error.message().unwrap_or_default(),
            response.status().as_u16(),
            error.request_id().unwrap_or_default(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::raised;

    #[test]
    fn an_error_without_a_type_has_the_name_that_step_functions_gives_it() {
        let payload = json!({"errorMessage": "no", "errorType": "Broken"});
        let error = raised(&payload, payload.to_string());
        assert_eq!(error.error_type, "Broken");
        assert_eq!(error.message, payload.to_string());
        let error = raised(&json!("text"), "\"text\"".to_owned());
        assert_eq!(error.error_type, "Lambda.Unknown");
        assert!(error.message.ends_with("payload: \"text\""), "{error}");
    }
}
