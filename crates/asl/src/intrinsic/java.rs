//! How values become text and numbers in functions: as the service's own runtime, Java, does it.

use serde_json::Value;

/// A value in `States.Format`: texts bare, objects and arrays as Java prints maps and lists.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{name}={}", text(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}

/// The nearest whole number; halves go up, as Java's `Math.round` has it.
pub(super) fn round(value: &Value) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let number = (value.as_f64()? + 0.5).floor();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturates at the ends of 64 bits, as in Java"
    )]
    let whole = number as i64;
    Some(whole)
}
