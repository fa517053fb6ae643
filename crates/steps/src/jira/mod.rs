//! Jira: `JiraApproval`, `JiraCreate`, `JiraUpdate`. Source: the step infos in the pipeline schema; docs:
//! cd-steps/ticketing-systems and platform/approvals/adding-jira-approval-stages; Jira's REST API version 2,
//! of Jira Cloud and Jira Data Center alike.

mod approval;
mod client;
mod create;
mod field;
mod issue;
mod update;

pub use approval::JiraApproval;
pub use create::JiraCreate;
pub use update::JiraUpdate;

use serde::Deserialize;
use serde_json::Value;

/// One of `fields`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    #[serde(default)]
    name: Option<String>,
    value: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

impl Given {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default().trim()
    }

    /// The value as a text, which may hold secrets.
    fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            Value::Array(items) => {
                let items = items.iter().map(|item| match item {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
                items.collect::<Vec<_>>().join(",")
            }
            other => other.to_string(),
        }
    }

    /// Whether it is a comment, which is no field of an issue.
    fn is_comment(&self) -> bool {
        self.name().eq_ignore_ascii_case("comment")
    }
}

/// What is wrong with `fields` before the run.
fn field_faults(fields: &[Given]) -> Vec<String> {
    let nameless = fields
        .iter()
        .enumerate()
        .filter(|(_, field)| field.name().is_empty());
    nameless
        .map(|(index, _)| format!("fields.{index}: it has no name"))
        .collect()
}

#[cfg(test)]
mod tests;
