//! Entities, good and bad.

use proptest::prelude::*;

use super::*;

fn faults(text: &str) -> String {
    let found = match parse("f.yaml", text) {
        Ok(entity) => panic!("accepted: {:?}", entity.head),
        Err(found) => found,
    };
    found.iter().map(|fault| format!("{fault}\n")).collect()
}

const PIPELINE: &str = r#"
pipeline:
  name: Web
  identifier: web
  projectIdentifier: shop
  orgIdentifier: default
  tags: {team: a, tier: 1}
  variables:
    - {name: tag, type: String, value: <+input>.default(v1)}
  stages:
    - stage:
        name: Deploy to prod
        identifier: deploy
        type: Deployment
        spec:
          deploymentType: ECS
          service: {serviceRef: web, serviceInputs: <+input>}
          environment:
            environmentRef: account.prod
            deployToAll: false
            infrastructureDefinitions: [{identifier: ecs}]
          execution:
            steps:
              - step:
                  type: EcsRollingDeploy
                  name: Rollout
                  identifier: rollout
                  spec: {sameAsAlreadyRunningInstances: "<+pipeline.variables.same>", forceNewDeployment: true}
                  timeout: 10m
              - parallel:
                  - step: {type: Wait, name: W, identifier: w, spec: {duration: 30s}}
                  - step: {type: EcsScale, name: S, identifier: s, spec: {service: web, instanceUnit: Count, instances: 2}}
            rollbackSteps: []
        failureStrategies:
          - onFailure: {errors: [AllErrors], action: {type: StageRollback}}
"#;

#[test]
fn a_pipeline_gives_its_head() {
    let entity = parse("f.yaml", PIPELINE).unwrap();
    let head = &entity.head;
    assert_eq!(
        (head.kind, head.identifier.as_str(), head.name.as_str()),
        (Kind::Pipeline, "web", "Web")
    );
    assert_eq!(head.org.as_ref().unwrap().as_str(), "default");
    assert_eq!(
        head.tags,
        [("team".into(), "a".into()), ("tier".into(), "1".into())]
    );
    assert!(entity.warnings.is_empty());
}

#[test]
fn misspelt_fields_and_types_are_named_with_the_nearest() {
    let cases = [
        (
            "forceNewDeployment: true",
            "forceNewDeploymnt: true",
            "28:87: pipeline.stages[0].stage.spec.execution.steps[0].step.spec.forceNewDeploymnt: `forceNewDeploymnt` is no field of the spec of `EcsRollingDeploy`; did you mean `forceNewDeployment`?",
        ),
        (
            "type: EcsRollingDeploy",
            "type: EcsRolingDeploy",
            "25:25: pipeline.stages[0].stage.spec.execution.steps[0].step.type: `EcsRolingDeploy` is no `type` of a step; did you mean `EcsRollingDeploy`?",
        ),
        (
            "deploymentType: ECS",
            "deploymentType: Ecs",
            "16:27: pipeline.stages[0].stage.spec.deploymentType: `Ecs` is not accepted here; expected one of ",
        ),
        (
            "timeout: 10m",
            "timeout: ten",
            "29:28: pipeline.stages[0].stage.spec.execution.steps[0].step.timeout: `ten` is no duration; expected a duration",
        ),
        (
            "timeout: 10m",
            "timeout: 400d",
            "`400d` is out of range: from 1 second to 53 weeks",
        ),
        (
            "errors: [AllErrors]",
            "errors: [AllError]",
            "did you mean `AllErrors`?",
        ),
        (
            "duration: 30s",
            "durations: 30s",
            "`duration` is missing from the spec of `Wait`",
        ),
        (
            "identifier: rollout",
            "identifier: roll-out",
            "`roll-out` is not accepted here; expected an identifier",
        ),
        (
            "deployToAll: false",
            "deployToAll: maybe",
            "pipeline.stages[0].stage.spec.environment.deployToAll: `maybe` is not accepted here; expected true or false",
        ),
        (
            "<+pipeline.variables.same>",
            "<+pipeline.variables.>",
            "an expression does not parse at its line 1",
        ),
        (
            "identifier: s,",
            "identifier: w,",
            "the step `w` has the same identifier as the one at line 31, column 61",
        ),
        (
            "identifier: s,",
            "identifier: W,",
            "has the same identifier, but for its case, as",
        ),
        (
            "rollbackSteps: []",
            "rollbackSteps: {}",
            "a mapping stands where a list is expected",
        ),
        (
            "  stages:",
            "  stage:",
            "`stage` is no field of a pipeline; did you mean `stages`?",
        ),
        (
            "pipeline:",
            "pipelines:",
            "`pipelines` is no kind of entity; did you mean `pipeline`?",
        ),
    ];
    for (from, to, expected) in cases {
        let found = faults(&PIPELINE.replacen(from, to, 1));
        assert!(found.contains(expected), "{to}\n{found}");
    }
}

