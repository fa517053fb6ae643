//! Expressions in texts: checked to parse when a document is read.

use crate::diagnostic::shown;

/// Most expressions of one text: each becomes a tree of its own while the text is checked.
const MOST_EXPRESSIONS: usize = 10_000;

/// Longest condition that is looked at before a run; real ones have a few hundred bytes.
const LONGEST_CONDITION: usize = 64 * 1024;

/// Whether every expression of a text parses; the message says what is wrong and where in the text.
pub(crate) fn check(text: &str) -> Result<(), String> {
    // No text of a few bytes is worth counting in.
    let most = MOST_EXPRESSIONS * "<+".len();
    if text.len() > most && text.matches("<+").nth(MOST_EXPRESSIONS).is_some() {
        return Err(format!(
            "too many expressions: a text has at most {MOST_EXPRESSIONS}"
        ));
    }
    slipway_expr::parse(text)
        .map(drop)
        .map_err(|error| told(text, "an expression does not parse", &error))
}

/// Whether a text parses as a condition. Runtime inputs stand for one that is given later.
pub(crate) fn check_condition(text: &str) -> Result<(), String> {
    let text = text.trim();
    if text.is_empty() || text.starts_with("<+input>") || text.len() > LONGEST_CONDITION {
        return Ok(());
    }
    slipway_expr::check_condition(text)
        .map_err(|error| told(text, "the condition does not parse", &error))
}

fn told(text: &str, what: &str, error: &slipway_expr::ParseError) -> String {
    let before = text.get(..error.offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    format!(
        "{what} at its line {line}, column {column}: expected {}, found {}",
        error.expected,
        shown(&error.found)
    )
}
