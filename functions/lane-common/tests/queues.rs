//! Runs that take turns: in queues, and at what is deployed to.

use slipway_engine::line;
use slipway_model::id::{EntityId, PrincipalId, RunId};
use slipway_model::status::Status;
use slipway_store::Page;
use slipway_world::yaml::{pipeline, queue, stage, together, wait};
use slipway_world::{World, minutes};

#[tokio::test(start_paused = true)]
async fn a_stage_does_not_wait_for_what_its_own_run_holds() {
    let world = World::new().await;
    let stages = [
        stage("one", &queue("q", "Pipeline"), "", ""),
        stage("two", &queue("again", "Stage"), "", ""),
    ];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success, "{:?}", run.failure);
    assert_eq!(run.ended_ms, Some(run.started_ms));
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn runs_take_turns_in_a_queue_and_nobody_who_dies_keeps_it() {
    for (scope, most) in [("Stage", 4), ("Pipeline", 5)] {
        let world = World::new().await;
        let first = stage("deploy", &(queue("q", scope) + &wait("w", "1h")), "", "");
        let rest = stage("after", &wait("rest", "1h"), "", "");
        world.apply(&pipeline(&[first, rest])).await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(world.start("release").await);
            minutes(&world, 1).await;
        }
        // The second is stopped while it holds the queue.
        minutes(&world, if scope == "Stage" { 75 } else { 150 }).await;
        let who = PrincipalId::new("sam");
        slipway_engine::abort::abort_run(&world.runs, &ids[1], &who)
            .await
            .expect("aborted");
        let mut ended = Vec::new();
        for id in &ids {
            let run = world.finish(id).await;
            ended.push((
                run.status,
                (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000,
            ));
        }
        let statuses: Vec<_> = ended.iter().map(|(status, _)| *status).collect();
        assert_eq!(
            statuses,
            [Status::Success, Status::Aborted, Status::Success],
            "{scope}"
        );
        assert_eq!(ended[0].1, 2, "{scope}: the first waits for nobody");
        assert!(
            ended[2].1 < most,
            "{scope}: the third goes on when the second is stopped: {ended:?}"
        );
        world.assert_clean(&ids[2]).await;
    }
}

/// A stage that runs another pipeline.
fn chained(id: &str, pipeline: &str) -> String {
    format!(
        "    - stage:\n        name: {id}\n        identifier: {id}\n        type: Pipeline\n        spec:\n          \
         org: default\n          project: shop\n          pipeline: {pipeline}\n"
    )
}

/// A pipeline of one stage that takes the key, and works for an hour.
fn taking(pipeline_id: &str, scope: &str) -> String {
    let steps = queue("q", scope) + &wait("work", "1h");
    pipeline(&[stage("deploy", &steps, "", "")]).replace("release", pipeline_id)
}

/// How long runs took, in minutes.
async fn minutes_of(world: &World, runs: &[RunId]) -> Vec<i64> {
    let mut took = Vec::new();
    for run in runs {
        let run = world.finish(run).await;
        assert_eq!(run.status, Status::Success, "{:?}", run.failure);
        let ended = run.ended_ms.unwrap_or_default();
        took.push((ended - run.started_ms + 30_000) / 60_000);
    }
    for run in runs {
        world.assert_clean(run).await;
    }
    assert_eq!(world.holds().await, [""; 0], "nothing is left behind");
    took
}

#[tokio::test(start_paused = true)]
async fn a_run_takes_over_what_its_stage_holds_and_its_other_stages_have_it_then() {
    let world = World::new().await;
    let first =
        queue("q", "Stage") + &wait("one", "1h") + &queue("all", "Pipeline") + &wait("two", "1h");
    // It waits behind a stranger for the other stage, until that holds the key for both.
    let beside = wait("late", "10m") + &queue("own", "Stage");
    let stages = [
        stage("first", &first, "", ""),
        stage("beside", &beside, "", ""),
    ];
    let rest = stage("rest", &wait("three", "1h"), "", "");
    world.apply(&pipeline(&[together(&stages), rest])).await;
    world.apply(&taking("stranger", "Stage")).await;
    let run = world.start("release").await;
    minutes(&world, 5).await;
    let stranger = world.start("stranger").await;
    minutes(&world, 70).await;
    let nodes = world.store.list_nodes(&run, None).await.expect("nodes");
    let own = nodes.iter().find(|node| node.identifier.as_str() == "own");
    assert_eq!(own.expect("begun").status, Status::Success);
    // The stranger waits to the end of the run: for 175 minutes.
    assert_eq!(minutes_of(&world, &[run, stranger]).await, [180, 235]);
}

#[tokio::test(start_paused = true)]
async fn what_a_run_holds_its_children_have_one_after_the_other() {
    for scope in ["Stage", "Pipeline"] {
        let world = World::new().await;
        world.apply(&taking("child", scope)).await;
        let first = stage("first", &queue("q", "Pipeline"), "", "");
        let stages = [chained("one", "child"), chained("other", "child")];
        world.apply(&pipeline(&[first, together(&stages)])).await;
        let run = world.start("release").await;
        minutes(&world, 5).await;
        let stranger = world.start("child").await;
        minutes(&world, 1).await;
        assert_eq!(
            minutes_of(&world, &[run, stranger]).await,
            [120, 175],
            "{scope}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_leaves_no_child_waiting_for_its_parent() {
    let world = World::new().await;
    world.apply(&taking("child", "Stage")).await;
    let steps = queue("q", "Stage") + &queue("all", "Pipeline");
    let first = stage("first", &steps, "", "");
    world
        .apply(&pipeline(&[first, chained("one", "child")]))
        .await;
    let mut crashes = 0;
    for request in (1..).step_by(4) {
        world.crash.arm(request, request % 8 == 1);
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        if world.crash.is_armed() {
            break;
        }
        crashes += 1;
        let took = (run.ended_ms.unwrap_or_default() - run.started_ms) / 60_000;
        assert!(took <= 61, "crash at request {request}: {took} minutes");
        assert_eq!(world.holds().await, [""; 0], "crash at request {request}");
    }
    assert!(crashes > 15, "only {crashes} crashes");
}

#[tokio::test(start_paused = true)]
async fn who_is_told_of_a_queue_does_not_wait_for_the_run_around_it() {
    let world = World::new().await;
    world.apply(&taking("child", "Stage")).await;
    let first = stage("first", &queue("q", "Pipeline"), "", "");
    let stages = [chained("one", "child"), chained("other", "child")];
    world.apply(&pipeline(&[first, together(&stages)])).await;
    let run = world.start("release").await;
    minutes(&world, 5).await;
    let scope = slipway_world::scope();
    let child = EntityId::new("child");
    let found = world.store.list_runs(&scope, Some(&child), Page::first(10));
    let children = found.await.expect("the runs").items;
    let mut told = Vec::new();
    for child in &children {
        let (record, plan) = world.runs.load(&child.id).await.expect("planned");
        let nodes = world
            .store
            .list_nodes(&record.id, None)
            .await
            .expect("nodes");
        let step = nodes.iter().find(|node| node.node_type == "Queue");
        let line = line::of_step(&world.runs, &plan, &record.id, step.expect("begun")).await;
        let ahead = line.expect("read").map(|line| line.ahead);
        told.extend(ahead.into_iter().flatten().map(|holder| holder.run));
    }
    assert_eq!(told.len(), 1, "one waits, for the other alone: {told:?}");
    assert_ne!(told[0], run);
    assert_eq!(minutes_of(&world, &[run]).await, [120]);
}
