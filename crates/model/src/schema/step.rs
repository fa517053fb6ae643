//! Steps, step groups and the specs of the step types that this version runs.

use serde_json::{Map, Value};

use super::step_types::STEP_TYPES;
use super::{
    ANY, BOOL, DURATION, FILLED, IDENTIFIER, MARKS, NAME, Object, Shape, TEMPLATE, TEXT,
    TEXT_OR_TEXTS, TYPE, VARIABLES, flow, object, typed,
};
use crate::shape::{self, Field};
use crate::tree::Ref;

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
pub fn is_known_step(name: &str) -> Result<(), Option<&'static str>> {
    if STEP_TYPES.contains(&name) {
        return Ok(());
    }
    Err(crate::diagnostic::nearest(name, STEP_TYPES.iter().copied()))
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
    may "step": Shape::Object(&STEP),
    may "stepGroup": Shape::Object(&STEP_GROUP),
    may "parallel": Shape::List(&Shape::Object(&WRAPPER)),
    may "insert": ANY,
], ignored: &[
    ("rollbackSteps", "no rollback comes of it; move it beside the `steps` of the execution"),
], one_of: &["step", "stepGroup", "parallel", "insert"], also: &[&MARKS]);

object!(STEP_GROUP, "a step group", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "steps": steps!(),
    may "rollbackSteps": steps!(),
    may "template": TEMPLATE,
    may "when": Shape::Object(&flow::STEP_WHEN),
    may "stepGroupInfra": ANY,
    may "sharedPaths": TEXT_OR_TEXTS,
    may "platform": ANY,
    may "variables": VARIABLES,
    may "timeout": DURATION,
], ignored: &[
    ("spec", "the fields of a step group stand beside its `steps`"),
], one_of: &["steps", "template"], also: &[&flow::FLOW, &MARKS]);

object!(STEP, "a step", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "type": TYPE,
    may "template": TEMPLATE,
    may "timeout": DURATION,
    may "when": Shape::Object(&flow::STEP_WHEN),
], one_of: &["type", "template"], also: &[&flow::FLOW, &MARKS], typed: typed(SPECS, STEP_TYPES));

/// Specs that are checked field by field.
static SPECS: &[(&str, Shape)] = &[
    ("EcsRollingDeploy", Shape::Object(&ECS_ROLLING_DEPLOY)),
    ("EcsRollingRollback", Shape::Object(&ECS_ROLLING_ROLLBACK)),
    ("Http", Shape::Object(&HTTP)),
    ("ShellScript", Shape::Object(&SHELL_SCRIPT)),
    ("Wait", Shape::Object(&WAIT)),
];

object!(SPEC, "the spec of a step", [may "delegateSelectors": TEXT_OR_TEXTS], also: &[]);

object!(ECS_ROLLING_DEPLOY, "the spec of an `EcsRollingDeploy` step", [
    may "forceNewDeployment": BOOL,
    may "sameAsAlreadyRunningInstances": BOOL,
    may "skipApplicationScaling": BOOL,
], also: &[&SPEC, &MARKS]);
object!(ECS_ROLLING_ROLLBACK, "the spec of an `EcsRollingRollback` step", [], also: &[&SPEC, &MARKS]);
object!(WAIT, "the spec of a `Wait` step", [must "duration": DURATION], also: &[&SPEC, &MARKS]);

object!(HTTP, "the spec of an `Http` step", [
    must "url": FILLED,
    must "method": FILLED,
    may "headers": Shape::List(&Shape::Object(&HEADER)),
    may "inputVariables": VARIABLES,
    may "outputVariables": OUTPUT_VARIABLES,
    may "requestBody": TEXT,
    may "assertion": TEXT,
    may "certificate": TEXT,
    may "certificateKey": TEXT,
], also: &[&SPEC, &MARKS]);
object!(HEADER, "a header", [may "key": TEXT, may "value": TEXT], also: &[&MARKS]);

object!(SHELL_SCRIPT, "the spec of a `ShellScript` step", [
    must "shell": Shape::OneOf(&["Bash", "PowerShell"]),
    must "source": Shape::Object(&SCRIPT_SOURCE),
    may "onDelegate": BOOL,
    may "executionTarget": Shape::Or(&Shape::Object(&EXECUTION_TARGET), &TEXT),
    may "environmentVariables": VARIABLES,
    may "outputVariables": OUTPUT_VARIABLES,
    may "outputAlias": Shape::Object(&OUTPUT_ALIAS),
    may "includeInfraSelectors": BOOL,
], also: &[&SPEC, &MARKS]);
object!(SCRIPT_SOURCE, "a script's source", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("Inline", Shape::Object(&INLINE_SCRIPT)),
    ("Harness", Shape::Object(&FILE_SCRIPT)),
], &["Git"]));
object!(INLINE_SCRIPT, "an inline script", [must "script": TEXT], also: &[&MARKS]);
object!(FILE_SCRIPT, "a script from the file store", [must "file": FILLED], also: &[&MARKS]);
object!(EXECUTION_TARGET, "`executionTarget`", [
    may "host": TEXT,
    may "connectorRef": TEXT,
    may "workingDirectory": TEXT,
], also: &[&MARKS]);
object!(OUTPUT_ALIAS, "`outputAlias`", [
    must "key": FILLED,
    must "scope": Shape::OneOf(&["Pipeline", "Stage", "StepGroup"]),
], also: &[&MARKS]);

// An output variable may leave its type and its source (a shell variable of the same name) out.
object!(OUTPUT_VARIABLE, "an output variable", [
    must "name": FILLED,
    may "type": Shape::OneOf(&["String", "Number", "Secret"]),
    may "value": TEXT,
    may "default": TEXT,
    may "description": TEXT,
    may "required": BOOL,
], also: &[&MARKS]);
const OUTPUT_VARIABLES: Shape = Shape::List(&Shape::Object(&OUTPUT_VARIABLE));
