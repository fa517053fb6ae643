//! Items of distributed `Map`s: read out of S3 objects, put together in batches, and written back as
//! results. Developer Guide, "ItemReader (Map)", "ItemsPath (Map, JSONPath only)", "ItemBatcher (Map)" and
//! "ResultWriter (Map)".

mod read;
#[cfg(test)]
mod tests;
mod write;

use serde_json::{Map, Value, json};

pub(crate) use read::{parse, read};
pub(crate) use write::{Results, results, write};

/// `Map.Item.Source` of items that come from the state's input (Developer Guide, "Context object data for Map states").
pub(crate) const STATE_DATA: &str = "STATE_DATA";

/// What a `Map` iterates over: the elements of an array, or the pairs of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Items {
    pub(crate) values: Vec<Value>,
    /// `Map.Item.Key` of each value of an object; `None` for an array.
    keys: Option<Vec<String>>,
    /// `Map.Item.Source`: where the items come from.
    pub(crate) source: String,
}

impl Items {
    /// The elements of an array.
    pub(crate) fn array(values: Vec<Value>) -> Self {
        Self {
            values,
            keys: None,
            source: STATE_DATA.to_owned(),
        }
    }

    /// What there is to iterate over in a value: in an object its pairs, as they are written.
    pub(crate) fn of(value: Value) -> Option<Self> {
        match value {
            Value::Array(values) => Some(Self::array(values)),
            Value::Object(members) => {
                let (keys, values) = members.into_iter().unzip();
                Some(Self {
                    keys: Some(keys),
                    ..Self::array(values)
                })
            }
            _ => None,
        }
    }

    /// The name of the value at `index`, of an object.
    pub(crate) fn key(&self, index: usize) -> Option<&str> {
        self.keys.as_ref()?.get(index).map(String::as_str)
    }

    /// Leaves out all items after the first `most`.
    pub(crate) fn truncate(&mut self, most: usize) {
        self.values.truncate(most);
        if let Some(keys) = &mut self.keys {
            keys.truncate(most);
        }
    }

    /// The array or object that the items are of.
    pub(crate) fn whole(&self) -> Value {
        let Some(keys) = &self.keys else {
            return Value::Array(self.values.clone());
        };
        let pairs = keys.iter().cloned().zip(self.values.iter().cloned());
        Value::Object(pairs.collect())
    }

    /// What iterations get where no selector says more: an element, or a pair as an object of `Key` and `Value`.
    pub(crate) fn inputs(self) -> Vec<Value> {
        let Some(keys) = self.keys else {
            return self.values;
        };
        let pairs = keys.into_iter().zip(self.values);
        pairs
            .map(|(key, value)| json!({"Key": key, "Value": value}))
            .collect()
    }
}

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
