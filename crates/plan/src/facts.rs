//! What a plan knows, as expressions ask for it.

use serde_json::Value as Json;
use slipway_expr::{Segment, Value};

use crate::is_of_turn;

/// Something that answers to paths of names.
pub(crate) trait Facts {
    /// The value at a path, as far as it is known.
    fn find(&self, path: &[&str]) -> Option<Json>;

    /// The value at a path that is data.
    fn data(&self, path: &[Segment]) -> Option<Value> {
        let path = names(path)?;
        match self.find(&path)? {
            Json::String(text) if is_data(&path) => Some(text.into()),
            Json::String(_) => None,
            other => Some(Value::from_json(&other)),
        }
    }

    /// The text at a path that may hold expressions of its own.
    fn text(&self, path: &[Segment]) -> Option<String> {
        let path = names(path)?;
        match self.find(&path)? {
            Json::String(text) if !is_data(&path) => Some(text),
            _ => None,
        }
    }
}

/// The keys of a path; indices are names of nothing that a plan knows.
pub(crate) fn names(path: &[Segment]) -> Option<Vec<&str>> {
    path.iter().map(Segment::key).collect()
}

/// Whether a text is data: what a loop hands out was evaluated when the loop was taken apart, and what a project is called
/// is no place for expressions; nor is what an event brought.
fn is_data(path: &[&str]) -> bool {
    match path {
        ["stage", rest @ ..] => is_of_turn(rest),
        // What a sender wrote is data, whatever it looks like.
        [
            "account" | "org" | "project" | "trigger" | "eventPayload",
            ..,
        ] => true,
        path => is_of_turn(path),
    }
}
