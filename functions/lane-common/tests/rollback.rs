//! Failures that roll the whole run back, on the real machines.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

use std::time::Duration;

use slipway_engine::abort::abort_run;
use slipway_model::id::PrincipalId;
use slipway_store::record::RunRecord;
use slipway_world::World;
use slipway_world::yaml::{beside, group, pipeline, queue, script, stage, together, wait};

const ALL: &str = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action: {type: PipelineRollback}\n";

fn deploys(id: &str, undo: &str) -> String {
    stage(
        id,
        &script("deploy", "ok", ""),
        &(wait("pause", "10s") + &script("undo", undo, "")),
        ALL,
    )
}

/// `a`, then `b` and `c` side by side, `skipped`, and `bad`, which fails; `late` would run after any failure.
fn release(undo_of_a: &str) -> String {
    let never = "when:\n  pipelineStatus: Failure\n";
    pipeline(&[
        deploys("a", undo_of_a),
        together(&[deploys("b", "ok"), deploys("c", "ok")]),
        stage(
            "skipped",
            &script("x", "ok", ""),
            &script("undo", "ok", ""),
            never,
        ),
        stage(
            "bad",
            &script("deploy", "fail", ""),
            &script("undo", "ok", ""),
            ALL,
        ),
        stage(
            "late",
            &script("x", "ok", ""),
            "",
            "when:\n  pipelineStatus: All\n",
        ),
    ])
}

async fn order(world: &World, run: &RunRecord) -> Vec<String> {
    let nodes = world.store.list_nodes(&run.id, None).await.expect("nodes");
    let mut undone: Vec<_> = nodes
        .iter()
        .filter(|node| node.identifier.as_str() == "undo")
        .map(|node| (node.started_ms, node.stage.to_string()))
        .collect();
    undone.sort();
    undone.into_iter().map(|(_, stage)| stage).collect()
}

#[tokio::test(start_paused = true)]
async fn a_failure_rolls_every_stage_back_the_last_one_first() {
    let world = World::new().await;
    world.apply(&release("ok")).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Failed: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The run was rolled back: a, b, c, bad.
    a Success
    b Success
    c Success
    skipped Skipped
    bad Failed: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    late Skipped
    a.rollbackSteps.pause #0 Success
    a.rollbackSteps.undo #0 Success
    a.steps.deploy #0 Success
    b.rollbackSteps.pause #0 Success
    b.rollbackSteps.undo #0 Success
    b.steps.deploy #0 Success
    bad.rollbackSteps.undo #0 Success
    bad.steps.deploy #0 Failed
    c.rollbackSteps.pause #0 Success
    c.rollbackSteps.undo #0 Success
    c.steps.deploy #0 Success
    ");
    assert_eq!(order(&world, &run).await, ["bad", "b", "c", "a"]);
    let path = world.path("pipeline", run.id.as_str()).await;
    insta::assert_snapshot!(path, @"Plan Stages Group Line Stage Group Line Stage Stage Group Line Stage Stage Stage Finish RollBack Stages Group Line Stage Group Line Stage Stage Group Line Stage Finish Failed");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_cannot_be_rolled_back_is_told() {
    let world = World::new().await;
    world.apply(&release("fail")).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await.lines().next().expect("the run"), @"run Failed: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The run was rolled back: b, c, bad. LEFT BEHIND: Stage a could not be rolled back. rolling back failed. Step undo: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_stops_the_rollback() {
    let world = World::new().await;
    world.apply(&release("ok")).await;
    let run = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(5)).await;
    let who = PrincipalId::new("sam");
    abort_run(&world.runs, &run, &who).await.expect("aborted");
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Aborted: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The run was rolled back: bad. LEFT BEHIND: Stage a was not rolled back: the run was aborted. Stage b could not be rolled back. rolling back failed. Step pause: It was stopped: the run was aborted by sam. Nothing more is tried: look at what runs there, put it right, then run the pipeline again. Stage c could not be rolled back. rolling back failed. Step pause: It was stopped: the run was aborted by sam. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.
    a Success
    b Success
    c Success
    skipped Skipped
    bad Failed: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    late Skipped
    a.steps.deploy #0 Success
    b.rollbackSteps.pause #0 Aborted
    b.steps.deploy #0 Success
    bad.rollbackSteps.undo #0 Success
    bad.steps.deploy #0 Failed
    c.rollbackSteps.pause #0 Aborted
    c.steps.deploy #0 Success
    ");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_changes_nothing_about_a_rollback() {
    let world = World::new().await;
    world.apply(&release("ok")).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let expected = world.story(&run).await;
    let crashes = world.survives_crashes("release", 5, &expected).await;
    assert!(crashes > 15, "only {crashes} crashes");
}

