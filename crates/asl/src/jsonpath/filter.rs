//! Filters: `[?(@.status == 0 && @.name =~ /a.*/)]`.

use std::borrow::Cow;
use std::cmp::Ordering;

use regex::Regex;
use serde_json::Value;

use super::JsonPath;
use super::eval::{Budget, select};
use super::parse::{Cursor, steps};

/// Deepest nesting of brackets and filters in one path.
const DEEPEST: usize = 32;

/// A condition on an item.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Not(Box<Filter>),
    /// `@.a`: there is something at the path.
    Present(Operand),
    Compare(Operand, Comparison, Operand),
    /// `=~ /…/`.
    Matches(Operand, Regex),
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Literal(Value),
    /// From the item, `@`.
    Item(JsonPath),
    /// From the document, `$`.
    Root(JsonPath),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Contains,
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All(a), Self::All(b)) | (Self::Any(a), Self::Any(b)) => a == b,
            (Self::Not(a), Self::Not(b)) => a == b,
            (Self::Present(a), Self::Present(b)) => a == b,
            (Self::Compare(a, b, c), Self::Compare(x, y, z)) => a == x && b == y && c == z,
            (Self::Matches(a, b), Self::Matches(x, y)) => a == x && b.as_str() == y.as_str(),
            _ => false,
        }
    }
}

/// Reads `(…)` after `?`.
pub(super) fn parse(cursor: &mut Cursor<'_>, depth: usize) -> Option<Filter> {
    if depth >= DEEPEST {
        return None;
    }
    cursor.spaces();
    if !cursor.eat("(") {
        return None;
    }
    let filter = any(cursor, depth + 1)?;
    cursor.spaces();
    cursor.eat(")").then_some(filter)
}

fn any(cursor: &mut Cursor<'_>, depth: usize) -> Option<Filter> {
    let mut parts = vec![all(cursor, depth)?];
    while separated(cursor, "||") {
        parts.push(all(cursor, depth)?);
    }
    single_or(parts, Filter::Any)
}

fn all(cursor: &mut Cursor<'_>, depth: usize) -> Option<Filter> {
    let mut parts = vec![one(cursor, depth)?];
    while separated(cursor, "&&") {
        parts.push(one(cursor, depth)?);
    }
    single_or(parts, Filter::All)
}

fn single_or(mut parts: Vec<Filter>, wrap: impl Fn(Vec<Filter>) -> Filter) -> Option<Filter> {
    if parts.len() == 1 {
        return parts.pop();
    }
    Some(wrap(parts))
}

fn separated(cursor: &mut Cursor<'_>, word: &str) -> bool {
    cursor.spaces();
    cursor.eat(word)
}

fn one(cursor: &mut Cursor<'_>, depth: usize) -> Option<Filter> {
    if depth >= DEEPEST {
        return None;
    }
    cursor.spaces();
    if cursor.rest().starts_with('!') && !cursor.rest().starts_with("!=") {
        cursor.next();
        return Some(Filter::Not(Box::new(one(cursor, depth + 1)?)));
    }
    if cursor.eat("(") {
        let inner = any(cursor, depth + 1)?;
        cursor.spaces();
        return cursor.eat(")").then_some(inner);
    }
    let left = operand(cursor, depth)?;
    cursor.spaces();
    if cursor.eat("=~") {
        return Some(Filter::Matches(left, regex(cursor)?));
    }
    match comparison(cursor) {
        None => Some(Filter::Present(left)),
        Some(comparison) => {
            let right = operand(cursor, depth)?;
            Some(Filter::Compare(left, comparison, right))
        }
    }
}

