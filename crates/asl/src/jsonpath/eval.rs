//! Follows a path through a value.

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::{Map, Number, Value};

use super::{Function, JsonPath, MOST_NODES, NoValue, Step, canonical};

/// What one evaluation may still visit, filters included.
pub(super) struct Budget(Cell<usize>);

impl Budget {
    pub(super) fn new() -> Self {
        Self(Cell::new(MOST_NODES))
    }

    fn spend(&self) -> Result<(), NoValue> {
        let left = self.0.get().checked_sub(1).ok_or(NoValue::TooMany)?;
        self.0.set(left);
        Ok(())
    }
}

/// The value at `path` from `current`, in the document `root`. A definite path lends it.
pub(super) fn select<'a>(
    path: &JsonPath,
    current: &'a Value,
    root: &'a Value,
    budget: &Budget,
) -> Result<Cow<'a, Value>, NoValue> {
    let (steps, function) = match path.steps.split_last() {
        Some((Step::Function(function), before)) => (before, Some(*function)),
        _ => (path.steps.as_slice(), None),
    };
    let mut walk = Walk {
        root,
        budget,
        merged: Vec::new(),
    };
    let found = walk.follow(steps, current)?;
    let value = match steps.last() {
        Some(Step::Members(names)) => {
            merged(names, &walk.merged, path.is_definite()).map(Cow::Owned)
        }
        _ if is_definite(steps) => found.first().map(|value| Cow::Borrowed(*value)),
        _ => Some(Cow::Owned(Value::Array(
            found.into_iter().cloned().collect(),
        ))),
    };
    let missing = || NoValue::Missing(format!("No results for path: {}", path.canonical()));
    let value = value.ok_or_else(missing)?;
    match function {
        None => Ok(value),
        Some(function) => apply(function, &value).map(Cow::Owned).ok_or_else(missing),
    }
}

fn is_definite(steps: &[Step]) -> bool {
    let single = |step: &Step| matches!(step, Step::Member(_) | Step::Index(_));
    steps.iter().all(single)
}

/// Why `step` cannot be taken from `value`, which is the only one that the steps before it lead to. A last
/// member may be missing: the whole path then has no result.
fn obstacle(before: &[Step], step: &Step, after: &[Step], value: &Value) -> Option<String> {
    match (step, value) {
        (Step::Member(name), Value::Object(object)) => (!after.is_empty()
            && !object.contains_key(name))
        .then(|| format!("Missing property in path {}['{name}']", canonical(before))),
        (Step::Member(name), _) => Some(format!(
            "Expected to find an object with property ['{name}'] in path {} but found: {value}",
            canonical(before)
        )),
        (Step::Index(_) | Step::Indexes(_) | Step::Slice(..), Value::Array(_)) => None,
        (Step::Index(_) | Step::Indexes(_) | Step::Slice(..), Value::Null) => {
            Some(format!("The path {} is null", canonical(before)))
        }
        (Step::Index(_) | Step::Indexes(_) | Step::Slice(..), _) => Some(format!(
            "Filter: {} can only be applied to arrays. Current context is: {value}",
            canonical(std::slice::from_ref(step)).trim_start_matches('$')
        )),
        (Step::Filter(_), Value::Array(_) | Value::Object(_)) => None,
        (Step::Filter(_), _) => Some(format!(
            "Filter: [?] can not be applied to primitives. Current context is: {value}"
        )),
        _ => None,
    }
}

/// Objects with some members of others.
fn merged(names: &[String], objects: &[&Map<String, Value>], is_definite: bool) -> Option<Value> {
    let pick = |object: &Map<String, Value>| {
        let members = names
            .iter()
            .filter_map(|name| Some((name.clone(), object.get(name)?.clone())));
        Value::Object(members.collect())
    };
    if is_definite {
        return objects.first().map(|object| pick(object));
    }
    Some(Value::Array(
        objects.iter().map(|object| pick(object)).collect(),
    ))
}

struct Walk<'a, 'b> {
    root: &'a Value,
    budget: &'b Budget,
    /// The objects that a last `['a','b']` picks from.
    merged: Vec<&'a Map<String, Value>>,
}

