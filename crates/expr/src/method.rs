//! Methods of values: those of Java's `String`, `List` and `Map` that expressions use.
//!
//! Positions count characters. Regular expressions run in linear time, so Java's look-around and
//! back-references are refused by the pattern compiler.

use regex::{Regex, RegexBuilder};

use crate::error::Reason;
use crate::secret::SecretText;
use crate::value::{Segment, Value};

type Outcome = Result<Value, Reason>;

/// Memory for one compiled regular expression, in bytes.
const PATTERN_BYTES: usize = 1024 * 1024;

/// `value.name(arguments)`. `limit` is the most bytes that the result may have.
pub(crate) fn call(value: &Value, name: &str, arguments: &[Value], limit: usize) -> Outcome {
    match (value, name, arguments) {
        (_, "toString", []) if !matches!(value, Value::Secret(_)) => {
            value.text().map(Value::String).ok_or_else(|| secret(name))
        }
        (_, "equals", [other]) => crate::operator::binary(crate::ast::Binary::Equal, value, other),
        (Value::Secret(text), _, _) => on_secret(text, name, arguments),
        (Value::String(text), _, _) => on_string(text, name, arguments, limit),
        (Value::List(items), _, _) => on_list(value, items, name, arguments),
        (Value::Map(map), "get" | "getOrDefault", [key, default @ ..]) if default.len() < 2 => {
            let key = text_argument(name, key)?;
            Ok(map
                .get(&key)
                .or(default.first())
                .cloned()
                .unwrap_or(Value::Null))
        }
        (Value::Map(map), "size", []) => count(map.len()),
        (Value::Map(map), "isEmpty", []) => Ok(Value::Bool(map.is_empty())),
        (Value::Map(map), "containsKey", [key]) => {
            Ok(Value::Bool(map.contains_key(&text_argument(name, key)?)))
        }
        (Value::Map(map), "keySet", []) => Ok(Value::List(
            map.keys().cloned().map(Value::String).collect(),
        )),
        (Value::Map(map), "values", []) => Ok(Value::List(map.values().cloned().collect())),
        _ => Err(missing(value, name, arguments)),
    }
}

fn missing(value: &Value, name: &str, arguments: &[Value]) -> Reason {
    let kinds: Vec<_> = arguments.iter().map(Value::kind).collect();
    if kinds.is_empty() {
        Reason::NoMethod {
            subject: value.kind().to_owned(),
            name: format!("{name}()"),
        }
    } else {
        Reason::Operation {
            operation: format!("{name}()"),
            problem: format!("{} has none that takes {}", value.kind(), kinds.join(", ")),
        }
    }
}

fn on_secret(text: &SecretText, name: &str, arguments: &[Value]) -> Outcome {
    match (name, arguments) {
        ("toString", []) => Ok(Value::Secret(text.clone())),
        ("concat", [other]) => {
            let mut joined = text.clone();
            crate::operator::append(&mut joined, other, name)?;
            Ok(Value::from(joined))
        }
        _ => Err(secret(name)),
    }
}

fn secret(name: &str) -> Reason {
    Reason::Secret {
        operation: format!("{name}()"),
    }
}

fn on_list(value: &Value, items: &[Value], name: &str, arguments: &[Value]) -> Outcome {
    match (name, arguments) {
        ("get", [index]) => {
            let index = position(name, index)?;
            items.get(index).cloned().ok_or_else(|| Reason::Operation {
                operation: format!("get({index})"),
                problem: format!("the list has {} items", items.len()),
            })
        }
        ("size", []) => count(items.len()),
        ("isEmpty", []) => Ok(Value::Bool(items.is_empty())),
        ("contains", [item]) => crate::operator::binary(crate::ast::Binary::Matches, item, value),
        ("indexOf", [item]) => {
            let found = items.iter().position(|other| other == item);
            Ok(Value::Int(found.map_or(-1, |index| index as i64)))
        }
        _ => Err(missing(value, name, arguments)),
    }
}

fn on_string(text: &str, name: &str, arguments: &[Value], limit: usize) -> Outcome {
    match arguments {
        [] => without_arguments(text, name),
        [Value::Secret(other)] if name == "concat" => {
            let mut joined = SecretText::plain(text);
            joined.push(other);
            Ok(Value::from(joined))
        }
        [a] => with_one(text, name, a),
        [a, b] => with_two(text, name, a, b, limit),
        _ => Err(missing(&Value::from(text), name, arguments)),
    }
}

fn without_arguments(text: &str, name: &str) -> Outcome {
    Ok(match name {
        "toLowerCase" => Value::String(text.to_lowercase()),
        "toUpperCase" => Value::String(text.to_uppercase()),
        "trim" | "strip" => Value::from(text.trim()),
        "length" | "size" => return count(text.chars().count()),
        "isEmpty" => Value::Bool(text.is_empty()),
        "isBlank" => Value::Bool(text.trim().is_empty()),
        _ => return Err(missing(&Value::from(text), name, &[])),
    })
}

fn with_one(text: &str, name: &str, argument: &Value) -> Outcome {
    if matches!(name, "substring" | "charAt") {
        let index = position(name, argument)?;
        let end = if name == "charAt" {
            Some(index + 1)
        } else {
            None
        };
        return substring(name, text, index, end);
    }
    if !ONE_TEXT.contains(&name) {
        return Err(missing(
            &Value::from(text),
            name,
            std::slice::from_ref(argument),
        ));
    }
    let other = text_argument(name, argument)?;
    Ok(match name {
        "contains" => Value::Bool(text.contains(&other)),
        "startsWith" => Value::Bool(text.starts_with(&other)),
        "endsWith" => Value::Bool(text.ends_with(&other)),
        "equalsIgnoreCase" => Value::Bool(text.to_lowercase() == other.to_lowercase()),
        "matches" => Value::Bool(whole_pattern(&other)?.is_match(text)),
        "indexOf" => index_of(text, text.find(&other)),
        "lastIndexOf" => index_of(text, text.rfind(&other)),
        "concat" => Value::String(format!("{text}{other}")),
        _ => Value::List(split(text, &other, 0)?),
    })
}

