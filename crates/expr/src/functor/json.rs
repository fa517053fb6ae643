//! `json.*`: JSON in strings (docs: cd-steps/utilities/json-and-xml-functors). Paths are JsonPath's, as the
//! Java library reads them: the `$` may be left out and names may hold anything but dots and brackets.
//! Names, positions (from the end too), slices, unions, `*` and `..` are known; filters are refused.

use std::borrow::Cow;

use serde_json::Value as Json;

use super::{Outcome, problem};
use crate::error::Reason;
use crate::limits::Meter;
use crate::method::text_argument;
use crate::value::Value;

/// A step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step<'p> {
    Name(Cow<'p, str>),
    Position(i64),
    /// Several names or positions.
    Union(Vec<Step<'p>>),
    Slice(Option<i64>, Option<i64>),
    Every,
    /// Whatever follows, at any depth.
    Anywhere,
}

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
    let steps = steps(&path).ok_or_else(|| {
        problem(
            name,
            format!("`{path:.80}` is no path such as a.b[0].c (filters are not supported)"),
        )
    })?;
    let definite = steps
        .iter()
        .all(|step| matches!(step, Step::Name(_) | Step::Position(_)));
    let mut found = vec![&document];
    let mut deep = false;
    for step in &steps {
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

fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    let mut rest = path.trim();
    rest = rest.strip_prefix('$').unwrap_or(rest);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("..") {
            steps.push(Step::Anywhere);
            if after.is_empty() {
                return None;
            }
            rest = after;
            if rest.starts_with('[') {
                continue;
            }
        } else if let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = bracket(inner)?;
            steps.push(step);
            rest = after;
            continue;
        }
        let inner = rest.strip_prefix('.').unwrap_or(rest);
        let end = inner.find(['.', '[']).unwrap_or(inner.len());
        let (name, after) = inner.split_at_checked(end)?;
        match name {
            "" => return None,
            "*" => steps.push(Step::Every),
            name => steps.push(Step::Name(name.into())),
        }
        rest = after;
    }
    Some(steps)
}

/// What stands in brackets, and what follows them.
fn bracket(text: &str) -> Option<(Step<'_>, &str)> {
    let mut items = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let quote = rest.chars().next().filter(|c| "\"'".contains(*c));
        if let Some(quote) = quote {
            let (name, after) = rest.strip_prefix(quote)?.split_once(quote)?;
            items.push(Step::Name(name.into()));
            rest = after.trim_start();
        } else {
            let end = rest.find([',', ']'])?;
            items.push(bare(rest.get(..end)?.trim())?);
            rest = rest.get(end..)?;
        }
        if let Some(after) = rest.strip_prefix(']') {
            let single = items.len() == 1;
            let step = if single {
                items.pop()?
            } else {
                Step::Union(items)
            };
            return Some((step, after));
        }
        rest = rest.strip_prefix(',')?;
    }
}

fn bare(text: &str) -> Option<Step<'_>> {
    if text.is_empty() || text.starts_with(['?', '(', '@']) {
        return None;
    }
    if text == "*" {
        return Some(Step::Every);
    }
    if let Some((start, end)) = text.split_once(':') {
        let bound = |text: &str| match text.trim() {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        };
        return Some(Step::Slice(bound(start)?, bound(end)?));
    }
    Some(match text.parse() {
        Ok(position) => Step::Position(position),
        Err(_) => Step::Name(text.into()),
    })
}
