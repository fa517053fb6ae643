//! Failures: which retrier or catcher takes one, and what happens when none does.
//!
//! Error names and their rules: Developer Guide, "Handling errors in Step Functions workflows".

use std::sync::Arc;

use serde_json::{Value, json};

use super::scope::Extra;
use super::{Run, state_events, state_of};
use crate::definition::{Catcher, Kind, Retrier, State};
use crate::history::{EventType, details};
use crate::jsonata::QueryError;
use crate::record::{Phase, Status};

/// The error of a payload that is longer than the service allows.
pub(super) const TOO_LONG: &str = "States.DataLimitExceeded";

/// An error that a state met.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) error: Option<String>,
    pub(crate) cause: Option<String>,
    /// A timeout for want of heartbeats: AWS reports it as `States.Timeout`, and lets
    /// `States.HeartbeatTimeout` catch it too.
    heartbeat: bool,
    /// The evaluation that failed is recorded before anything else.
    query: Option<QueryError>,
    /// A path of the state itself leads nowhere: AWS ends the execution without an event of the state.
    field: bool,
}

impl Failure {
    pub(crate) fn new(error: impl Into<String>, cause: impl Into<String>) -> Self {
        Self::named(Some(error.into()), Some(cause.into()))
    }

    pub(crate) fn named(error: Option<String>, cause: Option<String>) -> Self {
        Self {
            error,
            cause,
            heartbeat: false,
            query: None,
            field: false,
        }
    }

    pub(crate) fn runtime(cause: impl Into<String>) -> Self {
        Self::new("States.Runtime", cause)
    }

    pub(super) fn timeout(heartbeat: bool) -> Self {
        Self {
            heartbeat,
            ..Self::named(Some("States.Timeout".to_owned()), None)
        }
    }

    pub(super) fn too_long(who: &str) -> Self {
        Self::new(
            TOO_LONG,
            format!(
                "The state/task '{who}' returned a result with a size exceeding the maximum number of bytes service limit."
            ),
        )
    }

    pub(super) fn query(query: QueryError, cause: String) -> Self {
        Self {
            query: Some(query),
            ..Self::new("States.QueryEvaluationError", cause)
        }
    }

    /// The same failure, of a field of the state itself.
    pub(super) fn of_field(self) -> Self {
        Self {
            field: true,
            ..self
        }
    }

    /// The same failure, as the state around sees it: the evaluation is in the history already.
    pub(super) fn recorded(&self) -> Self {
        Self {
            query: None,
            field: false,
            ..self.clone()
        }
    }

    /// Whether one of `names`, of a retrier or catcher, stands for this error.
    fn matches(&self, names: &[String]) -> bool {
        let error = self.error.as_deref().unwrap_or_default();
        let uncatchable = matches!(error, "States.Runtime" | TOO_LONG);
        names.iter().any(|name| match name.as_str() {
            "States.ALL" => !uncatchable,
            "States.TaskFailed" => {
                error == "States.TaskFailed" || (!uncatchable && error != "States.Timeout")
            }
            "States.HeartbeatTimeout" if self.heartbeat => true,
            name => name == error,
        })
    }

    /// `$states.errorOutput`.
    fn output(&self) -> Value {
        json!({"Error": self.error, "Cause": self.cause})
    }

    pub(super) fn details(&self) -> Option<crate::history::Details> {
        details([
            ("error", self.error.clone().map(Value::from)),
            ("cause", self.cause.clone().map(Value::from)),
        ])
    }
}

impl Run {
    /// A state of branch `id` has failed: retry, catch, or let the failure go up.
    pub(super) fn fail_state(&mut self, id: u32, failure: Failure) {
        if let Some(trial) = &mut self.trial {
            trial.failure = Some((failure.error.clone(), failure.cause.clone()));
        }
        if let Some(query) = &failure.query {
            self.record_evaluation(id, query, &failure);
        }
        let definition = Arc::clone(&self.definition);
        let Some(state) = self
            .branches
            .get(&id)
            .and_then(|b| state_of(&definition, b))
        else {
            return;
        };
        if self.retry(id, state, &failure) {
            return;
        }
        let silent = failure.field && failure.error.as_deref() == Some("States.Runtime");
        let failed = match state.kind {
            _ if silent => None,
            Kind::Map(_) => Some(EventType::MapStateFailed),
            Kind::Parallel { .. } => Some(EventType::ParallelStateFailed),
            _ => None,
        };
        if let Some(kind) = failed {
            self.branch_event(id, kind, None);
        }
        if !self.catch(id, state, &failure) {
            self.fail_branch(id, &failure);
        }
    }

