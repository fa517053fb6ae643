//! Page tokens: the place to go on from, as opaque text.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::request::Members;
use crate::error::ApiError;

/// The token that goes on at `place`.
pub(super) fn token(place: &str) -> String {
    URL_SAFE_NO_PAD.encode(place)
}

/// The place in the request's `nextToken`, if it has one.
pub(super) fn place(members: &Members) -> Result<Option<String>, ApiError> {
    let Some(token) = members.text("nextToken")? else {
        return Ok(None);
    };
    let place = URL_SAFE_NO_PAD
        .decode(token)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    place.map(Some).ok_or_else(invalid)
}

/// As [`place`], for places that are numbers.
pub(super) fn number(members: &Members) -> Result<Option<u64>, ApiError> {
    place(members)?
        .map(|place| place.parse().map_err(|_| invalid()))
        .transpose()
}

fn invalid() -> ApiError {
    ApiError::new("InvalidToken", "Invalid Token: 'Invalid token'")
}
