//! Templates put in, well and badly.

use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use slipway_model::id::{AccountId, EntityId, OrgId, ProjectId};
use slipway_model::{Kind, emit};

use super::*;
use crate::{Found, Reference, Snapshot};

fn project() -> Scope {
    let (account, org) = (AccountId::new("acc"), OrgId::new("default"));
    Scope::project(account, org, ProjectId::new("shop"))
}

/// Templates where their prefix puts them, each also as its stable version.
fn world(templates: &[(&str, String)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (at, yaml) in templates {
        let template = entity::parse(at, yaml).unwrap_or_else(|f| panic!("{at}: {}", f[0]));
        let (scope, id) = project().resolve(at);
        let version = template.body().get_text("versionLabel").unwrap();
        let found = Some(Found::Entity(Arc::new(template.clone())));
        let mut reference = Reference {
            scope,
            kind: Kind::Template.key(),
            parent: Some(id.clone()),
            id: EntityId::new(version),
        };
        snapshot.put(reference.clone(), found.clone());
        (reference.parent, reference.id) = (None, id);
        snapshot.put(reference, found);
    }
    snapshot
}

fn template(id: &str, kind: &str, spec: &str) -> String {
    format!(
        "template: {{identifier: {id}, name: {id}, versionLabel: 1.0, type: {kind}, spec: {spec}}}"
    )
}

fn expanded(pipeline: &str, templates: &[(&str, String)]) -> Result<String, String> {
    expanded_as(pipeline, templates, Unfilled::Fault)
}

fn expanded_as(
    pipeline: &str,
    templates: &[(&str, String)],
    unfilled: Unfilled,
) -> Result<String, String> {
    let told = |faults: Vec<Diagnostic>| {
        let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
        lines.join("\n")
    };
    let parsed = entity::parse("pipeline", pipeline).map_err(told)?;
    let snapshot = world(templates);
    let source = Source {
        entities: &snapshot,
        asked: &RefCell::default(),
        unfilled,
    };
    let whole = expand(&source, &parsed, &project()).map_err(told)?;
    let (whole, _) = whole.unwrap_or((parsed, Vec::new()));
    Ok(emit::to_yaml(&whole.tree))
}

fn pipeline(stages: &str) -> String {
    format!("pipeline: {{identifier: p, name: P, stages: {stages}}}")
}

/// A Custom stage with these steps.
fn stage(steps: &str) -> String {
    pipeline(&format!(
        "[{{stage: {{identifier: s, name: S, type: Custom, spec: {{execution: {{steps: {steps}}}}}}}}}]"
    ))
}

const WAIT: &str = "{type: Wait, timeout: 1m, spec: {duration: <+input>}}";

#[test]
fn a_template_takes_the_place_of_its_link() {
    let templates = [
        ("account.pause", template("pause", "Step", WAIT)),
        (
            "org.pair",
            template(
                "pair",
                "StepGroup",
                "{stageType: Custom, steps: [
                   {step: {identifier: a, name: A, template: {templateRef: account.pause, versionLabel: 1.0, templateInputs: {spec: {duration: <+input>}}}}},
                   {step: {identifier: b, name: B, template: {templateRef: account.pause, templateInputs: {spec: {duration: 20s}}}}}]}",
            ),
        ),
        (
            "calm",
            template(
                "calm",
                "Stage",
                "{type: Custom, variables: [{name: v, type: String, value: <+input>.default(x)}], spec: {execution: {steps: [
                   {insert: {identifier: before, name: before, steps: <+input>}},
                   {stepGroup: {identifier: g, name: G, template: {templateRef: org.pair, templateInputs: {steps: [
                      {step: {identifier: a, template: {templateInputs: {spec: {duration: <+input>}}}}}]}}}},
                   {insert: {identifier: after, name: after, steps: <+input>}}]}}}",
            ),
        ),
    ];
    let linked = pipeline(
        "[{stage: {identifier: s, name: S, template: {templateRef: calm, versionLabel: 1.0, templateInputs: {type: Custom, spec: {execution: {steps: [
            {stepGroup: {identifier: g, template: {templateInputs: {steps: [{step: {identifier: a, template: {templateInputs: {spec: {duration: 10s}}}}}]}}}},
            {insert: {identifier: after, steps: [{step: {identifier: c, name: C, type: Wait, spec: {duration: 30s}}}]}}]}}}}}}]",
    );
    insta::assert_snapshot!(expanded(&linked, &templates).unwrap(), @r"
    pipeline:
      identifier: p
      name: P
      stages:
      - stage:
          identifier: s
          name: S
          type: Custom
          variables:
          - name: v
            type: String
            value: x
          spec:
            execution:
              steps:
              - stepGroup:
                  identifier: g
                  name: G
                  steps:
                  - step:
                      identifier: a
                      name: A
                      type: Wait
                      timeout: 1m
                      spec:
                        duration: 10s
                  - step:
                      identifier: b
                      name: B
                      type: Wait
                      timeout: 1m
                      spec:
                        duration: 20s
              - stepGroup:
                  identifier: after
                  name: after
                  steps:
                  - step:
                      identifier: c
                      name: C
                      type: Wait
                      spec:
                        duration: 30s
    ");
}

