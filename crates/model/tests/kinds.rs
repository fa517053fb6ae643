//! Every kind of entity: the least that is accepted, and what is refused, with its place.

use slipway_model::entity::{self, Kind};

fn parse(text: &str) -> Result<entity::Parsed, String> {
    entity::parse("f.yaml", text).map_err(|faults| {
        let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })
}

/// A document of a kind with an identifier, a name and these further lines.
fn named(key: &str, lines: &str) -> String {
    format!("{key}:\n  identifier: a\n  name: A\n{lines}")
}

#[test]
fn the_least_of_every_kind_is_accepted() {
    let scripted = "    source:\n      type: Inline\n      spec:\n        script: echo\n";
    let cases = [
        (Kind::Pipeline, named("pipeline", "  stages: []\n")),
        (Kind::Service, named("service", "")),
        (
            Kind::Environment,
            named("environment", "  type: Production\n"),
        ),
        (
            Kind::Infrastructure,
            named(
                "infrastructureDefinition",
                "  environmentRef: prod\n  type: Pdc\n  spec:\n    hosts: [h]\n    credentialsRef: key\n",
            ),
        ),
        (
            Kind::Connector,
            named(
                "connector",
                "  type: DockerRegistry\n  spec:\n    dockerRegistryUrl: https://r\n",
            ),
        ),
        (
            Kind::Secret,
            named("secret", "  type: SecretFile\n  spec: {}\n"),
        ),
        (Kind::Organization, named("organization", "")),
        (Kind::Project, named("project", "")),
        (
            Kind::Template,
            named(
                "template",
                &format!(
                    "  versionLabel: '1'\n  type: SecretManager\n  spec:\n    shell: Bash\n{scripted}"
                ),
            ),
        ),
        (
            Kind::InputSet,
            named("inputSet", "  pipeline:\n    identifier: p\n"),
        ),
        (
            Kind::OverlayInputSet,
            named(
                "overlayInputSet",
                "  pipelineIdentifier: p\n  inputSetReferences: [a, b]\n",
            ),
        ),
        (
            Kind::Trigger,
            named("trigger", "  orgIdentifier: o\n  projectIdentifier: p\n"),
        ),
        (
            Kind::Freeze,
            named(
                "freeze",
                "  status: Enabled\n  entityConfigs:\n  - name: r\n    entities: [{type: Service, filterType: All}]\n  windows:\n  - timeZone: UTC\n    startTime: 2026-01-01 10:00 AM\n    duration: 30m\n",
            ),
        ),
        (
            Kind::EnvironmentGroup,
            named("environmentGroup", "  envIdentifiers: [a, org.b]\n"),
        ),
        (Kind::Overrides, "overrides:\n  variables: []\n".to_owned()),
        (
            Kind::ServiceOverrides,
            "serviceOverrides:\n  environmentRef: e\n  serviceRef: s\n".to_owned(),
        ),
        (
            Kind::Variable,
            named(
                "variable",
                "  type: String\n  spec:\n    valueType: FIXED\n    fixedValue: x\n",
            ),
        ),
        (Kind::File, named("file", "  type: FILE\n  content: x\n")),
        (
            Kind::UserGroup,
            named(
                "userGroup",
                "  users: [sam, alex@example.com]\n  notificationConfigs:\n  - type: SLACK\n    slackWebhookUrl: https://x\n",
            ),
        ),
    ];
    for kind in Kind::ALL {
        let (_, text) = cases
            .iter()
            .find(|(of, _)| *of == kind)
            .expect("a case for every kind");
        let parsed = parse(text).unwrap_or_else(|faults| panic!("{}: {faults}", kind.key()));
        assert_eq!(parsed.head.kind, kind);
        assert_eq!(parsed.warnings, [], "{}", kind.key());
    }
}

