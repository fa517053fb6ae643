//! Tags of state machines and activities (API reference, `TagResource`).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::request::Members;
use crate::arn;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::journal::{Batch, key};

/// Most tags of one resource.
const MOST_TAGS: usize = 50;
/// Longest key and longest value, in characters.
const LONGEST_KEY: usize = 128;
const LONGEST_VALUE: usize = 256;

/// Tags by key.
pub(super) type Tags = BTreeMap<String, String>;

/// `tags` of a request.
///
/// # Errors
/// What the API refuses: keys that are empty, too long or given twice, and values that are too long.
pub(super) fn read(members: &Members) -> Result<Tags, ApiError> {
    let mut tags = Tags::new();
    let list = members.get("tags").and_then(Value::as_array);
    for tag in list.into_iter().flatten() {
        let text = |name: &str| tag.get(name).and_then(Value::as_str).unwrap_or_default();
        let (key, value) = (text("key"), text("value"));
        let length = key.chars().count();
        if length == 0 || length > LONGEST_KEY {
            return Err(ApiError::validation(format!(
                "1 validation error detected: Value '{key}' at 'tags.key' failed to satisfy constraint: Member must have length between 1 and {LONGEST_KEY}"
            )));
        }
        if value.chars().count() > LONGEST_VALUE {
            return Err(ApiError::validation(format!(
                "1 validation error detected: Value '{value}' at 'tags.value' failed to satisfy constraint: Member must have length less than or equal to {LONGEST_VALUE}"
            )));
        }
        if tags.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(ApiError::validation(format!(
                "Duplicate tag keys found: {key}"
            )));
        }
    }
    Ok(tags)
}

/// Puts the tags of a new resource into the write that makes it.
///
/// # Errors
/// When they are too many.
pub(super) fn put(batch: &mut Batch, arn: &str, tags: &Tags) -> Result<(), ApiError> {
    if tags.len() > MOST_TAGS {
        return Err(ApiError::new(
            "TooManyTags",
            format!("Too Many Tags: '{arn}' would have more than {MOST_TAGS}"),
        ));
    }
    match tags.is_empty() {
        true => batch.delete(key::tags(arn)),
        false => batch.put(key::tags(arn), tags)?,
    }
    Ok(())
}

/// `TagResource`.
pub(super) async fn tag(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let given = read(members)?;
    change(engine, members, |tags| tags.extend(given)).await
}

/// `UntagResource`: no error for tags that are not there.
pub(super) async fn untag(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let keys = members.get("tagKeys").and_then(Value::as_array);
    let keys: Vec<&str> = keys
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    change(engine, members, |tags| {
        tags.retain(|key, _| !keys.contains(&key.as_str()));
    })
    .await
}

/// `ListTagsForResource`, by key.
pub(super) fn list(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let arn = members.required("resourceArn")?;
    check(engine, arn)?;
    let tags = engine.0.journal.tags(arn)?.unwrap_or_default();
    let shown = tags
        .iter()
        .map(|(key, value)| json!({"key": key, "value": value}));
    Ok(json!({"tags": shown.collect::<Vec<_>>()}))
}

async fn change(
    engine: &Engine,
    members: &Members,
    change: impl FnOnce(&mut Tags),
) -> Result<Value, ApiError> {
    let arn = members.required("resourceArn")?;
    let _turn = engine.0.changes.lock().await;
    check(engine, arn)?;
    let mut tags = engine.0.journal.tags(arn)?.unwrap_or_default();
    change(&mut tags);
    let mut batch = Batch::default();
    put(&mut batch, arn, &tags)?;
    engine.0.journal.commit(batch).await?;
    Ok(json!({}))
}

/// Whether there is a state machine or an activity with this ARN.
fn check(engine: &Engine, arn: &str) -> Result<(), ApiError> {
    let journal = &engine.0.journal;
    let is_there = match arn::check(arn, "activity") {
        Ok(()) => journal.activity(arn)?.is_some(),
        Err(_) => {
            arn::check(arn, "stateMachine")?;
            journal.machine(arn)?.is_some()
        }
    };
    match is_there {
        true => Ok(()),
        false => Err(ApiError::new(
            "ResourceNotFound",
            format!("Resource not found: '{arn}'"),
        )),
    }
}
