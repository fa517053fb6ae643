//! Identifiers as requests give them: nothing else ever becomes part of a key.

use slipway_model::id::{EntityId, RunId};

use crate::error::{ApiError, ApiResult};

/// Longest identifier (API.md 1.9).
const LONGEST: usize = 128;

/// Checks `^[a-zA-Z_][0-9a-zA-Z_$]{0,127}$`.
pub(crate) fn is_valid(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
        && text.len() <= LONGEST
}

/// `text` when it is an identifier; 400 naming the field when not.
pub(crate) fn check<'a>(field: &str, text: &'a str) -> ApiResult<&'a str> {
    if is_valid(text) {
        return Ok(text);
    }
    Err(ApiError::field(
        field,
        "must be 1 to 128 letters, digits, `_` or `$`, and begin with a letter or `_`",
    ))
}

/// An identifier in a path.
pub(crate) fn entity(text: &str) -> ApiResult<EntityId> {
    check("identifier", text).map(EntityId::new)
}

/// A reference to an entity of the same or a wider scope: `id`, `org.id` or `account.id`.
pub(crate) fn reference(field: &str, text: &str) -> ApiResult<EntityId> {
    let bare = text
        .strip_prefix("account.")
        .or_else(|| text.strip_prefix("org."))
        .unwrap_or(text);
    check(field, bare)?;
    Ok(EntityId::new(text))
}

/// The id of a run in a path; one that cannot be an id names no run.
pub(crate) fn run(text: &str) -> ApiResult<RunId> {
    let well_formed = !text.is_empty()
        && text.len() <= 80
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if well_formed {
        return Ok(RunId::new(text));
    }
    Err(ApiError::not_found(
        "Plan Execution Summary does not exist for the given planExecutionId",
    ))
}
