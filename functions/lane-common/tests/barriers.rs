//! Barriers, also beside stages that do not run, on the real machines.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use slipway_model::status::Status;
use slipway_store::record::RunRecord;
use slipway_world::tap::{Invocation, Place, Tap, Verdict};
use slipway_world::yaml::{
    ROLL_BACK, beside, gate, group, meeting, on_failure, pipeline, script, stage, together, wait,
    with_gate,
};
use slipway_world::{Options, World};

/// Holds up one request of a function to the store.
struct Late {
    at: usize,
    requests: AtomicUsize,
}

impl Tap for Late {
    fn request(&self, place: Place, _operation: &str) -> Verdict {
        if place != Place::Store {
            return Verdict::Pass;
        }
        match self.requests.fetch_add(1, Ordering::SeqCst) + 1 == self.at {
            true => Verdict::Stall(Duration::from_secs(20)),
            false => Verdict::Pass,
        }
    }
}

/// `runs` after the failure of `first`, and `skipped` does not: both have a place at the barrier.
fn whole() -> String {
    let gate = gate("gate", "1h");
    let both = [
        stage("runs", &gate, "", "when:\n  pipelineStatus: Failure\n"),
        stage("skipped", &gate, "", ""),
    ];
    let first = stage("first", &script("bad", "fail", ""), "", "");
    with_gate(&pipeline(&[first, together(&both)]))
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_is_skipped_late_opens_the_barrier() {
    let mut late = 0;
    for at in (20..50).step_by(2) {
        let tap = Arc::new(Late {
            at,
            requests: AtomicUsize::new(0),
        });
        let options = Options {
            tap: Some(tap.clone()),
            in_memory: true,
            ..Options::default()
        };
        let world = World::with(options).await;
        world.apply(&whole()).await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let statuses: Vec<_> = run.stages.iter().map(|stage| stage.status).collect();
        let expected = [Status::Failed, Status::Success, Status::Skipped];
        assert_eq!(statuses, expected, "late at request {at}");
        let seconds = (run.ended_ms.expect("an end") - run.started_ms) / 1_000;
        assert!(seconds < 60, "late at request {at}: {seconds} s");
        world.assert_clean(&run.id).await;
        late += usize::from(seconds >= 20);
    }
    assert!(late > 3, "only {late} runs were held up");
}

/// Whoever fails before a barrier fails those who wait there, also where it is not rolled back for it but goes on behind:
/// stages, and step groups of one stage.
#[tokio::test(start_paused = true)]
async fn a_failure_before_the_barrier_fails_the_others_whatever_is_made_of_it() {
    let mark = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        type: MarkAsFailure\n";
    let breaks = [
        script("a", "fail", ""),
        gate("late", "1h"),
        script("after", "ok", ""),
    ];
    let waits = [gate("early", "1h"), script("deploy", "ok", "")];
    let stages = together(&[
        stage("breaks", &breaks.concat(), "", mark),
        stage("waits", &waits.concat(), "", mark),
    ]);
    let groups = beside(&[group("breaks", &breaks), group("waits", &waits)]);
    let mut told = Vec::new();
    for whole in [stages, stage("both", &groups, "", mark)] {
        let world = World::new().await;
        world.apply(&with_gate(&pipeline(&[whole]))).await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        told.push(world.story(&run).await);
        world.assert_clean(&run.id).await;
    }
    insta::assert_snapshot!(told.join("\n\n"), @"
    run Failed: Step a: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    breaks Failed: Step a: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    waits Failed: Step early: Barrier gate cannot be passed: stages.breaks.spec.execution.steps.late is not reached, because something failed before it.
    breaks.steps.a #0 Failed
    breaks.steps.after #0 Skipped
    breaks.steps.late #0 Skipped
    waits.steps.deploy #0 Skipped
    waits.steps.early #0 Failed

    run Failed: Step a: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    both Failed: Step a: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    both.steps.breaks #0 Failed
    both.steps.breaks.steps.a #0 Failed
    both.steps.breaks.steps.after #0 Skipped
    both.steps.breaks.steps.late #0 Skipped
    both.steps.waits #0 Failed
    both.steps.waits.steps.deploy #0 Skipped
    both.steps.waits.steps.early #0 Failed
    both.steps[0] #0 Failed
    ");
}

/// A place that a condition leaves out is not waited for, also beside a failure.
#[tokio::test(start_paused = true)]
async fn a_place_that_a_condition_leaves_out_is_not_waited_for() {
    let out = gate("out", "1h").replacen(
        "    timeout: 1h\n",
        "    timeout: 1h\n    when:\n      stageStatus: All\n      condition: <+pipeline.name> == \"other\"\n",
        1,
    );
    let ignore = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        type: MarkAsFailure\n";
    let both = [
        stage("leaves", &(script("a", "fail", "") + &out), "", ignore),
        stage("waits", &gate("early", "1h"), "", ""),
    ];
    let world = World::new().await;
    world.apply(&with_gate(&pipeline(&[together(&both)]))).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let statuses: Vec<_> = run.stages.iter().map(|stage| stage.status).collect();
    assert_eq!(statuses, [Status::Failed, Status::Success]);
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn stages_meet_at_a_barrier() {
    let world = World::new().await;
    let stages = [
        stage("early", &(gate("a", "1d") + &script("x", "ok", "")), "", ""),
        stage("late", &(wait("w", "3h") + &gate("b", "1d")), "", ""),
        stage(
            "never",
            &gate("c", "1d"),
            "",
            "when:\n  pipelineStatus: Failure\n",
        ),
    ];
    world.apply(&meeting(&stages)).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success, "{:?}", run.failure);
    let hours = (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000;
    assert_eq!(hours, 3, "the first goes on when the second has come");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn who_fails_before_a_barrier_or_at_it_fails_the_others() {
    for steps in [
        wait("w", "1h") + &script("bad", "fail", "") + &gate("b", "1d"),
        gate("b", "2h") + &wait("w", "1d"),
    ] {
        let world = World::new().await;
        let slow = wait("rest", "5h") + &gate("a", "1d");
        let fast = gate("a", "1d");
        let first = if steps.starts_with("- step:\n    name: b") {
            slow
        } else {
            fast
        };
        let stages = [
            stage("one", &first, "", ROLL_BACK),
            stage("two", &steps, "", ROLL_BACK),
        ];
        world.apply(&meeting(&stages)).await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let one = run
            .stages
            .iter()
            .find(|stage| stage.id.as_str() == "one")
            .expect("one");
        let why = one.failure.as_ref().expect("a reason");
        assert!(
            why.message.contains("Barrier gate cannot be passed"),
            "{}",
            why.message
        );
        let hours = (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000;
        assert!(hours <= 5, "nobody waits for the timeout: {hours}");
        world.assert_clean(&run.id).await;
    }
}

/// Found by the simulation (seed 701867): the others heard of it when it was tried again, or never.
#[tokio::test(start_paused = true)]
async fn a_failure_that_nobody_is_asked_about_any_longer_fails_the_others_at_once() {
    let again = "{type: Retry, spec: {retryCount: 1, retryIntervals: [12h], onRetryFailure: {action: {type: StageRollback}}}}";
    let asks = format!(
        "{{type: ManualIntervention, spec: {{timeout: 2h, onTimeout: {{action: {again}}}}}}}"
    );
    let asks: String = on_failure(&asks)
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect();
    let world = World::new().await;
    let stages = [
        stage("one", &gate("a", "1d"), "", ROLL_BACK),
        stage("two", &(gate("b", "1h") + &asks), "", ""),
        stage(
            "three",
            &(wait("rest", "10h") + &gate("c", "1d")),
            "",
            ROLL_BACK,
        ),
    ];
    world.apply(&meeting(&stages)).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let one = run.stages.iter().find(|stage| stage.id.as_str() == "one");
    let ended_ms = one.expect("one").ended_ms.expect("it ended");
    assert_eq!((ended_ms - run.started_ms) / 60_000, 180);
    world.assert_clean(&run.id).await;
}

/// A stage that fails, and waits for others before it undoes anything.
fn undone(id: &str, steps: &str, before: &str, more: &str) -> String {
    let undo = before.to_owned() + &gate("meet", "1h") + &script("undo", "ok", "");
    stage(id, steps, &undo, more)
}

/// Minutes after its start at which the rollback step `undo` of a stage began in a run.
async fn undone_after(world: &World, run: &RunRecord, stage: &str) -> Option<i64> {
    let nodes = world.store.list_nodes(&run.id, None).await.expect("nodes");
    let undo = nodes.iter().find(|node| {
        node.identifier.as_str() == "undo"
            && node.stage.as_str() == stage
            && node.status == Status::Success
    });
    undo.map(|undo| (undo.started_ms - run.started_ms) / 60_000)
}

#[tokio::test(start_paused = true)]
async fn stages_that_are_rolled_back_meet_and_wait_for_no_other() {
    let fails = script("bad", "fail", "");
    let late = wait("pause", "10m");
    let all = on_failure("{type: PipelineRollback}");
    let pipelines = [
        // Both fail, the second one later.
        meeting(&[
            undone("a", &fails, "", ROLL_BACK),
            undone("b", &(late.clone() + &fails), "", ROLL_BACK),
        ]),
        // The second one does not fail: from then on nobody waits for it.
        meeting(&[
            undone("a", &fails, "", ROLL_BACK),
            undone("b", &late, "", ROLL_BACK),
        ]),
        // Both are rolled back with their run, and the second one is slow.
        with_gate(&pipeline(&[
            together(&[
                undone("a", &script("good", "ok", ""), "", ""),
                undone("b", &script("good", "ok", ""), &late, ""),
            ]),
            stage("c", &fails, "", &all),
        ])),
        // The rollback of the second one fails before.
        meeting(&[
            undone("a", &fails, "", ROLL_BACK),
            undone("b", &(late + &fails), &fails, ROLL_BACK),
        ]),
    ];
    let mut told = Vec::new();
    for whole in pipelines {
        let world = World::new().await;
        world.apply(&whole).await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let statuses: Vec<_> = run.stages.iter().map(|stage| stage.status).collect();
        let undone = (
            undone_after(&world, &run, "a").await,
            undone_after(&world, &run, "b").await,
        );
        told.push(format!("{:?} {statuses:?} {undone:?}", run.status));
        world.assert_clean(&run.id).await;
    }
    insta::assert_snapshot!(told.join("\n"), @"
    Failed [Failed, Failed] (Some(10), Some(10))
    Failed [Failed, Success] (Some(10), None)
    Failed [Success, Success, Failed] (Some(10), Some(10))
    Failed [Failed, Failed] (None, None)
    ");
}

/// Counts the invocations of functions, and refuses them where they are so many that there would be no end.
#[derive(Default)]
struct Counts(AtomicUsize);

/// More than any run here may take.
const ENDLESS: usize = 400;

impl Tap for Counts {
    fn request(&self, _place: Place, _operation: &str) -> Verdict {
        Verdict::Pass
    }

    fn invocation(&self, _function: &str) -> Invocation {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0..ENDLESS => Invocation::Once,
            _ => Invocation::Refused("Lambda.AccessDeniedException"),
        }
    }
}

/// Plays a pipeline; how it ended, and how many invocations it took.
async fn counted(whole: &str) -> (Status, usize) {
    let counts = Arc::<Counts>::default();
    let options = Options {
        tap: Some(counts.clone()),
        in_memory: true,
        ..Options::default()
    };
    let world = World::with(options).await;
    world.apply(whole).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    (run.status, counts.0.load(Ordering::SeqCst))
}

/// Found by the simulation (seeds 11881, 20479, 64346).
#[tokio::test(start_paused = true)]
async fn branches_that_wait_to_be_tried_again_tell_each_other_once() {
    let again = on_failure(
        "{type: Retry, spec: {retryCount: 1, retryIntervals: [1h], onRetryFailure: {action: {type: Ignore}}}}",
    );
    let branches: Vec<String> = ["a", "b", "c", "d"]
        .iter()
        .map(|id| script(id, "fail", &again))
        .collect();
    let whole = meeting(&[
        stage("tries", &(beside(&branches) + &gate("x", "1d")), "", ""),
        stage("waits", &gate("y", "1d"), "", ""),
    ]);
    let (status, invocations) = counted(&whole).await;
    assert_eq!(status, Status::IgnoreFailed);
    assert!(invocations < 150, "{invocations} invocations");
}
