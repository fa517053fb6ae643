//! Starts the executions of runs: at once where that works, and else later, in the order in which they were accepted.
//!
//! An accepted run is listed until its execution has begun. Whoever cannot start one leaves it there; the runs of its
//! pipeline that are accepted after it go behind it, and a schedule starts what is listed.

use slipway_model::id::{RunId, Scope};
use slipway_model::status::Status;
use slipway_store::record::RunRecord;
use slipway_store::{Page, Store, Unstarted};

use crate::error::{Doing, RunError};
use crate::runs::Runs;

/// A run that was accepted so recently may be about to be started by who accepted it.
const UNDER_WAY_MS: i64 = 20_000;

/// Most runs of one list that are started in one go; the next sweep goes on.
const AT_ONCE: usize = 1_000;

/// Newest runs of a scope that are looked at after a restart for one that was recorded and not started.
const SWEPT: usize = 100;

/// Whether an execution is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It runs.
    Runs,
    /// There was one of this name, and it has ended.
    Before,
}

/// What a sweep over accepted runs did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Runs whose execution was started.
    pub started: usize,
    /// Lists that were given up at the first run that could not be started.
    pub given_up: usize,
}

/// Starts the execution of a recorded run. One that was started before is as good.
///
/// # Errors
/// When Step Functions cannot be reached.
pub async fn start_execution(runs: &Runs, run: &RunId) -> Result<Started, RunError> {
    let input = serde_json::json!({"runId": run}).to_string();
    let call = runs
        .workflows
        .start_execution()
        .state_machine_arn(&runs.pipeline_machine)
        .name(run.as_str())
        .input(input);
    match Box::pin(call.send()).await {
        Ok(_) => Ok(Started::Runs),
        Err(error)
            if error
                .as_service_error()
                .is_some_and(|e| e.is_execution_already_exists()) =>
        {
            Ok(Started::Before)
        }
        Err(error) => Err(error).doing(|| format!("start the execution of run {run}")),
    }
}

/// Starts what was accepted a while ago and has not begun, oldest first; what cannot be started stays listed, and so does
/// what was accepted after it. Repeating it changes nothing.
///
/// # Errors
/// When the store cannot be reached.
pub async fn start_accepted(runs: &Runs) -> Result<Swept, RunError> {
    let before_ms = runs.clock.now_ms().saturating_sub(UNDER_WAY_MS);
    let mut swept = Swept::default();
    for shard in 0..Store::UNSTARTED_LISTS {
        let listed = runs.store.list_unstarted(shard, before_ms, AT_ONCE).await;
        let listed = listed.doing(|| "list the runs that have not begun".to_owned())?;
        match start_in_order(runs, &listed, &mut swept.started).await {
            Ok(()) => {}
            Err(error @ RunError::Workflow { .. }) => {
                tracing::warn!(error = %error.full_text(), "accepted runs wait for the next sweep");
                swept.given_up += 1;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(swept)
}

/// Starts the runs of a scope that were accepted and have not begun, the newest one included.
///
/// # Errors
/// When one cannot be started: those behind it are left.
pub(crate) async fn catch_up(runs: &Runs, scope: &Scope) -> Result<(), RunError> {
    let now_ms = runs.clock.now_ms().saturating_add(1);
    let listed = runs
        .store
        .list_unstarted(Store::shard_of(scope), now_ms, AT_ONCE);
    let listed = listed
        .await
        .doing(|| "list the runs that have not begun".to_owned())?;
    start_in_order(runs, &listed, &mut 0).await
}

/// Notes that a run waits for its start. That this fails loses nothing but the order.
pub(crate) async fn fall_behind(runs: &Runs, run: &RunRecord) {
    if let Err(error) = runs.store.fall_behind(&run.scope, &run.pipeline).await {
        tracing::warn!(run.id = %run.id, %error, "cannot note that runs of its pipeline wait for their start");
    }
}

async fn start_in_order(
    runs: &Runs,
    listed: &[Unstarted],
    started: &mut usize,
) -> Result<(), RunError> {
    for unstarted in listed {
        match start_execution(runs, &unstarted.run).await? {
            Started::Runs => *started += 1,
            Started::Before => {
                // It never said that it begins: nothing else takes it off the list.
                let forgotten = runs.store.forget_unstarted(unstarted).await;
                forgotten.doing(|| format!("take run {} off the list", unstarted.run))?;
            }
        }
    }
    if listed.len() < AT_ONCE {
        for unstarted in listed {
            let caught_up = runs.store.catch_up(unstarted).await;
            caught_up.doing(|| format!("note that run {} does not wait", unstarted.run))?;
        }
    }
    Ok(())
}

/// Starts the newest runs of a scope that were recorded and, because of a crash or an outage, never
/// started. Answers how many there were.
///
/// # Errors
/// When the store or Step Functions cannot be reached.
pub async fn resume_unstarted(runs: &Runs, scope: &Scope) -> Result<usize, RunError> {
    let newest = runs.store.list_runs(scope, None, Page::first(SWEPT)).await;
    let newest = newest.doing(|| "list the newest runs".to_owned())?;
    let mut resumed = 0;
    let waiting = |run: &&RunRecord| run.status == Status::NotStarted;
    for run in newest.items.iter().rev().filter(waiting) {
        start_execution(runs, &run.id).await?;
        resumed += 1;
    }
    Ok(resumed)
}
