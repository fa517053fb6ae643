//! Function URLs.

use serde_json::{Value, json};

use super::Reply;
use super::error::{conflict, missing, not_found, validation};
use super::name::Named;
use super::request::Request;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, pick};

const SETTINGS: &[&str] = &["AuthType", "Cors", "InvokeMode"];

/// The function, and the alias that its URL is of: empty for none.
fn of(account: &Account, caller: &Caller, request: &Request) -> Result<(Named, String), ApiError> {
    let named = Named::of(account, caller, request)?;
    named.version(account)?;
    let qualifier = named.qualifier.clone().unwrap_or_default();
    if !qualifier.is_empty() && qualifier.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(validation(
            "qualifier",
            &qualifier,
            "Member must satisfy regular expression pattern: ((?!^\\d+$)^[0-9a-zA-Z-_]+$)",
        ));
    }
    Ok((named, qualifier))
}

fn none(named: &Named) -> ApiError {
    not_found(format!(
        "The resource you requested does not exist: {}",
        named.qualified()
    ))
}

fn check(settings: &Document) -> Result<(), ApiError> {
    match settings.get("AuthType").and_then(Value::as_str) {
        None | Some("NONE" | "AWS_IAM") => Ok(()),
        Some(other) => Err(validation(
            "authType",
            other,
            "Member must satisfy enum value set: [NONE, AWS_IAM]",
        )),
    }
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let (named, qualifier) = of(account, caller, request)?;
    let mut settings = pick(request.fields().0, SETTINGS);
    check(&settings)?;
    if !settings.contains_key("AuthType") {
        return Err(missing("authType"));
    }
    if named.function(account)?.urls.contains_key(&qualifier) {
        return Err(conflict(format!(
            "Failed to create function url config for [functionArn = {}]. Error message: FunctionUrlConfig exists for this Lambda function",
            named.qualified()
        )));
    }
    let id = account.draw_hex(32);
    let now = account.now.to_string();
    let url = format!("https://{id}.lambda-url.{}.on.aws/", caller.region);
    for (name, value) in [
        ("FunctionUrl", url),
        ("FunctionArn", named.qualified()),
        ("CreationTime", now.clone()),
        ("LastModifiedTime", now),
    ] {
        settings.insert(name.to_owned(), json!(value));
    }
    settings.entry("InvokeMode").or_insert(json!("BUFFERED"));
    named
        .function_mut(account)?
        .urls
        .insert(qualifier, settings.clone());
    Ok((201, Value::Object(settings)))
}

pub(super) fn update(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let (named, qualifier) = of(account, caller, request)?;
    let settings = pick(request.fields().0, SETTINGS);
    check(&settings)?;
    let now = account.now.to_string();
    let url = named
        .function_mut(account)?
        .urls
        .get_mut(&qualifier)
        .ok_or_else(|| none(&named))?;
    url.extend(settings);
    url.insert("LastModifiedTime".to_owned(), json!(now));
    Ok((200, Value::Object(url.clone())))
}

pub(super) fn get(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let (named, qualifier) = of(account, caller, request)?;
    let url = named
        .function(account)?
        .urls
        .get(&qualifier)
        .ok_or_else(|| none(&named))?;
    Ok((200, Value::Object(url.clone())))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let (named, qualifier) = of(account, caller, request)?;
    let gone = named.function_mut(account)?.urls.remove(&qualifier);
    gone.map(|_| (204, Value::Null)).ok_or_else(|| none(&named))
}
