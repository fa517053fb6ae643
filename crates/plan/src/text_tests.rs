//! What a plan shows of its values, and what it keeps to itself.

use slipway_model::id::{AccountId, OrgId, ProjectId, Scope};
use slipway_model::{entity, yaml};

use crate::{Plan, Request, Snapshot, diff, resolve, text};

const PIPELINE: &str = "pipeline: {identifier: p, name: P, variables: [
    {name: key, type: Secret, value: account.key},
    {name: tag, type: String, value: <+input>},
    {name: twice, type: String, value: '<+pipeline.variables.tag>-<+pipeline.variables.tag>'}],
  stages: [{stage: {identifier: s, name: S, type: Custom, delegateSelectors: [eu],
    when: {pipelineStatus: All, condition: '<+pipeline.variables.tag> != \"\"'},
    variables: [{name: own, type: String, value: '<+stage.name>'}],
    spec: {execution: {steps: [
      {step: {identifier: a, name: A, type: ShellScript, timeout: 1h, spec: {shell: Bash, onDelegate: true,
        source: {type: Inline, spec: {script: 'deploy <+stage.variables.own> <+pipeline.variables.twice>'}},
        environmentVariables: [
          {name: K, type: String, value: <+pipeline.variables.key>},
          {name: S, type: String, value: 'x <+secrets.getValue(\"account.other\")> y'},
          {name: O, type: String, value: <+steps.b.output.x>}]}}},
      {parallel: [
        {step: {identifier: b, name: B, type: Wait, spec: {duration: 10s}, strategy: {repeat: {items: [x, y], maxConcurrency: 1}}}},
        {stepGroup: {identifier: g, name: G, steps: [{step: {identifier: c, name: C, type: Wait, spec: {duration: 10s}}}], failureStrategies: [{onFailure: {errors: [Timeout], action: {type: Ignore}}}]}}]}]}}}}]}";

fn plan(tag: &str) -> Plan {
    let pipeline = entity::parse("p", PIPELINE).unwrap();
    let inputs = format!("pipeline: {{variables: [{{name: tag, value: {tag}}}]}}");
    let inputs = yaml::parse("i", &inputs).unwrap();
    let (account, org) = (AccountId::new("a"), OrgId::new("o"));
    let request = Request {
        pipeline: &pipeline,
        inputs: &[&inputs],
        scope: &Scope::project(account, org, ProjectId::new("p")),
        entities: &Snapshot::default(),
        runnable: &|_| true,
        chosen: None,
        trigger: None,
    };
    resolve(&request).unwrap()
}

#[test]
fn values_are_shown_as_they_will_be_and_secrets_by_name() {
    insta::assert_snapshot!(text(&plan("v1")), @r#"
    pipeline p "P" (at most 30d)
      variable key = secret "account.key"
      variable tag = "v1"
      variable twice = "v1-v1"
      stage s "S": Custom (at most 30d) when always and <+pipeline.variables.tag> != ""
        delegates eu
        variable own = "S"
        steps
          step a "A": ShellScript (at most 1h)
            shell = "Bash"
            onDelegate = true
            source = {"type":"Inline","spec":{"script":"deploy S v1-v1"}}
            environmentVariables
              K = "<+pipeline.variables.key>"
              S = "x <+secrets.getValue(\"account.other\")> y"
              O = "<+steps.b.output.x>"
          side by side
            one after the other
              step b_0 "B_0": Wait (at most 10m)
                turn 1 of 2 of b, item = "x"
                duration = "10s"
              step b_1 "B_1": Wait (at most 10m)
                turn 2 of 2 of b, item = "y"
                duration = "10s"
            group g "G"
              on Timeout: Ignore
              step c "C": Wait (at most 10m)
                duration = "10s"
    "#);
}

#[test]
fn a_diff_shows_what_a_new_value_changes() {
    insta::assert_snapshot!(diff(&plan("v1"), &plan("v2")), @r#"
      pipeline p "P" (at most 30d)
    -   variable tag = "v1"
    -   variable twice = "v1-v1"
    +   variable tag = "v2"
    +   variable twice = "v2-v2"
        stage s "S": Custom (at most 30d) when always and <+pipeline.variables.tag> != ""
          steps
            step a "A": ShellScript (at most 1h)
    -         source = {"type":"Inline","spec":{"script":"deploy S v1-v1"}}
    +         source = {"type":"Inline","spec":{"script":"deploy S v2-v2"}}
    "#);
    assert_eq!(diff(&plan("v1"), &plan("v1")), "");
}
