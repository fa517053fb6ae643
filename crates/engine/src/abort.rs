//! The use case behind an interrupt: stop a run, recorded first and then carried out by its machines.

use slipway_model::id::{PrincipalId, RunId};
use slipway_store::StoreError;
use slipway_store::record::WaitRecord;

use crate::begin::complete;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::runs::Runs;

/// Who aborts a run when a failure strategy says so.
pub const FAILURE_STRATEGY: &str = "failure-strategy";

/// Asks a run to stop. The intent is written first; `Begin`, `Advance` and `End` see it at their next
/// turn. Then what waits is woken: tokens are completed, and delegates are told to drop their work.
/// Repeating it changes nothing.
///
/// Fails with `Conflict` if the run has ended.
pub async fn abort_run(runs: &Runs, run: &RunId, who: &PrincipalId) -> Result<(), RunError> {
    let record = runs.run(run).await?;
    if record.status.is_final() {
        let message = format!(
            "run {run} has ended ({:?}); there is nothing to abort",
            record.status
        );
        return Err(RunError::refused(ErrorName::Conflict, message));
    }
    if record.abort.is_none() {
        match runs.store.request_abort(run, who).await {
            // It has ended, or somebody else asked first.
            Ok(()) | Err(StoreError::Conflict { .. }) => {}
            Err(error) => Err(error).doing(|| format!("record that run {run} shall be aborted"))?,
        }
    }
    let waits = runs.store.list_waits(run).await;
    for wait in waits.doing(|| format!("read what run {run} waits for"))? {
        if let Some(token) = &wait.token {
            complete(runs, token).await?;
        }
        if wait.kind == "delegate" {
            cancel_task(runs, &task_of(&wait)).await?;
        }
    }
    Ok(())
}

/// Tells a delegate to drop its work. A task that was never given out is as good.
pub async fn cancel_task(runs: &Runs, task: &str) -> Result<(), RunError> {
    match runs.store.cancel_delegate_task(task).await {
        Ok(()) | Err(StoreError::NotFound { .. } | StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error).doing(|| format!("cancel the delegate's task {task}")),
    }
}

/// Id of the first delegate task of a node's attempt.
pub fn task_id(run: &RunId, node: &slipway_model::id::NodeId, attempt: u32) -> String {
    format!("{run}.{node}.{attempt}")
}

/// Id of a later task of an attempt whose first is `first`; 0 is the first.
pub fn later_task_id(first: &str, turn: u32) -> String {
    match turn {
        0 => first.to_owned(),
        turn => format!("{first}.turn-{turn}"),
    }
}

/// Whether a task is one of the attempt whose first is `first`.
pub fn is_task_of(task: &str, first: &str) -> bool {
    let rest = task.strip_prefix(first);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(".turn-"))
}

/// The delegate task that a wait is for.
pub fn task_of(wait: &WaitRecord) -> String {
    let first = || task_id(&wait.run, &wait.node, wait.attempt);
    wait.task.clone().unwrap_or_else(first)
}
