//! A ticket as ServiceNow tells it, and as criteria and expressions read it.

use serde_json::{Map, Value, json};

use crate::criteria::Field;
use crate::ticket::is_name;
use crate::ticket::text::{as_output, fitting, words};

/// A ticket.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ticket {
    pub(super) number: String,
    pub(super) sys_id: String,
    pub(super) url: String,
    /// Columns: `{value, displayValue}`.
    fields: Map<String, Value>,
}

impl Ticket {
    /// Reads a row that was asked for with both values of each column (`sysparm_display_value=all`).
    pub(super) fn read(row: &Value, link: impl Fn(&str) -> String) -> Option<Self> {
        let columns = row.as_object()?;
        let fields: Map<String, Value> = columns
            .iter()
            .map(|(name, column)| {
                let (value, shown) = match column {
                    Value::Object(both) => (both.get("value"), both.get("display_value")),
                    plain => (Some(plain), Some(plain)),
                };
                let text = |value: Option<&Value>| match value {
                    None | Some(Value::Null) => Value::from(""),
                    Some(value) => value.clone(),
                };
                let both = json!({"value": text(value), "displayValue": text(shown.or(value))});
                (name.clone(), both)
            })
            .collect();
        let ticket = Self {
            fields,
            ..Self::default()
        };
        let sys_id = ticket.value("sys_id").filter(|id| is_name(id))?.to_owned();
        let number = words(ticket.value("number").unwrap_or_default());
        Some(Self {
            url: link(&sys_id),
            sys_id,
            number,
            ..ticket
        })
    }

    /// The stored value of a column.
    pub(super) fn value(&self, column: &str) -> Option<&str> {
        self.fields.get(column)?["value"].as_str()
    }

    /// The value of a column as people see it.
    pub(super) fn shown(&self, column: &str) -> Option<&str> {
        self.fields.get(column)?["displayValue"].as_str()
    }

    /// A column for a condition: as people see it, or as it is stored.
    pub(super) fn field(&self, column: &str) -> Option<Field> {
        let both = self.fields.get(column)?;
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some(Field::One(vec![
            text(&both["displayValue"]),
            text(&both["value"]),
        ]))
    }

    /// What `<+ticket…>` reads in criteria.
    pub(super) fn for_criteria(&self) -> slipway_expr::Value {
        let mut all = self.fields.clone();
        all.extend(self.head());
        slipway_expr::Value::from_json(&Value::Object(all))
    }

    /// What outputs say of it, and the names of columns that are too large for them.
    pub(super) fn output(&self) -> (Value, Vec<String>) {
        let (mut fields, left_out) = fitting(&self.fields);
        fields.extend(self.head());
        (as_output(&Value::Object(fields)), left_out)
    }

    fn head(&self) -> Map<String, Value> {
        let head = [
            ("ticketNumber", &self.number),
            ("ticketId", &self.sys_id),
            ("url", &self.url),
        ];
        head.into_iter()
            .map(|(name, value)| (name.to_owned(), Value::from(value.as_str())))
            .collect()
    }
}
