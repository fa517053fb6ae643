//! Reading Auto Scaling's requests: every leaf is a text, and what is wrong is a `ValidationError`.

use std::time::Duration;

use crate::account::Account;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::page::{Page, cut_at};

pub(super) fn validation(message: impl Into<String>) -> ApiError {
    ApiError::client("ValidationError", message)
}

pub(super) fn required<'a>(request: Fields<'a>, name: &str) -> Result<&'a str, ApiError> {
    request.text(name)?.ok_or_else(|| {
        let member = name[..1].to_ascii_lowercase() + &name[1..];
        validation(format!(
            "1 validation error detected: Value null at '{member}' failed to satisfy constraint: Member must not \
             be null"
        ))
    })
}

pub(super) fn integer(request: Fields<'_>, name: &str) -> Result<Option<i64>, ApiError> {
    let parse = |text: &str| {
        text.parse().map_err(|_| {
            ApiError::client(
                "MalformedInput",
                format!("{name}: '{text}' is not an integer"),
            )
        })
    };
    request.text(name)?.map(parse).transpose()
}

/// An integer between bounds.
pub(super) fn bounded(
    request: Fields<'_>,
    name: &str,
    least: i64,
    most: i64,
) -> Result<Option<i64>, ApiError> {
    let found = integer(request, name)?;
    match found {
        Some(number) if !(least..=most).contains(&number) => Err(validation(format!(
            "1 validation error detected: Value '{number}' at '{name}' failed to satisfy constraint: Member must \
             have value between {least} and {most}"
        ))),
        _ => Ok(found),
    }
}

pub(super) fn flag(request: Fields<'_>, name: &str) -> Result<bool, ApiError> {
    match request.text(name)? {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(ApiError::client(
            "MalformedInput",
            format!("{name}: '{other}' is neither true nor false"),
        )),
    }
}

/// Cuts the page that `MaxRecords` and `NextToken` ask for; `all` must be ordered.
pub(super) fn page<'a>(
    request: Fields<'_>,
    (default, most): (i64, i64),
    all: impl Iterator<Item = &'a str>,
) -> Result<Page, ApiError> {
    let size = bounded(request, "MaxRecords", 1, most)?.unwrap_or(default);
    let size = usize::try_from(size).unwrap_or(1);
    cut_at(size, request.text("NextToken")?, false, all)
        .map_err(|_| ApiError::client("InvalidNextToken", "The NextToken value is not valid."))
}

/// A time that a request gives in seconds, as this account's pace lets it pass.
pub(super) fn seconds(account: &Account, number: i64) -> Duration {
    let told = Duration::from_secs(u64::try_from(number).unwrap_or(0));
    told.min(account.pace.drain_max)
}

/// Those of a fixed set that a list of a request names; all where it names none. `refusal` says that one is not in the set.
pub(super) fn named_of<'a>(
    request: Fields<'a>,
    list: &str,
    all: &[&'static str],
    refusal: impl Fn(&str) -> String,
) -> Result<Vec<&'a str>, ApiError> {
    let names = request.texts(list)?;
    match names.iter().find(|name| !all.contains(name)) {
        Some(unknown) => Err(validation(refusal(unknown))),
        None if names.is_empty() => Ok(all.to_vec()),
        None => Ok(names),
    }
}
