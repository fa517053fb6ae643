//! The activity that tasks come from, over Step Functions' own protocol.

use std::time::Duration;

use aws_sdk_sfn::Client;
use aws_sdk_sfn::error::ProvideErrorMetadata;
use slipway_clock::Clock;

use super::DelegateConfig;

/// Pause after a call that failed, so that an absent service is not flooded.
const PAUSE: Duration = Duration::from_secs(2);

/// Attempts to complete a task. Its result is stored by then, so what is lost is only promptness.
const ATTEMPTS: u32 = 6;

pub(super) struct Activity {
    sfn: Client,
    arn: String,
    worker: String,
    clock: Clock,
}

/// What a heartbeat met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    /// The task is ours.
    Alive,
    /// The task is over for Step Functions: timed out, stopped, or completed by another.
    Gone,
    /// No answer; the next one may have one.
    Unknown,
}

impl Activity {
    pub(super) fn new(sfn: Client, config: &DelegateConfig, clock: Clock) -> Self {
        Self {
            sfn,
            arn: config.activity_arn.clone(),
            worker: config.name.clone(),
            clock,
        }
    }

    /// The next task: token and input. `None` after a minute without one, and after a failed call.
    pub(super) async fn next(&self) -> Option<(String, String)> {
        let call = self
            .sfn
            .get_activity_task()
            .activity_arn(&self.arn)
            .worker_name(&self.worker);
        match call.send().await {
            Ok(task) => Some((
                task.task_token.filter(|token| !token.is_empty())?,
                task.input.unwrap_or_default(),
            )),
            Err(error) => {
                let error = error.into_service_error();
                tracing::warn!(code = error.code(), "cannot ask for a task; trying again");
                self.clock.sleep(PAUSE).await;
                None
            }
        }
    }

    pub(super) async fn heartbeat(&self, token: &str) -> Beat {
        match self
            .sfn
            .send_task_heartbeat()
            .task_token(token)
            .send()
            .await
        {
            Ok(_) => Beat::Alive,
            Err(error) => {
                let error = error.into_service_error();
                if error.is_task_timed_out()
                    || error.is_task_does_not_exist()
                    || error.is_invalid_token()
                {
                    Beat::Gone
                } else {
                    Beat::Unknown
                }
            }
        }
    }

    /// Says that the result of a task is stored.
    pub(super) async fn complete(&self, token: &str, task: &str) {
        let output = serde_json::json!({ "task": task }).to_string();
        for _ in 0..ATTEMPTS {
            let call = self
                .sfn
                .send_task_success()
                .task_token(token)
                .output(&output);
            let Err(error) = call.send().await else {
                return;
            };
            let error = error.into_service_error();
            if error.is_task_timed_out()
                || error.is_task_does_not_exist()
                || error.is_invalid_token()
            {
                return;
            }
            tracing::warn!(
                task,
                code = error.code(),
                "cannot complete a task; trying again"
            );
            self.clock.sleep(PAUSE).await;
        }
    }

    /// Gives a task back with an error that the state machine knows.
    pub(super) async fn fail(&self, token: &str, error: &str, cause: &str) {
        let call = self
            .sfn
            .send_task_failure()
            .task_token(token)
            .error(error)
            .cause(cause);
        if let Err(error) = call.send().await {
            let code = error.into_service_error();
            tracing::warn!(code = code.code(), "cannot give a task back");
        }
    }
}
