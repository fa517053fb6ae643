//! Criteria of approvals that look at a ticket or at what a script said. Source: CriteriaSpecWrapper in the
//! pipeline schema; docs: platform/approvals/adding-jira-approval-stages, "Set Approval Criteria".
//!
//! A condition on a field that the ticket does not have holds neither way: a slip of a name must not approve.

use serde::Deserialize;
use serde_json::Value as Json;
use slipway_expr::Value;
use slipway_model::status::{ErrorType, Failure};

use crate::names::Names;
use crate::ticket::text::words;
use crate::variable::{flag, is_expression};

/// `approvalCriteria` or `rejectionCriteria`.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", content = "spec")]
pub(crate) enum Criteria {
    /// An expression.
    Jexl(Jexl),
    /// Conditions on fields.
    KeyValues(KeyValues),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Jexl {
    expression: String,
    #[serde(default, rename = "metadata")]
    _metadata: Json,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct KeyValues {
    #[serde(default)]
    match_any_condition: Json,
    conditions: Vec<Condition>,
    #[serde(default, rename = "metadata")]
    _metadata: Json,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Condition {
    key: String,
    operator: Operator,
    value: String,
    #[serde(default, rename = "metadata")]
    _metadata: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Operator {
    #[serde(rename = "equals")]
    Equals,
    #[serde(rename = "not equals")]
    NotEquals,
    #[serde(rename = "in")]
    In,
    #[serde(rename = "not in")]
    NotIn,
}

/// What a condition compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// One value, in each way to write it: as shown and as stored.
    One(Vec<String>),
    /// Several values, such as labels.
    Many(Vec<String>),
}

/// What criteria are about.
pub(crate) struct Subject<'a> {
    /// Names for expressions: `issue`, `ticket` or `output`.
    pub(crate) names: Names<'a>,
    /// A field by its name; `None` where there is none.
    pub(crate) field: &'a dyn Fn(&str) -> Option<Field>,
}

/// Whether criteria hold, and what was seen, for people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) holds: bool,
    pub(crate) seen: String,
}

impl Criteria {
    /// Whether there is nothing that could ever hold: the form that Harness writes for no criteria.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Jexl(jexl) => jexl.expression.trim().is_empty(),
            Self::KeyValues(key_values) => key_values.conditions.is_empty(),
        }
    }

    /// What is wrong with it before the run; `name` is that of the field.
    pub(crate) fn fault(&self, name: &str) -> Option<String> {
        let Self::Jexl(jexl) = self else { return None };
        if self.is_empty() {
            return None;
        }
        let error = slipway_expr::check_condition(&jexl.expression).err()?;
        Some(format!("{name}.spec.expression: {error}"))
    }

    /// Judges what is there now. Empty criteria never hold.
    ///
    /// # Errors
    /// When an expression cannot be evaluated.
    pub(crate) fn judge(&self, subject: &Subject<'_>) -> Result<Judgement, Failure> {
        if self.is_empty() {
            let seen = String::new();
            return Ok(Judgement { holds: false, seen });
        }
        match self {
            Self::Jexl(jexl) => {
                let holds = subject.names.condition(&jexl.expression)?;
                let word = if holds { "holds" } else { "does not hold" };
                let seen = format!("`{}` {word}", jexl.expression.trim());
                Ok(Judgement { holds, seen })
            }
            Self::KeyValues(key_values) => key_values.judge(subject),
        }
    }
}

/// Faults of both criteria of an approval.
pub(crate) fn faults(approval: &Criteria, rejection: Option<&Criteria>) -> Vec<String> {
    let mut faults = Vec::new();
    if approval.is_empty() {
        faults.push("approvalCriteria: at least one condition or an expression is needed".into());
    }
    faults.extend(approval.fault("approvalCriteria"));
    faults.extend(rejection.and_then(|criteria| criteria.fault("rejectionCriteria")));
    faults
}

impl KeyValues {
    fn judge(&self, subject: &Subject<'_>) -> Result<Judgement, Failure> {
        let any = flag(&evaluated(&self.match_any_condition, subject)?) == Some(true);
        let mut results = Vec::new();
        let mut seen = Vec::new();
        for condition in &self.conditions {
            let key = plain(&condition.key, subject)?;
            let value = plain(&condition.value, subject)?;
            let field = (subject.field)(&key);
            results.push(
                field
                    .as_ref()
                    .is_some_and(|field| condition.operator.compare(field, &value)),
            );
            seen.push(match field {
                None => format!("there is no field `{key}`"),
                Some(field) => format!("{key} is `{}`", words(&field.shown())),
            });
        }
        let holds = match any {
            true => results.iter().any(|holds| *holds),
            false => results.iter().all(|holds| *holds),
        };
        let seen = seen.join(", ");
        Ok(Judgement { holds, seen })
    }
}

fn evaluated(value: &Json, subject: &Subject<'_>) -> Result<Json, Failure> {
    match value {
        Json::String(text) if is_expression(text) => subject.names.evaluate(value),
        other => Ok(other.clone()),
    }
}

/// A text of a condition with its expressions replaced. Secrets cannot be compared.
fn plain(text: &str, subject: &Subject<'_>) -> Result<String, Failure> {
    let value = evaluated(&Json::from(text), subject)?;
    let value = Value::from_marked_json(&value);
    value.text().ok_or_else(|| Failure {
        error: ErrorType::Unknown,
        message: format!(
            "The criteria compare with `{text}`, which is {} and no plain text.",
            value.kind()
        ),
        left_behind: None,
    })
}

fn items(list: &str) -> Vec<&str> {
    list.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .collect()
}

impl Operator {
    /// A field with several values equals a list with the same values; all of them must be in, or none.
    fn compare(self, field: &Field, value: &str) -> bool {
        let list = items(value);
        let within = |item: &String| list.contains(&item.trim());
        match (self, field) {
            (Self::Equals, Field::One(ways)) => ways.iter().any(|way| way.trim() == value.trim()),
            (Self::Equals, Field::Many(values)) => {
                let there = |item: &&str| values.iter().any(|value| value.trim() == *item);
                values.iter().all(within) && list.iter().all(there)
            }
            (Self::NotEquals, _) => !Self::Equals.compare(field, value),
            (Self::In, Field::One(ways)) => ways.iter().any(within),
            (Self::In, Field::Many(values)) => !values.is_empty() && values.iter().all(within),
            (Self::NotIn, Field::One(values) | Field::Many(values)) => !values.iter().any(within),
        }
    }
}

impl Field {
    /// A field of data, as JSON has it.
    pub(crate) fn of_json(value: &Json) -> Self {
        match value {
            Json::Array(items) => Self::Many(items.iter().map(text_of).collect()),
            other => Self::One(vec![text_of(other)]),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::One(ways) => ways.first().cloned().unwrap_or_default(),
            Self::Many(values) => values.join(", "),
        }
    }
}

fn text_of(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "criteria_tests.rs"]
mod tests;