    /// AWS chains the evaluation to what came before the state and not to its entry, except in `Wait`.
    fn record_evaluation(&mut self, id: u32, query: &QueryError, failure: &Failure) {
        let Some(branch) = self.branches.get(&id) else {
            return;
        };
        let waits = state_of(&self.definition, branch)
            .is_some_and(|state| matches!(state.kind, Kind::Wait(_)));
        let has_progressed = waits || branch.previous > branch.entered;
        let previous = if has_progressed {
            branch.previous
        } else {
            branch.before
        };
        let recorded = details([
            ("error", failure.error.clone().map(Value::from)),
            ("cause", failure.cause.clone().map(Value::from)),
            ("location", query.location.clone().map(Value::from)),
            ("state", Some(branch.state.clone().into())),
        ]);
        let event = self.event(EventType::EvaluationFailed, previous, recorded);
        if let Some(branch) = self.branches.get_mut(&id) {
            branch.previous = event;
        }
    }

    /// Starts the delay of a retry, if a retrier takes the failure and has attempts left.
    fn retry(&mut self, id: u32, state: &State, failure: &Failure) -> bool {
        let Some(at) = state.retry.iter().position(|r| failure.matches(&r.errors)) else {
            return false;
        };
        let now_ms = self.now.as_millisecond();
        let Some(branch) = self.branches.get_mut(&id) else {
            return false;
        };
        branch.retries.resize(state.retry.len(), 0);
        let (Some(retrier), Some(done)) = (state.retry.get(at), branch.retries.get_mut(at)) else {
            return false;
        };
        let is_left = *done < retrier.max_attempts;
        let delay_ms = delay_ms(retrier, *done);
        if let Some(trial) = &mut self.trial {
            trial.retried_by(at, is_left.then_some(delay_ms));
        }
        if !is_left {
            return false;
        }
        *done += 1;
        branch.phase = Phase::Backoff {
            until_ms: now_ms.saturating_add(delay_ms),
        };
        self.step.dirty.insert(id);
        self.forget_aside(id);
        true
    }

    /// Goes where a catcher says, if one takes the failure. An error in the catcher's own expressions
    /// ends the branch.
    fn catch(&mut self, id: u32, state: &State, failure: &Failure) -> bool {
        let found = state.catch.iter().position(|c| failure.matches(&c.errors));
        let Some((at, catcher)) = found.and_then(|at| Some((at, state.catch.get(at)?))) else {
            return false;
        };
        if let Some(trial) = &mut self.trial {
            trial.caught_by(at);
        }
        let evaluated = self.caught(id, catcher, failure.output());
        match evaluated {
            Ok((output, assigned)) => {
                let exited = state_events(&state.kind).1;
                self.exit(id, exited, output, assigned, Some(&catcher.next));
            }
            Err(inner) => {
                if let Some(query) = &inner.query {
                    self.record_evaluation(id, query, &inner);
                }
                self.fail_branch(id, &inner);
            }
        }
        true
    }

    /// Output and variables of a catcher.
    fn caught(
        &self,
        id: u32,
        catcher: &Catcher,
        error: Value,
    ) -> Result<(Value, Option<Value>), Failure> {
        let extra = Extra::error(&error);
        let output = self.evaluate(id, catcher.output.as_ref(), "Output", extra)?;
        let assigned = self.evaluate(id, catcher.assign.as_ref(), "Assign", extra)?;
        let output = match (output, &catcher.result) {
            (Some(output), _) => output,
            (None, Some(path)) => self.merge(id, path, error)?,
            (None, None) => error,
        };
        Ok((output, assigned))
    }

    /// Nothing took the failure: it ends the branch, and so the state around it or the execution.
    fn fail_branch(&mut self, id: u32, failure: &Failure) {
        let Some(branch) = self.branches.get(&id) else {
            return;
        };
        match branch.parent {
            None => self.fail_execution(branch.previous, failure),
            Some((parent, _)) => self.fail_children(parent, id, failure),
        }
    }

    pub(super) fn fail_execution(&mut self, previous: u64, failure: &Failure) {
        self.event(EventType::ExecutionFailed, previous, failure.details());
        self.execution.error.clone_from(&failure.error);
        self.execution.cause.clone_from(&failure.cause);
        self.close(Status::Failed);
    }
}

/// The delay before the retry after `done` retries.
fn delay_ms(retrier: &Retrier, done: u32) -> i64 {
    #[expect(clippy::cast_precision_loss, reason = "at most 99,999,999 seconds")]
    let first = retrier.interval_seconds as f64;
    let exponent = i32::try_from(done).unwrap_or(i32::MAX);
    let mut seconds = first * retrier.backoff_rate.powi(exponent);
    if let Some(most) = retrier.max_delay_seconds {
        #[expect(clippy::cast_precision_loss, reason = "at most a year of seconds")]
        let most = most as f64;
        seconds = seconds.min(most);
    }
    if retrier.full_jitter {
        // Of this thread, and so a simulation's to seed.
        seconds *= fastrand::f64();
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, and so far a delay never ends"
    )]
    let ms = (seconds * 1000.0) as i64;
    ms
}
