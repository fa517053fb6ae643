//! Operations of workers: taking activity tasks, and completing tasks by their tokens.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::executions::{LONGEST_CAUSE, LONGEST_ERROR, bounded};
use super::request::Members;
use crate::activity::{Offer, Queue};
use crate::arn;
use crate::driver::{Reply, Signal};
use crate::engine::Engine;
use crate::error::ApiError;
use crate::run::{Answer, LONGEST_PAYLOAD, task_is_over};
use crate::token::Token;

/// How long `GetActivityTask` waits (API reference).
const LONG_POLL: Duration = Duration::from_secs(60);

/// `SendTaskSuccess`.
pub(super) async fn success(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let token = Token::read(members.required("taskToken")?)?;
    let output = members.required("output")?;
    if output.len() > LONGEST_PAYLOAD {
        return Err(ApiError::validation(format!(
            "1 validation error detected: Value at 'output' failed to satisfy constraint: Member must have length less than or equal to {LONGEST_PAYLOAD}"
        )));
    }
    let output: Value = serde_json::from_str(output)
        .map_err(|error| ApiError::new("InvalidOutput", format!("Invalid Output: '{error}'")))?;
    send(engine, token, |token, reply| Signal::Complete {
        token,
        answer: Answer::Success(output),
        reply,
    })
    .await
}

/// `SendTaskFailure`.
pub(super) async fn failure(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let token = Token::read(members.required("taskToken")?)?;
    let answer = Answer::Failure {
        error: bounded(members, "error", LONGEST_ERROR)?,
        cause: bounded(members, "cause", LONGEST_CAUSE)?,
    };
    send(engine, token, |token, reply| Signal::Complete {
        token,
        answer,
        reply,
    })
    .await
}

/// `SendTaskHeartbeat`.
pub(super) async fn heartbeat(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let token = Token::read(members.required("taskToken")?)?;
    send(engine, token, |token, reply| Signal::Heartbeat {
        token,
        reply,
    })
    .await
}

async fn send(
    engine: &Engine,
    token: Token,
    signal: impl FnOnce(Token, Reply) -> Signal,
) -> Result<Value, ApiError> {
    let execution = token.execution;
    if !engine.0.is_driven(execution) {
        return match engine.0.journal.execution(execution)? {
            Some(_) => Err(task_is_over()),
            None => Err(ApiError::new(
                "TaskDoesNotExist",
                "Task Does Not Exist: 'Provided task does not exist'",
            )),
        };
    }
    let (reply, answer) = oneshot::channel();
    engine.0.signal(execution, signal(token, reply));
    match answer.await {
        Ok(answer) => answer,
        Err(_) if engine.0.is_driven(execution) => Err(ApiError::shutting_down()),
        Err(_) => Err(task_is_over()),
    }
}

/// `GetActivityTask`: waits up to 60 seconds of the clock for a task, and gives nothing after that.
pub(super) async fn get_activity_task(
    engine: &Engine,
    members: &Members,
) -> Result<Value, ApiError> {
    let inner = &engine.0;
    let activity = members.required("activityArn")?;
    arn::check(activity, "activity")?;
    let worker = bounded(members, "workerName", 80)?;
    let queue = inner
        .activities
        .queue(activity)
        .ok_or_else(|| super::activities::does_not_exist(activity))?;
    let end = inner.clock.now() + LONG_POLL;
    loop {
        let arrival = queue.arrival();
        tokio::pin!(arrival);
        arrival.as_mut().enable();
        while let Some(offer) = queue.take() {
            if let Some(task) = pick_up(engine, &queue, offer, worker.clone()).await? {
                return Ok(task);
            }
        }
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return Err(ApiError::shutting_down()),
            () = arrival => {}
            () = inner.clock.sleep_until(end) => return Ok(json!({})),
        }
    }
}

/// Lets the execution record the start. Detached from the caller, so that an offer that was taken is
/// either recorded as started or offered again.
async fn pick_up(
    engine: &Engine,
    queue: &Arc<Queue>,
    offer: Offer,
    worker: Option<String>,
) -> Result<Option<Value>, ApiError> {
    let (inner, queue) = (Arc::clone(&engine.0), Arc::clone(queue));
    let picked = engine.0.tracked(async move {
        let (reply, answer) = oneshot::channel();
        inner.signal(
            offer.execution,
            Signal::PickUp {
                branch: offer.branch,
                attempt: offer.attempt,
                worker,
                reply,
            },
        );
        match answer.await {
            Ok(Ok(Value::Null)) => Ok(None),
            Ok(answer) => answer.map(Some),
            // Not recorded: the commit failed, or the execution ended.
            Err(_) if inner.is_driven(offer.execution) => {
                queue.put_back(offer);
                Err(ApiError::shutting_down())
            }
            Err(_) => Ok(None),
        }
    });
    picked
        .await
        .unwrap_or_else(|error| Err(ApiError::internal(&error)))
}