#[test]
fn every_fault_is_reported_at_once() {
    let text = "environment:\n  identifier: 1a\n  nam: x\n  type: Prod\n  variables: 3\n";
    insta::assert_snapshot!(faults(text), @r"
    f.yaml:2:15: environment.identifier: `1a` is not accepted here; expected an identifier: a letter or `_`, then letters, digits and `_`, at most 128 in all
    f.yaml:3:3: environment.nam: `nam` is no field of an environment; did you mean `name`?
    f.yaml:4:9: environment.type: `Prod` is not accepted here; expected one of Production, PreProduction; did you mean `Production`?
    f.yaml:5:14: environment.variables: a text stands where a list is expected; expected a list
    f.yaml:2:3: environment: `name` is missing from an environment
    ");
    let many: String = (0..500).map(|n| format!("  x{n}: 1\n")).collect();
    let found = parse("f", &format!("service:\n{many}")).unwrap_err();
    assert_eq!(found.len(), crate::diagnostic::MOST_DIAGNOSTICS + 1);
}

#[test]
fn what_is_no_entity_says_so() {
    assert!(
        faults("a: 1\nb: 2")
            .contains("`a` is no kind of entity; expected one root key of pipeline, service")
    );
    assert!(
        faults("service: {}\nenvironment: {}")
            .contains("one entity per document; separate documents with `---`")
    );
    assert!(faults("- a").contains("a list stands where an entity is expected"));
    assert!(faults("service:").contains("nothing stands where the fields of `service`"));
}

#[test]
fn aws_connectors_take_every_credential_type() {
    let connector = |credential: &str| {
        format!(
            "connector:\n  identifier: a\n  name: a\n  type: Aws\n  spec:\n    credential: {credential}\n    executeOnDelegate: true\n"
        )
    };
    for good in [
        "{type: InheritFromDelegate, spec: null, region: eu-west-1}",
        "{type: ManualConfig, spec: {accessKey: AKIA, secretKeyRef: account.key, sessionTokenRef: t}}",
        "{type: ManualConfig, spec: {accessKeyRef: id, secretKeyRef: key}}",
        "{type: Irsa, crossAccountAccess: {crossAccountRoleArn: arn, externalId: x}}",
        "{type: OidcAuthentication, spec: {iamRoleArn: arn}}",
    ] {
        let entity = parse("c", &connector(good)).unwrap();
        assert_eq!(entity.head.entity_type.as_deref(), Some("Aws"));
    }
    for (bad, expected) in [
        ("{type: Manual, spec: {}}", "did you mean `ManualConfig`?"),
        (
            "{type: ManualConfig, spec: {secretKeyRef: k}}",
            "needs one of these fields; expected accessKey or accessKeyRef",
        ),
        (
            "{type: Irsa, crossAccountAccess: {externalId: x}}",
            "`crossAccountRoleArn` is missing",
        ),
    ] {
        let found = faults(&connector(bad));
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn texts_of_harness_stay_texts() {
    let text = "service:\n  identifier: s\n  name: s\n  serviceDefinition:\n    type: ECS\n    spec:\n      artifacts: {primary: {primaryArtifactRef: a, sources: \
                [{identifier: a, type: Ecr, spec: {connectorRef: c, imagePath: i, region: r, tag: 1.10}}]}}\n      variables: [{name: v, type: Number, value: 3}]\n";
    let json = parse("s", text).unwrap().to_json();
    let spec = &json["serviceDefinition"]["spec"];
    assert_eq!(
        spec["artifacts"]["primary"]["sources"][0]["spec"]["tag"],
        "1.10"
    );
    assert_eq!(spec["variables"][0]["value"], "3");
}

#[test]
fn documents_of_one_file_are_entities_of_their_own() {
    let text = "environment:\n  identifier: e\n  name: e\n  type: Production\n---\nservice:\n  identifier: s\n  name: s\n";
    let kinds: Vec<_> = parse_documents("f", text)
        .unwrap()
        .iter()
        .map(|entity| entity.head.kind)
        .collect();
    assert_eq!(kinds, [Kind::Environment, Kind::Service]);
    assert_eq!(
        parse_documents("f", "# nothing\n").unwrap_err()[0].code,
        Code::Syntax
    );
}

#[test]
fn too_many_stages_or_steps_are_refused() {
    let stage = |n: usize| {
        format!(
            "    - stage: {{identifier: s{n}, name: s, type: Custom, spec: {{execution: {{steps: []}}}}}}\n"
        )
    };
    let many: String = (0..300).map(stage).collect();
    let found = faults(&format!(
        "pipeline:\n  identifier: p\n  name: p\n  stages:\n{many}"
    ));
    assert!(
        found.contains("300 stages; a pipeline has at most 256"),
        "{found}"
    );
    let step = |n: usize| {
        format!("{{step: {{identifier: s{n}, name: s, type: Barrier, spec: {{barrierRef: b}}}}}}")
    };
    let steps: Vec<_> = (0..257).map(step).collect();
    let found = faults(&format!(
        "pipeline: {{identifier: p, name: p, stages: [{{stage: {{identifier: a, name: a, type: Custom, spec: {{execution: \
         {{steps: [{{parallel: [{}]}}]}}}}}}}}]}}",
        steps.join(",")
    ));
    assert!(
        found.contains("257 branches; at most 256 run side by side"),
        "{found}"
    );
}

#[test]
fn large_documents_cost_in_proportion() {
    let began = std::time::Instant::now();
    let keys: String = (0..100_000).map(|n| format!("  unknown{n}: 1\n")).collect();
    let text = format!("service:\n  identifier: s\n  name: s\n{keys}");
    assert_eq!(
        parse("f", &text).unwrap_err().len(),
        crate::diagnostic::MOST_DIAGNOSTICS + 1
    );

    let tags: String = (0..100_000).map(|n| format!("    t{n}: a\n")).collect();
    let text = format!("service:\n  identifier: s\n  name: s\n  tags:\n{tags}");
    let service = parse("f", &text).unwrap();
    let inputs = crate::inputs::merge(&service, &[&service.tree]).unwrap();
    assert_eq!(inputs.head.tags.len(), 100_000);

    let items: String = (0..50_000)
        .map(|n| format!("    - {{name: v, type: String, value: <+input>, id: {n}}}\n"))
        .collect();
    let text = format!(
        "environment:\n  identifier: e\n  name: e\n  type: Production\n  variables:\n{items}"
    );
    let environment = parse("f", &text).unwrap();
    assert!(crate::inputs::merge(&environment, &[&environment.tree]).is_err());
    // A square of these sizes would take minutes.
    assert!(began.elapsed().as_secs() < 30);
}

proptest! {
    #[test]
    fn no_document_breaks_the_check(text in "\\PC{0,30}", at in 0..PIPELINE.len()) {
        if PIPELINE.is_char_boundary(at) {
            let mut broken = PIPELINE.to_owned();
            broken.insert_str(at, &text);
            let _ = parse("f", &broken);
        }
    }
}

fn with_number(value: &str) -> String {
    let one = format!("{{name: n, type: Number, {value}}}");
    PIPELINE.replacen(
        "{name: tag, type: String, value: <+input>.default(v1)}",
        &one,
        1,
    )
}

#[test]
fn a_number_is_a_number() {
    insta::assert_snapshot!(faults(&with_number("value: v1")), @"f.yaml:9:38: pipeline.variables[0].value: `v1` is not accepted here; expected a number such as `3`, `-2` or `0.5`");
    insta::assert_snapshot!(faults(&with_number("value: [1]")), @"f.yaml:9:38: pipeline.variables[0].value: a list stands where a single value is expected; expected a number such as `3`, `-2` or `0.5`");
    insta::assert_snapshot!(faults(&with_number("value: true")), @"f.yaml:9:38: pipeline.variables[0].value: `true` is not accepted here; expected a number such as `3`, `-2` or `0.5`");
    for value in [
        "3",
        "\"3\"",
        "-0.5",
        "\"\"",
        "",
        "<+input>",
        "<+input>.default(3)",
        "<+pipeline.sequenceId>",
    ] {
        let entity = parse("f.yaml", &with_number(&format!("value: {value}"))).unwrap();
        assert!(entity.warnings.is_empty(), "{value}");
    }
    let entity = parse("f.yaml", &with_number("value: 1.50")).unwrap();
    insta::assert_snapshot!(entity.warnings[0], @"f.yaml:9:38: pipeline.variables[0].value: `1.50` is the number 1.5 and told so; where its spelling matters, it is a String");
}
