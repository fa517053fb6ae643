//! Request documents that users write in AWS's own shape: read from YAML or JSON, checked by the names of the
//! service's model, and kept whole.
//!
//! The rule for a name that the model here does not have: close to a known one, it is a typo and
//! refused with the suggestion; otherwise AWS may be newer than this list, so it is sent as written and the
//! log says so.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use serde_json::{Map, Value};

pub use super::reading::read;

/// Deepest nesting of a document; the reader of YAML has the same limit.
pub(super) const DEEPEST: usize = 100;

/// Most faults that are told at once.
const MOST_FAULTS: usize = 20;

/// Type of a field, as the shape list writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Any,
    String,
    Integer,
    Number,
    Boolean,
    Timestamp,
    Shape(&'static str),
    List(Box<Kind>),
    Map(Box<Kind>),
}

type Shapes = HashMap<&'static str, BTreeMap<&'static str, Kind>>;

fn shapes() -> &'static Shapes {
    static SHAPES: OnceLock<Shapes> = OnceLock::new();
    SHAPES.get_or_init(|| {
        // One file per family of services: no shape stands in two.
        let files = [include_str!("shapes.txt"), include_str!("shapes_asg.txt")];
        files
            .into_iter()
            .flat_map(str::lines)
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(": "))
            .map(|(name, fields)| {
                let fields = fields.split_ascii_whitespace();
                (
                    name,
                    fields
                        .filter_map(|f| f.split_once('='))
                        .map(|(n, k)| (n, kind(k)))
                        .collect(),
                )
            })
            .collect()
    })
}

fn kind(text: &'static str) -> Kind {
    let inner = || &text[1..text.len().saturating_sub(1)];
    match text {
        "any" => Kind::Any,
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        "timestamp" => Kind::Timestamp,
        list if list.starts_with('[') => Kind::List(Box::new(kind(inner()))),
        map if map.starts_with('{') => Kind::Map(Box::new(kind(inner()))),
        shape => Kind::Shape(shape),
    }
}

/// The field names of a request or shape, as AWS spells them; empty for an unknown shape.
pub fn fields(shape: &str) -> impl Iterator<Item = &'static str> {
    shapes()
        .get(shape)
        .into_iter()
        .flat_map(|fields| fields.keys().copied())
}

/// Where in a request a value stands, as far as the shapes know it.
#[derive(Clone, Debug)]
pub(super) struct Below(Option<Kind>);

impl Below {
    /// The request itself.
    pub(super) fn request(shape: &str) -> Self {
        let known = shapes().get_key_value(shape);
        Self(known.map(|(name, _)| Kind::Shape(name)))
    }

    /// An item of the list here.
    pub(super) fn item(&self) -> Self {
        Self(match &self.0 {
            Some(Kind::List(item)) => Some((**item).clone()),
            _ => None,
        })
    }

    /// A field of the mapping here.
    pub(super) fn field(&self, name: &str) -> Self {
        Self(match &self.0 {
            Some(Kind::Shape(shape)) => shapes()
                .get(shape)
                .and_then(|fields| fields.get(name))
                .cloned(),
            Some(Kind::Map(item)) => Some((**item).clone()),
            _ => None,
        })
    }

    /// The shape here and its field of this name.
    pub(super) fn known(&self, name: &str) -> Option<(&'static str, &'static str)> {
        let Some(Kind::Shape(shape)) = &self.0 else {
            return None;
        };
        let (field, _) = shapes().get(shape)?.get_key_value(name)?;
        Some((shape, field))
    }
}

/// `ImageId` for `imageId`.
pub(super) fn capitalised(name: &str) -> String {
    match name.starts_with(char::is_lowercase) {
        true => other_case(name),
        false => name.to_owned(),
    }
}

/// A document that fits its shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Conformed {
    /// The document: names as AWS spells them, nulls left out, scalars in the type that AWS wants.
    pub document: Value,
    /// For the log: fields that this version does not know and that are sent as written.
    pub notes: Vec<String>,
}

