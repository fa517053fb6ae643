//! The Lambda functions that a vector describes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_asl::{Invocation, Invoked, Lambda, LambdaError};

/// Functions by name and by ARN.
pub struct Functions {
    behaviours: HashMap<String, Value>,
    calls: Mutex<HashMap<String, u64>>,
}

impl Functions {
    pub fn of(vector: &Value) -> Self {
        let mut behaviours = HashMap::new();
        let functions = vector["resources"]["lambda"].as_array();
        for function in functions.into_iter().flatten() {
            for key in ["name", "arn"] {
                let key = function[key].as_str().unwrap_or_default().to_owned();
                behaviours.insert(key, function.clone());
            }
        }
        Self {
            behaviours,
            calls: Mutex::default(),
        }
    }

    fn flaky(&self, event: &Value) -> Result<Value, LambdaError> {
        let key = event["key"].to_string();
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let count = calls.entry(key).or_default();
        *count += 1;
        if *count <= event["n"].as_u64().unwrap_or(1) {
            return Err(raised("Flaky", "not yet"));
        }
        Ok(json!({"attempts": *count}))
    }
}

fn failure(error_type: &str, message: &str) -> LambdaError {
    LambdaError {
        error_type: error_type.to_owned(),
        message: message.to_owned(),
    }
}

/// The payload of a Python function that raised.
fn raised(error_type: &str, message: &str) -> LambdaError {
    let payload = json!({
        "errorMessage": message,
        "errorType": error_type,
        "requestId": uuid::Uuid::new_v4().to_string(),
        "stackTrace": ["handler"],
    });
    failure(error_type, &payload.to_string())
}

fn not_found(name: &str) -> LambdaError {
    let arn = if name.starts_with("arn:") {
        name.to_owned()
    } else {
        format!("arn:aws:lambda:us-east-1:111111111111:function:{name}")
    };
    let request = uuid::Uuid::new_v4();
    failure(
        "Lambda.ResourceNotFoundException",
        &format!(
            "Function not found: {arn}:$LATEST (Service: AWSLambda; Status Code: 404; Error Code: ResourceNotFoundException; Request ID: {request}; Proxy: null)"
        ),
    )
}

/// A value as Python's `str` shows it.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(quoted).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("'{key}': {}", quoted(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{text}'"),
        other => python(other),
    }
}

#[async_trait]
impl Lambda for Functions {
    async fn carry_out(&self, invocation: Invocation) -> Result<Invoked, LambdaError> {
        let tail = invocation.settings.log_type.as_deref() == Some("Tail");
        let payload = self
            .invoke(&invocation.function, invocation.payload)
            .await?;
        Ok(Invoked {
            // "START" in base64: what a log says is the function's own.
            log: tail.then(|| "U1RBUlQ=".to_owned()),
            ..Invoked::of(payload)
        })
    }

    async fn invoke(&self, name: &str, event: Value) -> Result<Value, LambdaError> {
        let Some(function) = self.behaviours.get(name) else {
            return Err(not_found(name));
        };
        let text = |key: &str| function[key].as_str().unwrap_or_default();
        match text("behaviour") {
            "echo" => Ok(event),
            "return" => Ok(function["value"].clone()),
            "raise" => Err(raised(text("errorType"), text("errorMessage"))),
            "return-repeat" => {
                let times = function["times"].as_u64().unwrap_or_default();
                let times = usize::try_from(times).unwrap_or_default();
                Ok(Value::String(text("char").repeat(times)))
            }
            "format" => Ok(format!("input-event-{}", python(&event)).into()),
            "sleep" => {
                let seconds = function["seconds"].as_u64().unwrap_or_default();
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Ok(event)
            }
            "by-action" => match event["action"].as_str().unwrap_or("echo") {
                "fail" => Err(raised(
                    event["type"].as_str().unwrap_or("Failure"),
                    "deliberate",
                )),
                "flaky" => self.flaky(&event),
                "sleep" => {
                    let ms = event["ms"].as_u64().unwrap_or_default();
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    Ok(json!({"slept": ms}))
                }
                "exit" => Err(raised(
                    "Runtime.ExitError",
                    "Error: Runtime exited with error: exit status 1",
                )),
                _ => Ok(json!({"echo": event})),
            },
            other => Err(failure("Vector.Unsupported", other)),
        }
    }
}
