//! Nothing that a pipeline says is left out of its plan without a word: every field of the elements of a
//! pipeline, filled in, changes the plan, is refused by name, or is told as a warning; or it is one of
//! [`WITHOUT_EFFECT`].
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what the tests share runs in tests only, and says what it found"
)]

use std::sync::Arc;

use serde_json::{Value, json};
use slipway_model::id::{AccountId, EntityId, OrgId, ProjectId, Scope};
use slipway_model::{Kind, entity, schema};
use slipway_plan::{FILE, Found, Reference, Request, Snapshot, WITHOUT_EFFECT, resolve};

/// The documents that a run is planned from, in one.
fn documents() -> Value {
    let steps = |identifier: &str, kind: &str, spec: Value| {
        json!([{"step": {"identifier": identifier, "name": identifier, "type": kind, "spec": spec, "timeout": "10m",
            "failureStrategies": [{"onFailure": {"errors": ["Timeout"], "action": {"type": "Retry",
                "spec": {"retryCount": 1, "retryIntervals": ["5s"]}}}}]}}])
    };
    json!({
        "pipeline": {"identifier": "p", "name": "P",
            "variables": [{"name": "v", "type": "String", "value": "1"}],
            "notificationRules": [{"name": "n", "identifier": "n", "enabled": true,
                "pipelineEvents": [{"type": "StageFailed", "forStages": ["deploy"]}],
                "notificationMethod": {"type": "Slack", "spec": {"webhookUrl": "http://x"}}}],
            "stages": [
                {"stage": {"identifier": "look", "name": "Look", "type": "Custom", "spec": {"execution": {"steps": [
                    {"step": {"identifier": "loop", "name": "Loop", "type": "Wait", "spec": {"duration": "1s"},
                        "strategy": {"repeat": {"items": ["a", "b", "c"]}}}},
                    {"stepGroup": {"identifier": "g", "name": "G",
                        "steps": steps("ping", "Http", json!({"url": "http://x", "method": "GET"}))}}]}}}},
                {"stage": {"identifier": "deploy", "name": "Deploy", "type": "Deployment",
                    "when": {"pipelineStatus": "Success"},
                    "spec": {"deploymentType": "ECS", "service": {"serviceRef": "web"},
                        "environment": {"environmentRef": "prod", "infrastructureDefinitions": [{"identifier": "ecs"}]},
                        "execution": {"steps": steps("roll", "EcsRollingDeploy", json!({}))}}}}]},
        "service": {"identifier": "web", "name": "Web", "serviceDefinition": {"type": "ECS", "spec": {
            "variables": [{"name": "x", "type": "String", "value": "<+input>.default(0)"}],
            "artifacts": {"primary": {"primaryArtifactRef": "img", "sources": [
                {"identifier": "img", "type": "Ecr", "spec": {"connectorRef": "aws", "registryId": "1", "region": "r", "imagePath": "i", "tag": "t"}}]}}}}},
        "environment": {"identifier": "prod", "name": "Prod", "type": "Production",
            "variables": [{"name": "y", "type": "String", "value": "<+input>.default(0)"}]},
        "infrastructureDefinition": {"identifier": "ecs", "name": "ECS", "environmentRef": "prod", "deploymentType": "ECS",
            "type": "ECS", "spec": {"connectorRef": "aws", "region": "r", "cluster": "<+input>.default(c)"}},
        "connector": {"identifier": "aws", "name": "AWS", "type": "Aws",
            "spec": {"credential": {"type": "InheritFromDelegate"}}},
        "environmentGroup": {"identifier": "all", "name": "All", "envIdentifiers": ["prod"]},
        "overrides": {"environmentRef": "prod", "type": "ENV_GLOBAL_OVERRIDE",
            "variables": [{"name": "o", "type": "String", "value": "1"}]},
    })
}

const STAGE: &str = "/pipeline/stages/1/stage";
const SPEC: &str = "/pipeline/stages/1/stage/spec";
const LOOK: &str = "/pipeline/stages/0/stage/spec";
const GROUP: &str = "/pipeline/stages/0/stage/spec/execution/steps/1/stepGroup";
const STEP: &str = "/pipeline/stages/1/stage/spec/execution/steps/0/step";
const LOOP: &str = "/pipeline/stages/0/stage/spec/execution/steps/0/step/strategy";
const STORE: &str = r#"{"store": {"type": "Inline", "spec": {"content": "x"}}}"#;

