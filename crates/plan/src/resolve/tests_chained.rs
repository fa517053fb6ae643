//! Stages that run another pipeline.

use super::tests::{entities, faults, plan_with};
use crate::text;

fn planned(
    pipeline: &str,
    children: &[&str],
) -> Result<crate::Plan, Vec<slipway_model::Diagnostic>> {
    let mut known = entities();
    known.extend(children.iter().map(|yaml| (*yaml).to_owned()));
    plan_with(pipeline, &known, "pipeline: {identifier: parent}")
}

const CHILD: &str =
    "pipeline: {identifier: child, name: Child, orgIdentifier: default, projectIdentifier: shop,
  variables: [{name: tag, type: String, value: <+input>}],
  stages: [{stage: {identifier: a, name: A, type: Custom, spec: {execution: {steps: [
    {step: {identifier: w, name: W, type: Wait, spec: {duration: 1s}}}]}}}}]}";

#[test]
fn a_chained_pipeline_is_one_step_with_its_inputs_and_outputs() {
    let plan = planned(
        "pipeline: {identifier: parent, name: Parent, stages: [{stage: {identifier: tests, name: Tests, type: Pipeline, timeout: 2h,
  spec: {org: default, project: shop, pipeline: child,
    inputs: {identifier: child, variables: [{name: tag, type: String, value: '<+pipeline.sequenceId>'}]},
    inputSetReferences: [quick], outputs: [{name: report, value: '<+pipeline.stages.a.status>'}]}}}]}",
        &[CHILD, "inputSet: {identifier: quick, name: Quick, pipeline: {identifier: child}}"],
    );
    insta::assert_snapshot!(text(&plan.unwrap()), @r#"
    pipeline parent "Parent" (at most 30d)
      stage tests "Tests": Pipeline (at most 2h)
        steps
          step pipeline "Tests": Pipeline (at most 2h)
            org = "default"
            project = "shop"
            pipeline = "child"
            inputs = {"identifier":"child","variables":[{"name":"tag","type":"String","value":"<+pipeline.sequenceId>"}]}
            inputSetReferences = ["quick"]
            outputs
              report = "<+pipeline.stages.a.status>"
    "#);
}

#[test]
fn only_one_level_of_chaining_is_planned() {
    let stage = |id: &str, pipeline: &str, more: &str| {
        format!(
            "{{stage: {{identifier: {id}, name: S, type: Pipeline, spec: {{org: default, project: shop, pipeline: {pipeline}{more}}}}}}}"
        )
    };
    let parent = format!(
        "pipeline: {{identifier: parent, name: Parent, stages: [{}, {}, {{parallel: [{}, {}]}}, {}]}}",
        stage("itself", "parent", ""),
        stage("nested", "nests", ""),
        stage("nowhere", "nothing", ""),
        stage(
            "remote",
            "child",
            ", gitBranch: main, pipelineInputs: {a: b}"
        ),
        stage(
            "outputs",
            "child",
            ", outputs: [{name: a, value: x}, {name: a, value: y}, {name: b}]"
        ),
    );
    let nests = format!(
        "pipeline: {{identifier: nests, name: Nests, orgIdentifier: default, projectIdentifier: shop, stages: [{{parallel: [{}]}}]}}",
        stage("deeper", "child", "")
    );
    let itself = parent.replace(
        "name: Parent",
        "name: Parent, orgIdentifier: default, projectIdentifier: shop",
    );
    let found = planned(&itself, &[CHILD, &nests, &itself]);
    insta::assert_snapshot!(faults(found), @"
    pipeline.yaml:1:204: pipeline.stages[0].stage.spec.pipeline: the pipeline `parent` cannot run itself as one of its stages
    pipeline.yaml:1:315: pipeline.stages[1].stage.spec.pipeline: the pipeline `nests` runs other pipelines itself, and cannot be run as a stage: only one level of chaining is possible
    pipeline.yaml:1:438: pipeline.stages[2].parallel[0].stage.spec.pipeline: the pipeline `nothing` does not exist in project `shop` of organization `default`
    pipeline.yaml:1:568: pipeline.stages[2].parallel[1].stage.spec.gitBranch: `gitBranch` of a pipeline stage is not supported by this version yet; entities are kept in Slipway's store and not in Git, leave it out
    pipeline.yaml:1:590: pipeline.stages[2].parallel[1].stage.spec.pipelineInputs: `pipelineInputs` of a pipeline stage is not supported by this version yet; put what the pipeline asks for into `inputs`
    pipeline.yaml:1:550: pipeline.stages[2].parallel[1].stage.spec.pipeline: the pipeline `child` is not given all that it asks for: the runtime input `tag` has no value (pipeline.variables[0].value)
    pipeline.yaml:1:704: pipeline.stages[3].stage.spec.pipeline: the pipeline `child` is not given all that it asks for: the runtime input `tag` has no value (pipeline.variables[0].value)
    pipeline.yaml:1:742: pipeline.stages[3].stage.spec.outputs[1]: a second output has the name `a`
    pipeline.yaml:1:763: pipeline.stages[3].stage.spec.outputs[2]: an output of a pipeline stage has a `name` and a `value`
    ");
}

fn stage(inputs: &str) -> String {
    format!(
        "pipeline: {{identifier: parent, name: Parent, variables: [{{name: open, type: String, value: <+input>.default(v)}}],
  stages: [{{stage: {{identifier: s, name: S, type: Pipeline, spec: {{org: default, project: shop, pipeline: asks{inputs}}}}}}}]}}"
    )
}