fn comparison(cursor: &mut Cursor<'_>) -> Option<Comparison> {
    const ALL: [(&str, Comparison); 9] = [
        ("==", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
        ("in ", Comparison::In),
        ("nin ", Comparison::NotIn),
        ("contains ", Comparison::Contains),
    ];
    ALL.into_iter()
        .find(|(word, _)| cursor.eat(word))
        .map(|(_, comparison)| comparison)
}

fn operand(cursor: &mut Cursor<'_>, depth: usize) -> Option<Operand> {
    cursor.spaces();
    match cursor.peek()? {
        '@' => {
            cursor.next();
            Some(Operand::Item(JsonPath {
                steps: steps(cursor, depth + 1)?,
            }))
        }
        '$' => {
            cursor.next();
            Some(Operand::Root(JsonPath {
                steps: steps(cursor, depth + 1)?,
            }))
        }
        _ => literal(cursor, depth).map(Operand::Literal),
    }
}

fn literal(cursor: &mut Cursor<'_>, depth: usize) -> Option<Value> {
    if depth >= DEEPEST {
        return None;
    }
    match cursor.peek()? {
        quote @ ('\'' | '"') => {
            cursor.next();
            let text = cursor.take_while(|c| c != quote).to_owned();
            cursor.next().map(|_| Value::String(text))
        }
        '[' => {
            cursor.next();
            let mut items = Vec::new();
            cursor.spaces();
            while !cursor.eat("]") {
                items.push(literal(cursor, depth + 1)?);
                cursor.spaces();
                if !cursor.eat(",") && cursor.peek() != Some(']') {
                    return None;
                }
                cursor.spaces();
            }
            Some(Value::Array(items))
        }
        _ => {
            let word = cursor.take_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
            serde_json::from_str(word)
                .ok()
                .filter(|value: &Value| !value.is_string())
        }
    }
}

/// `/…/` with an `i` behind it for either case.
fn regex(cursor: &mut Cursor<'_>) -> Option<Regex> {
    cursor.spaces();
    if !cursor.eat("/") {
        return None;
    }
    let mut source = String::new();
    loop {
        match cursor.next()? {
            '/' => break,
            '\\' if cursor.eat("/") => source.push('/'),
            c => source.push(c),
        }
    }
    let flag = if cursor.eat("i") { "(?i)" } else { "" };
    Regex::new(&format!("{flag}^(?:{source})$")).ok()
}

impl Operand {
    fn value<'a>(
        &'a self,
        item: &'a Value,
        root: &'a Value,
        budget: &Budget,
    ) -> Option<Cow<'a, Value>> {
        match self {
            Self::Literal(value) => Some(Cow::Borrowed(value)),
            Self::Item(path) => select(path, item, root, budget).ok(),
            Self::Root(path) => select(path, root, root, budget).ok(),
        }
    }
}

impl Filter {
    /// Whether `item` of the document `root` passes.
    pub(super) fn accepts(&self, item: &Value, root: &Value, budget: &Budget) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.accepts(item, root, budget)),
            Self::Any(parts) => parts.iter().any(|part| part.accepts(item, root, budget)),
            Self::Not(part) => !part.accepts(item, root, budget),
            Self::Present(operand) => operand.value(item, root, budget).is_some(),
            Self::Matches(operand, regex) => operand
                .value(item, root, budget)
                .and_then(|value| value.as_str().map(|text| regex.is_match(text)))
                .unwrap_or(false),
            Self::Compare(left, comparison, right) => {
                let (left, right) = (
                    left.value(item, root, budget),
                    right.value(item, root, budget),
                );
                compare(left.as_deref(), *comparison, right.as_deref())
            }
        }
    }
}

fn compare(left: Option<&Value>, comparison: Comparison, right: Option<&Value>) -> bool {
    let (Some(left), Some(right)) = (left, right) else {
        // What is missing differs from everything that is there.
        return comparison == Comparison::NotEqual && left.is_some() != right.is_some();
    };
    let ordered = |fits: fn(Ordering) -> bool| order(left, right).is_some_and(fits);
    let holds = |list: &Value, item: &Value| match list {
        Value::Array(items) => items.iter().any(|one| is_equal(one, item)),
        Value::String(text) => item.as_str().is_some_and(|part| text.contains(part)),
        _ => false,
    };
    match comparison {
        Comparison::Equal => is_equal(left, right),
        Comparison::NotEqual => !is_equal(left, right),
        Comparison::Less => ordered(Ordering::is_lt),
        Comparison::LessOrEqual => ordered(Ordering::is_le),
        Comparison::Greater => ordered(Ordering::is_gt),
        Comparison::GreaterOrEqual => ordered(Ordering::is_ge),
        Comparison::In => holds(right, left),
        Comparison::NotIn => !holds(right, left),
        Comparison::Contains => holds(left, right),
    }
}

/// Numbers are equal by value, whatever their notation.
fn is_equal(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left.total_cmp(&right).is_eq() || left == right,
        _ => left == right,
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}
