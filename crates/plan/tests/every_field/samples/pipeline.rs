//! Fields of pipelines and their stages.

use slipway_model::Kind;

use super::{LOOK, SPEC, STAGE, Samples};

pub(super) const ALL: &[Samples] = &[
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
            (
                "strategy",
                r#"{"repeat": {"items": "<+pipeline.stages.a.spec.execution.steps.s.output.outputVariables.list>"}}"#,
            ),
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
            ("disableArtifactValidation", "true"),
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
            (
                "",
                r#"+{"service": null, "services": {"values": [{"serviceRef": "web"}]}}"#,
            ),
            (
                "disableArtifactValidation",
                r#"+{"services": {"values": [{"serviceRef": "web"}], "disableArtifactValidation": true}}"#,
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
        "spec-of-pipeline-stage",
        "/pipeline/stages/2/stage/spec",
        &[
            ("org", r#""q""#),
            ("project", r#""q""#),
            ("pipeline", r#""other""#),
            ("inputs", r#"{"identifier": "child"}"#),
            ("pipelineInputs", r#"{"a": "b"}"#),
            ("inputSetReferences", r#"["s"]"#),
            ("outputs", r#"[{"name": "o", "value": "1"}]"#),
            ("gitBranch", r#""main""#),
        ],
    ),
];
