//! Methods of strings: Java's `String`, without what leads to classes, bytes or locales
//! (docs: variables-and-expressions/expressions-java-methods).

use super::pattern::{replace, split};
use super::{Outcome, count, missing, position, problem, text_argument};
use crate::error::Reason;
use crate::limits::Meter;
use crate::secret::SecretText;
use crate::value::Value;

pub(super) fn call(text: &str, name: &str, arguments: &[Value], meter: &mut Meter<'_>) -> Outcome {
    let found = match arguments {
        [] => plain(text, name, meter)?,
        [Value::Secret(other)] if name == "concat" => {
            let mut joined = SecretText::plain(text);
            joined.push(other);
            Some(Value::from(joined))
        }
        [a] => match positioned(text, name, a, None)? {
            None => with_text(text, name, a, meter)?,
            found => found,
        },
        [a, b] => match positioned(text, name, a, Some(b))? {
            None => with_two(text, name, a, b, meter)?,
            found => found,
        },
        [ignore, offset, other, rest @ ..] if name == "regionMatches" => {
            region(text, ignore, (offset, other), rest)?
        }
        _ => None,
    };
    match found {
        Some(value) => Ok(value),
        None if name == "join" => join(text, arguments, meter),
        None => Err(missing(&Value::from(text), name, arguments)),
    }
}

type Found = Result<Option<Value>, Reason>;

fn plain(text: &str, name: &str, meter: &mut Meter<'_>) -> Found {
    Ok(Some(match name {
        "toLowerCase" => Value::String(text.to_lowercase()),
        "toUpperCase" => Value::String(text.to_uppercase()),
        "trim" | "strip" => Value::from(text.trim()),
        "stripLeading" => Value::from(text.trim_start()),
        "stripTrailing" => Value::from(text.trim_end()),
        "intern" => Value::from(text),
        "length" | "size" => count(text.chars().count()),
        "isEmpty" => Value::Bool(text.is_empty()),
        "isBlank" => Value::Bool(text.trim().is_empty()),
        "hashCode" => Value::Int(hash(text).into()),
        "lines" | "toCharArray" => {
            let pieces: Vec<Value> = match name {
                "lines" => text.lines().map(Value::from).collect(),
                _ => text.chars().map(|c| Value::String(c.into())).collect(),
            };
            meter.spend(pieces.len())?;
            Value::List(pieces)
        }
        _ => return Ok(None),
    }))
}

/// Java's hash of a string, over its UTF-16.
fn hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

/// Methods of one or two positions.
fn positioned(text: &str, name: &str, a: &Value, b: Option<&Value>) -> Found {
    let start = match name {
        "substring" | "subSequence" | "charAt" | "codePointAt" => position(name, a)?,
        _ => return Ok(None),
    };
    match (name, b) {
        ("substring" | "subSequence", Some(end)) => {
            substring(name, text, start, Some(position(name, end)?)).map(Some)
        }
        ("substring", None) => substring(name, text, start, None).map(Some),
        ("charAt", None) => substring(name, text, start, Some(start + 1)).map(Some),
        ("codePointAt", None) => match text.chars().nth(start) {
            Some(c) => Ok(Some(Value::Int(u32::from(c).into()))),
            None => Err(outside(name, text, start)),
        },
        _ => Ok(None),
    }
}

fn with_text(text: &str, name: &str, argument: &Value, meter: &mut Meter<'_>) -> Found {
    if name == "repeat" {
        let times = position(name, argument)?;
        meter.bounded(text.len().saturating_mul(times))?;
        return Ok(Some(Value::String(text.repeat(times))));
    }
    if !ONE_TEXT.contains(&name) {
        return Ok(None);
    }
    let other = text_argument(name, argument)?;
    Ok(Some(match name {
        "contains" => Value::Bool(text.contains(&other)),
        "contentEquals" => Value::Bool(text == other),
        "startsWith" => Value::Bool(text.starts_with(&other)),
        "endsWith" => Value::Bool(text.ends_with(&other)),
        "equalsIgnoreCase" => Value::Bool(text.to_lowercase() == other.to_lowercase()),
        "compareTo" => compared(text, &other),
        "compareToIgnoreCase" => compared(&text.to_lowercase(), &other.to_lowercase()),
        "matches" => Value::Bool(meter.search(text, &other, true)?.regex.is_match(text)),
        "indexOf" => index_of(text, text.find(&other)),
        "lastIndexOf" => index_of(text, text.rfind(&other)),
        "concat" => Value::String(format!("{text}{other}")),
        _ => Value::List(split(text, &other, 0, meter)?),
    }))
}

const ONE_TEXT: [&str; 12] = [
    "contains",
    "contentEquals",
    "startsWith",
    "endsWith",
    "equalsIgnoreCase",
    "compareTo",
    "compareToIgnoreCase",
    "matches",
    "indexOf",
    "lastIndexOf",
    "concat",
    "split",
];

