//! The wait of an approval that looks at something again and again. Between two looks nothing of the service
//! runs; people, an abort among them, end the wait at once.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::duration;
use slipway_model::status::{ErrorType, Failure, Status};

use super::UNIT;
use super::stop::{Stop, later, left};
use crate::context::StepContext;
use crate::criteria::{Criteria, Subject};
use crate::step::Progress;
use crate::variable::is_expression;

/// Time between two looks where `retryInterval` says nothing. The schema leaves it open; it is what Harness's
/// pipeline studio fills in.
const INTERVAL: Duration = Duration::from_secs(60);

/// Shortest time between two looks: Harness's own lower limit.
const SHORTEST: Duration = Duration::from_secs(10);

/// What an approval remembers between two looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Poll {
    /// When to look again, epoch milliseconds.
    #[serde(default)]
    next_ms: Option<i64>,
    /// How often it looked.
    #[serde(default)]
    pub(crate) looks: u32,
    /// Whether a look has succeeded: then the address is right, and so is the login.
    #[serde(default)]
    answered: bool,
    /// What the log says last: the same is not said again.
    #[serde(default)]
    said: String,
}

/// What a look came to.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It is approved.
    Approved,
    /// It is rejected, with the reason.
    Rejected(String),
    /// Neither, with what was seen.
    Open(String),
    /// Approved, but not before this time has passed, with the reason.
    NotYet(Duration, String),
}

/// `retryInterval`, where it is filled in.
///
/// # Errors
/// When it is no duration.
pub(crate) fn interval(text: Option<&str>) -> Result<Duration, String> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    let found = text.map(duration::parse).transpose();
    let found = found.map_err(|error| format!("retryInterval: {error}"))?;
    Ok(found.unwrap_or(INTERVAL).max(SHORTEST))
}

/// What is wrong with `retryInterval` before the run.
pub(crate) fn interval_fault(text: Option<&str>) -> Option<String> {
    let text = text.filter(|text| !is_expression(text));
    interval(text).err()
}

/// Judges by both criteria. Approval goes first.
///
/// # Errors
/// When an expression cannot be evaluated.
pub(crate) fn judge(
    approval: &Criteria,
    rejection: Option<&Criteria>,
    subject: &Subject<'_>,
) -> Result<Verdict, Failure> {
    let approved = approval.judge(subject)?;
    if approved.holds {
        return Ok(Verdict::Approved);
    }
    if let Some(criteria) = rejection {
        let rejected = criteria.judge(subject)?;
        if rejected.holds {
            return Ok(Verdict::Rejected(rejected.seen));
        }
    }
    Ok(Verdict::Open(approved.seen))
}

impl Poll {
    /// The rest of the wait, when the step was called before its time.
    pub(crate) fn early(&self, cx: &StepContext<'_>) -> Option<Progress> {
        left(self.next_ms, cx).map(hold)
    }

    /// Ends a look: with the outputs, the rejection, or another wait.
    pub(crate) async fn conclude(
        mut self,
        looked: Result<(Verdict, Value), Stop>,
        interval: Duration,
        cx: &mut StepContext<'_>,
    ) -> Result<Progress, Failure> {
        self.answered |= looked.is_ok();
        let (wait, seen) = match looked {
            Ok((Verdict::Approved, outputs)) => {
                cx.info(UNIT, "The approval criteria hold.");
                return Ok(Progress::Done(outputs));
            }
            Ok((Verdict::Rejected(why), _)) => {
                return Err(Failure {
                    error: ErrorType::ApprovalRejection,
                    message: format!("The rejection criteria hold: {why}."),
                    left_behind: None,
                });
            }
            Ok((Verdict::Open(seen), _)) => (interval, seen),
            // Meanwhile it may change: it is looked at as often as before.
            Ok((Verdict::NotYet(wait, seen), _)) => (wait.min(interval), seen),
            Err(Stop::Wait(wait)) => (wait, String::new()),
            // What cannot be asked now is asked at the next look, however often.
            Err(Stop::Later { failure, after, .. }) => {
                (interval.max(after.unwrap_or_default()), failure.message)
            }
            // Whoever stands between may be in the way for an hour; the approval may wait for days.
            Err(Stop::Odd(failure)) if self.answered => (interval, failure.message),
            Err(Stop::Missing(failure) | Stop::Odd(failure) | Stop::Over(failure)) => {
                return Err(failure);
            }
        };
        if seen != self.said {
            let seconds = interval.as_secs();
            let told = seen.trim_end_matches('.');
            cx.info(
                UNIT,
                format!("Not decided: {told}. Looking every {seconds} s."),
            );
            self.said = seen;
        }
        self.looks = self.looks.saturating_add(1);
        self.next_ms = Some(later(wait, cx));
        cx.save(&self).await?;
        Ok(hold(wait))
    }
}

fn hold(time: Duration) -> Progress {
    Progress::Hold {
        time,
        status: Status::ApprovalWaiting,
    }
}
