//! `ServiceNowApproval`: waits until a ticket meets criteria, and for its change window. Source:
//! ServiceNowApprovalStepInfo in the pipeline schema.
//!
//! The ticket is looked at when the step begins and then every `retryInterval`, as by `JiraApproval`. When the approval
//! criteria hold before the change window begins, the step waits for it and goes on looking: a ticket that no longer
//! meets them is not approved, and a window that was moved counts as moved.

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::client::ServiceNow;
use super::window::Window;
use super::{name, name_fault, table};
use crate::context::StepContext;
use crate::criteria::{self, Criteria, Subject};
use crate::step::{Progress, Step, Undo};
use crate::ticket::{Poll, Stop, UNIT, Verdict, poll, tell};
use crate::variable::{read, wrong};

/// The step.
pub struct ServiceNowApproval;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    ticket_number: String,
    ticket_type: String,
    approval_criteria: Criteria,
    #[serde(default)]
    rejection_criteria: Option<Criteria>,
    #[serde(default)]
    change_window: Option<Window>,
    #[serde(default)]
    retry_interval: Option<String>,
    #[serde(rename = "connectorRef")]
    _connector_ref: Value,
    #[serde(default, rename = "delegateSelectors")]
    _delegate_selectors: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

#[async_trait]
impl Step for ServiceNowApproval {
    fn step_type(&self) -> &'static str {
        "ServiceNowApproval"
    }

    fn units(&self) -> &'static [&'static str] {
        &[UNIT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let spec: Spec = match read(spec) {
            Ok(spec) => spec,
            Err(message) => return vec![message],
        };
        let mut faults =
            criteria::faults(&spec.approval_criteria, spec.rejection_criteria.as_ref());
        faults.extend(poll::interval_fault(spec.retry_interval.as_deref()));
        faults.extend(name_fault(
            "ticketNumber",
            &spec.ticket_number,
            "CHG0030001",
        ));
        faults.extend(name_fault(
            "ticketType",
            &spec.ticket_type,
            "change_request",
        ));
        faults
    }

    fn own_expressions(&self) -> &'static [&'static str] {
        &["approvalCriteria", "rejectionCriteria"]
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it changes nothing")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let spec: Spec = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        let interval = poll::interval(spec.retry_interval.as_deref())
            .map_err(|message| wrong(&step, &message))?;
        let poll: Poll = cx.saved()?;
        if let Some(rest) = poll.early(cx) {
            return Ok(rest);
        }
        let looked = look(&spec, cx).await;
        poll.conclude(looked, interval, cx).await
    }
}

async fn look(spec: &Spec, cx: &mut StepContext<'_>) -> Result<(Verdict, Value), Stop> {
    let table = table(&spec.ticket_type)?;
    let number = name("ticketNumber", &spec.ticket_number)?;
    let service_now = ServiceNow::of(cx).await?;
    let ticket = service_now.ticket(cx, &table, number).await?;
    let names = [("ticket", ticket.for_criteria())];
    let subject = Subject {
        names: cx.expressions_with(&names),
        field: &|column| ticket.field(column),
    };
    let mut verdict = poll::judge(
        &spec.approval_criteria,
        spec.rejection_criteria.as_ref(),
        &subject,
    )?;
    let window = spec
        .change_window
        .as_ref()
        .filter(|window| !window.is_empty());
    if let (Verdict::Approved, Some(window)) = (&verdict, window) {
        let now = cx.clock().now();
        if let Some(field) = window.unfilled(&ticket) {
            verdict = Verdict::Open(format!(
                "{} meets the approval criteria, and `{field}` of its change window is empty",
                ticket.number
            ));
        } else if let Some(start) = window.opens(&ticket, now)? {
            let wait = Duration::try_from(start.duration_since(now)).unwrap_or_default();
            let seen = format!(
                "{} meets the approval criteria, and its change window begins at {start}",
                ticket.number
            );
            verdict = Verdict::NotYet(wait, seen);
        }
    }
    let (output, left_out) = ticket.output();
    if verdict == Verdict::Approved {
        tell(cx, &ticket.number, &ticket.url, &left_out);
    }
    Ok((verdict, json!({"ticket": output})))
}