#[test]
fn a_pipeline_template_brings_the_stages() {
    let whole = "{variables: [{name: v, type: String, value: <+input>}], stages: [
        {stage: {identifier: one, name: One, type: Custom, spec: {execution: {steps: [{step: {identifier: w, name: W, type: Wait, spec: {duration: 10s}}}]}}}},
        {insert: {identifier: more, name: more, stages: <+input>}}]}";
    let templates = [("whole", template("whole", "Pipeline", whole))];
    let linked = "pipeline: {identifier: p, name: P, template: {templateRef: whole, versionLabel: 1.0, templateInputs: {
        variables: [{name: v, type: String, value: x}],
        stages: [{insert: {identifier: more, stages: [{stage: {identifier: two, name: Two, type: Custom, spec: {execution: {steps: [{step: {identifier: w, name: W, type: Wait, spec: {duration: 20s}}}]}}}}]}}]}}}";
    insta::assert_snapshot!(expanded(linked, &templates).unwrap(), @r"
    pipeline:
      identifier: p
      name: P
      variables:
      - name: v
        type: String
        value: x
      stages:
      - stage:
          identifier: one
          name: One
          type: Custom
          spec:
            execution:
              steps:
              - step:
                  identifier: w
                  name: W
                  type: Wait
                  spec:
                    duration: 10s
      - stage:
          identifier: two
          name: Two
          type: Custom
          spec:
            execution:
              steps:
              - step:
                  identifier: w
                  name: W
                  type: Wait
                  spec:
                    duration: 20s
    ");
}

#[test]
fn faults_name_the_file_they_are_in() {
    let step = |template: &str| {
        stage(&format!(
            "[{{step: {{identifier: w, name: W, template: {{{template}}}}}}}]"
        ))
    };
    let templates = [
        ("pause", template("pause", "Step", WAIT)),
        (
            "odd",
            template(
                "odd",
                "Step",
                "{type: Wait, spec: {duration: '<+input>.allowedValues(10s,20s)'}}",
            ),
        ),
        (
            "wrong",
            template(
                "wrong",
                "Step",
                "{type: Wait, spec: {duration: <+input>}, timeout: <+input>.default(soon)}",
            ),
        ),
        (
            "here",
            template("here", "Step", "{template: {templateRef: pause}}"),
        ),
        (
            "calm",
            template(
                "calm",
                "Stage",
                "{type: Custom, spec: {execution: {steps: []}}}",
            ),
        ),
        (
            "account.inner",
            template(
                "inner",
                "StepGroup",
                "{steps: [{step: {identifier: a, name: A, template: {templateRef: pause}}}]}",
            ),
        ),
    ];
    let cases = [
        (
            "templateRef: paus",
            "the template `paus` does not exist in project `shop` of organization `default`",
        ),
        (
            "templateRef: pause, versionLabel: 2.0",
            "the template `pause` version 2.0 does not exist",
        ),
        (
            "templateRef: account.pause",
            "the template `account.pause` does not exist in the account",
        ),
        (
            "templateRef: calm",
            "the template `calm` is of type Stage; here stands one of type Step",
        ),
        ("templateRef: pause", "pause:1:"),
        (
            "templateRef: pause",
            "template.spec.spec.duration: the runtime input `duration` has no value",
        ),
        (
            "templateRef: pause, templateInputs: {spec: {duraton: 10s}}",
            "`duraton` is no runtime input",
        ),
        (
            "templateRef: odd, templateInputs: {spec: {duration: 30s}}",
            "`30s` is not allowed here; expected one of 10s, 20s",
        ),
        (
            "templateRef: wrong, templateInputs: {spec: {duration: 10s}}",
            "`soon` is no duration",
        ),
        (
            "templateRef: here",
            "template.spec.spec.duration: the runtime input `duration` has no value",
        ),
        (
            "templateRef: <+pipeline.name>",
            "must be a fixed name, not an expression",
        ),
        (
            "templateRef: pause, templateVariables: [{name: x, type: String, value: y}], templateInputs: {spec: {duration: 10s}}",
            "`templateVariables` is not supported",
        ),
    ];
    for (link, expected) in cases {
        let found = expanded(&step(link), &templates).unwrap_err();
        assert!(found.contains(expected), "{link}\n{found}");
    }
    // References of a template are looked up where the template lives.
    let group =
        stage("[{stepGroup: {identifier: g, name: G, template: {templateRef: account.inner}}}]");
    let found = expanded(&group, &templates).unwrap_err();
    assert!(
        found.contains("the template `account.pause` does not exist in the account"),
        "{found}"
    );
}

