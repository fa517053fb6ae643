//! Request bodies: limited before they are read, parsed as what they are whatever their header says.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use slipway_engine::error_name::ErrorName;

use crate::error::{ApiError, ApiResult};
use crate::git;

/// Largest body of a request about one entity: 3 MiB of YAML and its envelope.
const ONE: usize = 4 << 20;

/// Largest body of an apply request, which brings whole folders.
const MANY: usize = 16 << 20;

/// Bodies that a browser sends across sites without asking first. No client of this API sends them.
const REFUSED: &[&str] = &["application/x-www-form-urlencoded", "multipart/form-data"];

/// The body of a request about one entity.
pub(crate) struct Body(Bytes);

/// The body of a request that brings many entities.
pub(crate) struct LargeBody(Body);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        read(request, ONE).await
    }
}

impl<S: Send + Sync> FromRequest<S> for LargeBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        read(request, MANY).await.map(Self)
    }
}

impl LargeBody {
    /// The body, whole.
    pub(crate) fn into_inner(self) -> Body {
        self.0
    }
}

async fn read(request: Request, limit: usize) -> ApiResult<Body> {
    check_type(request.headers())?;
    within(request, limit).await.map(Body)
}

/// The bytes of a request about one entity, of whatever type.
pub(crate) async fn bytes(request: Request) -> ApiResult<Bytes> {
    within(request, ONE).await
}

async fn within(request: Request, limit: usize) -> ApiResult<Bytes> {
    let too_large = || {
        ApiError::new(
            ErrorName::TooLarge,
            format!(
                "The body is larger than {} MiB: send less at once",
                limit >> 20
            ),
        )
    };
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    match axum::body::to_bytes(request.into_body(), limit).await {
        Ok(bytes) => Ok(bytes),
        Err(error) => {
            let cause = std::error::Error::source(&error);
            match cause.is_some_and(|c| c.is::<http_body_util::LengthLimitError>()) {
                true => Err(too_large()),
                false => Err(ApiError::invalid("The body ended before it was complete")),
            }
        }
    }
}

fn check_type(headers: &HeaderMap) -> ApiResult<()> {
    let given = headers
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    let given = given
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if REFUSED.contains(&given.as_str()) {
        let message = format!("Content-Type {given} is not taken: send JSON or YAML");
        return Err(ApiError::invalid(message).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    Ok(())
}

impl Body {
    /// The body as text, without a byte order mark.
    pub(crate) fn text(&self) -> ApiResult<&str> {
        let text = std::str::from_utf8(&self.0).map_err(|error| {
            ApiError::invalid(format!(
                "The body is not UTF-8 from byte {} on",
                error.valid_up_to()
            ))
        })?;
        Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    /// The body as a JSON object; an empty body is an empty object. It is not about Git.
    pub(crate) fn object(&self) -> ApiResult<Value> {
        let value = self.kept()?;
        git::check_body(&value)?;
        Ok(value)
    }

    /// The body of a request about something that may be kept in Git ([`git::Wanted::in_body`]).
    pub(crate) fn kept(&self) -> ApiResult<Value> {
        if self.0.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        let value: Value = serde_json::from_str(self.text()?)
            .map_err(|error| ApiError::invalid(format!("The body is not JSON: {error}")))?;
        if !value.is_object() {
            return Err(ApiError::invalid("The body must be a JSON object"));
        }
        Ok(value)
    }
}

/// A moment of a body in epoch milliseconds, as a number or a text; none where nothing is given.
pub(crate) fn moment(value: &Value, name: &str) -> ApiResult<Option<i64>> {
    if value.is_null() {
        return Ok(None);
    }
    let found = value
        .as_i64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    let wrong = || ApiError::field(name, "must be epoch milliseconds");
    found.map(Some).ok_or_else(wrong)
}
