//! Inputs: asked for, given, missing.

use super::*;
use crate::entity::{Parsed, parse};
use crate::{Tree, emit, yaml};

const PIPELINE: &str = "
pipeline:
  identifier: p
  name: p
  variables:
    - {name: tag, type: String, value: <+input>}
    - {name: size, type: Number, value: '<+input>.allowedValues(1,2,3)', default: 2}
    - {name: note, type: String, value: <+input>, required: false}
    - {name: fixed, type: String, value: x}
  stages:
    - parallel:
        - stage:
            identifier: a
            name: a
            type: Custom
            when: <+input>
            spec:
              execution:
                steps:
                  - step: {identifier: w, name: w, type: Wait, spec: {duration: <+input>.default(1m)}}
        - stage:
            identifier: b
            name: b
            type: Deployment
            spec:
              deploymentType: ECS
              service: {serviceRef: '<+input>.regex(web-?[a-z]*)', serviceInputs: <+input>}
              environment: {environmentRef: e, infrastructureDefinitions: <+input>}
              execution: {steps: []}
            failureStrategies: []
";

fn pipeline() -> Parsed {
    parse("p.yaml", PIPELINE).unwrap()
}

fn merged(inputs: &str) -> Result<Parsed, String> {
    let tree = yaml::parse("in.yaml", inputs).unwrap();
    merge(&pipeline(), &[&tree])
        .map_err(|faults| faults.iter().map(|fault| format!("{fault}\n")).collect())
}

const GIVEN: &str = "
pipeline:
  identifier: p
  variables:
    - {name: tag, type: String, value: v1.10}
  stages:
    - parallel:
        - stage:
            identifier: b
            type: Deployment
            spec:
              service: {serviceRef: web-x}
              environment: {infrastructureDefinitions: [{identifier: ecs}]}
";

#[test]
fn requests_are_read() {
    let read = |text: &str| RuntimeInput::parse(text);
    let with = |change: fn(&mut RuntimeInput)| {
        let mut input = RuntimeInput::default();
        change(&mut input);
        Some(input)
    };
    assert_eq!(read("<+input>"), with(|_| {}));
    assert_eq!(
        read("<+input>.default(a.b)"),
        with(|i| i.default = Some("a.b".into()))
    );
    assert_eq!(
        read("<+input>.default(\"2\")"),
        with(|i| i.default = Some("2".into()))
    );
    assert_eq!(
        read("<+input>.default()"),
        with(|i| i.default = Some(String::new()))
    );
    assert_eq!(
        read(
            "<+input>.default(<+codebase.branch>).allowedValues(a, 'b,c',<+x(1,2)>).executionInput()"
        ),
        with(|i| {
            i.default = Some("<+codebase.branch>".into());
            i.allowed = vec!["a".into(), "b,c".into(), "<+x(1,2)>".into()];
            i.execution = true;
        })
    );
    assert_eq!(
        read("<+input>.regex(^([a-z])(x|y)$)"),
        with(|i| i.regex = Some("^([a-z])(x|y)$".into()))
    );
    assert_eq!(
        read("<+input>.regex([(]a)"),
        with(|i| i.regex = Some("[(]a".into()))
    );
    for other in [
        "<+inputs>",
        "x<+input>",
        "<+input>-x",
        "<+input>.nope(1)",
        "<+input>.default(a",
        "",
        "<+pipeline.name>",
    ] {
        assert_eq!(read(other), None, "{other}");
    }
}

