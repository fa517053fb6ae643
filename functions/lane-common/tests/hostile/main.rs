//! Bad input in whole runs, on the real machines; `faults` has the cases of faults by id. `docs/hostile.md` lists both.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

mod faults;

use slipway_engine::abort::abort_run;
use slipway_engine::signal::{Word, say};
use slipway_model::id::{NodeId, PrincipalId, RunId};
use slipway_model::status::Status;
use slipway_store::record::RunRecord;
use slipway_world::tap::{Invocation, Place, Tap, Verdict};
use slipway_world::yaml::{
    LEADS, ROLL_BACK, TARGET, deployment, gate, meeting, pipeline, script, stage, wait,
};
use slipway_world::{Options, World, by_hand, minutes};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

async fn world_with(tap: impl Tap + 'static) -> World {
    let options = Options {
        tap: Some(Arc::new(tap)),
        ..Options::default()
    };
    World::with(options).await
}

/// A pipeline under another name.
fn named(id: &str, yaml: &str) -> String {
    let (from, to) = (
        "name: release\n  identifier: release",
        format!("name: {id}\n  identifier: {id}"),
    );
    yaml.replacen(from, &to, 1)
}

fn ended_after_minutes(run: &RunRecord) -> i64 {
    (run.ended_ms.expect("an end") - run.started_ms) / 60_000
}

fn step(id: &str, kind: &str, timeout: &str, spec: &str) -> String {
    format!(
        "- step:\n    name: {id}\n    identifier: {id}\n    type: {kind}\n    timeout: {timeout}\n    spec: {{{spec}}}\n"
    )
}

#[tokio::test(start_paused = true)]
async fn a_barrier_that_nobody_else_reaches_is_left_at_its_timeout() {
    let world = World::new().await;
    let stages = [
        stage(
            "here",
            &gate("a", "30m"),
            &script("undo", "ok", ""),
            ROLL_BACK,
        ),
        stage("away", &(wait("w", "9h") + &gate("b", "1d")), "", ROLL_BACK),
    ];
    world.apply(&meeting(&stages)).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Failed: Step a: It did not end within its timeout of 30m. The stage was rolled back cleanly.
    here Expired: Step a: It did not end within its timeout of 30m. The stage was rolled back cleanly.
    away Failed: Step b: Barrier gate cannot be passed: stages.here.spec.execution.steps.a failed.
    away.steps.b #0 Failed
    away.steps.w #0 Success
    here.rollbackSteps.undo #0 Success
    here.steps.a #0 Expired
    ");
    assert_eq!(ended_after_minutes(&run), 540);
    world.assert_clean(&run.id).await;
}

/// A crash between the record of a failure and the word to the others at the barrier.
#[tokio::test(start_paused = true)]
async fn a_crash_after_a_failure_at_a_barrier_delays_nobody() {
    let world = World::new().await;
    let here = gate("a", "10m");
    // The rollback is long: the others must not wait for the end of the stage.
    let here = stage("here", &here, &wait("undo", "5h"), ROLL_BACK);
    let there = stage("there", &gate("b", "1d"), "", ROLL_BACK);
    let late = stage("late", &(wait("w", "1h") + &gate("c", "1d")), "", ROLL_BACK);
    world.apply(&meeting(&[here, there, late])).await;
    // The failure comes at the tenth minute: each request from then on, carried out and not heard of.
    for request in 1.. {
        let run = world.start("release").await;
        minutes(&world, 9).await;
        world.crash.arm(request, true);
        minutes(&world, 2).await;
        let crashed = !world.crash.is_armed();
        world.crash.disarm();
        let run = world.finish(&run).await;
        let there = run.stages.iter().find(|stage| stage.id.as_str() == "there");
        let ended = there.and_then(|stage| stage.ended_ms).expect("an end");
        let after = (ended - run.started_ms) / 60_000;
        assert_eq!(after, 10, "crash at request {request}");
        world.assert_clean(&run.id).await;
        if !crashed {
            assert!(request > 20, "only {request} requests");
            break;
        }
    }
}

/// Lambda cannot run a function from its n-th invocation on, for some invocations.
struct Broken {
    function: &'static str,
    from: AtomicUsize,
    error: &'static str,
}

impl Broken {
    /// Nothing is broken until [`Broken::breaks`].
    fn later(function: &'static str, error: &'static str) -> Arc<Self> {
        Arc::new(Self {
            function,
            from: AtomicUsize::new(0),
            error,
        })
    }

