//! Runtime inputs: fields that hold `<+input>` and get their value when a run starts.
//!
//! Inputs are given as Harness takes them: a document that mirrors the pipeline, with only the fields that
//! are asked for. Elements of lists are matched by what identifies them (`identifier`, or `name` of a
//! variable), not by their position.

mod assign;
mod merge;
mod project;
mod request;
mod set;

pub use assign::from_assignments;
pub use merge::{Unfilled, fill, fill_noting, merge, merge_entity, merge_with};
pub use project::{template, template_of};
pub use request::RuntimeInput;
pub use set::{check_set, of_set, of_sets, references};

use crate::tree::Ref;

/// What says which of the sources of a service's artifacts is its primary artifact, and the list of them.
const PRIMARY: &str = "primaryArtifactRef";
const SOURCES: &str = "sources";

/// What tells services and environments of a stage apart, where it has several.
const REFERENCES: &[&str] = &["serviceRef", "environmentRef"];

/// What tells an item of a list from its neighbours, looking through wrappers such as `stage:`. None for an
/// item whose identity is a runtime input itself.
fn identity(item: Ref<'_>) -> Option<&str> {
    ["identifier", "name", "key"]
        .iter()
        .chain(REFERENCES)
        .find_map(|key| item.get_text(key))
        .or_else(|| wrapped(item)?.get_text("identifier"))
        .filter(|text| !text.starts_with("<+input>"))
}

/// The element inside of a wrapper: a mapping of one key that holds a mapping.
fn wrapped(item: Ref<'_>) -> Option<Ref<'_>> {
    let mut entries = item.entries();
    match (entries.next(), entries.next()) {
        (Some((_, inner)), None) if inner.is_map() => Some(inner),
        _ => None,
    }
}

/// Items of a list, those of its `parallel` items in their place.
fn flat<'a>(list: Ref<'a>, out: &mut Vec<Ref<'a>>) {
    for item in list.items() {
        match item.get("parallel").filter(|inner| inner.is_list()) {
            Some(inner) => flat(inner, out),
            None => out.push(item),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
#[path = "set_tests.rs"]
mod set_tests;
