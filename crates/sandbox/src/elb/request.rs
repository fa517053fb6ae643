//! Reading a Query document: every leaf is a text, and what is wrong is a `ValidationError`.

use serde_json::{Value, json};

use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::page::{Page, cut_at};

/// Largest page of a list operation, which is the default too (ELBv2 API reference, `PageSize`).
const PAGE: i64 = 400;

pub(super) fn validation(message: impl Into<String>) -> ApiError {
    ApiError::client("ValidationError", message)
}

pub(super) fn required<'a>(request: Fields<'a>, name: &str) -> Result<&'a str, ApiError> {
    request.text(name)?.ok_or_else(|| missing(name))
}

/// The error for a member that must be there and is not.
pub(super) fn missing(name: &str) -> ApiError {
    let member = name[..1].to_ascii_lowercase() + &name[1..];
    validation(format!(
        "1 validation error detected: Value null at '{member}' failed to satisfy constraint: \
         Member must not be null"
    ))
}

pub(super) fn integer(request: Fields<'_>, name: &str) -> Result<Option<i64>, ApiError> {
    let Some(text) = request.text(name)? else {
        return Ok(None);
    };
    let number = text.parse().map_err(|_| {
        ApiError::client(
            "MalformedInput",
            format!("{name}: '{text}' is not an integer"),
        )
    })?;
    Ok(Some(number))
}

/// An integer between bounds, with AWS's sentence for one that is not.
pub(super) fn bounded(
    request: Fields<'_>,
    name: &str,
    least: i64,
    most: i64,
) -> Result<Option<i64>, ApiError> {
    let found = integer(request, name)?;
    match found {
        Some(number) if !(least..=most).contains(&number) => Err(validation(format!(
            "{name} '{number}' must be between {least} and {most}"
        ))),
        _ => Ok(found),
    }
}

pub(super) fn flag(request: Fields<'_>, name: &str) -> Result<Option<bool>, ApiError> {
    match request.text(name)? {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(other) => Err(ApiError::client(
            "MalformedInput",
            format!("{name}: '{other}' is neither true nor false"),
        )),
    }
}

/// Cuts the page that `Marker` and `PageSize` ask for.
pub(super) fn page<'a>(
    request: Fields<'_>,
    all: impl Iterator<Item = &'a str>,
) -> Result<Page, ApiError> {
    let size = bounded(request, "PageSize", 1, PAGE)?.unwrap_or(PAGE);
    let size = usize::try_from(size).unwrap_or(1);
    let invalid = |_| validation("The specified marker is not valid.");
    cut_at(size, request.text("Marker")?, false, all).map_err(invalid)
}

/// The answer to a list operation: its items under `name`, and where the next page begins.
pub(super) fn listed(name: &str, items: Vec<Value>, page: Page) -> Value {
    json!({name: items, "NextMarker": page.next_token})
}

/// Checks the name of a load balancer or target group (ELBv2 API reference, `Name`).
pub(super) fn check_name(what: &str, name: &str) -> Result<(), ApiError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.len() > 32 {
        return Err(validation(format!(
            "{what} name '{name}' cannot be longer than '32' characters"
        )));
    }
    if !name.bytes().all(fits) {
        return Err(validation(format!(
            "{what} name '{name}' can only contain characters that are alphanumeric characters and hyphens(-)"
        )));
    }
    if name.starts_with('-') || name.ends_with('-') {
        return Err(validation(format!(
            "{what} name '{name}' cannot begin or end with a hyphen(-)"
        )));
    }
    Ok(())
}

/// `arn:aws:elasticloadbalancing:<region>:<account>:`
pub(super) fn arn_prefix(account: &Account, caller: &Caller) -> String {
    format!(
        "arn:aws:elasticloadbalancing:{}:{}:",
        caller.region, account.id
    )
}
