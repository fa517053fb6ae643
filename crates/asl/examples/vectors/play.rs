//! One vector, played.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use serde_json::{Value, json};
use slipway_asl::{Engine, EngineConfig};
use slipway_clock::Clock;

use crate::functions::Functions;
use crate::service::{Service, exception};
use crate::services::World;
use crate::workers;

/// No vector waits longer than this in virtual time.
const LONGEST: Duration = Duration::from_secs(3_600);
const ROLE: &str = "arn:aws:iam::111111111111:role/any";

/// Plays a vector on an engine of its own; an error skips it.
pub async fn play(vector: &Value) -> anyhow::Result<Value> {
    let config = EngineConfig {
        clock: Clock::paused("2026-01-01T00:00:00Z".parse()?),
        region: "us-east-1".to_owned(),
        account: "111111111111".to_owned(),
        begin_at_once: None,
    };
    let world = Arc::new(World::of(vector));
    let functions = Arc::new(Functions::of(vector));
    let engine = Engine::with_services(None, config, functions, world.clone())?;
    let service = Service(engine.router());
    let _ = world.service.set(service.clone());
    let answer = match vector["kind"].as_str().unwrap_or_default() {
        "execution" => execution(&service, vector).await,
        "create" => changed(&service, vector, "CreateStateMachine").await,
        "update" => changed(&service, vector, "UpdateStateMachine").await,
        "validate" => called(&service, vector, "ValidateStateMachineDefinition").await,
        "test-state" => called(&service, vector, "TestState").await,
        "variable-references" => references(&service, vector).await,
        kind => bail!("kind {kind} is not known"),
    };
    // Dropping what still waits (a function that hangs, a worker) must not wait for it.
    drop(engine);
    answer
}

fn definition(vector: &Value) -> Option<String> {
    match (&vector["definition_text"], &vector["definition"]) {
        (Value::String(text), _) => Some(text.clone()),
        (_, Value::Null) => None,
        (_, definition) => Some(definition.to_string()),
    }
}

/// The parameters of a call: those of `request`, with the definition.
fn request(vector: &Value) -> Value {
    let mut request = vector["request"].clone();
    if !request.is_object() {
        request = json!({});
    }
    if let Some(definition) = definition(vector) {
        request["definition"] = definition.into();
    }
    request
}

async fn called(service: &Service, vector: &Value, operation: &str) -> anyhow::Result<Value> {
    Ok(match service.call(operation, request(vector)).await {
        Ok(answer) => answer,
        Err(error) => exception(&error),
    })
}

async fn changed(service: &Service, vector: &Value, operation: &str) -> anyhow::Result<Value> {
    for call in vector["before"].as_array().into_iter().flatten() {
        let mut call = call.clone();
        if call["definition"].is_object() {
            call["definition"] = call["definition"].to_string().into();
        }
        call["roleArn"] = ROLE.into();
        let operation = call["api"].as_str().unwrap_or_default().to_owned();
        if let Err(error) = service.call(&operation, call).await {
            bail!("{operation} before the vector: {error}");
        }
    }
    let mut request = request(vector);
    if operation == "CreateStateMachine" {
        request["roleArn"] = ROLE.into();
        if request["name"].is_null() {
            request["name"] = "statemachine_u01".into();
        }
    }
    Ok(match service.call(operation, request).await {
        Ok(answer) => answer,
        Err(error) => exception(&error),
    })
}

async fn create(
    service: &Service,
    name: &str,
    definition: &str,
    kind: &Value,
) -> Result<String, Value> {
    let mut request = json!({"name": name, "definition": definition, "roleArn": ROLE});
    if kind == "EXPRESS" {
        request["type"] = "EXPRESS".into();
    }
    let created = service.call("CreateStateMachine", request).await?;
    Ok(created["stateMachineArn"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

async fn references(service: &Service, vector: &Value) -> anyhow::Result<Value> {
    let definition = definition(vector).unwrap_or_default();
    let arn = match create(service, "statemachine_u01", &definition, &Value::Null).await {
        Ok(arn) => arn,
        Err(error) => return Ok(exception(&error)),
    };
    let described = service
        .call("DescribeStateMachine", json!({"stateMachineArn": arn}))
        .await
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(json!({"variableReferences": described["variableReferences"]}))
}

async fn execution(service: &Service, vector: &Value) -> anyhow::Result<Value> {
    let machines = vector["resources"]["state_machines"].as_array();
    for machine in machines.into_iter().flatten() {
        let definition = machine["definition"].to_string();
        let name = machine["name"].as_str().unwrap_or("target");
        if let Err(error) = create(service, name, &definition, &machine["type"]).await {
            bail!("a machine of the vector is refused: {error}");
        }
    }
    workers::start(service, vector).await;
    let definition = definition(vector).unwrap_or_default();
    let kind = &vector["machine_type"];
    let machine = match create(service, "statemachine_u00", &definition, kind).await {
        Ok(arn) => arn,
        Err(error) => return Ok(exception(&error)),
    };
    let mut request = json!({
        "stateMachineArn": machine,
        "input": vector.get("input").unwrap_or(&json!({})).to_string(),
    });
    if let Some(name) = vector["execution_name"].as_str() {
        request["name"] = name.into();
    }
    let begin = tokio::time::Instant::now();
    let answer = if kind == "EXPRESS" {
        service
            .call("StartSyncExecution", request)
            .await
            .map(|ended| result(&ended))
    } else {
        standard(service, vector, request).await
    };
    let mut answer = answer.unwrap_or_else(|error| exception(&error));
    answer["elapsed_s"] = begin.elapsed().as_secs_f64().into();
    Ok(answer)
}

/// Starts an execution, does to it what the vector wants, and waits for its end.
async fn standard(service: &Service, vector: &Value, request: Value) -> Result<Value, Value> {
    let started = service.call("StartExecution", request).await?;
    let arn = json!({"executionArn": started["executionArn"]});
    if vector.get("during").is_some() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        service.call("StopExecution", arn.clone()).await?;
    }
    let end = tokio::time::Instant::now() + LONGEST;
    let described = loop {
        let described = service.call("DescribeExecution", arn.clone()).await?;
        if described["status"] != "RUNNING" || tokio::time::Instant::now() > end {
            break described;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let mut query = arn;
    query["maxResults"] = 1000.into();
    let history = service.call("GetExecutionHistory", query).await?;
    let mut answer = result(&described);
    answer["history"] = history["events"].clone();
    Ok(answer)
}

/// Status, output, error and cause of an execution that has ended.
fn result(described: &Value) -> Value {
    let output = described["output"].as_str();
    json!({
        "status": described["status"],
        "output": output.and_then(|text| serde_json::from_str::<Value>(text).ok()),
        "error": described["error"],
        "cause": described["cause"],
    })
}
