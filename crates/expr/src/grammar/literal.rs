//! Numbers and strings.

use winnow::prelude::*;
use winnow::stream::Stream;
use winnow::token::take_while;

use super::{Input, Parsed, fault, name_rest, nested, rest, skip};
use crate::ast::{Expr, Part};
use crate::value::Value;

pub(super) fn literal_text(parts: Vec<Part>) -> Expr {
    match parts.as_slice() {
        [] => Expr::Literal(Value::from("")),
        [Part::Text(text)] => Expr::Literal(Value::from(text.as_str())),
        _ => Expr::Text(parts),
    }
}

pub(super) fn number(i: &mut Input<'_>) -> Parsed<Expr> {
    let start = i.checkpoint();
    let whole = take_while(1.., '0'..='9').parse_next(i)?;
    let rest = rest(i);
    let fraction = rest.strip_prefix('.').map_or(0, digits);
    let mut length = if fraction > 0 { fraction + 1 } else { 0 };
    let exponent = exponent(&rest[length..]);
    length += exponent;
    skip(i, length);
    if super::rest(i).starts_with(name_rest) {
        return Err(fault(i, "an operator behind a number"));
    }
    let float = format!("{whole}{}", &rest[..length]);
    let value = if length == 0 {
        whole.parse().ok().map(Value::Int)
    } else {
        float
            .parse()
            .ok()
            .filter(|f: &f64| f.is_finite())
            .map(Value::Float)
    };
    value.map(Expr::Literal).ok_or_else(|| {
        i.reset(&start);
        fault(i, "a number of 64 bits")
    })
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Length of `e10`, `E-3`, … at the start of `text`, or 0.
fn exponent(text: &str) -> usize {
    let Some(after) = text.strip_prefix(['e', 'E']) else {
        return 0;
    };
    let sign = usize::from(after.starts_with(['+', '-']));
    match digits(&after[sign..]) {
        0 => 0,
        count => 1 + sign + count,
    }
}

/// A quoted string. Quotes may be escaped as a whole (`\"yes\"`), as they are in YAML and JSON that
/// was escaped once more; then the string is literal up to the same escaped quote.
pub(super) fn string(i: &mut Input<'_>) -> Parsed<Vec<Part>> {
    let start = *i;
    let escapes = take_while(0.., '\\').parse_next(i)?;
    let quote = rest(i).chars().next().unwrap_or('"');
    skip(i, quote.len_utf8());
    let end = format!("{escapes}{quote}");
    let mut parts = Vec::new();
    let mut text = String::new();
    loop {
        let rest = rest(i);
        let Some(c) = rest.chars().next() else {
            return Err(fault(&start, "a string that is closed by the same quote"));
        };
        if rest.starts_with(&end) {
            skip(i, end.len());
            flush(&mut text, &mut parts);
            return Ok(parts);
        }
        if rest.starts_with("<+") {
            flush(&mut text, &mut parts);
            parts.push(Part::Expression(nested(i)?));
        } else if c == '\\' && escapes.is_empty() {
            let (unescaped, length) = unescape(rest, quote);
            text.push_str(&unescaped);
            skip(i, length);
        } else {
            text.push(c);
            skip(i, c.len_utf8());
        }
    }
}

fn flush(text: &mut String, parts: &mut Vec<Part>) {
    if !text.is_empty() {
        parts.push(Part::Text(std::mem::take(text)));
    }
}

/// What a backslash sequence stands for, and its length. One that JEXL does not know stays as it is, so
/// that regular expressions can be written.
fn unescape(text: &str, quote: char) -> (String, usize) {
    let mut chars = text.chars().skip(1);
    let known = match chars.next() {
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some('\\') => '\\',
        Some(c) if c == quote => quote,
        Some('u') => {
            let hex = text
                .get(2..6)
                .and_then(|hex| u32::from_str_radix(hex, 16).ok());
            return match hex.and_then(char::from_u32) {
                Some(c) => (c.to_string(), 6),
                None => ("\\".to_owned(), 1),
            };
        }
        _ => return ("\\".to_owned(), 1),
    };
    (known.to_string(), 2)
}
