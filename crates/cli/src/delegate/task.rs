//! One task from its claim to its completion.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use slipway_clock::Clock;
use slipway_expr::secret::SecretText;
use slipway_steps::delegate::{ClaimedTask, SecretValue, UNSUITABLE, suits};
use slipway_steps::shell::task::{Outcome, Payload, Status, TASK_TYPE, is_shell_name};
use slipway_store::record::LogLine;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::DelegateConfig;
use super::activity::{Activity, Beat};
use super::api::{Claimed, TaskApi};
use super::claim::{Claim, Claims};
use super::error::chain;
use super::mask::{SHORTEST, Secrets};
use super::script::{self, Script, failed};
use super::{logs, output};

/// Most bytes of one script's output that are kept.
const LOG_LIMIT: usize = 25 * 1024 * 1024;

/// Lines in memory between a script and the service.
const LINES_IN_FLIGHT: usize = 256;

/// Everything that a task needs of its delegate.
pub(super) struct Worker {
    pub(super) api: TaskApi,
    pub(super) activity: Activity,
    pub(super) claims: Claims,
    pub(super) clock: Clock,
    pub(super) config: DelegateConfig,
    pub(super) shutdown: CancellationToken,
}

/// How the work on a task ended.
enum End {
    /// Its result is stored, or needs none: complete the activity.
    Complete,
    /// Another delegate must do it.
    Unsuitable,
    /// Step Functions has given it up.
    Lost,
    /// The delegate ends; the next one goes on with the claim.
    Shutdown,
}

impl Worker {
    /// Does a task. Troubles are in the log; there is nobody else to tell.
    pub(super) async fn work(&self, claim: Claim) {
        let cancel = CancellationToken::new();
        let end = {
            let work = self.do_task(&claim, &cancel);
            tokio::pin!(work);
            tokio::select! {
                end = &mut work => end,
                end = self.watch(&claim) => {
                    // The script gets its time to end, and then its folder is removed.
                    cancel.cancel();
                    tokio::select! {
                        _ = &mut work => {}
                        () = self.clock.sleep(script::GRACE * 3) => {}
                    }
                    end
                }
            }
        };
        match end {
            End::Complete => self.activity.complete(&claim.token, &claim.task).await,
            End::Unsuitable => {
                let cause = format!("delegate {} does not carry the selectors", self.config.name);
                self.activity.fail(&claim.token, UNSUITABLE, &cause).await;
            }
            End::Lost => tracing::warn!(task = claim.task, "the task was given up by the service"),
            End::Shutdown => return,
        }
        self.claims.remove(&claim);
    }

    /// Keeps the task alive; ends when it is over for a reason from outside.
    async fn watch(&self, claim: &Claim) -> End {
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return End::Shutdown,
                () = self.clock.sleep(self.config.heartbeat) => {}
            }
            if self.activity.heartbeat(&claim.token).await == Beat::Gone {
                return End::Lost;
            }
            if self.api.is_cancelled(&claim.task).await {
                return End::Complete;
            }
        }
    }

    async fn do_task(&self, claim: &Claim, cancel: &CancellationToken) -> End {
        let task = match self.api.claim(&claim.task).await {
            Claimed::Work(task) => *task,
            Claimed::Over => return End::Complete,
            Claimed::Unsuitable => return End::Unsuitable,
        };
        if !suits(&self.config.selectors, &self.config.name, &task.selectors) {
            return End::Unsuitable;
        }
        let (sender, receiver) = mpsc::channel(LINES_IN_FLIGHT);
        let forward = logs::forward(&self.api, &claim.task, &self.clock, receiver);
        let run = async {
            let outcome = self.run(claim, task, &sender, cancel).await;
            drop(sender);
            outcome
        };
        let (outcome, ()) = tokio::join!(run, forward);
        if let Some(outcome) = outcome {
            self.api.result(&claim.task, &outcome).await;
        }
        End::Complete
    }

    async fn run(
        &self,
        claim: &Claim,
        task: ClaimedTask,
        lines: &mpsc::Sender<LogLine>,
        cancel: &CancellationToken,
    ) -> Option<Outcome> {
        let prepared = prepare(task);
        let (script, secrets) = match prepared {
            Ok(prepared) => prepared,
            Err(message) => return Some(failed(Status::Failure, None, Some(message))),
        };
        let mut warnings = Vec::new();
        if claim.inherited {
            let text =
                "The delegate was started again while the script ran; the script is run anew.";
            warnings.push(text.to_owned());
        }
        if secrets.short > 0 {
            warnings.push(format!(
                "{} secret(s) with fewer than {SHORTEST} characters are not masked in this log.",
                secrets.short
            ));
        }
        for text in warnings {
            let _ = lines.send(output::line(&self.clock, "WARN", text)).await;
        }
        let outcome = match self.claims.task_folder() {
            Ok(folder) => {
                script::run(&script, &folder, &secrets.found, &self.clock, lines, cancel).await
            }
            Err(error) => Err(error),
        };
        outcome.unwrap_or_else(|error| {
            let message = format!("Delegate {}: {}.", self.config.name, chain(&error));
            Some(failed(Status::Failure, None, Some(message)))
        })
    }
}

