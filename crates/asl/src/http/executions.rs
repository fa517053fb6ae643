//! Operations on executions.

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::request::Members;
use super::{machines, map_runs, page};
use crate::arn;
use crate::driver::Signal;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::history::seconds;
use crate::record::{Execution, MapRunRecord, Status};
use crate::redrive::{Redrivable, execution_does_not_exist};
use crate::start::Start;

/// Longest error and cause (API reference, `StopExecution`).
pub(super) const LONGEST_ERROR: usize = 256;
pub(super) const LONGEST_CAUSE: usize = 32_768;
/// Longest client token (API reference, `RedriveExecution`).
const LONGEST_TOKEN: usize = 64;

/// The status of children that a redriven map run has not come to: a filter of `ListExecutions`.
const PENDING_REDRIVE: &str = "PENDING_REDRIVE";

/// `StartExecution`.
pub(super) async fn start(
    engine: &Engine,
    members: &Members,
    trace: Option<String>,
) -> Result<Value, ApiError> {
    let request = Start {
        machine: members.required("stateMachineArn")?.to_owned(),
        name: members.text("name")?.map(str::to_owned),
        input: members.text("input")?.unwrap_or("{}").to_owned(),
        parent: None,
        trace: members.text("traceHeader")?.map(str::to_owned).or(trace),
    };
    let (_, execution) = engine.0.start(request).await?;
    Ok(json!({
        "executionArn": execution.arn,
        "startDate": seconds(execution.start_ms),
    }))
}

/// `StartSyncExecution`: starts an express execution and waits for its end.
pub(super) async fn start_sync(
    engine: &Engine,
    members: &Members,
    trace: Option<String>,
) -> Result<Value, ApiError> {
    let machine = machines::find(engine, members.required("stateMachineArn")?)?;
    if !machine.express {
        return Err(ApiError::new(
            "StateMachineTypeNotSupported",
            "This operation is not supported by this type of state machine",
        ));
    }
    let request = Start {
        machine: machine.arn,
        name: members.text("name")?.map(str::to_owned),
        input: members.text("input")?.unwrap_or("{}").to_owned(),
        parent: None,
        trace: members.text("traceHeader")?.map(str::to_owned).or(trace),
    };
    let (number, _) = engine.0.start(request).await?;
    let execution = engine.0.ended(number).await?;
    let mut answer = json!({
        "executionArn": execution.arn,
        "stateMachineArn": execution.machine,
        "name": execution.name,
        "startDate": seconds(execution.start_ms),
        "stopDate": seconds(execution.stop_ms.unwrap_or(execution.start_ms)),
        "status": execution.status.name(),
        "input": execution.input,
        "inputDetails": {"included": true},
        "billingDetails": {
            "billedMemoryUsedInMB": 64,
            "billedDurationInMilliseconds": billed_ms(&execution),
        },
    });
    if let Some(output) = execution.output {
        answer["output"] = output.into();
        answer["outputDetails"] = json!({"included": true});
    }
    for (name, value) in [("error", execution.error), ("cause", execution.cause)] {
        if let Some(value) = value {
            answer[name] = value.into();
        }
    }
    Ok(answer)
}

/// Duration in steps of 100 ms, as express executions are billed.
fn billed_ms(execution: &Execution) -> i64 {
    let stop_ms = execution.stop_ms.unwrap_or(execution.start_ms);
    ((stop_ms - execution.start_ms).max(1) + 99) / 100 * 100
}

/// `StopExecution`; of an execution that has ended, its end.
pub(super) async fn stop(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let (number, _) = find(engine, members.required("executionArn")?)?;
    let error = bounded(members, "error", LONGEST_ERROR)?;
    let cause = bounded(members, "cause", LONGEST_CAUSE)?;
    let (reply, answer) = oneshot::channel();
    let signal = Signal::Stop {
        error,
        cause,
        reply: Some(reply),
    };
    if engine.0.is_driven(number) {
        engine.0.signal(number, signal);
        if let Ok(answer) = answer.await {
            return answer;
        }
    }
    // It ended meanwhile, or before.
    let (_, execution) = find(engine, members.required("executionArn")?)?;
    match execution.stop_ms {
        Some(stop_ms) => Ok(json!({"stopDate": seconds(stop_ms)})),
        None => Err(ApiError::shutting_down()),
    }
}

/// `RedriveExecution`: goes on from what did not succeed.
pub(super) async fn redrive(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let arn = members.required("executionArn")?;
    find(engine, arn)?;
    let token = members.text("clientToken")?;
    let is_printable = |token: &str| token.bytes().all(|byte| byte.is_ascii_graphic());
    if token
        .is_some_and(|token| !(1..=LONGEST_TOKEN).contains(&token.len()) || !is_printable(token))
    {
        return Err(ApiError::validation(format!(
            "1 validation error detected: Value at 'clientToken' failed to satisfy constraint: Member must have length between 1 and {LONGEST_TOKEN} and satisfy regular expression pattern: [!-~]+"
        )));
    }
    let at_ms = engine.0.redrive(arn, token).await?;
    Ok(json!({"redriveDate": seconds(at_ms)}))
}

