//! Errors of parsing and of evaluating. Neither ever holds the value of a secret: values of secrets do
//! not exist in this crate.

use thiserror::Error;

/// A text that is not a well-formed expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected {expected}, found {found} (byte {offset})")]
pub struct ParseError {
    /// Where, in bytes from the start of the text.
    pub offset: usize,
    /// What would have been right there.
    pub expected: &'static str,
    /// What was there instead.
    pub found: String,
}

/// An expression that has no value.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{}`{expression}` cannot be evaluated", place_text(.place))]
pub struct EvalError {
    /// The expression, as written, shortened to a few hundred characters.
    pub expression: String,
    /// Where in the document it stands (`$.spec.url`), if it was evaluated as part of one.
    pub place: Option<String>,
    /// Why.
    #[source]
    pub reason: Reason,
}

fn place_text(place: &Option<String>) -> String {
    place
        .as_ref()
        .map(|place| format!("{place}: "))
        .unwrap_or_default()
}

fn hyphen_text(subtracted: bool) -> &'static str {
    if subtracted {
        r#" (`-` subtracts; a name with a hyphen is written as in `headers["x-auth"]`)"#
    } else {
        ""
    }
}

fn nearest_text(nearest: &Option<&'static str>) -> String {
    nearest
        .map(|name| format!("; did you mean `{name}()`?"))
        .unwrap_or_default()
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Reason {
    /// Nothing of this name is known where the expression stands.
    #[error(
        "`{path}` is not defined here; check its spelling and that it exists before this point{}",
        hyphen_text(*.subtracted)
    )]
    Undefined {
        /// The path as far as it was evaluated.
        path: String,
        /// Whether it stands beside a `-`, which people take for a part of names.
        subtracted: bool,
    },
    /// An operator or method got a value that it cannot work on.
    #[error("{operation} works on {wants}, not on {got}")]
    Type {
        /// The operator or method.
        operation: String,
        /// What it takes.
        wants: &'static str,
        /// What it got.
        got: String,
    },
    /// A method or function that does not exist, or not for this kind of value.
    #[error("{subject} has no {name}{}", nearest_text(.nearest))]
    NoMethod {
        /// Kind of the value, or the namespace.
        subject: String,
        /// The method.
        name: String,
        /// What was probably meant.
        nearest: Option<&'static str>,
    },
    /// Something else is wrong with an operation.
    #[error("{operation}: {problem}")]
    Operation {
        /// The operator or method.
        operation: String,
        /// What is wrong.
        problem: String,
    },
    /// The value of a secret would be needed, and is not known where expressions are evaluated.
    #[error(
        "{operation} needs the value of a secret; secrets can only be passed on whole or joined to other text"
    )]
    Secret {
        /// The operator or method.
        operation: String,
    },
    /// A variable is defined by itself, over these steps.
    #[error("the definition refers to itself: {0}")]
    Loop(String),
    /// A text inside does not parse.
    #[error("the definition of `{path}` is not a well-formed expression")]
    Definition {
        /// Path of the variable.
        path: String,
        /// What is wrong with its text.
        #[source]
        source: ParseError,
    },
    /// A limit of [`crate::Limits`] was reached.
    #[error("it exceeds the limit of {limit} {unit}")]
    Limit {
        /// The limit.
        limit: usize,
        /// Of what.
        unit: &'static str,
    },
    /// The text is not a well-formed expression.
    #[error("it is not a well-formed expression")]
    Parse(#[source] ParseError),
}

/// Longest part of an expression that an error repeats, in characters.
const LONGEST_QUOTE: usize = 300;

pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl EvalError {
    pub(crate) fn new(expression: &str, reason: Reason) -> Self {
        Self {
            expression: shorten(expression),
            place: None,
            reason,
        }
    }

    /// The error with its reasons in one line, for a message of a failed step.
    pub fn full_text(&self) -> String {
        let mut text = self.to_string();
        let mut next: Option<&dyn std::error::Error> = Some(&self.reason);
        while let Some(error) = next {
            text.push_str(": ");
            text.push_str(&error.to_string());
            next = error.source();
        }
        text
    }
}
