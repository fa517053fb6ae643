//! Members of IAM's requests, and their bounds.

use crate::error::ApiError;
use crate::fields::Fields;

pub(super) fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::client("ValidationError", message)
}

/// A member that must be there and fit.
pub(super) fn required<'a>(
    request: Fields<'a>,
    name: &str,
    longest: usize,
) -> Result<&'a str, ApiError> {
    let member = name[..1].to_ascii_lowercase() + &name[1..];
    let text = request.text(name)?.ok_or_else(|| {
        invalid(format!(
            "1 validation error detected: Value null at '{member}' failed to satisfy constraint: Member must not be null"
        ))
    })?;
    if text.chars().count() > longest {
        return Err(invalid(format!(
            "1 validation error detected: Value at '{member}' failed to satisfy constraint: Member must have length \
             less than or equal to {longest}"
        )));
    }
    Ok(text)
}

/// A name of a role or policy.
pub(super) fn name<'a>(
    request: Fields<'a>,
    member: &str,
    longest: usize,
) -> Result<&'a str, ApiError> {
    let text = required(request, member, longest)?;
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "+=,.@-_".contains(letter);
    match !text.is_empty() && text.chars().all(fits) {
        true => Ok(text),
        false => Err(invalid(format!(
            "The specified value for {} is invalid. It must contain only alphanumeric characters and/or the following: \
             +=,.@_-",
            member[..1].to_ascii_lowercase() + &member[1..]
        ))),
    }
}
