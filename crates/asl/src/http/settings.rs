//! Settings of machines that are kept and shown, and change nothing here: logging, tracing, encryption.
//! What the API refuses in them is refused.

use serde_json::{Map, Value, json};

use super::request::Members;
use crate::error::ApiError;

const SETTINGS: [&str; 3] = [
    "loggingConfiguration",
    "tracingConfiguration",
    "encryptionConfiguration",
];

/// The settings of a request.
pub(super) fn read(members: &Members) -> Map<String, Value> {
    SETTINGS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), members.get(name)?.clone())))
        .collect()
}

/// Refuses settings that the API refuses (API reference, `CreateStateMachine`).
pub(super) fn check(members: &Members) -> Result<(), ApiError> {
    if members.get("versionDescription").is_some() && !members.flag("publish", false) {
        return Err(ApiError::validation(
            "Version description can only be set when publish is true",
        ));
    }
    let Some(logging) = members.get("loggingConfiguration") else {
        return Ok(());
    };
    let is_on = logging
        .get("level")
        .and_then(Value::as_str)
        .is_some_and(|level| level != "OFF");
    let destinations = logging.get("destinations").and_then(Value::as_array);
    let count = destinations.map_or(0, Vec::len);
    if count > 1 || (is_on && count != 1) {
        return Err(ApiError::new(
            "InvalidLoggingConfiguration",
            "Invalid Logging Configuration: Must specify exactly one Log Destination.",
        ));
    }
    Ok(())
}

/// Puts the settings into an answer, with their defaults.
pub(super) fn show(answer: &mut Value, settings: &Map<String, Value>) {
    answer["loggingConfiguration"] = json!({"level": "OFF", "includeExecutionData": false});
    answer["tracingConfiguration"] = json!({"enabled": false});
    for (name, value) in settings {
        answer[name.as_str()] = value.clone();
    }
}
