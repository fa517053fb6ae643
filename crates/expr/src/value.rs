//! Values of expressions, and their forms in JSON and in text.

use indexmap::IndexMap;
use serde_json::{Number, Value as Json};

use crate::secret::{SecretRef, SecretText};
use crate::time::Moment;

/// What an expression can be.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Known to be nothing. Not the same as undefined, which is an error.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number; always finite.
    Float(f64),
    /// Text without secrets.
    String(String),
    /// Values in order.
    List(Vec<Value>),
    /// Values by name, in the order they were written.
    Map(IndexMap<String, Value>),
    /// Text with at least one secret in it.
    Secret(SecretText),
    /// A day, or a moment of one.
    Time(Moment),
}

impl Value {
    /// What it is called in errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Secret(_) => "a secret",
            Self::Time(_) => "a date",
        }
    }

    /// Data of a run: every string is taken as it stands.
    pub fn from_json(json: &Json) -> Self {
        Self::convert(json, &|text| Self::String(text.to_owned()))
    }

    /// A document that [`crate::evaluate_json`] made: its strings may hold secrets.
    pub fn from_marked_json(json: &Json) -> Self {
        Self::convert(json, &|text| Self::from(SecretText::decode(text)))
    }

    fn convert(json: &Json, string: &dyn Fn(&str) -> Self) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(b) => Self::Bool(*b),
            Json::Number(number) => Self::number(number),
            Json::String(text) => string(text),
            Json::Array(items) => {
                Self::List(items.iter().map(|v| Self::convert(v, string)).collect())
            }
            Json::Object(map) => Self::Map(
                map.iter()
                    .map(|(key, v)| (key.clone(), Self::convert(v, string)))
                    .collect(),
            ),
        }
    }

    /// A whole number that does not fit stays text: rounding would change ids.
    fn number(number: &Number) -> Self {
        match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(int), _, _) => Self::Int(int),
            (None, Some(_), _) => Self::String(number.to_string()),
            (None, None, Some(float)) => Self::Float(float),
            (None, None, None) => Self::Null,
        }
    }

    /// As JSON, strings in the encoding of [`SecretText::encode`].
    pub fn to_marked_json(&self) -> Json {
        self.render(&|text| Json::String(text.encode()))
    }

    /// As JSON for people: secrets are shown as the expressions that name them.
    pub fn to_shown_json(&self) -> Json {
        self.render(&|text| Json::String(text.to_string()))
    }

    fn render(&self, string: &dyn Fn(&SecretText) -> Json) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(b) => Json::Bool(*b),
            Self::Int(int) => Json::from(*int),
            Self::Float(float) => Number::from_f64(*float).map_or(Json::Null, Json::Number),
            Self::String(text) => string(&SecretText::plain(text.as_str())),
            Self::Secret(text) => string(text),
            Self::Time(moment) => Json::String(moment.to_string()),
            Self::List(items) => items.iter().map(|v| v.render(string)).collect(),
            Self::Map(map) => map
                .iter()
                .map(|(key, v)| (key.clone(), v.render(string)))
                .collect(),
        }
    }

    /// The child that a path segment names, if there is one.
    pub fn child(&self, segment: &Segment) -> Option<&Self> {
        match (self, segment) {
            (Self::Map(map), Segment::Key(key)) => map.get(key),
            (Self::Map(map), Segment::Index(index)) => map.get(&index.to_string()),
            (Self::List(items), Segment::Index(index)) => items.get(*index),
            (Self::List(items), Segment::Key(key)) => items.get(key.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// The child that a whole path names, if there is one.
    pub fn descend(&self, path: &[Segment]) -> Option<&Self> {
        path.iter()
            .try_fold(self, |value, segment| value.child(segment))
    }

    /// Whether a secret is anywhere in it.
    pub fn has_secrets(&self) -> bool {
        match self {
            Self::Secret(_) => true,
            Self::List(items) => items.iter().any(Self::has_secrets),
            Self::Map(map) => map.values().any(Self::has_secrets),
            _ => false,
        }
    }

    /// Bytes that it and everything in it takes, roughly.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::String(text) => text.len(),
                Self::Secret(text) => text.weight(),
                Self::List(items) => items.iter().map(Self::weight).sum(),
                Self::Map(map) => map.iter().map(|(key, v)| key.len() + v.weight()).sum(),
                _ => 0,
            }
    }

    /// Its text form where that is plain: strings as they are, numbers and booleans as written, null as
    /// `null`, lists and maps as JSON. `None` if there is a secret in it.
    pub fn text(&self) -> Option<String> {
        Some(match self {
            Self::Null => "null".to_owned(),
            Self::Bool(b) => b.to_string(),
            Self::Int(int) => int.to_string(),
            Self::Float(float) => format!("{float:?}"),
            Self::String(text) => text.clone(),
            Self::Secret(_) => return None,
            Self::Time(moment) => moment.to_string(),
            Self::List(_) | Self::Map(_) if self.has_secrets() => return None,
            Self::List(_) | Self::Map(_) => self.to_shown_json().to_string(),
        })
    }
}

impl From<SecretText> for Value {
    fn from(text: SecretText) -> Self {
        if text.has_secrets() {
            Self::Secret(text)
        } else {
            Self::String(text.to_string())
        }
    }
}

impl From<SecretRef> for Value {
    fn from(reference: SecretRef) -> Self {
        Self::Secret(SecretText::secret(reference))
    }
}

impl From<Moment> for Value {
    fn from(moment: Moment) -> Self {
        Self::Time(moment)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<i64> for Value {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

/// One step of a path: `.name`, `["name"]` or `[0]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// By name.
    Key(String),
    /// By position, from 0.
    Index(usize),
}

impl Segment {
    /// The name, for a segment that is one.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Key(key) => Some(key),
            Self::Index(_) => None,
        }
    }
}

/// A path as a person writes it: `a.b[0]["c d"]`.
pub(crate) fn path_text(path: &[Segment]) -> String {
    let mut out = String::new();
    for segment in path {
        match segment {
            Segment::Index(index) => out.push_str(&format!("[{index}]")),
            Segment::Key(key) if is_name(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(key);
            }
            Segment::Key(key) => out.push_str(&format!("[{key:?}]")),
        }
    }
    out
}

fn is_name(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_$".contains(c))
}
