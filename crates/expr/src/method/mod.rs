//! Methods of values: those of Java's `String`, `List` and `Map` that mean something here, and a few of its
//! numbers. None of them leads to a class, so nothing of a host can be reached.
//!
//! Positions count characters.

mod list;
mod names;
mod pattern;
mod string;

use crate::ast::Binary;
use crate::error::{Reason, shorten};
use crate::limits::Meter;
use crate::operator;
use crate::secret::SecretText;
use crate::time;
use crate::value::{Segment, Value};

pub(crate) use names::nearest_function;

type Outcome = Result<Value, Reason>;

/// `value.name(arguments)`.
pub(crate) fn call(
    value: &Value,
    name: &str,
    arguments: &[Value],
    meter: &mut Meter<'_>,
) -> Outcome {
    match (value, name, arguments) {
        (Value::Secret(text), _, _) => on_secret(text, name, arguments, meter),
        (_, "toString", []) => value.text().map(Value::String).ok_or_else(|| secret(name)),
        (_, "equals", [other]) => operator::binary(Binary::Equal, value, other, meter),
        (Value::String(text), _, _) => string::call(text, name, arguments, meter),
        (Value::List(items), _, _) => list::call(items, name, arguments, meter),
        (Value::Map(_), _, _) => list::call_map(value, name, arguments),
        (Value::Int(_) | Value::Float(_), _, _) => on_number(value, name, arguments, meter),
        (Value::Bool(b), "booleanValue", []) => Ok(Value::Bool(*b)),
        (Value::Time(moment), _, _) => time::call(*moment, name, arguments, meter),
        _ => Err(missing(value, name, arguments)),
    }
}

/// The error for a method that is not there, or not for these arguments.
pub(crate) fn missing(value: &Value, name: &str, arguments: &[Value]) -> Reason {
    let kinds: Vec<_> = arguments.iter().map(Value::kind).collect();
    if kinds.is_empty() || !names::is_method(value, name) {
        Reason::NoMethod {
            subject: value.kind().to_owned(),
            name: format!("{}()", shorten(name)),
            nearest: names::nearest_method(value, name).filter(|known| *known != name),
        }
    } else {
        problem(
            name,
            format!("{} has none that takes {}", value.kind(), kinds.join(", ")),
        )
    }
}

fn problem(name: &str, problem: String) -> Reason {
    Reason::Operation {
        operation: format!("{name}()"),
        problem,
    }
}

fn secret(name: &str) -> Reason {
    Reason::Secret {
        operation: format!("{name}()"),
    }
}

fn on_secret(text: &SecretText, name: &str, arguments: &[Value], meter: &mut Meter<'_>) -> Outcome {
    match (name, arguments) {
        ("toString", []) => Ok(Value::Secret(text.clone())),
        ("concat", [other]) => {
            let mut joined = text.clone();
            operator::append(&mut joined, other, name)?;
            meter.bounded(joined.weight())?;
            Ok(Value::from(joined))
        }
        _ => Err(secret(name)),
    }
}

fn on_number(value: &Value, name: &str, arguments: &[Value], meter: &mut Meter<'_>) -> Outcome {
    match (value, name, arguments) {
        (Value::Int(_), "intValue" | "longValue", []) => Ok(value.clone()),
        (Value::Int(int), "doubleValue" | "floatValue", []) => Ok(Value::Float(*int as f64)),
        (Value::Float(_), "doubleValue" | "floatValue", []) => Ok(value.clone()),
        (Value::Float(float), "intValue" | "longValue", []) => Ok(Value::Int(*float as i64)),
        (_, "compareTo", [other @ (Value::Int(_) | Value::Float(_))]) => {
            let mut holds = |operator| operator::binary(operator, value, other, meter);
            Ok(Value::Int(
                match (holds(Binary::Less)?, holds(Binary::Greater)?) {
                    (Value::Bool(true), _) => -1,
                    (_, Value::Bool(true)) => 1,
                    _ => 0,
                },
            ))
        }
        _ => Err(missing(value, name, arguments)),
    }
}

fn count(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

/// A value that is used as text: no lists, maps, nulls or secrets.
pub(crate) fn text_argument(name: &str, value: &Value) -> Result<String, Reason> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Time(_) => {
            Ok(value.text().unwrap_or_default())
        }
        Value::Secret(_) => Err(secret(name)),
        Value::Null | Value::List(_) | Value::Map(_) => Err(Reason::Type {
            operation: format!("`{name}`"),
            wants: "strings",
            got: value.kind().to_owned(),
        }),
    }
}

fn position(name: &str, value: &Value) -> Result<usize, Reason> {
    let index = match value {
        Value::Int(int) => usize::try_from(*int).ok(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    // Positions beyond any text are all the same; the bound keeps sums from overflowing.
    index
        .map(|index| index.min(1 << 40))
        .ok_or_else(|| Reason::Type {
            operation: format!("{name}()"),
            wants: "positions from 0",
            got: value
                .text()
                .map_or_else(|| value.kind().to_owned(), |t| format!("`{t:.60}`")),
        })
}

/// The segment that `[value]` is.
pub(crate) fn index_segment(value: &Value) -> Result<Segment, Reason> {
    match value {
        Value::Int(_) => Ok(Segment::Index(position("[]", value)?)),
        other => Ok(Segment::Key(text_argument("[]", other)?)),
    }
}
