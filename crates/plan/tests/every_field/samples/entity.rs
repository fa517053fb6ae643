//! Fields of what pipelines refer to.

use slipway_model::Kind;

use super::{STORE, Samples};

pub(super) const ALL: &[Samples] = &[
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
