//! Inputs that stages and step groups ask for when they begin.

use super::tests::{PIPELINE, entities, faults, plan, plan_with};
use crate::text;

const LATER: &str = "'<+input>.allowedValues(v1,v2).executionInput()'";

fn changed(from: &str, to: &str) -> String {
    let changed = PIPELINE.replacen(from, to, 1);
    assert_ne!(changed, PIPELINE, "{from}");
    changed
}

#[test]
fn a_stage_asks_for_what_it_gives_to_what_it_deploys() {
    let pipeline = changed(
        "spec: {tag: <+pipeline.variables.tag>}",
        &format!("spec: {{tag: {LATER}}}"),
    );
    let pipeline = pipeline.replacen(
        "spec: {cluster: main}",
        "spec: {cluster: <+input>.default(main).executionInput()}",
        1,
    );
    let planned = text(&plan(&pipeline).unwrap());
    let deploy = planned.split("  stage deploy").nth(1).unwrap_or_default();
    insta::assert_snapshot!(deploy, @r#"
    "Deploy": Deployment of ECS (at most 30d) when nothing failed and <+pipeline.variables.tag> != ""
       variable size = 2
       service web (ECS)
         variable port = 80
         variable level = "warn"
         artifact img (DockerRegistry) index.docker.io/acme/web:<+pipeline.stages.deploy.spec.execution.steps.__inputs.output.variables.service_artifacts_primary_sources_img_tag>
         manifest task (EcsTaskDefinition) from Inline, 2 bytes
         manifest svc (EcsServiceDefinition) from Harness, 16 bytes
       environment prod (Production)
         variable level = "warn"
       infrastructure ecs (ECS) {"connectorRef":"account.aws","region":"eu-west-1","cluster":"<+pipeline.stages.deploy.spec.executio…
         connector account.aws (Aws)
       on AllErrors: StageRollback
       steps
         step __inputs "Inputs of the stage": StageInputs (at most 1d)
           variables = {"service_artifacts_primary_sources_img_tag":"<+input>.allowedValues(v1,v2).executionInput()","envir…
         step __artifacts "Artifacts of the service": PinArtifacts (at most 10m)
         step roll "Roll": EcsRollingDeploy (at most 10m)
           sameAsAlreadyRunningInstances = false
       rollback
         step back "Back": EcsRollingRollback (at most 10m)
    "#);
}

#[test]
fn a_step_group_asks_for_its_variables_in_each_turn() {
    let group = "identifier: probes
                      name: Probes
                      variables: [{name: port, type: Number, value: <+input>.default(80).executionInput()}, {name: path, type: String, value: /}]
                      strategy: {repeat: {times: 2}}";
    let pipeline = changed(
        "identifier: probes
                      name: Probes",
        group,
    );
    let planned = text(&plan(&pipeline).unwrap());
    let check = planned.split("  stage deploy").next().unwrap_or_default();
    insta::assert_snapshot!(check, @r#"
    pipeline web "Web" (at most 30d)
      variable tag = "v1"
      variable where = "prod"
      variable token = secret "account.token"
      stage check "Check": Custom (at most 30d)
        steps
          step wait "Wait": Wait (at most 1m)
            duration = "10s"
          side by side
            step lint "Lint": ShellScript (at most 10m)
              shell = "Bash"
              source = {"type":"Inline","spec":{"script":"echo v1"}}
              onDelegate = true
            side by side
              group probes_0 "Probes_0"
                turn 1 of 2 of probes
                step __inputs "Inputs of the step group": StageInputs (at most 1d) when always
                  variables = {"port":"<+input>.default(80).executionInput()"}
                  numbers = ["port"]
                step ping "Ping": Http (at most 10m)
                  url = "http://x"
                  method = "GET"
              group probes_1 "Probes_1"
                turn 2 of 2 of probes
                step __inputs "Inputs of the step group": StageInputs (at most 1d) when always
                  variables = {"port":"<+input>.default(80).executionInput()"}
                  numbers = ["port"]
                step ping "Ping": Http (at most 10m)
                  url = "http://x"
                  method = "GET"
    "#);
}

#[test]
fn what_decides_the_plan_is_not_asked_for_later() {
    let later = "<+input>.executionInput()";
    let cases = [
        (
            "serviceRef: web",
            format!("serviceRef: {later}"),
            "what is deployed and where decides the plan of a run",
        ),
        (
            "condition: <+pipeline.variables.tag> != \"\"",
            format!("condition: '{later}'"),
            "this decides whether and how it does",
        ),
        (
            "infrastructureDefinitions: [{identifier: ecs,",
            format!("infrastructureDefinitions: [{{identifier: '{later}',"),
            "what is deployed and where decides the plan of a run",
        ),
        (
            "name: Probes",
            format!(
                "name: Probes\n                      strategy: {{repeat: {{times: '{later}'}}}}"
            ),
            "how often an element runs is decided",
        ),
        (
            "spec: {duration: 10s}, timeout: 1m",
            format!("spec: {{duration: 10s}}, timeout: '{later}'"),
            "time is counted from the beginning",
        ),
        (
            "identifier: img, type: DockerRegistry, spec: {tag: <+pipeline.variables.tag>}",
            format!("identifier: '{later}', type: DockerRegistry, spec: {{tag: v}}"),
            "",
        ),
    ];
    for (from, to, expected) in cases {
        let found = faults(plan(&changed(from, &to)));
        assert!(found.contains(expected), "{to}\n{found}");
    }
}

#[test]
fn what_is_asked_for_later_cannot_decide_the_plan() {
    let pipeline = changed(
        "environmentRef: account.<+pipeline.variables.where>",
        "environmentRef: account.<+stage.variables.where>",
    )
    .replacen(
        "variables: [{name: size, type: Number, value: 2}]",
        "variables: [{name: where, type: String, value: <+input>.executionInput()}]",
        1,
    );
    let found = faults(plan(&pipeline));
    assert!(
        found.contains("this must be known before the run begins"),
        "{found}"
    );
}

#[test]
fn a_stage_that_runs_another_pipeline_asks_for_nothing() {
    let child = "pipeline: {identifier: child, name: Child, orgIdentifier: default, projectIdentifier: shop,
      variables: [{name: tag, type: String, value: <+input>}],
      stages: [{stage: {identifier: a, name: A, type: Custom, spec: {execution: {steps: [
        {step: {identifier: w, name: W, type: Wait, spec: {duration: 1s}}}]}}}}]}";
    let parent = "pipeline: {identifier: parent, name: Parent, stages: [{stage: {identifier: c, name: C, type: Pipeline,
      spec: {org: default, project: shop, pipeline: child,
        inputs: {identifier: child, variables: [{name: tag, type: String, value: <+input>.executionInput()}]}}}}]}";
    let mut known = entities();
    known.push(child.to_owned());
    let found = faults(plan_with(parent, &known, "pipeline: {identifier: parent}"));
    assert!(
        found.contains("a stage that runs another pipeline asks for nothing before that"),
        "{found}"
    );
}
