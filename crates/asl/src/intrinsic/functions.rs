//! What the functions compute.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

use super::{Function, arrays, java};
use crate::hash::hexadecimal;

/// Longest text that the encoding and hashing functions take (Developer Guide).
const LONGEST_TEXT: usize = 10_000;

type Outcome = Result<Value, String>;

/// Calls `function`; the parser has counted the arguments.
pub(super) fn call(function: Function, arguments: Vec<Value>) -> Outcome {
    match (function, arguments.as_slice()) {
        (Function::Array, _) => Ok(Value::Array(arguments)),
        (Function::Uuid, _) => Ok(uuid::Uuid::new_v4().to_string().into()),
        (Function::Format, [template, values @ ..]) => format(template, values),
        (Function::ArrayLength, [array]) => Ok(arrays::items(array)?.len().into()),
        (Function::ArrayUnique, [array]) => arrays::unique(array),
        (Function::ArrayContains, [array, item]) => arrays::contains(array, item),
        (Function::ArrayGetItem, [array, index]) => arrays::get_item(array, index),
        (Function::ArrayPartition, [array, size]) => arrays::partition(array, size),
        (Function::ArrayRange, [first, last, step]) => arrays::range(first, last, step),
        (Function::Base64Encode, [data]) => Ok(STANDARD.encode(short(data)?).into()),
        (Function::Base64Decode, [data]) => decode(short(data)?),
        (Function::Hash, [data, algorithm]) => hash(data, algorithm),
        (Function::JsonToString, [value]) => Ok(value.to_string().into()),
        (Function::StringToJson, [text]) => parse(self::text(text)?),
        (Function::JsonMerge, [first, second, deep]) => merge(first, second, deep),
        (Function::MathAdd, [a, b]) => Ok(whole(a)?.wrapping_add(whole(b)?).into()),
        (Function::MathRandom, [from, to, seed @ ..]) => random(from, to, seed.first()),
        (Function::StringSplit, [text, splitter]) => {
            split(self::text(text)?, self::text(splitter)?)
        }
        _ => Err("Wrong number of arguments".to_owned()),
    }
}

fn text(value: &Value) -> Result<&str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("Expected a string, but was: {value}"))
}

fn short(value: &Value) -> Result<&str, String> {
    let text = text(value)?;
    if text.chars().count() > LONGEST_TEXT {
        return Err(format!(
            "The text must not have more than {LONGEST_TEXT} characters"
        ));
    }
    Ok(text)
}

fn whole(value: &Value) -> Result<i64, String> {
    java::round(value).ok_or_else(|| format!("Expected a number, but was: {value}"))
}

/// Puts the values into the places `{}` of a template; there must be as many places as values.
fn format(template: &Value, values: &[Value]) -> Outcome {
    let mut filled = String::new();
    let mut values = values.iter();
    let mut chars = text(template)?.chars().peekable();
    let count = || "Number of arguments do not match the occurrences of {}".to_owned();
    while let Some(c) = chars.next() {
        match c {
            '\\' if matches!(chars.peek(), Some('\'' | '{' | '}' | '\\')) => {
                filled.extend(chars.next());
            }
            '{' if chars.peek() == Some(&'}') => {
                chars.next();
                filled.push_str(&java::text(values.next().ok_or_else(count)?));
            }
            _ => filled.push(c),
        }
    }
    match values.next() {
        None => Ok(filled.into()),
        Some(_) => Err(count()),
    }
}

fn decode(data: &str) -> Outcome {
    let bytes = STANDARD
        .decode(data)
        .map_err(|error| format!("The text is not Base64: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned().into())
}

fn hash(data: &Value, algorithm: &Value) -> Outcome {
    let algorithm = text(algorithm)?;
    let data = match data {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    hexadecimal(algorithm, short(&Value::String(data))?)
        .map(Value::from)
        .ok_or_else(|| {
            format!("'{algorithm}' is not one of MD5, SHA-1, SHA-256, SHA-384 and SHA-512")
        })
}

/// JSON of a text; nothing in it is null.
fn parse(text: &str) -> Outcome {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(text).map_err(|error| format!("The text is not JSON: {error}"))
}

/// Members of both objects, the second's before the first's. The service merges the first level only.
fn merge(first: &Value, second: &Value, deep: &Value) -> Outcome {
    if deep != &Value::Bool(false) {
        return Err("Deep merging is not supported: the third argument must be false".to_owned());
    }
    let (Some(first), Some(second)) = (first.as_object(), second.as_object()) else {
        return Err("Both arguments must be objects".to_owned());
    };
    let mut merged = first.clone();
    merged.extend(second.clone());
    Ok(Value::Object(merged))
}

/// A whole number from the first, and below the second.
fn random(from: &Value, to: &Value, seed: Option<&Value>) -> Outcome {
    let (from, to) = (whole(from)?, whole(to)?);
    if from >= to {
        return Err("The start must be smaller than the end".to_owned());
    }
    let number = match seed {
        None => rand::rng().random_range(from..to),
        Some(seed) => {
            let seed = whole(seed)?.cast_unsigned();
            rand::rngs::StdRng::seed_from_u64(seed).random_range(from..to)
        }
    };
    Ok(number.into())
}

/// The parts between the characters of `splitter`, each of which splits; empty parts are left out.
fn split(text: &str, splitter: &str) -> Outcome {
    let parts = text
        .split(|c| splitter.contains(c))
        .filter(|part| !part.is_empty());
    Ok(parts.map(Value::from).collect())
}
