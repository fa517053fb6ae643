//! Methods of lists and maps.

use super::{Outcome, count, missing, position, problem, text_argument};
use crate::ast::Binary;
use crate::limits::Meter;
use crate::operator;
use crate::value::Value;

pub(super) fn call(
    items: &[Value],
    name: &str,
    arguments: &[Value],
    meter: &mut Meter<'_>,
) -> Outcome {
    match (name, arguments) {
        ("get", [index]) => {
            let index = position(name, index)?;
            items.get(index).cloned().ok_or_else(|| {
                problem(
                    &format!("get({index})"),
                    format!("the list has {} items", items.len()),
                )
            })
        }
        ("size" | "length", []) => Ok(count(items.len())),
        ("isEmpty", []) => Ok(Value::Bool(items.is_empty())),
        ("contains", [item]) => Ok((index_of(items, item, meter)? >= 0).into()),
        ("indexOf", [item]) => index_of(items, item, meter).map(Value::Int),
        ("lastIndexOf", [item]) => {
            let found = items.iter().rposition(|other| other == item);
            Ok(found.map_or(Value::Int(-1), count))
        }
        ("containsAll", [Value::List(wanted)]) => {
            for item in wanted {
                if index_of(items, item, meter)? < 0 {
                    return Ok(Value::Bool(false));
                }
            }
            Ok(Value::Bool(true))
        }
        ("subList", [start, end]) => {
            let (start, end) = (position(name, start)?, position(name, end)?);
            let part = items.get(start..end).ok_or_else(|| {
                problem(
                    name,
                    format!(
                        "{start} to {end} is outside of a list of {} items",
                        items.len()
                    ),
                )
            })?;
            Ok(Value::List(part.to_vec()))
        }
        _ => Err(missing(&Value::List(Vec::new()), name, arguments)),
    }
}

/// The first position of what equals `item` as `==` has it, or -1.
fn index_of(
    items: &[Value],
    item: &Value,
    meter: &mut Meter<'_>,
) -> Result<i64, crate::error::Reason> {
    meter.spend(items.len())?;
    for (index, other) in (0..).zip(items) {
        if operator::binary(Binary::Equal, other, item, meter)? == Value::Bool(true) {
            return Ok(index);
        }
    }
    Ok(-1)
}

pub(super) fn call_map(value: &Value, name: &str, arguments: &[Value]) -> Outcome {
    let Value::Map(map) = value else {
        return Err(missing(value, name, arguments));
    };
    match (name, arguments) {
        ("get" | "getOrDefault", [key, default @ ..]) if default.len() < 2 => {
            let key = text_argument(name, key)?;
            let found = map.get(&key).or(default.first());
            Ok(found.cloned().unwrap_or(Value::Null))
        }
        ("size", []) => Ok(count(map.len())),
        ("isEmpty", []) => Ok(Value::Bool(map.is_empty())),
        ("containsKey", [key]) => Ok(Value::Bool(map.contains_key(&text_argument(name, key)?))),
        ("containsValue", [wanted]) => Ok(Value::Bool(map.values().any(|v| v == wanted))),
        ("keySet", []) => Ok(Value::List(
            map.keys().cloned().map(Value::String).collect(),
        )),
        ("values", []) => Ok(Value::List(map.values().cloned().collect())),
        _ => Err(missing(&Value::Map(Default::default()), name, arguments)),
    }
}
