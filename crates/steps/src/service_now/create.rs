//! `ServiceNowCreate`: creates a ticket. Source: ServiceNowCreateStepInfo in the pipeline schema; docs:
//! servicenow-api-permission.
//!
//! ServiceNow has no way to make a repeated request harmless. So the ticket's `correlation_id` marks this attempt of the
//! step (unless `fields` set it), and what may have been created before a crash is looked for by it. Tables that do
//! not extend `task` may lack the column: there a request that may have arrived is not sent again.
//!
//! Form templates need an application of Harness's in ServiceNow, whose interface is not public: they are refused.
//! Standard change templates are ServiceNow's own.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::client::ServiceNow;
use super::ticket::Ticket;
use super::{Given, body, name_fault, table};
use crate::context::StepContext;
use crate::step::{Progress, Step, Undo};
use crate::ticket::{Stop, Tries, UNIT, go_on, marker, tell};
use crate::variable::{flag, read, wrong};

/// The column that marks what a step created.
const MARK: &str = "correlation_id";

/// The step.
pub struct ServiceNowCreate;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    ticket_type: String,
    #[serde(default)]
    fields: Option<Vec<Given>>,
    #[serde(default)]
    create_type: Option<String>,
    #[serde(default)]
    use_service_now_template: Value,
    #[serde(default)]
    template_name: Option<String>,
    #[serde(rename = "connectorRef")]
    _connector_ref: Value,
    #[serde(default, rename = "delegateSelectors")]
    _delegate_selectors: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct State {
    /// The request was about to be sent.
    #[serde(default)]
    sent: bool,
    #[serde(default)]
    tries: Tries,
}

/// How a ticket comes to be.
#[derive(Debug, PartialEq, Eq)]
enum Way<'s> {
    Fields,
    Standard(&'s str),
}

impl Spec {
    fn way(&self) -> Result<Way<'_>, String> {
        let template = self
            .template_name
            .as_deref()
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let form = flag(&self.use_service_now_template) == Some(true);
        match (self.create_type.as_deref(), template) {
            (Some("Standard"), Some(name)) if !name.contains('^') => Ok(Way::Standard(name)),
            (Some("Standard"), Some(_)) => Err("templateName: `^` cannot be in it".to_owned()),
            (Some("Standard"), None) => {
                Err("templateName: createType Standard needs it".to_owned())
            }
            (Some("Form"), _) => Err(no_form("createType: Form")),
            (None, _) if form => Err(no_form("useServiceNowTemplate: true")),
            _ => Ok(Way::Fields),
        }
    }
}

/// Why form templates are refused.
pub(super) fn no_form(what: &str) -> String {
    format!(
        "`{what}` is not supported: form templates need an application of Harness's in ServiceNow; write the fields into `fields`"
    )
}

#[async_trait]
impl Step for ServiceNowCreate {
    fn step_type(&self) -> &'static str {
        "ServiceNowCreate"
    }

    fn units(&self) -> &'static [&'static str] {
        &[UNIT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let spec: Spec = match read(spec) {
            Ok(spec) => spec,
            Err(message) => return vec![message],
        };
        let mut faults: Vec<String> = spec.way().err().into_iter().collect();
        faults.extend(name_fault(
            "ticketType",
            &spec.ticket_type,
            "change_request",
        ));
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("a ticket tells what was done; it is not taken back")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let spec: Spec = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        let way = spec.way().map_err(|message| wrong(&step, &message))?;
        let mut state: State = cx.saved()?;
        if let Some(rest) = state.tries.early(cx) {
            return Ok(Progress::Again(rest));
        }
        let worked = work(&spec, &way, &mut state, cx).await.map(|ticket| {
            let (output, left_out) = ticket.output();
            tell(cx, &ticket.number, &ticket.url, &left_out);
            json!({"ticket": output})
        });
        go_on(worked, &mut state, |state| &mut state.tries, cx).await
    }
}

async fn work(
    spec: &Spec,
    way: &Way<'_>,
    state: &mut State,
    cx: &mut StepContext<'_>,
) -> Result<Ticket, Stop> {
    let service_now = ServiceNow::of(cx).await?;
    let table = match way {
        Way::Standard(_) => "change_request".to_owned(),
        Way::Fields => table(&spec.ticket_type)?,
    };
    let mut fields = body(spec.fields.as_deref().unwrap_or_default());
    let mark = marker(cx);
    let marked = !fields.contains_key(MARK);
    if marked {
        fields.insert(MARK.to_owned(), mark.as_str().into());
    }
    if state.sent {
        if !marked {
            return Err(Stop::over(
                "Slipway was interrupted while it created a ticket and cannot know whether ServiceNow did so: `fields` set correlation_id, by which it would be found. Look at the table, then run the step again if there is no new ticket.",
            ));
        }
        if let Some(ticket) = service_now.marked(cx, &table, &mark).await? {
            cx.info(
                UNIT,
                format!("Found {}, created before an interruption", ticket.number),
            );
            return Ok(ticket);
        }
    }
    let template = match way {
        Way::Standard(name) => Some(service_now.standard_template(cx, name).await?),
        Way::Fields => None,
    };
    cx.info(UNIT, format!("Creating a ticket in {table}"));
    state.sent = true;
    cx.save(state).await?;
    let created = match template {
        Some(template) => service_now.create_standard(cx, &template, fields).await,
        None => service_now.create(cx, &table, fields).await,
    };
    if let Err(Stop::Later {
        untouched: true, ..
    }) = created
    {
        state.sent = false;
    }
    created
}
