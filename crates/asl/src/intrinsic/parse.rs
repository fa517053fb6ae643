//! Reads the text of a call.

use serde_json::Value;

use super::{Argument, Call, Function};
use crate::query::Query;

/// Deepest nesting of calls (Developer Guide: "You can nest up to 10 intrinsic functions").
const DEEPEST: usize = 10;
/// Longest text of a call.
const LONGEST: usize = 32_768;

/// A whole text as a call.
pub(super) fn call(text: &str) -> Option<Call> {
    if text.len() > LONGEST {
        return None;
    }
    call_at(text.trim(), 1)
}

fn call_at(text: &str, depth: usize) -> Option<Call> {
    if depth > DEEPEST {
        return None;
    }
    let (name, rest) = text.strip_prefix("States.")?.split_once('(')?;
    let function = Function::named(name)?;
    let inner = rest.strip_suffix(')')?;
    let arguments = split(inner)?
        .into_iter()
        .map(|argument| self::argument(argument.trim(), depth))
        .collect::<Option<Vec<_>>>()?;
    let (fewest, most) = function.takes();
    (fewest..=most).contains(&arguments.len()).then(|| Call {
        source: text.to_owned(),
        function,
        arguments,
    })
}

/// The texts between the commas that stand outside quotes and brackets.
fn split(inner: &str) -> Option<Vec<&str>> {
    if inner.trim().is_empty() {
        return Some(Vec::new());
    }
    let (mut parts, mut start, mut open) = (Vec::new(), 0, 0_usize);
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => loop {
                match chars.next()?.1 {
                    // In a path's `['…']` a backslash is a character; a quote never follows it there.
                    '\\' => {
                        chars.next()?;
                    }
                    '\'' => break,
                    _ => {}
                }
            },
            '(' | '[' => open += 1,
            ')' | ']' => open = open.checked_sub(1)?,
            ',' if open == 0 => {
                parts.push(inner.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(inner.get(start..)?);
    (open == 0).then_some(parts)
}

fn argument(text: &str, depth: usize) -> Option<Argument> {
    if let Some(quoted) = text.strip_prefix('\'') {
        let text = quoted.strip_suffix('\'')?;
        return is_text(text).then(|| Argument::Text(text.to_owned()));
    }
    if text.starts_with("States.") {
        return Some(Argument::Query(Query::of_call(call_at(text, depth + 1)?)));
    }
    if text.starts_with('$') {
        return Query::path(text).map(Argument::Query);
    }
    serde_json::from_str(text)
        .ok()
        .filter(|value: &Value| !value.is_string() && !value.is_array() && !value.is_object())
        .map(Argument::Literal)
}

/// Whether the text between quotes is sound: a backslash stands before `'`, `{`, `}` or `\` only
/// (<https://states-language.net>, "Intrinsic Functions"), and no quote stands alone.
fn is_text(text: &str) -> bool {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => return false,
            '\\' if !matches!(chars.next(), Some('\'' | '{' | '}' | '\\')) => return false,
            _ => {}
        }
    }
    true
}

/// The text that escapes stand for.
pub(super) fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(if c == '\\' {
            chars.next().unwrap_or(c)
        } else {
            c
        });
    }
    plain
}
