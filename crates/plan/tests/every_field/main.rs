//! Nothing that a pipeline says is left out of its plan without a word: every field of the elements of a
//! pipeline, filled in, changes the plan, is refused by name, or is told as a warning; or it is one of
//! [`WITHOUT_EFFECT`].
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what the tests share runs in tests only, and says what it found"
)]

mod documents;
mod samples;

use slipway_model::{Kind, schema};
use slipway_plan::WITHOUT_EFFECT;

use documents::{changed, documents, planned};

fn without_effect(element: &str, field: &str) -> bool {
    let here = |name: &str| name == "*" || name == element;
    WITHOUT_EFFECT
        .iter()
        .any(|(name, known, _)| here(name) && *known == field)
}

#[test]
fn every_field_is_planned_refused_or_told() {
    let mut silent = Vec::new();
    for (_, element, pointer, fields) in samples::all() {
        let mut world = documents();
        for (field, patch) in *fields {
            // A first patch without a field is what the others are laid over.
            if field.is_empty() {
                world = changed(world, pointer, field, patch);
                continue;
            }
            assert!(
                !without_effect(element, field),
                "{element}.{field} is said to have no effect"
            );
            let base = planned(&world).unwrap();
            match planned(&changed(world.clone(), pointer, field, patch)) {
                Ok(plan) if plan == base => silent.push(format!("{element}.{field} is ignored")),
                Err(faults) if !faults.contains(field) => {
                    silent.push(format!("{element}.{field} is refused as {faults}"));
                }
                _ => {}
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn every_field_of_the_schema_is_among_them() {
    let mut missing = Vec::new();
    let elements: std::collections::BTreeSet<_> = samples::all()
        .map(|sample| (sample.0.key(), sample.1))
        .collect();
    let mut schemas = std::collections::HashMap::new();
    for (kind, element) in &elements {
        let schema = schemas
            .entry(kind)
            .or_insert_with(|| schema::json_schema(Kind::from_key(kind)));
        let fields = schema["definitions"][element]["properties"].as_object();
        let fields = fields.unwrap_or_else(|| panic!("{kind} has no element {element}"));
        for field in fields.keys() {
            let sampled = samples::all().any(|(known, name, _, fields)| {
                known.key() == *kind
                    && name == element
                    && fields.iter().any(|(name, _)| name == field)
            });
            // What the schema has only to warn of it is no field.
            let warned = fields[field]["description"].is_string();
            if !sampled && !warned && !without_effect(element, field) {
                missing.push(format!("{element}.{field}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
