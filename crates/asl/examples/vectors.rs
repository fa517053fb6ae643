//! Plays conformance vectors against the engine: one JSON vector per line on stdin, one answer per line
//! on stdout. Time is virtual. Vectors outside the engine's scope are skipped with the reason.
//!
//! ```text
//! python3 score.py vectors -- target/debug/examples/vectors
//! ```

use std::collections::HashMap;
use std::io::BufRead as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};
use slipway_asl::{Engine, EngineConfig, Lambda, LambdaError};
use slipway_clock::Clock;
use tower::ServiceExt as _;

/// No vector waits longer than this in virtual time.
const LONGEST: Duration = Duration::from_secs(3_600);

fn main() -> anyhow::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let vector: Value = serde_json::from_str(&line?).context("a vector is not JSON")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()?;
        let mut answer = runtime
            .block_on(play(&vector))
            .unwrap_or_else(|error| json!({"skip": format!("{error:#}")}));
        answer["id"] = vector["id"].clone();
        println!("{answer}");
    }
    Ok(())
}

async fn play(vector: &Value) -> anyhow::Result<Value> {
    let kind = vector["kind"].as_str().unwrap_or_default();
    if kind != "execution" && kind != "create" {
        bail!("kind {kind} is outside the engine");
    }
    let functions = Functions::of(vector);
    let config = EngineConfig {
        clock: Clock::paused("2026-01-01T00:00:00Z".parse()?),
        region: "us-east-1".to_owned(),
        account: "111111111111".to_owned(),
    };
    let service = Service(Engine::in_memory(config, Arc::new(functions))?);
    let definition = match vector["definition_text"].as_str() {
        Some(text) => text.to_owned(),
        None => vector["definition"].to_string(),
    };
    for machine in vector["resources"]["state_machines"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let text = machine["definition"].to_string();
        service
            .create(machine["name"].as_str().unwrap_or("target"), &text)
            .await
            .map_err(skip)?;
    }
    let arn = match service.create("statemachine_u01", &definition).await {
        Ok(arn) => arn,
        Err(error) if is_outside(&error) => bail!("{}", error["message"]),
        Err(error) => {
            return Ok(
                json!({"exception": {"error": error["__type"], "message": error["message"]}}),
            );
        }
    };
    if kind == "create" {
        bail!("accepted, and nothing to run");
    }
    run(&service, vector, &arn).await
}

async fn run(service: &Service, vector: &Value, machine: &str) -> anyhow::Result<Value> {
    let needs = vector["needs"].to_string();
    if needs.contains("callback") || needs.contains("activity") || needs.contains("service") {
        bail!("needs {needs}");
    }
    let mut request = json!({
        "stateMachineArn": machine,
        "input": vector.get("input").unwrap_or(&json!({})).to_string(),
    });
    if let Some(name) = vector["execution_name"].as_str() {
        request["name"] = name.into();
    }
    let started = match service.call("StartExecution", request).await {
        Ok(started) => started,
        Err(error) => {
            return Ok(
                json!({"exception": {"error": error["__type"], "message": error["message"]}}),
            );
        }
    };
    let arn = json!({"executionArn": started["executionArn"]});
    if vector.get("during").is_some() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        service
            .call("StopExecution", arn.clone())
            .await
            .map_err(skip)?;
    }
    let end = tokio::time::Instant::now() + LONGEST;
    let described = loop {
        let described = service
            .call("DescribeExecution", arn.clone())
            .await
            .map_err(skip)?;
        if described["status"] != "RUNNING" || tokio::time::Instant::now() > end {
            break described;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let mut query = arn;
    query["maxResults"] = 1000.into();
    let history = service
        .call("GetExecutionHistory", query)
        .await
        .map_err(skip)?;
    let text = |name: &str| described[name].as_str().map(str::to_owned);
    Ok(json!({
        "status": described["status"],
        "output": text("output").map(|t| serde_json::from_str::<Value>(&t)).transpose()?,
        "error": described["error"],
        "cause": described["cause"],
        "history": history["events"],
    }))
}

fn skip(error: Value) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}

