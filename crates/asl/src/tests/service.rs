//! An engine with scripted functions, and short ways to talk to it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};
use slipway_clock::Clock;
use tower::ServiceExt as _;

use super::world::World;
use crate::{Engine, EngineConfig, Lambda, LambdaError};

/// Functions by name: `echo`, `boom`, `slow` (ten seconds), `flaky` (fails twice), and `token` (keeps the
/// token that it is given, and never completes it).
#[derive(Default)]
pub(super) struct Functions {
    pub(super) calls: Mutex<Vec<(String, Value)>>,
    failures: Mutex<HashMap<String, u32>>,
    clock: Mutex<Option<Clock>>,
}

#[async_trait]
impl Lambda for Functions {
    async fn invoke(&self, name: &str, payload: Value) -> Result<Value, LambdaError> {
        let record = (name.to_owned(), payload.clone());
        self.calls.lock().expect("calls").push(record);
        let fail = |error_type: &str| LambdaError {
            error_type: error_type.to_owned(),
            message: "on request".to_owned(),
        };
        match name {
            "echo" | "token" => Ok(payload),
            "boom" => Err(fail("Boom")),
            "slow" => {
                let clock = self.clock.lock().expect("clock").clone();
                if let Some(clock) = clock {
                    clock.sleep(Duration::from_secs(10)).await;
                }
                Ok(payload)
            }
            "flaky" => {
                let mut failures = self.failures.lock().expect("failures");
                let count = failures.entry(payload.to_string()).or_default();
                *count += 1;
                if *count <= 2 {
                    Err(fail("Flaky"))
                } else {
                    Ok(json!({"attempts": *count}))
                }
            }
            other => Err(LambdaError {
                error_type: "Lambda.ResourceNotFoundException".to_owned(),
                message: format!("Function not found: {other}"),
            }),
        }
    }
}

/// An engine and what it was made of.
pub(super) struct Service {
    pub(super) engine: Engine,
    pub(super) functions: Arc<Functions>,
    pub(super) clock: Clock,
    pub(super) world: Arc<World>,
}

pub(super) const START: &str = "2026-01-01T00:00:00Z";

pub(super) fn clock() -> Clock {
    Clock::paused(START.parse().expect("a timestamp"))
}

impl Service {
    pub(super) fn new() -> Self {
        let functions = Arc::new(Functions::default());
        let clock = clock();
        *functions.clock.lock().expect("clock") = Some(clock.clone());
        let world = Arc::new(World::default());
        let config = config(&clock, None);
        let engine =
            Engine::with_services(None, config, functions.clone(), world.clone()).expect("opens");
        Self {
            engine,
            functions,
            clock,
            world,
        }
    }

    pub(super) fn on_disk(path: &Path, clock: &Clock, functions: &Arc<Functions>) -> Self {
        Self::bounded(path, clock, functions, None)
    }

    /// As [`Service::on_disk`], where only so many executions begin at once.
    pub(super) fn bounded(
        path: &Path,
        clock: &Clock,
        functions: &Arc<Functions>,
        begin_at_once: Option<usize>,
    ) -> Self {
        *functions.clock.lock().expect("clock") = Some(clock.clone());
        let world = Arc::new(World::default());
        let (config, path) = (config(clock, begin_at_once), Some(path));
        let engine =
            Engine::with_services(path, config, functions.clone(), world.clone()).expect("opens");
        Self {
            engine,
            functions: functions.clone(),
            clock: clock.clone(),
            world,
        }
    }

    /// Calls an operation; `Err` is the error's type and message.
    pub(super) async fn call(&self, operation: &str, request: Value) -> Result<Value, String> {
        let request = Request::post("/")
            .header("x-amz-target", format!("AWSStepFunctions.{operation}"))
            .body(Body::from(request.to_string()))
            .expect("a request");
        let response = self
            .engine
            .router()
            .oneshot(request)
            .await
            .expect("infallible");
        let ok = response.status().is_success();
        let body = to_bytes(response.into_body(), usize::MAX)
            .await
            .expect("a body");
        let value: Value = serde_json::from_slice(&body).expect("JSON");
        if ok {
            return Ok(value);
        }
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        Err(format!("{}: {}", text("__type"), text("message")))
    }

