//! Post-deployment rollback, on the real machines: of stages whose work is scripts, and of a real deployment.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "what a test needs and lacks fails it"
)]

mod again;
mod machines;
mod shop;

use std::time::Duration;

use slipway_engine::abort::abort_run;
use slipway_engine::error::RunError;
use slipway_engine::undo::{UndoRun, Which};
use slipway_engine::unstarted::resume_unstarted;
use slipway_model::id::{EntityId, PrincipalId, RunId};
use slipway_model::status::Status;
use slipway_store::Page;
use slipway_store::record::{EntityRecord, RunRecord};
use slipway_world::yaml::{
    ROLL_BACK, TARGET, deployment, pipeline, says, script, stage, together, wait,
};
use slipway_world::{Options, World, scope};

/// A stage that deploys by a script; its rollback takes a while.
fn deploys(id: &str, undo: &str) -> String {
    let undo = wait("pause", "10s") + &script("undo", undo, "");
    deployment(&stage(id, &script("deploy", "ok", ""), &undo, ROLL_BACK))
}

/// `a`, then `b` beside `c`, then `note`, which has nothing to roll back, and `d`, which is skipped.
fn release(undo_of_a: &str) -> String {
    let never = "when:\n  pipelineStatus: Failure\n";
    pipeline(&[
        deploys("a", undo_of_a),
        together(&[deploys("b", "ok"), deploys("c", "ok")]),
        stage("note", &script("x", "ok", ""), "", ""),
        deployment(&stage(
            "d",
            &script("x", "ok", ""),
            &script("undo", "ok", ""),
            never,
        )),
    ])
}

async fn world() -> World {
    let options = Options {
        in_memory: true,
        ..Options::default()
    };
    let world = World::with(options).await;
    world.apply(TARGET).await;
    world
}

/// A world with a run of a pipeline that has ended.
async fn ran(pipeline: &str) -> (World, RunRecord) {
    let world = world().await;
    world.apply(pipeline).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    (world, run)
}

fn undo(run: &RunId) -> UndoRun {
    UndoRun {
        run: run.clone(),
        stages: Which::All,
        principal: PrincipalId::new("sam"),
        notes: String::new(),
    }
}

fn named(run: &RunId, stages: &[&str]) -> UndoRun {
    UndoRun {
        stages: Which::Named(stages.iter().map(|name| (*name).to_owned()).collect()),
        ..undo(run)
    }
}

/// Why something is refused, with `R` for a run.
fn refusal<T>(outcome: Result<T, RunError>, run: &RunId) -> String {
    match outcome {
        Ok(_) => panic!("this is to be refused"),
        Err(error) => error.full_text().replace(run.as_str(), "R"),
    }
}

/// How a rollback came out: the run, its stages, and what it did itself.
async fn told(world: &World, run: &RunRecord) -> String {
    let story = world.story(run).await;
    let mut lines = vec![story.lines().next().unwrap_or_default().to_owned()];
    for stage in &run.stages {
        if let Some(undo) = &stage.undo {
            lines.push(format!("{} {:?}", stage.id, undo.status));
        }
    }
    let own = story
        .lines()
        .filter(|line| line.contains(".rollbackSteps."));
    lines.extend(own.map(str::to_owned));
    lines.join("\n")
}

async fn order(world: &World, run: &RunRecord) -> Vec<String> {
    let nodes = world.store.list_nodes(&run.id, None).await.expect("nodes");
    let undone = nodes
        .iter()
        .filter(|node| node.identifier.as_str() == "undo");
    let mut undone: Vec<_> = undone
        .map(|node| (node.started_ms, node.stage.to_string()))
        .collect();
    undone.sort();
    undone.into_iter().map(|(_, stage)| stage).collect()
}

