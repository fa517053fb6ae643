//! `JiraApproval`: waits until an issue meets criteria. Source: JiraApprovalStepInfo in the pipeline schema.
//!
//! The issue is looked at when the step begins and then every `retryInterval`, 60 seconds where there is none and at
//! least 10. A server that cannot answer is asked again at the next look. It ends when the approval criteria hold,
//! when the rejection criteria hold, when the login is refused or the issue does not exist, or when its time is up.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use slipway_model::status::Failure;

use super::client::Jira;
use crate::context::StepContext;
use crate::criteria::{self, Criteria, Subject};
use crate::step::{Progress, Step, Undo};
use crate::ticket::{Poll, Stop, UNIT, Verdict, is_name, poll, tell};
use crate::variable::{is_expression, read, wrong};

/// The step.
pub struct JiraApproval;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    issue_key: String,
    approval_criteria: Criteria,
    #[serde(default)]
    rejection_criteria: Option<Criteria>,
    #[serde(default)]
    retry_interval: Option<String>,
    #[serde(rename = "connectorRef")]
    _connector_ref: Value,
    #[serde(default, rename = "projectKey")]
    _project_key: Value,
    #[serde(default, rename = "issueType")]
    _issue_type: Value,
    #[serde(default, rename = "delegateSelectors")]
    _delegate_selectors: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

#[async_trait]
impl Step for JiraApproval {
    fn step_type(&self) -> &'static str {
        "JiraApproval"
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
        faults.extend(key_fault(&spec.issue_key));
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

/// What is wrong with a key.
pub(super) fn key_fault(key: &str) -> Option<String> {
    let wrong = !is_expression(key) && !is_name(key.trim());
    wrong.then(|| {
        format!(
            "issueKey: `{}` is no key of an issue, such as SHOP-7",
            crate::ticket::text::words(key)
        )
    })
}

/// The key of the issue, in a form that can stand in an address.
pub(super) fn key(text: &str) -> Result<&str, Stop> {
    match key_fault(text) {
        Some(fault) => Err(Stop::over(format!("{fault}."))),
        None if is_expression(text) => Err(Stop::over("issueKey: it is still an expression.")),
        None => Ok(text.trim()),
    }
}

async fn look(spec: &Spec, cx: &mut StepContext<'_>) -> Result<(Verdict, Value), Stop> {
    let key = key(&spec.issue_key)?;
    let jira = Jira::of(cx).await?;
    let issue = jira.issue(cx, key).await?;
    let names = [("issue", issue.for_criteria())];
    let subject = Subject {
        names: cx.expressions_with(&names),
        field: &|name| issue.field(name),
    };
    let verdict = poll::judge(
        &spec.approval_criteria,
        spec.rejection_criteria.as_ref(),
        &subject,
    )?;
    let (outputs, left_out) = issue.outputs();
    if verdict == Verdict::Approved {
        tell(cx, &issue.key, &issue.url, &left_out);
    }
    Ok((verdict, outputs))
}
