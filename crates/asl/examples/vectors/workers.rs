//! Workers of activities, as a vector describes them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::service::Service;

/// Creates the activities, and starts the worker of each.
pub async fn start(service: &Service, vector: &Value) {
    let resources = &vector["resources"];
    let list = |name: &str| resources[name].as_array().cloned().unwrap_or_default();
    for activity in list("activity") {
        let _ = service
            .call("CreateActivity", json!({"name": activity["name"]}))
            .await;
    }
    for call in list("before_start") {
        let operation = call["api"].as_str().unwrap_or_default().to_owned();
        let _ = service.call(&operation, call).await;
    }
    for worker in list("activity_worker") {
        tokio::spawn(work(service.clone(), worker));
    }
}

/// Takes tasks and answers them until the engine is gone.
async fn work(service: Service, worker: Value) {
    let states = &worker["worker_state_machine"]["States"];
    let name = states["GetActivityTask"]["Parameters"]["WorkerName"].clone();
    let mut request = json!({"activityArn": worker["activity"]});
    if name.is_string() {
        request["workerName"] = name;
    }
    while let Ok(task) = service.call("GetActivityTask", request.clone()).await {
        if task["taskToken"].is_null() {
            continue;
        }
        for step in worker["does"].as_array().into_iter().flatten() {
            let operation = step["api"].as_str().unwrap_or_default();
            let _ = service
                .call(&capital(operation), filled(&step["parameters"], &task))
                .await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Parameters of a worker's call: names in the API's form, paths replaced by what the task holds.
fn filled(parameters: &Value, task: &Value) -> Value {
    let mut request = json!({});
    for (key, value) in parameters.as_object().into_iter().flatten() {
        let name = lower(key.trim_end_matches(".$"));
        let text = value.as_str().unwrap_or_default();
        request[name] = if text.ends_with(".TaskToken") {
            task["taskToken"].clone()
        } else if text.ends_with(".Input") {
            task["input"].clone()
        } else {
            value.clone()
        };
    }
    request
}

fn capital(name: &str) -> String {
    let mut chars = name.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

fn lower(name: &str) -> String {
    let mut chars = name.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