struct TaskSecrets {
    found: Secrets,
    /// Secrets that are too short to be masked.
    short: usize,
}

/// The script of a task with its secrets filled in; or why there is none, without a secret in it.
fn prepare(task: ClaimedTask) -> Result<(Script, TaskSecrets), String> {
    if task.task_type != TASK_TYPE {
        let unknown = task.task_type;
        return Err(format!(
            "This delegate does not know tasks of type `{unknown}`."
        ));
    }
    let payload: Payload = serde_json::from_value(task.payload)
        .map_err(|error| format!("The task cannot be read: {error}."))?;
    if let Some(output) = payload
        .outputs
        .iter()
        .find(|output| !is_shell_name(&output.variable))
    {
        let name = &output.name;
        return Err(format!(
            "Output variable {name}: it is read from no shell variable."
        ));
    }
    let values = Values::new(&task.secrets);
    let mut environment = Vec::new();
    for variable in &payload.environment {
        let name = environment_name(&variable.name)?;
        environment.push((name, no_nul(values.reveal(&variable.value)?)?));
    }
    let working_directory = payload.working_directory.as_deref();
    let working_directory = working_directory
        .map(|text| values.reveal(text))
        .transpose()?;
    let script = Script {
        shell: payload.shell,
        text: values.reveal(&payload.script)?,
        environment,
        outputs: payload.outputs,
        working_directory: working_directory.map(PathBuf::from),
        timeout: Duration::from_secs(payload.timeout_seconds.min(task.timeout_seconds.max(1))),
        grace: script::GRACE,
        log_limit: LOG_LIMIT,
        artifacts: payload.artifacts,
    };
    Ok((script, values.secrets()))
}

/// Values of secrets by the hole that they fill.
struct Values<'t>(HashMap<&'t str, &'t str>);

impl<'t> Values<'t> {
    fn new(secrets: &'t [SecretValue]) -> Self {
        let values = secrets
            .iter()
            .map(|secret| (&*secret.placeholder, &*secret.value));
        Self(values.collect())
    }

    fn reveal(&self, text: &str) -> Result<String, String> {
        SecretText::decode(text).reveal(|reference| {
            let hole = SecretText::secret(reference.clone()).encode();
            let value = self.0.get(hole.as_str()).map(|value| (*value).to_owned());
            let name = reference.as_str();
            value.ok_or_else(|| format!("The service did not send the value of secret {name}."))
        })
    }

    fn secrets(&self) -> TaskSecrets {
        let short = self
            .0
            .values()
            .filter(|value| value.trim_end().len() < SHORTEST);
        TaskSecrets {
            short: short.count(),
            found: Secrets::new(self.0.values().copied()),
        }
    }
}

fn environment_name(name: &str) -> Result<String, String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(format!(
            "`{}` cannot be the name of an environment variable.",
            name.escape_debug()
        ));
    }
    Ok(name.to_owned())
}

fn no_nul(value: String) -> Result<String, String> {
    if value.contains('\0') {
        return Err(
            "The value of an environment variable has a NUL, which none can have.".to_owned(),
        );
    }
    Ok(value)
}
