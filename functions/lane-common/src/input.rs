//! Steps that ask for inputs when they begin.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use slipway_engine::directive::Directive;
use slipway_engine::error::Doing;
use slipway_engine::execution_input;
use slipway_engine::lane::{LanePlan, StopReason, deadline_around};
use slipway_model::duration::shown;
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::StepPlan;
use slipway_store::record::NodeRecord;

use crate::HandlerError;
use crate::walk::Walk;

/// Why a step ends at the `timeout` of a step group around it.
pub(crate) const GROUP_TIME_UP: &str = "The time of its step group was up.";

/// What became of the inputs of a step.
pub(crate) enum Inputs {
    /// The step has its spec.
    Taken,
    /// Nobody has given them yet.
    Awaited(Directive),
}

impl Walk<'_> {
    /// Gives a step its spec, which was not known when it started: its inputs had to be asked for, or an expression
    /// could not be resolved, which is tried again to find the reason.
    pub(crate) async fn take_inputs(
        &mut self,
        step: &StepPlan,
        attempt: u32,
    ) -> Result<Result<Inputs, Failure>, HandlerError> {
        if !execution_input::asks(&step.spec) {
            return Ok(self.resolve(step).map(|_| Inputs::Taken));
        }
        let given = match self.given(step)? {
            Ok(Some(given)) => given,
            Ok(None) => {
                self.show(step, attempt, Status::InputWaiting).await?;
                let left = self.time_left(step)?;
                return Ok(Ok(Inputs::Awaited(Self::hold_for(left))));
            }
            Err(failure) => return Ok(Err(failure)),
        };
        let spec = match self.resolve_spec(step, &execution_input::filled(&step.spec, &given)) {
            Ok(spec) => spec,
            Err(failure) => return Ok(Err(failure)),
        };
        let (run, store) = (&self.of_run.run.id, &self.deps.runs.store);
        let stored = store.give_spec(run, &step.id, attempt, &spec).await;
        stored.doing(|| format!("give {} its inputs", step.id))?;
        let record = self.record(step)?.clone();
        self.know(NodeRecord {
            status: Status::Running,
            spec,
            ..record
        });
        Ok(Ok(Inputs::Taken))
    }

    /// The inputs of a step; `None` while nobody has given them. Their defaults, where the time to give them was up in
    /// the attempt before and a failure strategy goes on with them.
    fn given(
        &self,
        step: &StepPlan,
    ) -> Result<Result<Option<Map<String, Value>>, Failure>, HandlerError> {
        let record = self.record(step)?;
        if let Some(given) = execution_input::given(&self.of_run.run, &step.id, record.attempt) {
            return Ok(Ok(Some(given)));
        }
        if !self.goes_on_with_defaults(record) {
            return Ok(Ok(None));
        }
        let all = execution_input::complete(&execution_input::asked(&step.spec), &Map::new());
        Ok(all.map(Some).map_err(|faults| Failure {
            error: ErrorType::Unknown,
            message: format!(
                "It cannot go on with default values: {}.",
                faults.join("; ")
            ),
            left_behind: None,
        }))
    }

    fn goes_on_with_defaults(&self, record: &NodeRecord) -> bool {
        let before = self.history.iter().find(|before| {
            before.id == record.id
                && before.attempt + 1 == record.attempt
                && before.round == record.round
        });
        let late = |before: &NodeRecord| {
            let failure = before.failure.as_ref();
            failure.is_some_and(|failure| failure.error == ErrorType::InputTimeoutError)
        };
        // An attempt that is a retry has an earlier base, and asks again.
        record.base == record.attempt && before.is_some_and(late)
    }

    /// When the time of an attempt of a step began, in epoch milliseconds: where it asked for inputs, when it had them.
    pub(crate) fn began_ms(&self, record: &NodeRecord) -> i64 {
        let key = (record.id.clone(), record.attempt);
        let given = self.facts.given.get(&key);
        // Inputs of a stage that somebody must start are given before it begins.
        let given = given.copied().unwrap_or(record.started_ms);
        given.max(record.started_ms)
    }

    /// Time left until a step's deadline, or that of a step group around it, its stage or run where that is sooner: until
    /// the lane stops it. A step that asks to be called again when nothing is left would be called without end otherwise.
    pub(crate) fn time_left(&self, step: &StepPlan) -> Result<Duration, HandlerError> {
        let left = self.time_up_ms(step)?.saturating_sub(self.now_ms());
        Ok(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    /// When the time of a step is up, or that of what is around it, in epoch milliseconds.
    pub(crate) fn time_up_ms(&self, step: &StepPlan) -> Result<i64, HandlerError> {
        let limit = i64::try_from(step.timeout.as_millis()).unwrap_or(i64::MAX);
        let own = self.began_ms(self.record(step)?).saturating_add(limit);
        let plan = Arc::clone(&self.of_run.plan);
        let around = deadline_around(&self.lane_of(&plan)?, &self.facts, &step.id);
        Ok(around.map_or(own, |around| around.min(own)))
    }

    /// Ends a step that nobody gave its inputs.
    pub(crate) async fn stop_asking(
        &mut self,
        lane: &LanePlan<'_>,
        step: &StepPlan,
        reason: StopReason,
    ) -> Result<Option<Directive>, HandlerError> {
        let attempt = self.record(step)?.attempt;
        let (error, status, message) = match reason {
            StopReason::Abort => {
                let record = NodeRecord {
                    status: Status::Aborted,
                    ended_ms: Some(self.now_ms()),
                    failure: Some(self.aborted(None)),
                    ..self.record(step)?.clone()
                };
                self.end(record).await?;
                return Ok(None);
            }
            StopReason::MarkedAsFailed => (
                ErrorType::UserMarkedFailure,
                Status::Failed,
                format!("It was marked as failed{}.", self.said_by(step, attempt)),
            ),
            StopReason::MarkedForRollback => (
                ErrorType::UserMarkedFailure,
                Status::Failed,
                self.rolled_back(step, attempt),
            ),
            StopReason::MadeToExpire => (
                ErrorType::InputTimeoutError,
                Status::Expired,
                format!("It was made to expire{}.", self.said_by(step, attempt)),
            ),
            StopReason::StepTimeout => {
                let fields = execution_input::asked(&step.spec)
                    .into_iter()
                    .map(|input| input.field);
                let fields = fields.collect::<Vec<_>>().join(", ");
                let limit = shown(step.timeout);
                (
                    ErrorType::InputTimeoutError,
                    Status::Expired,
                    format!("Nobody gave its inputs ({fields}) within {limit}."),
                )
            }
            StopReason::GroupTimeout => (
                ErrorType::Timeout,
                Status::Expired,
                GROUP_TIME_UP.to_owned(),
            ),
            StopReason::StageTimeout => (
                ErrorType::Timeout,
                Status::Expired,
                "The time of its stage or of the run was up.".to_owned(),
            ),
        };
        let failure = Failure {
            error,
            message,
            left_behind: None,
        };
        self.fail(lane, step, failure, status, None).await
    }
}
