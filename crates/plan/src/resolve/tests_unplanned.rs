//! What goes for a whole run, what is refused by name, and what is told.

use super::tests::{faults, plan};
use crate::text;

#[test]
fn barriers_notifications_and_delegates_are_part_of_the_plan() {
    let planned = plan(
        "pipeline: {identifier: web, name: P, delegateSelectors: [main], tags: {a: b},
  variables: [{name: zone, type: String, value: eu}],
  flowControl: {barriers: [{identifier: both, name: Both ready}]},
  notificationRules: [
    {name: Tell us, identifier: r, enabled: true, pipelineEvents: [{type: StageFailed, forStages: [a, b]}, {type: PipelineEnd}],
      notificationMethod: {type: Slack, spec: {webhookUrl: 'https://hooks.example.com/T0/secret', userGroups: [ops, dev]}}},
    {name: Quiet, identifier: q, enabled: false, pipelineEvents: [{type: AllEvents}], notificationMethod: {type: Email, spec: {recipients: [a@b.c]}}}],
  stages: [{parallel: [
    {stage: {identifier: a, name: A, type: Custom, spec: {execution: {steps: [
      {step: {identifier: w, name: W, type: Barrier, spec: {barrierRef: both}, delegateSelectors: [own]}},
      {stepGroup: {identifier: g, name: G, delegateSelectors: ['<+pipeline.variables.zone>-linux'], steps: [
        {step: {identifier: x, name: X, type: Wait, spec: {duration: 1s}}},
        {stepGroup: {identifier: h, name: H, steps: [{step: {identifier: y, name: Y, type: Wait, spec: {duration: 1s}}}]}}]}},
      {step: {identifier: z, name: Z, type: Wait, spec: {duration: 1s}}}]}}}},
    {stage: {identifier: b, name: B, type: Custom, delegateSelectors: [stage], spec: {execution: {steps: [
      {step: {identifier: w, name: W, type: Barrier, spec: {barrierRef: both}}}]}}}}]}]}",
    );
    insta::assert_snapshot!(text(&planned.unwrap()), @r#"
    pipeline web "P" (at most 30d)
      variable zone = "eu"
      barrier both "Both ready"
      notification "Tell us": Slack on StageFailed of a and b, PipelineEnd
      notification "Quiet": Email on AllEvents (disabled)
      side by side
        stage a "A": Custom (at most 30d)
          delegates main
          steps
            step w "W": Barrier (at most 10m)
              delegates own
              barrierRef = "both"
            group g "G"
              step x "X": Wait (at most 10m)
                delegates eu-linux
                duration = "1s"
              group h "H"
                step y "Y": Wait (at most 10m)
                  delegates eu-linux
                  duration = "1s"
            step z "Z": Wait (at most 10m)
              duration = "1s"
        stage b "B": Custom (at most 30d)
          delegates stage
          steps
            step w "W": Barrier (at most 10m)
              barrierRef = "both"
    "#);
}

#[test]
fn what_would_change_the_run_is_refused_by_name() {
    let found = plan(
        "pipeline: {identifier: web, name: P, gitBranch: main,
  variables: [{name: tag, type: String, required: true, value: ''}],
  delegateSelectors: [{expression: {expressionValue: <+a>}}],
  flowControl: {barriers: [{identifier: a, name: A}, {identifier: a, name: B}]},
  stages: [{stage: {identifier: s, name: S, type: Custom, spec: {
    environment: {environmentRef: prod, gitBranch: x},
    execution: {steps: [
      {stepGroup: {identifier: g, name: G, timeout: 1h, enforce: {policySets: [p]}, delegateSelectors: [<+steps.x.output.host>], steps: [
        {step: {identifier: b, name: B, type: Barrier, spec: {barrierRef: c}}}]}}]}}}}]}",
    );
    insta::assert_snapshot!(faults(found), @"
    pipeline.yaml:3:54: pipeline.delegateSelectors[0].expression.expressionValue: an expression in `expressionValue` is not supported by this version yet; write the expression as a text
    pipeline.yaml:2:15: pipeline.variables[0]: the variable `tag` is required and has no value
    pipeline.yaml:1:49: pipeline.gitBranch: `gitBranch` of a pipeline is not supported by this version yet; entities are kept in Slipway's store and not in Git, leave it out
    pipeline.yaml:4:54: pipeline.flowControl.barriers[1]: a second barrier has the identifier `a`
    pipeline.yaml:3:23: pipeline.delegateSelectors[0]: a mapping stands where a text is expected
    pipeline.yaml:6:52: pipeline.stages[0].stage.spec.environment.gitBranch: `gitBranch` of `environment` is not supported by this version yet; entities are kept in Slipway's store and not in Git, leave it out
    pipeline.yaml:6:35: pipeline.stages[0].stage.spec.environment.environmentRef: the environment `prod` does not exist in project `shop` of organization `default`
    pipeline.yaml:8:66: pipeline.stages[0].stage.spec.execution.steps[0].stepGroup.enforce: `enforce` of a step group is not supported by this version yet; leave it out, or check the policy in a step
    pipeline.yaml:9:75: pipeline.stages[0].stage.spec.execution.steps[0].stepGroup.steps[0].step.spec.barrierRef: the barrier `c` is not in the pipeline's `flowControl`; did you mean `a`?
    ");
}

