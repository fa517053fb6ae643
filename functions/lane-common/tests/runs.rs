//! Whole runs through the real machines and functions: what is recorded, and which way they take.

use std::time::Duration;

use slipway_engine::abort::abort_run;
use slipway_model::id::PrincipalId;
use slipway_model::status::Status;
use slipway_world::World;
use slipway_world::yaml::{
    ROLL_BACK, TARGET, beside, deployment, group, pipeline, script, stage, wait,
};

#[tokio::test(start_paused = true)]
async fn a_run_goes_through_groups_branches_waits_and_conditions() {
    let world = World::new().await;
    let reads = "when:\n  stageStatus: Success\n  condition: <+execution.steps.tag.output.outputVariables.TAG> \
                 == \"v2\"\n";
    let never = "when:\n  stageStatus: Failure\n";
    let tag = script("tag", "TAG=v2", "")
        + "      outputVariables:\n        - name: TAG\n          type: String\n          value: TAG\n";
    let steps = tag
        + &group("g", &[script("a", "ok", reads), wait("pause", "3m")])
        + &beside(&[script("b", "ok", ""), group("h", &[script("c", "ok", "")])])
        + &script("d", "ok", never);
    world
        .apply(&pipeline(&[
            stage("build", &steps, "", ""),
            stage("after", &wait("rest", "30s"), "", ""),
        ]))
        .await;

    let run = world.start("release").await;
    let run = world.finish(&run).await;

    insta::assert_snapshot!(world.story(&run).await, @r#"
    run Success
    build Success
    after Success
    after.steps.rest #0 Success
    build.steps.b #0 Success
    build.steps.d #0 Skipped
    build.steps.g #0 Success
    build.steps.g.steps.a #0 Success
    build.steps.g.steps.pause #0 Success
    build.steps.h #0 Success
    build.steps.h.steps.c #0 Success
    build.steps.tag #0 Success
    build.steps[2] #0 Success
    "#);
    insta::assert_snapshot!(world.path("pipeline", run.id.as_str()).await, @"Plan Stages Group Line Stage Stage Finish Succeeded");
    insta::assert_snapshot!(world.path("stage", &format!("{}-build-0", run.id)).await, @"Begin Steps");
    insta::assert_snapshot!(world.path("lane", &format!("{}-build-0-steps", run.id)).await, @"Advance Route AwaitDelegate Advance Route AwaitDelegate Advance Route Pause Advance Route Fork Branch Branch Advance Route Done");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn loops_run_every_turn_with_its_own_values() {
    let world = World::new().await;
    let each = "strategy:\n  repeat:\n    items: [x, y, z]\n    maxConcurrency: 2\n";
    let tag = script("tag", "TAG=<+matrix.zone>-<+repeat.item>", each)
        + "      outputVariables:\n        - name: TAG\n          type: String\n          value: TAG\n";
    let last = "when:\n  stageStatus: Success\n  condition: <+execution.steps.tag_2.output.outputVariables.TAG> \
                == <+stage.matrix.zone> + \"-z\" && <+strategy.node.tag.currentStatus> == \"SUCCESS\"\n";
    let zones = "strategy:\n  matrix:\n    zone: [a, b]\n    maxConcurrency: 1\n";
    let steps = tag + &script("check", "ok", last);
    world
        .apply(&pipeline(&[stage("build", &steps, "", zones)]))
        .await;

    let run = world.start("release").await;
    let run = world.finish(&run).await;

    insta::assert_snapshot!(world.story(&run).await, @r"
    run Success
    build_0 Success
    build_1 Success
    build_0.steps.check #0 Success
    build_0.steps.tag #0 Success
    build_0.steps.tag_0 #0 Success
    build_0.steps.tag_1 #0 Success
    build_0.steps.tag_2 #0 Success
    build_1.steps.check #0 Success
    build_1.steps.tag #0 Success
    build_1.steps.tag_0 #0 Success
    build_1.steps.tag_1 #0 Success
    build_1.steps.tag_2 #0 Success
    ");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn linked_templates_are_fetched_with_and_without_a_version() {
    let world = World::new().await;
    let template = |id: &str, kind: &str, spec: &str| {
        format!(
            "template:\n  name: {id}\n  identifier: {id}\n  orgIdentifier: default\n  projectIdentifier: shop\n  \
             versionLabel: v1\n  type: {kind}\n  spec: {spec}\n"
        )
    };
    let pause = template(
        "pause",
        "Step",
        "{type: Wait, timeout: 1d, spec: {duration: <+input>}}",
    );
    let pauses = template(
        "pauses",
        "StepGroup",
        "{steps: [{step: {name: a, identifier: a, template: {templateRef: pause, versionLabel: v1, \
         templateInputs: {spec: {duration: <+input>}}}}}]}",
    );
    let link = "- stepGroup:\n    name: g\n    identifier: g\n    template:\n      templateRef: pauses\n      \
                templateInputs:\n        steps:\n          - step:\n              identifier: a\n              \
                template:\n                templateInputs:\n                  spec:\n                    \
                duration: 2m\n";
    world
        .apply(&[pause, pauses, pipeline(&[stage("build", link, "", "")])].join("---\n"))
        .await;

    let run = world.start("release").await;
    let run = world.finish(&run).await;

    insta::assert_snapshot!(world.story(&run).await, @r"
    run Success
    build Success
    build.steps.g #0 Success
    build.steps.g.steps.a #0 Success
    ");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_fails_rolls_back_and_later_ones_do_not_run() {
    let world = World::new().await;
    let steps = script("a", "ok", "") + &script("b", "fail", "") + &script("c", "ok", "");
    let stages = [
        stage("deploy", &steps, &script("undo", "ok", ""), ROLL_BACK),
        stage("next", &script("d", "ok", ""), "", ""),
        stage(
            "always",
            &script("e", "ok", ""),
            "",
            "when:\n  pipelineStatus: All\n",
        ),
    ];
    world.apply(&pipeline(&stages)).await;

    let run = world.start("release").await;
    let run = world.finish(&run).await;

    insta::assert_snapshot!(world.story(&run).await, @r#"
    run Failed: Step b: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
    deploy Failed: Step b: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
    next Skipped
    always Success
    always.steps.e #0 Success
    deploy.rollbackSteps.undo #0 Success
    deploy.steps.a #0 Success
    deploy.steps.b #0 Failed
    "#);
    insta::assert_snapshot!(world.path("pipeline", run.id.as_str()).await, @"Plan Stages Group Line Stage Stage Stage Finish Failed");
    insta::assert_snapshot!(world.path("stage", &format!("{}-deploy-0", run.id)).await, @"Begin Steps End RollBack End");
    insta::assert_snapshot!(world.path("stage", &format!("{}-next-0", run.id)).await, @"Begin Skipped");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_during_a_wait_ends_the_run_and_rolls_nothing_back() {
    let world = World::new().await;
    let steps = script("a", "ok", "") + &wait("pause", "3h") + &script("b", "ok", "");
    let stages = [
        stage("deploy", &steps, &script("undo", "ok", ""), ROLL_BACK),
        stage("next", &script("d", "ok", ""), "", ""),
    ];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(600)).await;

    abort_run(&world.runs, &run, &PrincipalId::new("kim"))
        .await
        .expect("it runs");
    let run = world.finish(&run).await;

    insta::assert_snapshot!(world.story(&run).await, @r#"
    run Aborted: Step pause: It was stopped: the run was aborted by kim.
    deploy Aborted: Step pause: It was stopped: the run was aborted by kim.
    next Aborted: Stage next: the run was aborted before it began.
    deploy.steps.a #0 Success
    deploy.steps.pause #0 Aborted
    "#);
    insta::assert_snapshot!(world.path("pipeline", run.id.as_str()).await, @"Plan Stages Group Line Stage Stage Finish Aborted");
    // A long wait is one state, and the abort ends it at once.
    let lane = format!("{}-deploy-0-steps", run.id);
    insta::assert_snapshot!(world.path("lane", &lane).await, @"Advance Route AwaitDelegate Advance Route Pause Advance Route Failed");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn retries_timeouts_and_lost_delegates_are_told_apart() {
    let world = World::new().await;
    let retry = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        type: Retry\n        \
                 spec:\n          retryCount: 2\n          retryIntervals: [10s]\n          onRetryFailure:\n            \
                 action:\n              type: Ignore\n";
    let steps = script("a", "fail until 2", retry)
        + &script("b", "fail", retry)
        + &script("c", "vanish", "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;

    let run = world.start("release").await;
    let run = world.finish(&run).await;

    insta::assert_snapshot!(world.story(&run).await, @r#"
    run Failed: Step c: Delegate d1 took the work and fell silent; whether the work went on is unknown.
    deploy Failed: Step c: Delegate d1 took the work and fell silent; whether the work went on is unknown.
    deploy.steps.a #0 Failed
    deploy.steps.a #1 Failed
    deploy.steps.a #2 Success
    deploy.steps.b #0 Failed
    deploy.steps.b #1 Failed
    deploy.steps.b #2 IgnoreFailed
    deploy.steps.c #0 Failed
    "#);
    world.assert_clean(&run.id).await;
}

/// The stage `deploy`, which deploys and rolls back.
/// Found by the golden traces: an attempt read the number of the one before it, and the first one none at all.
#[tokio::test(start_paused = true)]
async fn an_attempt_knows_its_own_number() {
    let world = World::new().await;
    let retry = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        type: Retry\n        \
                 spec:\n          retryCount: 2\n          retryIntervals: [10s]\n          onRetryFailure:\n            action:\n              type: MarkAsFailure\n";
    let steps = script("a", "test <+step.retryCount> -ge 2", retry)
        + &script("b", "test <+execution.steps.b.retryCount> -ge 1", retry);
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    deploy.steps.a #0 Failed
    deploy.steps.a #1 Failed
    deploy.steps.a #2 Success
    deploy.steps.b #0 Failed
    deploy.steps.b #1 Success
    ");
    world.assert_clean(&run.id).await;
}

fn deploys(steps: &str) -> String {
    deployment(&stage(
        "deploy",
        steps,
        &script("undo", "ok", ""),
        ROLL_BACK,
    ))
}

#[tokio::test(start_paused = true)]
async fn stages_that_deploy_the_same_to_the_same_take_turns() {
    let world = World::new().await;
    world.apply(TARGET).await;
    world
        .apply(&pipeline(&[deploys(&wait("pause", "20m"))]))
        .await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(world.start("release").await);
        world.runs.clock.sleep(Duration::from_secs(60)).await;
    }
    // The second gives up its place in the line.
    abort_run(&world.runs, &runs[1], &PrincipalId::new("kim"))
        .await
        .expect("it runs");

    let mut ends = Vec::new();
    for run in &runs {
        let run = world.finish(run).await;
        let stage = &run.stages[0];
        ends.push((
            run.status,
            stage.started_ms.expect("begun"),
            stage.ended_ms.expect("ended"),
        ));
        let path = world.path("stage", &format!("{}-deploy-0", run.id)).await;
        assert!(path.starts_with("Begin") && path.len() < 1_000, "{path}");
    }

    let statuses: Vec<Status> = ends.iter().map(|(status, ..)| *status).collect();
    assert_eq!(
        statuses,
        [Status::Success, Status::Aborted, Status::Success]
    );
    assert!(
        ends[2].1 >= ends[0].2,
        "the third begins when the first has ended: {ends:?}"
    );
    assert!(ends[2].1 <= ends[0].2 + 1_000, "and at once: {ends:?}");
    for run in &runs {
        world.assert_clean(run).await;
    }
}

/// What a run must come to however often its functions die.
const CRASHING: &str = "\
run Failed: Step e: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
deploy Failed: Step e: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
deploy.rollbackSteps.undo #0 Success
deploy.steps.a #0 Success
deploy.steps.c #0 Success
deploy.steps.d #0 Success
deploy.steps.e #0 Failed
deploy.steps.g #0 Success
deploy.steps.g.steps.b #0 Success
deploy.steps.g.steps.pause #0 Success
deploy.steps[2] #0 Success";

#[tokio::test(start_paused = true)]
async fn f1_a_crash_at_any_request_to_the_store_changes_nothing() {
    let reads = "when:\n  stageStatus: Success\n  condition: <+execution.steps.a.status> == \"SUCCEEDED\"\n";
    let steps = script("a", "ok", "")
        + &group("g", &[script("b", "ok", reads), wait("pause", "90s")])
        + &beside(&[script("c", "ok", ""), wait("d", "10s")])
        + &script("e", "fail", "");
    let yaml = pipeline(&[deploys(&steps)]);
    let world = World::new().await;
    world.apply(TARGET).await;
    world.apply(&yaml).await;
    let crashes = world.survives_crashes("release", 2, CRASHING).await;
    assert!(crashes > 30, "only {crashes} crashes");
}

#[tokio::test(start_paused = true)]
async fn y12_a_lane_of_many_waits_goes_on_in_another_execution() {
    let world = World::with_turns(4).await;
    let waits: String = (0..7).map(|n| wait(&format!("w{n}"), "2s")).collect();
    world
        .apply(&pipeline(&[stage("long", &waits, "", "")]))
        .await;

    let run = world.start("release").await;
    let run = world.finish(&run).await;

    assert_eq!(run.status, Status::Success);
    let path = async |part: &str| world.path("lane", &format!("{}-long-{part}", run.id)).await;
    let three = "Advance Route Pause ".repeat(3);
    let on = format!("{three}Advance Route Continue Done");
    assert_eq!(path("0-steps").await, on);
    assert_eq!(path("steps-part-1").await, on);
    assert_eq!(
        path("steps-part-2").await,
        "Advance Route Pause Advance Route Done"
    );
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn y12_a_failure_after_a_lane_went_on_rolls_back() {
    let world = World::with_turns(2).await;
    let steps = wait("w0", "2s") + &wait("w1", "2s") + &script("bad", "fail", "");
    let undo = script("undo", "ok", "");
    world
        .apply(&pipeline(&[stage("long", &steps, &undo, ROLL_BACK)]))
        .await;

    let run = world.start("release").await;
    let run = world.finish(&run).await;

    assert_eq!(run.status, Status::Failed);
    let stage = format!("{}-long-0", run.id);
    assert_eq!(
        world.path("stage", &stage).await,
        "Begin Steps End RollBack End"
    );
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn y18_a_rollback_that_fails_ends_with_what_to_do_and_is_not_rolled_back() {
    let world = World::new().await;
    let undo = script("undo", "fail", "") + &script("after", "ok", "");
    world
        .apply(&pipeline(&[stage(
            "deploy",
            &script("bad", "fail", ""),
            &undo,
            ROLL_BACK,
        )]))
        .await;

    let run = world.start("release").await;
    let run = world.finish(&run).await;

    insta::assert_snapshot!(world.story(&run).await, @r#"
    run Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. LEFT BEHIND: rolling back failed. Step undo: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.
    deploy Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. LEFT BEHIND: rolling back failed. Step undo: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.
    deploy.rollbackSteps.undo #0 Failed
    deploy.steps.bad #0 Failed
    "#);
    assert_eq!(
        world.path("stage", &format!("{}-deploy-0", run.id)).await,
        "Begin Steps End RollBack End"
    );
    world.assert_clean(&run.id).await;
}

/// Found by the simulation (seed 12 of 2026-11-22).
#[tokio::test(start_paused = true)]
async fn the_time_of_a_stage_ends_a_step_that_waits_longer() {
    let world = World::new().await;
    let lines = format!("timeout: 10m\n{ROLL_BACK}");
    let undo = script("undo", "ok", "");
    world
        .apply(&pipeline(&[stage(
            "deploy",
            &wait("long", "5h"),
            &undo,
            &lines,
        )]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Expired);
    let minutes = (run.ended_ms.expect("ended") - run.started_ms) / 60_000;
    assert_eq!(minutes, 10);
    world.assert_clean(&run.id).await;
}
