//! Loops around stages that deploy several services, and guards of several deployments.

use slipway_world::World;
use slipway_world::yaml::{TARGET, deployment, says, stage};

use super::run;

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
