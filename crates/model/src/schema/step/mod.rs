//! Steps, step groups, and what each step type takes: one file per family.
//!
//! Names, kinds and what must be there are those of Harness's pipeline schema (v0). Where that lets any
//! text stand beside a number or a boolean, the text is there for expressions, which every value takes.

use serde_json::{Map, Value};

use super::{
    BOOL, DURATION, IDENTIFIER, MARKS, NAME, TEMPLATE, TEXT, TEXT_OR_TEXTS, TYPE, VARIABLES, flow,
    object, typed,
};
use crate::shape::{self, Field, Object, Shape};
use crate::tree::Ref;

/// Declares the spec of one or more step types that run on a delegate of the user's choice: what they are
/// called, groups of fields they have too, their own fields.
macro_rules! step {
    ($name:ident, $types:literal $(+ $group:ident)*, [$($fields:tt)*] $(, $key:ident: $value:expr)* $(,)?) => {
        $crate::schema::object!($name, concat!("the spec of ", $types), [$($fields)*],
            also: &[$(&$group,)* &$crate::schema::step::SPEC, &$crate::schema::MARKS]
            $(, $key: $value)*);
    };
}

/// As `step!`, for step types that choose no delegate.
macro_rules! bare {
    ($name:ident, $types:literal $(+ $group:ident)*, [$($fields:tt)*] $(, $key:ident: $value:expr)* $(,)?) => {
        $crate::schema::object!($name, concat!("the spec of ", $types), [$($fields)*],
            also: &[$(&$group,)* &$crate::schema::MARKS] $(, $key: $value)*);
    };
}

/// Declares something inside a spec.
macro_rules! part {
    ($name:ident, $title:literal $(+ $group:ident)*, [$($fields:tt)*] $(, $key:ident: $value:expr)* $(,)?) => {
        $crate::schema::object!($name, $title, [$($fields)*],
            also: &[$(&$group,)* &$crate::schema::MARKS] $(, $key: $value)*);
    };
}

mod agents;
mod approval;
mod asg;
mod aws_lambda;
mod azure;
pub(super) mod build;
mod cache;
mod cdk;
mod chaos;
mod cloudformation;
mod common;
pub(super) mod container;
mod database;
mod ecs;
mod elastigroup;
mod flags;
mod gitops;
mod google;
mod helm;
mod infra_code;
mod intelligence;
mod kubernetes;
mod place;
mod portal;
pub(crate) mod rules;
mod salesforce;
mod scan_parts;
mod scanner;
mod script;
mod supply_chain;
mod tas;
mod terraform;
mod terragrunt;
mod ticket;
mod types;
mod utility;
mod verify;

pub(super) use common::SCRIPT_SOURCE;

/// `spec` of a step as JSON with the types of its fields: what Harness reads as text is a JSON string even
/// where it looks like a number.
pub fn step_spec(step: Ref<'_>) -> Value {
    match shape::to_json(step, Shape::Object(&STEP)) {
        Value::Object(mut fields) => fields
            .remove("spec")
            .unwrap_or_else(|| Value::Object(Map::new())),
        _ => Value::Object(Map::new()),
    }
}

/// Whether Harness has a step type of this name, and the nearest one where it has not.
///
/// # Errors
/// The nearest name, if one is near enough to be meant.
pub fn is_known_step(name: &str) -> Result<(), Option<&'static str>> {
    if place::find(name).is_some() {
        return Ok(());
    }
    let names = types::SPECS.iter().map(|(known, _)| *known);
    Err(crate::diagnostic::nearest(name, names))
}

/// The deployment types that a step type belongs to; `None` when any will do, or when it stands in stages that
/// deploy nothing too.
pub fn deployment_types(name: &str) -> Option<&'static [&'static str]> {
    let step = place::find(name)?;
    let bound = !step.deployments.is_empty() && step.stages & place::CUSTOM == 0;
    bound.then_some(step.deployments)
}

/// A list of steps. Not a constant, because a constant cannot take part in a cycle.
macro_rules! steps {
    () => {
        Shape::List(&Shape::Object(&WRAPPER))
    };
}

object!(EXECUTION, "an execution", [
    must "steps": steps!(),
    may "rollbackSteps": steps!(),
], also: &[&MARKS]);

object!(WRAPPER, "an item of `steps`", [
    may "contextType": TEXT,
    may "step": Shape::Object(&STEP),
    may "stepGroup": Shape::Object(&STEP_GROUP),
    may "parallel": Shape::List(&Shape::Object(&WRAPPER)),
    may "insert": Shape::Object(&INSERT),
], ignored: &[
    ("rollbackSteps", "no rollback comes of it; move it beside the `steps` of the execution"),
], one_of: &["step", "stepGroup", "parallel", "insert"], also: &[&MARKS]);

object!(INSERT, "an insert", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    must "steps": steps!(),
], also: &[&MARKS]);

object!(STEP_GROUP, "a step group", [
    may "contextType": TEXT,
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "steps": steps!(),
    may "rollbackSteps": steps!(),
    may "template": TEMPLATE,
    may "when": Shape::Object(&flow::STEP_WHEN),
    may "stepGroupInfra": Shape::Object(&container::INFRASTRUCTURE),
    may "sharedPaths": TEXT_OR_TEXTS,
    may "platform": Shape::Object(&container::PLATFORM),
    may "variables": VARIABLES,
    may "timeout": DURATION,
], ignored: &[
    ("spec", "the fields of a step group stand beside its `steps`"),
], one_of: &["steps", "template"], also: &[&flow::FLOW, &MARKS]);

object!(STEP, "a step", [
    may "contextType": TEXT,
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "type": TYPE,
    may "template": TEMPLATE,
    may "timeout": DURATION,
    may "when": Shape::Object(&flow::STEP_WHEN),
    may "identities": Shape::Map(&Shape::Object(&IDENTITY)),
], one_of: &["type", "template"], also: &[&flow::FLOW, &MARKS], typed: typed(types::SPECS, &[]));

object!(IDENTITY, "an identity", [
    may "audience": TEXT,
    may "subjectTemplate": TEXT,
    may "customClaims": common::TEXT_MAP,
    may "scope": Shape::OneOf(&["STEP", "STAGE", "PIPELINE"]),
    may "disabled": BOOL,
    may "tokenMode": Shape::OneOf(&["STANDARD", "CLIENT_ASSERTION"]),
], also: &[&MARKS]);

object!(SPEC, "the spec of a step", [may "delegateSelectors": TEXT_OR_TEXTS], also: &[]);

#[cfg(test)]
mod tests;