/// A step that is tried twice more, after ten seconds each.
fn tried_again(id: &str, text: &str) -> String {
    let retry = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        type: Retry\n        \
                 spec:\n          retryCount: 2\n          retryIntervals: [10s]\n          onRetryFailure:\n            \
                 action:\n              type: MarkAsFailure\n";
    script(id, text, retry)
}

/// A stage that deploys, and one that fails and rolls back with `action`; both rollbacks are tried again.
fn undone_again(action: &str, undo: &str) -> String {
    let strategy = format!(
        "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action: {{type: {action}}}\n"
    );
    let rollback = tried_again("undo", undo) + &script("tell", "ok", "");
    pipeline(&[
        stage("good", &script("deploy", "ok", ""), &rollback, &strategy),
        stage("bad", &script("deploy", "fail", ""), &rollback, &strategy),
    ])
}

#[tokio::test(start_paused = true)]
async fn steps_of_a_rollback_are_retried_as_their_strategies_say() {
    let mut stories = Vec::new();
    for (action, undo) in [
        ("StageRollback", "fail until 2"),
        ("StageRollback", "fail"),
        ("PipelineRollback", "fail until 2"),
        ("PipelineRollback", "fail"),
    ] {
        let world = World::new().await;
        world.apply(&undone_again(action, undo)).await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let story = world.story(&run).await;
        stories.push(format!("{action}, {undo}\n{story}"));
        world.assert_clean(&run.id).await;
        // Ten seconds lie between two attempts of each stage that is rolled back.
        let rolled_back = if action == "StageRollback" { 1 } else { 2 };
        let took = run.ended_ms.expect("an end") - run.started_ms;
        assert!(
            (rolled_back * 20_000..rolled_back * 20_000 + 9_000).contains(&took),
            "{took}"
        );
    }
    insta::assert_snapshot!(stories.join("\n"), @"
    StageRollback, fail until 2
    run Failed: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
    good Success
    bad Failed: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
    bad.rollbackSteps.tell #0 Success
    bad.rollbackSteps.undo #0 Failed
    bad.rollbackSteps.undo #1 Failed
    bad.rollbackSteps.undo #2 Success
    bad.steps.deploy #0 Failed
    good.steps.deploy #0 Success
    StageRollback, fail
    run Failed: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. LEFT BEHIND: rolling back failed. Step undo: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.
    good Success
    bad Failed: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. LEFT BEHIND: rolling back failed. Step undo: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.
    bad.rollbackSteps.tell #0 Skipped
    bad.rollbackSteps.undo #0 Failed
    bad.rollbackSteps.undo #1 Failed
    bad.rollbackSteps.undo #2 Failed
    bad.steps.deploy #0 Failed
    good.steps.deploy #0 Success
    PipelineRollback, fail until 2
    run Failed: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The run was rolled back: good, bad.
    good Success
    bad Failed: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    bad.rollbackSteps.tell #0 Success
    bad.rollbackSteps.undo #0 Failed
    bad.rollbackSteps.undo #1 Failed
    bad.rollbackSteps.undo #2 Success
    bad.steps.deploy #0 Failed
    good.rollbackSteps.tell #0 Success
    good.rollbackSteps.undo #0 Failed
    good.rollbackSteps.undo #1 Failed
    good.rollbackSteps.undo #2 Success
    good.steps.deploy #0 Success
    PipelineRollback, fail
    run Failed: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. LEFT BEHIND: Stage good could not be rolled back. rolling back failed. Step undo: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. Nothing more is tried: look at what runs there, put it right, then run the pipeline again. Stage bad could not be rolled back. rolling back failed. Step undo: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.
    good Success
    bad Failed: Step deploy: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    bad.rollbackSteps.tell #0 Skipped
    bad.rollbackSteps.undo #0 Failed
    bad.rollbackSteps.undo #1 Failed
    bad.rollbackSteps.undo #2 Failed
    bad.steps.deploy #0 Failed
    good.rollbackSteps.tell #0 Skipped
    good.rollbackSteps.undo #0 Failed
    good.rollbackSteps.undo #1 Failed
    good.rollbackSteps.undo #2 Failed
    good.steps.deploy #0 Success
    ");
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_changes_nothing_about_a_rollback_that_is_retried() {
    let world = World::new().await;
    world
        .apply(&undone_again("PipelineRollback", "fail until 1"))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let story = world.story(&run).await;
    let crashes = world.survives_crashes("release", 3, &story).await;
    assert!(crashes > 10, "only {crashes} crashes");
}

/// A run holds a queue until its end, and being rolled back belongs to it.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_rolled_back_holds_its_queue_until_that_is_done() {
    let world = World::new().await;
    let steps = queue("q", "Pipeline") + &script("deploy", "fail", "");
    let undo = wait("pause", "10m") + &script("undo", "ok", "");
    world
        .apply(&pipeline(&[stage("shop", &steps, &undo, ALL)]))
        .await;
    let first = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(60)).await;
    let second = world.start("release").await;
    let first = world.finish(&first).await;
    let second = world.finish(&second).await;
    let queued = world.store.list_nodes(&second.id, None).await;
    let queued = queued.expect("nodes");
    let queued = queued.iter().find(|node| node.identifier.as_str() == "q");
    assert!(
        queued.and_then(|node| node.ended_ms) >= first.ended_ms,
        "the second run went on while the first was rolled back"
    );
    world.assert_clean(&first.id).await;
    world.assert_clean(&second.id).await;
}

