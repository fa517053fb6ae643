//! Stages that somebody must start (`runMode` Manual).

use std::time::Duration;

use slipway_engine::abort::abort_run;
use slipway_engine::signal::{Word, say};
use slipway_model::id::{PrincipalId, RunId, StageId};
use slipway_model::status::Status;
use slipway_store::record::RunRecord;
use slipway_world::World;
use slipway_world::yaml::{TARGET, deployment, pipeline, script, stage, together};

const BY_HAND: &str = "runMode: {type: Manual, timeout: 2h}\n";

async fn start(world: &World, run: &RunId, stage: &str) -> Result<(), String> {
    let word = Word::Start {
        stage: StageId::new(stage),
    };
    let said = say(&world.runs, run, &PrincipalId::new("sam"), &word).await;
    said.map_err(|error| error.to_string())
}

fn works(id: &str, more: &str) -> String {
    stage(id, &script("do", "ok", ""), "", more)
}

async fn status(world: &World, run: &RunId, stage: &str) -> Status {
    let run = world.store.get_run(run).await.expect("the run");
    let found = run.stages.iter().find(|known| known.id.as_str() == stage);
    found.map_or(Status::NotStarted, |stage| stage.status)
}

async fn minutes(world: &World, minutes: u64) {
    world
        .runs
        .clock
        .sleep(Duration::from_secs(60 * minutes))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_stage_waits_until_somebody_starts_it_and_its_neighbours_do_not() {
    let world = World::new().await;
    let limit = format!("timeout: 30m\n{BY_HAND}");
    let stages = [
        together(&[works("canary", &limit), works("beside", "")]),
        works("after", ""),
    ];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    // Longer than the stage's own limit, which begins when it does.
    minutes(&world, 119).await;
    assert_eq!(status(&world, &run, "canary").await, Status::InputWaiting);
    assert_eq!(status(&world, &run, "beside").await, Status::Success);
    let wrong = start(&world, &run, "beside").await.expect_err("no");
    assert!(
        wrong.ends_with("has no stage beside with `runMode` Manual; they are canary"),
        "{wrong}"
    );
    start(&world, &run, "canary").await.expect("started");
    let twice = start(&world, &run, "canary").await;
    assert!(twice.is_err(), "{twice:?}");
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    canary Success
    beside Success
    after Success
    after.steps.do #0 Success
    beside.steps.do #0 Success
    canary.steps.do #0 Success
    ");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_waits_holds_nothing_that_others_deploy_to() {
    let world = World::new().await;
    world.apply(TARGET).await;
    let waits = deployment(&works("deploy", BY_HAND));
    world.apply(&pipeline(&[waits])).await;
    let other = pipeline(&[deployment(&works("deploy", ""))]);
    world.apply(&other.replace(": release", ": other")).await;
    let first = world.start("release").await;
    minutes(&world, 10).await;
    let second = world.start("other").await;
    let second = world.finish(&second).await;
    assert_eq!(second.status, Status::Success);
    start(&world, &first, "deploy").await.expect("started");
    let first = world.finish(&first).await;
    assert_eq!(first.status, Status::Success);
    world.assert_clean(&first.id).await;
}

async fn unstarted(strategy: &str) -> (World, RunRecord) {
    let world = World::new().await;
    let strategies = match strategy {
        "" => String::new(),
        action => format!(
            "failureStrategies:\n  - onFailure:\n      errors: [Timeout]\n      action: {action}\n"
        ),
    };
    let stages = [
        works("first", ""),
        works("canary", &format!("{BY_HAND}{strategies}")),
        works("after", ""),
    ];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    world.assert_clean(&run.id).await;
    (world, run)
}

#[tokio::test(start_paused = true)]
async fn where_nobody_starts_it_the_failure_strategies_of_the_stage_count() {
    let actions = [
        "",
        "{type: Ignore}",
        "{type: MarkAsSuccess}",
        "{type: Abort}",
        "{type: StageRollback}",
        "{type: PipelineRollback}",
        "{type: Retry, spec: {retryCount: 2, retryIntervals: [1m], onRetryFailure: {action: {type: Ignore}}}}",
        "{type: ManualIntervention, spec: {timeout: 1h, onTimeout: {action: {type: MarkAsSuccess}}}}",
    ];
    let mut all = String::new();
    for action in actions {
        let (world, run) = unstarted(action).await;
        let took = run.ended_ms.unwrap_or_default() - run.started_ms;
        assert!(
            (7_200_000..7_260_000).contains(&took),
            "{action}: {took} ms"
        );
        all.push_str(&format!("{action}\n{}\n\n", world.story(&run).await));
    }
    insta::assert_snapshot!(all, @"

    run Expired: Nobody started stage canary within 2h.
    first Success
    canary Expired: Nobody started stage canary within 2h.
    after Skipped
    first.steps.do #0 Success

    {type: Ignore}
    run IgnoreFailed
    first Success
    canary IgnoreFailed: Nobody started stage canary within 2h.
    after Success
    after.steps.do #0 Success
    first.steps.do #0 Success

    {type: MarkAsSuccess}
    run Success
    first Success
    canary Success
    after Success
    after.steps.do #0 Success
    first.steps.do #0 Success

    {type: Abort}
    run Aborted: Stage canary: the run was aborted before it began.
    first Success
    canary Aborted: Stage canary: the run was aborted before it began.
    after Aborted: Stage after: the run was aborted before it began.
    first.steps.do #0 Success

    {type: StageRollback}
    run Expired: Nobody started stage canary within 2h.
    first Success
    canary Expired: Nobody started stage canary within 2h.
    after Skipped
    first.steps.do #0 Success

    {type: PipelineRollback}
    run Expired: Nobody started stage canary within 2h.
    first Success
    canary Expired: Nobody started stage canary within 2h.
    after Skipped
    first.steps.do #0 Success

    {type: Retry, spec: {retryCount: 2, retryIntervals: [1m], onRetryFailure: {action: {type: Ignore}}}}
    run IgnoreFailed
    first Success
    canary IgnoreFailed: Nobody started stage canary within 2h.
    after Success
    after.steps.do #0 Success
    first.steps.do #0 Success

    {type: ManualIntervention, spec: {timeout: 1h, onTimeout: {action: {type: MarkAsSuccess}}}}
    run Success
    first Success
    canary Success
    after Success
    after.steps.do #0 Success
    first.steps.do #0 Success
    ");
}

#[tokio::test(start_paused = true)]
async fn an_abort_and_the_time_of_the_run_end_the_wait() {
    let world = World::new().await;
    world.apply(&pipeline(&[works("canary", BY_HAND)])).await;
    let run = world.start("release").await;
    minutes(&world, 10).await;
    let who = PrincipalId::new("sam");
    abort_run(&world.runs, &run, &who).await.expect("aborted");
    let late = start(&world, &run, "canary").await;
    assert!(late.is_err(), "{late:?}");
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Aborted: Stage canary: the run was aborted before it began.
    canary Aborted: Stage canary: the run was aborted before it began.
    ");
    world.assert_clean(&run.id).await;

    let world = World::new().await;
    let short =
        pipeline(&[works("canary", BY_HAND)]).replacen("  stages:", "  timeout: 20m\n  stages:", 1);
    world.apply(&short).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let took = run.ended_ms.unwrap_or_default() - run.started_ms;
    assert!((1_200_000..1_260_000).contains(&took), "{took} ms");
    insta::assert_snapshot!(world.story(&run).await, @"
    run Expired: The time of the run was up before stage canary could begin.
    canary Expired: The time of the run was up before stage canary could begin.
    ");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_starts_it_once() {
    let world = World::new().await;
    world.apply(&pipeline(&[works("canary", BY_HAND)])).await;
    let mut crashes = 0;
    for request in 1.. {
        world.crash.arm(request, request % 2 == 1);
        let run = world.start("release").await;
        for _ in 0..60 {
            world.runs.clock.sleep(Duration::from_secs(5)).await;
            if start(&world, &run, "canary").await.is_ok() {
                break;
            }
        }
        let run = world.finish(&run).await;
        if world.crash.is_armed() {
            break;
        }
        crashes += 1;
        let story = world.story(&run).await;
        assert_eq!(
            story, "run Success\ncanary Success\ncanary.steps.do #0 Success",
            "crash at {request}"
        );
        let took = run.ended_ms.unwrap_or_default() - run.started_ms;
        assert!(
            took < 3_600_000,
            "crash at {request}: it waited for {took} ms"
        );
        world.assert_clean(&run.id).await;
    }
    assert!(crashes > 10, "only {crashes} crashes");
}