const ASKS: &str =
    "pipeline: {identifier: asks, name: Asks, orgIdentifier: default, projectIdentifier: shop, variables: [
  {name: tag, type: String, value: <+input>}, {name: size, type: Number, value: '<+input>.default(1)'},
  {name: zone, type: String, value: '<+input>.allowedValues(eu,us)'}, {name: note, type: String, value: <+input>, required: false}],
  stages: [{stage: {identifier: a, name: A, type: Custom, spec: {execution: {steps: [
    {step: {identifier: w, name: W, type: Wait, spec: {duration: '<+input>.executionInput()'}}}]}}}}]}";

const SET: &str =
    "inputSet: {identifier: quick, name: Quick, orgIdentifier: default, projectIdentifier: shop,
  pipeline: {identifier: asks, variables: [{name: tag, type: String, value: v1}]}}";

fn values(values: &[(&str, &str)]) -> String {
    let one = |(name, value): &(&str, &str)| format!("{{name: {name}, value: '{value}'}}");
    let all: Vec<String> = values.iter().map(one).collect();
    format!(
        ", inputs: {{identifier: asks, variables: [{}]}}",
        all.join(", ")
    )
}

#[test]
fn what_a_chained_pipeline_lacks_is_told_before_the_run() {
    let told = |inputs: &str| faults(planned(&stage(inputs), &[ASKS, SET]));
    insta::assert_snapshot!(told(""), @"
    pipeline.yaml:2:107: pipeline.stages[0].stage.spec.pipeline: the pipeline `asks` is not given all that it asks for: the runtime input `tag` has no value (pipeline.variables[0].value)
    pipeline.yaml:2:107: pipeline.stages[0].stage.spec.pipeline: the pipeline `asks` is not given all that it asks for: the runtime input `zone` has no value (pipeline.variables[2].value); expected one of eu, us
    ");
    insta::assert_snapshot!(told(&values(&[("tag", "<+pipeline.variables.open>"), ("zone", "mars"), ("typo", "x")])), @"
    pipeline.yaml:2:231: pipeline.variables.typo: an input of the pipeline `asks`: `typo` is no runtime input: its value is fixed, or there is no such field
    pipeline.yaml:2:222: pipeline.variables[2].value: an input of the pipeline `asks`: `mars` is not allowed here; expected one of eu, us
    ");
    insta::assert_snapshot!(told(&values(&[("tag", "t"), ("zone", "eu"), ("size", "many")])), @"pipeline.yaml:2:224: pipeline.variables[1].value: an input of the pipeline `asks`: `many` is not accepted here; expected a number such as `3`, `-2` or `0.5`");
    insta::assert_snapshot!(told(", inputSetReferences: [quick]"), @"pipeline.yaml:2:107: pipeline.stages[0].stage.spec.pipeline: the pipeline `asks` is not given all that it asks for: the runtime input `zone` has no value (pipeline.variables[2].value); expected one of eu, us");
    insta::assert_snapshot!(told(", inputSetReferences: [slow]"), @"pipeline.yaml:2:133: pipeline.stages[0].stage.spec.inputSetReferences: of the pipeline `asks`, the input set `slow` does not exist");
}

#[test]
fn what_is_given_or_still_open_is_no_fault() {
    let zone = |value| values(&[("zone", value)]);
    let fine = [
        values(&[("tag", "t"), ("zone", "eu")]),
        values(&[("tag", "t"), ("zone", "<+pipeline.sequenceId>")]),
        zone("eu") + ", inputSetReferences: [quick]",
        ", inputSetReferences: [<+pipeline.name>]".to_owned(),
    ];
    for inputs in fine {
        let plan = planned(&stage(&inputs), &[ASKS, SET]);
        assert!(plan.is_ok(), "{inputs}\n{}", faults(plan));
    }
}

const DEPLOYS: &str =
    "pipeline: {identifier: asks, name: Asks, orgIdentifier: default, projectIdentifier: shop,
  stages: [{stage: {identifier: d, name: D, type: Deployment, spec: {deploymentType: ECS,
    service: {serviceRef: sized, serviceInputs: <+input>},
    environment: {environmentRef: account.prod, deployToAll: false, infrastructureDefinitions: [{identifier: far, inputs: <+input>}]},
    execution: {steps: []}}}}]}";

const SIZED: &[&str] = &[
    "service: {identifier: sized, name: Sized, orgIdentifier: default, projectIdentifier: shop, serviceDefinition: {type: ECS, spec: {
  variables: [{name: size, type: String, value: '<+input>.allowedValues(small,large)'}]}}}",
    "infrastructureDefinition: {identifier: far, name: Far, environmentRef: prod,
  deploymentType: ECS, type: ECS, spec: {connectorRef: aws, region: <+input>, cluster: main}}",
];

