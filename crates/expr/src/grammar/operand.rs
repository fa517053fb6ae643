//! Operands of expressions: literals, names and what is reached from them.

use winnow::prelude::*;
use winnow::stream::Stream;
use winnow::token::take_while;

use super::literal::{literal_text, number, string};
use super::{
    Input, Parsed, chain, choice, deeper, eat, fault, name_rest, name_start, nested, rest, skip,
    spaces,
};
use crate::ast::{Access, Builtin, Expr, Part, Path};
use crate::method::index_segment;
use crate::value::{Segment, Value};

/// An operand with what is reached from it.
pub(super) fn postfix(i: &mut Input<'_>) -> Parsed<Expr> {
    let rest = rest(i);
    if rest.starts_with("${") {
        return Err(fault(
            i,
            "an operand (`${…}` is how Harness FirstGen wrote `<+…>`)",
        ));
    }
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
        let first = call(i, name)?;
        return accesses(i, vec![first]).map(path);
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

/// A path, the part of it that is known cut off so that it can be looked up as it is.
fn path(steps: Vec<Access>) -> Expr {
    let mut head = Vec::new();
    let mut steps = steps.into_iter().peekable();
    while let Some(Access::Known(segment)) = steps.next_if(|step| matches!(step, Access::Known(_)))
    {
        head.push(segment);
    }
    let steps = steps.collect();
    Expr::Path(Box::new(Path { head, steps }))
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
        return without_brackets(i, builtin);
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

/// `empty name` and `size name`, as JEXL has them too. A name of its own if no operand follows.
fn without_brackets(i: &mut Input<'_>, builtin: Builtin) -> Parsed<Option<Expr>> {
    let start = i.checkpoint();
    let spaced = spaces(i);
    let next = rest(i);
    let word = next.split(|c| !name_rest(c)).next().unwrap_or_default();
    let operand = next.starts_with("<+") || next.starts_with(name_start);
    if !spaced || !operand || RESERVED.contains(&word) {
        i.reset(&start);
        return Ok(None);
    }
    let operand = deeper(i, postfix)?;
    Ok(Some(Expr::Call(builtin, Box::new(operand))))
}

fn operand(i: &mut Input<'_>) -> Parsed<Expr> {
    let rest = rest(i);
    let unescaped = rest.trim_start_matches('\\');
    match rest.chars().next() {
        Some('<') if rest.starts_with("<+") => Ok(Expr::Nested(Box::new(nested(i)?.expr))),
        Some('0'..='9') => number(i),
        Some('(') => parenthesised(i),
        Some('[') => Ok(Expr::List(bracketed(i, '[', ']')?)),
        Some('{') => map(i),
        _ if unescaped.starts_with(['"', '\'']) => string(i).map(literal_text),
        _ => Err(fault(i, "an operand")),
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
    spaces(i);
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
    spaces(i);
    while !rest(i).starts_with(shut) {
        items.push(choice(i)?);
        spaces(i);
        if !eat(i, ",") {
            break;
        }
        spaces(i);
    }
    close(i, shut)?;
    Ok(items)
}

fn map(i: &mut Input<'_>) -> Parsed<Expr> {
    skip(i, 1);
    i.state.brackets += 1;
    let mut entries = Vec::new();
    spaces(i);
    if eat(i, ":") {
        spaces(i);
    }
    while !rest(i).starts_with('}') {
        let key = deeper(i, |i| chain(i, 4))?;
        spaces(i);
        if !eat(i, ":") {
            return Err(fault(i, "`:` and the value"));
        }
        entries.push((key, choice(i)?));
        spaces(i);
        if !eat(i, ",") {
            break;
        }
        spaces(i);
    }
    close(i, '}')?;
    Ok(Expr::Map(entries))
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
                Ok([index]) => steps.push(indexed(index)),
                Err(_) => return Err(fault(&offset, "one index in brackets")),
            }
        } else if let Some(after) = rest.strip_prefix("?.")
            && after.starts_with(name_start)
        {
            skip(i, 2);
            let word = take_while(1.., name_rest).parse_next(i)?;
            steps.push(Access::Safe(Segment::Key(word.to_owned())));
        } else if rest.starts_with('.') {
            skip(i, 1);
            let property = property(i)?;
            steps.push(call(i, property)?);
        } else {
            return Ok(steps);
        }
    }
}

fn indexed(index: Expr) -> Access {
    if let Expr::Literal(value) = &index
        && let Ok(segment) = index_segment(value)
    {
        return Access::Known(segment);
    }
    Access::Index(index)
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
fn call(i: &mut Input<'_>, mut property: Vec<Part>) -> Parsed<Access> {
    match property.as_mut_slice() {
        [Part::Text(name)] => {
            let name = std::mem::take(name);
            if rest(i).starts_with('(') {
                return Ok(Access::Method(name, bracketed(i, '(', ')')?));
            }
            Ok(Access::Known(Segment::Key(name)))
        }
        _ => Ok(Access::Joined(property)),
    }
}
