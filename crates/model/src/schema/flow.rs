//! What stages, step groups and steps share: conditions, failure strategies, loops.

use super::{
    ANY, BOOL, DURATION, FILLED, MARKS, NOTHING, Object, Shape, TEXT, TEXT_OR_TEXTS, TYPE, object,
    typed,
};
use crate::shape::Field;

/// Longest accepted `retryCount`: more is a mistake, and each attempt is a record. Harness's schema names no limit.
pub const MOST_RETRIES: i64 = 100;

const STATUS: Shape = Shape::OneOf(&["Success", "Failure", "All"]);

object!(STAGE_WHEN, "a stage's `when`", [must "pipelineStatus": STATUS, may "condition": Shape::Condition], also: &[&MARKS]);
object!(STEP_WHEN, "a step's `when`", [must "stageStatus": STATUS, may "condition": Shape::Condition], also: &[&MARKS]);

object!(FAILURE_STRATEGY, "a failure strategy", [must "onFailure": Shape::Object(&ON_FAILURE)], also: &[&MARKS]);
object!(ON_FAILURE, "`onFailure`", [
    must "errors": Shape::List(&Shape::OneOf(ERRORS)),
    must "action": Shape::Object(&ACTION),
], also: &[&MARKS]);

/// Names that `errors` of a failure strategy may list (OnFailureConfig of the pipeline schema).
pub static ERRORS: &[&str] = &[
    "Unknown",
    "AllErrors",
    "Authentication",
    "Connectivity",
    "Timeout",
    "Authorization",
    "Verification",
    "DelegateProvisioning",
    "PolicyEvaluationFailure",
    "InputTimeoutError",
    "ApprovalRejection",
    "DelegateRestart",
    "UserMarkedFailure",
    "InfrastructureFailure",
    "PluginImageFailure",
    "ResourceLimitsFailure",
    "ConfigurationFailure",
    "RetryableTransientFailure",
];

object!(ACTION, "a failure strategy's action", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("Ignore", Shape::Object(&NOTHING)),
    ("Retry", Shape::Object(&RETRY)),
    ("RetryStepGroup", Shape::Object(&RETRY)),
    ("MarkAsSuccess", Shape::Object(&NOTHING)),
    ("MarkAsFailure", Shape::Object(&NOTHING)),
    ("Abort", Shape::Object(&NOTHING)),
    ("StageRollback", Shape::Object(&NOTHING)),
    ("StepGroupRollback", Shape::Object(&NOTHING)),
    ("PipelineRollback", Shape::Object(&NOTHING)),
    ("ManualIntervention", Shape::Object(&INTERVENTION)),
    ("ProceedWithDefaultValues", Shape::Object(&NOTHING)),
], &[]));

object!(RETRY, "a `Retry` action", [
    must "retryCount": Shape::Int(0, MOST_RETRIES),
    must "retryIntervals": Shape::Or(&Shape::List(&DURATION), &TEXT),
    may "onRetryFailure": Shape::Object(&THEN),
    may "condition": Shape::Condition,
], also: &[&MARKS]);
object!(INTERVENTION, "a `ManualIntervention` action", [
    must "timeout": DURATION,
    may "onTimeout": Shape::Object(&THEN),
    may "metadata": ANY,
], also: &[&MARKS]);
object!(THEN, "what follows", [must "action": Shape::Object(&ACTION)], also: &[&MARKS]);

/// What becomes of the rest of a loop when one of it fails.
pub(super) const LOOP_FAILURE: Shape = Shape::OneOf(&["RunAll", "SkipQueued"]);
object!(STRATEGY, "a looping strategy", [
    may "matrix": Shape::Or(&Shape::Map(&ANY), &TEXT),
    may "repeat": Shape::Object(&REPEAT),
    may "parallelism": Shape::Int(0, i64::MAX),
    may "when": TEXT,
    may "maxConcurrency": Shape::Int(0, i64::MAX),
    may "onFailure": LOOP_FAILURE,
], one_of: &["matrix", "repeat", "parallelism"], also: &[&MARKS]);
object!(REPEAT, "`repeat`", [
    may "times": Shape::Int(0, i64::MAX),
    may "items": TEXT_OR_TEXTS,
    may "maxConcurrency": Shape::Int(0, i64::MAX),
    may "partitionSize": Shape::Int(0, i64::MAX),
    may "start": Shape::Int(0, i64::MAX),
    may "end": Shape::Int(0, i64::MAX),
    may "unit": Shape::OneOf(&["Percentage", "Count"]),
    may "nodeName": TEXT,
], also: &[&MARKS]);

object!(POLICY, "`enforce`", [must "policySets": TEXT_OR_TEXTS], also: &[&MARKS]);

// Common to everything that can be looped, skipped and handled when it fails.
object!(FLOW, "an element", [
    may "failureStrategies": FAILURE_STRATEGIES,
    may "strategy": Shape::Object(&STRATEGY),
    may "description": TEXT,
    may "delegateSelectors": TEXT_OR_TEXTS,
    may "enforce": Shape::Object(&POLICY),
]);

pub(super) const FAILURE_STRATEGIES: Shape =
    Shape::Or(&Shape::List(&Shape::Object(&FAILURE_STRATEGY)), &FILLED);
pub(super) const ENABLED: Shape = BOOL;
