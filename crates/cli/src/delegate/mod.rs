//! The delegate: takes tasks from the activity, runs their scripts here, and reports how they ended.
//!
//! A task is done in this order, so that it survives the end of either side at any point: the claim (task
//! token) is written to disk; the task is fetched and run; its result is posted (the fact); only then the
//! activity is completed (the signal). A delegate that starts again picks up the claims of its dead
//! predecessor with their tokens. A script whose delegate died is run again: nobody can know how far it
//! came, and its own process group died with the delegate.

mod activity;
mod api;
mod claim;
mod command;
mod error;
mod logs;
mod mask;
mod output;
mod script;
mod task;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use slipway_clock::Clock;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use command::command;
pub use error::DelegateError;

use activity::Activity;
use api::TaskApi;
use claim::{Claim, Claims};
use task::Worker;

/// How a delegate is set up.
#[derive(Clone, Debug)]
pub struct DelegateConfig {
    /// Name that runs and logs show; also a selector that it carries.
    pub name: String,
    /// Base URL of the service, without a path.
    pub base_url: String,
    /// Token with the permission of a delegate.
    pub token: SecretString,
    /// ARN of the activity that tasks come from.
    pub activity_arn: String,
    /// Selectors that it carries; [`slipway_steps::delegate::ANY_SELECTOR`] for all.
    pub selectors: Vec<String>,
    /// Folder of its own for scripts and claims; must survive a restart.
    pub work_dir: PathBuf,
    /// Most scripts at once.
    pub tasks: usize,
    /// Time between two heartbeats; [`HEARTBEAT`] unless there is a reason.
    pub heartbeat: Duration,
}

/// The usual time between two heartbeats; the state machine waits for several.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// Works until `shutdown`, then kills its scripts and leaves their claims for the next start. Fails at once
/// when the folder cannot be used or another delegate uses it; troubles with the service are waited out.
pub async fn run(
    config: DelegateConfig,
    sfn: aws_sdk_sfn::Client,
    http: reqwest::Client,
    clock: Clock,
    shutdown: CancellationToken,
) -> Result<(), DelegateError> {
    let claims = Claims::open(&config.work_dir)?;
    let left = claims.left()?;
    let worker = Arc::new(Worker {
        api: TaskApi::new(&config, http, clock.clone()),
        activity: Activity::new(sfn, &config, clock.clone()),
        claims,
        clock,
        config,
        shutdown: shutdown.clone(),
    });
    let room = Arc::new(Semaphore::new(worker.config.tasks.max(1)));
    let tasks = TaskTracker::new();
    let mut left = left.into_iter();
    while !shutdown.is_cancelled() {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            break;
        };
        let next = match left.next() {
            Some(claim) => Some(claim),
            None => tokio::select! {
                () = shutdown.cancelled() => break,
                next = take(&worker) => next,
            },
        };
        if let Some(claim) = next {
            let worker = Arc::clone(&worker);
            tasks.spawn(async move {
                worker.work(claim).await;
                drop(permit);
            });
        }
    }
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// Tokens of the tasks that the delegate of this folder had when it died.
///
/// # Errors
/// As [`run`], for the folder.
pub fn held(work_dir: &std::path::Path) -> Result<HashSet<String>, DelegateError> {
    let left = Claims::open(work_dir)?.left()?;
    Ok(left.into_iter().map(|claim| claim.token).collect())
}

/// Waits for the next task and writes its claim down.
async fn take(worker: &Worker) -> Option<Claim> {
    let (token, input) = worker.activity.next().await?;
    match claim::task_id(&input) {
        Some(task) => match worker.claims.write(&token, &task) {
            Ok(claim) => Some(claim),
            Err(error) => {
                tracing::error!(task, error = %error::chain(&error), "cannot write the claim of a task down");
                worker
                    .activity
                    .fail(&token, "ClaimNotWritten", "the delegate's disk")
                    .await;
                None
            }
        },
        None => {
            tracing::error!("the activity gave something that is no task");
            worker
                .activity
                .fail(&token, "UnknownTask", "the input names no task")
                .await;
            None
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod worker_tests;
