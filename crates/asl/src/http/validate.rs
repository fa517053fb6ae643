//! `ValidateStateMachineDefinition`.

use serde_json::{Value, json};

use super::machines;
use super::request::Members;
use crate::definition;
use crate::error::ApiError;

/// Most diagnostics in one answer (API reference).
const MOST: usize = 100;

/// What `CreateStateMachine` would say about a definition.
pub(super) fn validate(members: &Members) -> Result<Value, ApiError> {
    let text = members.required("definition")?;
    let kind = machines::kind(members)?;
    let most = match members.max_results(MOST)? {
        most if most > MOST => {
            return Err(ApiError::validation(format!(
                "1 validation error detected: Value '{most}' at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to {MOST}"
            )));
        }
        most => most,
    };
    let errors = definition::parse(text, kind).err().unwrap_or_default();
    let diagnostics: Vec<Value> = errors
        .iter()
        .take(most)
        .map(|error| {
            let mut diagnostic = json!({
                "severity": "ERROR",
                "code": error.code,
                "message": error.message,
            });
            if !error.path.is_empty() {
                diagnostic["location"] = error.path.as_str().into();
            }
            diagnostic
        })
        .collect();
    Ok(json!({
        "result": if errors.is_empty() { "OK" } else { "FAIL" },
        "diagnostics": diagnostics,
        "truncated": errors.len() > most,
    }))
}
