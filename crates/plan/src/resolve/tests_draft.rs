//! Pipelines that nobody has run yet.

use slipway_model::entity;
use slipway_model::id::{AccountId, OrgId, ProjectId, Scope};

use super::{Request, draft};
use crate::Snapshot;

fn told(yaml: &str) -> String {
    told_among(yaml, &Snapshot::default())
}

fn told_among(yaml: &str, entities: &Snapshot) -> String {
    let pipeline = entity::parse("p.yaml", yaml).unwrap_or_else(|found| panic!("{found:?}"));
    let scope = Scope::project(
        AccountId::new("acc"),
        OrgId::new("default"),
        ProjectId::new("shop"),
    );
    let found = draft(&Request {
        pipeline: &pipeline,
        inputs: &[],
        scope: &scope,
        entities,
        runnable: &|kind| kind != "Email",
        chosen: None,
        trigger: None,
    });
    let lines = found
        .iter()
        .map(|one| format!("{:?} {}: {}\n", one.severity, one.path, one.message));
    lines.collect()
}

fn custom(of_pipeline: &str, of_stage: &str, steps: &str) -> String {
    format!(
        "pipeline: {{identifier: p, name: P, {of_pipeline} stages: [{{stage: {{identifier: s, name: S, type: Custom, {of_stage}
  spec: {{execution: {{steps: [{steps}]}}}}}}}}]}}"
    )
}

fn wait(more: &str) -> String {
    format!("{{step: {{identifier: w, name: W, type: Wait, {more} spec: {{duration: 1m}}}}}}")
}

#[test]
fn what_is_open_may_still_become_right() {
    let of_pipeline = "timeout: <+input>, delegateSelectors: <+input>, variables: [{name: t, type: String, value: <+input>}, {name: n, type: Number, value: <+input>}],";
    let of_stage = "timeout: <+pipeline.variables.t>, when: <+input>, strategy: {repeat: {times: <+pipeline.variables.n>}},";
    let steps = [
        wait("timeout: <+input>, strategy: <+input>,"),
        "{step: {identifier: b, name: B, type: Barrier, spec: {barrierRef: <+input>}}}".to_owned(),
        "{step: {identifier: l, name: L, type: Wait, strategy: {matrix: {a: <+input>}, maxConcurrency: <+input>}, spec: {duration: <+input>}}}".to_owned(),
    ];
    assert_eq!(told(&custom(of_pipeline, of_stage, &steps.join(", "))), "");
    let deployment = "pipeline: {identifier: p, name: P, stages: [{stage: {identifier: s, name: S, type: Deployment, failureStrategies: [], spec: {
  deploymentType: ECS, service: {serviceRef: <+input>, serviceInputs: <+input>}, environment: {environmentRef: <+input>, infrastructureDefinitions: <+input>},
  execution: {steps: []}}}}]}";
    assert_eq!(told(deployment), "");
    // What only a server knows.
    let elsewhere = deployment.replace(
        "serviceRef: <+input>, serviceInputs: <+input>",
        "serviceRef: web",
    );
    assert_eq!(told(&elsewhere), "");
    let linked =
        "pipeline: {identifier: p, name: P, template: {templateRef: account.t, versionLabel: v}}";
    assert_eq!(told(linked), "");
    let linked = "pipeline: {identifier: p, name: P, stages: [{stage: {identifier: s, name: S, template: {templateRef: account.t, versionLabel: v}}}]}";
    assert_eq!(told(linked), "");
}

