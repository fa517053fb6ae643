//! JsonPath: the grammar.

use std::borrow::Cow;

use crate::ast::Binary;
use crate::value::Value;

/// A step of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step<'p> {
    Name(Cow<'p, str>),
    Position(i64),
    /// Several names or positions.
    Union(Vec<Step<'p>>),
    Slice(Option<i64>, Option<i64>),
    Every,
    /// The items that pass all tests of one of the groups.
    Filter(Vec<Vec<Test<'p>>>),
    /// Whatever follows, at any depth.
    Anywhere,
}

/// `@.path`, or `@.path == literal`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Test<'p> {
    pub(super) steps: Vec<Step<'p>>,
    pub(super) against: Option<(Binary, Value)>,
}

/// The steps of a path; `None` if it is none.
pub(super) fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    let mut rest = path.trim();
    rest = rest.strip_prefix('$').unwrap_or(rest);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("..") {
            steps.push(Step::Anywhere);
            if after.is_empty() {
                return None;
            }
            rest = after;
            if rest.starts_with('[') {
                continue;
            }
        } else if let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = bracket(inner)?;
            steps.push(step);
            rest = after;
            continue;
        }
        let inner = rest.strip_prefix('.').unwrap_or(rest);
        let end = inner.find(['.', '[']).unwrap_or(inner.len());
        let (name, after) = inner.split_at_checked(end)?;
        match name {
            "" => return None,
            "*" => steps.push(Step::Every),
            name => steps.push(Step::Name(name.into())),
        }
        rest = after;
    }
    Some(steps)
}

/// What stands in brackets, and what follows them.
fn bracket(text: &str) -> Option<(Step<'_>, &str)> {
    let mut items = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(inner) = rest.strip_prefix("?(")
            && items.is_empty()
        {
            let (tests, after) = filter(inner)?;
            return Some((Step::Filter(tests), after.trim_start().strip_prefix(']')?));
        }
        let quote = rest.chars().next().filter(|c| "\"'".contains(*c));
        if let Some(quote) = quote {
            let (name, after) = rest.strip_prefix(quote)?.split_once(quote)?;
            items.push(Step::Name(name.into()));
            rest = after.trim_start();
        } else {
            let end = rest.find([',', ']'])?;
            items.push(bare(rest.get(..end)?.trim())?);
            rest = rest.get(end..)?;
        }
        if let Some(after) = rest.strip_prefix(']') {
            let single = items.len() == 1;
            let step = if single {
                items.pop()?
            } else {
                Step::Union(items)
            };
            return Some((step, after));
        }
        rest = rest.strip_prefix(',')?;
    }
}

fn bare(text: &str) -> Option<Step<'_>> {
    if text.is_empty() || text.starts_with(['?', '(', '@']) {
        return None;
    }
    if text == "*" {
        return Some(Step::Every);
    }
    if let Some((start, end)) = text.split_once(':') {
        let bound = |text: &str| match text.trim() {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        };
        return Some(Step::Slice(bound(start)?, bound(end)?));
    }
    Some(match text.parse() {
        Ok(position) => Step::Position(position),
        Err(_) => Step::Name(text.into()),
    })
}

/// The tests of a filter up to its `)`, and what follows.
fn filter(text: &str) -> Option<(Vec<Vec<Test<'_>>>, &str)> {
    let mut any = Vec::new();
    let mut all = Vec::new();
    let mut rest = text;
    loop {
        let (found, after) = test(rest.trim_start())?;
        all.push(found);
        rest = after.trim_start();
        if let Some(after) = rest.strip_prefix("&&") {
            rest = after;
            continue;
        }
        any.push(std::mem::take(&mut all));
        match rest.strip_prefix("||") {
            Some(after) => rest = after,
            None => return Some((any, rest.strip_prefix(')')?)),
        }
    }
}

/// Longer symbols before their beginnings.
const COMPARISONS: [(&str, Binary); 6] = [
    ("==", Binary::Equal),
    ("!=", Binary::NotEqual),
    ("<=", Binary::LessOrEqual),
    (">=", Binary::GreaterOrEqual),
    ("<", Binary::Less),
    (">", Binary::Greater),
];

fn test(text: &str) -> Option<(Test<'_>, &str)> {
    let path = text.strip_prefix('@')?;
    let end = path_end(path)?;
    let (path, rest) = path.split_at_checked(end)?;
    // A filter in a filter would nest without a limit.
    let steps = match path.contains("?(") {
        true => return None,
        false => steps(path.trim_end())?,
    };
    let rest = rest.trim_start();
    let comparison = COMPARISONS
        .iter()
        .find_map(|(symbol, operator)| Some((*operator, rest.strip_prefix(symbol)?)));
    let Some((operator, rest)) = comparison else {
        let against = None;
        return Some((Test { steps, against }, rest));
    };
    let (literal, rest) = literal(rest.trim_start())?;
    let against = Some((operator, literal));
    Some((Test { steps, against }, rest))
}

/// Where a path in a filter ends: at a symbol that is not in brackets.
fn path_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.checked_sub(1)?,
            '=' | '!' | '<' | '>' | '&' | '|' | ')' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

fn literal(text: &str) -> Option<(Value, &str)> {
    let quote = text.chars().next().filter(|c| "\"'".contains(*c));
    if let Some(quote) = quote {
        let (inner, after) = text.strip_prefix(quote)?.split_once(quote)?;
        return Some((inner.into(), after));
    }
    let end = text.find(|c: char| "&|) \t".contains(c))?;
    let (word, after) = text.split_at_checked(end)?;
    let value = match word {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        word => match word.parse() {
            Ok(int) => Value::Int(int),
            Err(_) => Value::Float(word.parse().ok().filter(|f: &f64| f.is_finite())?),
        },
    };
    Some((value, after))
}
