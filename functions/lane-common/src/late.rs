//! Steps whose time is up before anybody has read what came in time.

use serde_json::Value;
use slipway_engine::lane::{LanePlan, StopReason};
use slipway_plan::StepPlan;
use slipway_steps::Progress;
use slipway_store::record::SignalRecord;

use crate::HandlerError;
use crate::step::failed_as;
use crate::walk::Walk;

/// What a step hears of what was said about its run.
#[derive(Clone, Copy)]
pub(crate) struct Heard<'a> {
    pub(crate) said: &'a [SignalRecord],
    /// When its time was up, in epoch milliseconds, where that is so and only what was said before counts.
    pub(crate) late_since_ms: Option<i64>,
}

impl<'a> Heard<'a> {
    /// All that was said.
    pub(crate) fn of(said: &'a [SignalRecord]) -> Self {
        Self {
            said,
            late_since_ms: None,
        }
    }
}

impl Walk<'_> {
    /// Ends a step whose time is up by what came in time and nobody has read until now: what a delegate had reported, or
    /// what people had said to a step that only asks. `false` where there is no such thing, or the step is not at its end
    /// with it.
    pub(crate) async fn take_late(
        &mut self,
        lane: &LanePlan<'_>,
        step: &StepPlan,
        attempt: u32,
        reason: StopReason,
    ) -> Result<bool, HandlerError> {
        let Some(implementation) = (self.deps.find)(&step.step_type) else {
            return Ok(false);
        };
        // Without a spec it has never asked.
        let asked = implementation.only_asks() && !self.record(step)?.spec.is_null();
        let (given, said, late_since_ms) = if asked {
            let up_ms = self.time_up_ms(step)?;
            let mut said = self.of_run.run.signals.clone();
            said.retain(|word| word.at_ms < up_ms);
            (None, said, Some(up_ms))
        } else {
            let reported = match reason {
                StopReason::StepTimeout => self.reported_in_time(step, attempt).await?,
                _ => None,
            };
            if reported.is_none() {
                return Ok(false);
            }
            (reported, self.of_run.run.signals.clone(), None)
        };
        let heard = Heard {
            said: &said,
            late_since_ms,
        };
        let (came, trace) = Box::pin(self.call(implementation, step, given, heard)).await?;
        match came {
            Ok(Progress::Done(outputs)) => self.succeed(step, outputs, trace).await?,
            Err(failure) => {
                let status = failed_as(&failure);
                self.fail(lane, step, failure, status, Some(trace)).await?;
            }
            Ok(Progress::Again(_) | Progress::Hold { .. } | Progress::Delegate(_)) => {
                self.keep(step, trace).await?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What a delegate had reported before the time of the step was up.
    async fn reported_in_time(
        &mut self,
        step: &StepPlan,
        attempt: u32,
    ) -> Result<Option<Value>, HandlerError> {
        if !self.was_in_time(step, attempt).await? {
            return Ok(None);
        }
        let result = self.delegate_result(step, attempt).await?;
        Ok(result.unwrap_or_default())
    }
}