/// Fields of one element: the kind of document, the element as the schema calls it, where one stands, and a
/// merge patch for each field that fills it in otherwise; with `+` before it, a patch of the element around.
type Samples = (
    Kind,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const SAMPLES: &[Samples] = &[
    (
        Kind::Pipeline,
        "pipeline",
        "/pipeline",
        &[
            ("identifier", r#""q""#),
            ("name", r#""Q""#),
            ("tags", r#"{"a": "b"}"#),
            ("stages", "[]"),
            ("template", r#"{"templateRef": "t"}"#),
            ("variables", "[]"),
            ("timeout", r#""1h""#),
            ("delegateSelectors", r#"["d"]"#),
            (
                "flowControl",
                r#"{"barriers": [{"identifier": "b", "name": "B"}]}"#,
            ),
            ("notificationRules", "[]"),
            ("properties", r#"{"ci": {"codebase": {"repoName": "r"}}}"#),
            ("gitBranch", r#""main""#),
        ],
    ),
    (
        Kind::Pipeline,
        "notification-rule",
        "/pipeline/notificationRules/0",
        &[
            ("name", r#""m""#),
            ("enabled", "false"),
            (
                "template",
                r#"+{"notificationMethod": null, "template": {"templateRef": "t"}}"#,
            ),
            ("pipelineEvents", r#"[{"type": "AllEvents"}]"#),
            (
                "notificationMethod",
                r#"{"type": "Email", "spec": {"recipients": ["a@b.c"]}}"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "pipeline-event",
        "/pipeline/notificationRules/0/pipelineEvents/0",
        &[
            ("type", r#""StageStart""#),
            ("forStages", r#"["look"]"#),
            ("forSteps", r#"["loop"]"#),
        ],
    ),
    (
        Kind::Pipeline,
        "variable",
        "/pipeline/variables/0",
        &[
            ("name", r#""w""#),
            ("type", r#""Number""#),
            ("value", r#""2""#),
        ],
    ),
    (
        Kind::Pipeline,
        "variable",
        "/pipeline",
        &[
            (
                "default",
                r#"+{"variables": [{"name": "v", "type": "String", "default": "2"}]}"#,
            ),
            (
                "required",
                r#"+{"variables": [{"name": "v", "type": "String", "value": "", "required": true}]}"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "stage",
        STAGE,
        &[
            ("identifier", r#""e""#),
            ("name", r#""E""#),
            ("type", r#""Approval""#),
            ("template", r#"{"templateRef": "t"}"#),
            ("tags", r#"{"a": "b"}"#),
            (
                "variables",
                r#"[{"name": "x", "type": "String", "value": "1"}]"#,
            ),
            ("when", r#"{"pipelineStatus": "All"}"#),
            ("timeout", r#""1h""#),
            ("skipInstances", "true"),
            ("runMode", r#"{"type": "Manual", "timeout": "1d"}"#),
            (
                "pipelineVariables",
                r#"[{"name": "x", "type": "String", "value": "1"}]"#,
            ),
            ("objective", r#""reach it""#),
            (
                "failureStrategies",
                r#"[{"onFailure": {"errors": ["AllErrors"], "action": {"type": "StageRollback"}}}]"#,
            ),
            ("strategy", r#"{"parallelism": 2}"#),
            ("delegateSelectors", r#"["d"]"#),
            ("enforce", r#"{"policySets": ["p"]}"#),
            (
                "spec",
                r#"{"execution": {"rollbackSteps": [{"step": {"identifier": "w", "name": "W", "type": "Wait", "spec": {"duration": "1s"}}}]}}"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "stage-s-when",
        STAGE,
        &[
            (
                "pipelineStatus",
                r#"+{"when": {"pipelineStatus": "Failure"}}"#,
            ),
            (
                "condition",
                r#"+{"when": {"condition": "<+pipeline.variables.v> == 1"}}"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "spec-of-stage",
        LOOK,
        &[
            (
                "execution",
                r#"{"steps": [{"step": {"identifier": "w", "name": "W", "type": "Wait", "spec": {"duration": "1s"}}}]}"#,
            ),
            (
                "serviceDependencies",
                r#"[{"identifier": "d", "name": "D", "type": "Service", "spec": {}}]"#,
            ),
            ("environment", r#"{"environmentRef": "prod"}"#),
        ],
    ),
    (
        Kind::Pipeline,
        "spec-of-deployment-stage",
        SPEC,
        &[
            ("deploymentType", r#""Asg""#),
            (
                "execution",
                r#"{"rollbackSteps": [{"step": {"identifier": "w", "name": "W", "type": "Wait", "spec": {"duration": "1s"}}}]}"#,
            ),
            ("service", r#"{"serviceRef": "api"}"#),
            ("environment", r#"{"environmentRef": "other"}"#),
            ("serviceConfig", r#"{"serviceRef": "web"}"#),
            ("infrastructure", r#"{"environmentRef": "prod"}"#),
            ("customDeploymentRef", r#"{"templateRef": "t"}"#),
            ("gitOpsEnabled", "true"),
            (
                "multiDeploymentConfig",
                r#"+{"service": null, "services": {"values": [{"serviceRef": "web"}]}, "multiDeploymentConfig": {"onFailure": "RunAll"}}"#,
            ),
            (
                "serviceDependencies",
                r#"[{"identifier": "d", "name": "D", "type": "Service", "spec": {}}]"#,
            ),
            ("deploymentMetadata", r#"{"environmentType": "GenOne"}"#),
            ("tags", r#"{"a": "b"}"#),
        ],
    ),
    (
        Kind::Pipeline,
        "spec-of-deployment-stage",
        STAGE,
        &[
            (
                "services",
                r#"+{"spec": {"service": null, "services": {"values": [{"serviceRef": "web"}]}}}"#,
            ),
            (
                "environments",
                r#"+{"spec": {"environment": null, "environments": {"values": [{"environmentRef": "prod", "infrastructureDefinitions": [{"identifier": "ecs"}]}]}}}"#,
            ),
            (
                "environmentGroup",
                r#"+{"spec": {"environment": null, "environmentGroup": {"envGroupRef": "all", "deployToAll": true}}}"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "multiDeploymentConfig",
        SPEC,
        &[
            (
                "",
                r#"+{"service": null, "services": {"values": [{"serviceRef": "web"}, {"serviceRef": "web"}], "metadata": {"parallel": true}}}"#,
            ),
            (
                "when",
                r#"+{"multiDeploymentConfig": {"when": "<+pipeline.variables.v> == 1"}}"#,
            ),
            (
                "onFailure",
                r#"+{"multiDeploymentConfig": {"onFailure": "RunAll"}}"#,
            ),
            (
                "maxConcurrency",
                r#"+{"multiDeploymentConfig": {"maxConcurrency": 1}}"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "stage-s-service",
        "/pipeline/stages/1/stage/spec/service",
        &[
            ("serviceRef", r#""api""#),
            (
                "serviceInputs",
                r#"{"serviceDefinition": {"type": "ECS", "spec": {"variables": [{"name": "x", "type": "String", "value": "1"}]}}}"#,
            ),
            ("gitBranch", r#""main""#),
            ("useFromStage", r#"{"stage": "look"}"#),
            (
                "failureStrategies",
                r#"[{"onFailure": {"errors": ["AllErrors"], "action": {"type": "Abort"}}}]"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "stage-s-services",
        SPEC,
        &[
            (
                "values",
                r#"+{"service": null, "services": {"values": [{"serviceRef": "web"}]}}"#,
            ),
            (
                "useFromStage",
                r#"+{"service": null, "services": {"useFromStage": {"stage": "look"}}}"#,
            ),
            (
                "failureStrategies",
                r#"+{"service": null, "services": {"values": [{"serviceRef": "web"}],
            "failureStrategies": [{"onFailure": {"errors": ["AllErrors"], "action": {"type": "Abort"}}}]}}"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "stage-s-environment",
        "/pipeline/stages/1/stage/spec/environment",
        &[
            ("environmentRef", r#""other""#),
            (
                "environmentInputs",
                r#"{"identifier": "prod", "variables": [{"name": "y", "type": "String", "value": "1"}]}"#,
            ),
            ("gitBranch", r#""main""#),
            ("useFromStage", r#"{"stage": "look"}"#),
            ("gitOpsClusters", r#"[{"identifier": "c"}]"#),
            ("infrastructureDefinition", r#"{"identifier": "ecs2"}"#),
            ("infrastructureDefinitions", r#"[{"identifier": "ecs2"}]"#),
            (
                "provisioner",
                r#"{"steps": [{"step": {"identifier": "w", "name": "W", "type": "Wait", "spec": {"duration": "1s"}}}]}"#,
            ),
            (
                "serviceOverrideInputs",
                r#"{"variables": [{"name": "x", "type": "String", "value": "1"}]}"#,
            ),
            ("servicesOverrides", r#"[{"serviceRef": "web"}]"#),
            (
                "failureStrategies",
                r#"[{"onFailure": {"errors": ["AllErrors"], "action": {"type": "Abort"}}}]"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "stage-s-environment",
        SPEC,
        &[
            (
                "deployToAll",
                r#"+{"environment": {"deployToAll": true, "infrastructureDefinitions": null}}"#,
            ),
            (
                "filters",
                r#"+{"environment": {"infrastructureDefinitions": null, "filters": [{"identifier": "f", "type": "all", "entities": ["infrastructures"]}]}}"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "stage-s-environments",
        SPEC,
        &[
            (
                "values",
                r#"+{"environment": null, "environments": {"values": [{"environmentRef": "prod", "infrastructureDefinitions": [{"identifier": "ecs"}]}]}}"#,
            ),
            (
                "filters",
                r#"+{"environment": null, "environments": {"values": [{"environmentRef": "prod"}], "filters": [{"identifier": "f", "type": "all", "entities": ["infrastructures"]}]}}"#,
            ),
            (
                "failureStrategies",
                r#"+{"environment": null, "environments": {"values": [{"environmentRef": "prod", "infrastructureDefinitions": [{"identifier": "ecs"}]}],
            "failureStrategies": [{"onFailure": {"errors": ["AllErrors"], "action": {"type": "Abort"}}}]}}"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "stage-s-environment-group",
        SPEC,
        &[
            (
                "envGroupRef",
                r#"+{"environment": null, "environmentGroup": {"envGroupRef": "all", "deployToAll": true}}"#,
            ),
            (
                "deployToAll",
                r#"+{"environment": null, "environmentGroup": {"envGroupRef": "all", "deployToAll": true}}"#,
            ),
            (
                "environments",
                r#"+{"environment": null, "environmentGroup": {"envGroupRef": "all", "environments": [{"environmentRef": "prod", "infrastructureDefinitions": [{"identifier": "ecs"}]}]}}"#,
            ),
            (
                "filters",
                r#"+{"environment": null, "environmentGroup": {"envGroupRef": "all", "filters": [{"identifier": "f", "type": "all", "entities": ["environments", "infrastructures"]}]}}"#,
            ),
            (
                "gitBranch",
                r#"+{"environment": null, "environmentGroup": {"envGroupRef": "all", "deployToAll": true, "gitBranch": "main"}}"#,
            ),
            (
                "failureStrategies",
                r#"+{"environment": null, "environmentGroup": {"envGroupRef": "all", "deployToAll": true,
            "failureStrategies": [{"onFailure": {"errors": ["AllErrors"], "action": {"type": "Abort"}}}]}}"#,
            ),
        ],
    ),
    (
        Kind::Pipeline,
        "infrastructure-reference",
        "/pipeline/stages/1/stage/spec/environment/infrastructureDefinitions/0",
        &[
            ("identifier", r#""ecs2""#),
            (
                "inputs",
                r#"{"identifier": "ecs", "type": "ECS", "spec": {"cluster": "d"}}"#,
            ),
        ],
    ),
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
    (
        Kind::Service,
        "service",
        "/service",
        &[
            ("identifier", r#""w""#),
            ("name", r#""W""#),
            ("tags", r#"{"a": "b"}"#),
            ("gitOpsEnabled", "true"),
            ("useFromStage", r#"{"stage": "look"}"#),
            (
                "serviceDefinition",
                r#"{"spec": {"ecsTaskDefinitionArn": "arn"}}"#,
            ),
        ],
    ),
    (
        Kind::Service,
        "spec-of-ECS-service",
        "/service/serviceDefinition/spec",
        &[
            ("ecsTaskDefinitionArn", r#""arn""#),
            (
                "variables",
                r#"[{"name": "x", "type": "String", "value": "1"}]"#,
            ),
            (
                "manifests",
                r#"[{"manifest": {"identifier": "m", "type": "EcsTaskDefinition", "spec": {"store": {"type": "Inline", "spec": {"content": "{}"}}}}}]"#,
            ),
            ("artifacts", "null"),
            (
                "configFiles",
                r#"[{"configFile": {"identifier": "f", "spec": {"store": {"type": "Harness", "spec": {"files": ["/f"]}}}}}]"#,
            ),
            ("release", r#"{"name": "r"}"#),
            (
                "artifactOverrideSets",
                r#"[{"overrideSet": {"identifier": "s"}}]"#,
            ),
            (
                "configFileOverrideSets",
                r#"[{"overrideSet": {"identifier": "s"}}]"#,
            ),
            (
                "manifestOverrideSets",
                r#"[{"overrideSet": {"identifier": "s"}}]"#,
            ),
            (
                "variableOverrideSets",
                r#"[{"overrideSet": {"identifier": "s"}}]"#,
            ),
        ],
    ),
    (
        Kind::Environment,
        "environment",
        "/environment",
        &[
            ("identifier", r#""q""#),
            ("name", r#""Q""#),
            ("tags", r#"{"a": "b"}"#),
            ("type", r#""PreProduction""#),
            (
                "variables",
                r#"[{"name": "x", "type": "String", "value": "1"}]"#,
            ),
            (
                "overrides",
                r#"{"manifests": [{"manifest": {"identifier": "m", "type": "EcsTaskDefinition", "spec": {"store": {"type": "Inline", "spec": {"content": "{}"}}}}}]}"#,
            ),
        ],
    ),
    (
        Kind::Environment,
        "environment-s-overrides",
        "/environment",
        &[
            (
                "manifests",
                r#"+{"overrides": {"manifests": [{"manifest": {"identifier": "m", "type": "EcsTaskDefinition", "spec": {"store": {"type": "Inline", "spec": {"content": "{}"}}}}}]}}"#,
            ),
            (
                "configFiles",
                r#"+{"overrides": {"configFiles": [{"configFile": {"identifier": "f", "spec": {"store": {"type": "Harness", "spec": {"files": ["/f"]}}}}}]}}"#,
            ),
            (
                "applicationSettings",
                r#"+{"overrides": {"applicationSettings": STORE}}"#,
            ),
            (
                "connectionStrings",
                r#"+{"overrides": {"connectionStrings": STORE}}"#,
            ),
        ],
    ),
    (
        Kind::Infrastructure,
        "infrastructure-definition",
        "/infrastructureDefinition",
        &[
            ("identifier", r#""q""#),
            ("name", r#""Q""#),
            ("tags", r#"{"a": "b"}"#),
            ("environmentRef", r#""other""#),
            ("deploymentType", r#""Asg""#),
            ("type", r#""Asg""#),
            ("allowSimultaneousDeployments", "true"),
            ("scopedServices", r#"["api"]"#),
            (
                "provisioner",
                r#"{"steps": [{"step": {"identifier": "w", "name": "W", "type": "Wait", "spec": {"duration": "1s"}}}]}"#,
            ),
            ("spec", r#"{"cluster": "d"}"#),
        ],
    ),
    (
        Kind::Infrastructure,
        "spec-of-ECS-infrastructure",
        "/infrastructureDefinition/spec",
        &[
            ("region", r#""s""#),
            ("cluster", r#""d""#),
            ("connectorRef", r#""other""#),
            ("provisioner", r#""p""#),
        ],
    ),
    (
        Kind::Overrides,
        "spec-of-overrides",
        "/overrides",
        &[
            (
                "variables",
                r#"[{"name": "o", "type": "String", "value": "2"}]"#,
            ),
            (
                "manifests",
                r#"[{"manifest": {"identifier": "m", "type": "EcsTaskDefinition", "spec": {"store": {"type": "Inline", "spec": {"content": "{}"}}}}}]"#,
            ),
            (
                "configFiles",
                r#"[{"configFile": {"identifier": "f", "spec": {"store": {"type": "Harness", "spec": {"files": ["/f"]}}}}}]"#,
            ),
            ("applicationSettings", STORE),
            ("connectionStrings", STORE),
        ],
    ),
];

fn scope() -> Scope {
    let (account, org) = (AccountId::new("acc"), OrgId::new("default"));
    Scope::project(account, org, ProjectId::new("default"))
}

/// What the documents but the pipeline are found under, whatever they say of themselves.
fn snapshot(documents: &Value) -> Result<Snapshot, String> {
    let mut snapshot = Snapshot::default();
    let reference = |kind: &'static str, parent: Option<&str>, id: &str| Reference {
        scope: scope(),
        kind,
        parent: parent.map(EntityId::new),
        id: EntityId::new(id),
    };
    let mut put = |key: &str, references: Vec<Reference>| {
        let text = json!({ key: documents[key] }).to_string();
        let entity = entity::parse(key, &text).map_err(|faults| format!("{faults:?}"))?;
        let entity = Arc::new(entity);
        for reference in references {
            let found = match reference.id.as_str() {
                "*" => Found::Many(vec![entity.clone()]),
                _ => Found::Entity(entity.clone()),
            };
            snapshot.put(reference, Some(found));
        }
        Ok::<_, String>(())
    };
    put("service", vec![reference("service", None, "web")])?;
    put("environment", vec![reference("environment", None, "prod")])?;
    let infrastructure = Kind::Infrastructure.key();
    let parents = [("prod", "ecs"), ("prod", "*"), ("q", "ecs")];
    let places = parents.map(|(parent, id)| reference(infrastructure, Some(parent), id));
    put(infrastructure, places.to_vec())?;
    put("connector", vec![reference("connector", None, "aws")])?;
    put(
        "environmentGroup",
        vec![reference("environmentGroup", None, "all")],
    )?;
    let overrides = ["prod", "q"]
        .map(|id| Reference::of_overrides(scope(), "ENV_GLOBAL_OVERRIDE", id, None, None));
    put("overrides", overrides.to_vec())?;
    snapshot.put(reference(FILE, None, "/f"), Some(Found::File("x".into())));
    Ok(snapshot)
}

/// The plan as JSON, or everything that is wrong.
fn planned(documents: &Value) -> Result<Value, String> {
    let text = json!({"pipeline": documents["pipeline"]}).to_string();
    let pipeline = entity::parse("p", &text).map_err(|faults| format!("{faults:?}"))?;
    let plan = resolve(&Request {
        pipeline: &pipeline,
        inputs: &[],
        scope: &scope(),
        entities: &snapshot(documents)?,
        runnable: &|_| true,
        chosen: None,
    });
    let plan = plan.map_err(|faults| {
        let lines = faults.iter().map(|fault| format!("{fault}\n"));
        lines.collect::<String>()
    })?;
    Ok(serde_json::to_value(plan).unwrap())
}

/// Merges a patch into a document: what is null goes.
fn merge(into: &mut Value, patch: &Value) {
    match (into.as_object_mut(), patch.as_object()) {
        (Some(fields), Some(patch)) => {
            for (key, value) in patch {
                match value.is_null() {
                    true => drop(fields.remove(key)),
                    false => merge(fields.entry(key.clone()).or_insert(Value::Null), value),
                }
            }
        }
        _ => *into = patch.clone(),
    }
}

/// The documents with a field of an element filled in otherwise.
fn changed(mut documents: Value, pointer: &str, field: &str, patch: &str) -> Value {
    let whole = patch.starts_with('+');
    let patch = patch
        .trim_start_matches('+')
        .replace(": STORE", &format!(": {STORE}"));
    let patch: Value = serde_json::from_str(&patch).unwrap_or_else(|e| panic!("{field}: {e}"));
    let element = documents.pointer_mut(pointer);
    let element = element.unwrap_or_else(|| panic!("nothing at {pointer}"));
    match whole {
        true => merge(element, &patch),
        false => merge(element, &json!({ field: patch })),
    }
    documents
}

fn without_effect(element: &str, field: &str) -> bool {
    let here = |name: &str| name == "*" || name == element;
    WITHOUT_EFFECT
        .iter()
        .any(|(name, known, _)| here(name) && *known == field)
}

#[test]
fn every_field_is_planned_refused_or_told() {
    let mut silent = Vec::new();
    for (_, element, pointer, fields) in SAMPLES {
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
    let elements: std::collections::BTreeSet<_> = SAMPLES
        .iter()
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
            let sampled = SAMPLES.iter().any(|(known, name, _, fields)| {
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
