//! What follows failures in whole runs, on the real machines: retries with conditions, statuses, the time of groups.

use slipway_model::status::Status;
use slipway_world::World;
use slipway_world::yaml::{beside, group, pipeline, script, stage, wait};

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

/// A stage that goes on after a failure is failed to those who ask how it has gone so far, and so is its run: what tells
/// people of failures runs.
#[tokio::test(start_paused = true)]
async fn what_failed_shows_in_what_goes_on() {
    let world = World::new().await;
    let mark = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        type: MarkAsFailure\n";
    let tells = |condition: &str| format!("when:\n  stageStatus: All\n  condition: {condition}\n");
    let steps = script(
        "first",
        "ok",
        &tells("<+stage.currentStatus> == \"SUCCEEDED\""),
    ) + &script("breaks", "fail", mark)
        + &script(
            "tells",
            "ok",
            &tells("<+stage.currentStatus> == \"FAILED\" && <+stage.status> == \"RUNNING\""),
        )
        + &script(
            "thanks",
            "ok",
            &tells("<+stage.liveStatus> == \"SUCCEEDED\""),
        );
    let cleans = "when:\n  pipelineStatus: All\n  condition: <+pipeline.liveStatus> == \"FAILED\" && <+pipeline.status> == \"RUNNING\"\n";
    let stages = [
        stage("build", &steps, "", ""),
        stage("clean", &script("sweep", "ok", ""), "", cleans),
    ];
    world.apply(&pipeline(&stages)).await;

    let run = world.start("release").await;
    let run = world.finish(&run).await;

    insta::assert_snapshot!(world.story(&run).await, @"
    run Failed: Step breaks: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    build Failed: Step breaks: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    clean Success
    build.steps.breaks #0 Failed
    build.steps.first #0 Success
    build.steps.tells #0 Success
    build.steps.thanks #0 Skipped
    clean.steps.sweep #0 Success
    ");
    world.assert_clean(&run.id).await;
}

/// The steps of a group have `timeout` together; where the group is begun again they have it again, and its rollback
/// steps take the time that they need.
#[tokio::test(start_paused = true)]
async fn the_time_of_a_step_group_is_up() {
    let undone = "    timeout: 90m\n    failureStrategies:\n      - onFailure:\n          errors: [Timeout]\n          action:\n            type: StepGroupRollback\n";
    let again = "    timeout: 90m\n    failureStrategies:\n      - onFailure:\n          errors: [Timeout]\n          action:\n            type: RetryStepGroup\n            spec: {retryCount: 1, retryIntervals: [10m]}\n";
    let rollback = "    rollbackSteps:\n      - step:\n          name: undo\n          identifier: undo\n          type: Wait\n          timeout: 1d\n          spec:\n            duration: 5h\n";
    let inner = beside(&[wait("b", "3h"), wait("c", "10m")]);
    let mut told = Vec::new();
    for (how, more) in [
        ("none", String::from("    timeout: 90m\n")),
        ("undone", undone.to_owned() + rollback),
        ("again", again.to_owned()),
    ] {
        let world = World::new().await;
        let steps = group("g", &[wait("a", "1h"), inner.clone(), wait("d", "1m")]);
        let steps = steps.replacen("    steps:\n", &format!("{more}    steps:\n"), 1);
        world
            .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
            .await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let minutes = (run.ended_ms.expect("ended") - run.started_ms) / 60_000;
        told.push(format!(
            "{how}: {minutes} minutes\n{}",
            world.story(&run).await
        ));
        world.assert_clean(&run.id).await;
    }
    insta::assert_snapshot!(told.join("\n\n"), @"
    none: 90 minutes
    run Expired: Step b: The time of its step group was up.
    deploy Expired: Step b: The time of its step group was up.
    deploy.steps.g #0 Expired
    deploy.steps.g.steps.a #0 Success
    deploy.steps.g.steps.b #0 Expired
    deploy.steps.g.steps.c #0 Success
    deploy.steps.g.steps.d #0 Skipped
    deploy.steps.g.steps[1] #0 Expired

    undone: 390 minutes
    run Expired: Step b: The time of its step group was up.
    deploy Expired: Step b: The time of its step group was up.
    deploy.steps.g #0 Expired
    deploy.steps.g.rollbackSteps.undo #0 Success
    deploy.steps.g.steps.a #0 Success
    deploy.steps.g.steps.b #0 Expired
    deploy.steps.g.steps.c #0 Success
    deploy.steps.g.steps[1] #0 Expired

    again: 190 minutes
    run Expired: Step b: The time of its step group was up.
    deploy Expired: Step b: The time of its step group was up.
    deploy.steps.g #0 Expired
    deploy.steps.g #1 Expired
    deploy.steps.g.steps.a #0 Success
    deploy.steps.g.steps.a #1 Success
    deploy.steps.g.steps.b #0 Expired
    deploy.steps.g.steps.b #1 Expired
    deploy.steps.g.steps.c #0 Success
    deploy.steps.g.steps.c #1 Success
    deploy.steps.g.steps.d #0 Skipped
    deploy.steps.g.steps[1] #0 Expired
    deploy.steps.g.steps[1] #1 Expired
    ");
}

/// The rollback steps of a group take the time that they need, also where that of their stage is up meanwhile: a step alone,
/// which the lane itself asks again, and steps side by side.
#[tokio::test(start_paused = true)]
async fn the_time_of_a_stage_is_up_while_a_group_of_it_is_rolled_back() {
    let strategy = "    failureStrategies:\n      - onFailure:\n          errors: [AllErrors]\n          action:\n            type: StepGroupRollback\n";
    let undo = wait("undo", "5h") + &beside(&[wait("x", "3h"), wait("y", "2h")]);
    let undo: String = undo.lines().map(|line| format!("      {line}\n")).collect();
    let world = World::new().await;
    let steps = group("g", &[wait("a", "50m"), script("bad", "fail", "")]);
    let steps = steps.replacen("    steps:\n", &format!("{strategy}    steps:\n"), 1);
    let steps = steps + "    rollbackSteps:\n" + &undo;
    let stage = stage("deploy", &steps, "", "timeout: 1h\n");
    world.apply(&pipeline(&[stage])).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let minutes = (run.ended_ms.expect("ended") - run.started_ms) / 60_000;
    assert_eq!(minutes, 50 + 300 + 180);
    insta::assert_snapshot!(world.story(&run).await, @"
    run Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    deploy Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    deploy.steps.g #0 Failed
    deploy.steps.g.rollbackSteps.undo #0 Success
    deploy.steps.g.rollbackSteps.x #0 Success
    deploy.steps.g.rollbackSteps.y #0 Success
    deploy.steps.g.rollbackSteps[1] #0 Success
    deploy.steps.g.steps.a #0 Success
    deploy.steps.g.steps.bad #0 Failed
    ");
    world.assert_clean(&run.id).await;
}

/// The branches of a group end long after the pause before its next attempt is over: that attempt begins in the
/// invocation that hears of their end, and a crash there must not take the branches for walked a second time.
#[tokio::test(start_paused = true)]
async fn a_crash_after_any_request_changes_nothing_about_a_group_of_branches_that_is_tried_again() {
    let again = "    failureStrategies:\n      - onFailure:\n          errors: [AllErrors]\n          action: {type: \
                 RetryStepGroup, spec: {retryCount: 2, retryIntervals: [1s]}}\n";
    let branches = beside(&[script("a", "fail until 1", ""), wait("b", "10s")]);
    let steps = group("g", &[branches]) + again;
    let world = World::new().await;
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let story = world.story(&run).await;
    insta::assert_snapshot!(story, @"
    run Success
    deploy Success
    deploy.steps.g #0 Failed
    deploy.steps.g #1 Success
    deploy.steps.g.steps.a #0 Failed
    deploy.steps.g.steps.a #1 Success
    deploy.steps.g.steps.b #0 Success
    deploy.steps.g.steps.b #1 Success
    deploy.steps.g.steps[0] #0 Failed
    deploy.steps.g.steps[0] #1 Success
    ");
    let crashes = world.survives_crashes_unheard("release", &story).await;
    assert!(crashes > 40, "only {crashes} crashes");
}
