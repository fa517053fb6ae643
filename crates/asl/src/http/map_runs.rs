//! Operations on map runs.

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::request::Members;
use super::{executions, page};
use crate::arn;
use crate::driver::Signal;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::history::seconds;
use crate::record::{Execution, MapRunRecord, Status};
use crate::run::{Change, map_run_has_ended, map_run_of};

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
    let waiting = pending(engine, &run)?.len();
    let (running, succeeded, failed) = match is_running {
        true => (
            children(Status::Running)?,
            children(Status::Succeeded)?,
            (children(Status::Failed)? + children(Status::TimedOut)? + children(Status::Aborted)?)
                .saturating_sub(waiting),
        ),
        false => (0, run.succeeded, run.failed),
    };
    let counts = |total: usize| {
        let left = total.saturating_sub(running + succeeded + failed + waiting);
        let (pending, aborted) = if is_running { (left, 0) } else { (0, left) };
        json!({
            "pending": pending, "running": running, "succeeded": succeeded, "failed": failed,
            "timedOut": 0, "aborted": aborted, "total": total, "resultsWritten": 0,
            "failuresNotRedrivable": 0, "pendingRedrive": waiting,
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
        "redriveCount": run.redrives.count,
    });
    let optional = [
        ("stopDate", run.stop_ms),
        ("redriveDate", run.redrives.last_ms),
    ];
    for (name, at_ms) in optional {
        if let Some(at_ms) = at_ms {
            answer[name] = seconds(at_ms);
        }
    }
    Ok(answer)
}

/// Children of a redriven map run that did not succeed before, and have not gone on yet; newest first.
pub(super) fn pending(
    engine: &Engine,
    run: &MapRunRecord,
) -> Result<Vec<(u64, Execution)>, ApiError> {
    let mut found = Vec::new();
    if run.status != Status::Running || run.redrives.is_none() {
        return Ok(found);
    }
    let journal = &engine.0.journal;
    for status in [Status::Failed, Status::TimedOut, Status::Aborted] {
        for number in journal.list(&run.arn, Some(status), u64::MAX, usize::MAX)? {
            let child = journal.execution(number)?;
            let of_before = |child: &Execution| {
                let parent = child.parent.map_or(0, |parent| parent.attempt);
                map_run_of(parent).0 < run.started
            };
            found.extend(child.filter(of_before).map(|child| (number, child)));
        }
    }
    found.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
    Ok(found)
}

/// `UpdateMapRun`: other limits for a map run under way.
pub(super) async fn update(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let arn = members.required("mapRunArn")?;
    arn::check(arn, "mapRun")?;
    let run = find(engine, arn)?;
    let change = Change {
        concurrency: whole(members, "maxConcurrency", i32::MAX.unsigned_abs().into())?
            .map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
        tolerated_count: whole(members, "toleratedFailureCount", i64::MAX.unsigned_abs())?,
        tolerated_percentage: percentage(members)?,
    };
    let (reply, answer) = oneshot::channel();
    let number = engine.0.journal.execution_number(&run.execution)?;
    match number.filter(|number| engine.0.is_driven(*number)) {
        None => Err(map_run_has_ended(arn)),
        Some(number) => {
            let update = Signal::UpdateMapRun {
                arn: arn.to_owned(),
                change,
                reply,
            };
            engine.0.signal(number, update);
            match answer.await {
                Ok(answer) => answer,
                Err(_) if engine.0.is_driven(number) => Err(ApiError::shutting_down()),
                Err(_) => Err(map_run_has_ended(arn)),
            }
        }
    }
}

/// A member that is a whole number from 0.
fn whole(members: &Members, name: &str, most: u64) -> Result<Option<u64>, ApiError> {
    let Some(value) = members.get(name) else {
        return Ok(None);
    };
    let number = value.as_u64().filter(|number| *number <= most);
    number.map(Some).ok_or_else(|| {
        ApiError::validation(format!(
            "1 validation error detected: Value '{value}' at '{name}' failed to satisfy constraint: Member must have value greater than or equal to 0"
        ))
    })
}

fn percentage(members: &Members) -> Result<Option<f64>, ApiError> {
    const NAME: &str = "toleratedFailurePercentage";
    let Some(value) = members.get(NAME) else {
        return Ok(None);
    };
    let number = value
        .as_f64()
        .filter(|number| (0.0..=100.0).contains(number));
    number.map(Some).ok_or_else(|| {
        ApiError::validation(format!(
            "1 validation error detected: Value '{value}' at '{NAME}' failed to satisfy constraint: Member must have value between 0 and 100"
        ))
    })
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
