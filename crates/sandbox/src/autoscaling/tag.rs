//! Tags of groups.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::group::{Group, Tag, key};
use super::request::{flag, page, required, validation};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

/// Most tags of a group (Auto Scaling quotas).
const MOST: usize = 50;

/// Tags of a request that makes the group `name`.
pub(super) fn of_group(request: Fields<'_>, name: &str) -> Result<BTreeMap<String, Tag>, ApiError> {
    let mut tags = BTreeMap::new();
    for item in request.objects("Tags")? {
        let item = Fields(item);
        if item.text("ResourceId")?.is_some_and(|id| id != name) {
            return Err(validation(
                "The resource id of a tag must be the name of the group.",
            ));
        }
        let (key, tag) = read(item)?;
        tags.insert(key, tag);
    }
    check(&tags)?;
    Ok(tags)
}

fn read(item: Fields<'_>) -> Result<(String, Tag), ApiError> {
    let key = required(item, "Key")?;
    if key.starts_with("aws:") || key.chars().count() > 128 {
        return Err(validation(format!(
            "Tag key '{key}' begins with aws: or has more than 128 characters."
        )));
    }
    let tag = Tag {
        value: item.text("Value")?.unwrap_or_default().to_owned(),
        propagated: flag(item, "PropagateAtLaunch")?,
    };
    Ok((key.to_owned(), tag))
}

fn check(tags: &BTreeMap<String, Tag>) -> Result<(), ApiError> {
    if tags.len() > MOST {
        return Err(ApiError::client(
            "LimitExceeded",
            format!("A group can have at most {MOST} tags"),
        ));
    }
    Ok(())
}

pub(super) fn view(group: &Group) -> Vec<Value> {
    let tags = group.tags.iter();
    let tags = tags.map(|(key, tag)| {
        json!({
            "ResourceId": group.name,
            "ResourceType": "auto-scaling-group",
            "Key": key,
            "Value": tag.value,
            "PropagateAtLaunch": tag.propagated,
        })
    });
    tags.collect()
}

fn group_of<'a>(
    account: &'a mut Account,
    caller: &Caller,
    item: Fields<'_>,
) -> Result<&'a mut Group, ApiError> {
    let name = required(item, "ResourceId")?;
    let key = key(&caller.region, name);
    account.autoscaling.groups.get_mut(&key).ok_or_else(|| {
        validation(format!(
            "AutoScalingGroup name not found - no such group: {name}"
        ))
    })
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    for item in request.objects("Tags")? {
        let item = Fields(item);
        let (key, tag) = read(item)?;
        let group = group_of(account, caller, item)?;
        let mut tags = group.tags.clone();
        tags.insert(key, tag);
        check(&tags)?;
        group.tags = tags;
    }
    Ok(json!({}))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    for item in request.objects("Tags")? {
        let item = Fields(item);
        let key = required(item, "Key")?;
        group_of(account, caller, item)?.tags.remove(key);
    }
    Ok(json!({}))
}

/// `DescribeTags` with the filters `auto-scaling-group`, `key`, `value`.
pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let mut wanted = Vec::new();
    for filter in request.objects("Filters")? {
        let filter = Fields(filter);
        let member = match required(filter, "Name")? {
            "auto-scaling-group" => "ResourceId",
            "key" => "Key",
            "value" => "Value",
            other => return Err(validation(format!("Invalid filter name: {other}"))),
        };
        wanted.push((member, filter.texts("Values")?));
    }
    let groups = account
        .autoscaling
        .groups
        .under(&format!("{}/", caller.region));
    let mut all: Vec<(String, Value)> = Vec::new();
    for (key, group) in groups {
        for tag in view(group) {
            let fits = wanted.iter().all(|(member, values)| {
                tag[*member]
                    .as_str()
                    .is_some_and(|value| values.contains(&value))
            });
            if fits {
                all.push((format!("{key}|{}", tag["Key"]), tag));
            }
        }
    }
    let page = page(request, (50, 100), all.iter().map(|(key, _)| key.as_str()))?;
    all.retain(|(key, _)| page.items.contains(key));
    let tags: Vec<Value> = all.into_iter().map(|(_, tag)| tag).collect();
    Ok(json!({"Tags": tags, "NextToken": page.next_token}))
}
