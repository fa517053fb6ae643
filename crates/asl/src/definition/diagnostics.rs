//! Why a definition is refused, with AWS's codes and words.

use serde_json::Value;

/// A definition that is refused: the code, text and place of AWS's diagnostics.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}{}", at(.path))]
pub(crate) struct DefinitionError {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// JSON pointer into the definition; empty where there is no place.
    pub(crate) path: String,
}

fn at(path: &str) -> String {
    if path.is_empty() {
        // What has no place is reported so.
        " at null".to_owned()
    } else if path.starts_with('/') {
        format!(" at {path}")
    } else {
        // The place of a text that is not JSON is in its message already.
        String::new()
    }
}

impl DefinitionError {
    /// A part that does not have the form that the language demands.
    pub(crate) fn schema(path: &str, message: impl Into<String>) -> Self {
        Self {
            code: "SCHEMA_VALIDATION_FAILED",
            message: message.into(),
            path: path.to_owned(),
        }
    }
}

/// All errors as one text, as `CreateStateMachine` gives them.
pub(crate) fn all(errors: &[DefinitionError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// The JSON of a definition. White space alone is no object; a word that JSON does not have is reported
/// as the service's own JSON reader does.
pub(super) fn json(text: &str) -> Result<Value, DefinitionError> {
    if text.trim().is_empty() {
        let message = "Definition must be a valid JSON object";
        return Err(DefinitionError::schema("", message));
    }
    serde_json::from_str(text).map_err(|error| {
        let (message, place) = unknown_word(text).unwrap_or_else(|| {
            let place = source(text, error.line(), error.column());
            (format!("{error}\n at {place}"), place)
        });
        DefinitionError {
            code: "INVALID_JSON_DESCRIPTION",
            message,
            path: place,
        }
    })
}

fn source(text: &str, line: usize, column: usize) -> String {
    const LONGEST: usize = 500;
    let shown: String = text.chars().take(LONGEST).collect();
    format!("[Source: (String)\"{shown}\"; line: {line}, column: {column}]")
}

/// Message and place of a text that starts with a word.
fn unknown_word(text: &str) -> Option<(String, String)> {
    let start = text.find(|c: char| !c.is_whitespace())?;
    let (before, from) = text.split_at_checked(start)?;
    let end = from
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
        .unwrap_or(from.len());
    let word = from.get(..end)?;
    let is_word = word.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$');
    if !is_word || ["null", "true", "false"].contains(&word) {
        return None;
    }
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + word.chars().count() + 1;
    let place = source(text, line, column);
    let message = format!(
        "Unrecognized token '{word}': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')\n at {place}"
    );
    Some((message, place))
}
