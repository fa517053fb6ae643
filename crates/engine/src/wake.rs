//! Waking what waits: whatever ends a wait is recorded first, and then the tokens of the run are completed, so that its
//! lanes and stages look again.

use slipway_model::id::{NodeId, PrincipalId, RunId, Scope};
use slipway_store::record::SignalRecord;
use slipway_store::{Page, StoreError};

use crate::abort::{abort_run, cancel_task, task_of};
use crate::begin::complete;
use crate::by_hand;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::runs::Runs;
use crate::signal::{ENDED, stopped};
use crate::stage_word;
use crate::woken::note_woken;

/// Ends the waits of a run, so that its lanes look again; nothing is lost where one did not need to.
///
/// # Errors
/// When the store or Step Functions cannot be reached.
pub async fn wake(runs: &Runs, run: &RunId) -> Result<(), RunError> {
    let record = runs.run(run).await?;
    let stopped = stopped(&record);
    let waits = runs.store.list_waits(run).await;
    for wait in waits.doing(|| format!("read what run {run} waits for"))? {
        // Nothing else begins a stage that waits for somebody to start it.
        let unstarted = wait.kind == by_hand::START && !by_hand::is_started(&record, &wait.node);
        let called = stage_word::is_called(&record, &wait);
        match &wait.token {
            Some(token) if called => complete(runs, token).await?,
            _ if unstarted => {}
            Some(token) if wait.kind != "resource" => complete(runs, token).await?,
            _ => {}
        }
        let is_stopped = stopped.contains_key(&(wait.node.clone(), wait.attempt))
            || stage_word::is_in_aborted(&record, &wait.node);
        if wait.kind == "delegate" && is_stopped {
            cancel_task(runs, &task_of(&wait)).await?;
        }
    }
    Ok(())
}

/// Runs read at once while looking for words that nobody heard.
const SWEPT: usize = 100;

/// Wakes the open runs of a scope about which something was said, or which are to be aborted: whoever said it may have
/// died after it was recorded and before it was heard. Where it was heard, nothing changes. Answers how many there are.
///
/// # Errors
/// When the store or Step Functions cannot be reached.
pub async fn wake_unheard(runs: &Runs, scope: &Scope) -> Result<usize, RunError> {
    let mut page = Page::first(SWEPT);
    let mut woken = 0;
    loop {
        let found = runs.store.list_runs(scope, None, page).await;
        let found = found.doing(|| "list runs".to_owned())?;
        for run in found.items.iter().filter(|run| !run.status.is_final()) {
            let run = runs.run(&run.id).await?;
            match &run.abort {
                _ if run.status.is_final() => continue,
                Some((who, _)) => match abort_run(runs, &run.id, who).await {
                    // It has ended in the meantime.
                    Err(error) if error.name() == ErrorName::Conflict => continue,
                    aborted => aborted?,
                },
                None if run.signals.is_empty() => continue,
                None => wake(runs, &run.id).await?,
            }
            woken += 1;
        }
        let Some(next) = found.next else {
            return Ok(woken);
        };
        page = Page {
            limit: SWEPT,
            after: Some(next),
        };
    }
}

/// Lets the other lanes of a run know that an attempt of a node, or a stage, has ended. It is recorded, so that a lane
/// that is just about to wait hears it.
///
/// # Errors
/// When the store or Step Functions cannot be reached.
pub async fn tell_end(
    runs: &Runs,
    run: &RunId,
    node: &NodeId,
    attempt: u32,
) -> Result<(), RunError> {
    let signal = SignalRecord {
        run: run.clone(),
        node: node.clone(),
        attempt,
        kind: ENDED.to_owned(),
        says: String::new(),
        who: PrincipalId::new("slipway"),
        at_ms: runs.clock.now_ms(),
    };
    match runs.store.put_signal(&signal).await {
        Ok(()) | Err(StoreError::AlreadyExists { .. }) => {}
        Err(error) => Err(error).doing(|| format!("tell that {node} has ended"))?,
    }
    wake(runs, run).await
}

/// As [`tell_end`], of a failure, and records that the lanes were woken: a lane that comes back after a crash tells of the
/// failures that this is not known of, and of no other. Lanes that wait side by side for their next attempts would wake one
/// another without end.
///
/// # Errors
/// When the store or Step Functions cannot be reached.
pub async fn tell_failure(
    runs: &Runs,
    run: &RunId,
    node: &NodeId,
    attempt: u32,
) -> Result<(), RunError> {
    tell_end(runs, run, node, attempt).await?;
    note_woken(runs, run, (node, attempt), ENDED).await
}
