//! `pipeline`.

use super::{
    BOOL, DURATION, IDENTIFIER, MARKS, NAME, Object, Shape, TAGS, TEMPLATE, TEXT, TEXT_OR_TEXTS,
    TEXTS, TYPE, VARIABLES, flow, object, stage,
    step::{build, container},
    typed,
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
    typed: typed(&[
        ("Slack", Shape::Object(&SLACK)),
        ("Email", Shape::Object(&EMAIL)),
        ("PagerDuty", Shape::Object(&PAGER_DUTY)),
        ("MsTeams", Shape::Object(&TEAMS)),
        ("Webhook", Shape::Object(&WEBHOOK)),
        ("Datadog", Shape::Object(&DATADOG)),
    ], &[]));
const HEADERS: Shape = Shape::Map(&TEXT);
object!(GROUPS, "the spec of a notification method", [may "userGroups": TEXT_OR_TEXTS]);
object!(SLACK, "the spec of a Slack notification", [may "webhookUrl": TEXT], also: &[&GROUPS, &MARKS]);
object!(EMAIL, "the spec of an email notification", [may "recipients": TEXT_OR_TEXTS], also: &[&GROUPS, &MARKS]);
object!(PAGER_DUTY, "the spec of a PagerDuty notification", [may "integrationKey": TEXT], also: &[&GROUPS, &MARKS]);
object!(TEAMS, "the spec of a Microsoft Teams notification", [may "msTeamKeys": TEXT_OR_TEXTS],
    also: &[&GROUPS, &MARKS]);
object!(WEBHOOK, "the spec of a webhook notification", [
    may "webhookUrl": TEXT,
    may "headers": HEADERS,
], also: &[&GROUPS, &MARKS]);
object!(DATADOG, "the spec of a Datadog notification", [
    must "url": TEXT,
    must "apiKey": TEXT,
    may "headers": HEADERS,
], also: &[&GROUPS, &MARKS]);

object!(PROPERTIES, "`properties`", [may "ci": Shape::Object(&CI)], also: &[&MARKS]);
object!(CI, "`ci`", [may "codebase": Shape::Object(&CODEBASE)], also: &[&MARKS]);
object!(CODEBASE, "`codebase`", [
    may "connectorRef": TEXT,
    may "repoName": TEXT,
    may "build": Shape::Object(&build::BUILD),
    may "depth": Shape::Int(0, i64::MAX),
    may "prCloneStrategy": Shape::OneOf(&["MergeCommit", "SourceBranch"]),
    may "resources": Shape::Object(&container::RESOURCES),
    may "sslVerify": BOOL,
    may "lfs": BOOL,
    may "debug": BOOL,
    may "fetchTags": BOOL,
    may "sparseCheckout": TEXT_OR_TEXTS,
    may "submoduleStrategy": TEXT,
    may "cloneDirectory": TEXT,
    may "preFetchCommand": TEXT,
    may "persistCredentials": BOOL,
], also: &[&MARKS]);