    fn breaks(&self, times: usize) {
        self.from.store(times, Ordering::SeqCst);
    }
}

impl Tap for Broken {
    fn request(&self, _: Place, _: &str) -> Verdict {
        Verdict::Pass
    }

    fn invocation(&self, function: &str) -> Invocation {
        let left = self.from.load(Ordering::SeqCst);
        if function != self.function || left == 0 {
            return Invocation::Once;
        }
        self.from.store(left - 1, Ordering::SeqCst);
        Invocation::Refused(self.error)
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_and_an_infrastructure_whose_holder_breaks_go_to_the_next() {
    let queue = step("q", "Queue", "1d", "key: shared, scope: Pipeline");
    let queues = pipeline(&[stage("deploy", &(queue + &wait("w", "1h")), "", "")]);
    let deploys = deployment(&stage(
        "deploy",
        &wait("w", "1h"),
        &wait("undo", "1s"),
        ROLL_BACK,
    ));
    for (yaml, function) in [(queues, "lane"), (pipeline(&[deploys]), "lane-ecs")] {
        // No retry knows this error: the machine of the lane breaks.
        let broken = Broken::later(function, "Runtime.ImportModuleError");
        let options = Options {
            tap: Some(broken.clone()),
            ..Options::default()
        };
        let world = World::with(options).await;
        world.apply(LEADS).await;
        world.apply(TARGET).await;
        world.apply(&yaml).await;
        let first = world.start("release").await;
        minutes(&world, 5).await;
        let second = world.start("release").await;
        minutes(&world, 25).await;
        assert!(!world.holds().await.is_empty(), "{function}: it is held");
        broken.breaks(1);
        let first = world.finish(&first).await;
        assert_eq!(first.status, Status::Errored, "{:?}", first.failure);
        let second = world.finish(&second).await;
        assert_eq!(second.status, Status::Success, "{:?}", second.failure);
        let after = ended_after_minutes(&second);
        assert!(
            after <= 120,
            "{function}: the second waited {after} minutes"
        );
        assert_eq!(world.holds().await, Vec::<String>::new());
        world.assert_clean(&second.id).await;
    }
}

const ASK: &str = "stages.deploy.spec.execution.steps.ask";

fn approval(timeout: &str) -> String {
    let spec = "includePipelineExecutionHistory: true, approvers: {minimumCount: 1, \
                disallowPipelineExecutor: true, userGroups: [leads]}";
    step("ask", "HarnessApproval", timeout, spec)
}

fn vote(who: &str) -> Word {
    Word::Step {
        node: NodeId::new(ASK),
        attempt: 0,
        kind: format!("approval:{who}"),
        says: "{\"verdict\": \"APPROVE\", \"comments\": \"\", \"inputs\": {}}".to_owned(),
    }
}

async fn approves(world: &World, run: &RunId, who: &str) -> Result<(), String> {
    let said = say(&world.runs, run, &PrincipalId::new(who), &vote(who)).await;
    said.map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn an_approval_after_its_expiry_or_twice_by_one_person_is_refused() {
    let world = World::new().await;
    world.apply(LEADS).await;
    let steps = approval("1h") + &script("after", "ok", "");
    let rest = stage(
        "rest",
        &wait("w", "1d"),
        "",
        "when:\n  pipelineStatus: All\n",
    );
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", ""), rest]))
        .await;
    let run = world.start("release").await;
    minutes(&world, 61).await;
    // The run goes on; its approval does not.
    let late = approves(&world, &run, "sam").await.expect_err("too late");
    assert!(
        late.contains("Expired and not waiting for an approval"),
        "{late}"
    );
    let run = world.finish(&run).await;
    assert_eq!(run.stages[0].status, Status::Expired);

    let twice = step(
        "ask",
        "HarnessApproval",
        "1h",
        "includePipelineExecutionHistory: true, approvers: {minimumCount: 2, \
         disallowPipelineExecutor: true, userGroups: [leads]}",
    );
    let twice = pipeline(&[stage("deploy", &twice, "", "")]);
    world.apply(&named("twice", &twice)).await;
    let run = world.start("twice").await;
    minutes(&world, 1).await;
    approves(&world, &run, "sam").await.expect("it waits");
    let again = approves(&world, &run, "sam")
        .await
        .expect_err("sam has spoken");
    assert!(again.contains("has answered"), "{again}");
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Expired, "one person is not two");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_races_with_an_abort_ends_the_run_one_way_or_the_other() {
    let world = World::new().await;
    world.apply(LEADS).await;
    let steps = approval("1d") + &script("after", "ok", "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let who = PrincipalId::new("kim");
    for abort_first in [true, false, true, false] {
        let run = world.start("release").await;
        minutes(&world, 1).await;
        let abort = abort_run(&world.runs, &run, &who);
        let approve = approves(&world, &run, "sam");
        let (aborted, approved) = match abort_first {
            true => tokio::join!(abort, approve),
            false => {
                let (approved, aborted) = tokio::join!(approve, abort);
                (aborted, approved)
            }
        };
        let run = world.finish(&run).await;
        // An abort that was accepted before the run ended is kept, whatever the approval says.
        let kept = aborted.is_ok() && run.status == Status::Aborted;
        let over = approved.is_ok() && run.status == Status::Success;
        assert!(kept || over, "{aborted:?} {approved:?} {:?}", run.status);
        world.assert_clean(&run.id).await;
    }
    // One after the other there is no doubt.
    let run = world.start("release").await;
    minutes(&world, 1).await;
    abort_run(&world.runs, &run, &who).await.expect("it waits");
    let late = approves(&world, &run, "sam").await.expect_err("too late");
    assert!(late.contains("aborted"), "{late}");
    assert_eq!(world.finish(&run).await.status, Status::Aborted);
}

#[tokio::test(start_paused = true)]
async fn loops_of_a_billion_and_endless_retries_are_refused_before_anything_runs() {
    let world = World::new().await;
    let times = "strategy:\n  repeat:\n    times: 1000000000\n";
    let retries = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action: {type: Retry, spec: \
                   {retryCount: 2147483648, retryIntervals: [1s], onRetryFailure: {action: {type: Abort}}}}\n";
    let cases = [
        (
            stage("deploy", &script("a", "ok", times), "", ""),
            "1000000000",
        ),
        (
            stage("deploy", &script("a", "ok", ""), "", times),
            "1000000000",
        ),
        (
            stage("deploy", &script("a", "ok", retries), "", ""),
            "retryCount",
        ),
    ];
    for (number, (stage, says)) in cases.into_iter().enumerate() {
        let id = format!("release{number}");
        let yaml = named(&id, &pipeline(&[stage]));
        // When it is saved, or else when it is started.
        let why = match slipway_model::entity::parse_documents("test.yaml", &yaml) {
            Err(faults) => format!("{faults:?}"),
            Ok(_) => {
                world.apply(&yaml).await;
                let refused = world.try_start(by_hand(&id)).await;
                refused.expect_err("it cannot run").full_text()
            }
        };
        assert!(why.contains(says), "{why}");
    }
    let page = slipway_store::Page::first(9);
    let runs = world
        .store
        .list_runs(&slipway_world::scope(), None, page)
        .await;
    assert_eq!(runs.expect("listed").items, []);
}

#[tokio::test(start_paused = true)]
async fn pipelines_that_chain_in_a_circle_do_not_run_without_end() {
    let world = World::new().await;
    let chain = |id: &str, other: &str| {
        let stage = format!(
            "    - stage:\n        name: go\n        identifier: go\n        type: Pipeline\n        spec:\n          \
             org: default\n          project: shop\n          pipeline: {other}\n"
        );
        named(id, &pipeline(&[stage]))
    };
    world
        .apply(
            &[
                chain("one", "other"),
                chain("other", "one"),
                chain("self", "self"),
            ]
            .join("---\n"),
        )
        .await;
    for id in ["one", "other", "self"] {
        let ended = match world.try_start(by_hand(id)).await {
            Err(refused) => refused.full_text(),
            Ok(run) => {
                let run = world.finish(&run.id).await;
                assert_eq!(run.status, Status::Failed, "{id}");
                run.failure.expect("a reason").message
            }
        };
        let why = ended.contains("one level") || ended.contains("itself");
        assert!(why, "{id}: {ended}");
    }
    let page = slipway_store::Page::first(99);
    let runs = world
        .store
        .list_runs(&slipway_world::scope(), None, page)
        .await;
    let runs = runs.expect("listed").items;
    assert!(runs.len() <= 6, "{} runs", runs.len());
}
