//! `json.*`: JSON in strings (docs: cd-steps/utilities/json-and-xml-functors). Paths are JsonPath's, as the
//! Java library reads them: the `$` may be left out and names may hold anything but dots and brackets.
//! Names, positions (from the end too), slices, unions, `*`, `..` and filters of comparisons are known.

mod path;

use serde_json::Value as Json;

use super::{Outcome, problem};
use crate::error::Reason;
use crate::limits::Meter;
use crate::method::text_argument;
use crate::operator;
use crate::value::Value;
use path::{Step, Test};

pub(super) fn parsed(name: &str, text: &Value) -> Outcome {
    if matches!(text, Value::List(_) | Value::Map(_)) {
        return Ok(text.clone());
    }
    let text = text_argument(name, text)?;
    let json: Json = serde_json::from_str(&text).map_err(|error| {
        problem(
            name,
            format!(
                "the text is not JSON (line {}, column {})",
                error.line(),
                error.column()
            ),
        )
    })?;
    Ok(Value::from_json(&json))
}

pub(super) fn format(name: &str, value: &Value) -> Outcome {
    if value.has_secrets() {
        return Err(Reason::Secret {
            operation: format!("{name}()"),
        });
    }
    Ok(Value::String(value.to_shown_json().to_string()))
}

pub(super) fn list(name: &str, path: &Value, text: &Value, meter: &mut Meter<'_>) -> Outcome {
    match select(name, path, text, meter)? {
        list @ Value::List(_) => Ok(list),
        other => Err(problem(
            name,
            format!("there is {} at that path", other.kind()),
        )),
    }
}

pub(super) fn select(name: &str, path: &Value, text: &Value, meter: &mut Meter<'_>) -> Outcome {
    let path = text_argument(name, path)?;
    let document = parsed(name, text)?;
    meter.value(&document)?;
    found_at(name, &path, &document, meter)
}

/// Whether a text is a path.
pub(crate) fn is_path(text: &str) -> bool {
    path::steps(text).is_some()
}

/// What a path leads to in a document that is read already.
pub(crate) fn found_at(name: &str, path: &str, document: &Value, meter: &mut Meter<'_>) -> Outcome {
    let steps = path::steps(path)
        .ok_or_else(|| problem(name, format!("`{path:.80}` is no path such as a.b[0].c")))?;
    let definite = steps
        .iter()
        .all(|step| matches!(step, Step::Name(_) | Step::Position(_)));
    let found = walk(document, &steps, meter)?;
    match found.as_slice() {
        [] if definite => Err(problem(name, format!("there is nothing at `{path:.80}`"))),
        [single] if definite => Ok((*single).clone()),
        many => {
            let mut list = Vec::new();
            for value in many {
                meter.value(value)?;
                list.push((*value).clone());
            }
            Ok(Value::List(list))
        }
    }
}

/// Everything that a path leads to from a value.
fn walk<'v>(
    value: &'v Value,
    steps: &[Step<'_>],
    meter: &mut Meter<'_>,
) -> Result<Vec<&'v Value>, Reason> {
    let mut found = vec![value];
    let mut deep = false;
    for step in steps {
        if *step == Step::Anywhere {
            deep = true;
            continue;
        }
        let mut next = Vec::new();
        for value in found {
            if deep {
                anywhere(value, step, &mut next, meter)?;
            } else {
                apply(value, step, &mut next, meter)?;
            }
        }
        found = next;
        deep = false;
    }
    Ok(found)
}

/// What a step leads to from a value.
fn apply<'v>(
    value: &'v Value,
    step: &Step<'_>,
    out: &mut Vec<&'v Value>,
    meter: &mut Meter<'_>,
) -> Result<(), Reason> {
    meter.spend(1)?;
    match (value, step) {
        (Value::Map(map), Step::Name(name)) => out.extend(map.get(name.as_ref())),
        (Value::Map(map), Step::Every) => {
            meter.spend(map.len())?;
            out.extend(map.values());
        }
        (Value::List(items), Step::Every) => {
            meter.spend(items.len())?;
            out.extend(items);
        }
        (Value::List(items), Step::Position(at)) => {
            out.extend(position(items, *at).and_then(|at| items.get(at)));
        }
        // `a.0` is read as `a[0]` where there is a list.
        (Value::List(items), Step::Name(name)) => {
            out.extend(name.parse::<usize>().ok().and_then(|at| items.get(at)));
        }
        (Value::List(items), Step::Slice(start, end)) => {
            let cut = |at: Option<i64>, otherwise| match at {
                None => otherwise,
                Some(at) if at < 0 => items.len().saturating_sub(length(at)),
                Some(at) => length(at).min(items.len()),
            };
            let part = items.get(cut(*start, 0)..cut(*end, items.len()));
            meter.spend(part.map_or(0, <[Value]>::len))?;
            out.extend(part.unwrap_or_default());
        }
        (_, Step::Filter(tests)) => {
            let items: Vec<&Value> = match value {
                Value::List(items) => items.iter().collect(),
                Value::Map(map) => map.values().collect(),
                _ => Vec::new(),
            };
            meter.spend(items.len())?;
            for item in items {
                if passes(item, tests, meter)? {
                    out.push(item);
                }
            }
        }
        (_, Step::Union(steps)) => {
            for step in steps {
                apply(value, step, out, meter)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn length(at: i64) -> usize {
    usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX)
}

fn position(items: &[Value], at: i64) -> Option<usize> {
    if at < 0 {
        items.len().checked_sub(length(at))
    } else {
        usize::try_from(at).ok()
    }
}

/// What a step leads to from a value and from everything in it. Documents are at most 128 levels deep:
/// that is where the JSON parser stops.
fn anywhere<'v>(
    value: &'v Value,
    step: &Step<'_>,
    out: &mut Vec<&'v Value>,
    meter: &mut Meter<'_>,
) -> Result<(), Reason> {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        apply(value, step, out, meter)?;
        match value {
            Value::List(items) => open.extend(items.iter().rev()),
            Value::Map(map) => open.extend(map.values().rev()),
            _ => {}
        }
    }
    Ok(())
}

/// Whether an item passes a filter: one of the groups, all tests of it.
fn passes(item: &Value, any: &[Vec<Test<'_>>], meter: &mut Meter<'_>) -> Result<bool, Reason> {
    for all in any {
        let mut holds = true;
        for test in all {
            let found = walk(item, &test.steps, meter)?;
            holds = holds
                && match (&test.against, found.first()) {
                    (None, found) => found.is_some(),
                    (Some(_), None) => false,
                    (Some((operator, literal)), Some(found)) => {
                        let outcome = operator::binary(*operator, found, literal, meter);
                        // What cannot be compared does not pass; too much work is an error.
                        match outcome {
                            Err(limit @ Reason::Limit { .. }) => return Err(limit),
                            outcome => outcome.ok() == Some(Value::Bool(true)),
                        }
                    }
                };
        }
        if holds {
            return Ok(true);
        }
    }
    Ok(false)
}