    /// Creates a machine of JSONata states; gives its ARN.
    pub(super) async fn machine(&self, name: &str, start_at: &str, states: Value) -> String {
        self.machine_of(name, json!({"StartAt": start_at, "States": states}))
            .await
    }

    pub(super) async fn machine_of(&self, name: &str, mut definition: Value) -> String {
        definition["QueryLanguage"] = "JSONata".into();
        let request = json!({
            "name": name,
            "definition": definition.to_string(),
            "roleArn": "arn:aws:iam::000000000000:role/local",
        });
        let created = self
            .call("CreateStateMachine", request)
            .await
            .expect("created");
        created["stateMachineArn"]
            .as_str()
            .expect("an ARN")
            .to_owned()
    }

    pub(super) async fn start(&self, machine: &str, name: &str, input: Value) -> String {
        let request = json!({"stateMachineArn": machine, "name": name, "input": input.to_string()});
        let started = self.call("StartExecution", request).await.expect("started");
        started["executionArn"].as_str().expect("an ARN").to_owned()
    }

    pub(super) async fn describe(&self, execution: &str) -> Value {
        self.call("DescribeExecution", json!({"executionArn": execution}))
            .await
            .expect("described")
    }

    /// Waits for the end, at most a year of the clock.
    pub(super) async fn finish(&self, execution: &str) -> Value {
        for _ in 0..3650 {
            let described = self.describe(execution).await;
            if described["status"] != "RUNNING" {
                return described;
            }
            self.clock.sleep(Duration::from_secs(8_640)).await;
        }
        panic!("{execution} does not end");
    }

    pub(super) async fn events(&self, execution: &str) -> Vec<Value> {
        let request = json!({"executionArn": execution, "maxResults": 1000});
        let history = self
            .call("GetExecutionHistory", request)
            .await
            .expect("history");
        history["events"].as_array().expect("events").clone()
    }

    /// The history as lines `id<previous type +seconds details`.
    pub(super) async fn trace(&self, execution: &str) -> String {
        let events = self.events(execution).await;
        let start: f64 = events[0]["timestamp"].as_f64().expect("a time");
        let lines: Vec<String> = events.iter().map(|event| line(event, start)).collect();
        lines.join("\n")
    }

    /// Creates a machine with `states`, runs it once, and gives the trace.
    pub(super) async fn run(&self, start_at: &str, states: Value, input: Value) -> String {
        let machine = self.machine("machine", start_at, states).await;
        let execution = self.start(&machine, "run", input).await;
        self.finish(&execution).await;
        self.trace(&execution).await
    }

    /// Takes a task of `activity` as a worker.
    pub(super) async fn take(&self, activity: &str) -> Value {
        let request = json!({"activityArn": activity, "workerName": "w"});
        self.call("GetActivityTask", request)
            .await
            .expect("an answer")
    }
}

fn config(clock: &Clock, begin_at_once: Option<usize>) -> EngineConfig {
    EngineConfig {
        clock: clock.clone(),
        region: "us-east-1".to_owned(),
        account: "000000000000".to_owned(),
        begin_at_once,
    }
}

fn line(event: &Value, start: f64) -> String {
    let after = event["timestamp"].as_f64().expect("a time") - start;
    let mut line = format!(
        "{}<{} {}",
        event["id"],
        event["previousEventId"],
        event["type"].as_str().expect("a type")
    );
    if after > 0.0 {
        line.push_str(&format!(" +{after}s"));
    }
    let details = event.as_object().expect("an object").iter();
    for (_, details) in details.filter(|(key, _)| key.ends_with("EventDetails")) {
        for (key, value) in details.as_object().expect("details") {
            let is_noise = key.ends_with("Details") || key == "roleArn" || key == "region";
            if !is_noise {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                line.push_str(&format!(" {key}={text}"));
            }
        }
    }
    line
}
