//! From trees to JSON values and back.
//!
//! A plain scalar is a number or boolean in JSON only when it is spelt the way JSON spells it. So
//! `1.10`, `1_000`, `0o17`, `12:30:45`, `.inf`, `on` and `no` stay the texts that were written, and
//! no digit of an account number or version is ever lost.

use std::sync::Arc;

use serde_json::{Map, Number, Value};

use crate::tree::{Data, Entry, Place, Ref, Style, Tree};

impl Ref<'_> {
    /// The value as JSON, by the rule of this module. Depth is bounded by that of the tree.
    pub fn to_json(self) -> Value {
        match &self.node().data {
            Data::Scalar(text, Style::Plain) => plain(text),
            Data::Scalar(text, _) => Value::String(text.to_string()),
            Data::List(_) => Value::Array(self.items().map(Ref::to_json).collect()),
            Data::Map(_) => Value::Object(
                self.entries()
                    .map(|(key, value)| (key.to_owned(), value.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

/// The number that `text` is the one canonical spelling of.
fn number(text: &str) -> Option<Number> {
    if let Ok(whole) = text.parse::<i64>() {
        return (whole.to_string() == text).then(|| whole.into());
    }
    let fraction = text.parse::<f64>().ok().filter(|f| f.is_finite())?;
    (fraction.to_string() == text)
        .then(|| Number::from_f64(fraction))
        .flatten()
}

impl Tree {
    /// A tree of a JSON value, with no places; `file` names it in messages.
    pub fn from_json(file: &str, value: &Value) -> Self {
        let mut tree = Self::empty(vec![Arc::from(file)]);
        tree.root = tree.push_json(value);
        tree
    }

    /// Adds the nodes of a JSON value.
    pub(crate) fn push_json(&mut self, value: &Value) -> u32 {
        let none = Place::default();
        match value {
            Value::Null => self.push_text(none, "", Style::Plain),
            Value::Bool(_) | Value::Number(_) => {
                self.push_text(none, &value.to_string(), Style::Plain)
            }
            Value::String(text) => self.push_text(none, text, Style::Quoted),
            Value::Array(items) => {
                let items = items.iter().map(|item| self.push_json(item)).collect();
                self.push(none, Data::List(items))
            }
            Value::Object(map) => {
                let entries = map
                    .iter()
                    .map(|(key, value)| Entry {
                        key: key.as_str().into(),
                        key_place: none,
                        value: self.push_json(value),
                    })
                    .collect();
                self.push(none, Data::Map(entries))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn scalars_keep_what_was_written() {
        let text = "[1, -7, 1.5, true, null, ~, 1.10, 1_000, 0o17, 12:30:45, .inf, on, no, 007, +1, 1e3, \
                    123456789012345678901234567890, \"1\", 'true']";
        let tree = crate::yaml::parse("p", text).unwrap();
        let expected = json!([
            1,
            -7,
            1.5,
            true,
            null,
            null,
            "1.10",
            "1_000",
            "0o17",
            "12:30:45",
            ".inf",
            "on",
            "no",
            "007",
            "+1",
            "1e3",
            "123456789012345678901234567890",
            "1",
            "true"
        ]);
        assert_eq!(tree.root().to_json(), expected);
        let back = crate::Tree::from_json("p", &expected).root().to_json();
        assert_eq!(back, expected);
    }
}
