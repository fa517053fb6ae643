//! Steps that ask for inputs when they begin, on the real machines.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

mod begin;
mod by_hand;

use std::time::Duration;

use serde_json::{Map, Value, json};
use slipway_engine::abort::abort_run;
use slipway_engine::signal::{Word, say};
use slipway_model::id::{NodeId, PrincipalId, RunId};
use slipway_world::World;
use slipway_world::yaml::{pipeline, script, stage};

const ASKS: &str = "<+input>.default(word=hello).regex(word=.*).executionInput()";

fn on_late(action: &str) -> String {
    format!(
        "failureStrategies:\n  - onFailure:\n      errors: [InputTimeoutError]\n      action: {{type: {action}}}\n"
    )
}

fn asks(what: &str, more: &str) -> String {
    let output = "      outputVariables:\n        - name: word\n          type: String\n          value: word\n";
    script("say", what, more).replacen("      source:", &format!("{output}      source:"), 1)
}

async fn give(world: &World, run: &RunId, values: Value) -> Result<(), String> {
    let word = Word::Input {
        node: NodeId::new("stages.deploy.spec.execution.steps.say"),
        values: values.as_object().cloned().unwrap_or_else(Map::new),
    };
    let said = say(&world.runs, run, &PrincipalId::new("sam"), &word).await;
    said.map_err(|error| error.to_string())
}

async fn started(world: &World, steps: &str) -> RunId {
    world
        .apply(&pipeline(&[stage("deploy", steps, "", "")]))
        .await;
    let run = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(60)).await;
    run
}

