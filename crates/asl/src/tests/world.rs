//! The services of the tests: objects in memory, and calls that answer with what they were asked.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::service::Service;
use crate::{LambdaError, ServiceCall, Services};

/// Objects by bucket and key.
#[derive(Default)]
pub(super) struct World {
    objects: Mutex<HashMap<(String, String), String>>,
}

fn failure(error_type: &str) -> LambdaError {
    LambdaError {
        error_type: error_type.to_owned(),
        message: "on request".to_owned(),
    }
}

#[async_trait]
impl Services for World {
    async fn call(&self, call: &ServiceCall) -> Result<Value, LambdaError> {
        let text = |name: &str| {
            call.parameters[name]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let mut objects = self.objects.lock().expect("objects");
        let place = (text("Bucket"), text("Key"));
        match (call.service.as_str(), call.action.as_str()) {
            ("s3", "putObject") => {
                objects.insert(place, text("Body"));
                Ok(json!({}))
            }
            ("s3", _) => match objects.get(&place) {
                Some(body) => Ok(json!({"Body": body})),
                None => Err(failure("S3.NoSuchKeyException")),
            },
            ("aws-sdk:fails", _) => Err(failure("Fails.Always")),
            _ => Ok(json!({"Answer": call.parameters})),
        }
    }

    async fn finish(&self, _: &ServiceCall, submitted: &Value) -> Result<Value, LambdaError> {
        Ok(json!({"Finished": submitted}))
    }
}

impl Service {
    pub(super) fn put(&self, bucket: &str, key: &str, body: &str) {
        let place = (bucket.to_owned(), key.to_owned());
        let mut objects = self.world.objects.lock().expect("objects");
        objects.insert(place, body.to_owned());
    }

    pub(super) fn get(&self, bucket: &str, key: &str) -> String {
        let place = (bucket.to_owned(), key.to_owned());
        let objects = self.world.objects.lock().expect("objects");
        objects.get(&place).expect("an object").clone()
    }

    /// Creates a machine of JSONPath states.
    pub(super) async fn create_jsonpath(
        &self,
        name: &str,
        start_at: &str,
        states: &Value,
    ) -> Result<String, String> {
        let definition = json!({"StartAt": start_at, "States": states});
        let request = json!({
            "name": name,
            "definition": definition.to_string(),
            "roleArn": "arn:aws:iam::000000000000:role/local",
        });
        let created = self.call("CreateStateMachine", request).await?;
        Ok(created["stateMachineArn"]
            .as_str()
            .expect("an ARN")
            .to_owned())
    }

    /// As [`Service::create_jsonpath`], where it is accepted.
    pub(super) async fn jsonpath_machine(
        &self,
        name: &str,
        start_at: &str,
        states: Value,
    ) -> String {
        let created = self.create_jsonpath(name, start_at, &states).await;
        created.unwrap_or_else(|why| panic!("{states}: {why}"))
    }
}
