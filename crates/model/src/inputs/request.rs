//! `<+input>` and what may stand behind it.

use regex::RegexBuilder;

use crate::diagnostic::shown;
use crate::tree::Ref;

/// A request for a value: `<+input>.default(x).allowedValues(a,b).regex(r).executionInput()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeInput {
    /// The value where none is given.
    pub default: Option<String>,
    /// The only values that are taken; any where there are none.
    pub allowed: Vec<String>,
    /// Whether several of the allowed values may be given, separated by commas.
    pub many: bool,
    /// A pattern that the whole value must match.
    pub regex: Option<String>,
    /// Whether it is asked for only when its step begins.
    pub execution: bool,
}

impl RuntimeInput {
    /// The request that a value is, if it is one.
    pub fn of(value: Ref<'_>) -> Option<Self> {
        Self::parse(value.scalar()?)
    }

    /// Reads a request; `None` for every other text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix("<+input>")?;
        let mut input = Self::default();
        while !rest.is_empty() {
            let (name, after) = rest.strip_prefix('.')?.split_once('(')?;
            let (argument, after) = argument(after)?;
            match name {
                "default" => input.default = Some(unquoted(argument).to_owned()),
                "allowedValues" | "selectOneFrom" => input.allowed = values(argument),
                "selectManyFrom" => {
                    input.allowed = values(argument);
                    input.many = true;
                }
                "regex" => input.regex = Some(argument.to_owned()),
                "executionInput" if argument.is_empty() => input.execution = true,
                _ => return None,
            }
            rest = after;
        }
        Some(input)
    }

    /// Whether a given text is allowed; otherwise what is.
    pub fn check(&self, value: &str) -> Result<(), String> {
        // What an expression allows is not known yet.
        let known = !self.allowed.iter().any(|value| value.contains("<+"));
        if !self.allowed.is_empty() && known {
            let allowed = |one: &str| self.allowed.iter().any(|known| known == one);
            let all = match self.many {
                true => allowed(value) || values(value).iter().all(|one| allowed(one)),
                false => allowed(value),
            };
            if !all {
                return Err(format!("one of {}", self.allowed.join(", ")));
            }
        }
        let Some(pattern) = &self.regex else {
            return Ok(());
        };
        // A linear-time engine with a bounded program: neither pattern nor value can make it slow.
        let whole = RegexBuilder::new(&format!("^(?:{pattern})$"))
            .size_limit(1 << 20)
            .build();
        match whole {
            Ok(whole) if whole.is_match(value) => Ok(()),
            Ok(_) => Err(format!("a text that matches {}", shown(pattern))),
            Err(_) => Err(format!(
                "a pattern that can be used; {} cannot",
                shown(pattern)
            )),
        }
    }
}

/// Splits off an argument: up to the bracket that closes it, brackets inside counted. Where brackets do not
/// pair, as in the pattern `[(]`, up to the first one that nothing else of an input could follow.
fn argument(text: &str) -> Option<(&str, &str)> {
    let ends = |at: usize| {
        let rest = &text[at + 1..];
        rest.is_empty() || CALLS.iter().any(|call| rest.starts_with(call))
    };
    let mut depth = 0usize;
    let mut first = None;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if ends(at) => {
                if depth == 0 {
                    return Some((&text[..at], &text[at + 1..]));
                }
                first = first.or(Some(at));
                depth -= 1;
            }
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let at = first?;
    Some((&text[..at], &text[at + 1..]))
}

/// What may follow a bracket that closes an argument.
const CALLS: &[&str] = &[
    ".default(",
    ".allowedValues(",
    ".selectOneFrom(",
    ".selectManyFrom(",
    ".regex(",
    ".executionInput(",
];

/// Quotes around a text; Harness escapes them in YAML (`\'london,uk\'`).
const QUOTES: &[&str] = &["\\'", "\\\"", "'", "\""];

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    QUOTES
        .iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
}

/// Values between commas; a comma inside of quotes, brackets or an expression belongs to its value.
fn values(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let (mut depth, mut quote, mut start, mut at) = (0usize, None::<&str>, 0, 0);
    while let Some(c) = text[at..].chars().next() {
        let here = QUOTES.iter().find(|quote| text[at..].starts_with(**quote));
        let mut width = c.len_utf8();
        match (quote, here, c) {
            (Some(open), Some(close), _) if open == *close => {
                quote = None;
                width = close.len();
            }
            (Some(_), ..) => {}
            // An apostrophe inside of a word opens nothing.
            (None, Some(open), _) if text[start..at].trim().is_empty() => {
                quote = Some(open);
                width = open.len();
            }
            (None, _, '(' | '[' | '{' | '<') => depth += 1,
            (None, _, ')' | ']' | '}' | '>') => depth = depth.saturating_sub(1),
            (None, _, ',') if depth == 0 => {
                out.push(unquoted(&text[start..at]).to_owned());
                start = at + 1;
            }
            _ => {}
        }
        at += width;
    }
    out.push(unquoted(&text[start..]).to_owned());
    out.retain(|value| !value.is_empty());
    out
}
