//! Runs in which people have a say, and failure strategies that repeat or undo: on the real machines.

use slipway_engine::signal::{Word, say};
use slipway_model::id::{NodeId, PrincipalId, RunId};
use slipway_model::status::Status;
use slipway_store::record::SignalRecord;
use slipway_world::yaml::{
    LEADS, ROLL_BACK, beside, gate, group, meeting, on_failure, pipeline, queue, script, stage,
    wait,
};
use slipway_world::{Options, World, minutes};

/// Asks for two hours.
fn asks(then: &str) -> String {
    on_failure(&format!(
        "{{type: ManualIntervention, spec: {{timeout: 2h, onTimeout: {{action: {{type: {then}}}}}}}}}"
    ))
}

async fn says(world: &World, run: &RunId, word: Word) -> Result<(), String> {
    let who = PrincipalId::new("sam");
    let said = say(&world.runs, run, &who, &word).await;
    said.map_err(|error| error.to_string())
}

fn answer(step: &str, action: &str) -> Word {
    Word::Answer {
        node: NodeId::new(format!("stages.deploy.spec.execution.steps.{step}")),
        action: action.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_answered_by_a_person_once() {
    let world = World::new().await;
    let steps = script("a", "fail until 1", &asks("Abort")) + &script("b", "fail", &asks("Abort"));
    let undo = script("undo", "ok", "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, &undo, "")]))
        .await;
    let run = world.start("release").await;

    minutes(&world, 1).await;
    let early = says(&world, &run, answer("b", "Ignore")).await;
    assert!(early.expect_err("b has not begun").contains("has begun"));
    says(&world, &run, answer("a", "Retry"))
        .await
        .expect("a asks");
    minutes(&world, 1).await;
    let wrong = says(&world, &run, answer("b", "Shrug")).await;
    assert!(
        wrong
            .expect_err("no action")
            .contains("`Shrug` is no answer")
    );
    let alone = says(&world, &run, answer("b", "StepGroupRollback")).await;
    assert!(alone.expect_err("no group").contains("is in no step group"));
    says(&world, &run, answer("b", "StageRollback"))
        .await
        .expect("b asks");
    let twice = says(&world, &run, answer("b", "Ignore")).await;
    assert!(twice.is_err(), "somebody was faster");
    let run = world.finish(&run).await;

    insta::assert_snapshot!(world.story(&run).await, @"
    run Failed: Step b: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
    deploy Failed: Step b: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
    deploy.rollbackSteps.undo #0 Success
    deploy.steps.a #0 Failed
    deploy.steps.a #1 Success
    deploy.steps.b #0 Failed
    ");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_and_the_fallback_counts() {
    let world = World::new().await;
    let steps = script("a", "fail", &asks("Ignore")) + &script("b", "ok", "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run IgnoreFailed
    deploy IgnoreFailed
    deploy.steps.a #0 IgnoreFailed
    deploy.steps.b #0 Success
    ");
    let hours = (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000;
    assert_eq!(hours, 2);
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_when_the_time_of_the_run_is_up() {
    let world = World::new().await;
    let steps = wait("pause", "10m").replacen(
        "    spec:",
        &asks("Ignore")
            .lines()
            .map(|line| format!("    {line}\n"))
            .chain(["    spec:".to_owned()])
            .collect::<String>(),
        1,
    );
    let whole = pipeline(&[stage("deploy", &steps, "", "")]);
    world
        .apply(&whole.replacen("  stages:", "  timeout: 5m\n  stages:", 1))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let story = world.story(&run).await;
    let last = story.lines().last();
    assert_eq!(last, Some("deploy.steps.pause #0 Expired"), "{story}");
    assert_eq!(run.status, Status::Expired, "{story}");
    assert_eq!(run.ended_ms, Some(run.started_ms + 300_000));
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_begins_nothing_until_it_is_resumed() {
    let world = World::new().await;
    let steps = wait("pause", "5m") + &script("a", "ok", "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;

    minutes(&world, 1).await;
    says(&world, &run, Word::Pause).await.expect("it runs");
    assert!(
        says(&world, &run, Word::Pause).await.is_err(),
        "it is paused"
    );
    minutes(&world, 60).await;
    let nodes = world.store.list_nodes(&run, None).await.expect("nodes");
    assert_eq!(
        nodes.len(),
        1,
        "the wait passed, the script did not begin: {nodes:?}"
    );
    says(&world, &run, Word::Resume)
        .await
        .expect("it is paused");
    let run = world.finish(&run).await;

    assert_eq!(run.status, Status::Success);
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn what_runs_is_marked_as_failed_at_once() {
    let world = World::new().await;
    let steps = beside(&[wait("pause", "5h"), script("gone", "vanish", "")]);
    let stage = stage("deploy", &steps, &script("undo", "ok", ""), ROLL_BACK);
    world.apply(&pipeline(&[stage])).await;
    let run = world.start("release").await;

    minutes(&world, 1).await;
    says(&world, &run, Word::MarkAsFailed)
        .await
        .expect("it runs");
    minutes(&world, 12).await;
    let run = world.finish(&run).await;

    insta::assert_snapshot!(world.story(&run).await, @"
    run Failed: Step pause: It was marked as failed by sam. The stage was rolled back cleanly.
    deploy Failed: Step pause: It was marked as failed by sam. The stage was rolled back cleanly.
    deploy.rollbackSteps.undo #0 Success
    deploy.steps.gone #0 Failed
    deploy.steps.pause #0 Failed
    deploy.steps[0] #0 Failed
    ");
    let late = says(&world, &run.id, Word::Pause).await;
    assert!(late.expect_err("it has ended").contains("has ended"));
    world.assert_clean(&run.id).await;
}

/// The time of its stage is up before anybody answers.
#[tokio::test(start_paused = true)]
async fn a_question_whose_time_is_up_expires() {
    let world = World::new().await;
    let steps = script("a", "fail", &asks("Ignore")) + &script("b", "ok", "");
    let undo = script("undo", "ok", "");
    let more = format!("timeout: 10m\n{ROLL_BACK}");
    world
        .apply(&pipeline(&[stage("deploy", &steps, &undo, &more)]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Expired: Step a: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. Nobody had said what to do about it when the time of its step group, stage or run was up. The stage was rolled back cleanly.
    deploy Expired: Step a: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. Nobody had said what to do about it when the time of its step group, stage or run was up. The stage was rolled back cleanly.
    deploy.rollbackSteps.undo #0 Success
    deploy.steps.a #0 Expired
    ");
    world.assert_clean(&run.id).await;
}

/// A word about steps that run is not kept for later ones: where none runs, it is refused with what to do instead.
#[tokio::test(start_paused = true)]
async fn where_nothing_runs_nothing_is_marked_as_failed() {
    let mut told = Vec::new();
    for action in [
        "{type: ManualIntervention, spec: {timeout: 1h, onTimeout: {action: {type: Ignore}}}}",
        "{type: Retry, spec: {retryCount: 1, retryIntervals: [1h], onRetryFailure: {action: {type: Ignore}}}}",
    ] {
        let world = World::new().await;
        let steps = script("a", "fail", &on_failure(action));
        world
            .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
            .await;
        let run = world.start("release").await;
        minutes(&world, 1).await;
        for word in [Word::MarkAsFailed, Word::Expire] {
            let refused = says(&world, &run, word).await.expect_err("nothing runs");
            told.push(refused.replace(run.as_str(), "RUN"));
        }
        let run = world.finish(&run).await;
        assert_eq!(run.status, Status::IgnoreFailed);
        world.assert_clean(&run.id).await;
    }
    insta::assert_snapshot!(told.join("\n"), @"
    no step of run RUN runs now; stages.deploy.spec.execution.steps.a waits for an answer to its failure: `slipway answer RUN a MarkAsFailure`, or `slipway abort RUN`
    no step of run RUN runs now; stages.deploy.spec.execution.steps.a waits for an answer to its failure: `slipway answer RUN a MarkAsFailure`, or `slipway abort RUN`
    no step of run RUN runs now; stages.deploy.spec.execution.steps.a waits to be tried again: `slipway fail RUN --step stages.deploy.spec.execution.steps.a`, or `slipway abort RUN`
    no step of run RUN runs now; stages.deploy.spec.execution.steps.a waits to be tried again: `slipway fail RUN --step stages.deploy.spec.execution.steps.a`, or `slipway abort RUN`
    ");
}

#[tokio::test(start_paused = true)]
async fn a_group_is_begun_again_with_its_branches() {
    let world = World::new().await;
    let again = on_failure("{type: RetryStepGroup, spec: {retryCount: 2, retryIntervals: [1m]}}");
    let inner = [
        script("a", "ok", ""),
        beside(&[script("b", "fail until 1", ""), wait("w", "30s")]),
    ];
    let lines: String = again.lines().map(|line| format!("    {line}\n")).collect();
    let steps = group("g", &inner) + &lines + &script("c", "ok", "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    deploy.steps.c #0 Success
    deploy.steps.g #0 Failed
    deploy.steps.g #1 Success
    deploy.steps.g.steps.a #0 Success
    deploy.steps.g.steps.a #1 Success
    deploy.steps.g.steps.b #0 Failed
    deploy.steps.g.steps.b #1 Success
    deploy.steps.g.steps.w #0 Success
    deploy.steps.g.steps.w #1 Success
    deploy.steps.g.steps[1] #0 Failed
    deploy.steps.g.steps[1] #1 Success
    ");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_group_is_rolled_back_by_its_own_steps() {
    let world = World::new().await;
    world.apply(LEADS).await;
    let back = on_failure("{type: StepGroupRollback}");
    let undo = script("u", "ok", "");
    let more = format!(
        "{back}rollbackSteps:\n{}",
        undo.lines()
            .map(|line| format!("  {line}\n"))
            .collect::<String>()
    );
    let lines: String = more.lines().map(|line| format!("    {line}\n")).collect();
    let steps = group("g", &[script("a", "ok", ""), script("b", "fail", "")])
        + &lines
        + &script("c", "ok", "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Failed: Step b: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    deploy Failed: Step b: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    deploy.steps.g #0 Failed
    deploy.steps.g.rollbackSteps.u #0 Success
    deploy.steps.g.steps.a #0 Success
    deploy.steps.g.steps.b #0 Failed
    ");
    world.assert_clean(&run.id).await;
}

fn approval(id: &str, more: &str) -> String {
    let more: String = more.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "- step:\n    name: {id}\n    identifier: {id}\n    type: HarnessApproval\n    timeout: 1d\n    spec:\n      \
         includePipelineExecutionHistory: true\n      approvers:\n        minimumCount: 2\n        \
         disallowPipelineExecutor: true\n        userGroups: [leads]\n{more}"
    )
}

fn votes(who: &str, verdict: &str, inputs: &str) -> Word {
    Word::Step {
        node: NodeId::new("stages.deploy.spec.execution.steps.ask"),
        attempt: 0,
        kind: format!("approval:{who}"),
        says: format!(
            "{{\"verdict\": \"{verdict}\", \"comments\": \"well\", \"inputs\": {inputs}}}"
        ),
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_waits_for_two_people_and_hands_out_what_they_gave() {
    let world = World::new().await;
    world.apply(LEADS).await;
    let reads = "when:\n  stageStatus: Success\n  condition: <+execution.steps.ask.output.approverInputs.ticket> == \
                 \"A-2\" && <+execution.steps.ask.output.approvalActivities[0].user.name> == \"sam\"\n";
    let steps = approval("ask", "") + &script("go", "ok", reads);
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;

    minutes(&world, 90).await;
    says(
        &world,
        &run,
        votes("sam", "APPROVE", "{\"ticket\": \"A-1\"}"),
    )
    .await
    .expect("it waits");
    let twice = says(&world, &run, votes("sam", "APPROVE", "{}")).await;
    assert!(
        twice
            .expect_err("sam has spoken")
            .contains("sam has answered stages.deploy.spec.execution.steps.ask already")
    );
    minutes(&world, 90).await;
    says(
        &world,
        &run,
        votes("kim", "APPROVE", "{\"ticket\": \"A-2\"}"),
    )
    .await
    .expect("it waits");
    let run = world.finish(&run).await;

    assert_eq!(run.status, Status::Success, "{:?}", run.failure);
    let hours = (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000;
    assert_eq!(hours, 3, "it went on at once");
    let story = world.story(&run).await;
    assert!(story.contains("go #0 Success"), "{story}");
    world.assert_clean(&run.id).await;
}

/// What people said to the approvals of a run is one list, that of later stages too; the clock has a word in it.
#[tokio::test(start_paused = true)]
async fn what_was_said_to_approvals_is_read_in_one_list() {
    let world = World::new().await;
    world.apply(LEADS).await;
    let one =
        |id: &str, more: &str| approval(id, more).replace("minimumCount: 2", "minimumCount: 1");
    let clock = "autoApproval:\n  action: APPROVE\n  comments: as agreed\n  scheduledDeadline: {timeZone: UTC, time: 2026-01-01 12:30 AM}\n";
    let reads = "when:\n  stageStatus: Success\n  condition: <+approval.approvalActivities[1].user.name> + <+approval.approvalActivities[1].comments> == \
                 \"samwell\" && <+approval.approvalActivities[0].comments> == \"as agreed\"\n";
    let stages = [
        stage("before", &one("timed", clock), "", ""),
        stage("deploy", &one("ask", ""), "", ""),
        stage("after", &script("go", "ok", reads), "", ""),
    ];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    minutes(&world, 35).await;
    says(&world, &run, votes("sam", "APPROVE", "{}"))
        .await
        .expect("it waits");
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success, "{:?}", run.failure);
    let story = world.story(&run).await;
    assert!(story.contains("go #0 Success"), "{story}");
    world.assert_clean(&run.id).await;
}

/// Found by killing `slipway local`: whoever says something may die after it was recorded and before anybody is woken.
#[tokio::test(start_paused = true)]
async fn a_word_that_nobody_heard_is_heard_after_a_restart() {
    let world = World::new().await;
    world.apply(LEADS).await;
    let approval = approval("ask", "").replace("minimumCount: 2", "minimumCount: 1");
    world
        .apply(&pipeline(&[stage("deploy", &approval, "", "")]))
        .await;
    let run = world.start("release").await;
    minutes(&world, 5).await;
    let Word::Step {
        node,
        attempt,
        kind,
        says,
    } = votes("sam", "APPROVE", "{}")
    else {
        unreachable!("a vote is a word about a step")
    };
    let signal = SignalRecord {
        run: run.clone(),
        node,
        attempt,
        kind,
        says,
        who: PrincipalId::new("sam"),
        at_ms: world.runs.clock.now_ms(),
    };
    world.store.put_signal(&signal).await.expect("recorded");
    minutes(&world, 30).await;
    assert!(!world.has_ended(&run).await, "nobody told it");
    let woken = slipway_engine::wake::wake_unheard(&world.runs, &slipway_world::scope()).await;
    assert_eq!(woken.expect("the store answers"), 1);
    minutes(&world, 1).await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success);
    assert_eq!((run.ended_ms.expect("ended") - run.started_ms) / 60_000, 35);
    let woken = slipway_engine::wake::wake_unheard(&world.runs, &slipway_world::scope()).await;
    assert_eq!(woken.expect("the store answers"), 0);
    world.assert_clean(&run.id).await;
}

/// Found by killing `slipway local`: a step that aborts its run told after a crash that an abort had stopped it.
#[tokio::test(start_paused = true)]
async fn a_crash_over_an_abort_by_a_failure_strategy_keeps_its_reason() {
    let world = World::new().await;
    let aborts = script("bad", "fail", &on_failure("{type: Abort}"));
    let next = stage("next", &script("never", "ok", ""), "", "");
    world
        .apply(&pipeline(&[stage("deploy", &aborts, "", ""), next]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let expected = world.story(&run).await;
    assert!(
        expected.starts_with("run Aborted: Step bad: Shell Script"),
        "{expected}"
    );
    let crashes = world.survives_crashes("release", 1, &expected).await;
    assert!(crashes > 10, "only {crashes} crashes");
}

#[tokio::test(start_paused = true)]
async fn one_rejection_ends_the_run_and_silence_expires() {
    let world = World::new().await;
    world.apply(LEADS).await;
    world
        .apply(&pipeline(&[stage("deploy", &approval("ask", ""), "", "")]))
        .await;
    let run = world.start("release").await;
    minutes(&world, 1).await;
    says(&world, &run, votes("sam", "REJECT", "{}"))
        .await
        .expect("it waits");
    let rejected = world.finish(&run).await;
    assert_eq!(rejected.status, Status::ApprovalRejected);
    let why = rejected.failure.as_ref().expect("a reason");
    assert!(
        why.message.contains("rejected by sam: well"),
        "{}",
        why.message
    );

    let run = world.start("release").await;
    let silent = world.finish(&run).await;
    assert_eq!(silent.status, Status::Expired);
    let late = says(&world, &run, votes("sam", "APPROVE", "{}")).await;
    assert!(late.expect_err("it has ended").contains("has ended"));
    world.assert_clean(&run).await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_waits_for_people_is_marked_as_failed_too() {
    let world = World::new().await;
    world.apply(LEADS).await;
    let steps = approval("ask", "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    minutes(&world, 1).await;
    let node = NodeId::new("stages.deploy.spec.execution.steps.ask");
    says(&world, &run, Word::MarkNodeAsFailed { node })
        .await
        .expect("it waits");
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Failed);
    let minutes = (run.ended_ms.expect("ended") - run.started_ms) / 60_000;
    assert!(minutes < 5, "at once, not after {minutes} minutes");
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_given_by_the_clock() {
    let world = World::new().await;
    world.apply(LEADS).await;
    let at = "autoApproval:\n  action: APPROVE\n  scheduledDeadline:\n    timeZone: Europe/Berlin\n    time: 2026-01-01 08:00 AM\n";
    world
        .apply(&pipeline(&[stage("deploy", &approval("ask", at), "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success);
    let hours = (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000;
    assert_eq!(hours, 7);

    // Harness wants more than 15 minutes.
    for (time, status) in [
        ("2025-12-31 11:00 PM", Status::Failed),
        ("2026-01-01 01:15 AM", Status::Failed),
        ("2026-01-01 01:17 AM", Status::Success),
    ] {
        let world = World::new().await;
        world.apply(LEADS).await;
        let ask = approval("ask", &at.replace("2026-01-01 08:00 AM", time));
        world
            .apply(&pipeline(&[stage("deploy", &ask, "", "")]))
            .await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        assert_eq!(run.status, status, "{time}: {:?}", run.failure);
        let why = run.failure.map_or_else(String::new, |why| why.message);
        assert_eq!(
            why.contains("not more than 15 minutes after the step began"),
            status == Status::Failed,
            "{why}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_people_and_others_are_waited_for_changes_nothing() {
    let ask = approval("ask", "").replace(
        "timeout: 1d\n",
        "timeout: 5m\n    failureStrategies: [{onFailure: {errors: [Timeout], action: {type: MarkAsSuccess}}}]\n",
    );
    let again = on_failure("{type: RetryStepGroup, spec: {retryCount: 1, retryIntervals: [10s]}}");
    let again: String = again.lines().map(|line| format!("    {line}\n")).collect();
    let soon = asks("Ignore").replace("2h", "10m");
    let one = gate("a", "1d") + &queue("q", "Stage") + &ask + &script("x", "fail", &soon);
    let two = group("g", &[script("y", "fail until 1", "")])
        + &again
        + &wait("w", "90s")
        + &gate("b", "1d");
    let yaml = meeting(&[stage("one", &one, "", ""), stage("two", &two, "", "")]);
    // Paused time runs on, from one look at the run to the next, while something waits for a disk: minutes of work.
    let world = World::with(Options {
        in_memory: true,
        ..Options::default()
    })
    .await;
    world.apply(LEADS).await;
    world.apply(&yaml).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let expected = world.story(&run).await;
    assert_eq!(run.status, Status::IgnoreFailed, "{expected}");
    let crashes = world.survives_crashes("release", 5, &expected).await;
    assert!(crashes > 20, "only {crashes} crashes");
}

/// Found by the simulation (seed 0 of 2026-11-22).
#[tokio::test(start_paused = true)]
async fn a_question_about_a_step_that_ran_out_of_time_leaves_it_expired() {
    let world = World::new().await;
    world.apply(LEADS).await;
    let lines = asks("MarkAsFailure") + "timeout: 6h\n";
    let silent = approval("ask", "").replace("timeout: 1d", "timeout: 10m");
    world
        .apply(&pipeline(&[stage("deploy", &silent, "", &lines)]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Expired, "{:?}", run.failure);
    world.assert_clean(&run.id).await;
}
