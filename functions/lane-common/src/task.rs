//! Work that a delegate does: given out once, waited for by the machine, read from the store.

use std::time::Duration;

use serde_json::Value;
use slipway_engine::abort::{is_task_of, later_task_id, task_id};
use slipway_engine::directive::Directive;
use slipway_engine::error::Doing;
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::StepPlan;
use slipway_steps::DelegateWork;
use slipway_store::StoreError;
use slipway_store::record::{DelegateTaskRecord, WaitRecord};

use crate::HandlerError;
use crate::walk::Walk;

/// Kind of the wait for a delegate.
pub(crate) const WAIT: &str = "delegate";

/// What the machine waits longer than the step may take, in seconds: the delegate tells of a timeout first.
const GRACE: u64 = 10;

/// Longest silence of a delegate, in seconds.
const HEARTBEAT: u64 = 60;

impl Walk<'_> {
    /// The result of a delegate's work for this attempt, if the machine has just waited for it. An error
    /// means that there will be none.
    pub(crate) async fn delegate_result(
        &mut self,
        step: &StepPlan,
        attempt: u32,
    ) -> Result<Result<Option<Value>, Failure>, HandlerError> {
        let first = task_id(&self.of_run.run.id, &step.id, attempt);
        let id = match self.event.done() {
            Some(Directive::AwaitDelegate { task, .. }) if is_task_of(task, &first) => task.clone(),
            _ => return Ok(Ok(None)),
        };
        let Some(task) = self.task(&id).await? else {
            return Ok(Ok(None));
        };
        if let Some(result) = task.result {
            self.forget_wait(step, attempt).await?;
            return Ok(Ok(Some(result)));
        }
        let Some(failure) = lost(&task, self.event.error.as_deref()) else {
            return Ok(Ok(None));
        };
        self.forget_wait(step, attempt).await?;
        slipway_engine::abort::cancel_task(&self.deps.runs, &id).await?;
        Ok(Err(failure))
    }

    /// Whether the machine has just waited for a delegate that reported before the time of the step was up.
    pub(crate) async fn was_in_time(
        &self,
        step: &StepPlan,
        attempt: u32,
    ) -> Result<bool, HandlerError> {
        let first = task_id(&self.of_run.run.id, &step.id, attempt);
        let task = match self.event.done() {
            Some(Directive::AwaitDelegate { task, .. }) if is_task_of(task, &first) => {
                self.task(task).await?
            }
            _ => None,
        };
        let began_ms = self.began_ms(self.record(step)?);
        let limit = i64::try_from(step.timeout.as_millis()).unwrap_or(i64::MAX);
        let finished_ms = task.and_then(|task| task.finished_ms);
        Ok(finished_ms.is_some_and(|at_ms| at_ms < began_ms.saturating_add(limit)))
    }

    /// Gives work to a delegate, once per attempt and turn.
    pub(crate) async fn delegate(
        &mut self,
        step: &StepPlan,
        attempt: u32,
        work: DelegateWork,
    ) -> Result<Option<Directive>, HandlerError> {
        let run = self.of_run.run.id.clone();
        let id = later_task_id(&task_id(&run, &step.id, attempt), work.turn);
        let left = self.time_left(step)?;
        let mut payload = work.payload;
        end_with(&mut payload, left);
        let task = DelegateTaskRecord {
            id: id.clone(),
            errand_of: None,
            run: run.clone(),
            node: step.id.clone(),
            attempt,
            task_type: work.task_type,
            payload,
            selectors: work.selectors,
            unsuitable: Vec::new(),
            delegate: None,
            result: None,
            finished_ms: None,
            cancelled: false,
        };
        let wait = WaitRecord {
            run,
            node: step.id.clone(),
            attempt,
            kind: WAIT.to_owned(),
            token: None,
            task: Some(id),
        };
        let store = &self.deps.runs.store;
        store
            .put_wait(&wait)
            .await
            .doing(|| format!("record that {} waits", step.id))?;
        match store.put_delegate_task(&task).await {
            Ok(()) | Err(StoreError::AlreadyExists { .. }) => {}
            Err(error) => Err(error).doing(|| format!("give {} to a delegate", step.id))?,
        }
        // Read after the wait was recorded: who stops it either sees the wait, or is seen here.
        self.read_abort().await?;
        let stopped = &self.facts.stopped;
        if self.facts.aborted || stopped.contains_key(&(step.id.clone(), attempt)) {
            return Ok(None);
        }
        let timeout_seconds = left.as_secs() + GRACE;
        Ok(Some(Directive::AwaitDelegate {
            task: task.id,
            timeout_seconds,
            heartbeat_seconds: HEARTBEAT.min(timeout_seconds - 1),
        }))
    }

    /// A delegate's task, if it was given out.
    pub(crate) async fn task(&self, id: &str) -> Result<Option<DelegateTaskRecord>, HandlerError> {
        match self.deps.runs.store.get_delegate_task(id).await {
            Ok(task) => Ok(Some(task)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Ok(Err(error).doing(|| format!("read the delegate's task {id}"))?),
        }
    }

    async fn forget_wait(&mut self, step: &StepPlan, attempt: u32) -> Result<(), HandlerError> {
        let run = &self.of_run.run.id;
        let taken = self
            .deps
            .runs
            .store
            .take_wait(run, &step.id, attempt, WAIT)
            .await;
        taken.doing(|| format!("end the wait of {}", step.id))?;
        // The directive is used up: another attempt of the step asks anew.
        self.event.next = None;
        Ok(())
    }
}

/// The delegate ends the work where the time of a step group, a stage or the run is up before the step's own: nothing may
/// go on beside the rollback. Rounded up: what it reports then is read when that time has passed.
fn end_with(payload: &mut Value, left: Duration) {
    let limit = payload.get("timeoutSeconds").and_then(Value::as_u64);
    let left = left.as_secs() + 1;
    if limit.is_some_and(|limit| limit > left) {
        payload["timeoutSeconds"] = left.into();
    }
}

/// Why a task without a result has none, if no result can come any more. A timeout of the machine's wait is
/// left to the step's own limit, which has passed by then. Silence about a task that was never claimed has done
/// nothing yet (a delegate died with the token in its hands, or none that asked carries the selectors): it is
/// given out again.
fn lost(task: &DelegateTaskRecord, error: Option<&str>) -> Option<Failure> {
    let delegate = task.delegate.as_deref()?;
    (error? == "States.HeartbeatTimeout").then(|| Failure {
        error: ErrorType::DelegateRestart,
        message: format!(
            "Delegate {delegate} took the work and fell silent; whether the work went on is unknown."
        ),
        left_behind: None,
    })
}
