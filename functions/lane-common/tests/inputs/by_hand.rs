//! Stages that somebody must start (`runMode` Manual).

use std::time::Duration;

use serde_json::json;
use slipway_engine::abort::abort_run;
use slipway_engine::signal::{Word, say};
use slipway_model::id::{PrincipalId, RunId, StageId};
use slipway_model::status::Status;
use slipway_store::record::RunRecord;
use slipway_world::yaml::{TARGET, deployment, pipeline, says, script, stage, together};
use slipway_world::{World, minutes};

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

/// A stage that asks for a word and for a zone, which has a default, and must be started.
fn asking() -> String {
    let variables = "variables:\n  - {name: word, type: String, value: <+input>.executionInput()}\n  - {name: zone, type: \
                     String, value: '<+input>.default(eu).allowedValues(eu,us).executionInput()'}\n";
    let steps = says("do", "<+stage.variables.word> <+stage.variables.zone>");
    stage("canary", &steps, "", &format!("{variables}{BY_HAND}"))
}

async fn said(world: &World, run: &RunId) -> serde_json::Value {
    let nodes = world.store.list_nodes(run, None).await.expect("nodes");
    let mut nodes = nodes.iter();
    let did = nodes.find(|node| node.identifier.as_str() == "do");
    did.expect("the step").outputs["output"]["outputVariables"]["word"].clone()
}

#[tokio::test(start_paused = true)]
async fn what_a_stage_asks_for_is_given_before_it_is_started() {
    let world = World::new().await;
    world.apply(&pipeline(&[asking()])).await;
    let run = world.start("release").await;
    minutes(&world, 1).await;
    let early = start(&world, &run, "canary").await.expect_err("no inputs");
    let why = format!(
        "stage canary asks for inputs before it can be started: `variables.word` has no value and no default; give them \
         with `slipway input {run} canary`, and then start it"
    );
    assert_eq!(early, why);

    // By the API, under the name of the stage.
    let (api, token) = (world.api().await, world.token("sam").await);
    let project = "accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop";
    let path = format!("/slipway/api/runs/{run}/inputs/canary?{project}");
    let (code, shown) = api.call(&token, "GET", &path, None).await;
    assert_eq!(code, 200, "{shown}");
    let fields = shown["data"]["inputs"].as_array().expect("fields");
    assert_eq!(
        (fields.len(), &fields[0]["field"]),
        (2, &json!("variables.word"))
    );
    for (values, expected) in [
        (
            json!({"variables.word": "go", "variables.zone": "mars"}),
            400,
        ),
        (json!({"variables.word": "go", "variables.zone": "us"}), 200),
        (json!({"variables.word": "again"}), 409),
    ] {
        let body = json!({"inputs": values});
        let (code, answer) = api.call(&token, "POST", &path, Some(&body)).await;
        assert_eq!(code, expected, "{answer}");
    }
    assert_eq!(status(&world, &run, "canary").await, Status::InputWaiting);
    // Longer than a stage waits for its inputs once it has begun does not matter.
    minutes(&world, 100).await;
    let began = world.runs.clock.now_ms();
    start(&world, &run, "canary").await.expect("started");
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success, "{:?}", run.failure);
    assert!(
        run.ended_ms.expect("an end") - began < 60_000,
        "nobody is asked again"
    );
    assert_eq!(said(&world, &run.id).await, "go us");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_stage_whose_inputs_have_defaults_can_be_started_at_once() {
    let world = World::new().await;
    let stage = asking().replace(
        "<+input>.executionInput()",
        "<+input>.default(hello).executionInput()",
    );
    world.apply(&pipeline(&[stage])).await;
    let run = world.start("release").await;
    minutes(&world, 1).await;
    start(&world, &run, "canary").await.expect("started");
    let run = world.finish(&run).await;
    assert_eq!(said(&world, &run.id).await, "hello eu");
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
