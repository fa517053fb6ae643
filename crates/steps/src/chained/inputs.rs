//! Inputs for the other pipeline: what they read is known here, secrets are left to it.

use serde_json::Value;
use slipway_expr::secret::{Piece, SecretText};
use slipway_model::status::{ErrorType, Failure};

use crate::context::StepContext;

/// `inputs` with every expression of this run resolved. A text that reads secrets, and nothing else, stays as it is
/// written: the other run fills it in where it is used.
pub(super) fn filled(cx: &StepContext<'_>, value: &Value) -> Result<Value, Failure> {
    match value {
        Value::String(text) if text.contains("<+") => filled_text(cx, text),
        Value::Array(items) => {
            let items: Result<Vec<_>, _> = items.iter().map(|item| filled(cx, item)).collect();
            items.map(Value::Array)
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| Ok((name.clone(), filled(cx, value)?)));
            fields.collect::<Result<_, _>>().map(Value::Object)
        }
        other => Ok(other.clone()),
    }
}

fn filled_text(cx: &StepContext<'_>, text: &str) -> Result<Value, Failure> {
    let found = cx.evaluate(&Value::from(text))?;
    let Value::String(found) = found else {
        return Ok(found);
    };
    let found = SecretText::decode(&found);
    let mut plain = String::new();
    for piece in found.pieces() {
        match piece {
            Piece::Plain(part) => plain.push_str(part),
            Piece::Secret(_) => return as_written(text),
        }
    }
    Ok(plain.into())
}

fn as_written(text: &str) -> Result<Value, Failure> {
    if text.matches("<+").count() == text.matches("<+secrets.").count() {
        return Ok(text.into());
    }
    Err(Failure {
        error: ErrorType::Unknown,
        message: format!(
            "The input `{text}` puts a secret and values of this run together, and a secret is handed on only by its name. Give the secret in an input of its own."
        ),
        left_behind: None,
    })
}