/// Fits `document` to `shape` (`RegisterTaskDefinition`, `CreateService`, …): names in camelCase or
/// PascalCase, nulls ignored, texts that expressions gave turned into numbers and booleans where AWS wants
/// those. Fails with one message per fault, each with its path.
pub fn conform(shape: &str, document: Value) -> Result<Conformed, Vec<String>> {
    let mut check = Check::default();
    let document = match shapes().get_key_value(shape) {
        Some((name, _)) => check.value(&Kind::Shape(name), document, "", 0),
        None => document,
    };
    if check.faults.is_empty() {
        Ok(Conformed {
            document,
            notes: check.notes,
        })
    } else {
        check.faults.truncate(MOST_FAULTS);
        Err(check.faults)
    }
}

#[derive(Default)]
struct Check {
    faults: Vec<String>,
    notes: Vec<String>,
}

impl Check {
    fn value(&mut self, kind: &Kind, value: Value, path: &str, depth: usize) -> Value {
        if depth > DEEPEST {
            self.faults
                .push(format!("`{path}` nests deeper than {DEEPEST} levels"));
            return Value::Null;
        }
        match (kind, value) {
            (Kind::Shape(shape), Value::Object(fields)) => self.object(shape, fields, path, depth),
            (Kind::List(item), Value::Array(items)) => Value::Array(
                items
                    .into_iter()
                    .filter(|item| !item.is_null())
                    .enumerate()
                    .map(|(i, value)| self.value(item, value, &format!("{path}[{i}]"), depth + 1))
                    .collect(),
            ),
            (Kind::Map(item), Value::Object(fields)) => Value::Object(
                fields
                    .into_iter()
                    .filter(|(_, value)| !value.is_null())
                    .map(|(name, value)| {
                        let value = self.value(item, value, &join(path, &name), depth + 1);
                        (name, value)
                    })
                    .collect(),
            ),
            (Kind::Any, value) => value,
            (Kind::Shape(_) | Kind::List(_) | Kind::Map(_), Value::String(text)) => {
                // A variable can only hold a list or mapping as a text.
                match read(path, &text) {
                    Ok(value @ (Value::Array(_) | Value::Object(_))) => {
                        self.value(kind, value, path, depth + 1)
                    }
                    _ => self.scalar(kind, Value::String(text), path),
                }
            }
            (kind, value) => self.scalar(kind, value, path),
        }
    }

