//! ServiceNow: `ServiceNowApproval`, `ServiceNowCreate`, `ServiceNowImportSet`, `ServiceNowUpdate`. Source: the step
//! infos in the pipeline schema; docs: cd-steps/ticketing-systems and platform/approvals/service-now-approvals;
//! ServiceNow's Table API, Import Set API and Change Management API.

mod approval;
mod client;
mod create;
mod import_set;
mod ticket;
mod update;
mod window;

pub use approval::ServiceNowApproval;
pub use create::ServiceNowCreate;
pub use import_set::ServiceNowImportSet;
pub use update::ServiceNowUpdate;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ticket::{Stop, is_name};
use crate::variable::is_expression;

/// One of `fields`: the name of a column, not its label.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    name: String,
    value: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

/// `fields` as a body of a request.
fn body(fields: &[Given]) -> Map<String, Value> {
    let text = |value: &Value| match value {
        Value::String(_) => value.clone(),
        Value::Null => Value::from(""),
        other => Value::from(other.to_string()),
    };
    fields
        .iter()
        .map(|field| (field.name.trim().to_owned(), text(&field.value)))
        .collect()
}

/// What is wrong with a name before the run.
fn name_fault(field: &str, text: &str, example: &str) -> Option<String> {
    let wrong = !is_expression(text) && !is_name(text.trim());
    wrong.then(|| format!("{field}: it is no name such as {example}"))
}

/// A name in a form that can stand in addresses and queries.
fn name<'t>(field: &str, text: &'t str) -> Result<&'t str, Stop> {
    match is_name(text.trim()) {
        true => Ok(text.trim()),
        false => Err(Stop::over(format!(
            "{field}: what it says has other characters than letters, digits, `-` and `_`."
        ))),
    }
}

/// The table of a ticket type: `CHANGE_REQUEST` has been written as well as `change_request`.
fn table(ticket_type: &str) -> Result<String, Stop> {
    Ok(name("ticketType", ticket_type)?.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
