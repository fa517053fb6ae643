//! Fields of executions, step groups, steps, and of what they have in common.

use slipway_model::Kind;

use super::{GROUP, LOOK, LOOP, STEP, Samples};

pub(super) const ALL: &[Samples] = &[
    (
        Kind::Pipeline,
        "execution",
        "/pipeline/stages/1/stage/spec/execution",
        &[
            (
                "steps",
                r#"[{"step": {"identifier": "w", "name": "W", "type": "Wait", "spec": {"duration": "1s"}}}]"#,
            ),
            (
                "rollbackSteps",
                r#"[{"step": {"identifier": "w", "name": "W", "type": "Wait", "spec": {"duration": "1s"}}}]"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "step-group",
        GROUP,
        &[
            ("identifier", r#""h""#),
            ("name", r#""H""#),
            (
                "steps",
                r#"[{"step": {"identifier": "w", "name": "W", "type": "Wait", "spec": {"duration": "1s"}}}]"#,
            ),
            (
                "rollbackSteps",
                r#"[{"step": {"identifier": "w", "name": "W", "type": "Wait", "spec": {"duration": "1s"}}}]"#,
            ),
            ("when", r#"{"stageStatus": "All"}"#),
            (
                "stepGroupInfra",
                r#"{"type": "KubernetesDirect", "spec": {"connectorRef": "k", "namespace": "n"}}"#,
            ),
            ("sharedPaths", r#"["/x"]"#),
            ("platform", r#"{"os": "Linux", "arch": "Amd64"}"#),
            (
                "variables",
                r#"[{"name": "x", "type": "String", "value": "1"}]"#,
            ),
            ("timeout", r#""1h""#),
            (
                "failureStrategies",
                r#"[{"onFailure": {"errors": ["AllErrors"], "action": {"type": "Ignore"}}}]"#,
            ),
            ("strategy", r#"{"parallelism": 2}"#),
            ("delegateSelectors", r#"["d"]"#),
            ("enforce", r#"{"policySets": ["p"]}"#),
        ],
    ),
    (
        Kind::Pipeline,
        "step-group",
        LOOK,
        &[(
            "template",
            r#"+{"execution": {"steps": [{"stepGroup": {"identifier": "g", "name": "G", "template": {"templateRef": "t"}}}]}}"#,
        )],
    ),
    (
        Kind::Pipeline,
        "step",
        STEP,
        &[
            ("identifier", r#""r""#),
            ("name", r#""R""#),
            ("type", r#""EcsRollingRollback""#),
            ("timeout", r#""1h""#),
            ("when", r#"{"stageStatus": "All"}"#),
            ("identities", r#"{"aws": {"audience": "a"}}"#),
            ("failureStrategies", "[]"),
            ("strategy", r#"{"parallelism": 2}"#),
            ("delegateSelectors", r#"["d"]"#),
            ("enforce", r#"{"policySets": ["p"]}"#),
            ("spec", r#"{"forceNewDeployment": true}"#),
        ],
    ),
    (
        Kind::Pipeline,
        "step",
        LOOK,
        &[(
            "template",
            r#"+{"execution": {"steps": [{"step": {"identifier": "g", "name": "G", "template": {"templateRef": "t"}}}]}}"#,
        )],
    ),
    (
        Kind::Pipeline,
        "step-s-when",
        STEP,
        &[
            ("stageStatus", r#"+{"when": {"stageStatus": "Failure"}}"#),
            (
                "condition",
                r#"+{"when": {"stageStatus": "Success", "condition": "<+pipeline.variables.v> == 1"}}"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "onFailure",
        "/pipeline/stages/1/stage/spec/execution/steps/0/step/failureStrategies/0/onFailure",
        &[
            ("errors", r#"["Authorization"]"#),
            ("action", r#"{"type": "Abort"}"#),
        ],
    ),
    (
        Kind::Pipeline,
        "Retry-action",
        "/pipeline/stages/1/stage/spec/execution/steps/0/step/failureStrategies/0/onFailure/action/spec",
        &[
            ("retryCount", "2"),
            ("retryIntervals", r#"["9s"]"#),
            ("onRetryFailure", r#"{"action": {"type": "Abort"}}"#),
            ("condition", r#""<+pipeline.variables.v> == 1""#),
        ],
    ),
    (
        Kind::Pipeline,
        "looping-strategy",
        LOOP,
        &[
            ("repeat", r#"{"items": ["x"]}"#),
            ("when", r#""false""#),
            ("maxConcurrency", "1"),
        ],
    ),
    (
        Kind::Pipeline,
        "looping-strategy",
        STEP,
        &[
            ("matrix", r#"+{"strategy": {"matrix": {"a": ["x", "y"]}}}"#),
            ("parallelism", r#"+{"strategy": {"parallelism": 2}}"#),
        ],
    ),
    (
        Kind::Pipeline,
        "looping-strategy",
        LOOK,
        &[(
            "onFailure",
            r#"+{"execution": {"steps": [{"step": {"identifier": "loop", "name": "Loop", "type": "Wait", "spec": {"duration": "1s"},
            "strategy": {"repeat": {"items": ["a", "b", "c"]}, "maxConcurrency": 1, "onFailure": "SkipQueued"}}}]}}"#,
        )],
    ),
    (
        Kind::Pipeline,
        "repeat",
        LOOP,
        &[
            ("times", r#"+{"repeat": {"items": null, "times": 5}}"#),
            ("items", r#"+{"repeat": {"items": ["x"]}}"#),
            ("maxConcurrency", r#"+{"repeat": {"maxConcurrency": 1}}"#),
            ("partitionSize", r#"+{"repeat": {"partitionSize": 2}}"#),
            ("start", r#"+{"repeat": {"start": 1}}"#),
            ("end", r#"+{"repeat": {"end": 1}}"#),
            ("unit", r#"+{"repeat": {"end": 50, "unit": "Percentage"}}"#),
            ("nodeName", r#"+{"repeat": {"nodeName": "<+repeat.item>"}}"#),
        ],
    ),
];
