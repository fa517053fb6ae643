use serde_json::Value;
use slipway_model::entity;
use slipway_model::id::{AccountId, Scope};
use slipway_plan::Snapshot;

use super::{StepTypes, faults};

/// Steps with one rule: the field `key` of a `Queue` says something.
const STEPS: StepTypes = StepTypes {
    runnable: |kind| kind != "Email",
    faults: |kind, spec| match (kind, &spec["key"]) {
        ("Queue", Value::String(text)) if text == "late" => vec!["it is late".to_owned()],
        ("Queue", Value::String(text)) if !text.is_empty() => Vec::new(),
        ("Queue", _) => vec!["key: expected a text".to_owned()],
        _ => Vec::new(),
    },
};

fn told(yaml: &str) -> String {
    let parsed = entity::parse("f.yaml", yaml).unwrap_or_else(|found| panic!("{found:?}"));
    let scope = Scope {
        account: AccountId::new("acc"),
        org: None,
        project: None,
    };
    let found = faults(&parsed, &scope, &Snapshot::default(), &STEPS);
    let lines = found
        .iter()
        .map(|one| format!("{:?} {}: {}\n", one.severity, one.path, one.message));
    lines.collect()
}

fn custom(steps: &str, more: &str) -> String {
    format!(
        "pipeline: {{identifier: p, name: P, {more}
  stages: [{{stage: {{identifier: s, name: S, type: Custom, spec: {{execution: {{steps: [
{steps}]}}}}}}}}]}}"
    )
}

fn queue(key: &str, more: &str) -> String {
    format!(
        "{{step: {{identifier: q, name: Q, type: Queue, {more} spec: {{key: {key}, scope: Stage}}}}}}"
    )
}

#[test]
fn what_a_step_finds_in_its_spec_has_a_place() {
    insta::assert_snapshot!(told(&custom(&queue("''", ""), "")), @"Error pipeline.stages[0].stage.spec.execution.steps[0].step.spec.key: expected a text");
    insta::assert_snapshot!(told(&custom(&queue("late", ""), "")), @"Error pipeline.stages[0].stage.spec.execution.steps[0].step.spec: it is late");
    // What an expression becomes is not known.
    assert_eq!(told(&custom(&queue("<+input>", ""), "")), "");
    assert_eq!(told(&custom(&queue("a<+pipeline.name>", ""), "")), "");
}

#[test]
fn failure_strategies_are_judged_where_they_stand() {
    let with = |action: &str| {
        let strategies = format!(
            "failureStrategies: [{{onFailure: {{errors: [AllErrors], action: {action}}}}}],"
        );
        told(&custom(&queue("k", &strategies), ""))
    };
    assert_eq!(with("{type: Ignore}"), "");
    let retry = |count: &str, intervals: &str| {
        with(&format!(
            "{{type: Retry, spec: {{retryCount: {count}, retryIntervals: {intervals}}}}}"
        ))
    };
    assert_eq!(retry("1", "[10s]"), "");
    assert_eq!(retry("<+input>", "[10s]"), "");
    assert_eq!(retry("1", "['<+input>']"), "");
    insta::assert_snapshot!(retry("0", "[10s]"), @"Error pipeline.stages[0].stage.spec.execution.steps[0].step.failureStrategies[0].onFailure.action.spec.retryCount: `retryCount` must be a number from 1 to 100");
    insta::assert_snapshot!(with("{type: StepGroupRollback}"), @"Error pipeline.stages[0].stage.spec.execution.steps[0].step.failureStrategies[0].onFailure.action: `StepGroupRollback` is an action of a step group's failure strategy");
    insta::assert_snapshot!(with("{type: ManualIntervention, spec: {timeout: 1d}}"), @"Error pipeline.stages[0].stage.spec.execution.steps[0].step.failureStrategies[0].onFailure.action: ManualIntervention needs `onTimeout.action`: what to do when nobody answers");
    insta::assert_snapshot!(with("{type: Retry, spec: {retryCount: 1, retryIntervals: [10s], onRetryFailure: {action: {type: Retry, spec: {retryCount: 1, retryIntervals: [10s]}}}}}"), @"Error pipeline.stages[0].stage.spec.execution.steps[0].step.failureStrategies[0].onFailure.action.spec.onRetryFailure: `onRetryFailure` cannot be Retry again");
}

#[test]
fn a_rollback_step_that_would_roll_back_is_told() {
    let with = |undo: &str| {
        let strategies = |action: &str| {
            format!(
                "failureStrategies: [{{onFailure: {{errors: [AllErrors], action: {action}}}}}],"
            )
        };
        let yaml = custom(&queue("k", &strategies("{type: StageRollback}")), "");
        let undo = queue("k", &strategies(undo)).replace("identifier: q", "identifier: u");
        told(&yaml.replace("]}}}}]}", &format!("], rollbackSteps: [{undo}]}}}}}}}}]}}")))
    };
    assert_eq!(with("{type: Ignore}"), "");
    let at = "Warning pipeline.stages[0].stage.spec.execution.rollbackSteps[0].step.failureStrategies[0].onFailure.action";
    let told = with("{type: PipelineRollback}");
    assert!(
        told.starts_with(&format!(
            "{at}: a rollback is not rolled back: `PipelineRollback`"
        )),
        "{told}"
    );
    let later = with(
        "{type: ManualIntervention, spec: {timeout: 1d, onTimeout: {action: {type: StageRollback}}}}",
    );
    assert!(
        later.starts_with(&format!(
            "{at}.spec.onTimeout.action: a rollback is not rolled back"
        )),
        "{later}"
    );
}

