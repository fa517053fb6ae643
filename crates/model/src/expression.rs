//! Expressions in texts: checked to parse when a document is read.

use crate::diagnostic::shown;

/// Whether every expression of a text parses; the message says what is wrong and where in the text.
pub(crate) fn check(text: &str) -> Result<(), String> {
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