/// Y14: circles are refused with the circle shown, and so is a tower.
#[test]
fn y14_circles_and_towers_are_refused() {
    let group = |id: &str, other: &str| {
        let spec = format!(
            "{{steps: [{{stepGroup: {{identifier: g, name: G, template: {{templateRef: {other}, versionLabel: 1.0}}}}}}]}}"
        );
        template(id, "StepGroup", &spec)
    };
    let start = stage(
        "[{stepGroup: {identifier: g, name: G, template: {templateRef: a, versionLabel: 1.0}}}]",
    );
    let circle = [
        ("a", group("a", "account.b")),
        ("account.b", group("b", "account.b")),
    ];
    let found = expanded(&start, &circle).unwrap_err();
    assert!(
        found.contains("in a circle: `account.b` version 1.0 → `account.b` version 1.0"),
        "{found}"
    );
    let circle = [
        ("a", group("a", "b")),
        ("b", group("b", "c")),
        ("c", group("c", "a")),
    ];
    let found = expanded(&start, &circle).unwrap_err();
    assert!(
        found.contains("`a` version 1.0 → `b` version 1.0 → `c` version 1.0 → `a` version 1.0"),
        "{found}"
    );
    let names: Vec<String> = (0..50).map(|n| format!("t{n}")).collect();
    let mut tower: Vec<_> = names
        .windows(2)
        .map(|pair| (pair[0].as_str(), group(&pair[0], &pair[1])))
        .collect();
    tower[0].1 = group("a", "t1");
    tower[0].0 = "a";
    let found = expanded(&start, &tower).unwrap_err();
    assert!(
        found.contains("at most 20 templates may stand inside of one another"),
        "{found}"
    );
}

/// Templates that multiply: ten of ten of ten … are refused while they grow.
#[test]
fn bombs_are_refused_while_they_grow() {
    let fan = |id: &str, other: &str| {
        let mut steps = String::new();
        for n in 0..10 {
            let _ = write!(
                steps,
                "{{stepGroup: {{identifier: g{n}, name: G, template: {{templateRef: {other}}}}}}},"
            );
        }
        template(id, "StepGroup", &format!("{{steps: [{steps}]}}"))
    };
    let names: Vec<String> = (0..12).map(|n| format!("t{n}")).collect();
    let mut bomb: Vec<_> = names
        .windows(2)
        .map(|pair| (pair[0].as_str(), fan(&pair[0], &pair[1])))
        .collect();
    let wait = "{step: {identifier: w, name: W, type: Wait, spec: {duration: 10s}}}";
    bomb.push((
        "t11",
        template("t11", "StepGroup", &format!("{{steps: [{wait}]}}")),
    ));
    let start = stage("[{stepGroup: {identifier: g, name: G, template: {templateRef: t0}}}]");
    let found = expanded(&start, &bomb).unwrap_err();
    assert!(
        found.contains("more than 5000 links to templates"),
        "{found}"
    );

    let script = "x".repeat(100_000);
    let large = format!(
        "{{type: ShellScript, spec: {{shell: Bash, source: {{type: Inline, spec: {{script: {script}}}}}}}}}"
    );
    let mut steps = String::new();
    for n in 0..400 {
        let _ = write!(
            steps,
            "{{step: {{identifier: s{n}, name: S, template: {{templateRef: large}}}}}},"
        );
    }
    let found = expanded(
        &stage(&format!("[{steps}]")),
        &[("large", template("large", "Step", &large))],
    );
    let found = found.unwrap_err();
    assert!(
        found.contains("more than 16777216 bytes of text"),
        "{found}"
    );
}