#[test]
fn the_template_holds_only_what_is_asked_for() {
    let template = template(&pipeline().tree).unwrap();
    insta::assert_snapshot!(emit::to_yaml(&template), @r#"
    pipeline:
      identifier: p
      variables:
      - name: tag
        type: String
        value: <+input>
      - name: size
        type: Number
        value: "<+input>.allowedValues(1,2,3)"
      - name: note
        type: String
        value: <+input>
      stages:
      - parallel:
        - stage:
            identifier: a
            type: Custom
            when: <+input>
            spec:
              execution:
                steps:
                - step:
                    identifier: w
                    type: Wait
                    spec:
                      duration: <+input>.default(1m)
        - stage:
            identifier: b
            type: Deployment
            spec:
              service:
                serviceRef: "<+input>.regex(web-?[a-z]*)"
                serviceInputs: <+input>
              environment:
                infrastructureDefinitions: <+input>
    "#);
    assert!(
        super::template(
            &parse(
                "e",
                "environment: {identifier: e, name: e, type: Production}"
            )
            .unwrap()
            .tree
        )
        .is_none()
    );
}

#[test]
fn given_inputs_take_their_places() {
    let merged = merged(GIVEN).unwrap();
    let stages = merged
        .body()
        .get("stages")
        .unwrap()
        .items()
        .next()
        .unwrap()
        .get("parallel")
        .unwrap();
    let stage = |n: usize| stages.items().nth(n).unwrap().get("stage").unwrap();
    let values: Vec<_> = merged
        .body()
        .get("variables")
        .unwrap()
        .items()
        .map(|v| v.get_text("value"))
        .collect();
    assert_eq!(values, [Some("v1.10"), Some("2"), Some(""), Some("x")]);
    assert!(stage(0).get("when").is_none());
    let wait = stage(0)
        .at(&["spec", "execution", "steps"])
        .unwrap()
        .items()
        .next()
        .unwrap();
    assert_eq!(
        wait.at(&["step", "spec", "duration"]).unwrap().text(),
        Some("1m")
    );
    let service = stage(1).at(&["spec", "service"]).unwrap();
    assert_eq!(service.get_text("serviceRef"), Some("web-x"));
    assert_eq!(
        (service.get("serviceRef").unwrap().file(), service.file()),
        ("in.yaml", "p.yaml")
    );
    assert!(service.get("serviceInputs").is_none());
}

#[test]
fn missing_and_wrong_inputs_are_reported_together() {
    insta::assert_snapshot!(merged("pipeline: {identifier: p}").unwrap_err(), @r"
    p.yaml:6:40: pipeline.variables[0].value: the runtime input `tag` has no value
    p.yaml:27:37: pipeline.stages[0].parallel[1].stage.spec.service.serviceRef: the runtime input `serviceRef` has no value
    p.yaml:28:75: pipeline.stages[0].parallel[1].stage.spec.environment.infrastructureDefinitions: the runtime input `infrastructureDefinitions` has no value
    ");
    let wrong = "
pipeline:
  identifier: q
  variables:
    - {name: tag, value: t}
    - {name: size, value: 9}
    - {name: fixed, value: y}
    - {name: nobody, value: y}
  stages:
    - stage: {identifier: b, spec: {service: {serviceRef: api}, environment: {infrastructureDefinitions: [{identifer: ecs}]}}}
    - stage: {identifier: z, spec: {}}
";
    insta::assert_snapshot!(merged(wrong).unwrap_err(), @r"
    in.yaml:3:15: pipeline.identifier: `identifier` is no runtime input: its value is fixed, or there is no such field
    in.yaml:8:7: pipeline.variables.nobody: `nobody` is no runtime input: its value is fixed, or there is no such field
    in.yaml:6:27: pipeline.variables[1].value: `9` is not allowed here; expected one of 1, 2, 3
    in.yaml:7:28: pipeline.variables[3].value: `value` is no runtime input: its value is fixed, or there is no such field
    in.yaml:11:7: pipeline.stages.z: `z` is no runtime input: its value is fixed, or there is no such field
    in.yaml:10:59: pipeline.stages[0].parallel[1].stage.spec.service.serviceRef: `api` is not allowed here; expected a text that matches web-?[a-z]*
    ");
    assert!(
        merged("variables: []")
            .unwrap_err()
            .contains("expected the root key `pipeline` alone")
    );
}

#[test]
fn numbers_are_given_as_numbers() {
    let pipeline = parse(
        "p.yaml",
        "pipeline: {identifier: p, name: P, variables: [{name: n, type: Number, value: <+input>}], stages: []}",
    );
    let pipeline = pipeline.unwrap();
    let told = |tree: &Tree| match merge(&pipeline, &[tree]) {
        Ok(_) => "fine".to_owned(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    };
    let file = |value: &str| {
        let text = format!("pipeline: {{variables: [{{name: n, value: {value}}}]}}");
        told(&yaml::parse("in.yaml", &text).unwrap())
    };
    let option = |value: &str| {
        let tree = from_assignments(&pipeline, &[("n".to_owned(), value.to_owned())]);
        told(&tree.unwrap().unwrap())
    };
    insta::assert_snapshot!(file("many"), @"in.yaml:1:41: pipeline.variables[0].value: `many` is not accepted here; expected a number such as `3`, `-2` or `0.5`");
    insta::assert_snapshot!(option("1,5"), @"--input: pipeline.variables[0].value: `1,5` is not accepted here; expected a number such as `3`, `-2` or `0.5`");
    assert_eq!([file("007"), option("1e3"), option("-2.5")], ["fine"; 3]);
}

#[test]
fn assignments_are_inputs() {
    let assign = |pairs: &[(&str, &str)]| {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        from_assignments(&pipeline(), &pairs)
    };
    let tree: Tree = assign(&[
        ("tag", "v2"),
        ("variables.size", "3"),
        ("pipeline.variables.note", "hi: there"),
        ("stages.b.spec.service.serviceRef", "web"),
        (
            "pipeline.stages[0].parallel[0].stage.spec.execution.steps.w.spec.duration",
            "2m",
        ),
    ])
    .unwrap()
    .unwrap();
    insta::assert_snapshot!(emit::to_yaml(&tree), @r#"
    pipeline:
      identifier: p
      variables:
      - name: tag
        type: String
        value: v2
      - name: size
        type: Number
        value: 3
      - name: note
        type: String
        value: "hi: there"
      stages:
      - parallel:
        - stage:
            identifier: a
            type: Custom
            spec:
              execution:
                steps:
                - step:
                    identifier: w
                    type: Wait
                    spec:
                      duration: 2m
        - stage:
            identifier: b
            type: Deployment
            spec:
              service:
                serviceRef: web
    "#);
    let later = yaml::parse("in", GIVEN).unwrap();
    let both = merge(&pipeline(), &[&later, &tree]).unwrap();
    assert_eq!(
        both.body()
            .get("variables")
            .unwrap()
            .items()
            .next()
            .unwrap()
            .get_text("value"),
        Some("v2")
    );

    let empty = assign(&[("tag", "")]).unwrap().unwrap();
    assert!(emit::to_yaml(&empty).contains("value: \"\"\n"));

    let faults = assign(&[
        ("tga", "1"),
        ("variables.fixed", "1"),
        ("stages.c.name", "1"),
    ])
    .unwrap_err();
    let shown: String = faults.iter().map(|fault| format!("{fault}\n")).collect();
    insta::assert_snapshot!(shown, @r"
    --input: tga: `tga` names no field of the pipeline; expected one of variables.tag, variables.size, variables.note, pipeline.stages[0].parallel[0].stage.when, pipeline.stages[0].parallel[0].stage.spec.execution.steps[0].step.spec.duration, pipeline.stages[0].parallel[1].stage.spec.service.serviceRef, pipeline.stages[0].parallel[1].stage.spec.service.serviceInputs, pipeline.stages[0].parallel[1].stage.spec.environment.infrastructureDefinitions
    --input: variables.fixed: `pipeline.variables[3].value` is no runtime input: it does not hold <+input>
    --input: stages.c.name: `stages.c.name` names no field of the pipeline; expected one of variables.tag, variables.size, variables.note, pipeline.stages[0].parallel[0].stage.when, pipeline.stages[0].parallel[0].stage.spec.execution.steps[0].step.spec.duration, pipeline.stages[0].parallel[1].stage.spec.service.serviceRef, pipeline.stages[0].parallel[1].stage.spec.service.serviceInputs, pipeline.stages[0].parallel[1].stage.spec.environment.infrastructureDefinitions
    ");
    assert!(assign(&[]).unwrap().is_none());
}

#[test]
fn patterns_cannot_be_slow() {
    let input = RuntimeInput::parse("<+input>.regex((a+)+$)").unwrap();
    let began = std::time::Instant::now();
    assert!(input.check(&format!("{}b", "a".repeat(100_000))).is_err());
    assert!(began.elapsed().as_secs() < 2);
    assert!(
        RuntimeInput::parse("<+input>.regex((?!x)y)")
            .unwrap()
            .check("y")
            .unwrap_err()
            .contains("cannot")
    );
}

/// Only the source of the primary artifact is deployed, and only its inputs are asked for.
#[test]
fn sources_that_are_not_deployed_ask_for_nothing() {
    let service = |primary: &str| {
        let text = format!(
            "service:
  identifier: web
  name: web
  serviceDefinition:
    type: ECS
    spec:
      artifacts:
        primary:
          primaryArtifactRef: {primary}
          sources:
            - {{identifier: one, type: DockerRegistry, spec: {{connectorRef: hub, imagePath: a, tag: <+input>}}}}
            - {{identifier: two, type: DockerRegistry, spec: {{connectorRef: hub, imagePath: b, tag: <+input>}}}}
"
        );
        parse("web.yaml", &text).unwrap()
    };
    let given = |primary: &str| {
        let text = format!(
            "serviceDefinition: {{type: ECS, spec: {{artifacts: {{primary: {{{primary}}}}}}}}}"
        );
        yaml::parse("in.yaml", &text).unwrap()
    };
    let one = "sources: [{identifier: one, type: DockerRegistry, spec: {tag: '1.0'}}]";
    let table = [
        (
            "<+input>",
            format!("primaryArtifactRef: one, {one}"),
            "one 1.0",
        ),
        ("one", one.to_owned(), "one 1.0"),
        (
            "one",
            one.replace(
                "]",
                ", {identifier: two, type: DockerRegistry, spec: {tag: '2.0'}}]",
            ),
            "one 1.0",
        ),
        (
            "two",
            "sources: ''".to_owned(),
            "runtime input `tag` has no value",
        ),
        (
            "<+input>",
            one.to_owned(),
            "runtime input `primaryArtifactRef` has no value",
        ),
        (
            "two",
            "sources: x".to_owned(),
            "`sources` is no runtime input",
        ),
        (
            "one",
            one.replace("one", "three"),
            "sources.three: `three` is no runtime input",
        ),
    ];
    for (primary, inputs, expected) in table {
        let inputs = given(&inputs);
        let told = match merge_entity(&service(primary), &[inputs.root()]) {
            Err(faults) => faults.iter().map(|fault| format!("{fault}\n")).collect(),
            Ok(whole) => {
                let sources = whole.body().at(&[
                    "serviceDefinition",
                    "spec",
                    "artifacts",
                    "primary",
                    "sources",
                ]);
                let source = |source: Ref<'_>| {
                    let tag = source.get("spec").and_then(|spec| spec.get_text("tag"));
                    format!(
                        "{} {}",
                        source.get_text("identifier").unwrap(),
                        tag.unwrap()
                    )
                };
                let sources: Vec<_> = sources.unwrap().items().map(source).collect();
                sources.join(", ")
            }
        };
        assert!(told.contains(expected), "{primary}: {told}");
    }
    for (primary, asks) in [("two", &["two"][..]), ("<+input>", &["one", "two"][..])] {
        let service = service(primary);
        let form = emit::to_yaml(&template(&service.tree).unwrap());
        let asked: Vec<_> = ["one", "two"]
            .into_iter()
            .filter(|id| form.contains(id))
            .collect();
        assert_eq!(asked, asks, "{form}");
    }
}
