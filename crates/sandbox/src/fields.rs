//! Reading a request document member by member, with AWS's answers for wrong types.
//!
//! Requests stay documents instead of becoming structs: an account must give back every field that it
//! was given, also those that are newer than this code.

use serde_json::{Map, Value};

use crate::error::ApiError;

/// A JSON object.
pub(crate) type Document = Map<String, Value>;

/// Members of a request; `null` counts as absent.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a Document);

impl<'a> Fields<'a> {
    fn present(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(self, name: &str) -> Result<Option<&'a str>, ApiError> {
        match self.present(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, "String", other)),
        }
    }

    pub(crate) fn required_text(self, name: &str) -> Result<&'a str, ApiError> {
        self.text(name)?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| ApiError::invalid_parameter(format!("{name} cannot be empty.")))
    }

    pub(crate) fn integer(self, name: &str) -> Result<Option<i64>, ApiError> {
        match self.present(name) {
            None => Ok(None),
            Some(value) => value
                .as_i64()
                .map(Some)
                .ok_or_else(|| wrong_type(name, "Integer", value)),
        }
    }

    pub(crate) fn flag(self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.present(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(wrong_type(name, "Boolean", other)),
        }
    }

    pub(crate) fn object(self, name: &str) -> Result<Option<&'a Document>, ApiError> {
        match self.present(name) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(other) => Err(wrong_type(name, "Structure", other)),
        }
    }

    /// The items of a list; none when the list is absent.
    pub(crate) fn list(self, name: &str) -> Result<&'a [Value], ApiError> {
        match self.present(name) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(wrong_type(name, "List", other)),
        }
    }

    pub(crate) fn texts(self, name: &str) -> Result<Vec<&'a str>, ApiError> {
        self.list(name)?
            .iter()
            .map(|item| {
                item.as_str()
                    .ok_or_else(|| wrong_type(name, "String", item))
            })
            .collect()
    }

    pub(crate) fn objects(self, name: &str) -> Result<Vec<&'a Document>, ApiError> {
        self.list(name)?
            .iter()
            .map(|item| {
                item.as_object()
                    .ok_or_else(|| wrong_type(name, "Structure", item))
            })
            .collect()
    }
}

fn wrong_type(name: &str, wanted: &str, found: &Value) -> ApiError {
    let kind = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a structure",
    };
    ApiError::serialization(format!("{name}: {kind} can not be converted to {wanted}"))
}

/// A time as AWS's JSON protocols write it: seconds since the epoch with a fraction.
pub(crate) fn epoch(time: jiff::Timestamp) -> Value {
    Value::from(time.as_millisecond() as f64 / 1000.0)
}

/// Copies members of `from` that are named in `names` and not null.
pub(crate) fn pick(from: &Document, names: &[&str]) -> Document {
    from.iter()
        .filter(|(name, value)| names.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Copies members of `from` that are not named in `names` and not null.
pub(crate) fn omit(from: &Document, names: &[&str]) -> Document {
    from.iter()
        .filter(|(name, value)| !names.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Sets `name` where it is absent, the way AWS shows defaults.
pub(crate) fn default_to(document: &mut Document, name: &str, value: Value) {
    if !document.contains_key(name) {
        document.insert(name.to_owned(), value);
    }
}