#[test]
fn a_link_may_use_the_service_of_another_stage() {
    let deploy = "{type: Deployment, failureStrategies: [], spec: {deploymentType: ECS, service: {serviceRef: <+input>, serviceInputs: <+input>}, environment: {environmentRef: <+input>, infrastructureDefinitions: <+input>}, execution: {steps: []}}}";
    let templates = [("deploy", template("deploy", "Stage", deploy))];
    let linked = |service: &str| {
        pipeline(&format!(
            "[{{stage: {{identifier: s, name: S, template: {{templateRef: deploy, templateInputs: {{type: Deployment, spec: {{service: {service}, environment: {{useFromStage: {{stage: a}}}}}}}}}}}}}}]"
        ))
    };
    let whole = expanded(&linked("{useFromStage: {stage: a}}"), &templates).unwrap();
    assert!(
        whole.contains("useFromStage") && !whole.contains("serviceRef"),
        "{whole}"
    );
    assert!(!whole.contains("infrastructureDefinitions"), "{whole}");
    let found = expanded(&linked("{useFromStag: {stage: a}}"), &templates).unwrap_err();
    assert!(
        found.contains("`useFromStag` is no runtime input"),
        "{found}"
    );
}

#[test]
fn open_inputs_stay_open_where_they_may() {
    let templates = [("pause", template("pause", "Step", WAIT))];
    let linked = stage(
        "[{step: {identifier: w, name: W, template: {templateRef: pause, templateInputs: {spec: {duration: <+input>.allowedValues(10s)}}}}}]",
    );
    let whole = expanded_as(&linked, &templates, Unfilled::Keep).unwrap();
    assert!(
        whole.contains("duration: <+input>.allowedValues(10s)"),
        "{whole}"
    );
    let bare = stage("[{step: {identifier: w, name: W, template: {templateRef: pause}}}]");
    let whole = expanded_as(&bare, &templates, Unfilled::Keep).unwrap();
    assert!(whole.contains("duration: <+input>\n"), "{whole}");
}

#[test]
fn a_link_overrides_what_its_template_allows() {
    let allowing = |template: String, names: &str| {
        template.replace(
            "versionLabel: 1.0",
            &format!("versionLabel: 1.0, allowedOverrides: [{names}]"),
        )
    };
    let pause = template(
        "pause",
        "Step",
        "{type: Wait, timeout: 1m, when: {stageStatus: Success}, delegateSelectors: [a], spec: {duration: 1s}}",
    );
    // A template that is a link itself, and overrides too.
    let outer = template(
        "outer",
        "Step",
        "{template: {templateRef: pause, templateOverrides: {when: {stageStatus: Failure}, delegateSelectors: [b]}}}",
    );
    let templates = [
        (
            "pause",
            allowing(pause, "ConditionalExecution, DelegateSelectors"),
        ),
        ("outer", allowing(outer, "ConditionalExecution")),
    ];
    let linked = pipeline(
        "[{stage: {identifier: s, name: S, type: Custom, spec: {execution: {steps: [
  {step: {identifier: x, name: X, template: {templateRef: pause, templateOverrides: {when: {stageStatus: All}, timeout: 9m}}}},
  {step: {identifier: y, name: Y, when: {stageStatus: Success}, template: {templateRef: outer, templateOverrides: {when: {stageStatus: All}, delegateSelectors: [c]}}}},
  {step: {identifier: z, name: Z, template: {templateRef: outer}}}]}}}}]",
    );
    insta::assert_snapshot!(expanded(&linked, &templates).unwrap(), @r"
    pipeline:
      identifier: p
      name: P
      stages:
      - stage:
          identifier: s
          name: S
          type: Custom
          spec:
            execution:
              steps:
              - step:
                  when:
                    stageStatus: All
                  identifier: x
                  name: X
                  type: Wait
                  timeout: 1m
                  delegateSelectors:
                  - a
                  spec:
                    duration: 1s
              - step:
                  when:
                    stageStatus: All
                  identifier: y
                  name: Y
                  delegateSelectors:
                  - b
                  type: Wait
                  timeout: 1m
                  spec:
                    duration: 1s
              - step:
                  identifier: z
                  name: Z
                  when:
                    stageStatus: Failure
                  delegateSelectors:
                  - b
                  type: Wait
                  timeout: 1m
                  spec:
                    duration: 1s
    ");
    let parsed = entity::parse("pipeline", &linked).unwrap();
    let found = links(&parsed, &project(), &world(&templates)).found;
    let told: Vec<_> = found.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    pipeline:2:121: pipeline.stages[0].stage.spec.execution.steps[0].step.template.templateOverrides.timeout: `timeout` is not overridden: the template `pause` does not have it in `allowedOverrides`
    pipeline:3:161: pipeline.stages[0].stage.spec.execution.steps[1].step.template.templateOverrides.delegateSelectors: `delegateSelectors` is not overridden: the template `outer` does not have it in `allowedOverrides`
    ");
}

