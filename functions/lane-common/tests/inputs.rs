//! Steps that ask for inputs when they begin, on the real machines.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

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