impl<'a> Walk<'a, '_> {
    fn follow(&mut self, steps: &[Step], from: &'a Value) -> Result<Vec<&'a Value>, NoValue> {
        let mut found = vec![from];
        for (i, step) in steps.iter().enumerate() {
            let mut next = Vec::new();
            // As long as the path can only lead to one value, what is in its way is an error.
            let before = steps.get(..i).unwrap_or_default();
            let after = steps.get(i + 1..).unwrap_or_default();
            if let (true, [value]) = (is_definite(before), found.as_slice())
                && let Some(why) = obstacle(before, step, after, value)
            {
                return Err(NoValue::Missing(why));
            }
            for value in found {
                self.budget.spend()?;
                self.step(step, value, &mut next)?;
            }
            found = next;
        }
        Ok(found)
    }

    fn step(
        &mut self,
        step: &Step,
        value: &'a Value,
        next: &mut Vec<&'a Value>,
    ) -> Result<(), NoValue> {
        match (step, value) {
            (Step::Member(name), Value::Object(object)) => next.extend(object.get(name)),
            (Step::Members(names), Value::Object(object)) => {
                self.merged.push(object);
                next.extend(names.iter().filter_map(|name| object.get(name)));
            }
            (Step::Index(index), Value::Array(items)) => next.extend(at(items, *index)),
            (Step::Indexes(indexes), Value::Array(items)) => {
                next.extend(indexes.iter().filter_map(|index| at(items, *index)));
            }
            (Step::Slice(from, to), Value::Array(items)) => {
                let (from, to) = bounds(items.len(), *from, *to);
                next.extend(items.get(from..to).unwrap_or_default());
            }
            (Step::Wildcard, Value::Array(items)) => next.extend(items),
            (Step::Wildcard, Value::Object(object)) => next.extend(object.values()),
            (Step::Descend, _) => self.descend(value, next)?,
            (Step::Filter(filter), Value::Array(items)) => {
                for item in items {
                    self.budget.spend()?;
                    if filter.accepts(item, self.root, self.budget) {
                        next.push(item);
                    }
                }
            }
            (Step::Filter(filter), Value::Object(_))
                if filter.accepts(value, self.root, self.budget) =>
            {
                next.push(value);
            }
            _ => {}
        }
        Ok(())
    }

    /// The value and everything below it, parents first.
    fn descend(&mut self, value: &'a Value, next: &mut Vec<&'a Value>) -> Result<(), NoValue> {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            self.budget.spend()?;
            next.push(value);
            match value {
                Value::Array(items) => open.extend(items.iter().rev()),
                Value::Object(object) => open.extend(object.values().rev()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// An item by its place; from the end if negative.
fn at(items: &[Value], index: i64) -> Option<&Value> {
    items.get(place(items.len(), index)?)
}

fn place(length: usize, index: i64) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { length + index } else { index };
    usize::try_from(index).ok()
}

fn bounds(length: usize, from: Option<i64>, to: Option<i64>) -> (usize, usize) {
    let clamp = |end: i64| place(length, end).unwrap_or(0).min(length);
    let from = from.map_or(0, clamp);
    let to = to.map_or(length, clamp);
    (from, to.max(from))
}

fn apply(function: Function, value: &Value) -> Option<Value> {
    match function {
        Function::Length => match value {
            Value::Array(items) => Some(items.len().into()),
            Value::Object(object) => Some(object.len().into()),
            Value::String(text) => Some(text.chars().count().into()),
            _ => None,
        },
        Function::Keys => {
            let keys = value.as_object()?.keys().cloned().map(Value::from);
            Some(Value::Array(keys.collect()))
        }
        _ => {
            let numbers: Option<Vec<f64>> = value.as_array()?.iter().map(Value::as_f64).collect();
            let numbers = numbers.filter(|numbers| !numbers.is_empty())?;
            #[expect(clippy::cast_precision_loss, reason = "a count of values in memory")]
            let count = numbers.len() as f64;
            let number = match function {
                Function::Min => numbers.into_iter().fold(f64::INFINITY, f64::min),
                Function::Max => numbers.into_iter().fold(f64::NEG_INFINITY, f64::max),
                Function::Avg => numbers.into_iter().sum::<f64>() / count,
                _ => numbers.into_iter().sum(),
            };
            Number::from_f64(number).map(Value::Number)
        }
    }
}