#[test]
fn what_a_template_lets_override_must_be_its_own_and_fixed() {
    let told = |kind: &str, names: &str, spec: &str| {
        let text = template("t", kind, spec).replace(
            "versionLabel: 1.0",
            &format!("versionLabel: 1.0, allowedOverrides: {names}"),
        );
        let found =
            entity::parse("t", &text).map_or_else(|faults| faults, |parsed| parsed.warnings);
        found
            .iter()
            .map(|one| format!("{:?} {one}\n", one.severity))
            .collect::<String>()
    };
    let wait = "{type: Wait, when: <+input>, spec: {duration: 1s}}";
    insta::assert_snapshot!(told("Step", "[ConditionalExecution]", wait), @"Error t:1:74: template.allowedOverrides[0]: `ConditionalExecution` cannot be overridden: `when` of the template is a runtime input, which `templateInputs` gives");
    insta::assert_snapshot!(told("Step", "[LoopingStrategies]", wait), @r"
    Error t:1:74: template.allowedOverrides[0]: `LoopingStrategies` is not accepted here; expected one of ConditionalExecution, LoopingStrategy, ExecutionStrategy, FailureStrategy, PolicyEnforcement, DelegateSelectors, PipelineTimeout, AllowStageExecutions, FixedInputsOnRerun; did you mean `LoopingStrategy`?
    Warning t:1:74: template.allowedOverrides[0]: `LoopingStrategies` is nothing that a template of type Step has
    ");
    insta::assert_snapshot!(told("Step", "[PipelineTimeout]", wait), @"Warning t:1:74: template.allowedOverrides[0]: `PipelineTimeout` is nothing that a template of type Step has");
    assert_eq!(told("Step", "[FailureStrategy]", wait), "");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_link_breaks_the_expander(at in 0..700usize, length in 0..40usize, put in "\\PC{0,12}|<\\+input>|template|insert|pair|null|\\[\\]|\\{\\}") {
        let text = stage("[{insert: {identifier: i, name: I, steps: [{step: {identifier: a, name: A, type: Wait, spec: {duration: 10s}}}]}},
            {stepGroup: {identifier: g, name: G, template: {templateRef: org.pair, versionLabel: 1.0, templateInputs: {steps: [{step: {identifier: b, template: {templateInputs: {spec: {duration: 10s}}}}}]}}}}]");
        let templates = [
            ("account.pause", template("pause", "Step", WAIT)),
            ("org.pair", template("pair", "StepGroup", "{steps: [{step: {identifier: b, name: B, template: {templateRef: account.pause, templateInputs: {spec: {duration: <+input>}}}}}]}")),
        ];
        let (at, end) = (at.min(text.len()), (at + length).min(text.len()));
        let mut broken = text;
        if broken.is_char_boundary(at) && broken.is_char_boundary(end) {
            broken.replace_range(at..end, &put);
            let _ = expanded(&broken, &templates);
        }
    }
}