const ONE_TEXT: [&str; 9] = [
    "contains",
    "startsWith",
    "endsWith",
    "equalsIgnoreCase",
    "matches",
    "indexOf",
    "lastIndexOf",
    "concat",
    "split",
];

fn with_two(text: &str, name: &str, a: &Value, b: &Value, limit: usize) -> Outcome {
    match name {
        "substring" => substring(name, text, position(name, a)?, Some(position(name, b)?)),
        "replace" => {
            let (from, to) = (text_argument(name, a)?, text_argument(name, b)?);
            let count = text.matches(&from).count();
            bounded(count.saturating_mul(to.len()), limit)?;
            Ok(Value::String(text.replace(&from, &to)))
        }
        "replaceAll" => replace_pattern(text, a, b, name, usize::MAX, limit),
        "replaceFirst" => replace_pattern(text, a, b, name, 1, limit),
        "split" => {
            let parts = position(name, b)?;
            Ok(Value::List(split(text, &text_argument(name, a)?, parts)?))
        }
        _ => Err(missing(&Value::from(text), name, &[a.clone(), b.clone()])),
    }
}

fn bounded(bytes: usize, limit: usize) -> Result<(), Reason> {
    if bytes > limit {
        return Err(Reason::Limit {
            limit,
            unit: "bytes in one value",
        });
    }
    Ok(())
}

fn replace_pattern(
    text: &str,
    a: &Value,
    b: &Value,
    name: &str,
    times: usize,
    limit: usize,
) -> Outcome {
    let regex = pattern(&text_argument(name, a)?)?;
    let replacement = java_replacement(&text_argument(name, b)?);
    let mut out = String::new();
    let mut end = 0;
    for captures in regex.captures_iter(text).take(times) {
        let Some(whole) = captures.get(0) else { break };
        out.push_str(&text[end..whole.start()]);
        captures.expand(&replacement, &mut out);
        end = whole.end();
        bounded(out.len(), limit)?;
    }
    out.push_str(&text[end..]);
    Ok(Value::String(out))
}

/// Java's `split`: a regular expression; without a limit, empty strings at the end are dropped.
fn split(text: &str, separator: &str, parts: usize) -> Result<Vec<Value>, Reason> {
    let literal = !separator.contains(|c: char| "\\.[]{}()*+-?^$|".contains(c));
    let mut pieces: Vec<&str> = match (literal, parts) {
        (true, 0) => text.split(separator).collect(),
        (true, n) => text.splitn(n, separator).collect(),
        (false, 0) => pattern(separator)?.split(text).collect(),
        (false, n) => pattern(separator)?.splitn(text, n).collect(),
    };
    if separator.is_empty() && pieces.len() > 1 {
        pieces.remove(0);
    }
    if parts == 0 {
        while pieces.len() > 1 && pieces.last().is_some_and(|piece| piece.is_empty()) {
            pieces.pop();
        }
    }
    Ok(pieces.into_iter().map(Value::from).collect())
}

fn index_of(text: &str, byte: Option<usize>) -> Value {
    let index = byte
        .and_then(|byte| text.get(..byte))
        .map(|before| before.chars().count());
    Value::Int(index.map_or(-1, |index| index as i64))
}

fn substring(name: &str, text: &str, start: usize, end: Option<usize>) -> Outcome {
    let byte = |index: usize| {
        text.char_indices()
            .map(|(byte, _)| byte)
            .chain([text.len()])
            .nth(index)
    };
    let end_byte = end.map_or(Some(text.len()), byte);
    let slice = byte(start).zip(end_byte).and_then(|(a, b)| text.get(a..b));
    slice.map(Value::from).ok_or_else(|| Reason::Operation {
        operation: format!("{name}()"),
        problem: format!(
            "position {} is outside of a string of {} characters",
            end.filter(|end| *end >= start).unwrap_or(start),
            text.chars().count()
        ),
    })
}

fn count(count: usize) -> Outcome {
    Ok(Value::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

/// A value that is used as text: no lists, maps, nulls or secrets.
pub(crate) fn text_argument(name: &str, value: &Value) -> Result<String, Reason> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => Ok(value.text().unwrap_or_default()),
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

/// Java's replacement text in the form of the `regex` crate: `$1` ends with its digits, and a backslash
/// makes the next character literal.
fn java_replacement(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('$') => out.push_str("$$"),
                Some(other) => out.push(other),
                None => {}
            },
            '$' => {
                out.push_str("${");
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    out.push(digit);
                }
                out.push('}');
            }
            other => out.push(other),
        }
    }
    out
}

/// A pattern that must match a text from its first to its last character.
pub(crate) fn whole_pattern(regex: &str) -> Result<Regex, Reason> {
    compile(regex, &format!("^(?:{regex})$"))
}

pub(crate) fn pattern(regex: &str) -> Result<Regex, Reason> {
    compile(regex, regex)
}

fn compile(shown: &str, regex: &str) -> Result<Regex, Reason> {
    let built = RegexBuilder::new(regex)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .build();
    built.map_err(|error| Reason::Operation {
        operation: format!("the regular expression {shown:.80?}"),
        problem: match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            _ => "it is not well formed, or uses look-around or back-references".to_owned(),
        },
    })
}
