//! Tags of load balancers, listeners, rules and target groups.

use serde_json::{Value, json};

use super::request::{missing, validation};
use super::{listener, load_balancer, rule, target_group};
use crate::account::Account;
use crate::arn::Arn;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Most tags of one resource (ELB quotas).
const MOST: usize = 50;
/// Most resources of one `DescribeTags` (ELBv2 API reference).
const MOST_RESOURCES: usize = 20;

/// Reads `Tags` of a request: key → value.
pub(super) fn read(request: Fields<'_>) -> Result<Document, ApiError> {
    let mut tags = Document::new();
    for item in request.objects("Tags")? {
        let item = Fields(item);
        let key = item.text("Key")?.ok_or_else(|| missing("Key"))?;
        if key.starts_with("aws:") {
            return Err(validation(format!(
                "The tag key '{key}' begins with the reserved prefix 'aws:'"
            )));
        }
        let value = item.text("Value")?.unwrap_or_default();
        if tags.insert(key.to_owned(), Value::from(value)).is_some() {
            return Err(ApiError::client(
                "DuplicateTagKeys",
                format!("The tag key '{key}' is specified more than once"),
            ));
        }
    }
    check_number(&tags)?;
    Ok(tags)
}

fn check_number(tags: &Document) -> Result<(), ApiError> {
    if tags.len() > MOST {
        return Err(ApiError::client(
            "TooManyTags",
            format!("A resource can have at most {MOST} tags"),
        ));
    }
    Ok(())
}

pub(super) fn add(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let new = read(request)?;
    let arns = arns(request)?;
    for arn in &arns {
        let mut merged = tags_of(account, arn)?.clone();
        merged.extend(new.clone());
        check_number(&merged)?;
    }
    for arn in arns {
        tags_of(account, arn)?.extend(new.clone());
    }
    Ok(json!({}))
}

pub(super) fn remove(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let keys = request.texts("TagKeys")?;
    for arn in arns(request)? {
        tags_of(account, arn)?.retain(|key, _| !keys.contains(&key.as_str()));
    }
    Ok(json!({}))
}

pub(super) fn describe(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arns = arns(request)?;
    if arns.len() > MOST_RESOURCES {
        return Err(validation(format!(
            "Tags of at most {MOST_RESOURCES} resources can be described at a time"
        )));
    }
    let mut described = Vec::new();
    for arn in arns {
        let tags = tags_of(account, arn)?.iter();
        let tags: Vec<Value> = tags
            .map(|(key, value)| json!({"Key": key, "Value": value}))
            .collect();
        described.push(json!({"ResourceArn": arn, "Tags": tags}));
    }
    Ok(json!({"TagDescriptions": described}))
}

fn arns(request: Fields<'_>) -> Result<Vec<&str>, ApiError> {
    let arns = request.texts("ResourceArns")?;
    if arns.is_empty() {
        return Err(missing("ResourceArns"));
    }
    Ok(arns)
}

fn tags_of<'a>(account: &'a mut Account, arn: &str) -> Result<&'a mut Document, ApiError> {
    let parsed = Arn::parse(arn).filter(|parsed| parsed.service == super::SIGNING_NAME);
    let kind = parsed.and_then(|parsed| parsed.resource.split('/').next());
    let tables = &mut account.elb;
    let (found, error) = match kind {
        Some("loadbalancer") => (
            tables.load_balancers.get_mut(arn).map(|row| &mut row.tags),
            load_balancer::not_found(arn),
        ),
        Some("listener") => (
            tables.listeners.get_mut(arn).map(|row| &mut row.tags),
            listener::not_found(),
        ),
        Some("listener-rule") => (
            tables.rules.get_mut(arn).map(|row| &mut row.tags),
            rule::not_found(),
        ),
        Some("targetgroup") => (
            tables.target_groups.get_mut(arn).map(|row| &mut row.tags),
            target_group::not_found(),
        ),
        _ => return Err(validation(format!("'{arn}' is not a valid resource ARN"))),
    };
    found.ok_or(error)
}
