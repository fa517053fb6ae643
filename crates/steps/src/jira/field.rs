//! Fields of Jira by the names that people see, and texts in the form that each wants. Docs:
//! create-jira-issues-in-cd-stages, "Add Issue fields": `Option`, `Array`, `Any`, `Number`, `Date`, `String`, users
//! and the parent of an issue; no attachments, links or cascading lists.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::Given;
use super::client::Jira;
use crate::context::StepContext;
use crate::ticket::Stop;

/// Most names of fields that a message lists.
const MOST_NAMES: usize = 30;

/// What Jira says of a field that can be set.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Meta {
    pub(super) name: String,
    schema: Value,
    allowed: Vec<Value>,
}

impl Meta {
    fn of(field: &Value) -> Self {
        Self {
            name: field["name"].as_str().unwrap_or_default().to_owned(),
            schema: field["schema"].clone(),
            allowed: field["allowedValues"]
                .as_array()
                .cloned()
                .unwrap_or_default(),
        }
    }

    pub(super) fn of_map(fields: &Value) -> BTreeMap<String, Self> {
        let fields = fields.as_object().into_iter().flatten();
        fields
            .map(|(id, field)| (id.clone(), Self::of(field)))
            .collect()
    }

    /// A list as the newer addresses answer with: the id is `fieldId` or `key`.
    pub(super) fn of_list(fields: &[Value]) -> BTreeMap<String, Self> {
        let id = |field: &Value| {
            field["fieldId"]
                .as_str()
                .or(field["key"].as_str())
                .map(str::to_owned)
        };
        fields
            .iter()
            .filter_map(|field| Some((id(field)?, Self::of(field))))
            .collect()
    }
}

/// `fields` of a request for what a step says, comments left out.
pub(super) async fn encode(
    given: &[Given],
    known: &BTreeMap<String, Meta>,
    jira: &Jira,
    cx: &mut StepContext<'_>,
) -> Result<Map<String, Value>, Stop> {
    let mut fields = Map::new();
    for one in given.iter().filter(|one| !one.is_comment()) {
        let (id, meta) = find(one.name(), known)?;
        let text = one.text();
        let value = match time_part(one.name(), id) {
            Some(part) => {
                let mut times = fields.get(id).cloned().unwrap_or_else(|| json!({}));
                times[part] = Value::from(text);
                times
            }
            None => match form(meta) {
                Form::Person => person(&text, jira, cx).await?,
                Form::People => {
                    let mut people = Vec::new();
                    for who in list(&text) {
                        people.push(person(&who, jira, cx).await?);
                    }
                    Value::Array(people)
                }
                Form::Plain => plain(meta, &text)?,
            },
        };
        fields.insert(id.to_owned(), value);
    }
    Ok(fields)
}

/// The field of a name: as people see it, in any case, or its id.
pub(super) fn find<'m>(
    name: &str,
    known: &'m BTreeMap<String, Meta>,
) -> Result<(&'m str, &'m Meta), Stop> {
    let exact = only(name, known, |meta| meta.name == name)?;
    let any_case = match exact {
        Some(_) => None,
        None => only(name, known, |meta| meta.name.eq_ignore_ascii_case(name))?,
    };
    let time = || {
        let is_time = ["Original Estimate", "Remaining Estimate"].contains(&name);
        known.get_key_value("timetracking").filter(|_| is_time)
    };
    let found = exact
        .or(any_case)
        .or_else(|| known.get_key_value(name))
        .or_else(time);
    found.map(|(id, meta)| (id.as_str(), meta)).ok_or_else(|| {
        let names: Vec<&str> = known
            .values()
            .map(|meta| meta.name.as_str())
            .take(MOST_NAMES)
            .collect();
        Stop::over(format!(
            "Jira has no field `{name}` that can be set here. It has: {}.",
            names.join(", ")
        ))
    })
}

/// The one field that fits. Jira lets several have one name.
fn only<'m>(
    name: &str,
    known: &'m BTreeMap<String, Meta>,
    fits: impl Fn(&Meta) -> bool,
) -> Result<Option<(&'m String, &'m Meta)>, Stop> {
    let fitting: Vec<_> = known.iter().filter(|(_, meta)| fits(meta)).collect();
    if let [_, _, ..] = fitting.as_slice() {
        let ids: Vec<&str> = fitting.iter().map(|(id, _)| id.as_str()).collect();
        return Err(Stop::over(format!(
            "Jira has several fields `{name}` here: {}. Name one by its id.",
            ids.join(", ")
        )));
    }
    Ok(fitting.first().copied())
}

