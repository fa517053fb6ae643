//! Operands of expressions: literals, names and what is reached from them.

use winnow::prelude::*;
use winnow::stream::Stream;
use winnow::token::take_while;

use super::{
    Input, Parsed, chain, choice, eat, fault, name_rest, name_start, nested, rest, skip, spaces,
};
use crate::ast::{Access, Builtin, Expr, Part};
use crate::value::Value;

/// An operand with what is reached from it.
pub(super) fn postfix(i: &mut Input<'_>) -> Parsed<Expr> {
    let rest = rest(i);
    if rest.starts_with(name_start) {
        let start = i.checkpoint();
        let name = name(i)?;
        if let [Part::Text(word)] = name.as_slice() {
            if let Some(expr) = keyword(i, word)? {
                return accesses(i, Vec::new()).map(|steps| of(expr, steps));
            }
            if RESERVED.contains(&word.as_str()) {
                i.reset(&start);
                return Err(fault(i, "an operand"));
            }
        }
        return Ok(Expr::Path(accesses(i, vec![Access::Property(name)])?));
    }
    let base = operand(i)?;
    let steps = accesses(i, Vec::new())?;
    Ok(of(base, steps))
}

/// Words that are operators and so never begin a path.
const RESERVED: [&str; 12] = [
    "or", "and", "eq", "ne", "lt", "gt", "le", "ge", "div", "mod", "not", "new",
];

fn of(base: Expr, steps: Vec<Access>) -> Expr {
    if steps.is_empty() {
        base
    } else {
        Expr::Of(Box::new(base), steps)
    }
}

fn keyword(i: &mut Input<'_>, word: &str) -> Parsed<Option<Expr>> {
    let builtin = match word {
        "true" => return Ok(Some(Expr::Literal(Value::Bool(true)))),
        "false" => return Ok(Some(Expr::Literal(Value::Bool(false)))),
        "null" => return Ok(Some(Expr::Literal(Value::Null))),
        "empty" => Builtin::Empty,
        "size" => Builtin::Size,
        _ => return Ok(None),
    };
    if !rest(i).starts_with('(') {
        return Ok(None);
    }
    let offset = i.checkpoint();
    let arguments = bracketed(i, '(', ')')?;
    match <[Expr; 1]>::try_from(arguments) {
        Ok([argument]) => Ok(Some(Expr::Call(builtin, Box::new(argument)))),
        Err(_) => {
            i.reset(&offset);
            Err(fault(i, "one argument in parentheses"))
        }
    }
}

fn operand(i: &mut Input<'_>) -> Parsed<Expr> {
    let rest = rest(i);
    let unescaped = rest.trim_start_matches('\\');
    match rest.chars().next() {
        Some('<') if rest.starts_with("<+") => Ok(Expr::Nested(Box::new(nested(i)?))),
        Some('0'..='9') => number(i),
        Some('(') => parenthesised(i),
        Some('[') => Ok(Expr::List(bracketed(i, '[', ']')?)),
        Some('{') => map(i),
        _ if unescaped.starts_with(['"', '\'']) => string(i).map(literal_text),
        _ => Err(fault(i, "an operand")),
    }
}

fn literal_text(parts: Vec<Part>) -> Expr {
    match parts.as_slice() {
        [] => Expr::Literal(Value::from("")),
        [Part::Text(text)] => Expr::Literal(Value::from(text.as_str())),
        _ => Expr::Text(parts),
    }
}

fn number(i: &mut Input<'_>) -> Parsed<Expr> {
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

fn parenthesised(i: &mut Input<'_>) -> Parsed<Expr> {
    skip(i, 1);
    i.state.brackets += 1;
    let expr = choice(i)?;
    close(i, ')')?;
    Ok(expr)
}

fn close(i: &mut Input<'_>, bracket: char) -> Parsed<()> {
    spaces(i)?;
    if !rest(i).starts_with(bracket) {
        return Err(fault(
            i,
            match bracket {
                ')' => "an operator, `,` or `)`",
                ']' => "an operator, `,` or `]`",
                _ => "an operator, `,` or `}`",
            },
        ));
    }
    skip(i, 1);
    i.state.brackets -= 1;
    Ok(())
}

/// A list of expressions in brackets, the stream standing at the opening one.
fn bracketed(i: &mut Input<'_>, open: char, shut: char) -> Parsed<Vec<Expr>> {
    skip(i, open.len_utf8());
    i.state.brackets += 1;
    let mut items = Vec::new();
    spaces(i)?;
    while !rest(i).starts_with(shut) {
        items.push(choice(i)?);
        spaces(i)?;
        if !eat(i, ",") {
            break;
        }
        spaces(i)?;
    }
    close(i, shut)?;
    Ok(items)
}

fn map(i: &mut Input<'_>) -> Parsed<Expr> {
    skip(i, 1);
    i.state.brackets += 1;
    let mut entries = Vec::new();
    spaces(i)?;
    if eat(i, ":") {
        spaces(i)?;
    }
    while !rest(i).starts_with('}') {
        let key = chain(i, 4)?;
        spaces(i)?;
        if !eat(i, ":") {
            return Err(fault(i, "`:` and the value"));
        }
        entries.push((key, choice(i)?));
        spaces(i)?;
        if !eat(i, ",") {
            break;
        }
        spaces(i)?;
    }
    close(i, '}')?;
    Ok(Expr::Map(entries))
}

/// A quoted string. Quotes may be escaped as a whole (`\"yes\"`), as they are in YAML and JSON that
/// was escaped once more; then the string is literal up to the same escaped quote.
fn string(i: &mut Input<'_>) -> Parsed<Vec<Part>> {
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

/// A name, parts of which may be expressions that touch it: `Group_<+strategy.iteration>`.
fn name(i: &mut Input<'_>) -> Parsed<Vec<Part>> {
    let mut parts = Vec::new();
    loop {
        let word = take_while(0.., name_rest).parse_next(i)?;
        if !word.is_empty() {
            parts.push(Part::Text(word.to_owned()));
        } else if rest(i).starts_with("<+") {
            parts.push(Part::Expression(nested(i)?));
        } else {
            return Ok(parts);
        }
    }
}

fn accesses(i: &mut Input<'_>, mut steps: Vec<Access>) -> Parsed<Vec<Access>> {
    loop {
        let rest = rest(i);
        if rest.starts_with('[') {
            let offset = *i;
            let index = bracketed(i, '[', ']')?;
            match <[Expr; 1]>::try_from(index) {
                Ok([index]) => steps.push(Access::Index(index)),
                Err(_) => return Err(fault(&offset, "one index in brackets")),
            }
        } else if rest.starts_with('.') {
            skip(i, 1);
            let property = property(i)?;
            steps.push(call(i, property)?);
        } else {
            return Ok(steps);
        }
    }
}

fn property(i: &mut Input<'_>) -> Parsed<Vec<Part>> {
    let parts = if rest(i).starts_with(['"', '\'']) {
        let parts = string(i)?;
        return Ok(if parts.is_empty() {
            vec![Part::Text(String::new())]
        } else {
            parts
        });
    } else {
        name(i)?
    };
    if parts.is_empty() {
        return Err(fault(i, "the name of a property or method"));
    }
    Ok(parts)
}

/// The property, or the call if an argument list follows.
fn call(i: &mut Input<'_>, property: Vec<Part>) -> Parsed<Access> {
    match property.as_slice() {
        [Part::Text(method)] if rest(i).starts_with('(') => {
            let method = method.clone();
            Ok(Access::Method(method, bracketed(i, '(', ')')?))
        }
        _ => Ok(Access::Property(property)),
    }
}