/// A text of at most `longest` characters.
pub(super) fn bounded(
    members: &Members,
    name: &str,
    longest: usize,
) -> Result<Option<String>, ApiError> {
    match members.text(name)? {
        Some(text) if text.chars().count() > longest => Err(ApiError::validation(format!(
            "1 validation error detected: Value at '{name}' failed to satisfy constraint: Member must have length less than or equal to {longest}"
        ))),
        text => Ok(text.map(str::to_owned)),
    }
}

/// `DescribeExecution`.
pub(super) fn describe(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let (number, execution) = find(engine, members.required("executionArn")?)?;
    let redrivable = engine.0.redrivable(number, &execution)?;
    let data = members.text("includedData")? != Some("METADATA_ONLY");
    let mut answer = json!({
        "executionArn": execution.arn,
        "stateMachineArn": execution.machine,
        "name": execution.name,
        "status": execution.status.name(),
        "startDate": seconds(execution.start_ms),
        "redriveCount": execution.redrives.count,
        "redriveStatus": redrivable.name(),
    });
    if let Redrivable::No(reason) = redrivable {
        answer["redriveStatusReason"] = reason.into();
    }
    if data {
        answer["input"] = execution.input.into();
        answer["inputDetails"] = json!({"included": true});
        if let Some(output) = execution.output {
            answer["output"] = output.into();
            answer["outputDetails"] = json!({"included": true});
        }
    }
    let optional = [
        ("stopDate", execution.stop_ms.map(seconds)),
        ("error", execution.error.map(Value::from)),
        ("cause", execution.cause.map(Value::from)),
        ("traceHeader", execution.trace.map(Value::from)),
        ("mapRunArn", execution.map_run.map(Value::from)),
        ("redriveDate", execution.redrives.last_ms.map(seconds)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            answer[name] = value;
        }
    }
    Ok(answer)
}

/// `ListExecutions`, newest first.
pub(super) fn list(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let map_run = match members.text("mapRunArn")? {
        Some(arn) => Some(map_runs::find(engine, arn)?),
        None => None,
    };
    let filter = members.text("statusFilter")?;
    if let (Some(map_run), Some(PENDING_REDRIVE)) = (&map_run, filter) {
        return list_pending(engine, members, map_run);
    }
    let list = match map_run {
        Some(map_run) => map_run.arn,
        None => machines::find(engine, members.required("stateMachineArn")?)?.arn,
    };
    let status = match filter {
        None => None,
        // Only children of map runs wait for that.
        Some(PENDING_REDRIVE) => return Ok(json!({"executions": []})),
        Some(name) => Some(Status::from_name(name).ok_or_else(|| {
            ApiError::validation(format!(
                "1 validation error detected: Value '{name}' at 'statusFilter' failed to satisfy constraint: Member must satisfy enum value set: [SUCCEEDED, TIMED_OUT, PENDING_REDRIVE, ABORTED, FAILED, RUNNING]"
            ))
        })?),
    };
    let most = members.max_results(100)?;
    let before = page::number(members)?.unwrap_or(u64::MAX);
    let journal = &engine.0.journal;
    let mut numbers = journal.list(&list, status, before, most + 1)?;
    let has_more = numbers.len() > most;
    numbers.truncate(most);
    let mut shown = Vec::with_capacity(numbers.len());
    for number in &numbers {
        if let Some(execution) = journal.execution(*number)? {
            shown.push(listed(&execution, execution.status.name()));
        }
    }
    let mut answer = json!({"executions": shown});
    if let (true, Some(last)) = (has_more, numbers.last()) {
        answer["nextToken"] = page::token(&last.to_string()).into();
    }
    Ok(answer)
}

/// Children of a redriven map run whose turn to go on has not come.
fn list_pending(
    engine: &Engine,
    members: &Members,
    map_run: &MapRunRecord,
) -> Result<Value, ApiError> {
    let most = members.max_results(100)?;
    let before = page::number(members)?.unwrap_or(u64::MAX);
    let mut pending = map_runs::pending(engine, map_run)?;
    pending.retain(|(number, _)| *number < before);
    let next = pending.get(most).and_then(|_| pending.get(most - 1));
    let next = next.map(|(number, _)| page::token(&number.to_string()));
    let page = pending.iter().take(most);
    let shown: Vec<Value> = page
        .map(|(_, child)| listed(child, PENDING_REDRIVE))
        .collect();
    let mut answer = json!({"executions": shown});
    if let Some(next) = next {
        answer["nextToken"] = next.into();
    }
    Ok(answer)
}

fn listed(execution: &Execution, status: &str) -> Value {
    let mut entry = json!({
        "executionArn": execution.arn,
        "stateMachineArn": execution.machine,
        "name": execution.name,
        "status": status,
        "startDate": seconds(execution.start_ms),
        "redriveCount": execution.redrives.count,
    });
    let optional = [
        ("stopDate", execution.stop_ms.map(seconds)),
        ("redriveDate", execution.redrives.last_ms.map(seconds)),
        ("mapRunArn", execution.map_run.clone().map(Value::from)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            entry[name] = value;
        }
    }
    entry
}

/// The execution with this ARN.
pub(super) fn find(engine: &Engine, arn: &str) -> Result<(u64, Execution), ApiError> {
    // Express executions are kept like others, so they can be looked at, which AWS refuses.
    if arn::check(arn, "express").is_err() {
        arn::check(arn, "execution")?;
    }
    let found = engine.0.by_arn(arn)?;
    found.ok_or_else(|| execution_does_not_exist(arn))
}
