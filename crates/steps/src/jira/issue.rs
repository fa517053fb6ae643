//! An issue as Jira tells it, and as criteria and expressions read it: fields by the names that people see.

use serde_json::{Map, Value, json};

use crate::criteria::Field;
use crate::ticket::is_name;
use crate::ticket::text::{as_output, fitting};

/// What holds the value of a field that is an object, the first that is there.
const VALUES: [&str; 5] = ["name", "value", "displayName", "key", "id"];

/// Parts of `timetracking` and the names that people see.
const TIMES: [(&str, &str); 3] = [
    ("originalEstimate", "Original Estimate"),
    ("remainingEstimate", "Remaining Estimate"),
    ("timeSpent", "Time Spent"),
];

/// An issue.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Issue {
    /// `SHOP-7`.
    pub(super) key: String,
    /// Jira's number for it.
    pub(super) id: String,
    /// Where people see it.
    pub(super) url: String,
    /// Fields by the names that people see.
    named: Map<String, Value>,
    /// The same by the ids of the fields.
    by_id: Map<String, Value>,
}

impl Issue {
    /// Reads Jira's answer, which names its fields (`expand=names`).
    pub(super) fn read(answer: &Value, link: impl Fn(&str) -> String) -> Option<Self> {
        let key = answer["key"].as_str().filter(|key| is_name(key))?;
        let key = key.to_owned();
        let mut issue = Self {
            id: answer["id"].as_str().unwrap_or_default().to_owned(),
            url: link(&key),
            key,
            ..Self::default()
        };
        for (id, value) in answer["fields"].as_object().into_iter().flatten() {
            let simple = simple(value);
            if id == "timetracking" {
                for (part, name) in TIMES {
                    issue.named.insert(
                        name.to_owned(),
                        value.get(part).cloned().unwrap_or_default(),
                    );
                }
            }
            let name = answer["names"][id].as_str().unwrap_or(id);
            if !issue.named.contains_key(name) {
                issue.named.insert(name.to_owned(), simple.clone());
            }
            issue.by_id.insert(id.clone(), simple);
        }
        let project = &answer["fields"]["project"];
        for (part, name) in [("key", "Project Key"), ("name", "Project Name")] {
            issue.named.insert(name.to_owned(), project[part].clone());
        }
        Some(issue)
    }

    /// An issue of which nothing but the key is known.
    pub(super) fn bare(key: &str, url: String) -> Self {
        Self {
            key: key.to_owned(),
            url,
            ..Self::default()
        }
    }

    /// The text of a field by its id.
    pub(super) fn text(&self, id: &str) -> Option<&str> {
        self.by_id.get(id)?.as_str()
    }

    /// A field for a condition: by the name that people see, or by its id.
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        match name.to_ascii_lowercase().as_str() {
            "key" => return Some(Field::One(vec![self.key.clone()])),
            "url" => return Some(Field::One(vec![self.url.clone()])),
            _ => {}
        }
        let found = self.named.get(name).or_else(|| self.by_id.get(name));
        found.map(Field::of_json)
    }

    /// What `<+issue…>` reads in criteria: every field, by name and by id.
    pub(super) fn for_criteria(&self) -> slipway_expr::Value {
        let mut all = self.by_id.clone();
        all.extend(self.named.clone());
        all.extend(self.head());
        slipway_expr::Value::from_json(&Value::Object(all))
    }

    /// Outputs of a step, and the names of fields that are too large for them.
    pub(super) fn outputs(&self) -> (Value, Vec<String>) {
        let (mut fields, left_out) = fitting(&self.named);
        fields.extend(self.head());
        (as_output(&json!({"issue": fields})), left_out)
    }

    fn head(&self) -> Map<String, Value> {
        let head = [("key", &self.key), ("id", &self.id), ("url", &self.url)];
        head.into_iter()
            .map(|(name, value)| (name.to_owned(), Value::from(value.as_str())))
            .collect()
    }
}

/// The value of a field without what surrounds it: of an option its text, of a person the name.
fn simple(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(simple).collect(),
        Value::Object(fields) => VALUES
            .iter()
            .find_map(|name| fields.get(*name).filter(|value| value.is_string()))
            .unwrap_or(value)
            .clone(),
        other => other.clone(),
    }
}