    fn object(
        &mut self,
        shape: &str,
        given: Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Value {
        let Some(known) = shapes().get(shape) else {
            return Value::Object(given);
        };
        let mut out = Map::new();
        for (name, value) in given {
            if value.is_null() {
                continue;
            }
            let here = join(path, &name);
            let found = known
                .get_key_value(name.as_str())
                .or_else(|| known.get_key_value(other_case(&name).as_str()))
                .or_else(|| known.iter().find(|(field, _)| camel(field) == camel(&name)));
            let (spelled, value) = match found {
                Some((spelled, kind)) => (
                    (*spelled).to_owned(),
                    self.value(kind, value, &here, depth + 1),
                ),
                None => {
                    self.unknown(known.keys().copied(), &name, &here, shape);
                    (name, without_nulls(value, depth))
                }
            };
            if out.insert(spelled, value).is_some() {
                self.faults
                    .push(format!("`{here}` is given twice, in two spellings"));
            }
        }
        Value::Object(out)
    }

    fn unknown(
        &mut self,
        known: impl Iterator<Item = &'static str>,
        name: &str,
        here: &str,
        shape: &str,
    ) {
        let lower = name.to_lowercase();
        let limit = (lower.chars().count() / 4).clamp(1, 3);
        let nearest = known
            .map(|field| (strsim::osa_distance(&field.to_lowercase(), &lower), field))
            .min_by_key(|(distance, _)| *distance)
            .filter(|(distance, _)| *distance <= limit);
        match nearest {
            Some((_, field)) => self
                .faults
                .push(format!("`{here}` is not a field of {shape}; did you mean `{field}`?")),
            None => self.notes.push(format!(
                "`{here}` is not a field of {shape} that this version of Slipway knows; it is sent as \
                 written"
            )),
        }
    }

    fn scalar(&mut self, kind: &Kind, value: Value, path: &str) -> Value {
        let fits = match (kind, &value) {
            (Kind::String, Value::String(_))
            | (Kind::Boolean, Value::Bool(_))
            | (Kind::Number, Value::Number(_))
            | (Kind::Timestamp, Value::String(_) | Value::Number(_)) => true,
            (Kind::Integer, Value::Number(number)) => number.is_i64() || number.is_u64(),
            _ => false,
        };
        if fits {
            return value;
        }
        match converted(kind, &value) {
            Some(converted) => converted,
            None => {
                let (wanted, given) = (wanted(kind), form(&value));
                self.faults
                    .push(format!("`{path}` is {given}; {wanted} is expected"));
                value
            }
        }
    }
}

/// Scalars that YAML or an expression gave in another type than AWS wants.
fn converted(kind: &Kind, value: &Value) -> Option<Value> {
    match (kind, value) {
        (Kind::String, Value::Number(number)) => Some(Value::String(number.to_string())),
        (Kind::String, Value::Bool(flag)) => Some(Value::String(flag.to_string())),
        (Kind::Integer, Value::Number(number)) => {
            let number = number.as_f64()?;
            let whole = number.fract() == 0.0 && number.abs() < 9e15;
            whole.then(|| Value::from(number as i64))
        }
        (Kind::Integer, Value::String(text)) => text.trim().parse::<i64>().ok().map(Value::from),
        (Kind::Number, Value::String(text)) => {
            let number = text.trim().parse::<f64>().ok()?;
            serde_json::Number::from_f64(number).map(Value::Number)
        }
        (Kind::Boolean, Value::String(text)) => match text.trim() {
            "true" | "True" | "TRUE" => Some(Value::Bool(true)),
            "false" | "False" | "FALSE" => Some(Value::Bool(false)),
            _ => None,
        },
        _ => None,
    }
}

fn wanted(kind: &Kind) -> String {
    match kind {
        Kind::Any => "anything".to_owned(),
        Kind::String => "a text".to_owned(),
        Kind::Integer => "a whole number".to_owned(),
        Kind::Number => "a number".to_owned(),
        Kind::Boolean => "true or false".to_owned(),
        Kind::Timestamp => "a time".to_owned(),
        Kind::Shape(shape) => format!("a mapping ({shape})"),
        Kind::List(item) => format!("a list of which each is {}", wanted(item)),
        Kind::Map(_) => "a mapping".to_owned(),
    }
}

fn form(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        // Not shown: it may hold what an expression gave.
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}

fn without_nulls(value: Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return value;
    }
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name, without_nulls(value, depth + 1)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(
            items
                .into_iter()
                .map(|item| without_nulls(item, depth + 1))
                .collect(),
        ),
        scalar => scalar,
    }
}

/// Whether everything in `ours` is in `theirs`; order of lists is AWS's own.
pub(crate) fn within(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Object(ours), theirs) => ours
            .iter()
            .all(|(name, value)| within(value, &theirs[name.as_str()])),
        (Value::Array(ours), Value::Array(theirs)) => {
            let mut left: Vec<&Value> = theirs.iter().collect();
            ours.len() == theirs.len()
                && ours.iter().all(|item| {
                    let found = left.iter().position(|other| within(item, other));
                    found.map(|place| left.swap_remove(place)).is_some()
                })
        }
        (Value::Array(ours), Value::Null) => ours.is_empty(),
        (ours, theirs) => ours == theirs,
    }
}

/// `family` for `Family` and the other way round.
fn other_case(name: &str) -> String {
    let mut letters = name.chars();
    match letters.next() {
        Some(first) if first.is_uppercase() => first.to_lowercase().chain(letters).collect(),
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// `kmsKeyArn` for `KMSKeyArn`: a name in camelCase, whose first word may be an acronym.
fn camel(name: &str) -> String {
    let upper = name
        .chars()
        .take_while(|letter| letter.is_ascii_uppercase())
        .count();
    let follows = name
        .chars()
        .nth(upper)
        .is_some_and(|letter| letter.is_ascii_lowercase());
    let word = if upper > 1 && follows {
        upper - 1
    } else {
        upper
    };
    let (first, rest) = name.split_at(word);
    first.to_ascii_lowercase() + rest
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