#[test]
fn a_loop_of_no_turns_is_told() {
    let with = |strategy: &str| told(&custom(&queue("k", &format!("strategy: {strategy},")), ""));
    assert_eq!(with("{parallelism: 1}"), "");
    for (strategy, field) in [
        ("{parallelism: 0}", "parallelism"),
        ("{repeat: {times: 0}}", "repeat.times"),
    ] {
        assert_eq!(
            with(strategy),
            format!(
                "Warning pipeline.stages[0].stage.spec.execution.steps[0].step.strategy.{field}: a loop of 0 turns: what \
                 loops is skipped\n"
            )
        );
    }
}

#[test]
fn variables_that_nobody_declares_are_told_with_the_nearest() {
    let with = |key: &str| {
        let variables = "variables: [{name: tag, type: String, value: a}, {name: a.b, type: String, value: <+input>}],";
        let step = queue(
            &format!("'{key}'"),
            "description: <+pipeline.variables.no>,",
        );
        let text = custom(&step, variables).replace(
            "type: Custom,",
            "type: Custom, variables: [{name: zone, type: String, value: eu}],",
        );
        told(&text)
    };
    for fine in [
        "<+pipeline.variables.tag>-<+stage.variables.zone>",
        "<+pipeline.variables.a.b.toUpperCase()><+pipeline.variables.<+stage.variables.zone>>",
        "<+pipeline.variables[\"tag\"].length()>",
        "<+pipeline.stages.x.variables.y><+service.variables.z>",
    ] {
        assert_eq!(with(fine), "", "{fine}");
    }
    let at = "pipeline.stages[0].stage.spec.execution.steps[0].step.spec.key";
    assert_eq!(
        with("<+pipeline.variables.tga> <+stage.variables.tag>"),
        format!(
            "Warning {at}: the pipeline declares no variable `tga`: a run fails where it is read\n\
             Warning {at}: the stage declares no variable `tag`: a run fails where it is read\n"
        )
    );
}

#[test]
fn variables_that_a_template_or_a_chained_pipeline_may_bring_are_not_told() {
    let key = queue("<+pipeline.variables.x>-<+stage.variables.y>", "");
    let of_template = "pipeline: {identifier: p, name: P, template: {templateRef: t, versionLabel: v, templateInputs: {stages: [{stage: {identifier: s, type: Custom, variables: [{name: z, type: String, value: <+pipeline.variables.x>}]}}]}}}";
    assert_eq!(told(of_template), "");
    let step = format!(
        "template: {{identifier: t, name: T, versionLabel: v, type: StepGroup, spec: {{steps: [{key}]}}}}"
    );
    assert_eq!(told(&step), "");
    let stage = format!(
        "template: {{identifier: t, name: T, versionLabel: v, type: Stage, spec: {{type: Custom, spec: {{execution: {{steps: [{key}]}}}}}}}}"
    );
    insta::assert_snapshot!(told(&stage), @"Warning template.spec.spec.execution.steps[0].step.spec.key: the stage declares no variable `y`: a run fails where it is read");
    let linked = "pipeline: {identifier: p, name: P, stages: [{stage: {identifier: s, name: S, template: {templateRef: t, versionLabel: v, templateInputs: {type: Custom, variables: [{name: y, type: String, value: '<+stage.variables.z><+pipeline.variables.x>'}]}}}}]}";
    insta::assert_snapshot!(told(linked), @"Warning pipeline.stages[0].stage.template.templateInputs.variables[0].value: the pipeline declares no variable `x`: a run fails where it is read");
    let chained = "pipeline: {identifier: p, name: P, stages: [{stage: {identifier: s, name: S, type: Pipeline, spec: {org: o, project: p, pipeline: c,
  outputs: [{name: a, value: <+pipeline.variables.of_child>}], inputs: {identifier: c, variables: [{name: b, type: String, value: <+pipeline.variables.own>}]}}}}]}";
    insta::assert_snapshot!(told(chained), @"Warning pipeline.stages[0].stage.spec.inputs.variables[0].value: the pipeline declares no variable `own`: a run fails where it is read");
}

#[test]
fn templates_are_judged_too() {
    let group = |action: &str| {
        format!("template: {{identifier: t, name: T, versionLabel: v, type: StepGroup, spec: {{
  failureStrategies: [{{onFailure: {{errors: [AllErrors], action: {{type: {action}}}}}}}], steps: [{}]}}}}", queue("''", ""))
    };
    insta::assert_snapshot!(told(&group("StepGroupRollback")), @"Error template.spec.steps[0].step.spec.key: expected a text");
    let step = "template: {identifier: t, name: T, versionLabel: v, type: Step, spec: {type: Queue, spec: {key: '', scope: Stage}}}";
    insta::assert_snapshot!(told(step), @"Error template.spec.spec.key: expected a text");
    let service = "service: {identifier: s, name: S}";
    assert_eq!(told(service), "");
}

#[test]
fn what_the_plan_would_refuse_is_told_and_what_is_not_supported_warns() {
    let email = "{step: {identifier: e, name: E, type: Email, spec: {to: a@b.c, subject: s}}}";
    insta::assert_snapshot!(told(&custom(email, "")), @"Warning pipeline.stages[0].stage.spec.execution.steps[0].step.type: the type `Email` of step `e` is not supported by this version yet");
    let barrier = "{step: {identifier: b, name: B, type: Barrier, spec: {barrierRef: gate}}}";
    insta::assert_snapshot!(told(&custom(barrier, "")), @"Error pipeline.stages[0].stage.spec.execution.steps[0].step.spec.barrierRef: the barrier `gate` is not in the pipeline's `flowControl`");
}