/// The part of the field for times that a name means.
fn time_part(name: &str, id: &str) -> Option<&'static str> {
    match name {
        "Original Estimate" if id == "timetracking" => Some("originalEstimate"),
        "Remaining Estimate" if id == "timetracking" => Some("remainingEstimate"),
        _ => None,
    }
}

enum Form {
    Plain,
    Person,
    People,
}

fn form(meta: &Meta) -> Form {
    match (meta.schema["type"].as_str(), meta.schema["items"].as_str()) {
        (Some("user"), _) => Form::Person,
        (Some("array"), Some("user")) => Form::People,
        _ => Form::Plain,
    }
}

async fn person(who: &str, jira: &Jira, cx: &mut StepContext<'_>) -> Result<Value, Stop> {
    match who.trim() {
        "" => Ok(Value::Null),
        who => jira.person(cx, who).await,
    }
}

fn list(text: &str) -> Vec<String> {
    let items = text.split(',').map(str::trim);
    items
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The form of a value that needs no question to Jira.
pub(super) fn plain(meta: &Meta, text: &str) -> Result<Value, Stop> {
    let kind = meta.schema["type"].as_str().unwrap_or("string");
    if kind != "array" {
        return one(meta, kind, text.trim(), text);
    }
    let items = meta.schema["items"].as_str().unwrap_or("string");
    let sprint = meta.schema["custom"]
        .as_str()
        .is_some_and(|custom| custom.ends_with("gh-sprint"));
    if sprint {
        // A list when it is read, and a number when it is set.
        return one(meta, "number", text.trim(), text);
    }
    let values = list(text)
        .into_iter()
        .map(|item| one(meta, items, &item, &item));
    values.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

fn one(meta: &Meta, kind: &str, text: &str, untrimmed: &str) -> Result<Value, Stop> {
    let unfit = |wanted: &str| {
        Stop::over(format!(
            "The field `{}` of Jira wants {wanted}; `{text}` is none.",
            meta.name
        ))
    };
    match kind {
        "string" | "any" => Ok(untrimmed.into()),
        _ if text.is_empty() => Ok(Value::Null),
        "number" => number(text).ok_or_else(|| unfit("a number")),
        "date" => date(text).ok_or_else(|| unfit("a day such as 2026-01-31")),
        "datetime" => datetime(text).ok_or_else(|| unfit("a time such as 2026-01-31T18:30:00Z")),
        "issuelink" => Ok(json!({"key": text})),
        "option" => Ok(allowed(meta, text).unwrap_or_else(|| json!({"value": text}))),
        "project" => Ok(allowed(meta, text).unwrap_or_else(|| json!({"key": text}))),
        "priority" | "resolution" | "version" | "component" | "securitylevel" | "issuetype"
        | "group" => Ok(allowed(meta, text).unwrap_or_else(|| json!({"name": text}))),
        "status" => Err(Stop::over(
            "The status of an issue of Jira is no field: name it in transitionTo of a JiraUpdate.",
        )),
        other => Err(Stop::over(format!(
            "The field `{}` of Jira is of type {other}, which the steps cannot set; use an Http step for it.",
            meta.name
        ))),
    }
}

/// The id of the value that Jira allows under this name.
fn allowed(meta: &Meta, text: &str) -> Option<Value> {
    let names = ["value", "name", "key", "id"];
    let is = |one: &&Value| names.iter().any(|name| one[*name].as_str() == Some(text));
    let id = meta.allowed.iter().find(is)?["id"].as_str()?;
    Some(json!({"id": id}))
}

fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    let number: f64 = text.parse().ok()?;
    serde_json::Number::from_f64(number).map(Value::Number)
}

/// A day; of a time, the day in UTC.
fn date(text: &str) -> Option<Value> {
    if let Ok(day) = text.parse::<jiff::civil::Date>() {
        return Some(day.to_string().into());
    }
    let time: Timestamp = text.parse().ok()?;
    Some(time.to_zoned(TimeZone::UTC).date().to_string().into())
}

/// A time as Jira writes it: with milliseconds, and an offset without a colon.
fn datetime(text: &str) -> Option<Value> {
    if let Ok(time) = text.parse::<Timestamp>() {
        let zoned = time.to_zoned(TimeZone::UTC);
        return Some(
            zoned
                .strftime("%Y-%m-%dT%H:%M:%S.000+0000")
                .to_string()
                .into(),
        );
    }
    // As it is written in Jira itself.
    let jira = jiff::fmt::strtime::parse("%Y-%m-%dT%H:%M:%S%.f%z", text).ok()?;
    jira.to_timestamp().ok()?;
    Some(text.into())
}
