//! Loops over what the run brings forth, in step groups that are begun again: each round has its own turns.

use slipway_world::World;
use slipway_world::yaml::{group, pipeline, script, stage};

/// Says how many tasks the delegate has done so far.
fn counts() -> String {
    let output = "      outputVariables:\n        - name: word\n          type: String\n          value: word\n";
    let said = script("say", "'word=#'", "");
    said.replacen("      source:", &format!("{output}      source:"), 1)
}

#[tokio::test(start_paused = true)]
async fn a_group_that_begins_again_goes_over_what_it_says_this_time() {
    let world = World::new().await;
    let said = "<+execution.steps.g.steps.say.output.outputVariables.word>";
    let times = format!("strategy:\n  repeat:\n    times: '{said}'\n");
    let again = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        type: \
                 RetryStepGroup\n        spec: {retryCount: 1, retryIntervals: [1m]}\n";
    let again: String = again.lines().map(|line| format!("    {line}\n")).collect();
    let inner = [
        counts(),
        script("each", "ok", &times),
        script("check", "fail until 1", ""),
    ];
    let steps = group("g", &inner) + &again + &script("after", "ok", "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    // One task was done when it said so first, and four when the group began again.
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    deploy.steps.after #0 Success
    deploy.steps.g #0 Failed
    deploy.steps.g #1 Success
    deploy.steps.g.steps.check #0 Failed
    deploy.steps.g.steps.check #1 Success
    deploy.steps.g.steps.each #0 Success
    deploy.steps.g.steps.each #1 Success
    deploy.steps.g.steps.each_0 #0 Success
    deploy.steps.g.steps.each_0 #1 Success
    deploy.steps.g.steps.each_1 #0 Success
    deploy.steps.g.steps.each_2 #0 Success
    deploy.steps.g.steps.each_3 #0 Success
    deploy.steps.g.steps.say #0 Success
    deploy.steps.g.steps.say #1 Success
    ");
    world.assert_clean(&run.id).await;

    let expected = world.story(&run).await;
    assert!(expected.starts_with("run Success"), "{expected}");
}