#[tokio::test(start_paused = true)]
async fn every_stage_is_rolled_back_the_last_one_first() {
    let (world, first) = ran(&release("ok")).await;
    let run = world.undo(undo(&first.id)).await.expect("it succeeded");
    let run = world.finish(&run.id).await;
    insta::assert_snapshot!(told(&world, &run).await, @"
    run Success
    a Success
    b Success
    c Success
    a.rollbackSteps.pause #0 Success
    a.rollbackSteps.undo #0 Success
    b.rollbackSteps.pause #0 Success
    b.rollbackSteps.undo #0 Success
    c.rollbackSteps.pause #0 Success
    c.rollbackSteps.undo #0 Success
    ");
    assert_eq!(order(&world, &run).await.last().expect("a"), "a");
    let path = world.path("pipeline", run.id.as_str()).await;
    insta::assert_snapshot!(path, @"Plan Stages Finish RollBack Stages Group Line Stage Stage Group Line Stage Finish Succeeded");
    // Nothing was deployed again, and the run that is rolled back is as it was.
    let own = |task: &&String| task.starts_with(run.id.as_str());
    let deeds = world.deeds.list();
    let deeds: Vec<_> = deeds.iter().filter(own).collect();
    assert_eq!(deeds.len(), 3, "{deeds:?}");
    let same = world.store.get_run(&first.id).await.expect("the run");
    assert_eq!(same, first);
    world.assert_clean(&run.id).await;
    assert_eq!(world.holds().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn rollback_steps_read_what_the_run_did() {
    let tag = script("deploy", "TAG=v2", "")
        + "      outputVariables:\n        - name: TAG\n          type: String\n          value: TAG\n";
    let reads = "when:\n  stageStatus: All\n  condition: \
                 <+pipeline.executionMode> == \"POST_EXECUTION_ROLLBACK\" && \
                 <+pipeline.stages.a.spec.execution.steps.deploy.output.outputVariables.TAG> == \"v2\" && \
                 <+execution.steps.deploy.status> == \"SUCCEEDED\"\n";
    let never = "when:\n  stageStatus: All\n  condition: <+pipeline.executionMode> == \"NORMAL\"\n";
    let rollback = script("undo", "ok", reads) + &script("not", "fail", never);
    let one = deployment(&stage("a", &tag, &rollback, ""));
    let (world, first) = ran(&pipeline(&[one])).await;
    // The pipeline may have changed by now: what counts is what ran.
    let id = EntityId::new("release");
    let place = scope();
    let stored = world.store.find_entity(&place, "pipeline", None, &id);
    let stored = stored.await.expect("read").expect("the pipeline");
    let changed = EntityRecord {
        yaml: pipeline(&[deploys("other", "fail")]),
        ..stored.clone()
    };
    let put = world.store.put_entity(&changed, Some(stored.version)).await;
    put.expect("changed");
    let run = world.undo(undo(&first.id)).await.expect("it succeeded");
    let run = world.finish(&run.id).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    a Success
    a.rollbackSteps.not #0 Skipped
    a.rollbackSteps.undo #0 Success
    a.steps.deploy #0 Success
    ");
}

#[tokio::test(start_paused = true)]
async fn stages_are_rolled_back_by_name_and_each_once() {
    let (world, first) = ran(&release("ok")).await;
    let one = world.undo(named(&first.id, &["b"])).await.expect("b");
    // While that runs, others wait.
    let why = refusal(world.undo(undo(&first.id)).await, &first.id);
    assert!(
        why.contains(&format!(
            "run {} rolls stages of run R back already",
            one.id
        )),
        "{why}"
    );
    let one = world.finish(&one.id).await;
    assert_eq!(order(&world, &one).await, ["b"]);
    let rest = world.undo(undo(&first.id)).await.expect("the others");
    let rest = world.finish(&rest.id).await;
    assert_eq!(order(&world, &rest).await, ["c", "a"]);
    for request in [undo(&first.id), named(&first.id, &["a", "c"])] {
        let same = world.undo(request).await.expect("all of it is done");
        assert_eq!(same.id, rest.id);
    }
    let same = world.undo(named(&first.id, &["b"])).await.expect("done");
    assert_eq!(same.id, one.id);
    world.assert_clean(&rest.id).await;
}

#[tokio::test(start_paused = true)]
async fn asked_twice_it_is_one_run() {
    let (world, first) = ran(&release("ok")).await;
    let both = tokio::join!(world.undo(undo(&first.id)), world.undo(undo(&first.id)));
    let ids = [both.0.expect("one").id, both.1.expect("other").id];
    assert_eq!(ids[0], ids[1]);
    let run = world.finish(&ids[0]).await;
    assert_eq!(run.status, Status::Success);
    let again = world.undo(undo(&first.id)).await.expect("it is done");
    assert_eq!(again.id, run.id);
    let all = world.store.list_runs(&scope(), None, Page::first(10)).await;
    assert_eq!(all.expect("listed").items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_rolled_back_is_refused_with_what_to_do() {
    let (world, first) = ran(&release("ok")).await;
    let why = refusal(world.undo(named(&first.id, &["e"])).await, &first.id);
    insta::assert_snapshot!(why, @"run R has no stage `e`; it has a, b, c, d, note");
    let why = refusal(world.undo(named(&first.id, &["note"])).await, &first.id);
    insta::assert_snapshot!(why, @"stage `note` of run R cannot be rolled back: it has no rollback steps");
    let why = refusal(world.undo(named(&first.id, &["d"])).await, &first.id);
    insta::assert_snapshot!(why, @"stage `d` of run R cannot be rolled back: it ran no steps");
    let done = world.undo(undo(&first.id)).await.expect("it succeeded").id;
    world.finish(&done).await;
    let why = refusal(world.undo(undo(&done)).await, &first.id);
    insta::assert_snapshot!(why.replace(done.as_str(), "U"), @"run U is itself the rollback of run R: run the pipeline again to deploy that version");
    // 30 days later.
    let (world, first) = ran(&release("ok")).await;
    world
        .runs
        .clock
        .sleep(Duration::from_secs(31 * 86_400))
        .await;
    insta::assert_snapshot!(refusal(world.undo(undo(&first.id)).await, &first.id), @"run R cannot be rolled back any more: it began more than 30 days ago; deploy the version that you want");
    let all = world.store.list_runs(&scope(), None, Page::first(10)).await;
    assert_eq!(all.expect("listed").items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn only_what_succeeded_and_deployed_is_rolled_back() {
    let undoes = script("undo", "ok", "");
    let fails = deployment(&stage("a", &script("x", "fail", ""), &undoes, ROLL_BACK));
    let ignored = ROLL_BACK.replace("StageRollback", "Ignore");
    let ignores = deployment(&stage("a", &script("x", "fail", ""), &undoes, &ignored));
    let mut told = Vec::new();
    for stages in [
        [fails],
        [ignores],
        [stage("a", &script("x", "ok", ""), &undoes, "")],
        [deployment(&stage("a", &script("x", "ok", ""), "", ""))],
    ] {
        let (world, run) = ran(&pipeline(&stages)).await;
        told.push(refusal(world.undo(undo(&run.id)).await, &run.id));
    }
    let world = world().await;
    let slow = deployment(&stage("a", &wait("pause", "3h"), &undoes, ""));
    world.apply(&pipeline(&[slow])).await;
    let run = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(60)).await;
    told.push(refusal(world.undo(undo(&run)).await, &run));
    told.push(refusal(world.undo(undo(&RunId::new("none"))).await, &run));
    insta::assert_snapshot!(told.join("\n"), @"
    run R ended Failed, and only runs that succeeded can be rolled back: its failure strategies have decided what was rolled back
    run R succeeded only because failures were ignored, and such a run cannot be rolled back: deploy the version that you want
    run R has nothing to roll back: no Deployment stage of it ran that has rollback steps
    run R has nothing to roll back: no Deployment stage of it ran that has rollback steps
    run R has not ended (Running): wait for its end, or abort it
    cannot read run none: run none does not exist
    ");
}

#[tokio::test(start_paused = true)]
async fn an_abort_stops_it_and_what_is_left_can_be_asked_for() {
    let (world, first) = ran(&release("ok")).await;
    let run = world.undo(undo(&first.id)).await.expect("it succeeded").id;
    world.runs.clock.sleep(Duration::from_secs(5)).await;
    let who = PrincipalId::new("sam");
    abort_run(&world.runs, &run, &who).await.expect("aborted");
    let run = world.finish(&run).await;
    insta::assert_snapshot!(told(&world, &run).await, @"
    run Aborted: Stage c could not be rolled back. LEFT BEHIND: rolling back failed. Step pause: It was stopped: the run was aborted by sam. Nothing more is tried: look at what runs there, put it right, then run the pipeline again. Stage b was not rolled back: the run was aborted. Stage a was not rolled back: the run was aborted.
    a Aborted
    b Aborted
    c Aborted
    c.rollbackSteps.pause #0 Aborted
    ");
    world.assert_clean(&run.id).await;
    assert_eq!(world.holds().await, Vec::<String>::new());

    let again = world.undo(undo(&first.id)).await.expect("it was aborted");
    assert_ne!(again.id, run.id);
    let again = world.finish(&again.id).await;
    insta::assert_snapshot!(told(&world, &again).await, @"
    run Success
    a Success
    b Success
    c Success
    a.rollbackSteps.pause #0 Success
    a.rollbackSteps.undo #0 Success
    b.rollbackSteps.pause #0 Success
    b.rollbackSteps.undo #0 Success
    c.rollbackSteps.pause #0 Success
    c.rollbackSteps.undo #0 Success
    ");
}

#[tokio::test(start_paused = true)]
async fn a_rollback_that_fails_says_what_is_left_and_is_tried_again() {
    // It fails in the runs before the fourth task of the delegate after the deployments.
    let (world, first) = ran(&release("fail")).await;
    let run = world.undo(undo(&first.id)).await.expect("it succeeded");
    let run = world.finish(&run.id).await;
    insta::assert_snapshot!(told(&world, &run).await, @"
    run Failed: Stage a could not be rolled back. LEFT BEHIND: rolling back failed. Step undo: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.
    a Failed
    b Success
    c Success
    a.rollbackSteps.pause #0 Success
    a.rollbackSteps.undo #0 Failed
    b.rollbackSteps.pause #0 Success
    b.rollbackSteps.undo #0 Success
    c.rollbackSteps.pause #0 Success
    c.rollbackSteps.undo #0 Success
    ");
    let again = world.undo(undo(&first.id)).await.expect("it failed");
    let again = world.finish(&again.id).await;
    // What was rolled back stays so: only `a` is left.
    insta::assert_snapshot!(told(&world, &again).await, @"
    run Failed: Stage a could not be rolled back. LEFT BEHIND: rolling back failed. Step undo: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.
    a Failed
    a.rollbackSteps.pause #0 Success
    a.rollbackSteps.undo #0 Failed
    ");
    assert_ne!(again.id, run.id);
    world.assert_clean(&again.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_of_asking_leaves_a_whole_run_or_none() {
    let (world, mut first) = ran(&release("ok")).await;
    let mut crashes = 0;
    for request in 1.. {
        world.crash.arm(request, request % 2 == 1);
        let answer = world.undo_in_danger(undo(&first.id)).await;
        let died = answer.is_none();
        world.crash.disarm();
        crashes += usize::from(died);
        // What was accepted is started by the next sweep; what was not is asked for again.
        resume_unstarted(&world.runs, &scope())
            .await
            .expect("swept");
        let run = world.undo(undo(&first.id)).await.expect("it succeeded");
        let run = world.finish(&run.id).await;
        assert_eq!(run.status, Status::Success, "request {request}");
        assert_eq!(order(&world, &run).await.len(), 3, "request {request}");
        let copied = world.store.list_nodes(&run.id, None).await.expect("nodes");
        assert_eq!(
            copied.len(),
            10,
            "request {request}: {}",
            world.story(&run).await
        );
        world.assert_clean(&run.id).await;
        if !died {
            break;
        }
        let next = world.start("release").await;
        first = world.finish(&next).await;
    }
    assert!(crashes > 8, "only {crashes} crashes");
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_of_the_rollback_changes_nothing() {
    let (world, first) = ran(&release("ok")).await;
    let run = world.undo(undo(&first.id)).await.expect("it succeeded");
    let run = world.finish(&run.id).await;
    let expected = world.story(&run).await;
    let mut crashes = 0;
    for request in (1..).step_by(13) {
        let first = world.start("release").await;
        let first = world.finish(&first).await;
        world.crash.arm(request, crashes % 2 == 0);
        let run = world.undo(undo(&first.id)).await.expect("it succeeded");
        let run = world.finish(&run.id).await;
        if world.crash.is_armed() {
            world.crash.disarm();
            break;
        }
        crashes += 1;
        assert_eq!(
            world.story(&run).await,
            expected,
            "crash at request {request}"
        );
        world.assert_clean(&run.id).await;
        assert_eq!(world.holds().await, Vec::<String>::new());
    }
    assert!(crashes > 4, "only {crashes} crashes");
}