#[test]
fn heads_tell_what_lists_need() {
    let overrides = "overrides:\n  type: ENV_SERVICE_OVERRIDE\n  environmentRef: org.prod\n  serviceRef: shop\n  spec:\n    variables: []\n";
    let head = parse(overrides).unwrap().head;
    assert_eq!(head.identifier.as_str(), "org_prod_shop");
    assert_eq!(
        head.env_ref.as_ref().map(|id| id.as_str()),
        Some("org.prod")
    );
    assert_eq!(
        head.service_ref.as_ref().map(|id| id.as_str()),
        Some("shop")
    );
    assert_eq!(head.entity_type.as_deref(), Some("ENV_SERVICE_OVERRIDE"));

    let template = named(
        "template",
        "  versionLabel: v1\n  type: Step\n  spec:\n    type: Wait\n    spec:\n      duration: 10s\n",
    );
    let head = parse(&template).unwrap().head;
    assert_eq!(
        (head.version_label.as_deref(), head.entity_type.as_deref()),
        (Some("v1"), Some("Step"))
    );

    for text in [
        named("inputSet", "  pipeline:\n    identifier: p\n"),
        named(
            "overlayInputSet",
            "  pipeline:\n    identifier: p\n  inputSetReferences: []\n",
        ),
        named(
            "trigger",
            "  orgIdentifier: o\n  projectIdentifier: p\n  pipelineIdentifier: p\n",
        ),
    ] {
        assert_eq!(
            parse(&text)
                .unwrap()
                .head
                .pipeline
                .as_ref()
                .map(|id| id.as_str()),
            Some("p")
        );
    }
}

#[test]
fn faults_of_the_kinds_are_named() {
    let webhook = |event: &str| {
        named(
            "trigger",
            &format!(
                "  orgIdentifier: o\n  projectIdentifier: p\n  source:\n    type: Webhook\n    spec:\n      type: Github\n      spec:\n        {event}"
            ),
        )
    };
    let staged = |fields: &str| {
        named(
            "pipeline",
            &format!(
                "  stages:\n  - stage:\n      identifier: s\n      name: s\n      type: Deployment\n    {fields}\n"
            ),
        )
    };
    let cases = [
        (
            named(
                "template",
                "  type: Step\n  spec:\n    type: Wait\n    spec:\n      duration: 10s\n",
            ),
            "template: `versionLabel` is missing from a template",
        ),
        (
            named(
                "template",
                "  versionLabel: a b\n  type: Stage\n  spec: {}\n",
            ),
            "template.versionLabel: `a b` is not accepted here; expected a version",
        ),
        (
            named(
                "template",
                "  versionLabel: v1\n  type: Stages\n  spec: {}\n",
            ),
            "did you mean `Stage`?",
        ),
        (
            named(
                "template",
                "  versionLabel: v1\n  type: Stage\n  spec:\n    type: Custom\n    spec:\n      execution: {}\n",
            ),
            "template.spec.spec.execution: `steps` is missing from an execution",
        ),
        (
            named(
                "inputSet",
                "  pipeline:\n    identifier: p\n    stages:\n    - stage:\n        identifer: s\n",
            ),
            "inputSet.pipeline.stages[0].stage.identifer: `identifer` is no field of a stage; did you mean `identifier`?",
        ),
        (
            named("overlayInputSet", "  inputSetReferences: []\n"),
            "an overlay of input sets needs one of these fields; expected pipelineIdentifier or pipeline",
        ),
        (
            webhook("type: PullRequest\n        spec:\n          actions: [Opened]\n"),
            "trigger.source.spec.spec.spec.actions[0]: `Opened` is not accepted here",
        ),
        (
            webhook("type: Pushed\n        spec: {}\n"),
            "`Pushed` is no `type` of a GitHub event; did you mean `Push`?",
        ),
        (
            named(
                "freeze",
                "  windows:\n  - timeZone: UTC\n    startTime: x\n",
            ),
            "a window needs one of these fields; expected duration or endTime",
        ),
        (
            "overrides:\n  type: ENV_OVERRIDE\n".to_owned(),
            "overrides.type: `ENV_OVERRIDE` is not accepted here",
        ),
        (
            named(
                "secret",
                "  type: SSHKey\n  spec:\n    port: 70000\n    auth:\n      type: SSH\n      spec:\n        credentialType: KeyReference\n        spec: {}\n",
            ),
            "secret.spec.port: `70000` is not accepted here; expected a whole number from 1 to 65535",
        ),
        (
            named(
                "infrastructureDefinition",
                "  environmentRef: e\n  type: TAS\n  spec:\n    connectorRef: c\n    organization: o\n",
            ),
            "infrastructureDefinition.spec: `space` is missing from the spec of a TAS infrastructure",
        ),
        (
            named(
                "service",
                "  serviceDefinition:\n    type: AiAgent\n    spec:\n      platform:\n        type: AwsAgent\n",
            ),
            "`AwsAgent` is no `type` of the platform of an AI agent",
        ),
        (
            staged("  runMode: {type: Manual}\n    spec: {execution: {steps: []}}"),
            "stage.runMode: `timeout` is missing from `runMode` with `type` Manual",
        ),
        (
            staged(
                "  spec: {service: {serviceRef: a}, services: {values: []}, execution: {steps: []}}",
            ),
            "the spec of a deployment stage may have only one of these fields; expected service or services or serviceConfig",
        ),
        (
            named("variable", "  type: String\n  spec: {}\n"),
            "variable.spec: `valueType` is missing from the spec of a variable",
        ),
    ];
    for (text, expected) in cases {
        let faults = parse(&text).expect_err(expected);
        assert!(faults.contains(expected), "{faults}\n  lacks: {expected}");
        assert!(
            faults.lines().all(|line| line.starts_with("f.yaml:")),
            "{faults}"
        );
    }
}