async fn word(world: &World, run: &RunId) -> Value {
    let nodes = world.store.list_nodes(run, None).await.expect("nodes");
    let last = nodes.last().expect("a step");
    last.outputs["output"]["outputVariables"]["word"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_step_waits_for_its_inputs_and_has_its_whole_time_then() {
    let world = World::new().await;
    let run = started(&world, &asks(ASKS, "")).await;
    let nodes = world.store.list_nodes(&run, None).await.expect("nodes");
    assert_eq!(format!("{:?}", nodes[0].status), "InputWaiting");

    let field = "source.spec.script";
    insta::assert_snapshot!(give(&world, &run, json!({field: "nothing", "shell": "x"})).await.expect_err("wrong"), @"stages.deploy.spec.execution.steps.say: the step does not ask for `shell`; it asks for source.spec.script; `source.spec.script` must be a text that matches word=.*");
    world.runs.clock.sleep(Duration::from_secs(480)).await;
    give(&world, &run, json!({field: "word=<+pipeline.identifier>"}))
        .await
        .expect("given");
    let twice = give(&world, &run, json!({})).await;
    assert!(twice.is_err(), "one answer: {twice:?}");
    let run = world.finish(&run).await;

    assert_eq!(
        world.story(&run).await,
        "run Success\ndeploy Success\ndeploy.steps.say #0 Success"
    );
    assert_eq!(word(&world, &run.id).await, "release");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_gives_inputs_and_the_failure_strategy_counts() {
    let world = World::new().await;
    let run = started(&world, &asks(ASKS, "")).await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Expired: Step say: Nobody gave its inputs (source.spec.script) within 10m.
    deploy Expired: Step say: Nobody gave its inputs (source.spec.script) within 10m.
    deploy.steps.say #0 Expired
    ");

    let world = World::new().await;
    let run = started(&world, &asks(ASKS, &on_late("ProceedWithDefaultValues"))).await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    deploy.steps.say #0 Expired
    deploy.steps.say #1 Success
    ");
    assert_eq!(word(&world, &run.id).await, "hello");
    world.assert_clean(&run.id).await;

    let world = World::new().await;
    let bare = "<+input>.executionInput()";
    let run = started(&world, &asks(bare, &on_late("ProceedWithDefaultValues"))).await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Failed: Step say: It cannot go on with default values: `source.spec.script` has no value and no default.
    deploy Failed: Step say: It cannot go on with default values: `source.spec.script` has no value and no default.
    deploy.steps.say #0 Expired
    deploy.steps.say #1 Failed
    ");
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_the_question() {
    let world = World::new().await;
    let run = started(&world, &asks(ASKS, "")).await;
    let who = PrincipalId::new("sam");
    abort_run(&world.runs, &run, &who).await.expect("aborted");
    assert!(give(&world, &run, json!({})).await.is_err());
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Aborted: Step say: It was stopped: the run was aborted by sam.
    deploy Aborted: Step say: It was stopped: the run was aborted by sam.
    deploy.steps.say #0 Aborted
    ");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_asks_once() {
    let world = World::new().await;
    let steps = asks(ASKS, "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let mut crashes = 0;
    for request in 1.. {
        world.crash.arm(request, request % 2 == 1);
        let run = world.start("release").await;
        // As long as it takes until the question is asked, whatever died.
        for _ in 0..60 {
            world.runs.clock.sleep(Duration::from_secs(5)).await;
            if give(&world, &run, json!({})).await.is_ok() {
                break;
            }
        }
        let run = world.finish(&run).await;
        if world.crash.is_armed() {
            break;
        }
        crashes += 1;
        let story = world.story(&run).await;
        assert_eq!(
            story, "run Success\ndeploy Success\ndeploy.steps.say #0 Success",
            "crash at {request}"
        );
        world.assert_clean(&run.id).await;
    }
    assert!(crashes > 10, "only {crashes} crashes");
}

/// A pipeline whose stage asks for two variables when it begins, and whose next stage reads them.
fn asks_for_variables(more: &str) -> String {
    let variables = format!(
        "variables:\n  - name: tag\n    type: String\n    value: <+input>.default(v1).regex(v[0-9]+).executionInput()\n  \
         - name: count\n    type: Number\n    value: <+input>.default(2).executionInput()\n  - name: fixed\n    type: \
         String\n    value: <+stage.variables.tag>-fixed\n{more}"
    );
    let here = "'word=<+stage.variables.fixed> <+stage.variables.count + 1>'";
    let there =
        "'word=<+pipeline.stages.deploy.variables.tag> <+pipeline.stages.deploy.variables.count>'";
    let output = "      outputVariables:\n        - name: word\n          type: String\n          value: word\n";
    let says = |id: &str, what: &str| {
        script(id, what, "").replacen("      source:", &format!("{output}      source:"), 1)
    };
    pipeline(&[
        stage("deploy", &says("say", here), "", &variables),
        stage("after", &says("say", there), "", ""),
    ])
}

async fn give_variables(world: &World, run: &RunId, values: Value) -> Result<(), String> {
    let word = Word::Input {
        node: NodeId::new("stages.deploy.spec.execution.steps.__inputs"),
        values: values.as_object().cloned().unwrap_or_else(Map::new),
    };
    let said = say(&world.runs, run, &PrincipalId::new("sam"), &word).await;
    said.map_err(|error| error.to_string())
}

async fn words(world: &World, run: &RunId) -> Vec<Value> {
    let nodes = world.store.list_nodes(run, None).await.expect("nodes");
    let said = nodes
        .iter()
        .filter(|node| node.identifier.as_str() == "say");
    let mut words: Vec<(String, Value)> = said
        .map(|node| {
            let word = node.outputs["output"]["outputVariables"]["word"].clone();
            (node.stage.to_string(), word)
        })
        .collect();
    words.sort_by(|a, b| b.0.cmp(&a.0));
    words.into_iter().map(|(_, word)| word).collect()
}

#[tokio::test(start_paused = true)]
async fn a_stage_asks_for_its_variables_when_it_begins() {
    let world = World::new().await;
    world.apply(&asks_for_variables("")).await;
    let run = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(3_600)).await;
    let wrong = json!({"variables.tag": "latest", "tag": "v2"});
    insta::assert_snapshot!(give_variables(&world, &run, wrong).await.expect_err("wrong"), @"stages.deploy.spec.execution.steps.__inputs: the step does not ask for `tag`; it asks for variables.tag, variables.count; `variables.tag` must be a text that matches v[0-9]+");
    let given = json!({"variables.tag": "v7", "variables.count": "5"});
    give_variables(&world, &run, given).await.expect("given");
    let run = world.finish(&run).await;

    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    after Success
    after.steps.say #0 Success
    deploy.steps.__inputs #0 Success
    deploy.steps.say #0 Success
    ");
    assert_eq!(words(&world, &run.id).await, ["v7-fixed 6", "v7 5"]);
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_nobody_gives_its_variables_expires_or_goes_on_with_defaults() {
    let world = World::new().await;
    world.apply(&asks_for_variables("timeout: 2h\n")).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Expired: Step __inputs: Nobody gave its inputs (variables.tag, variables.count) within 1h 59m 59s.
    deploy Expired: Step __inputs: Nobody gave its inputs (variables.tag, variables.count) within 1h 59m 59s.
    after Skipped
    deploy.steps.__inputs #0 Expired
    deploy.steps.say #0 Skipped
    ");

    let world = World::new().await;
    let goes_on = on_late("ProceedWithDefaultValues");
    world.apply(&asks_for_variables(&goes_on)).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    after Success
    after.steps.say #0 Success
    deploy.steps.__inputs #0 Expired
    deploy.steps.__inputs #1 Success
    deploy.steps.say #0 Success
    ");
    assert_eq!(words(&world, &run.id).await, ["v1-fixed 3", "v1 2"]);
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_given_at_the_start_is_not_asked_for_again() {
    let world = World::new().await;
    world.apply(&asks_for_variables("")).await;
    let inputs = "pipeline: {identifier: release, stages: [{stage: {identifier: deploy, type: Custom, variables: \
                  [{name: tag, type: String, value: v3}, {name: count, type: Number, value: 4}]}}]}";
    let mut request = slipway_world::by_hand("release");
    request.inputs_yaml = Some(inputs.to_owned());
    let run = world.try_start(request).await.expect("started");
    let run = world.finish(&run.id).await;
    assert_eq!(words(&world, &run.id).await, ["v3-fixed 5", "v3 4"]);
}

/// What a step was given is what its other fields read of it.
#[tokio::test(start_paused = true)]
async fn a_step_reads_its_own_fields_as_they_were_given() {
    let world = World::new().await;
    let asked = "      environmentVariables:\n        - name: V\n          type: String\n          value: <+input>.executionInput()\n";
    let reads = asks("'word=<+spec.environmentVariables.V>'", "");
    let step = reads.replacen("      source:", &format!("{asked}      source:"), 1);
    let run = started(&world, &step).await;
    give(&world, &run, json!({"environmentVariables.V.value": "eu"}))
        .await
        .expect("given");
    let run = world.finish(&run).await;
    assert_eq!(word(&world, &run.id).await, "eu");
    world.assert_clean(&run.id).await;
}
