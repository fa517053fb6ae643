//! Expressions in texts: checked to parse when a document is read.

use crate::diagnostic::shown;

/// Most expressions of one text: each becomes a tree of its own while the text is checked.
const MOST_EXPRESSIONS: usize = 10_000;

/// Whether every expression of a text parses; the message says what is wrong and where in the text.
pub(crate) fn check(text: &str) -> Result<(), String> {
    // No text of a few bytes is worth counting in.
    let most = MOST_EXPRESSIONS * "<+".len();
    if text.len() > most && text.matches("<+").nth(MOST_EXPRESSIONS).is_some() {
        return Err(format!(
            "too many expressions: a text has at most {MOST_EXPRESSIONS}"
        ));
    }
    slipway_expr::parse(text).map(|_| ()).map_err(|error| {
        let before = text.get(..error.offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!(
            "an expression does not parse at its line {line}, column {column}: expected {}, found {}",
            error.expected,
            shown(&error.found)
        )
    })
}
