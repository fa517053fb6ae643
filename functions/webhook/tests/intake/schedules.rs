//! Schedules and ends of runs.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use slipway_model::status::Status;
use slipway_world::tap::{Invocation, Tap};
use slipway_world::yaml::{pipeline, says, script, stage};
use slipway_world::{Options, World};

use crate::events::Each;
use crate::{history, minutes, only_run, runs, trigger, world};

const HOURLY: &str =
    "type: Scheduled\nspec:\n  type: Cron\n  spec: {type: UNIX, expression: 0 * * * *}\n";

#[tokio::test(start_paused = true)]
async fn a_schedule_starts_one_run_at_each_of_its_times() {
    let world = world().await;
    world.apply(&trigger("hourly", HOURLY, "")).await;
    for _ in 0..59 {
        minutes(&world, 1).await;
        world.take_in().await;
    }
    assert!(runs(&world).await.is_empty());
    minutes(&world, 1).await;
    // Two sweeps at once, and one more.
    let (one, other) = tokio::join!(world.take_in(), world.take_in());
    assert!(one.is_some() && other.is_some());
    world.take_in().await;
    let run = world.finish(&only_run(&world).await).await;
    assert_eq!(run.trigger_type, "SCHEDULER_CRON");
    assert_eq!(run.trigger.expect("a trigger").trigger.as_str(), "hourly");
    for _ in 0..120 {
        minutes(&world, 1).await;
        world.take_in().await;
    }
    assert_eq!(runs(&world).await.len(), 3);
    assert_eq!(history(&world, "hourly").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn f12_a_time_that_was_missed_while_nothing_ran_is_told_and_not_made_up_for() {
    let world = world().await;
    world.apply(&trigger("hourly", HOURLY, "")).await;
    // Late by 25 minutes: it starts.
    minutes(&world, 85).await;
    world.take_in().await;
    assert_eq!(runs(&world).await.len(), 1);
    // The service was away for a day.
    minutes(&world, 24 * 60).await;
    world.take_in().await;
    assert_eq!(runs(&world).await.len(), 1);
    let rows = history(&world, "hourly").await;
    assert!(
        rows[0].message.contains("was missed"),
        "{}",
        rows[0].message
    );
    minutes(&world, 60).await;
    world.take_in().await;
    assert_eq!(runs(&world).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_crash_anywhere_in_a_sweep_starts_one_run() {
    // Most requests read lists in which there is nothing.
    for request in (1..).step_by(5) {
        let mut reached = false;
        for after in [false, true] {
            let world = world().await;
            world.apply(&trigger("hourly", HOURLY, "")).await;
            minutes(&world, 60).await;
            world.crash.arm(request, after);
            world.take_in().await;
            reached |= !world.crash.is_armed();
            world.crash.disarm();
            minutes(&world, 1).await;
            world.take_in().await;
            only_run(&world).await;
            assert_eq!(
                history(&world, "hourly").await.len(),
                1,
                "{request} {after}"
            );
        }
        if !reached {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_pipeline_starts_another_that_waits_for_it() {
    let world = world().await;
    let good = pipeline(&[stage("build", &says("told", "built"), "", "")]);
    world.apply(&good.replace("release", "first")).await;
    let bad = pipeline(&[stage("build", &script("told", "fail", ""), "", "")]);
    world.apply(&bad.replace("release", "broken")).await;
    let on = |event: &str, conditions: &str| {
        format!(
            "type: SystemEvent\nspec:\n  type: Pipeline\n  spec:\n    eventType: {event}\n{conditions}"
        )
    };
    let chosen = "    payloadConditions:\n      - {key: <+trigger.payload.pipelineIdentifier>, operator: Equals, value: first}\n";
    world
        .apply(&trigger("after", &on("PipelineSuccess", chosen), ""))
        .await;
    world
        .apply(&trigger("rescue", &on("PipelineFailure", ""), ""))
        .await;
    // Two pipelines that start each other do so once.
    let back = trigger("back", &on("PipelineSuccess", ""), "")
        .replace("pipelineIdentifier: release", "pipelineIdentifier: first");
    world.apply(&back).await;

    let first = world.start("first").await;
    world.finish(&first).await;
    for _ in 0..6 {
        minutes(&world, 1).await;
        world.take_in().await;
    }
    let mut all = runs(&world).await;
    // Both are of one moment, as no time passes here.
    all.sort_by(|one, other| other.pipeline.cmp(&one.pipeline));
    let ids: Vec<&str> = all.iter().map(|run| run.pipeline.as_str()).collect();
    assert_eq!(ids, ["release", "first"]);
    assert_eq!(all[0].trigger_type, "SYSTEM_EVENT");
    assert_eq!(
        all[0].trigger.as_ref().map(|by| &by.about),
        Some(&[("after".to_owned(), "first".to_owned())].into())
    );

    let broken = world.start("broken").await;
    assert_eq!(world.finish(&broken).await.status, Status::Failed);
    minutes(&world, 1).await;
    let swept = world.take_in().await.expect("an answer");
    assert_eq!(swept["failed"], json!(0));
    assert!(history(&world, "rescue").await[0].run.is_some());

    // A run that a person stopped did not fail.
    let slow = pipeline(&[stage(
        "build",
        &slipway_world::yaml::wait("pause", "1h"),
        "",
        "",
    )]);
    world.apply(&slow.replace("release", "slow")).await;
    let slow = world.start("slow").await;
    let who = slipway_model::id::PrincipalId::new("sam");
    slipway_engine::abort::abort_run(&world.runs, &slow, &who)
        .await
        .expect("aborted");
    assert_eq!(world.finish(&slow).await.status, Status::Aborted);
    minutes(&world, 1).await;
    world.take_in().await;
    assert_eq!(history(&world, "rescue").await.len(), 1);
}

const AFTER: &str =
    "type: SystemEvent\nspec:\n  type: Pipeline\n  spec:\n    eventType: PipelineSuccess\n";

/// A run of `first` that has ended, for which `release` waits.
async fn ended(tap: Option<Arc<dyn Tap>>) -> World {
    let world = World::with(Options {
        in_memory: true,
        tap,
        ..Options::default()
    })
    .await;
    crate::furnish(&world).await;
    let first = pipeline(&[stage("build", &says("told", "built"), "", "")]);
    world.apply(&first.replace("release", "first")).await;
    world.apply(&trigger("after", AFTER, "")).await;
    let first = world.start("first").await;
    assert_eq!(world.finish(&first).await.status, Status::Success);
    world.runs.clock.sleep(Duration::from_secs(1)).await;
    world
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_pipeline_is_heard_at_once() {
    let world = ended(None).await;
    assert_eq!(runs(&world).await.len(), 2, "before any sweep");
    for _ in 0..2 {
        minutes(&world, 1).await;
        world.take_in().await;
    }
    assert_eq!(runs(&world).await.len(), 2);
    assert_eq!(history(&world, "after").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn f6_the_end_of_a_pipeline_that_lambda_tells_twice_or_not_starts_one_run() {
    for (becomes, at_once) in [
        (Invocation::Twice, 2),
        (Invocation::Refused("TooManyRequestsException"), 1),
        (Invocation::Unheard("ServiceException"), 2),
    ] {
        let world = ended(Some(Arc::new(Each(becomes)))).await;
        assert_eq!(runs(&world).await.len(), at_once, "{becomes:?}");
        for _ in 0..2 {
            minutes(&world, 1).await;
            world.take_in().await;
        }
        assert_eq!(runs(&world).await.len(), 2, "{becomes:?}");
        assert_eq!(history(&world, "after").await.len(), 1, "{becomes:?}");
    }
}
