//! Expressions of a run with a few names that only the running step knows.

use serde_json::Value as Json;
use slipway_expr::{Context, EvalError, Limits, Segment, Value};
use slipway_model::status::{ErrorType, Failure};

/// A context that answers for the step's own names first and for the run otherwise.
pub struct Names<'a> {
    run: &'a dyn Context,
    names: &'a [(&'a str, Value)],
}

impl<'a> Names<'a> {
    pub(crate) fn new(run: &'a dyn Context, names: &'a [(&'a str, Value)]) -> Self {
        Self { run, names }
    }

    /// `value` with the expressions in all its texts resolved; its texts may hold secrets then.
    pub fn evaluate(&self, value: &Json) -> Result<Json, Failure> {
        slipway_expr::evaluate_json(value, self, &Limits::default())
            .map(|(json, _)| json)
            .map_err(|error| failure(&error))
    }

    /// Whether a condition holds.
    pub fn condition(&self, text: &str) -> Result<bool, Failure> {
        slipway_expr::condition(text, self, &Limits::default()).map_err(|error| failure(&error))
    }
}

fn failure(error: &EvalError) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: error.full_text(),
        left_behind: None,
    }
}

impl Context for Names<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        if let [Segment::Key(key), below @ ..] = path
            && let Some((_, value)) = self.names.iter().find(|(name, _)| name == key)
        {
            // Only what is asked for is copied: the whole may be larger than an evaluation may be.
            return value.descend(below).cloned();
        }
        self.run.lookup(path)
    }

    fn definition(&self, path: &[Segment]) -> Option<String> {
        self.run.definition(path)
    }

    fn call(&self, functor: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        self.run.call(functor, arguments)
    }

    fn now_ms(&self) -> Option<i64> {
        self.run.now_ms()
    }
}
