//! Items of distributed `Map`s: read out of S3 objects, put together in batches, and written back as
//! results. Developer Guide, "ItemReader (Map)", "ItemBatcher (Map)" and "ResultWriter (Map)".

mod read;
#[cfg(test)]
mod tests;
mod write;

use serde_json::{Map, Value};

pub(crate) use read::{parse, read};
pub(crate) use write::{Results, results, write};

/// Puts items together: at most `most` of them and `bytes` of JSON in one batch, each batch an object with
/// `Items`, and `BatchInput` if there is one.
pub(crate) fn batches(
    items: Vec<Value>,
    most: Option<u64>,
    bytes: Option<u64>,
    input: Option<&Value>,
) -> Vec<Value> {
    let most = most
        .and_then(|most| usize::try_from(most).ok())
        .unwrap_or(usize::MAX)
        .max(1);
    let bytes = bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .unwrap_or(usize::MAX);
    let empty = batch(Vec::new(), input).to_string().len();
    let mut batches = Vec::new();
    let (mut open, mut length) = (Vec::new(), empty);
    for item in items {
        let size = item.to_string().len() + 1;
        if !open.is_empty() && (open.len() == most || length + size > bytes) {
            batches.push(batch(std::mem::take(&mut open), input));
            length = empty;
        }
        length += size;
        open.push(item);
    }
    if !open.is_empty() {
        batches.push(batch(open, input));
    }
    batches
}

fn batch(items: Vec<Value>, input: Option<&Value>) -> Value {
    let mut members = Map::new();
    if let Some(input) = input {
        members.insert("BatchInput".to_owned(), input.clone());
    }
    members.insert("Items".to_owned(), Value::Array(items));
    Value::Object(members)
}
