//! Reading EC2's requests, and its errors for what is wrong with them.

use crate::error::ApiError;
use crate::fields::Fields;
use crate::page::{Page, cut_at};

pub(super) fn missing(name: &str) -> ApiError {
    ApiError::client(
        "MissingParameter",
        format!("The request must contain the parameter {name}"),
    )
}

pub(super) fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::client("InvalidParameterValue", message)
}

pub(super) fn required<'a>(request: Fields<'a>, name: &str) -> Result<&'a str, ApiError> {
    request.text(name)?.ok_or_else(|| missing(name))
}

/// Cuts the page that `MaxResults` and `NextToken` ask for; without a size there is one page.
pub(super) fn page<'a>(
    request: Fields<'_>,
    (least, most): (usize, usize),
    all: impl Iterator<Item = &'a str>,
) -> Result<Page, ApiError> {
    let size = match request.text("MaxResults")? {
        None => usize::MAX,
        Some(text) => text
            .parse()
            .ok()
            .filter(|size| (least..=most).contains(size))
            .ok_or_else(|| {
                invalid(format!(
                    "Value ( {text} ) for parameter maxResults is invalid. Expecting a value between {least} and {most}."
                ))
            })?,
    };
    cut_at(size, request.text("NextToken")?, false, all)
        .map_err(|_| invalid("Value for parameter NextToken is invalid."))
}
