//! Texts that servers send, on their way to logs, failures and outputs.

use serde_json::{Map, Value};

use crate::secrets::Secrets;

/// Most bytes of the fields of a ticket that become outputs: records are small.
const MOST_OUTPUT: usize = 160 * 1024;

/// Most characters of a server's own words in a failure.
const MOST_WORDS: usize = 500;

/// Words of a server for a message: on one line, and not longer than people read.
pub(crate) fn words(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line: String = line.join(" ").chars().filter(|c| !c.is_control()).collect();
    shortened(&line, MOST_WORDS)
}

/// A text of so many characters at most.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A document with the secrets that were filled in masked: servers repeat what they were sent.
pub(crate) fn masked(mut value: Value, secrets: &Secrets<'_>) -> Value {
    let mut open: Vec<&mut Value> = vec![&mut value];
    while let Some(next) = open.pop() {
        match next {
            Value::String(text) => *text = secrets.mask(text),
            Value::Array(items) => open.extend(items.iter_mut()),
            Value::Object(fields) => open.extend(fields.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    value
}

/// The fields that fit into a record, the shorter ones first, in their order; and the names of the others.
pub(crate) fn fitting(fields: &Map<String, Value>) -> (Map<String, Value>, Vec<String>) {
    let mut sizes: Vec<(usize, &String)> = fields
        .iter()
        .map(|(name, value)| (name.len() + value.to_string().len(), name))
        .collect();
    sizes.sort_unstable();
    let mut room = MOST_OUTPUT;
    let mut left_out = Vec::new();
    for (size, name) in sizes {
        match room.checked_sub(size) {
            Some(rest) => room = rest,
            None => left_out.push(name.clone()),
        }
    }
    let kept = fields.iter().filter(|(name, _)| !left_out.contains(name));
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    (kept.collect(), left_out)
}

/// Data as outputs hold it: no text of a server can be taken for the reference of a secret.
pub(crate) fn as_output(data: &Value) -> Value {
    slipway_expr::Value::from_json(data).to_marked_json()
}
