//! Loops over what the run brings forth, on the real machines.

use serde_json::Value;
use slipway_model::status::Status;
use slipway_store::record::RunRecord;
use slipway_world::World;
use slipway_world::yaml::{group, pipeline, script, stage};

/// Says a word for later.
fn says(id: &str, what: &str) -> String {
    let output = "      outputVariables:\n        - name: word\n          type: String\n          value: word\n";
    script(id, &format!("'word={what}'"), "").replacen(
        "      source:",
        &format!("{output}      source:"),
        1,
    )
}

const WORD: &str = "<+execution.steps.say.output.outputVariables.word>";

/// An element that loops.
fn looped(element: &str, strategy: &str) -> String {
    let name = element.find("    name:").unwrap_or(0);
    let (head, tail) = element.split_at(name);
    format!("{head}    strategy: {strategy}\n{tail}")
}

async fn run(world: &World, steps: &str) -> RunRecord {
    world
        .apply(&pipeline(&[stage("deploy", steps, "", "")]))
        .await;
    let run = world.start("release").await;
    world.finish(&run).await
}

#[tokio::test(start_paused = true)]
async fn a_loop_has_as_many_turns_as_the_step_before_said() {
    let world = World::new().await;
    let inner = looped(
        &says("inner", "<+matrix.letter><+repeat.item>"),
        "{repeat: {items: '<+execution.steps.say.output.outputVariables.word>.split(\",\")'}}",
    );
    let steps = says("say", "x,y")
        + &looped(
            &group("each", &[inner]),
            "{matrix: {letter: '<+execution.steps.say.output.outputVariables.word>.split(\",\")', maxConcurrency: 1, nodeName: 'with <+matrix.letter>'}}",
        )
        + &says(
            "end",
            "<+execution.steps.each_1.steps.inner_0.output.outputVariables.word> of <+strategy.node.each.currentStatus>",
        );
    let run = run(&world, &steps).await;

    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    deploy.steps.each #0 Success
    deploy.steps.each_0 #0 Success
    deploy.steps.each_0.steps.inner #0 Success
    deploy.steps.each_0.steps.inner_0 #0 Success
    deploy.steps.each_0.steps.inner_1 #0 Success
    deploy.steps.each_1 #0 Success
    deploy.steps.each_1.steps.inner #0 Success
    deploy.steps.each_1.steps.inner_0 #0 Success
    deploy.steps.each_1.steps.inner_1 #0 Success
    deploy.steps.end #0 Success
    deploy.steps.say #0 Success
    ");
    let nodes = world.store.list_nodes(&run.id, None).await;
    let nodes = nodes.unwrap_or_default();
    let end = nodes.iter().find(|node| node.identifier.as_str() == "end");
    let word = end.map(|end| end.outputs["output"]["outputVariables"]["word"].clone());
    assert_eq!(word, Some(Value::from("yx of SUCCESS")));
    let named = nodes.iter().filter(|node| node.node_type == "STEP_GROUP");
    let names: Vec<_> = named.map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["with x", "with y"]);
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_fails_fails_the_loop_and_a_loop_over_nothing_is_fine() {
    let world = World::new().await;
    let fails = looped(
        &script("each", "'<+repeat.item>'", ""),
        &format!("{{repeat: {{items: '{WORD}.split(\",\")'}}}}"),
    );
    let failed = run(&world, &(says("say", "ok,fail,ok") + &fails)).await;
    insta::assert_snapshot!(world.story(&failed).await, @"
    run Failed: Step each_1: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    deploy Failed: Step each_1: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    deploy.steps.each #0 Failed
    deploy.steps.each_0 #0 Success
    deploy.steps.each_1 #0 Failed
    deploy.steps.each_2 #0 Success
    deploy.steps.say #0 Success
    ");

    let world = World::new().await;
    let none = looped(
        &script("each", "ok", ""),
        &format!("{{repeat: {{times: '{WORD}'}}}}"),
    );
    let empty = run(
        &world,
        &(says("say", "0") + &none + &script("after", "ok", "")),
    )
    .await;
    insta::assert_snapshot!(world.story(&empty).await, @"
    run Success
    deploy Success
    deploy.steps.after #0 Success
    deploy.steps.each #0 Success
    deploy.steps.say #0 Success
    ");
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_too_much_or_nonsense_fails_and_says_why() {
    for (word, expected) in [
        ("1000000000", "1000000000 turns; a loop has at most 256"),
        ("many", "`many` is no whole number"),
    ] {
        let world = World::new().await;
        let each = looped(
            &script("each", "ok", ""),
            &format!("{{repeat: {{times: '{WORD}'}}}}"),
        );
        let run = run(&world, &(says("say", word) + &each)).await;
        assert_ne!(run.status, Status::Success);
        let story = world.story(&run).await;
        let nodes = world.store.list_nodes(&run.id, None).await;
        let told = nodes
            .unwrap_or_default()
            .into_iter()
            .find_map(|node| node.failure);
        let told = told.map_or_else(String::new, |failure| failure.message);
        assert!(told.contains(expected), "{told}\n{story}");
        assert!(story.contains(expected), "the run says so too: {story}");
        world.assert_clean(&run.id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_changes_nothing_about_a_loop() {
    let world = World::new().await;
    let each = looped(
        &group("each", &[script("a", "ok", ""), script("b", "ok", "")]),
        &format!("{{repeat: {{items: '{WORD}.split(\",\")', maxConcurrency: 2}}}}"),
    );
    let steps = says("say", "x,y,z") + &each;
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let expected = world.story(&run).await;
    let crashes = world.survives_crashes("release", 9, &expected).await;
    assert!(crashes > 5, "only {crashes} crashes");
}
