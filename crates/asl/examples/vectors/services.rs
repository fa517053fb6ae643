//! The services that a vector describes: recorded answers of tasks (`mocks`), and the objects in S3 that
//! distributed maps read.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_asl::{LambdaError, ServiceCall, Services};

use crate::service::Service;

/// The world of one vector.
pub struct World {
    mocks: Mutex<Vec<Value>>,
    objects: Mutex<HashMap<(String, String), String>>,
    /// Set once the engine is there: token answers go to it.
    pub service: OnceLock<Service>,
}

impl World {
    pub fn of(vector: &Value) -> Self {
        let mut objects = HashMap::new();
        for object in vector["resources"]["s3"].as_array().into_iter().flatten() {
            let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            objects.insert((text("bucket"), text("key")), text("body"));
        }
        Self {
            mocks: Mutex::new(vector["mocks"].as_array().cloned().unwrap_or_default()),
            objects: Mutex::new(objects),
            service: OnceLock::new(),
        }
    }

    /// The next recorded attempt of the state; of several, the one with these parameters.
    fn next_mock(&self, call: &ServiceCall) -> Option<Value> {
        let mut mocks = self.mocks.lock().unwrap_or_else(PoisonError::into_inner);
        let of_state = |mock: &Value| mock["state"] == call.state.as_str();
        let at = mocks
            .iter()
            .position(|mock| of_state(mock) && mock["parameters"] == call.parameters)
            .or_else(|| mocks.iter().position(of_state))?;
        Some(mocks.remove(at))
    }

    fn answer_token(&self, mock: &Value, (recorded, token): (String, String)) {
        let Some(service) = self.service.get().cloned() else {
            return;
        };
        let (operation, request) = if let Some(result) = mock.get("result") {
            let output = result.to_string().replace(&recorded, &token);
            let request = json!({"taskToken": token, "output": output});
            ("SendTaskSuccess", request)
        } else if mock.get("error").is_some() || mock.get("cause").is_some() {
            let request =
                json!({"taskToken": token, "error": mock["error"], "cause": mock["cause"]});
            ("SendTaskFailure", request)
        } else {
            return;
        };
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            // The execution may have ended meanwhile, as on AWS.
            let _ = service.call(operation, request).await;
        });
    }

    fn object(&self, call: &ServiceCall) -> Result<Value, LambdaError> {
        let text = |key: &str| call.parameters[key].as_str().unwrap_or_default().to_owned();
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (text("Bucket"), text("Key"));
        match call.action.as_str() {
            "putObject" => {
                objects.insert(place, text("Body"));
                Ok(json!({}))
            }
            "listObjectsV2" => {
                let mut keys: Vec<_> = objects
                    .iter()
                    .filter(|((bucket, key), _)| {
                        *bucket == text("Bucket") && key.starts_with(&text("Prefix"))
                    })
                    .map(|((_, key), body)| json!({"Key": key, "Size": body.len()}))
                    .collect();
                keys.sort_by_key(ToString::to_string);
                Ok(json!({"Contents": keys}))
            }
            _ => match objects.get(&place) {
                Some(body) => Ok(json!({"Body": body})),
                None => Err(LambdaError {
                    error_type: "S3.NoSuchKeyException".to_owned(),
                    message: "The specified key does not exist.".to_owned(),
                }),
            },
        }
    }
}

fn failed(mock: &Value) -> LambdaError {
    let text = |key: &str| mock[key].as_str().unwrap_or_default().to_owned();
    LambdaError {
        error_type: text("error"),
        message: text("cause"),
    }
}

fn is_token(recorded: &str) -> bool {
    recorded.starts_with("<<") && recorded.contains("task_token")
}

/// The recorded and the real token, by the place of the recorded one in the parameters.
fn token_in(recorded: &Value, parameters: &Value) -> Option<(String, String)> {
    match (recorded, parameters) {
        (Value::String(recorded), Value::String(text)) if is_token(recorded) => {
            Some((recorded.clone(), text.clone()))
        }
        (Value::Object(recorded), Value::Object(parameters)) => recorded
            .iter()
            .find_map(|(key, value)| token_in(value, parameters.get(key)?)),
        (Value::Array(recorded), Value::Array(parameters)) => recorded
            .iter()
            .zip(parameters)
            .find_map(|(recorded, value)| token_in(recorded, value)),
        (Value::Object(_), Value::String(text)) => {
            token_in(recorded, &serde_json::from_str(text).ok()?)
        }
        _ => None,
    }
}

#[async_trait]
impl Services for World {
    async fn call(&self, call: &ServiceCall) -> Result<Value, LambdaError> {
        let Some(mock) = self.next_mock(call) else {
            if call.service == "s3" {
                return self.object(call);
            }
            return Err(LambdaError {
                error_type: "Vector.NotRecorded".to_owned(),
                message: format!("no recorded answer of {}", call.state),
            });
        };
        let waits = call.action.contains('.');
        if waits && mock.get("submitted").is_some() {
            if call.action.contains(".sync") {
                // The end of the job is asked for next.
                let mut mocks = self.mocks.lock().unwrap_or_else(PoisonError::into_inner);
                mocks.insert(0, mock.clone());
            } else if let Some(tokens) = token_in(&mock["parameters"], &call.parameters) {
                self.answer_token(&mock, tokens);
            }
            return Ok(mock["submitted"].clone());
        }
        if mock["hangs"] == true {
            std::future::pending::<()>().await;
        }
        match mock.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(failed(&mock)),
        }
    }

    async fn finish(&self, call: &ServiceCall, _: &Value) -> Result<Value, LambdaError> {
        let mock = self.next_mock(call).unwrap_or_default();
        if mock["hangs"] == true {
            std::future::pending::<()>().await;
        }
        match mock.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(failed(&mock)),
        }
    }
}
