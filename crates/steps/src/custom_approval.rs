//! `CustomApproval`: runs a script on a delegate again and again until what it says meets criteria. Source:
//! CustomApprovalStepInfo in the pipeline schema; docs: platform/approvals/custom-approvals.
//!
//! The script runs when the step begins and then `retryInterval` after each end, each time for `scriptTimeout` at most.
//! Criteria read its output variables: by name in conditions, as `<+output.name>` in expressions. A script that
//! fails, or that does not end in time, fails the step. Secret output variables cannot be compared.

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use slipway_model::duration;
use slipway_model::status::Failure;

use crate::context::StepContext;
use crate::criteria::{self, Criteria, Field, Subject};
use crate::shell;
use crate::shell::task::{Outcome, TASK_TYPE};
use crate::step::{DelegateWork, Progress, Step, Undo};
use crate::ticket::{Poll, Stop, UNIT, Verdict, poll};
use crate::variable::{is_expression, read, wrong};

/// Fields of the spec that a shell script does not have.
const OWN: [&str; 4] = [
    "approvalCriteria",
    "rejectionCriteria",
    "retryInterval",
    "scriptTimeout",
];

/// The step.
pub struct CustomApproval;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Own {
    approval_criteria: Criteria,
    #[serde(default)]
    rejection_criteria: Option<Criteria>,
    retry_interval: String,
    script_timeout: String,
}

/// The spec: that of a script, and what it is for.
struct Spec {
    own: Own,
    script: shell::Spec,
}

impl Spec {
    fn read(spec: &Value) -> Result<Self, String> {
        let fields = spec.as_object().cloned().unwrap_or_default();
        let (own, script): (Map<_, _>, Map<_, _>) = fields
            .into_iter()
            .partition(|(name, _)| OWN.contains(&name.as_str()));
        Ok(Self {
            own: read(&Value::Object(own))?,
            script: read(&Value::Object(script))?,
        })
    }

    /// Longest time of one run of the script.
    fn script_timeout(&self) -> Result<Duration, String> {
        duration::parse(&self.own.script_timeout).map_err(|error| format!("scriptTimeout: {error}"))
    }
}

#[async_trait]
impl Step for CustomApproval {
    fn step_type(&self) -> &'static str {
        "CustomApproval"
    }

    fn units(&self) -> &'static [&'static str] {
        &[UNIT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let spec = match Spec::read(spec) {
            Ok(spec) => spec,
            Err(message) => return vec![message],
        };
        let own = &spec.own;
        let mut faults = criteria::faults(&own.approval_criteria, own.rejection_criteria.as_ref());
        faults.extend(poll::interval_fault(Some(&own.retry_interval)));
        if !is_expression(&own.script_timeout) {
            faults.extend(spec.script_timeout().err());
        }
        faults.extend(spec.script.faults(true));
        faults
    }

    fn own_expressions(&self) -> &'static [&'static str] {
        &["approvalCriteria", "rejectionCriteria"]
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("what a script changes only its author knows; rollbackSteps may undo it")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let unfit = |message: String| wrong(&step, &message);
        let spec = Spec::read(cx.spec()).map_err(unfit)?;
        let interval = poll::interval(Some(&spec.own.retry_interval)).map_err(unfit)?;
        let poll: Poll = cx.saved()?;
        if let Some(rest) = poll.early(cx) {
            return Ok(rest);
        }
        cx.unit_started(UNIT);
        if let Some(result) = cx.delegate_result() {
            let outcome: Outcome = read(result)
                .map_err(|message| unfit(format!("the delegate's answer: {message}")))?;
            shell::end(&outcome)?;
            let looked = look(&spec.own, &outcome, cx);
            return poll.conclude(looked, interval, cx).await;
        }
        if let Some(fault) = spec.script.faults(false).into_iter().next() {
            return Err(unfit(fault));
        }
        let limit = spec.script_timeout().map_err(unfit)?.min(cx.time_left());
        let limit = shell::whole_seconds(limit);
        let payload = spec.script.payload(limit).map_err(unfit)?;
        Ok(Progress::Delegate(DelegateWork {
            task_type: TASK_TYPE.to_owned(),
            payload: json!(payload),
            selectors: shell::chosen_selectors(&spec.script.delegate_selectors, cx)?,
            turn: poll.looks,
        }))
    }
}

/// What the script's output variables mean.
fn look(own: &Own, outcome: &Outcome, cx: &StepContext<'_>) -> Result<(Verdict, Value), Stop> {
    let outputs = shell::outputs(outcome);
    let output = slipway_expr::Value::from_marked_json(&Value::Object(outputs.clone()));
    let text = |name: &str| slipway_expr::Value::from_marked_json(outputs.get(name)?).text();
    let names = [("output", output)];
    let subject = Subject {
        names: cx.expressions_with(&names),
        field: &|name| text(name).map(|text| Field::One(vec![text])),
    };
    let verdict = poll::judge(
        &own.approval_criteria,
        own.rejection_criteria.as_ref(),
        &subject,
    )?;
    Ok((verdict, json!({"output": {"outputVariables": outputs}})))
}
