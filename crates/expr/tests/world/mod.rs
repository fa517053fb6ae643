//! A context over a JSON document, for the tests of this room.

use serde_json::Value as Json;
use slipway_expr::{Context, Limits, Segment, Value, parse};

/// Knows what a document says, and the time.
pub struct World {
    known: Value,
    now_ms: Option<i64>,
}

impl World {
    /// 2026-01-31T22:05:09.007Z.
    pub fn new(known: &Json) -> Self {
        Self {
            known: Value::from_json(known),
            now_ms: Some(1_769_897_109_007),
        }
    }

    /// The text's value as JSON, or `! ` and why there is none.
    pub fn evaluate(&self, text: &str) -> String {
        let outcome = parse(text).map_err(|e| e.to_string()).and_then(|template| {
            template
                .evaluate(self, &Limits::default())
                .map_err(|e| e.full_text())
        });
        match outcome {
            Ok(value) => value.to_shown_json().to_string(),
            Err(message) => format!("! {message}"),
        }
    }

    /// Compares each text's value with what is expected; a failure is expected by a part of its message
    /// behind `! `.
    pub fn check(&self, cases: &[(&str, &str)]) {
        let wrong: Vec<String> = cases
            .iter()
            .filter_map(|(text, expected)| {
                let found = self.evaluate(text);
                let right = match expected.strip_prefix("! ") {
                    Some(part) => found.starts_with("! ") && found.contains(part),
                    None => found == *expected,
                };
                (!right).then(|| format!("{text}\n  expected {expected}\n  found    {found}"))
            })
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

impl Context for World {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        self.known.descend(path).cloned()
    }

    fn now_ms(&self) -> Option<i64> {
        self.now_ms
    }
}
