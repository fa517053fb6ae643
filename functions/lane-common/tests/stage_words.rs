//! What people say about one stage of a run, over the REST API and on the real machines: abort it, mark it as failed, let
//! it expire, roll it back; whatever it waits for.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

use std::time::Duration;

use serde_json::Value;
use slipway_model::id::RunId;
use slipway_model::status::Status;
use slipway_world::yaml::{
    LEADS, ROLL_BACK, TARGET, beside, deployment, gate, group, meeting, on_failure, pipeline,
    queue, script, stage, together, wait,
};
use slipway_world::{Api, World, minutes};

const INTERRUPT: &str = "/pipeline/api/pipeline/execute/interrupt";

const PROJECT: &str = "accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop";

/// Somebody who uses the API.
struct Sam<'w> {
    world: &'w World,
    api: Api,
    token: String,
}

impl<'w> Sam<'w> {
    async fn new(world: &'w World) -> Self {
        let (api, token) = (world.api().await, world.token("sam").await);
        Self { world, api, token }
    }

    /// Status and message, or type, of the answer to an interrupt; `node` is empty for the run.
    async fn says(&self, run: &RunId, node: &str, kind: &str) -> (u16, String) {
        let node = match node {
            "" => String::new(),
            node => format!("/{node}"),
        };
        let path = format!("{INTERRUPT}/{run}{node}?{PROJECT}&interruptType={kind}");
        let (status, answer) = self.api.call(&self.token, "PUT", &path, None).await;
        let told = answer["data"]["type"].as_str();
        let told = told.or_else(|| answer["message"].as_str());
        (status, told.unwrap_or_default().to_owned())
    }

    /// Says what is accepted.
    async fn interrupts(&self, run: &RunId, node: &str, kind: &str) {
        let (status, told) = self.says(run, node, kind).await;
        assert_eq!(status, 200, "{told}");
    }

