use slipway_model::id::{AccountId, EntityId, Scope};
use slipway_model::{Parsed, entity, yaml};

use super::{Chosen, choices};
use crate::{Plan, Request, Snapshot, resolve};

/// Three stages in order, the second of them two side by side; `c` reads both `a` and `b1`.
const PIPELINE: &str = "pipeline:
  identifier: p
  name: P
  allowStageExecutions: true
  stages:
    - stage: {identifier: a, name: A, type: Custom, spec: {execution: {steps: [{step: {identifier: w, name: w, type: Wait, timeout: 1d, spec: {duration: <+input>}}}]}}}
    - parallel:
        - stage: {identifier: b1, name: B1, type: Custom, spec: {execution: {steps: [{step: {identifier: w, name: w, type: Wait, timeout: 1d, spec: {duration: 1s}}}]}}}
        - stage: {identifier: b2, name: B2, type: Custom, variables: [{name: v, type: String, value: <+input>.default(x)}], spec: {execution: {steps: [{step: {identifier: w, name: w, type: Wait, timeout: 1d, spec: {duration: 1s}}}]}}}
    - stage:
        identifier: c
        name: C
        type: Custom
        when: {pipelineStatus: All, condition: <+pipeline.stages.b1.status> == \"SUCCEEDED\"}
        variables: [{name: tag, type: String, value: <+pipeline.stages.a.variables.tag>-<+stage.name>}]
        spec: {execution: {steps: [{step: {identifier: w, name: w, type: Wait, timeout: 1d, spec: {duration: 1s}}}]}}
";

fn pipeline(text: &str) -> Parsed {
    entity::parse("pipeline.yaml", text).unwrap()
}

fn plan(text: &str, chosen: &Chosen, inputs: &str) -> Result<Plan, String> {
    let given = (!inputs.is_empty()).then(|| yaml::parse("inputs", inputs).unwrap());
    let inputs: Vec<_> = given.iter().collect();
    let found = resolve(&Request {
        pipeline: &pipeline(text),
        inputs: &inputs,
        scope: &Scope::account(AccountId::new("acme")),
        entities: &Snapshot::default(),
        runnable: &|_| true,
        chosen: Some(chosen),
        trigger: None,
    });
    found.map_err(|faults| {
        let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
        told.join("\n")
    })
}

fn chosen(stages: &[&str], values: &[(&str, &str)]) -> Chosen {
    let values = values.iter();
    Chosen::new(
        stages.iter().copied().map(EntityId::new).collect(),
        values
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    )
}

fn groups(plan: &Plan) -> String {
    let group = |stages: &Vec<crate::StagePlan>| {
        let ids: Vec<&str> = stages.iter().map(|stage| stage.id.as_str()).collect();
        ids.join("+")
    };
    plan.groups.iter().map(group).collect::<Vec<_>>().join(" ")
}

#[test]
fn only_chosen_stages_are_planned_and_asked_for_inputs() {
    for (stages, expected) in [
        (&["b1"][..], "b1"),
        (&["b2", "b1"], "b1+b2"),
        (&["b2"], "b2"),
    ] {
        let planned = plan(PIPELINE, &chosen(stages, &[]), "").unwrap();
        assert_eq!(groups(&planned), expected);
    }
    // A chosen stage is asked for its inputs, and what is given for the others does no harm.
    let missing = plan(PIPELINE, &chosen(&["a", "b2"], &[]), "").unwrap_err();
    assert!(missing.contains("`duration` has no value"), "{missing}");
    let inputs = "pipeline: {identifier: p, stages: [{stage: {identifier: a, spec: {execution: {steps: [{step: {identifier: w, spec: {duration: 5s}}}]}}}}]}";
    let planned = plan(PIPELINE, &chosen(&["b2"], &[]), inputs).unwrap();
    assert_eq!(planned.groups[0][0].variables[0].value, "x");
    let both = plan(PIPELINE, &chosen(&["a", "b2"], &[]), inputs).unwrap();
    assert_eq!(groups(&both), "a b2");
}

#[test]
fn what_a_chosen_stage_reads_of_others_is_chosen_or_given() {
    let refused = plan(PIPELINE, &chosen(&["c"], &[]), "").unwrap_err();
    insta::assert_snapshot!(refused, @"
    pipeline.yaml:14:48: pipeline.stages[2].stage.when.condition: stage `b1` is not among the chosen stages: choose it too, or give a value for `<+pipeline.stages.b1.status>` in `expressionValues`
    pipeline.yaml:15:54: pipeline.stages[2].stage.variables[0].value: stage `a` is not among the chosen stages: choose it too, or give a value for `<+pipeline.stages.a.variables.tag>` in `expressionValues`
    ");
    let given = chosen(
        &["c"],
        &[
            ("<+pipeline.stages.a.variables.tag>", "v1"),
            (" pipeline.stages.b1.status ", "SUCCEEDED"),
        ],
    );
    assert_eq!(groups(&plan(PIPELINE, &given, "").unwrap()), "c");
    assert_eq!(
        given.value(&["pipeline", "stages", "a", "variables", "tag"]),
        Some("v1")
    );
    assert_eq!(given.value(&["pipeline", "stages", "a"]), None);
    let needs: Vec<String> = choices(&pipeline(PIPELINE))
        .into_iter()
        .map(|choice| {
            format!(
                "{} {}: {}",
                choice.identifier,
                choice.name,
                choice.needs.join(" ")
            )
        })
        .collect();
    assert_eq!(needs, ["a A: ", "b1 B1: ", "b2 B2: ", "c C: b1 a"]);
}

#[test]
fn stages_that_are_not_there_and_pipelines_that_do_not_allow_it_are_refused() {
    insta::assert_snapshot!(plan(PIPELINE, &chosen(&["b3", "b1"], &[]), "").unwrap_err(), @"pipeline.yaml:2:3: pipeline: the pipeline has no stage `b3` that could be chosen; expected some of a, b1, b2, c; did you mean `b1`?");
    let closed = PIPELINE.replace("allowStageExecutions: true", "allowStageExecutions: false");
    insta::assert_snapshot!(plan(&closed, &chosen(&["b1"], &[]), "").unwrap_err(), @"pipeline.yaml:4:25: pipeline.allowStageExecutions: the pipeline does not allow runs of chosen stages: set `allowStageExecutions: true` in it, or run all of it");
}

#[test]
fn a_turn_of_a_loop_and_the_target_of_another_stage_are_needs_too() {
    let turn = PIPELINE.replace("<+pipeline.stages.a.variables.tag>", "<+stages.a_1.name>");
    assert_eq!(choices(&pipeline(&turn)).pop().unwrap().needs, ["b1", "a"]);
    let deploy = "pipeline: {identifier: p, name: P, allowStageExecutions: true, stages: [{stage: {identifier: a, name: a, type: Custom, spec: {execution: {steps: []}}}}, {stage: {identifier: d, name: d, type: Deployment, spec: {deploymentType: ECS, service: {useFromStage: {stage: a}}, environment: {environmentRef: e}, execution: {steps: []}}}}]}";
    assert_eq!(choices(&pipeline(deploy))[1].needs, ["a"]);
    let refused = plan(deploy, &chosen(&["d"], &[]), "").unwrap_err();
    assert!(
        refused.contains("stage `a`, which this one uses, is not among the chosen stages"),
        "{refused}"
    );
}