/// A step group with rollback steps of its own.
fn undone_group(id: &str, nodes: &[String], undo: &str) -> String {
    let undo = undo.lines().map(|line| format!("      {line}\n"));
    group(id, nodes) + "    rollbackSteps:\n" + &undo.collect::<String>()
}

/// Harness's usual form of a canary deployment: what undoes it stands in the groups.
fn canary(action: &str, undo_of_primary: &str) -> String {
    let strategy = format!(
        "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action: {{type: {action}}}\n"
    );
    let shift = undone_group(
        "shift",
        &[script("weights", "ok", "")],
        &wait("unshift", "10s"),
    );
    let canary = undone_group(
        "canary",
        &[script("deploy", "ok", ""), shift],
        &wait("delete", "10s"),
    );
    let undo_primary = beside(&[script("restore", undo_of_primary, ""), wait("tell", "10s")]);
    let primary = undone_group("primary", &[script("roll", "fail", "")], &undo_primary);
    let never = undone_group(
        "never",
        &[script("x", "ok", "")],
        &script("unused", "ok", ""),
    );
    pipeline(&[stage(
        "shop",
        &(canary + &primary + &never),
        &wait("last", "10s"),
        &strategy,
    )])
}

/// What ran after the failure, in order.
async fn undone(world: &World, run: &RunRecord) -> String {
    let nodes = world.store.list_nodes(&run.id, None).await.expect("nodes");
    let mut undone: Vec<_> = nodes
        .iter()
        .filter(|node| node.id.as_str().contains("ollbackSteps."))
        .map(|node| (node.started_ms, node.ended_ms, node.identifier.to_string()))
        .collect();
    undone.sort();
    let names: Vec<String> = undone.into_iter().map(|(_, _, name)| name).collect();
    names.join(" ")
}

#[tokio::test(start_paused = true)]
async fn a_stage_is_rolled_back_group_by_group_the_last_one_first() {
    let mut seen = Vec::new();
    for (action, undo) in [
        ("StageRollback", "ok"),
        ("StageRollback", "fail"),
        ("PipelineRollback", "ok"),
    ] {
        let world = World::new().await;
        world.apply(&canary(action, undo)).await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let order = undone(&world, &run).await;
        let story = world.story(&run).await;
        let head = story.lines().next().unwrap_or_default().to_owned();
        seen.push(format!("{action}, {undo}: {order}\n{head}"));
        world.assert_clean(&run.id).await;
        if undo != "fail" {
            let crashes = world.survives_crashes("release", 5, &story).await;
            assert!(crashes > 10, "only {crashes} crashes");
        }
    }
    insta::assert_snapshot!(seen.join("\n"), @"
    StageRollback, ok: restore tell unshift delete last
    run Failed: Step roll: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
    StageRollback, fail: restore tell unshift delete last
    run Failed: Step roll: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. LEFT BEHIND: rolling back failed. Step restore: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.
    PipelineRollback, ok: restore tell unshift delete last
    run Failed: Step roll: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The run was rolled back: shop.
    ");
}