#[test]
fn what_no_input_puts_right_is_told() {
    let barrier = "{step: {identifier: b, name: B, type: Barrier, spec: {barrierRef: gate}}}";
    insta::assert_snapshot!(told(&custom("", "", barrier)), @"Error pipeline.stages[0].stage.spec.execution.steps[0].step.spec.barrierRef: the barrier `gate` is not in the pipeline's `flowControl`");
    let gates = "flowControl: {barriers: [{identifier: gate, name: G}]},";
    let twice = format!(
        "{barrier}, {}",
        barrier.replacen("identifier: b", "identifier: c", 1)
    );
    insta::assert_snapshot!(told(&custom(gates, "", &twice)), @"Error pipeline.stages[0].stage.spec.execution.steps[1].step.spec.barrierRef: barrier `gate` cannot be passed: stages.s.spec.execution.steps.b waits there for stages.s.spec.execution.steps.c, which comes after it; let them run side by side, or give one of them a barrier of its own");
    let billion = wait("strategy: {repeat: {times: 1000000000}},");
    insta::assert_snapshot!(told(&custom("", "", &billion)), @"Error pipeline.stages[0].stage.spec.execution.steps[0].step.strategy.repeat.times: the looping `strategy` of step `w`: 1000000000 turns; a loop has at most 256");
    let when = wait("when: {stageStatus: Success, condition: '<+a> =='},");
    assert!(told(&custom("", "", &when)).starts_with("Error pipeline.stages[0].stage.spec.execution.steps[0].step.when.condition: the condition does not parse"));
    insta::assert_snapshot!(told("pipeline: {identifier: p, name: P, stages: []}"), @"Error pipeline: the pipeline has no stages");
    let itself = "pipeline: {identifier: p, name: P, stages: [{stage: {identifier: a, name: A, type: Custom, spec: {execution: {steps: []}}}},
  {stage: {identifier: s, name: S, type: Deployment, failureStrategies: [], spec: {deploymentType: ECS, service: {useFromStage: {stage: a}}, environment: {environmentRef: e, infrastructureDefinitions: [{identifier: i}]}, execution: {steps: []}}}}]}";
    insta::assert_snapshot!(told(itself), @"Error pipeline.stages[1].stage.spec.service.useFromStage: stage `a` has no service to use");
}

#[test]
fn what_this_version_does_not_do_is_a_warning() {
    let email = "{step: {identifier: e, name: E, type: Email, spec: {to: a@b.c, subject: s}}}";
    insta::assert_snapshot!(told(&custom("", "", email)), @"Warning pipeline.stages[0].stage.spec.execution.steps[0].step.type: the type `Email` of step `e` is not supported by this version yet");
    let later = "{step: {identifier: w, name: W, type: Wait, timeout: <+input>.executionInput(), spec: {duration: 1m}}}";
    assert!(told(&custom("", "", later)).contains("`executionInput()` cannot be asked for here"));
}

#[test]
fn a_wait_that_cannot_end_and_a_rule_that_tells_nobody_are_told() {
    insta::assert_snapshot!(told(&custom("", "", &wait("timeout: 30s,"))), @"Warning pipeline.stages[0].stage.spec.execution.steps[0].step.spec.duration: a wait of 1m does not end within the timeout of its step, 30s: it will expire");
    let rules = "notificationRules: [
    {name: dumb, pipelineEvents: [{type: AllEvents}], notificationMethod: {type: Slack, spec: {webhookUrl: ''}}},
    {name: deaf, notificationMethod: {type: Slack, spec: {userGroups: [ops]}}},
    {name: lost, pipelineEvents: [{type: StageFailed, forStages: [S, s, s_1, AllStages]}]},
    {name: off, enabled: false},
    {name: open, pipelineEvents: [{type: AllEvents}], notificationMethod: {type: Email, spec: {recipients: <+input>}}}],";
    insta::assert_snapshot!(told(&custom(rules, "", &wait(""))), @r"
    Warning pipeline.notificationRules[0].notificationMethod: the notification rule `dumb` tells nobody: its `webhookUrl` is empty
    Warning pipeline.notificationRules[1]: the notification rule `deaf` is about no event: its `pipelineEvents` are empty
    Warning pipeline.notificationRules[2]: the notification rule `lost` tells nobody: it has no `notificationMethod`
    Warning pipeline.notificationRules[2].pipelineEvents[0].forStages[0]: the notification rule `lost` names the stage `S`, which is not in the pipeline
    ");
}

#[test]
fn what_a_chained_pipeline_at_hand_lacks_is_told() {
    let child = "pipeline: {identifier: child, name: Child, orgIdentifier: default, projectIdentifier: shop,
  variables: [{name: tag, type: String, value: <+input>}, {name: zone, type: String, value: <+input>}], stages: []}";
    let parent = "pipeline: {identifier: p, name: P, stages: [{stage: {identifier: s, name: S, type: Pipeline,
  spec: {org: default, project: shop, pipeline: child, inputs: {variables: [{name: tag, type: String, value: <+input>}]}}}}]}";
    assert_eq!(told(parent), "", "nobody knows the child");
    let world = super::tests::world(&[child.to_owned()]);
    insta::assert_snapshot!(told_among(parent, &world), @"Error pipeline.stages[0].stage.spec.inputs: the pipeline `child` is not given all that it asks for: the runtime input `zone` has no value (pipeline.variables[1].value)");
    let whole = parent.replace(
        "inputs: {variables: [{name: tag, type: String, value: <+input>}]}",
        "inputs: <+input>",
    );
    assert_eq!(told_among(&whole, &world), "");
}
