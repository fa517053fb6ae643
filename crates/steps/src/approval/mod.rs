//! `HarnessApproval`: waits until enough people have approved, or one has rejected. Source:
//! HarnessApprovalStepInfo in the pipeline schema; docs: platform/approvals/adding-harness-approval-stages.
//!
//! What people say is recorded as signals of the run, one per person, so that nobody counts twice whatever the
//! network does; the step reads them when it is woken.

mod activity;
mod asked;
mod earlier;
mod input;
mod spec;
#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_model::status::{ErrorType, Failure, Status};

use crate::context::{StepContext, store_failure};
use crate::step::{Progress, Step, Undo};
use crate::variable::{read, wrong};

pub use activity::{Activity, Refusal, Verdict, activities, admit, deciding};
pub use spec::Approval;

/// Before this kind of signal comes the name of the person.
pub const KIND: &str = "approval:";

/// Who approves at the deadline of `autoApproval`.
const AUTOMATIC: &str = "autoApproval";

/// The time of an automatic approval is later than so many minutes after the step began (docs:
/// platform/approvals/adding-harness-approval-stages, "Automatic Approvals").
const MINUTES_AHEAD: i64 = 15;

/// Its type.
pub const HARNESS_APPROVAL: &str = "HarnessApproval";

/// The user groups that an approval with this spec asks; none where it cannot be read.
pub fn groups(spec: &Value) -> Vec<String> {
    read::<Approval>(spec).map_or_else(|_| Vec::new(), |approval| approval.groups())
}

/// The step.
pub struct HarnessApproval;

#[async_trait]
impl Step for HarnessApproval {
    fn step_type(&self) -> &'static str {
        HARNESS_APPROVAL
    }

    fn units(&self) -> &'static [&'static str] {
        &[]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        match read::<Approval>(spec) {
            Err(message) => vec![message],
            Ok(approval) => approval.faults(),
        }
    }

    fn only_asks(&self) -> bool {
        true
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it changes nothing")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let approval: Approval = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        let count = approval.count().map_err(|message| wrong(&step, &message))?;
        let automatic = approval
            .automatic()
            .and_then(|deadline| ahead(deadline, cx.started_ms()))
            .map_err(|message| wrong(&step, &message))?;
        let mut said = activities(cx.heard(), cx.node(), cx.attempt());
        if let Some(last) = deciding(&said, count) {
            said.truncate(last + 1);
        }
        if let Some(rejected) = said.iter().find(|one| one.verdict == Verdict::Reject) {
            return Err(Failure {
                error: ErrorType::ApprovalRejection,
                message: rejected.told(),
                left_behind: None,
            });
        }
        if said.len() >= count {
            if let Some(last) = said.last().filter(|_| approval.rejects_earlier()) {
                let run = cx.store().get_run(cx.run()).await;
                let run =
                    run.map_err(|error| store_failure(&format!("read the run of {step}"), &error))?;
                earlier::reject(&cx.starts().runs, cx.node(), &run, &last.who).await?;
            }
            return Ok(Progress::Done(outputs(&approval, &said)));
        }
        if said.is_empty() && !cx.is_late() {
            asked::check(cx, &approval, count).await?;
        }
        let now = cx.now_in_time();
        match automatic {
            Some(deadline) if deadline <= now => {
                let said = with_automatic(&approval, said, deadline);
                Ok(Progress::Done(outputs(&approval, &said)))
            }
            deadline => Ok(Progress::Hold {
                time: left(now, deadline).unwrap_or(cx.time_left()),
                status: Status::ApprovalWaiting,
            }),
        }
    }
}

/// What was said, and after it the approval that nobody had to give.
fn with_automatic(
    approval: &Approval,
    mut said: Vec<Activity>,
    deadline: Timestamp,
) -> Vec<Activity> {
    let inputs = said.last().map(|last| last.inputs.clone());
    said.push(Activity {
        verdict: Verdict::Approve,
        comments: approval.automatic_comments(),
        inputs: inputs.unwrap_or_else(|| approval.defaults()),
        who: AUTOMATIC.to_owned(),
        at_ms: deadline.as_millisecond(),
    });
    said
}

/// A deadline that is far enough ahead of when its step began, in epoch milliseconds.
fn ahead(deadline: Option<Timestamp>, began_ms: i64) -> Result<Option<Timestamp>, String> {
    let soonest_ms = began_ms.saturating_add(MINUTES_AHEAD * 60_000);
    match deadline.filter(|deadline| deadline.as_millisecond() <= soonest_ms) {
        None => Ok(deadline),
        Some(early) => Err(format!(
            "autoApproval.scheduledDeadline: {early} is not more than {MINUTES_AHEAD} minutes after the step began; name a \
             later time"
        )),
    }
}

fn left(now: Timestamp, deadline: Option<Timestamp>) -> Option<Duration> {
    Duration::try_from(deadline?.duration_since(now)).ok()
}

/// What expressions read: the inputs of the last approver, and who said what.
fn outputs(approval: &Approval, said: &[Activity]) -> Value {
    let inputs = match said.last() {
        Some(last) => last.inputs.clone(),
        None => approval.defaults(),
    };
    let activities: Vec<Value> = said.iter().map(Activity::shown).collect();
    json!({"output": {"approverInputs": inputs, "approvalActivities": activities}})
}
