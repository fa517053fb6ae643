//! What step groups ask for when they begin, and stages beside their variables.

use std::time::Duration;

use serde_json::json;
use slipway_engine::abort::task_id;
use slipway_engine::signal::{Word, say};
use slipway_model::id::{NodeId, PrincipalId, RunId};
use slipway_world::World;
use slipway_world::yaml::{TARGET, deployment, group, looped, pipeline, says, script, stage};

use super::{word, words};

async fn give(
    world: &World,
    run: &RunId,
    step: &str,
    field: &str,
    value: &str,
) -> Result<(), String> {
    let values = json!({field: value});
    let word = Word::Input {
        node: NodeId::new(format!("stages.deploy.spec.execution.steps.{step}")),
        values: values.as_object().cloned().unwrap_or_default(),
    };
    let said = say(&world.runs, run, &PrincipalId::new("sam"), &word).await;
    said.map_err(|error| error.to_string())
}

/// A group that asks for a zone, and says it.
fn asks(more: &str) -> String {
    let zone = "    variables:\n      - {name: zone, type: String, value: '<+input>.default(eu).allowedValues(eu,us).executionInput()'}\n";
    let group = group("g", &[says("say", "<+stepGroup.variables.zone>")]);
    group.replacen("    steps:\n", &format!("{zone}{more}    steps:\n"), 1)
}

#[tokio::test(start_paused = true)]
async fn a_step_group_asks_for_its_variables_each_time_it_begins() {
    let world = World::new().await;
    let steps = looped(&asks(""), "{repeat: {times: 2, maxConcurrency: 1}}");
    let steps = says("before", "b") + &steps;
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    for (turn, zone) in [("g_0", "us"), ("g_1", "eu")] {
        world.runs.clock.sleep(Duration::from_secs(600)).await;
        let (step, field) = (format!("{turn}.steps.__inputs"), "variables.zone");
        let wrong = give(&world, &run, &step, field, "mars").await;
        assert!(wrong.is_err_and(|error| error.contains("one of eu, us")));
        give(&world, &run, &step, field, zone).await.expect("given");
    }
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    deploy.steps.before #0 Success
    deploy.steps.g #0 Success
    deploy.steps.g_0 #0 Success
    deploy.steps.g_0.steps.__inputs #0 Success
    deploy.steps.g_0.steps.say #0 Success
    deploy.steps.g_1 #0 Success
    deploy.steps.g_1.steps.__inputs #0 Success
    deploy.steps.g_1.steps.say #0 Success
    ");
    assert_eq!(words(&world, &run.id).await, ["us", "eu"]);
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_step_group_that_nobody_gives_its_variables_fails_as_its_strategy_says() {
    let world = World::new().await;
    let defaults = "    failureStrategies:\n      - onFailure:\n          errors: [InputTimeoutError]\n          action: {type: ProceedWithDefaultValues}\n";
    world
        .apply(&pipeline(&[stage("deploy", &asks(defaults), "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    deploy.steps.g #0 Success
    deploy.steps.g.steps.__inputs #0 Expired
    deploy.steps.g.steps.__inputs #1 Success
    deploy.steps.g.steps.say #0 Success
    ");
    assert_eq!(word(&world, &run.id).await, "eu");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_stage_asks_for_what_it_gives_to_its_service() {
    let world = World::new().await;
    let variable =
        "    spec:\n      variables:\n        - {name: level, type: String, value: <+input>}\n";
    world
        .apply(&TARGET.replacen("    spec: {}\n", variable, 1))
        .await;
    let inputs = "            serviceRef: shop\n            serviceInputs:\n              serviceDefinition:\n                type: ECS\n                \
                  spec:\n                  variables:\n                    - {name: level, type: String, value: '<+input>.allowedValues(low,high).executionInput()'}\n";
    let deploy = deployment(&stage(
        "deploy",
        &says("say", "<+serviceVariables.level>"),
        "",
        "",
    ));
    let deploy = deploy.replacen("            serviceRef: shop\n", inputs, 1);
    // A stage that uses the service of another one reads what that one was given.
    let after = deployment(&stage(
        "after",
        &says("say", "<+serviceVariables.level>"),
        "",
        "",
    ));
    let after = after.replacen("serviceRef: shop\n", "useFromStage: {stage: deploy}\n", 1);
    world.apply(&pipeline(&[deploy, after])).await;
    let run = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(600)).await;
    let field = "variables.service_variables_level";
    let wrong = give(&world, &run, "__inputs", field, "mid").await;
    assert!(wrong.is_err_and(|error| error.contains("one of low, high")));
    give(&world, &run, "__inputs", field, "high")
        .await
        .expect("given");
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    after Success
    after.steps.say #0 Success
    deploy.steps.__inputs #0 Success
    deploy.steps.say #0 Success
    ");
    assert_eq!(words(&world, &run.id).await, ["high", "high"]);
    world.assert_clean(&run.id).await;
}

/// The delegate is chosen when it is needed: by what a step before said, and by what a stage was given.
#[tokio::test(start_paused = true)]
async fn selectors_name_what_the_run_brings_forth() {
    let world = World::new().await;
    let said = "<+execution.steps.say.output.outputVariables.word>";
    let selectors = format!("    delegateSelectors: ['{said}', 'in-<+stage.variables.zone>']\n");
    let next =
        script("next", "ok", "").replacen("    spec:\n", &format!("{selectors}    spec:\n"), 1);
    let zone = "variables:\n  - {name: zone, type: String, value: <+input>.executionInput()}\n";
    let steps = says("say", "linux") + &next;
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", zone)]))
        .await;
    let run = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(600)).await;
    give(&world, &run, "__inputs", "variables.zone", "eu")
        .await
        .expect("given");
    let run = world.finish(&run).await;
    let node = NodeId::new("stages.deploy.spec.execution.steps.next");
    let task = world
        .store
        .get_delegate_task(&task_id(&run.id, &node, 0))
        .await
        .expect("the task");
    assert_eq!(task.selectors, ["linux", "in-eu"]);
    world.assert_clean(&run.id).await;
}