#[test]
fn an_input_set_is_part_of_a_pipeline() {
    // Neither the type of the stage nor the name of the step is there, and that is fine.
    let text = named(
        "inputSet",
        "  pipeline:\n    identifier: p\n    stages:\n    - stage:\n        identifier: s\n        spec:\n          execution:\n            steps:\n            - step:\n                identifier: x\n                type: Http\n                spec:\n                  url: https://x\n",
    );
    parse(&text).unwrap();
}

#[test]
fn a_body_of_a_template_needs_no_identifier() {
    let steps = "    steps:\n    - step:\n        identifier: w\n        name: w\n        type: Wait\n        spec:\n          duration: 10s\n";
    let group = |more: &str| {
        named(
            "template",
            &format!(
                "  versionLabel: v1\n  type: StepGroup\n  spec:\n    stageType: Custom\n{steps}{more}"
            ),
        )
    };
    parse(&group("")).unwrap();
    let twice = group(
        "    - step:\n        identifier: W\n        name: w\n        type: Wait\n        spec:\n          duration: 10s\n",
    );
    assert!(
        parse(&twice)
            .unwrap_err()
            .contains("the step `W` has the same identifier, but for its case")
    );

    let named_only = named(
        "template",
        "  versionLabel: v1\n  type: StepGroup\n  spec:\n    steps:\n    - Deploy it\n",
    );
    let warnings = parse(&named_only).unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].message.contains("a text is no step"),
        "{}",
        warnings[0]
    );
}

#[test]
fn what_harness_has_no_schema_for_may_have_more_fields() {
    let text = named(
        "connector",
        "  type: Jenkins\n  spec:\n    jenkinsUrl: https://j\n    proxi: x\n",
    );
    let warnings = parse(&text).unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].suggestion.as_deref(), Some("proxy"));
    let aws = named(
        "connector",
        "  type: Aws\n  spec:\n    credential:\n      type: Irsa\n    regions: x\n",
    );
    assert!(parse(&aws).unwrap_err().contains("`regions` is no field"));
}

#[test]
fn warnings_do_not_hide_errors() {
    let mut text = named("service", "");
    for n in 0..300 {
        text.push_str(&format!("  empty{n}:\n"));
    }
    text.push_str("  gitOpsEnabled: perhaps\n");
    let faults = parse(&text).unwrap_err();
    assert!(
        faults.contains("`perhaps` is not accepted here"),
        "{faults}"
    );
}

