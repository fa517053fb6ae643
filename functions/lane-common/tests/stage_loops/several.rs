//! Loops around stages that deploy several services, and guards of several deployments.

use slipway_model::status::Status;
use slipway_world::World;
use slipway_world::yaml::{TARGET, deployment, pipeline, says, stage};

use super::{LIST, first, run};

/// A stage that deploys two services in each turn.
fn each(strategy: &str, config: &str) -> String {
    let word =
        "<+matrix.zone>-<+service.identifier> <+strategy.iteration> of <+strategy.iterations>";
    let one = deployment(&stage("each", &says("say", word), "", strategy));
    let two = format!(
        "          services:\n            values:\n              - serviceRef: shop\n              - serviceRef: cart\n{config}"
    );
    one.replacen(
        "          service:\n            serviceRef: shop\n",
        &two,
        1,
    )
}

async fn world() -> World {
    let world = World::new().await;
    world.apply(TARGET).await;
    let cart = TARGET.split("---").next().unwrap_or_default();
    world
        .apply(&cart.replace("shop\n  orgI", "cart\n  orgI"))
        .await;
    world
}

#[tokio::test(start_paused = true)]
async fn each_turn_deploys_all_services() {
    let world = world().await;
    let strategy = "strategy: {matrix: {zone: [eu, us]}}\n";
    let run = run(&world, &[each(strategy, "")]).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    each_0 Success
    each_2 Success
    each_1 Success
    each_3 Success
    each_0.steps.say #0 Success
    each_1.steps.say #0 Success
    each_2.steps.say #0 Success
    each_3.steps.say #0 Success
    ");
    let nodes = world.store.list_nodes(&run.id, None).await.expect("nodes");
    let mut words: Vec<String> = nodes
        .iter()
        .map(|node| node.outputs["output"]["outputVariables"]["word"].to_string())
        .collect();
    words.sort();
    assert_eq!(
        words,
        [
            "\"eu-cart 1 of 4\"",
            "\"eu-shop 0 of 4\"",
            "\"us-cart 3 of 4\"",
            "\"us-shop 2 of 4\"",
        ]
    );
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_does_not_hold_keeps_all_of_them_from_running() {
    let guard = |word: &str| {
        format!(
            "          multiDeploymentConfig:\n            when: <+pipeline.stages.first.spec.execution.steps.say.output.outputVariables.word> == \"{word}\"\n"
        )
    };
    let first = || stage("first", &says("say", "go"), "", "");
    let all = "when: {pipelineStatus: All, condition: <+strategy.iteration> == 1}\n";
    let mut stories = Vec::new();
    for (word, more) in [("stay", ""), ("go", all)] {
        let world = world().await;
        let two = each(more, &guard(word)).replacen("<+matrix.zone>", "here", 1);
        let run = run(&world, &[first(), two]).await;
        stories.push(format!("{word}\n{}", world.story(&run).await));
        world.assert_clean(&run.id).await;
    }
    insta::assert_snapshot!(stories.join("\n\n"), @"
    stay
    run Success
    first Success
    each_0 Skipped
    each_1 Skipped
    first.steps.say #0 Success

    go
    run Success
    first Success
    each_0 Skipped
    each_1 Success
    each_1.steps.say #0 Success
    first.steps.say #0 Success
    ");
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_outputs_deploys_all_services_in_each_turn() {
    let world = world().await;
    let strategy = format!("strategy: {{matrix: {{zone: '{LIST}'}}}}\n");
    let run = run(&world, &[first("eu,us,ap"), each(&strategy, "")]).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    first Success
    each_0_0 Success
    each_0_1 Success
    each_0_2 Success
    each_1_0 Success
    each_1_1 Success
    each_1_2 Success
    each_0 #0 Success
    each_0_0.steps.say #0 Success
    each_0_1.steps.say #0 Success
    each_0_2.steps.say #0 Success
    each_1 #0 Success
    each_1_0.steps.say #0 Success
    each_1_1.steps.say #0 Success
    each_1_2.steps.say #0 Success
    first.steps.say #0 Success
    ");
    let nodes = world.store.list_nodes(&run.id, None).await.expect("nodes");
    let said = nodes.iter().filter(|node| node.stage.as_str() != "first");
    let said = said.filter(|node| node.identifier.as_str() == "say");
    let mut words: Vec<String> = said
        .map(|node| {
            let word = &node.outputs["output"]["outputVariables"]["word"];
            format!("{}: {}", node.stage, word.as_str().unwrap_or_default())
        })
        .collect();
    words.sort();
    insta::assert_snapshot!(words.join("\n"), @"
    each_0_0: eu-shop 0 of 3
    each_0_1: us-shop 1 of 3
    each_0_2: ap-shop 2 of 3
    each_1_0: eu-cart 0 of 3
    each_1_1: us-cart 1 of 3
    each_1_2: ap-cart 2 of 3
    ");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_changes_nothing_about_loops_around_several_services() {
    let world = world().await;
    let strategy = format!("strategy: {{matrix: {{zone: '{LIST}', maxConcurrency: 1}}}}\n");
    let two = each(&strategy, "            metadata: {parallel: true}\n");
    world.apply(&pipeline(&[first("eu,us"), two])).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success, "{:?}", run.failure);
    let story = world.story(&run).await;
    let crashes = world.survives_crashes("release", 7, &story).await;
    assert!(crashes > 10, "only {crashes} crashes");
}
