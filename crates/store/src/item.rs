//! Items: attributes in, attributes out, and changes of them.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, Delete, Put, Update};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StoreError;
use crate::key::Key;
use crate::layout::{PK, SK};

/// An item as the SDK has it.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// Version of the items' layout. Readers take items of every version; a writer never lowers it.
pub(crate) const FORMAT: u64 = 1;

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: impl ToString) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(crate) fn bytes(value: Vec<u8>) -> AttributeValue {
    AttributeValue::B(Blob::new(value))
}

/// A value as JSON text.
pub(crate) fn json<T: Serialize>(what: &str, value: &T) -> Result<AttributeValue, StoreError> {
    serde_json::to_string(value)
        .map(AttributeValue::S)
        .map_err(|error| StoreError::unreadable(what, error))
}

pub(crate) fn read_text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

pub(crate) fn read_number<T: std::str::FromStr>(item: &Item, name: &str) -> Option<T> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

pub(crate) fn read_bytes<'a>(item: &'a Item, name: &str) -> Option<&'a [u8]> {
    item.get(name)?.as_b().ok().map(AsRef::as_ref)
}

/// Reads an attribute of JSON text; `None` when it is not there.
pub(crate) fn read_json<T: DeserializeOwned>(
    what: &str,
    item: &Item,
    name: &str,
) -> Result<Option<T>, StoreError> {
    let Some(text) = read_text(item, name) else {
        return Ok(None);
    };
    serde_json::from_str(text)
        .map(Some)
        .map_err(|error| StoreError::unreadable(what, error))
}

/// A new item under `key`.
pub(crate) fn row(key: &Key) -> Item {
    Item::from([
        (PK.to_owned(), text(&*key.pk)),
        (SK.to_owned(), text(&*key.sk)),
        ("format".to_owned(), number(FORMAT)),
    ])
}

/// The key attributes alone.
pub(crate) fn key_of(key: &Key) -> Item {
    Item::from([
        (PK.to_owned(), text(&*key.pk)),
        (SK.to_owned(), text(&*key.sk)),
    ])
}

/// Sets attributes of a row, one per line.
pub(crate) trait Row {
    fn with(self, name: &str, value: AttributeValue) -> Self;
    fn with_some(self, name: &str, value: Option<AttributeValue>) -> Self;
}

impl Row for Item {
    fn with(mut self, name: &str, value: AttributeValue) -> Self {
        self.insert(name.to_owned(), value);
        self
    }

    fn with_some(self, name: &str, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

/// A condition with the names and values that it mentions: `#x` is attribute `x`, `:x` a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expression {
    text: String,
    names: HashMap<String, String>,
    values: Item,
}

impl Expression {
    /// That nothing is under the key yet.
    pub(crate) fn absent() -> Self {
        Self {
            text: format!("attribute_not_exists({PK})"),
            ..Self::default()
        }
    }

    /// That something is under the key.
    pub(crate) fn present() -> Self {
        Self {
            text: format!("attribute_exists({PK})"),
            ..Self::default()
        }
    }

    /// `text`, whose names are found in it; values follow with [`Expression::value`].
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let mut names = HashMap::new();
        for piece in text.split('#').skip(1) {
            let end = piece.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = &piece[..end.unwrap_or(piece.len())];
            names.insert(format!("#{name}"), name.to_owned());
        }
        Self {
            text,
            names,
            values: Item::new(),
        }
    }

    pub(crate) fn value(mut self, name: &str, value: AttributeValue) -> Self {
        self.values.insert(name.to_owned(), value);
        self
    }

    pub(crate) fn into_parts(self) -> (String, Option<HashMap<String, String>>, Option<Item>) {
        let names = (!self.names.is_empty()).then_some(self.names);
        let values = (!self.values.is_empty()).then_some(self.values);
        (self.text, names, values)
    }
}

/// A change of one item: attributes set, added to and removed, if a condition holds.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) key: Key,
    sets: Vec<String>,
    adds: Vec<String>,
    removes: Vec<String>,
    condition: Option<String>,
    names: HashMap<String, String>,
    values: Item,
}

