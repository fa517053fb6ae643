//! Methods of strings that take a regular expression.

use super::{Outcome, text_argument};
use crate::error::Reason;
use crate::limits::Meter;
use crate::pattern::literal;
use crate::value::Value;

/// `replaceAll` and `replaceFirst`.
pub(super) fn replace(
    text: &str,
    (pattern, by): (&Value, &Value),
    name: &str,
    meter: &mut Meter<'_>,
) -> Outcome {
    let times = if name == "replaceFirst" {
        1
    } else {
        usize::MAX
    };
    let pattern = meter.search(text, &text_argument(name, pattern)?, false)?;
    let replacement = java_replacement(&text_argument(name, by)?);
    let mut out = String::new();
    let mut end = 0;
    for captures in pattern.regex.captures_iter(text).take(times) {
        let Some(whole) = captures.get(0) else { break };
        out.push_str(text.get(end..whole.start()).unwrap_or_default());
        captures.expand(&replacement, &mut out);
        end = whole.end();
        meter.bounded(out.len())?;
    }
    out.push_str(text.get(end..).unwrap_or_default());
    Ok(Value::String(out))
}

/// Java's `split`: a regular expression; without a limit, empty strings at the end are dropped.
pub(super) fn split(
    text: &str,
    separator: &str,
    parts: usize,
    meter: &mut Meter<'_>,
) -> Result<Vec<Value>, Reason> {
    let mut pieces: Vec<&str> = match (literal(separator), parts) {
        (Some(separator), 0) => text.split(separator).collect(),
        (Some(separator), n) => text.splitn(n, separator).collect(),
        (None, parts) => {
            let pattern = meter.search(text, separator, false)?;
            match parts {
                0 => pattern.regex.split(text).collect(),
                n => pattern.regex.splitn(text, n).collect(),
            }
        }
    };
    if separator.is_empty() && pieces.len() > 1 {
        pieces.remove(0);
    }
    // Where nothing was split, the text is the one piece, empty or not.
    if parts == 0 && pieces.len() > 1 {
        while pieces.last().is_some_and(|piece| piece.is_empty()) {
            pieces.pop();
        }
    }
    meter.spend(pieces.len())?;
    Ok(pieces.into_iter().map(Value::from).collect())
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
