//! A request's members as answers show them: `imageId` for `ImageId`, `tagSet` for `Tag.1`.

use serde_json::Value;

use crate::fields::Document;

/// The value of a member as answers show it.
pub(super) fn value(of: &Value) -> Value {
    match of {
        Value::Object(members) => {
            let members = members.iter();
            let members =
                members.map(|(key, member)| (name(key, member.is_array()), value(member)));
            Value::Object(members.collect::<Document>())
        }
        Value::Array(items) => Value::Array(items.iter().map(value).collect()),
        other => other.clone(),
    }
}

fn name(of: &str, list: bool) -> String {
    let mut letters = of.chars();
    let mut shown: String = letters
        .next()
        .map(|first| first.to_ascii_lowercase())
        .into_iter()
        .chain(letters)
        .collect();
    if list {
        shown.push_str("Set");
    }
    shown
}

/// Tags as answers list them.
pub(super) fn tags(of: &Document) -> Value {
    let tags = of.iter();
    let tags = tags.map(|(key, value)| serde_json::json!({"key": key, "value": value}));
    Value::Array(tags.collect())
}
