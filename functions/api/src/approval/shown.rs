//! Approvals as clients read them.

use serde_json::{Value, json};
use slipway_engine::abort::task_id;
use slipway_model::status::{ErrorType, Status};
use slipway_steps::approval::{Activity, activities};
use slipway_store::record::{NodeRecord, RunRecord};

use super::BY_PEOPLE;
use crate::Deps;
use crate::error::ApiResult;
use crate::execution::plan;

pub(super) fn id_of(record: &NodeRecord) -> String {
    task_id(&record.run, &record.id, record.attempt)
}

pub(super) fn status(record: &NodeRecord) -> &'static str {
    let rejected = record
        .failure
        .as_ref()
        .is_some_and(|failure| failure.error == ErrorType::ApprovalRejection);
    match record.status {
        _ if rejected => "REJECTED",
        Status::Success => "APPROVED",
        Status::Aborted => "ABORTED",
        Status::Expired => "EXPIRED",
        status if status.is_final() => "FAILED",
        _ => "WAITING",
    }
}

/// An approval as clients read it.
pub(super) async fn show(deps: &Deps, run: &RunRecord, record: &NodeRecord) -> ApiResult<Value> {
    let run = deps.store.get_run(&run.id).await?;
    let said = activities(&run.signals, &record.id, record.attempt);
    let timeout = match plan(deps, &run).await? {
        Some(plan) => plan.step(&record.id).map(|step| step.timeout),
        None => None,
    };
    let deadline = timeout.map(|timeout| {
        record
            .started_ms
            .saturating_add(i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX))
    });
    let changed = said.last().map_or(record.started_ms, |last| last.at_ms);
    let spec = |name: &str| record.spec.get(name).cloned().unwrap_or(Value::Null);
    let details = match record.node_type.as_str() {
        BY_PEOPLE => json!({
            "approvalMessage": spec("approvalMessage"),
            "includePipelineExecutionHistory": spec("includePipelineExecutionHistory"),
            "approvers": spec("approvers"),
            // What ended with an answer knows one more than people gave: that of `autoApproval`.
            "approvalActivities": record.outputs.pointer("/output/approvalActivities").cloned()
                .unwrap_or_else(|| said.iter().map(Activity::shown).collect()),
            "approverInputs": spec("approverInputs"),
            "autoRejectEnabled": spec("isAutoRejectEnabled") == Value::Bool(true),
        }),
        _ => by_criteria(record),
    };
    Ok(json!({
        "id": id_of(record),
        "type": record.node_type,
        "status": status(record),
        "deadline": deadline,
        "created": record.started_ms,
        "updated": record.ended_ms.unwrap_or(changed),
        "error_message": record.failure.as_ref().map(|failure| &failure.message),
        "details": details,
    }))
}

/// Details of an approval that a ticket or a script decides.
fn by_criteria(record: &NodeRecord) -> Value {
    let spec = |name: &str| record.spec.get(name).map(readable).unwrap_or_default();
    let output = |path: &str| {
        record
            .outputs
            .pointer(path)
            .map(readable)
            .unwrap_or_default()
    };
    let mut details = json!({
        "approvalCriteria": spec("approvalCriteria"),
        "rejectionCriteria": spec("rejectionCriteria"),
        "retryInterval": spec("retryInterval"),
    });
    match record.node_type.as_str() {
        "JiraApproval" => {
            details["connectorRef"] = spec("connectorRef");
            details["issue"] = json!({"key": spec("issueKey"), "url": output("/issue/url")});
        }
        "ServiceNowApproval" => {
            details["connectorRef"] = spec("connectorRef");
            details["changeWindow"] = spec("changeWindow");
            details["ticket"] = json!({
                "key": spec("ticketNumber"), "ticketType": spec("ticketType"), "url": output("/ticket/url"),
            });
        }
        _ => details["scriptTimeout"] = spec("scriptTimeout"),
    }
    details
}

/// Why nobody answers an approval of this type, and what decides it.
pub(super) fn not_by_hand(record: &NodeRecord) -> String {
    let spec = |name: &str| match record.spec.get(name).map(readable) {
        Some(Value::String(text)) => text,
        _ => "?".to_owned(),
    };
    let decided = match record.node_type.as_str() {
        "JiraApproval" => format!(
            "issue {} of Jira decides it; change the issue",
            spec("issueKey")
        ),
        "ServiceNowApproval" => format!(
            "ticket {} of ServiceNow decides it; change the ticket",
            spec("ticketNumber")
        ),
        _ => "its script decides it".to_owned(),
    };
    format!(
        "The approval {} is of type {} and is not answered by hand: {decided}, or mark the step as failed",
        record.name, record.node_type
    )
}

/// A value with secrets as the expressions that name them.
fn readable(value: &Value) -> Value {
    slipway_expr::Value::from_marked_json(value).to_shown_json()
}
