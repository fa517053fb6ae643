//! Expressions in a whole JSON document.

use serde_json::{Map, Value as Json};

use crate::error::{EvalError, Reason};
use crate::evaluate::Evaluator;
use crate::secret::{SecretRef, SecretText};
use crate::value::Value;
use crate::{Context, Limits, grammar};

/// Deepest document, in levels.
const MAX_LEVELS: usize = 128;

/// How many times the steps of one text a whole document may take.
const DOCUMENT_STEPS: usize = 20;

/// Evaluates every string of a document, keys excepted. Strings of the result are in the encoding of
/// [`SecretText::encode`], all of them; whoever uses one reads it with [`SecretText::decode`]. The second
/// part of the answer is the secrets that the result holds, each once.
pub fn evaluate_json(
    document: &Json,
    cx: &dyn Context,
    limits: &Limits,
) -> Result<(Json, Vec<SecretRef>), EvalError> {
    let mut walk = Walk {
        evaluator: Evaluator::new(cx, limits),
        steps: limits.steps.saturating_mul(DOCUMENT_STEPS),
        place: vec!["$".to_owned()],
        secrets: Vec::new(),
    };
    let json = walk.value(document)?;
    Ok((json, walk.secrets))
}

struct Walk<'a> {
    evaluator: Evaluator<'a>,
    /// What is left to be spent on the document.
    steps: usize,
    place: Vec<String>,
    secrets: Vec<SecretRef>,
}

impl Walk<'_> {
    fn value(&mut self, json: &Json) -> Result<Json, EvalError> {
        if self.place.len() > MAX_LEVELS {
            let reason = Reason::Limit {
                limit: MAX_LEVELS,
                unit: "levels of a document",
            };
            return Err(self.placed(EvalError::new("the document", reason)));
        }
        match json {
            Json::String(text) => self.string(text),
            Json::Array(items) => {
                let mut out = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    out.push(self.child(format!("[{index}]"), item)?);
                }
                Ok(Json::Array(out))
            }
            Json::Object(map) => {
                let mut out = Map::new();
                for (key, item) in map {
                    out.insert(key.clone(), self.child(format!(".{key}"), item)?);
                }
                Ok(Json::Object(out))
            }
            other => Ok(other.clone()),
        }
    }

    fn child(&mut self, step: String, json: &Json) -> Result<Json, EvalError> {
        self.place.push(step);
        let value = self.value(json)?;
        self.place.pop();
        Ok(value)
    }

    fn placed(&self, mut error: EvalError) -> EvalError {
        error.place = Some(self.place.concat());
        error
    }

    fn string(&mut self, text: &str) -> Result<Json, EvalError> {
        if !text.contains("<+") {
            return Ok(Json::String(SecretText::plain(text).encode()));
        }
        self.evaluator.meter.refill(&mut self.steps);
        let value = grammar::template(text)
            .map_err(|error| EvalError::new(text, Reason::Parse(error)))
            .and_then(|parts| self.evaluator.template(text, &parts))
            .map_err(|error| self.placed(error))?;
        self.note(&value);
        Ok(value.to_marked_json())
    }

    fn note(&mut self, value: &Value) {
        match value {
            Value::Secret(text) => {
                for secret in text.secrets() {
                    if !self.secrets.contains(secret) {
                        self.secrets.push(secret.clone());
                    }
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.note(item)),
            Value::Map(map) => map.values().for_each(|item| self.note(item)),
            _ => {}
        }
    }
}
