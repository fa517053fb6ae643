//! Reference paths: the places that `ResultPath` may write to.

use serde_json::{Map, Value};

use super::{JsonPath, Step};

/// Highest index that a write may fill an array up to: payloads have fewer items.
const HIGHEST_INDEX: i64 = 100_000;

/// A path of names and indexes alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReferencePath(JsonPath);

impl ReferencePath {
    /// Parses a reference path; `None` if the text is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let path = JsonPath::parse(text)?;
        let fits = path.steps.iter().all(|step| match step {
            Step::Member(_) => true,
            Step::Index(index) => (0..=HIGHEST_INDEX).contains(index),
            _ => false,
        });
        fits.then_some(Self(path))
    }

    /// Puts `value` at the path in `document`, making the objects on the way; gives the document, or
    /// `None` if the path leads through something that is not an object or array.
    pub(crate) fn write(&self, mut document: Value, value: Value) -> Option<Value> {
        let mut place = &mut document;
        for step in &self.0.steps {
            place = match step {
                Step::Member(name) => {
                    if place.is_null() {
                        *place = Value::Object(Map::new());
                    }
                    let object = place.as_object_mut()?;
                    object.entry(name.as_str()).or_insert(Value::Null)
                }
                Step::Index(index) => {
                    let index = usize::try_from(*index).ok()?;
                    if place.is_null() {
                        *place = Value::Array(Vec::new());
                    }
                    let items = place.as_array_mut()?;
                    if items.len() <= index {
                        items.resize(index + 1, Value::Null);
                    }
                    items.get_mut(index)?
                }
                _ => return None,
            };
        }
        *place = value;
        Some(document)
    }
}
