//! `ServiceNowUpdate`: sets fields of a ticket, or of the change tasks of a change request. Source:
//! ServiceNowUpdateStepInfo in the pipeline schema.
//!
//! After a crash it goes on: fields are set again, which changes nothing. Journals (`work_notes`, `comments`) grow with
//! each request; an entry that a journal shows already is not written again.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use slipway_model::status::Failure;

use super::client::ServiceNow;
use super::create::no_form;
use super::ticket::Ticket;
use super::{Given, body, name, name_fault, table};
use crate::context::StepContext;
use crate::step::{Progress, Step, Undo};
use crate::ticket::{Stop, Tries, UNIT, go_on, tell};
use crate::variable::{flag, read, wrong};

/// Columns that keep what was written before.
const JOURNALS: [&str; 2] = ["work_notes", "comments"];

/// The step.
pub struct ServiceNowUpdate;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    ticket_type: String,
    #[serde(default)]
    ticket_number: Option<String>,
    #[serde(default)]
    update_multiple: Option<Multiple>,
    #[serde(default)]
    fields: Option<Vec<Given>>,
    #[serde(default)]
    use_service_now_template: Value,
    #[serde(default, rename = "templateName")]
    _template_name: Value,
    #[serde(rename = "connectorRef")]
    _connector_ref: Value,
    #[serde(default, rename = "delegateSelectors")]
    _delegate_selectors: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

/// `updateMultiple`.
#[derive(Deserialize)]
#[serde(tag = "type", content = "spec")]
enum Multiple {
    #[serde(rename = "CHANGE_TASK")]
    ChangeTask(ChangeTask),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangeTask {
    change_request_number: String,
    #[serde(default)]
    change_task_type: Option<String>,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct State {
    /// Tickets that were about to be updated, by id.
    #[serde(default)]
    sent: BTreeSet<String>,
    /// Those that were.
    #[serde(default)]
    updated: BTreeSet<String>,
    #[serde(default)]
    tries: Tries,
}

#[async_trait]
impl Step for ServiceNowUpdate {
    fn step_type(&self) -> &'static str {
        "ServiceNowUpdate"
    }

    fn units(&self) -> &'static [&'static str] {
        &[UNIT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let spec: Spec = match read(spec) {
            Ok(spec) => spec,
            Err(message) => return vec![message],
        };
        let mut faults = Vec::new();
        if flag(&spec.use_service_now_template) == Some(true) {
            faults.push(no_form("useServiceNowTemplate: true"));
        }
        faults.extend(name_fault(
            "ticketType",
            &spec.ticket_type,
            "change_request",
        ));
        match (&spec.ticket_number, &spec.update_multiple) {
            (_, Some(Multiple::ChangeTask(tasks))) => {
                let number = &tasks.change_request_number;
                faults.extend(name_fault(
                    "updateMultiple.spec.changeRequestNumber",
                    number,
                    "CHG0030001",
                ));
            }
            (Some(number), None) => faults.extend(name_fault("ticketNumber", number, "INC0010001")),
            (None, None) => faults.push("ticketNumber: missing".to_owned()),
        }
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("a ticket tells what was done; it is not taken back")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let spec: Spec = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        let mut state: State = cx.saved()?;
        if let Some(rest) = state.tries.early(cx) {
            return Ok(Progress::Again(rest));
        }
        let worked = work(&spec, &mut state, cx).await;
        go_on(worked, &mut state, |state| &mut state.tries, cx).await
    }
}

async fn work(spec: &Spec, state: &mut State, cx: &mut StepContext<'_>) -> Result<Value, Stop> {
    let service_now = ServiceNow::of(cx).await?;
    let fields = body(spec.fields.as_deref().unwrap_or_default());
    if let Some(Multiple::ChangeTask(tasks)) = &spec.update_multiple {
        return update_tasks(tasks, &fields, &service_now, state, cx).await;
    }
    let table = table(&spec.ticket_type)?;
    let number = name(
        "ticketNumber",
        spec.ticket_number.as_deref().unwrap_or_default(),
    )?;
    let ticket = service_now.ticket(cx, &table, number).await?;
    let ticket = update(&table, ticket, &fields, &service_now, state, cx).await?;
    let (output, left_out) = ticket.output();
    tell(cx, &ticket.number, &ticket.url, &left_out);
    Ok(json!({"ticket": output}))
}

async fn update_tasks(
    tasks: &ChangeTask,
    fields: &Map<String, Value>,
    service_now: &ServiceNow,
    state: &mut State,
    cx: &mut StepContext<'_>,
) -> Result<Value, Stop> {
    let change = name("changeRequestNumber", &tasks.change_request_number)?;
    let kind = tasks
        .change_task_type
        .as_deref()
        .filter(|kind| !kind.trim().is_empty());
    let kind = kind.map(|kind| name("changeTaskType", kind)).transpose()?;
    let found = service_now.tasks(cx, change, kind).await?;
    if found.is_empty() {
        let of = kind.map_or_else(String::new, |kind| format!(" of type {kind}"));
        return Err(Stop::over(format!(
            "ServiceNow has no change tasks{of} below {change}."
        )));
    }
    let mut tickets = Vec::new();
    for task in found {
        let task = update("change_task", task, fields, service_now, state, cx).await?;
        cx.info(UNIT, format!("{} {}", task.number, task.url));
        let [number, id, url] = [&task.number, &task.sys_id, &task.url].map(|text| text.as_str());
        tickets.push(json!({"ticketNumber": number, "ticketId": id, "url": url}));
    }
    Ok(crate::ticket::text::as_output(&json!({"tickets": tickets})))
}

/// Sets fields of one ticket, once.
async fn update(
    table: &str,
    ticket: Ticket,
    fields: &Map<String, Value>,
    service_now: &ServiceNow,
    state: &mut State,
    cx: &mut StepContext<'_>,
) -> Result<Ticket, Stop> {
    if state.updated.contains(&ticket.sys_id) {
        return Ok(ticket);
    }
    let mut fields = fields.clone();
    if state.sent.contains(&ticket.sys_id) {
        leave_out_written(&mut fields, &ticket, cx).await?;
    }
    state.sent.insert(ticket.sys_id.clone());
    cx.save(state).await?;
    let updated = service_now
        .update(cx, table, &ticket.sys_id, fields)
        .await?;
    state.updated.insert(ticket.sys_id);
    cx.save(state).await?;
    Ok(updated)
}

/// Leaves entries of journals out that are there already.
async fn leave_out_written(
    fields: &mut Map<String, Value>,
    ticket: &Ticket,
    cx: &mut StepContext<'_>,
) -> Result<(), Stop> {
    for journal in JOURNALS {
        let Some(entry) = fields.get(journal) else {
            continue;
        };
        let revealed = cx.secrets().reveal(entry.clone()).await?;
        let own = cx.secrets().mask(revealed.as_str().unwrap_or_default());
        let written = ticket.shown(journal).unwrap_or_default();
        if !own.trim().is_empty() && written.contains(own.trim()) {
            fields.remove(journal);
        }
    }
    Ok(())
}