#[test]
fn selectors_that_the_run_brings_forth_stay_expressions() {
    let pipeline = |selector: &str| {
        format!(
            "pipeline: {{identifier: web, name: P, variables: [{{name: zone, type: String, value: eu}}], stages: [{{stage: {{identifier: s, name: S, type: Custom, delegateSelectors: ['{selector}', '<+pipeline.variables.zone>'], spec: {{execution: {{steps: []}}}}}}}}]}}"
        )
    };
    let host = "<+pipeline.stages.t.spec.execution.steps.x.output.outputVariables.host>";
    let planned = plan(&pipeline(host)).unwrap();
    assert_eq!(planned.groups[0][0].delegate_selectors, [host, "eu"]);
    let found = faults(plan(&pipeline("<+pipeline.variables.none>")));
    assert!(
        found.contains("this must be known before the run begins"),
        "{found}"
    );
}

#[test]
fn what_only_informs_is_told() {
    let planned = plan(
        "pipeline: {identifier: web, name: P, properties: {ci: {codebase: {repoName: r}}}, allowStageExecutions: true,
  stages: [{stage: {identifier: s, name: S, type: Custom, skipInstances: true, spec: {
    execution: {steps: [{step: {identifier: w, name: W, type: Wait, spec: {duration: 1s}, strategy: {parallelism: 2}}},
      {stepGroup: {identifier: g, name: G, sharedPaths: [/a], strategy: {parallelism: 2}, steps: [{step: {identifier: w, name: W, type: Wait, spec: {duration: 1s}}}]}}]}}}}]}",
    );
    insta::assert_snapshot!(planned.unwrap().warnings.join("\n"), @r"
    pipeline.properties: `properties` of a pipeline has no effect: only stages of type CI read it, which this version does not run
    pipeline.stages[0].stage.skipInstances: `skipInstances` of a stage has no effect: only deployments to hosts over SSH and WinRM skip instances
    pipeline.stages[0].stage.spec.execution.steps[1].stepGroup.sharedPaths: `sharedPaths` of a step group has no effect: only groups that run in a container share paths
    ");
}

#[test]
fn parallel_blocks_in_parallel_blocks_begin_with_what_is_around_them() {
    let stage = |id: &str| {
        format!(
            "{{stage: {{identifier: {id}, name: {id}, type: Custom, spec: {{execution: {{steps: []}}}}}}}}"
        )
    };
    let [a, b, c, d] = ["a", "b", "c", "d"].map(stage);
    let planned = plan(&format!(
        "pipeline: {{identifier: web, name: P, stages: [{{parallel: [{a}, {{parallel: [{b}, {{parallel: [{c}]}}]}}]}}, {d}]}}"
    ));
    let groups = planned.unwrap().groups;
    let ids = groups.iter().map(|group| {
        let ids = group.iter().map(|stage| stage.id.as_str());
        ids.collect::<Vec<_>>().join(" ")
    });
    assert_eq!(ids.collect::<Vec<_>>(), ["a b c", "d"]);
}

#[test]
fn a_stage_that_somebody_must_start_says_for_how_long() {
    let stage = |mode: &str| {
        let text = format!(
            "pipeline: {{identifier: web, name: P, variables: [{{name: wait, type: String, value: 90m}}], stages: [{{stage: {{identifier: s, name: S, type: Custom, runMode: {mode}, spec: {{execution: {{steps: []}}}}}}}}]}}"
        );
        plan(&text).map(|plan| plan.groups[0][0].start_within)
    };
    assert_eq!(stage("{type: Manual, timeout: 1d}").unwrap(), Some(86_400));
    assert_eq!(
        stage("{type: Manual, timeout: <+pipeline.variables.wait>}").unwrap(),
        Some(5_400)
    );
    assert_eq!(stage("{type: Auto}").unwrap(), None);
    let late = plan(
        "pipeline: {identifier: web, name: P, stages: [{stage: {identifier: s, name: S, type: Custom, runMode: {type: Manual, timeout: <+pipeline.stages.t.output.x>}, spec: {execution: {steps: []}}}}]}",
    );
    assert!(faults(late).contains("this must be known before the run begins"));
}

#[test]
fn a_stage_swaps_or_shifts_its_requests() {
    let stage = |shift: &str, swap: &str| {
        format!(
            "pipeline: {{identifier: web, name: P, stages: [{{stage: {{identifier: s, name: S, type: Deployment, spec: {{
  deploymentType: ECS, service: {{serviceRef: web}}, environment: {{environmentRef: e, deployToAll: false, infrastructureDefinitions: [{{identifier: i}}]}}, execution: {{steps: [
    {{step: {{identifier: create, name: C, type: EcsBlueGreenCreateService, spec: {{loadBalancer: b, prodListener: l, prodListenerRuleArn: r, isTrafficShift: {shift}}}}}}},
    {{parallel: [{{stepGroup: {{identifier: g, name: G, steps: [{swap}]}}}}]}}]}}}}}}}}]}}"
        )
    };
    let swap = "{step: {identifier: swap, name: W, type: EcsBlueGreenSwapTargetGroups, spec: {}}}";
    let standalone = "{step: {identifier: t, name: T, type: EcsBlueGreenTrafficShift, spec: {ecsTrafficShiftWrapper: {type: Standalone, spec: {}}}}}";
    let refusal = "pipeline.yaml:4:";
    let told = |shift: &str, steps: &str| {
        let found = faults(plan(&stage(shift, steps)));
        let lines = found
            .lines()
            .filter(|line| line.contains("swaps the target groups"));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    let found = faults(plan(&stage("true", swap)));
    assert!(told("true", swap).starts_with(refusal), "{found}");
    for (shift, steps) in [
        ("false", swap.to_owned()),
        ("<+pipeline.variables.x>", swap.to_owned()),
        ("true", standalone.to_owned()),
        ("false", format!("{swap}, {standalone}")),
    ] {
        assert_eq!(told(shift, &steps), "", "{shift} {steps}");
    }
}
