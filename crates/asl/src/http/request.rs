//! Members of a request, read with AWS's words for what is missing or wrong.

use serde_json::{Map, Value};

use crate::error::ApiError;

/// The members of one request.
pub(super) struct Members(Map<String, Value>);

impl Members {
    pub(super) fn new(value: Value) -> Result<Self, ApiError> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(ApiError::new(
                "SerializationException",
                "the request must be a JSON object",
            )),
        }
    }

    /// A member that is there and not null.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ApiError::new(
                "SerializationException",
                format!("the member '{name}' must be a string"),
            )),
        }
    }

    pub(super) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.text(name)?.ok_or_else(|| {
            ApiError::validation(format!(
                "1 validation error detected: Value null at '{name}' failed to satisfy constraint: Member must not be null"
            ))
        })
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(default)
    }

    /// `maxResults`, where 0 and nothing mean `default`.
    pub(super) fn max_results(&self, default: usize) -> Result<usize, ApiError> {
        let given = match self.get("maxResults") {
            None => 0,
            Some(value) => value.as_u64().filter(|most| *most <= 1000).ok_or_else(|| {
                ApiError::validation(format!(
                    "1 validation error detected: Value '{value}' at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to 1000"
                ))
            })?,
        };
        Ok(match usize::try_from(given).unwrap_or(default) {
            0 => default,
            given => given,
        })
    }
}
