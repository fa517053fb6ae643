//! The functions on arrays.

use serde_json::Value;

use super::java;

/// Longest array that `States.ArrayRange` gives (Developer Guide).
const LONGEST_RANGE: usize = 1_000;

type Outcome = Result<Value, String>;

/// The items of an argument that must be an array.
pub(super) fn items(value: &Value) -> Result<&Vec<Value>, String> {
    value
        .as_array()
        .ok_or_else(|| format!("Expected an array, but was: {value}"))
}

fn whole(value: &Value) -> Result<i64, String> {
    java::round(value).ok_or_else(|| format!("Expected a number, but was: {value}"))
}

pub(super) fn contains(array: &Value, item: &Value) -> Outcome {
    Ok(items(array)?.contains(item).into())
}

pub(super) fn get_item(array: &Value, index: &Value) -> Outcome {
    let items = items(array)?;
    let index = whole(index)?;
    usize::try_from(index)
        .ok()
        .and_then(|at| items.get(at))
        .cloned()
        .ok_or_else(|| {
            format!(
                "The index {index} is out of range for length {}",
                items.len()
            )
        })
}

pub(super) fn partition(array: &Value, size: &Value) -> Outcome {
    let size = usize::try_from(whole(size)?)
        .ok()
        .filter(|size| *size > 0)
        .ok_or("The chunk size must be a positive number")?;
    let chunks = items(array)?.chunks(size);
    Ok(chunks.map(|chunk| Value::Array(chunk.to_vec())).collect())
}

pub(super) fn range(first: &Value, last: &Value, step: &Value) -> Outcome {
    let (first, last, step) = (whole(first)?, whole(last)?, whole(step)?);
    if step == 0 {
        return Err("The increment must not be 0".to_owned());
    }
    let mut numbers = Vec::new();
    let mut number = first;
    while (step > 0 && number <= last) || (step < 0 && number >= last) {
        if numbers.len() == LONGEST_RANGE {
            return Err(format!(
                "The array must not have more than {LONGEST_RANGE} items"
            ));
        }
        numbers.push(Value::from(number));
        match number.checked_add(step) {
            Some(next) => number = next,
            None => break,
        }
    }
    Ok(Value::Array(numbers))
}

pub(super) fn unique(array: &Value) -> Outcome {
    let mut seen: Vec<Value> = Vec::new();
    // Values have no order to sort by; arrays are as short as payloads are.
    let mut texts = std::collections::HashSet::new();
    for item in items(array)? {
        if texts.insert(item.to_string()) {
            seen.push(item.clone());
        }
    }
    Ok(Value::Array(seen))
}
