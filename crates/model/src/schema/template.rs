//! `template`: what the type of a template makes of its `spec`.

use super::artifact::SPECS as ARTIFACT_SPECS;
use super::manifest::STORE_FIELD;
use super::{
    ANY, BOOL, DURATION, FILLED, IDENTIFIER, MARKS, NAME, Object, Shape, TAGS, TEXT, TEXT_OR_TEXTS,
    TEXTS, TYPE, VARIABLES, VERSION, flow, object, pipeline, stage, step, typed,
};
use crate::shape::Field;

/// Settings of a template that its users may be let override (docs: platform/templates/template-overrides): the
/// name in `allowedOverrides`, the field, and the types of templates that have it.
const SETTINGS: &[(&str, &str, &[&str])] = &[
    (
        "ConditionalExecution",
        "when",
        &["Step", "StepGroup", "Stage"],
    ),
    (
        "LoopingStrategy",
        "strategy",
        &["Step", "StepGroup", "Stage"],
    ),
    ("ExecutionStrategy", "runMode", &["Stage"]),
    (
        "FailureStrategy",
        "failureStrategies",
        &["Step", "StepGroup", "Stage"],
    ),
    ("PolicyEnforcement", "enforce", &["Step"]),
    (
        "DelegateSelectors",
        "delegateSelectors",
        &["Step", "StepGroup", "Stage", "Pipeline"],
    ),
    ("PipelineTimeout", "timeout", &["Pipeline"]),
    (
        "AllowStageExecutions",
        "allowStageExecutions",
        &["Pipeline"],
    ),
    ("FixedInputsOnRerun", "fixedInputsOnRerun", &["Pipeline"]),
];
const OVERRIDABLE: Shape = Shape::OneOf(&[
    "ConditionalExecution",
    "LoopingStrategy",
    "ExecutionStrategy",
    "FailureStrategy",
    "PolicyEnforcement",
    "DelegateSelectors",
    "PipelineTimeout",
    "AllowStageExecutions",
    "FixedInputsOnRerun",
]);

/// What a template of a type may let its users override: names in `allowedOverrides` with their fields.
pub fn overridable(kind: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_kind = SETTINGS
        .iter()
        .filter(move |(_, _, kinds)| kinds.contains(&kind));
    of_kind.map(|(name, field, _)| (*name, *field))
}

object!(TEMPLATE, "a template", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    must "versionLabel": VERSION,
    must "type": TYPE,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "accountIdentifier": TEXT,
    may "icon": TEXT,
    may "comments": TEXT,
    may "variables": VARIABLES,
    may "allowedOverrides": Shape::Or(&Shape::List(&OVERRIDABLE), &OVERRIDABLE),
    may "stableTemplate": BOOL,
    may "gitBranch": TEXT,
], also: &[&MARKS], typed: typed(&[
    ("Step", Shape::Body(&step::STEP)),
    ("StepGroup", Shape::Body(&STEP_GROUP)),
    ("Stage", Shape::Body(&stage::STAGE)),
    ("Pipeline", Shape::Body(&pipeline::PIPELINE)),
    ("CustomDeployment", Shape::Object(&DEPLOYMENT)),
    ("ArtifactSource", Shape::Object(&ARTIFACT_SOURCE)),
    ("SecretManager", Shape::Object(&SECRET_MANAGER)),
    ("Notification", Shape::Object(&NOTIFICATION)),
], &["MonitoredService", "Workspace"]));

// Harness saves a step group whose steps are only named; it cannot run.
object!(STEP_GROUP, "a step group", [
    may "stageType": TEXT,
    may "steps": Shape::List(&Shape::Or(
        &Shape::Object(&step::WRAPPER),
        &Shape::Noted(&TEXT, "a text is no step: the template can be kept but not run"),
    )),
], one_of: &["steps", "template"],
    also: &[&step::STEP_GROUP, &flow::FLOW, &MARKS]);

object!(DEPLOYMENT, "the spec of a deployment template", [
    must "infrastructure": Shape::Object(&INFRASTRUCTURE),
    must "execution": Shape::Object(&EXECUTION),
], also: &[&MARKS]);
object!(INFRASTRUCTURE, "the infrastructure of a deployment template", [
    may "variables": VARIABLES,
    must "fetchInstancesScript": Shape::Object(&FETCH),
    must "instancesListPath": FILLED,
    must "instanceAttributes": Shape::List(&Shape::Object(&ATTRIBUTE)),
], also: &[&MARKS]);
object!(FETCH, "`fetchInstancesScript`", [must "store": STORE_FIELD], also: &[&MARKS]);
object!(ATTRIBUTE, "an instance attribute", [
    must "name": FILLED,
    must "jsonPath": FILLED,
    may "description": TEXT,
], also: &[&MARKS]);
object!(EXECUTION, "the execution of a deployment template", [may "stepTemplateRefs": TEXTS], also: &[&MARKS]);

object!(ARTIFACT_SOURCE, "the spec of an artifact source template", [may "type": TYPE], also: &[&MARKS],
    typed: ARTIFACT_SPECS);

object!(SECRET_MANAGER, "the spec of a secret manager template", [
    may "shell": Shape::OneOf(&["Bash", "PowerShell"]),
    must "source": Shape::Object(&SOURCE),
    may "executionTarget": ANY,
    may "onDelegate": BOOL,
    may "delegateSelectors": TEXT_OR_TEXTS,
    may "environmentVariables": VARIABLES,
    may "outputVariables": VARIABLES,
    may "outputAlias": ANY,
    may "timeout": DURATION,
], also: &[&MARKS]);

// Harness's own example has the type one level too deep.
object!(SOURCE, "a script's source", [may "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("Inline", Shape::Object(&INLINE)),
], &["Harness", "Git"]));
object!(INLINE, "an inline script", [must "script": TEXT], also: &[&MARKS]);

object!(NOTIFICATION, "the spec of a notification template", [must "body": Shape::Object(&BODY)], also: &[&MARKS]);
object!(BODY, "the body of a notification", [
    must "type": Shape::OneOf(&["JSON", "YAML", "STRING", "HTML"]),
    must "content": TEXT,
], also: &[&MARKS]);
