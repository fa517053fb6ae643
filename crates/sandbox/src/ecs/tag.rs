//! Tags of clusters, services, tasks and task definitions.

use serde_json::{Value, json};

use crate::account::Account;
use crate::arn::Arn;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Most tags of one resource (ECS service quotas).
const MOST: usize = 50;

/// Reads `tags` of a request: key → value, in the order given.
pub(crate) fn read(request: Fields<'_>) -> Result<Document, ApiError> {
    let mut tags = Document::new();
    for item in request.objects("tags")? {
        let item = Fields(item);
        let key = item.text("key")?.filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| ApiError::invalid_parameter("Tag key cannot be empty."))?;
        let value = item.text("value")?.unwrap_or_default();
        if tags.insert(key.to_owned(), Value::from(value)).is_some() {
            return Err(ApiError::invalid_parameter(
                "Duplicate tag keys found. Please note that Tag keys are case insensitive.",
            ));
        }
    }
    if tags.len() > MOST {
        return Err(ApiError::invalid_parameter(format!(
            "Too many tags: a resource can have at most {MOST}."
        )));
    }
    Ok(tags)
}

/// Tags as responses show them.
pub(crate) fn view(tags: &Document) -> Value {
    tags.iter()
        .map(|(key, value)| json!({"key": key, "value": value}))
        .collect()
}

pub(crate) fn tag(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let new = read(request)?;
    let tags = tags_of(account, caller, request.required_text("resourceArn")?)?;
    let mut merged = tags.clone();
    merged.extend(new);
    if merged.len() > MOST {
        return Err(ApiError::invalid_parameter(format!(
            "Too many tags: a resource can have at most {MOST}."
        )));
    }
    *tags = merged;
    Ok(json!({}))
}

pub(crate) fn untag(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let keys = request.texts("tagKeys")?;
    let tags = tags_of(account, caller, request.required_text("resourceArn")?)?;
    tags.retain(|key, _| !keys.contains(&key.as_str()));
    Ok(json!({}))
}

pub(crate) fn list(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let tags = tags_of(account, caller, request.required_text("resourceArn")?)?;
    Ok(json!({"tags": view(tags)}))
}

fn tags_of<'a>(
    account: &'a mut Account,
    caller: &Caller,
    text: &str,
) -> Result<&'a mut Document, ApiError> {
    let arn = Arn::parse(text)
        .filter(|arn| arn.service == "ecs" && arn.region == caller.region)
        .ok_or_else(|| ApiError::invalid_parameter("Invalid identifier: Unexpected ARN."))?;
    let key = |name: &str| format!("{}/{name}", arn.region);
    if let Some(name) = arn.named("cluster") {
        let found = account.clusters.get_mut(&key(name));
        return found
            .map(|row| &mut row.tags)
            .ok_or_else(|| ApiError::client("ClusterNotFoundException", "Cluster not found."));
    }
    if let Some(name) = arn.named("service") {
        let found = account.services.get_mut(&key(name));
        return found
            .map(|row| &mut row.tags)
            .ok_or_else(|| ApiError::client("ServiceNotFoundException", "Service not found."));
    }
    if let Some(name) = arn.named("task") {
        let found = account.tasks.get_mut(&key(name));
        return found
            .map(|row| &mut row.tags)
            .ok_or_else(|| ApiError::invalid_parameter("The specified task was not found."));
    }
    let key = arn
        .named("task-definition")
        .and_then(|name| super::task_definition::key(arn.region, name));
    key.and_then(|key| account.task_definitions.get_mut(&key))
        .map(|row| &mut row.tags)
        .ok_or_else(|| ApiError::invalid_parameter("The specified task definition was not found."))
}