/// Whether a definition is refused for what this engine says it does not run.
fn is_outside(error: &Value) -> bool {
    let message = error["message"].as_str().unwrap_or_default();
    [
        "QueryLanguage to JSONata",
        "distributed mode",
        "is not recognized",
    ]
    .iter()
    .any(|part| message.contains(part))
}

struct Service(Engine);

impl Service {
    async fn call(&self, operation: &str, request: Value) -> Result<Value, Value> {
        let request = Request::post("/")
            .header("x-amz-target", format!("AWSStepFunctions.{operation}"))
            .body(Body::from(request.to_string()))
            .map_err(|error| json!(error.to_string()))?;
        let Ok(response) = self.0.router().oneshot(request).await;
        let ok = response.status().is_success();
        let body = to_bytes(response.into_body(), usize::MAX)
            .await
            .map_err(|error| json!(error.to_string()))?;
        let value = serde_json::from_slice(&body).unwrap_or_default();
        if ok { Ok(value) } else { Err(value) }
    }

    async fn create(&self, name: &str, definition: &str) -> Result<String, Value> {
        let role = "arn:aws:iam::111111111111:role/any";
        let request = json!({"name": name, "definition": definition, "roleArn": role});
        let created = self.call("CreateStateMachine", request).await?;
        Ok(created["stateMachineArn"]
            .as_str()
            .unwrap_or_default()
            .to_owned())
    }
}

/// The functions that a vector describes.
struct Functions {
    behaviours: HashMap<String, Value>,
    calls: Mutex<HashMap<String, u64>>,
}

impl Functions {
    fn of(vector: &Value) -> Self {
        let mut behaviours = HashMap::new();
        for function in vector["resources"]["lambda"]
            .as_array()
            .into_iter()
            .flatten()
        {
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
        let mut calls = self
            .calls
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let count = calls.entry(key).or_default();
        *count += 1;
        if *count <= event["n"].as_u64().unwrap_or(1) {
            return Err(failure("Flaky", "not yet"));
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

#[async_trait]
impl Lambda for Functions {
    async fn invoke(&self, name: &str, event: Value) -> Result<Value, LambdaError> {
        let Some(function) = self.behaviours.get(name) else {
            return Err(failure(
                "Lambda.ResourceNotFoundException",
                "Function not found",
            ));
        };
        let text = |key: &str| function[key].as_str().unwrap_or_default();
        match text("behaviour") {
            "echo" => Ok(event),
            "return" => Ok(function["value"].clone()),
            "raise" => {
                // The payload of a Python function that raised.
                let payload = json!({
                    "errorMessage": text("errorMessage"),
                    "errorType": text("errorType"),
                    "requestId": "00000000-0000-0000-0000-000000000000",
                    "stackTrace": ["handler"],
                });
                Err(failure(text("errorType"), &payload.to_string()))
            }
            "return-repeat" => {
                let times = function["times"].as_u64().unwrap_or_default();
                Ok(Value::String(
                    text("char").repeat(usize::try_from(times).unwrap_or_default()),
                ))
            }
            "sleep" => {
                let seconds = function["seconds"].as_u64().unwrap_or_default();
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Ok(event)
            }
            "by-action" => match event["action"].as_str().unwrap_or("echo") {
                "fail" => Err(failure(
                    event["type"].as_str().unwrap_or("Failure"),
                    "deliberate",
                )),
                "flaky" => self.flaky(&event),
                "sleep" => {
                    let ms = event["ms"].as_u64().unwrap_or_default();
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    Ok(json!({"slept": ms}))
                }
                _ => Ok(json!({"echo": event})),
            },
            other => Err(failure("Vector.Unsupported", other)),
        }
    }
}
