//! Retries with conditions in whole runs, on the real machines.

use slipway_model::status::Status;
use slipway_world::World;
use slipway_world::yaml::{pipeline, script, stage};

/// Tries again, three times, where a condition holds, and else ignores the failure.
fn again_if(condition: &str) -> String {
    format!(
        "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        type: Retry\n        spec:\n          \
         retryCount: 3\n          retryIntervals: [1m]\n          condition: '{condition}'\n          onRetryFailure: \
         {{action: {{type: Ignore}}}}\n"
    )
}

#[tokio::test(start_paused = true)]
async fn a_step_is_tried_again_while_the_condition_of_its_retry_holds() {
    let world = World::new().await;
    let killed = again_if("<+step.exitCode> == 137");
    let steps = script("level", "LEVEL=high", "")
        + "      outputVariables:\n        - name: LEVEL\n          type: String\n          value: LEVEL\n"
        // Killed twice, then it works.
        + &script("killed", "exit 137 137 0", &killed)
        // Killed once, then it fails by itself.
        + &script("broken", "exit 137 1", &killed)
        // Its failure has no exit code: the condition cannot be told.
        + &script("hangs", "vanish", &killed)
        // The condition is the stage's, and reads another step.
        + &script("high", "exit 1 0", "");
    let of_stage = again_if(
        "<+execution.steps.level.output.outputVariables.LEVEL> == \"high\" && <+step.identifier> == \"high\"",
    );
    world
        .apply(&pipeline(&[stage("build", &steps, "", &of_stage)]))
        .await;

    let run = world.start("release").await;
    let run = world.finish(&run).await;

    assert_eq!(run.status, Status::IgnoreFailed);
    let story = world.story(&run).await;
    insta::assert_snapshot!(story, @"
    run IgnoreFailed
    build IgnoreFailed
    build.steps.broken #0 Failed
    build.steps.broken #1 IgnoreFailed
    build.steps.hangs #0 IgnoreFailed
    build.steps.high #0 Failed
    build.steps.high #1 Success
    build.steps.killed #0 Failed
    build.steps.killed #1 Failed
    build.steps.killed #2 Success
    build.steps.level #0 Success
    ");
    world.assert_clean(&run.id).await;
    let crashes = world.survives_crashes("release", 3, &story).await;
    assert!(crashes > 10, "only {crashes} crashes");
}
