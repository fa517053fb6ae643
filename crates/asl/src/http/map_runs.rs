//! Operations on map runs.

use serde_json::{Value, json};

use super::request::Members;
use super::{executions, page};
use crate::engine::Engine;
use crate::error::ApiError;
use crate::history::seconds;
use crate::record::{MapRunRecord, Status};

/// `DescribeMapRun`.
pub(super) fn describe(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let run = find(engine, members.required("mapRunArn")?)?;
    // The record counts only at the end: while children run, they are counted themselves.
    let children = |status| -> Result<usize, ApiError> {
        let found = engine
            .0
            .journal
            .list(&run.arn, Some(status), u64::MAX, usize::MAX)?;
        Ok(found.len())
    };
    let is_running = run.status == Status::Running;
    let (running, succeeded, failed) = match is_running {
        true => (
            children(Status::Running)?,
            children(Status::Succeeded)?,
            children(Status::Failed)? + children(Status::TimedOut)?,
        ),
        false => (0, run.succeeded, run.failed),
    };
    let counts = |total: usize| {
        let left = total.saturating_sub(running + succeeded + failed);
        let (pending, aborted) = if is_running { (left, 0) } else { (0, left) };
        json!({
            "pending": pending, "running": running, "succeeded": succeeded, "failed": failed,
            "timedOut": 0, "aborted": aborted, "total": total, "resultsWritten": 0,
            "failuresNotRedrivable": 0, "pendingRedrive": 0,
        })
    };
    let mut answer = json!({
        "mapRunArn": run.arn,
        "executionArn": run.execution,
        "status": run.status.name(),
        "startDate": seconds(run.start_ms),
        "maxConcurrency": run.max_concurrency,
        "toleratedFailureCount": run.tolerated_count,
        "toleratedFailurePercentage": run.tolerated_percentage,
        "itemCounts": counts(if run.items == run.children { run.items } else { run.children }),
        "executionCounts": counts(run.children),
        "redriveCount": 0,
    });
    if let Some(stop_ms) = run.stop_ms {
        answer["stopDate"] = seconds(stop_ms);
    }
    Ok(answer)
}

/// `ListMapRuns` of an execution.
pub(super) fn list(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let (_, execution) = executions::find(engine, members.required("executionArn")?)?;
    let most = members.max_results(100)?;
    let after = page::place(members)?;
    let mut arns = engine.0.journal.map_runs(&execution.arn)?;
    arns.retain(|arn| after.as_ref().is_none_or(|after| arn > after));
    let next = arns.get(most).and_then(|_| arns.get(most - 1)).cloned();
    arns.truncate(most);
    let mut shown = Vec::with_capacity(arns.len());
    for arn in &arns {
        let run = find(engine, arn)?;
        let mut entry = json!({
            "executionArn": run.execution,
            "mapRunArn": run.arn,
            "stateMachineArn": run.machine,
            "startDate": seconds(run.start_ms),
        });
        if let Some(stop_ms) = run.stop_ms {
            entry["stopDate"] = seconds(stop_ms);
        }
        shown.push(entry);
    }
    let mut answer = json!({"mapRuns": shown});
    if let Some(next) = next {
        answer["nextToken"] = page::token(&next).into();
    }
    Ok(answer)
}

/// The map run with this ARN.
pub(super) fn find(engine: &Engine, arn: &str) -> Result<MapRunRecord, ApiError> {
    engine
        .0
        .journal
        .map_run(arn)?
        .ok_or_else(|| ApiError::new("ResourceNotFound", format!("Resource not found: '{arn}'")))
}
