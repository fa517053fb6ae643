//! `pipeline`.

use super::{
    ANY, BOOL, DURATION, IDENTIFIER, MARKS, NAME, Object, Shape, TAGS, TEMPLATE, TEXT,
    TEXT_OR_TEXTS, TEXTS, TYPE, VARIABLES, flow, object, stage, typed,
};
use crate::shape::Field;

// The schema asks for neither: a request may name the pipeline beside its YAML.
object!(PIPELINE, "a pipeline", [
    should "identifier": IDENTIFIER,
    should "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "accountIdentifier": TEXT,
    may "stages": stage::STAGES,
    may "template": TEMPLATE,
    may "variables": VARIABLES,
    may "timeout": DURATION,
    may "delegateSelectors": TEXT_OR_TEXTS,
    may "flowControl": Shape::Object(&FLOW_CONTROL),
    may "notificationRules": Shape::List(&Shape::Object(&NOTIFICATION_RULE)),
    may "properties": Shape::Object(&PROPERTIES),
    may "allowStageExecutions": BOOL,
    may "fixedInputsOnRerun": BOOL,
    may "gitBranch": TEXT,
    may "icon": TEXT,
], also: &[&MARKS]);

object!(FLOW_CONTROL, "`flowControl`", [may "barriers": Shape::List(&Shape::Object(&BARRIER))], also: &[&MARKS]);
object!(BARRIER, "a barrier", [must "identifier": IDENTIFIER, must "name": TEXT], also: &[&MARKS]);

object!(NOTIFICATION_RULE, "a notification rule", [
    may "name": TEXT,
    may "identifier": TEXT,
    may "enabled": flow::ENABLED,
    may "pipelineEvents": Shape::List(&Shape::Object(&PIPELINE_EVENT)),
    may "notificationMethod": Shape::Object(&NOTIFICATION_METHOD),
    may "template": TEMPLATE,
], also: &[&MARKS]);
object!(PIPELINE_EVENT, "a pipeline event", [
    must "type": Shape::OneOf(&[
        "AllEvents", "PipelineStart", "PipelineSuccess", "PipelineFailed", "PipelineEnd", "PipelinePaused",
        "PipelineResumed", "StageStart", "StageSuccess", "StageFailed", "StepFailed", "TriggerFailed",
        "WaitingForUserAction",
    ]),
    may "forStages": TEXTS,
    may "forSteps": TEXTS,
], also: &[&MARKS]);
object!(NOTIFICATION_METHOD, "a notification method", [must "type": TYPE], also: &[&MARKS],
    typed: typed(&[], &["Slack", "Email", "PagerDuty", "MsTeams", "Webhook", "Datadog"]));

object!(PROPERTIES, "`properties`", [may "ci": ANY], also: &[&MARKS]);
