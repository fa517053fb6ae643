//! Results of delegates that are read after the time of their step is up.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

use std::time::Duration;

use serde_json::json;
use slipway_engine::abort::task_id;
use slipway_model::id::NodeId;
use slipway_model::status::Status;
use slipway_store::record::RunRecord;
use slipway_world::World;
use slipway_world::yaml::{ROLL_BACK, group, pipeline, script, stage};

/// A run whose delegate reports after so many seconds, and tells Step Functions nothing of it: the machine looks when
/// it has heard nothing for 39 seconds. The step has 30.
async fn reported_after(seconds: u64, exit: i32) -> (World, RunRecord) {
    let world = World::new().await;
    let steps = script("a", "vanish", "").replace("timeout: 10m", "timeout: 30s");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(seconds)).await;
    let node = NodeId::new("stages.deploy.spec.execution.steps.a");
    let status = if exit == 0 { "SUCCESS" } else { "FAILURE" };
    let result = json!({"status": status, "exitCode": exit});
    let task = task_id(&run, &node, 0);
    let stored = world.store.finish_delegate_task(&task, &result).await;
    stored.expect("the first result");
    let run = world.finish(&run).await;
    (world, run)
}

#[tokio::test(start_paused = true)]
async fn what_was_reported_in_time_counts_whenever_it_is_read() {
    for (seconds, exit, expected) in [
        (20, 0, Status::Success),
        (20, 1, Status::Failed),
        (35, 0, Status::Expired),
        (35, 1, Status::Expired),
    ] {
        let (world, run) = reported_after(seconds, exit).await;
        assert_eq!(run.status, expected, "{}", world.story(&run).await);
        world.assert_clean(&run.id).await;
    }
}

/// Nothing goes on beside a rollback: the delegate is told when the time of what is around its step is up.
#[tokio::test(start_paused = true)]
async fn a_script_ends_with_the_time_of_its_group_its_stage_or_its_run() {
    let hangs = script("a", "hang", "");
    let group = group("g", std::slice::from_ref(&hangs)) + "    timeout: 40s\n";
    let of_stage = format!("timeout: 40s\n{ROLL_BACK}");
    let undo = script("undo", "ok", "");
    for (at, steps, stage_lines, run_lines) in [
        ("group", &group, ROLL_BACK, ""),
        ("stage", &hangs, &*of_stage, ""),
        ("run", &hangs, ROLL_BACK, "  timeout: 40s\n"),
        (
            "step",
            &hangs.replace("timeout: 10m", "timeout: 40s"),
            ROLL_BACK,
            "",
        ),
    ] {
        let world = World::new().await;
        let whole = pipeline(&[stage("deploy", steps, &undo, stage_lines)]);
        let whole = whole.replacen("  stages:", &format!("{run_lines}  stages:"), 1);
        world.apply(&whole).await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let seconds = (run.ended_ms.expect("ended") - run.started_ms) / 1_000;
        assert!((40..=42).contains(&seconds), "{at}: {seconds} s");
        assert!(!run.status.is_good(), "{at}");
        world.assert_clean(&run.id).await;
    }
}