#[test]
fn a_slip_of_a_field_is_refused_and_an_invented_one_noted() {
    let with = |field: &str| named("service", &format!("  gitOpsEnabled: true\n  {field}: x\n"));
    let cases = [
        // Nearly `description`, which is not there.
        (
            "desription",
            Err("`desription` is no field of a service; did you mean `description`?"),
        ),
        // Nearly `gitOpsEnabled`, which is there already.
        (
            "gitOpsEnabld",
            Ok("`gitOpsEnabld` is no field of a service and has no effect"),
        ),
        (
            "moonPhase",
            Ok("`moonPhase` is no field of a service and has no effect"),
        ),
    ];
    for (field, expected) in cases {
        match (parse(&with(field)), expected) {
            (Ok(parsed), Ok(warning)) => {
                assert_eq!(parsed.warnings.len(), 1, "{field}");
                assert!(
                    parsed.warnings[0].to_string().contains(warning),
                    "{}",
                    parsed.warnings[0]
                );
                assert_eq!(parsed.warnings[0].path, format!("service.{field}"));
            }
            (Err(faults), Err(expected)) => assert!(faults.contains(expected), "{faults}"),
            (found, _) => panic!("{field}: {found:?}"),
        }
    }
    let many: String = (0..101).map(|n| format!("  moon{n}: x\n")).collect();
    let faults = parse(&named("service", &many)).unwrap_err();
    assert!(
        faults.contains("more than 100 fields are none that Harness has"),
        "{faults}"
    );
}

#[test]
fn inputs_in_a_stage_are_parts_of_what_they_are_for() {
    let stage = |lines: &str| {
        format!(
            "pipeline:\n  identifier: p\n  name: p\n  stages:\n  - stage:\n      identifier: s\n      name: s\n      type: Deployment\n      \
             failureStrategies: []\n      spec:\n        deploymentType: ECS\n        execution:\n          steps: []\n{lines}"
        )
    };
    let fine = "        service:\n          serviceRef: web\n          serviceInputs:\n            serviceDefinition:\n              type: ECS\n              \
                spec:\n                variables:\n                - name: a\n                  type: String\n                  value: b\n        \
                environment:\n          environmentRef: prod\n          environmentInputs:\n            type: Production\n          \
                infrastructureDefinitions:\n          - identifier: i\n            inputs:\n              type: ECS\n              spec:\n                \
                cluster: c\n";
    parse(&stage(fine)).unwrap();
    let cases = [
        (
            fine.replace("serviceDefinition", "serviceDefinitoin"),
            "did you mean `serviceDefinition`?",
        ),
        (
            fine.replace("cluster:", "clustr:"),
            "did you mean `cluster`?",
        ),
        (
            fine.replace("type: Production", "type: Staging"),
            "`Staging` is not accepted here",
        ),
    ];
    for (lines, expected) in cases {
        let faults = parse(&stage(&lines)).expect_err(expected);
        assert!(faults.contains(expected), "{faults}");
    }
}

#[test]
fn an_expression_that_is_spelt_out_is_noted() {
    let text = "pipeline:\n  identifier: p\n  name: p\n  timeout:\n    expression:\n      isExpression: true\n      expressionValue: <+input>\n";
    let warnings = parse(text).unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].path, "pipeline.timeout");
    assert!(
        parse(&text.replace("expressionValue", "value"))
            .unwrap_err()
            .contains("a mapping stands where a single value")
    );
}

/// Harness's own editor writes the empty list.
#[test]
fn no_actions_of_an_event_that_has_none_are_not_worth_a_word() {
    let push = |actions: &str| {
        let text = named(
            "trigger",
            &format!(
                "  orgIdentifier: o\n  projectIdentifier: p\n  source:\n    type: Webhook\n    spec:\n      type: Github\n      spec:\n        type: Push\n        spec:\n          actions: {actions}\n"
            ),
        );
        parse(&text).expect("a trigger").warnings.len()
    };
    assert_eq!((push("[]"), push("[Open]")), (0, 1));
}