/// Found when its stage began, after the stages before it had deployed.
#[test]
fn what_the_targets_of_a_chained_pipeline_lack_is_told_before_the_run() {
    let told = |service: &str, infrastructure: &str| {
        let inputs = format!(
            ", inputs: {{identifier: asks, stages: [{{stage: {{identifier: d, type: Deployment, spec: {{
  service: {{serviceInputs: {service}}}, environment: {{infrastructureDefinitions: [{{identifier: far, inputs: {infrastructure}}}]}}}}}}}}]}}"
        );
        let known: Vec<&str> = [DEPLOYS].into_iter().chain(SIZED.iter().copied()).collect();
        let planned = planned(&stage(&inputs), &known);
        planned
            .err()
            .into_iter()
            .flatten()
            .map(|one| format!("{one}\n"))
            .collect::<String>()
    };
    let sized = |size: &str| {
        format!(
            "{{serviceDefinition: {{type: ECS, spec: {{variables: [{{name: size, type: String, value: '{size}'}}]}}}}}}"
        )
    };
    let far = |region: &str| format!("{{type: ECS, spec: {{region: {region}}}}}");
    for (service, region) in [
        (sized("small"), far("us-east-1")),
        (
            sized("<+pipeline.sequenceId>"),
            far("<+pipeline.variables.open>"),
        ),
        ("<+pipeline.variables.open>".to_owned(), far("us-east-1")),
    ] {
        assert_eq!(told(&service, &region), "", "{service} {region}");
    }
    insta::assert_snapshot!(told(&sized("huge"), &far("us-east-1")), @"pipeline.yaml:3:113: service.serviceDefinition.spec.variables[0].value: an input of the pipeline `asks`: `huge` is not allowed here; expected one of small, large");
    insta::assert_snapshot!(told("{}", "{}"), @"
    pipeline.yaml:2:121: pipeline.stages[0].stage.spec.inputs: the pipeline `asks` is not given all that it asks for: the runtime input `size` has no value (service.serviceDefinition.spec.variables[0].value); expected one of small, large
    pipeline.yaml:2:121: pipeline.stages[0].stage.spec.inputs: the pipeline `asks` is not given all that it asks for: the runtime input `region` has no value (infrastructureDefinition.spec.region)
    ");
}