/// Java's `compareTo`: the difference of the first units that differ, or of the lengths.
fn compared(a: &str, b: &str) -> Value {
    let different = a.encode_utf16().zip(b.encode_utf16()).find(|(a, b)| a != b);
    let length = |text: &str| text.encode_utf16().count() as i64;
    Value::Int(match different {
        Some((a, b)) => i64::from(a) - i64::from(b),
        None => length(a) - length(b),
    })
}

fn with_two(text: &str, name: &str, a: &Value, b: &Value, meter: &mut Meter<'_>) -> Found {
    Ok(Some(match name {
        "replace" => {
            let (from, to) = (text_argument(name, a)?, text_argument(name, b)?);
            let count = text.matches(&from).count();
            meter.bounded(count.saturating_mul(to.len()))?;
            Value::String(text.replace(&from, &to))
        }
        "replaceAll" | "replaceFirst" => replace(text, (a, b), name, meter)?,
        "split" => {
            let parts = position(name, b)?;
            Value::List(split(text, &text_argument(name, a)?, parts, meter)?)
        }
        "startsWith" => {
            let (other, offset) = (text_argument(name, a)?, position(name, b)?);
            let rest = byte(text, offset).and_then(|byte| text.get(byte..));
            Value::Bool(rest.is_some_and(|rest| rest.starts_with(&other)))
        }
        "indexOf" => {
            let (other, from) = (text_argument(name, a)?, position(name, b)?);
            let start = byte(text, from).unwrap_or(text.len());
            let found = text.get(start..).and_then(|rest| rest.find(&other));
            index_of(text, found.map(|found| start + found))
        }
        "lastIndexOf" => {
            let (other, from) = (text_argument(name, a)?, position(name, b)?);
            let last = byte(text, from).unwrap_or(text.len());
            let mut end = last.saturating_add(other.len()).min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            index_of(text, text.get(..end).and_then(|head| head.rfind(&other)))
        }
        _ => return Ok(None),
    }))
}

/// `regionMatches(offset, other, otherOffset, length)`, optionally with `ignoreCase` before.
fn region(text: &str, first: &Value, (a, b): (&Value, &Value), rest: &[Value]) -> Found {
    let name = "regionMatches";
    let (fold, offset, other, from, length) = match (first, rest) {
        (Value::Bool(fold), [from, length]) => (*fold, a, b, from, length),
        (offset, [length]) => (false, offset, a, b, length),
        _ => return Ok(None),
    };
    let other = text_argument(name, other)?;
    let length = position(name, length)?;
    let cut = |text: &str, start| {
        let start = position(name, start)?;
        let part: String = text.chars().skip(start).take(length).collect();
        Ok::<_, Reason>(if fold { part.to_lowercase() } else { part })
    };
    let (a, b) = (cut(text, offset)?, cut(&other, from)?);
    let whole = a.chars().count() == length;
    Ok(Some(Value::Bool(whole && a == b)))
}

/// Java's `String.join`: the first argument, whatever the method was called on, stands between the others.
fn join(text: &str, arguments: &[Value], meter: &mut Meter<'_>) -> Outcome {
    let (separator, items) = match arguments {
        [separator, Value::List(items)] => (separator, items.as_slice()),
        [separator, items @ ..] if !items.is_empty() => (separator, items),
        _ => return Err(missing(&Value::from(text), "join", arguments)),
    };
    let separator = text_argument("join", separator)?;
    let mut out = SecretText::default();
    let mut bytes = 0;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_plain(&separator);
            bytes += separator.len();
        }
        bytes += crate::operator::append(&mut out, item, "join()")?;
        meter.bounded(bytes)?;
    }
    Ok(Value::from(out))
}

fn index_of(text: &str, byte: Option<usize>) -> Value {
    let before = byte.and_then(|byte| text.get(..byte));
    before.map_or(Value::Int(-1), |before| count(before.chars().count()))
}

/// Where the character at a position begins; the end of the text is a position too.
fn byte(text: &str, index: usize) -> Option<usize> {
    let starts = text.char_indices().map(|(byte, _)| byte);
    starts.chain([text.len()]).nth(index)
}

fn substring(name: &str, text: &str, start: usize, end: Option<usize>) -> Outcome {
    let end_byte = end.map_or(Some(text.len()), |end| byte(text, end));
    let slice = byte(text, start)
        .zip(end_byte)
        .and_then(|(a, b)| text.get(a..b));
    slice.map(Value::from).ok_or_else(|| {
        let position = end.filter(|end| *end >= start).unwrap_or(start);
        outside(name, text, position)
    })
}

fn outside(name: &str, text: &str, position: usize) -> Reason {
    problem(
        name,
        format!(
            "position {position} is outside of a string of {} characters",
            text.chars().count()
        ),
    )
}
