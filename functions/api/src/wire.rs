//! Small parts of answers that several resources share.

use serde_json::{Map, Value};
use slipway_model::id::Scope;

/// `orgIdentifier`, or null.
pub(crate) fn org(scope: &Scope) -> Option<&str> {
    scope.org.as_ref().map(|org| org.as_str())
}

/// `projectIdentifier`, or null.
pub(crate) fn project(scope: &Scope) -> Option<&str> {
    scope.project.as_ref().map(|project| project.as_str())
}

/// Tags as a flat map of strings: everywhere but in executions.
pub(crate) fn tags_map(tags: &[(String, String)]) -> Value {
    let map: Map<String, Value> = tags
        .iter()
        .map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect();
    Value::Object(map)
}

/// Tags as a list of `{key, value}`: in executions.
pub(crate) fn tags_list(tags: &[(String, String)]) -> Value {
    tags.iter()
        .map(|(key, value)| serde_json::json!({"key": key, "value": value}))
        .collect()
}
