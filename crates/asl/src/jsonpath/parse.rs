//! Reads the text of a path.

use super::{Function, JsonPath, Step, filter};

/// Longest text of a path.
const LONGEST: usize = 16_384;

/// A cursor over the text of a path or filter.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Takes `word` if the text goes on with it.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    pub(super) fn spaces(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.next();
        }
    }

    /// Takes characters as long as they fit.
    pub(super) fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    pub(super) fn integer(&mut self) -> Option<i64> {
        self.spaces();
        let start = self.at;
        self.eat("-");
        self.take_while(|c| c.is_ascii_digit());
        let number = self.text.get(start..self.at)?.parse().ok();
        if number.is_none() {
            self.at = start;
        }
        self.spaces();
        number
    }
}

/// A whole text as a path from `$`.
pub(super) fn path(text: &str) -> Option<JsonPath> {
    if text.len() > LONGEST {
        return None;
    }
    let mut cursor = Cursor::new(text);
    if !cursor.eat("$") {
        return None;
    }
    let steps = steps(&mut cursor, 0)?;
    (cursor.rest().is_empty() && is_sound(&steps)).then_some(JsonPath { steps })
}

/// The steps after `$` or `@`, as far as they go.
pub(super) fn steps(cursor: &mut Cursor<'_>, depth: usize) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    loop {
        match cursor.peek() {
            Some('.') if cursor.eat("..") => {
                steps.push(Step::Descend);
                if cursor.peek() != Some('[') {
                    steps.push(dotted(cursor)?);
                }
            }
            Some('.') => {
                cursor.next();
                steps.push(dotted(cursor)?);
            }
            Some('[') => {
                cursor.next();
                steps.push(bracketed(cursor, depth)?);
            }
            _ => return Some(steps),
        }
    }
}

/// A function only at the end; `..` never.
fn is_sound(steps: &[Step]) -> bool {
    let before = steps.split_last().map_or(steps, |(_, before)| before);
    !matches!(steps.last(), Some(Step::Descend))
        && !before.iter().any(|step| matches!(step, Step::Function(_)))
}

fn dotted(cursor: &mut Cursor<'_>) -> Option<Step> {
    if cursor.eat("*") {
        return Some(Step::Wildcard);
    }
    let name = cursor.take_while(|c| !c.is_whitespace() && !".[]()'\",=<>!&|*?@{}".contains(c));
    if name.is_empty() {
        return None;
    }
    if cursor.eat("()") {
        return Some(Step::Function(function(name)?));
    }
    Some(Step::Member(name.to_owned()))
}

fn function(name: &str) -> Option<Function> {
    Some(match name {
        "length" | "size" => Function::Length,
        "min" => Function::Min,
        "max" => Function::Max,
        "sum" => Function::Sum,
        "avg" => Function::Avg,
        "keys" => Function::Keys,
        _ => return None,
    })
}

fn bracketed(cursor: &mut Cursor<'_>, depth: usize) -> Option<Step> {
    cursor.spaces();
    let step = match cursor.peek()? {
        '*' => {
            cursor.next();
            Step::Wildcard
        }
        '?' => {
            cursor.next();
            Step::Filter(filter::parse(cursor, depth)?)
        }
        '\'' | '"' => names(cursor)?,
        _ => numbers(cursor)?,
    };
    cursor.spaces();
    cursor.eat("]").then_some(step)
}

/// Names in quotes. A name ends at the quote that a `,` or `]` follows, because a quote or a backslash
/// inside a name is a character like others.
fn names(cursor: &mut Cursor<'_>) -> Option<Step> {
    let mut names = Vec::new();
    loop {
        cursor.spaces();
        let quote = cursor.next()?;
        if quote != '\'' && quote != '"' {
            return None;
        }
        let rest = cursor.rest();
        let end = rest.match_indices(quote).map(|(i, _)| i).find(|end| {
            let after = rest.get(end + 1..).unwrap_or_default().trim_start();
            after.starts_with(']') || after.starts_with(',')
        })?;
        names.push(rest.get(..end)?.to_owned());
        cursor.eat(rest.get(..=end)?);
        cursor.spaces();
        if !cursor.eat(",") {
            break;
        }
    }
    if names.len() == 1 {
        return names.pop().map(Step::Member);
    }
    Some(Step::Members(names))
}

fn numbers(cursor: &mut Cursor<'_>) -> Option<Step> {
    let first = cursor.integer();
    if cursor.eat(":") {
        return Some(Step::Slice(first, cursor.integer()));
    }
    let mut indexes = vec![first?];
    while cursor.eat(",") {
        indexes.push(cursor.integer()?);
    }
    match indexes.as_slice() {
        [index] => Some(Step::Index(*index)),
        _ => Some(Step::Indexes(indexes)),
    }
}