    /// The nodes of a run that wait for somebody, with whom.
    async fn waits(&self, run: &RunId) -> Vec<String> {
        let path = format!(
            "/pipeline/api/pipelines/execution/v2/{run}?{PROJECT}&renderFullBottomGraph=true"
        );
        let (_, answer) = self.api.call(&self.token, "GET", &path, None).await;
        let nodes = answer["data"]["executionGraph"]["nodeMap"].as_object();
        let nodes = nodes.expect("a graph").values();
        let told = nodes.flat_map(|node| {
            let waits = node["waitsFor"].as_array().into_iter().flatten();
            waits.map(|wait| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let (node, kind) = (text(&node["identifier"]), text(&wait["type"]));
                format!("{node}: {kind}: {}", text(&wait["message"]))
            })
        });
        told.collect()
    }

    async fn end(&self, run: &RunId) -> String {
        let run = self.world.finish(run).await;
        self.world.assert_clean(&run.id).await;
        self.world.story(&run).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_aborted_stage_stops_and_those_after_it_do_not_begin() {
    let world = World::new().await;
    let sam = Sam::new(&world).await;
    let undo = script("undo", "ok", "");
    let inner = beside(&[wait("w", "3h"), script("s", "vanish", "")]);
    let stages = [
        together(&[
            stage("one", &group("g", &[inner]), &undo, ROLL_BACK),
            stage("two", &wait("short", "30m"), "", ""),
        ]),
        stage(
            "three",
            &script("last", "ok", ""),
            "",
            "when:\n  pipelineStatus: All\n",
        ),
    ];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    // The delegate is not missed yet.
    world.runs.clock.sleep(Duration::from_secs(20)).await;

    let early = sam.says(&run, "stages.three", "AbortAll").await;
    assert_eq!(early.0, 409, "{}", early.1);
    assert!(early.1.contains("stage three has not begun"), "{}", early.1);
    let unknown = sam.says(&run, "stages.four", "AbortAll").await;
    assert_eq!(unknown.0, 404, "{}", unknown.1);
    // Twice is as good as once.
    sam.interrupts(&run, "stages.one", "AbortAll").await;
    sam.interrupts(&run, "one", "Abort").await;
    minutes(&world, 1).await;
    let record = world.store.get_run(&run).await.expect("the run");
    let one = record
        .stages
        .iter()
        .find(|stage| stage.id.as_str() == "one");
    assert_eq!(one.map(|stage| stage.status), Some(Status::Aborted));
    let late = sam.says(&run, "stages.one", "AbortAll").await;
    assert!(
        late.1.contains("stage one has ended: Aborted"),
        "{}",
        late.1
    );

    insta::assert_snapshot!(sam.end(&run).await, @"
    run Aborted: Step w: It was stopped: its stage was aborted by sam.
    one Aborted: Step w: It was stopped: its stage was aborted by sam.
    two Success
    three Aborted: Stage three: stage one was aborted by sam before it.
    one.steps.g #0 Aborted
    one.steps.g.steps.s #0 Aborted
    one.steps.g.steps.w #0 Aborted
    one.steps.g.steps[0] #0 Aborted
    two.steps.short #0 Success
    ");
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_is_marked_as_failed_is_rolled_back_by_its_strategy() {
    let world = World::new().await;
    world.apply(LEADS).await;
    let sam = Sam::new(&world).await;
    let ask = "- step:\n    name: ask\n    identifier: ask\n    type: HarnessApproval\n    timeout: 1d\n    spec:\n      \
               includePipelineExecutionHistory: true\n      approvers: {minimumCount: 1, disallowPipelineExecutor: false, userGroups: [leads]}\n";
    let steps = beside(&[
        wait("w", "3h"),
        ask.to_owned(),
        script("s", "vanish", ""),
        queue("q", "Stage"),
    ]) + &script("never", "ok", "");
    let stages = [
        stage("deploy", &steps, &script("undo", "ok", ""), ROLL_BACK),
        stage("next", &script("a", "ok", ""), "", ""),
    ];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(20)).await;
    sam.interrupts(&run, "stages.deploy", "UserMarkedFailure")
        .await;
    insta::assert_snapshot!(sam.end(&run).await, @"
    run Failed: Step w: It was marked as failed by sam. The stage was rolled back cleanly.
    deploy Failed: Step w: It was marked as failed by sam. The stage was rolled back cleanly.
    next Skipped
    deploy.rollbackSteps.undo #0 Success
    deploy.steps.ask #0 Failed
    deploy.steps.q #0 Success
    deploy.steps.s #0 Failed
    deploy.steps.w #0 Failed
    deploy.steps[0] #0 Failed
    ");
    assert_eq!(world.holds().await, [""; 0], "the queue is given back");
}

/// Harness fails running and queued stages (*Mark pipeline as failed*): also those that have not begun to work.
#[tokio::test(start_paused = true)]
async fn stages_that_wait_to_begin_hear_a_word_too() {
    for (kind, of_run, expected) in [
        ("AbortAll", false, Status::Aborted),
        ("UserMarkedFailure", false, Status::Failed),
        ("UserMarkedFailure", true, Status::Failed),
        ("ExpireAll", false, Status::Expired),
        ("ExpireAll", true, Status::Expired),
    ] {
        let world = World::new().await;
        let sam = Sam::new(&world).await;
        world.apply(TARGET).await;
        let holds = deployment(&stage("deploy", &wait("w", "2h"), "", ""));
        world.apply(&pipeline(&[holds])).await;
        let by_hand = stage(
            "hand",
            &wait("v", "1m"),
            "",
            "runMode: {type: Manual, timeout: 2h}\n",
        );
        let yaml = pipeline(&[by_hand]).replace("release", "manual");
        world.apply(&yaml).await;
        let first = world.start("release").await;
        minutes(&world, 1).await;
        let second = world.start("release").await;
        let manual = world.start("manual").await;
        minutes(&world, 1).await;
        let waits = sam.waits(&second).await;
        let [told] = waits.as_slice() else {
            panic!("{waits:?}");
        };
        let behind = format!(
            "deploy: Infrastructure: infrastructure `cluster` of environment `prod`, behind stage deploy of run {first} \
             (release)"
        );
        assert_eq!(*told, behind);
        // What is said of the run is about its stages that wait, too.
        let (of_second, of_manual) = match of_run {
            true => ("", ""),
            false => ("stages.deploy", "stages.hand"),
        };
        let kind = match (of_run, kind) {
            (true, "UserMarkedFailure") => "UserMarkedFailAll",
            _ => kind,
        };
        sam.interrupts(&second, of_second, kind).await;
        sam.interrupts(&manual, of_manual, kind).await;
        let undone = sam.says(&first, "stages.deploy", "Pause").await;
        assert!(undone.0 == 400 && undone.1.contains("none of a stage"));
        for run in [&second, &manual] {
            let run = world.finish(run).await;
            assert_eq!(run.status, expected, "{}", world.story(&run).await);
            let seconds = (run.ended_ms.expect("ended") - run.started_ms) / 1_000;
            assert!(seconds < 130, "it waited {seconds} s");
            let failure = run.stages[0].failure.as_ref().expect("a reason");
            assert!(failure.message.contains("by sam"), "{}", failure.message);
        }
        let first = world.finish(&first).await;
        assert_eq!(first.status, Status::Success);
        assert_eq!(world.holds().await, [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_word_that_rolls_a_stage_back_asks_no_strategy() {
    let world = World::new().await;
    let sam = Sam::new(&world).await;
    let ignore = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        type: Ignore\n";
    let stages = [stage(
        "deploy",
        &(script("a", "ok", "") + &wait("w", "3h") + &script("b", "ok", "")),
        &(script("undo", "ok", "") + &wait("slow", "1h")),
        ignore,
    )];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    minutes(&world, 1).await;
    let idle = sam.says(&run, "", "Retry").await;
    assert!(
        idle.0 == 409 && idle.1.contains("`slipway retry"),
        "{}",
        idle.1
    );
    sam.interrupts(&run, "", "StageRollback").await;
    minutes(&world, 1).await;
    let again = sam.says(&run, "stages.deploy", "StageRollback").await;
    assert_eq!(again.0, 409, "a rollback is not rolled back: {}", again.1);
    // It can be stopped.
    sam.interrupts(&run, "stages.deploy", "AbortAll").await;
    insta::assert_snapshot!(sam.end(&run).await, @"
    run Aborted: Step w: It was stopped by sam to roll its stage back. LEFT BEHIND: rolling back failed. Step slow: It was stopped: its stage was aborted by sam. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.
    deploy Aborted: Step w: It was stopped by sam to roll its stage back. LEFT BEHIND: rolling back failed. Step slow: It was stopped: its stage was aborted by sam. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.
    deploy.rollbackSteps.slow #0 Aborted
    deploy.rollbackSteps.undo #0 Success
    deploy.steps.a #0 Success
    deploy.steps.w #0 Failed
    ");
}

/// A rollback that waits for its next attempt is not rolled back either: the attempt comes in its time. Found by the
/// simulation (seed 905999): the attempt was stopped at once, and the stage stayed as it was.
#[tokio::test(start_paused = true)]
async fn a_rollback_that_waits_to_try_again_hears_no_word_that_rolls_back() {
    let world = World::new().await;
    let sam = Sam::new(&world).await;
    let again = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action: {type: Retry, spec: \
                 {retryCount: 1, retryIntervals: [5h], onRetryFailure: {action: {type: MarkAsFailure}}}}\n";
    let stages = [stage(
        "deploy",
        &script("bad", "fail", ""),
        &script("undo", "fail until 1", again),
        ROLL_BACK,
    )];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    minutes(&world, 1).await;
    for node in ["stages.deploy", ""] {
        let (status, told) = sam.says(&run, node, "StageRollback").await;
        assert_eq!(status, 409, "{told}");
    }
    insta::assert_snapshot!(sam.end(&run).await, @"
    run Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
    deploy Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
    deploy.rollbackSteps.undo #0 Failed
    deploy.rollbackSteps.undo #1 Success
    deploy.steps.bad #0 Failed
    ");
}

/// Found by the simulation (seed 5366): nobody saw that a rollback step of a step group waits for its next attempt, nor was a
/// word about it heard. The group itself has ended when its stage or its run is rolled back.
#[tokio::test(start_paused = true)]
async fn a_rollback_step_of_a_group_that_waits_to_try_again_hears_a_word() {
    for (action, nested) in [
        ("StageRollback", false),
        ("StageRollback", true),
        ("StepGroupRollback", false),
        ("StepGroupRollback", true),
        ("PipelineRollback", false),
        ("PipelineRollback", true),
    ] {
        let world = World::new().await;
        let sam = Sam::new(&world).await;
        let indented_by_4 =
            |text: &str| -> String { text.lines().map(|line| format!("    {line}\n")).collect() };
        // A group that is begun again waits as a step does.
        let undo = match nested {
            false => script("undo", "fail until 1", &tries_again("MarkAsFailure")),
            true => {
                let again = tries_again("MarkAsFailure").replace("Retry,", "RetryStepGroup,");
                group("inner", &[script("undo", "fail until 1", "")]) + &indented_by_4(&again)
            }
        };
        let around = group("g", &[script("bad", "fail", "")])
            + &indented_by_4(&on_failure(&format!("type: {action}")))
            + &format!("    rollbackSteps:\n{}", indented(&undo));
        let stages = [stage("deploy", &around, "", "")];
        world.apply(&pipeline(&stages)).await;
        let run = world.start("release").await;
        minutes(&world, 1).await;
        let waits = sam.waits(&run).await;
        let what = if nested { "inner" } else { "undo" };
        assert!(
            waits.iter().any(|told| told.starts_with(what)),
            "{action}: {waits:?}"
        );
        sam.interrupts(&run, "stages.deploy", "ExpireAll").await;
        minutes(&world, 1).await;
        let record = world.store.get_run(&run).await.expect("the run");
        assert!(record.status.is_final(), "{action}, {what}: it waits");
        let story = sam.end(&run).await;
        let node = match nested {
            false => "deploy.steps.g.rollbackSteps.undo #1 Expired",
            true => "deploy.steps.g.rollbackSteps.inner.steps.undo #1 Expired",
        };
        assert!(story.contains(node), "{action}: {story}");
    }
}

#[tokio::test(start_paused = true)]
async fn steps_that_wait_for_an_answer_or_for_their_next_attempt_are_failed_too() {
    let world = World::new().await;
    let sam = Sam::new(&world).await;
    let asks = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action: {type: ManualIntervention, \
                spec: {timeout: 2h, onTimeout: {action: {type: Ignore}}}}\n";
    let again = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action: {type: Retry, spec: \
                 {retryCount: 1, retryIntervals: [5h], onRetryFailure: {action: {type: MarkAsFailure}}}}\n";
    let both = beside(&[script("ask", "fail", asks), script("again", "fail", again)]);
    world
        .apply(&pipeline(&[stage("deploy", &both, "", "")]))
        .await;
    let run = world.start("release").await;
    minutes(&world, 1).await;
    let of_step = sam.says(&run, "again", "AbortAll").await;
    assert_eq!(of_step.0, 400);
    assert!(of_step.1.contains("is none of a step"), "{}", of_step.1);
    sam.interrupts(&run, "stages.deploy", "UserMarkedFailure")
        .await;
    insta::assert_snapshot!(sam.end(&run).await, @"
    run Failed: Step ask: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    deploy Failed: Step ask: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    deploy.steps.again #0 Failed
    deploy.steps.again #1 Failed
    deploy.steps.ask #0 Failed
    deploy.steps[0] #0 Failed
    ");
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_is_aborted_at_a_barrier_fails_those_who_wait_for_it() {
    let world = World::new().await;
    let sam = Sam::new(&world).await;
    let stages = [
        stage("one", &(wait("w", "5h") + &gate("at", "1d")), "", ""),
        stage("two", &gate("here", "1d"), "", ""),
    ];
    world.apply(&meeting(&stages)).await;
    let run = world.start("release").await;
    minutes(&world, 1).await;
    assert_eq!(
        sam.waits(&run).await,
        ["here: Barrier: barrier `gate`, until stages.one.spec.execution.steps.at is reached"]
    );
    sam.interrupts(&run, "stages.one", "AbortAll").await;
    insta::assert_snapshot!(sam.end(&run).await, @"
    run Aborted: Step w: It was stopped: its stage was aborted by sam.
    one Aborted: Step w: It was stopped: its stage was aborted by sam.
    two Failed: Step here: Barrier gate cannot be passed: stages.one.spec.execution.steps.at is not reached, because its stage failed before it.
    one.steps.w #0 Aborted
    two.steps.here #0 Failed
    ");
}

#[tokio::test(start_paused = true)]
async fn whom_a_queue_waits_for_is_told() {
    let world = World::new().await;
    let sam = Sam::new(&world).await;
    let steps = queue("turn", "Pipeline") + &wait("w", "1h");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(world.start("release").await);
        minutes(&world, 1).await;
    }
    assert_eq!(sam.waits(&runs[0]).await, [""; 0]);
    let told = sam.waits(&runs[2]).await;
    let behind = format!(
        "turn: Queue: queue `shared`, behind run {} (release), to its end; run {} (release), to its end",
        runs[0], runs[1]
    );
    assert_eq!(told, [behind]);
    for run in &runs {
        world.finish(run).await;
    }
    assert_eq!(world.holds().await, [""; 0]);
}

/// A step's wait of up to a minute is no reason to hear late.
#[tokio::test(start_paused = true)]
async fn a_word_is_heard_in_a_short_wait() {
    for (node, kind) in [
        ("", "AbortAll"),
        ("stages.deploy", "AbortAll"),
        ("stages.deploy", "UserMarkedFailure"),
        ("w", "UserMarkedFailure"),
        ("", "ExpireAll"),
    ] {
        let world = World::new().await;
        let sam = Sam::new(&world).await;
        world
            .apply(&pipeline(&[stage("deploy", &wait("w", "59s"), "", "")]))
            .await;
        let run = world.start("release").await;
        world.runs.clock.sleep(Duration::from_secs(20)).await;
        let at = world.runs.clock.now_ms();
        sam.interrupts(&run, node, kind).await;
        let run = world.finish(&run).await;
        let heard = run.ended_ms.expect("ended") - at;
        assert!(
            heard <= 2_000,
            "{kind} of {node:?} was heard after {heard} ms"
        );
        world.assert_clean(&run.id).await;
    }
}

/// What was said about a stage is no word about its rollback with the run, which comes later.
#[tokio::test(start_paused = true)]
async fn a_stage_that_was_aborted_is_rolled_back_with_its_run() {
    let world = World::new().await;
    let sam = Sam::new(&world).await;
    let back = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        type: PipelineRollback\n";
    let undo = script("undo", "ok", "") + &wait("slow", "10m") + &script("end", "ok", "");
    let stages = [together(&[
        stage("one", &wait("w", "3h"), &undo, ""),
        stage(
            "two",
            &(wait("v", "30m") + &script("bad", "fail", "")),
            "",
            back,
        ),
    ])];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    minutes(&world, 1).await;
    sam.interrupts(&run, "stages.one", "AbortAll").await;
    insta::assert_snapshot!(sam.end(&run).await, @"
    run Aborted: Step w: It was stopped: its stage was aborted by sam. The run was rolled back: one.
    one Aborted: Step w: It was stopped: its stage was aborted by sam.
    two Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    one.rollbackSteps.end #0 Success
    one.rollbackSteps.slow #0 Success
    one.rollbackSteps.undo #0 Success
    one.steps.w #0 Aborted
    two.steps.bad #0 Failed
    two.steps.v #0 Success
    ");
}

/// Tries once more, five hours later.
fn tries_again(then: &str) -> String {
    on_failure(&format!(
        "{{type: Retry, spec: {{retryCount: 1, retryIntervals: [5h], onRetryFailure: {{action: {{type: {then}}}}}}}}}"
    ))
}

/// Found by a tester: nobody could see that a step is tried again, nor end the waiting but by an abort of the run.
#[tokio::test(start_paused = true)]
async fn a_step_that_waits_to_be_tried_again_says_so_and_is_marked_as_failed() {
    for named in ["bad", "g"] {
        let world = World::new().await;
        let sam = Sam::new(&world).await;
        let bad = script("bad", "fail", &tries_again("Ignore"));
        let steps = group("g", &[bad]) + &script("next", "ok", "");
        world
            .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
            .await;
        let run = world.start("release").await;
        minutes(&world, 1).await;
        let waits = sam.waits(&run).await;
        let [told] = waits.as_slice() else {
            panic!("{waits:?}");
        };
        assert!(
            told.starts_with("bad: Retry: its attempt 2, at 2026-01-01 0"),
            "{told}"
        );
        let (status, told) = sam.says(&run, "", "UserMarkedFailAll").await;
        let advice = format!("waits to be tried again: `slipway fail {run} --step stages.deploy.");
        assert!(status == 409 && told.contains(&advice), "{told}");
        sam.interrupts(&run, named, "UserMarkedFailure").await;
        minutes(&world, 1).await;
        let story = sam.end(&run).await;
        for line in [
            "run IgnoreFailed",
            "deploy.steps.g.steps.bad #0 Failed",
            "deploy.steps.g.steps.bad #1 IgnoreFailed",
            "deploy.steps.next #0 Success",
        ] {
            assert!(story.contains(line), "{line}: {story}");
        }
        assert_eq!(sam.waits(&run).await, [""; 0]);
        let run = world.store.get_run(&run).await.expect("the run");
        let hours = (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000;
        assert_eq!(hours, 0);
    }
}

/// As a step does; whatever of the group would run first fails in the place of its next attempt.
#[tokio::test(start_paused = true)]
async fn a_group_that_waits_to_begin_again_says_so_and_is_marked_as_failed() {
    for (named, kind, came_to) in [
        ("g", "UserMarkedFailure", "IgnoreFailed"),
        ("stages.deploy", "UserMarkedFailAll", "IgnoreFailed"),
        ("stages.deploy", "StageRollback", "Failed"),
    ] {
        let world = World::new().await;
        let sam = Sam::new(&world).await;
        let again = tries_again("Ignore").replace("Retry,", "RetryStepGroup,");
        let again: String = again.lines().map(|line| format!("    {line}\n")).collect();
        let inner = group("i", &[script("good", "ok", ""), script("bad", "fail", "")]);
        let steps = group("g", &[inner]) + &again + &script("next", "ok", "");
        let undo = script("undo", "ok", "");
        world
            .apply(&pipeline(&[stage("deploy", &steps, &undo, "")]))
            .await;
        let run = world.start("release").await;
        minutes(&world, 1).await;
        let waits = sam.waits(&run).await;
        let [told] = waits.as_slice() else {
            panic!("{waits:?}");
        };
        let expected = "g: Retry: its attempt 2, at 2026-01-01 0";
        assert!(told.starts_with(expected), "{told}");
        let (status, told) = sam.says(&run, "", "UserMarkedFailAll").await;
        let advice =
            format!("steps.g waits to be tried again: `slipway fail {run} --step stages.deploy.");
        assert!(status == 409 && told.contains(&advice), "{told}");
        sam.interrupts(&run, named, kind).await;
        minutes(&world, 1).await;
        let story = sam.end(&run).await;
        let good = format!("deploy.steps.g.steps.i.steps.good #1 {came_to}");
        let line = story.lines().find(|line| line.starts_with(&good));
        assert!(line.is_some(), "{good}: {story}");
        let goes_on = came_to == "IgnoreFailed";
        assert_eq!(
            story.contains("deploy.steps.next #0 Success"),
            goes_on,
            "{story}"
        );
        assert_eq!(story.contains("rollbackSteps.undo #0"), !goes_on, "{story}");
        assert_eq!(sam.waits(&run).await, [""; 0]);
        let run = world.store.get_run(&run).await.expect("the run");
        let hours = (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000;
        assert_eq!(hours, 0);
        if !goes_on {
            let why = run.failure.expect("a failure").message;
            assert!(why.contains("by sam"), "{why}");
        }
    }
}

/// As others do, although nothing of it ran: its condition could not be evaluated, and is asked again.
#[tokio::test(start_paused = true)]
async fn a_group_that_could_not_be_decided_about_says_when_it_is_asked_again() {
    let when = "when:\n  stageStatus: Success\n  condition: <+execution.steps.nowhere.output.x> == \"a\"\n";
    for (action, kind, came_to) in [
        ("Retry,", "UserMarkedFailure", "IgnoreFailed"),
        ("RetryStepGroup,", "UserMarkedFailure", "IgnoreFailed"),
        ("Retry,", "StageRollback", "Failed"),
    ] {
        let world = World::new().await;
        let sam = Sam::new(&world).await;
        let more = when.to_owned() + &tries_again("Ignore").replace("Retry,", action);
        let more: String = more.lines().map(|line| format!("    {line}\n")).collect();
        let before = script("before", "ok", "");
        let steps = before + &group("g", &[script("in", "ok", "")]) + &more;
        let undo = script("undo", "ok", "");
        world
            .apply(&pipeline(&[stage("deploy", &steps, &undo, "")]))
            .await;
        let run = world.start("release").await;
        minutes(&world, 1).await;
        let waits = sam.waits(&run).await;
        let [told] = waits.as_slice() else {
            panic!("{action} {waits:?}");
        };
        let expected = "g: Retry: its attempt 2, at 2026-01-01 0";
        assert!(told.starts_with(expected), "{told}");
        let named = if kind == "StageRollback" {
            "stages.deploy"
        } else {
            "g"
        };
        sam.interrupts(&run, named, kind).await;
        minutes(&world, 1).await;
        let story = sam.end(&run).await;
        let line = format!("deploy.steps.g #1 {came_to}");
        assert!(story.contains(&line), "{action} {line}: {story}");
        let undone = story.contains("rollbackSteps.undo #0");
        assert_eq!(undone, kind == "StageRollback", "{story}");
        let run = world.store.get_run(&run).await.expect("the run");
        let hours = (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000;
        assert_eq!(hours, 0);
    }
}

/// Found by a tester: the failure of the step that waited was told as why the stage ended.
#[tokio::test(start_paused = true)]
async fn an_abort_is_why_a_stage_ends_whose_step_waits_to_be_tried_again() {
    for node in ["", "stages.deploy"] {
        let world = World::new().await;
        let sam = Sam::new(&world).await;
        let bad = script("bad", "fail", &tries_again("Ignore"));
        world
            .apply(&pipeline(&[stage("deploy", &bad, "", "")]))
            .await;
        let run = world.start("release").await;
        minutes(&world, 1).await;
        sam.interrupts(&run, node, "AbortAll").await;
        let story = sam.end(&run).await;
        let what = match node {
            "" => "the run was aborted by sam",
            _ => "it was aborted by sam",
        };
        let why = format!("deploy Aborted: Stage deploy: {what}. Before that: Step bad: ");
        assert!(story.contains(&why), "{story}");
    }
}

/// Found by a tester: such an answer was noted, and did nothing but leave the rest of the rollback out.
#[tokio::test(start_paused = true)]
async fn a_failed_rollback_step_is_not_answered_by_a_rollback() {
    let asks = on_failure(
        "{type: ManualIntervention, spec: {timeout: 2h, onTimeout: {action: {type: MarkAsFailure}}}}",
    );
    let undo = |id: &str| script(id, "fail", &asks) + &script(&format!("{id}_more"), "ok", "");
    let steps = group("g", &[script("bad", "fail", "")]);
    let steps = steps + "    rollbackSteps:\n" + &indented(&undo("inner"));
    for asked in ["inner", "outer"] {
        let world = World::new().await;
        let sam = Sam::new(&world).await;
        let steps = if asked == "inner" { &steps } else { "" };
        let stages = [
            stage("before", &script("a", "ok", ""), &script("b", "ok", ""), ""),
            stage(
                "deploy",
                &(steps.to_owned() + &script("worse", "fail", "")),
                &undo("outer"),
                ROLL_BACK,
            ),
        ];
        world.apply(&pipeline(&stages)).await;
        let run = world.start("release").await;
        minutes(&world, 1).await;
        for action in ["StageRollback", "PipelineRollback"] {
            let (status, told) = sam.says(&run, asked, action).await;
            assert_eq!(status, 400, "{told}");
            assert!(told.contains("a rollback is not rolled back"), "{told}");
        }
        sam.interrupts(&run, asked, "Ignore").await;
        minutes(&world, 1).await;
        let record = world.store.get_run(&run).await.expect("the run");
        let story = world.story(&record).await;
        assert!(
            story.contains(&format!("{asked}_more #0 Success")),
            "{story}"
        );
        if asked == "inner" {
            sam.interrupts(&run, "outer", "MarkAsFailure").await;
        }
        sam.end(&run).await;
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("      {line}\n")).collect()
}
