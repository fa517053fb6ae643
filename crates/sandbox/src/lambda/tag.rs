//! Tags of functions.

use serde_json::{Value, json};

use super::Reply;
use super::error::{invalid, validation};
use super::name::Named;
use super::request::Request;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Tags of a function at most.
const MOST: usize = 50;

/// The tags of a request.
pub(super) fn read(fields: Fields<'_>) -> Result<Document, ApiError> {
    let tags = fields.object("Tags")?.cloned().unwrap_or_default();
    check(&tags)?;
    Ok(tags)
}

fn check(tags: &Document) -> Result<(), ApiError> {
    if tags.len() > MOST {
        return Err(invalid(format!(
            "The number of tags exceeds the limit of {MOST}."
        )));
    }
    for (name, value) in tags {
        let text = value
            .as_str()
            .ok_or_else(|| ApiError::serialization(format!("{name}: not a string")))?;
        if name.is_empty() || name.len() > 128 || text.len() > 256 {
            return Err(validation(
                "tags",
                name,
                "Map keys have at most 128 and values at most 256 characters",
            ));
        }
        if name.to_lowercase().starts_with("aws:") {
            return Err(invalid("Tags beginning with aws: are reserved."));
        }
    }
    Ok(())
}

fn of(account: &Account, caller: &Caller, request: &Request) -> Result<Named, ApiError> {
    let resource = request.name();
    let named = Named::parse(account, caller, resource)?;
    if !resource.starts_with("arn:") || named.qualifier.is_some() {
        return Err(invalid(
            "Tags on function aliases and versions are not supported. Please specify a function ARN.",
        ));
    }
    named.function(account)?;
    Ok(named)
}

pub(super) fn tag(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = of(account, caller, request)?;
    let given = read(request.fields())?;
    let mut tags = named.function(account)?.tags.clone();
    tags.extend(given);
    check(&tags)?;
    named.function_mut(account)?.tags = tags;
    Ok((204, Value::Null))
}

pub(super) fn untag(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = of(account, caller, request)?;
    let gone: Vec<&str> = request.queries("tagKeys").collect();
    let function = named.function_mut(account)?;
    function
        .tags
        .retain(|name, _| !gone.contains(&name.as_str()));
    Ok((204, Value::Null))
}

pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = of(account, caller, request)?;
    Ok((200, json!({"Tags": named.function(account)?.tags})))
}
