//! Step Functions' API on HTTP: awsJson 1.0, as `aws-sdk-sfn` and `aws stepfunctions` speak it.
//!
//! One `POST /`; the operation is in `X-Amz-Target`. Signatures are not checked: the engine listens
//! where only its own machine can reach it. Operations: API reference, "AWS Step Functions".

mod activities;
mod executions;
mod history;
mod machines;
mod map_runs;
mod page;
mod request;
mod settings;
mod tags;
mod tasks;
mod test_state;
mod validate;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::error::ApiError;
pub(crate) use machines::invalid as invalid_definition;
use request::Members;

/// Longest request: a definition of 1 MiB whose every character is escaped, and the rest.
const LONGEST_REQUEST: usize = 4 * 1024 * 1024;
const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// The API of `engine`.
pub(crate) fn router(engine: Engine) -> Router {
    Router::new().route("/", post(handle)).with_state(engine)
}

async fn handle(State(engine): State<Engine>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let answer = answer(engine, &parts.headers, body).await;
    let request_id = uuid::Uuid::new_v4().to_string();
    let (status, error, body) = match answer {
        Ok(body) => (StatusCode::OK, None, body),
        Err(error) => (
            StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            Some(error.kind),
            json!({"__type": error.kind, "message": error.message}),
        ),
    };
    let mut response = (
        status,
        [
            ("content-type", CONTENT_TYPE),
            ("x-amzn-requestid", request_id.as_str()),
        ],
        body.to_string(),
    )
        .into_response();
    if let Some(kind) = error {
        response.headers_mut().insert(
            "x-amzn-errortype",
            axum::http::HeaderValue::from_static(kind),
        );
    }
    response
}

async fn answer(engine: Engine, headers: &HeaderMap, body: Body) -> Result<Value, ApiError> {
    let target = headers
        .get("x-amz-target")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let operation = target
        .strip_prefix("AWSStepFunctions.")
        .ok_or_else(unknown_operation)?
        .to_owned();
    let body = to_bytes(body, LONGEST_REQUEST).await.map_err(|error| {
        ApiError::new(
            "SerializationException",
            format!(
                "the request cannot be read, or is longer than {LONGEST_REQUEST} bytes: {error}"
            ),
        )
    })?;
    let body = if body.is_empty() { &b"{}"[..] } else { &body };
    let members: Value = serde_json::from_slice(body)
        .map_err(|error| ApiError::new("SerializationException", error.to_string()))?;
    let members = Members::new(members)?;
    let trace = headers
        .get("x-amzn-trace-id")
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    if operation == "GetActivityTask" {
        // Not detached: a worker that hangs up while nothing is there must not take a task later.
        return tasks::get_activity_task(&engine, &members).await;
    }
    // A caller that hangs up must not leave an operation half done, nor must the end of the engine.
    let inner = Arc::clone(&engine.0);
    inner
        .whole(async move { operate(&engine, &operation, &members, trace).await })
        .await
}

async fn operate(
    engine: &Engine,
    operation: &str,
    members: &Members,
    trace: Option<String>,
) -> Result<Value, ApiError> {
    match operation {
        "CreateStateMachine" => machines::create(engine, members).await,
        "UpdateStateMachine" => machines::update(engine, members).await,
        "DeleteStateMachine" => machines::delete(engine, members).await,
        "DescribeStateMachine" => machines::describe(engine, members),
        "DescribeStateMachineForExecution" => machines::describe_for_execution(engine, members),
        "ListStateMachines" => machines::list(engine, members),
        "StartExecution" => executions::start(engine, members, trace).await,
        "StartSyncExecution" => executions::start_sync(engine, members, trace).await,
        "StopExecution" => executions::stop(engine, members).await,
        "RedriveExecution" => executions::redrive(engine, members).await,
        "DescribeExecution" => executions::describe(engine, members),
        "ListExecutions" => executions::list(engine, members),
        "GetExecutionHistory" => history::get(engine, members),
        "DescribeMapRun" => map_runs::describe(engine, members),
        "UpdateMapRun" => map_runs::update(engine, members).await,
        "ListMapRuns" => map_runs::list(engine, members),
        "TestState" => test_state::test(engine, members).await,
        "ValidateStateMachineDefinition" => validate::validate(members),
        "SendTaskSuccess" => tasks::success(engine, members).await,
        "SendTaskFailure" => tasks::failure(engine, members).await,
        "SendTaskHeartbeat" => tasks::heartbeat(engine, members).await,
        "CreateActivity" => activities::create(engine, members).await,
        "DeleteActivity" => activities::delete(engine, members).await,
        "DescribeActivity" => activities::describe(engine, members),
        "ListActivities" => activities::list(engine, members),
        "TagResource" => tags::tag(engine, members).await,
        "UntagResource" => tags::untag(engine, members).await,
        "ListTagsForResource" => tags::list(engine, members),
        _ => Err(unknown_operation()),
    }
}

fn unknown_operation() -> ApiError {
    ApiError::new(
        "UnknownOperationException",
        "this engine does not have the operation that X-Amz-Target names",
    )
}
