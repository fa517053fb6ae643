//! Calls of steps: give them what they need, write down how far they came.

use serde_json::{Map, Value};
use slipway_engine::abort::{FAILURE_STRATEGY, abort_run, cancel_task, task_of};
use slipway_engine::directive::Directive;
use slipway_engine::error::Doing;
use slipway_engine::error_name::ErrorName;
use slipway_engine::lane::{Failing, LanePlan, StopReason, UNDECIDED, judge};
use slipway_engine::signal::{ENDED, stopped_by};
use slipway_engine::strategy::Verdict;
use slipway_engine::wake::{tell_failure, wake};
use slipway_engine::woken::{note_woken, were_woken};
use slipway_model::duration::shown;
use slipway_model::id::{NodeId, PrincipalId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::{PIN_ARTIFACTS, StepPlan};
use slipway_steps::context::StepTrace;
use slipway_steps::outage::watched;
use slipway_steps::{Expressions, Progress, Step, StepContext, StepInput};
use slipway_store::record::{DelegateTaskRecord, NodeRecord};

use crate::HandlerError;
use crate::expressions::NodeExpressions;
use crate::input::{GROUP_TIME_UP, Inputs};
use crate::late::Heard;
use crate::record::is_container;
use crate::walk::Walk;

impl Walk<'_> {
    /// The spec of a step with its expressions resolved, but for those that the step resolves itself.
    pub(crate) fn resolve(&self, step: &StepPlan) -> Result<Value, Failure> {
        self.resolve_spec(step, &step.spec)
    }

    /// As [`Walk::resolve`], for a spec whose inputs were filled in.
    pub(crate) fn resolve_spec(&self, step: &StepPlan, spec: &Value) -> Result<Value, Failure> {
        let expressions = NodeExpressions::new(&self.of_run, &self.nodes, &step.id, &self.tags);
        let own = (self.deps.find)(&step.step_type).map_or(&[][..], Step::own_expressions);
        let Value::Object(fields) = spec else {
            return expressions.evaluate(spec);
        };
        let mut resolved = Map::new();
        for (name, value) in fields {
            let value = match own.contains(&name.as_str()) {
                true => value.clone(),
                false => expressions.evaluate(value)?,
            };
            resolved.insert(name.clone(), value);
        }
        Ok(Value::Object(resolved))
    }

    /// Lets a step go on.
    pub(crate) async fn advance(
        &mut self,
        lane: &LanePlan<'_>,
        step: &StepPlan,
        attempt: u32,
    ) -> Result<Option<Directive>, HandlerError> {
        if self.record(step)?.spec.is_null() {
            match self.take_inputs(step, attempt).await? {
                Ok(Inputs::Taken) => {}
                Ok(Inputs::Awaited(directive)) => return Ok(Some(directive)),
                Err(failure) => {
                    return self.fail(lane, step, failure, Status::Failed, None).await;
                }
            }
        }
        let Some(implementation) = (self.deps.find)(&step.step_type) else {
            let failure = Failure {
                error: ErrorType::Unknown,
                message: format!("Steps of type {} do not run in this lane.", step.step_type),
                left_behind: None,
            };
            return self.fail(lane, step, failure, Status::Errored, None).await;
        };
        let given = match Box::pin(self.delegate_result(step, attempt)).await? {
            Ok(given) => given,
            Err(failure) => return self.fail(lane, step, failure, Status::Failed, None).await,
        };
        let heard = Heard::of(&self.of_run.run.signals);
        let (came, trace) = Box::pin(self.call(implementation, step, given, heard)).await?;
        if let Some(kind) = &trace.said {
            self.wake_others(&step.id, attempt, kind).await?;
        }
        match came {
            Ok(Progress::Done(outputs)) => {
                self.succeed(step, outputs, trace).await?;
                Ok(None)
            }
            Ok(Progress::Again(after)) => {
                self.keep(step, trace).await?;
                let left = self.time_left(step)?;
                Ok(self.wait(after.min(left)).await)
            }
            Ok(Progress::Hold { time, status }) => {
                self.keep(step, trace).await?;
                self.show(step, attempt, status).await?;
                let left = self.time_left(step)?;
                Ok(Some(Self::hold_for(time.min(left))))
            }
            Ok(Progress::Delegate(work)) => {
                self.keep(step, trace).await?;
                Box::pin(self.delegate(step, attempt, work)).await
            }
            Err(failure) => {
                let status = failed_as(&failure);
                self.fail(lane, step, failure, status, Some(trace)).await
            }
        }
    }

    /// One call of a step.
    pub(crate) async fn call(
        &self,
        implementation: &dyn Step,
        step: &StepPlan,
        delegate_result: Option<Value>,
        heard: Heard<'_>,
    ) -> Result<(Result<Progress, Failure>, StepTrace), HandlerError> {
        let expressions = NodeExpressions::new(&self.of_run, &self.nodes, &step.id, &self.tags);
        let input = self.input(step, delegate_result, heard, &expressions)?;
        let mut cx = StepContext::new(&self.deps.services, input);
        let (came, outage) = watched(slipway_steps::advance(implementation, &mut cx)).await;
        let came = came.map_err(|failure| cx.masked(failure));
        if let (Err(failure), true) = (&came, outage) {
            return Err(unavailable(failure.clone()));
        }
        let ended = match &came {
            Ok(Progress::Done(_)) => Some(true),
            Ok(Progress::Again(_) | Progress::Hold { .. } | Progress::Delegate(_)) => None,
            Err(_) => Some(false),
        };
        let trace = cx.finish(ended).await.map_err(unavailable)?;
        Ok((came, trace))
    }

    fn input<'a>(
        &'a self,
        step: &'a StepPlan,
        delegate_result: Option<Value>,
        heard: Heard<'a>,
        expressions: &'a NodeExpressions<'a>,
    ) -> Result<StepInput<'a>, HandlerError> {
        let record = self.record(step)?;
        Ok(StepInput {
            run: &self.of_run.run.id,
            plan: &self.of_run.plan,
            stage: self.of_run.stage(),
            step,
            attempt: record.attempt,
            spec: &record.spec,
            progress: record.progress.clone(),
            started_ms: self.began_ms(record),
            earlier: &self.history,
            said: heard.said,
            late_since_ms: heard.late_since_ms,
            aborted: self.of_run.is_aborted(&self.lane),
            delegate_result,
            expressions,
        })
    }

    pub(crate) fn record(&self, step: &StepPlan) -> Result<&NodeRecord, HandlerError> {
        self.record_of(&step.id)
    }

    pub(crate) fn record_of(&self, node: &NodeId) -> Result<&NodeRecord, HandlerError> {
        self.nodes.get(node).ok_or_else(|| {
            let message = format!("{node} goes on and has not begun");
            HandlerError::new(ErrorName::Internal, message)
        })
    }

    pub(crate) async fn succeed(
        &mut self,
        step: &StepPlan,
        outputs: Value,
        trace: StepTrace,
    ) -> Result<(), HandlerError> {
        Box::pin(self.tell_approvers(step, self.record(step)?, true)).await;
        let record = NodeRecord {
            status: Status::Success,
            ended_ms: Some(self.now_ms()),
            outputs,
            progress: trace.progress,
            units: trace.units,
            ..self.record(step)?.clone()
        };
        self.end(record).await?;
        if step.step_type == PIN_ARTIFACTS {
            self.reload().await?;
        }
        Ok(())
    }

    /// Keeps what a step that goes on later has noted.
    pub(crate) async fn keep(
        &mut self,
        step: &StepPlan,
        trace: StepTrace,
    ) -> Result<(), HandlerError> {
        let record = NodeRecord {
            progress: trace.progress,
            ..self.record(step)?.clone()
        };
        if !trace.stored && !self.unwritten.restates(&record) {
            let (run, store) = (&self.of_run.run.id, &self.deps.runs.store);
            let saved = store.save_progress(run, &step.id, record.attempt, &record.progress);
            Box::pin(saved)
                .await
                .doing(|| format!("save the progress of {}", step.id))?;
        }
        self.know(NodeRecord {
            units: trace.units,
            ..record
        });
        Ok(())
    }

    /// Shows what an open step waits for.
    pub(crate) async fn show(
        &mut self,
        step: &StepPlan,
        attempt: u32,
        status: Status,
    ) -> Result<(), HandlerError> {
        let record = self.record(step)?.clone();
        if record.status != status {
            // What waits for other steps or runs asks nobody.
            if matches!(status, Status::ApprovalWaiting | Status::InputWaiting) {
                Box::pin(self.tell_waits(&step.id, attempt)).await;
            }
            if status == Status::ApprovalWaiting {
                Box::pin(self.tell_approvers(step, &record, false)).await;
            }
            let shown = NodeRecord { status, ..record };
            if !self.unwritten.restates(&shown) {
                let (run, store) = (&self.of_run.run.id, &self.deps.runs.store);
                let set = store.set_node_status(run, &step.id, attempt, status, None);
                Box::pin(set)
                    .await
                    .doing(|| format!("show what {} waits for", step.id))?;
            }
            self.know(shown);
        }
        Ok(())
    }

    /// Records that a step has failed, with the status that its failure strategies give it.
    pub(crate) async fn fail(
        &mut self,
        lane: &LanePlan<'_>,
        step: &StepPlan,
        failure: Failure,
        failed: Status,
        trace: Option<StepTrace>,
    ) -> Result<Option<Directive>, HandlerError> {
        if failure.error == ErrorType::ApprovalRejection {
            Box::pin(self.tell_approvers(step, self.record(step)?, true)).await;
        }
        // On the heap: every way to fail would have room for it on the stack.
        Box::pin(self.fail_node(lane, step.into(), failure, failed, trace)).await
    }

    /// As [`Walk::fail`], of any node that has begun.
    pub(crate) async fn fail_node(
        &mut self,
        lane: &LanePlan<'_>,
        node: Failing<'_>,
        failure: Failure,
        failed: Status,
        trace: Option<StepTrace>,
    ) -> Result<Option<Directive>, HandlerError> {
        let record = self.record_of(node.id)?.clone();
        let attempt = record.attempt;
        let (progress, units, outputs) = match trace {
            Some(trace) => (trace.progress, trace.units, trace.outputs),
            None => (record.progress.clone(), record.units.clone(), Value::Null),
        };
        let failing = NodeRecord {
            status: failed,
            failure: Some(failure),
            progress,
            units,
            outputs,
            ..record
        };
        let record = self.with_refusals(lane, node, failing);
        let failure = record.failure.clone().unwrap_or_else(|| self.aborted(None));
        let now_ms = self.now_ms();
        let refused = &record.refused;
        let verdict = judge(lane, &self.facts, node, &failure, refused, failed, now_ms);
        let status = match verdict {
            Verdict::Again(_) | Verdict::GroupAgain { .. } | Verdict::Proceed => failed,
            Verdict::Ask { .. } => Status::InterventionWaiting,
            Verdict::Over { status, .. } => status,
        };
        match verdict {
            Verdict::Ask { .. } => self.tell_waits(node.id, attempt).await,
            Verdict::Over { .. } => self.tell_failed(node.id, attempt, status).await,
            Verdict::Again(_) | Verdict::GroupAgain { .. } | Verdict::Proceed => {}
        }
        let now = Some(now_ms);
        let asks = status == Status::InterventionWaiting;
        let ended = NodeRecord {
            status,
            ended_ms: now.filter(|_| !asks),
            asked_ms: now.filter(|_| asks),
            ..record
        };
        self.end(ended).await?;
        if status == Status::Aborted {
            self.abort_by_strategy().await?;
        }
        if !asks {
            self.tell_barriers(node.id, attempt).await?;
        }
        Ok(None)
    }

    /// Tells those who wait at barriers that a node has failed: who waits for it waits in vain.
    pub(crate) async fn tell_barriers(
        &mut self,
        node: &NodeId,
        attempt: u32,
    ) -> Result<(), HandlerError> {
        if !self.of_run.plan.barriers.is_empty() {
            self.write().await?;
            tell_failure(&self.deps.runs, &self.of_run.run.id, node, attempt).await?;
        }
        Ok(())
    }

    /// Tells of the failures of this stage that a crash kept from those who wait at barriers: nothing was said of them,
    /// or it was said and it is not known that all were woken.
    pub(crate) async fn tell_untold(&self) -> Result<(), HandlerError> {
        let run = &self.of_run.run;
        if self.of_run.plan.barriers.is_empty() {
            return Ok(());
        }
        for record in &self.history {
            let failed = record.status.is_final() && !record.status.is_good();
            let undecided = record.progress.get(UNDECIDED).is_some();
            if !failed || is_container(&record.node_type) && !undecided {
                continue;
            }
            if !were_woken(&run.signals, &record.id, record.attempt, ENDED) {
                tell_failure(&self.deps.runs, &run.id, &record.id, record.attempt).await?;
            }
        }
        Ok(())
    }

    /// Lets the other lanes of the run look again, as an attempt of a step has said something of this kind.
    async fn wake_others(
        &self,
        step: &NodeId,
        attempt: u32,
        kind: &str,
    ) -> Result<(), HandlerError> {
        let (runs, run) = (&self.deps.runs, &self.of_run.run.id);
        Box::pin(wake(runs, run)).await?;
        Ok(note_woken(runs, run, (step, attempt), kind).await?)
    }

    /// Aborts the run because a failure strategy, or who was asked, says so. The step's end is written first: to who
    /// comes back after a crash, it would be a step that an abort stops. If the wish is lost, the end of the lane has it.
    pub(crate) async fn abort_by_strategy(&mut self) -> Result<(), HandlerError> {
        self.write().await?;
        let who = PrincipalId::new(FAILURE_STRATEGY);
        Box::pin(abort_run(&self.deps.runs, &self.of_run.run.id, &who)).await?;
        Ok(())
    }

    /// Stops a step early: what would go on by itself is released, then its end is recorded.
    pub(crate) async fn stop(
        &mut self,
        lane: &LanePlan<'_>,
        step: &StepPlan,
        attempt: u32,
        reason: StopReason,
    ) -> Result<Option<Directive>, HandlerError> {
        if self.record(step)?.status == Status::InputWaiting {
            return self.stop_asking(lane, step, reason).await;
        }
        let is_late = matches!(
            reason,
            StopReason::StepTimeout | StopReason::GroupTimeout | StopReason::StageTimeout
        );
        if is_late && self.take_late(lane, step, attempt, reason).await? {
            return Ok(None);
        }
        let unclaimed = self.recall(step, attempt).await?;
        let (left_behind, trace) = self.release(step).await?;
        let error = match unclaimed {
            Some(_) => ErrorType::DelegateProvisioning,
            None => ErrorType::Timeout,
        };
        let timeout = |what: String| Failure {
            error,
            message: match &unclaimed {
                Some(task) => format!("{what} {}", unclaimed_by(task)),
                None => what,
            },
            left_behind: left_behind.clone(),
        };
        match reason {
            StopReason::Abort => {
                let record = NodeRecord {
                    status: Status::Aborted,
                    ended_ms: Some(self.now_ms()),
                    failure: Some(self.aborted(left_behind)),
                    progress: trace.progress,
                    units: trace.units,
                    ..self.record(step)?.clone()
                };
                self.end(record).await?;
                Ok(None)
            }
            StopReason::StepTimeout => {
                let limit = shown(step.timeout);
                let failure = timeout(format!("It did not end within its timeout of {limit}."));
                self.fail(lane, step, failure, Status::Expired, Some(trace))
                    .await
            }
            StopReason::MarkedAsFailed => {
                let failure = Failure {
                    error: ErrorType::UserMarkedFailure,
                    message: format!("It was marked as failed{}.", self.said_by(step, attempt)),
                    left_behind,
                };
                self.fail(lane, step, failure, Status::Failed, Some(trace))
                    .await
            }
            StopReason::MarkedForRollback => {
                let failure = Failure {
                    error: ErrorType::UserMarkedFailure,
                    message: self.rolled_back(step, attempt),
                    left_behind,
                };
                self.fail(lane, step, failure, Status::Failed, Some(trace))
                    .await
            }
            StopReason::MadeToExpire => {
                let by = self.said_by(step, attempt);
                let failure = timeout(format!("It was made to expire{by}."));
                self.fail(lane, step, failure, Status::Expired, Some(trace))
                    .await
            }
            StopReason::GroupTimeout => {
                let failure = timeout(GROUP_TIME_UP.to_owned());
                self.fail(lane, step, failure, Status::Expired, Some(trace))
                    .await
            }
            StopReason::StageTimeout => {
                let failure = timeout("The time of its stage or of the run was up.".to_owned());
                self.fail(lane, step, failure, Status::Expired, Some(trace))
                    .await
            }
        }
    }

    /// That a step was stopped because its stage is to be rolled back.
    pub(crate) fn rolled_back(&self, step: &StepPlan, attempt: u32) -> String {
        let by = self.said_by(step, attempt);
        format!("It was stopped{by} to roll its stage back.")
    }

    /// Who stopped a step.
    pub(crate) fn said_by(&self, step: &StepPlan, attempt: u32) -> String {
        let who = stopped_by(&self.of_run.run, &step.id, attempt);
        who.map_or_else(String::new, |who| format!(" by {who}"))
    }

    pub(crate) fn aborted(&self, left_behind: Option<String>) -> Failure {
        let by = |who: &PrincipalId| format!(" by {who}");
        let of_stage = self.of_run.stage_aborted_by(&self.lane).map(by);
        let of_run = self.of_run.run.abort.as_ref().map(|(who, _)| by(who));
        let what = match (of_run, of_stage) {
            (None, Some(by)) => format!("its stage was aborted{by}"),
            (by, _) => format!("the run was aborted{}", by.unwrap_or_default()),
        };
        Failure {
            error: ErrorType::Unknown,
            message: format!("It was stopped: {what}."),
            left_behind,
        }
    }

    /// Takes back what a delegate was given; the work, where none had taken it.
    async fn recall(
        &mut self,
        step: &StepPlan,
        attempt: u32,
    ) -> Result<Option<DelegateTaskRecord>, HandlerError> {
        let run = &self.of_run.run.id;
        let store = &self.deps.runs.store;
        let wait = store
            .take_wait(run, &step.id, attempt, crate::task::WAIT)
            .await;
        let Some(wait) = wait.doing(|| format!("end the wait of {}", step.id))? else {
            return Ok(None);
        };
        let id = task_of(&wait);
        cancel_task(&self.deps.runs, &id).await?;
        let task = self.task(&id).await?;
        Ok(task.filter(|task| task.delegate.is_none()))
    }

    async fn release(&self, step: &StepPlan) -> Result<(Option<String>, StepTrace), HandlerError> {
        let expressions = NodeExpressions::new(&self.of_run, &self.nodes, &step.id, &self.tags);
        let heard = Heard::of(&self.of_run.run.signals);
        let input = self.input(step, None, heard, &expressions)?;
        let mut cx = StepContext::new(&self.deps.services, input);
        let stopped = match (self.deps.find)(&step.step_type) {
            Some(implementation) => implementation.stop(&mut cx).await,
            None => Ok(()),
        };
        let trace = cx.finish(Some(false)).await.map_err(unavailable)?;
        let left_behind = stopped.err().map(|failure| match failure.left_behind {
            Some(left) => format!("{} {left}", failure.message),
            None => failure.message,
        });
        Ok((left_behind, trace))
    }
}

/// Why no delegate took work, and what to do.
fn unclaimed_by(task: &DelegateTaskRecord) -> String {
    if task.selectors.is_empty() {
        return "No delegate took its work: start one that may.".to_owned();
    }
    let wanted = task.selectors.join(", ");
    let asked = match task.unsuitable.as_slice() {
        [] => "no delegate asked for work".to_owned(),
        [one] => format!("delegate {one} is connected and does not"),
        several => format!("delegates {} are connected and do not", several.join(", ")),
    };
    format!(
        "No eligible delegates: its work needs one that carries the selectors {wanted}, and {asked}. Start one that does \
         (`slipway delegate --tag …`), or change `delegateSelectors`."
    )
}

/// The status of a step that has failed.
pub(crate) fn failed_as(failure: &Failure) -> Status {
    match failure.error {
        ErrorType::ApprovalRejection => Status::ApprovalRejected,
        _ => Status::Failed,
    }
}

/// Something of a step could not be read or written: the invocation is repeated.
fn unavailable(failure: Failure) -> HandlerError {
    HandlerError::new(ErrorName::StoreUnavailable, failure.message)
}