impl Change {
    pub(crate) fn new(key: Key) -> Self {
        Self {
            key,
            sets: Vec::new(),
            adds: Vec::new(),
            removes: Vec::new(),
            condition: None,
            names: HashMap::new(),
            values: Item::new(),
        }
    }

    pub(crate) fn set(mut self, name: &str, value: AttributeValue) -> Self {
        self.sets.push(format!("#{name} = :{name}"));
        self.note(name, value);
        self
    }

    /// Sets where there is a value, removes where there is none.
    pub(crate) fn put(self, name: &str, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self.remove(name),
        }
    }

    pub(crate) fn set_some(self, name: &str, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    pub(crate) fn add(mut self, name: &str, value: AttributeValue) -> Self {
        self.adds.push(format!("#{name} :{name}"));
        self.note(name, value);
        self
    }

    pub(crate) fn remove(mut self, name: &str) -> Self {
        self.removes.push(format!("#{name}"));
        self.names.insert(format!("#{name}"), name.to_owned());
        self
    }

    pub(crate) fn when(mut self, condition: Expression) -> Self {
        self.names.extend(condition.names);
        self.values.extend(condition.values);
        self.condition = Some(condition.text);
        self
    }

    fn note(&mut self, name: &str, value: AttributeValue) {
        self.names.insert(format!("#{name}"), name.to_owned());
        self.values.insert(format!(":{name}"), value);
    }

    pub(crate) fn into_parts(self) -> Parts {
        let mut clauses = Vec::new();
        for (verb, parts) in [
            ("SET", self.sets),
            ("ADD", self.adds),
            ("REMOVE", self.removes),
        ] {
            if !parts.is_empty() {
                clauses.push(format!("{verb} {}", parts.join(", ")));
            }
        }
        let names = (!self.names.is_empty()).then_some(self.names);
        let values = (!self.values.is_empty()).then_some(self.values);
        let (key, condition) = (self.key, self.condition);
        Parts {
            key,
            expression: clauses.join(" "),
            condition,
            names,
            values,
        }
    }
}

/// A change as the SDK's builders want it.
pub(crate) struct Parts {
    pub(crate) key: Key,
    pub(crate) expression: String,
    pub(crate) condition: Option<String>,
    pub(crate) names: Option<HashMap<String, String>>,
    pub(crate) values: Option<Item>,
}

/// One part of a transaction.
pub(crate) enum Write {
    /// A new item, if nothing is under its key yet.
    Create(Key, Item),
    /// An item whose key is made of one that the same transaction creates, so that nothing can be under it: a condition
    /// would be read and looked up for nothing.
    Beside(Key, Item),
    /// A change.
    Change(Change),
    /// Nothing is under the key afterwards, whatever was.
    Delete(Key),
}

/// The SDK's form of a conditional put.
pub(crate) fn put_if_absent(
    table: &str,
    item: Item,
) -> Result<Put, aws_sdk_dynamodb::error::BuildError> {
    Put::builder()
        .table_name(table)
        .set_item(Some(item))
        .condition_expression(Expression::absent().text)
        .build()
}

/// The SDK's form of a put without a condition.
pub(crate) fn put(table: &str, item: Item) -> Result<Put, aws_sdk_dynamodb::error::BuildError> {
    let put = Put::builder().table_name(table);
    put.set_item(Some(item)).build()
}

/// The SDK's form of a deletion.
pub(crate) fn delete(
    table: &str,
    key: &Key,
) -> Result<Delete, aws_sdk_dynamodb::error::BuildError> {
    let delete = Delete::builder().table_name(table);
    delete.set_key(Some(key_of(key))).build()
}

/// The SDK's form of a change.
pub(crate) fn update(
    table: &str,
    change: Change,
) -> Result<Update, aws_sdk_dynamodb::error::BuildError> {
    let Parts {
        key,
        expression,
        condition,
        names,
        values,
    } = change.into_parts();
    Update::builder()
        .table_name(table)
        .set_key(Some(key_of(&key)))
        .update_expression(expression)
        .set_condition_expression(condition)
        .set_expression_attribute_names(names)
        .set_expression_attribute_values(values)
        .build()
}
