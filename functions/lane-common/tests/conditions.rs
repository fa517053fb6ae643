//! Nodes whose condition, or what they loop over, cannot be evaluated: they fail as a step that ran, and what they guard is
//! never done.

use slipway_model::status::Status;
use slipway_world::World;
use slipway_world::yaml::{
    ROLL_BACK, beside, gate, group, looped, on_failure, pipeline, script, stage, wait, with_gate,
};

fn strategy(action: &str) -> String {
    match action {
        "" => String::new(),
        action => on_failure(action),
    }
}

/// A stage of `a`, a guarded step with this failure strategy, and `c`.
async fn guarded(action: &str, condition: &str) -> (String, Status, Vec<String>) {
    let when = format!("when:\n  stageStatus: Success\n  condition: {condition}\n");
    let more = when + &strategy(action);
    around(&script("guarded", "ok", &more)).await
}

/// A stage of `a`, these nodes, and `c`.
async fn around(nodes: &str) -> (String, Status, Vec<String>) {
    let world = World::new().await;
    let steps = script("a", "ok", "") + nodes + &script("c", "ok", "");
    let undo = script("undo", "ok", "");
    let text = pipeline(&[stage("deploy", &steps, &undo, ROLL_BACK)]);
    world.apply(&text).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let story = world.story(&run).await;
    world.assert_clean(&run.id).await;
    let done = world.deeds.list();
    let steps = done.iter().filter_map(|task| {
        let step = task.rsplit('.').nth(1)?;
        Some(step.to_owned())
    });
    (story, run.status, steps.collect())
}

const NOWHERE: &str = "<+execution.steps.nowhere.output.outputVariables.X> == \"1\"";

#[tokio::test(start_paused = true)]
async fn its_failure_strategies_answer_and_the_guarded_step_never_runs() {
    let ask =
        "{type: ManualIntervention, spec: {timeout: 1h, onTimeout: {action: {type: Ignore}}}}";
    let retry = "{type: Retry, spec: {retryCount: 2, retryIntervals: [1m], onRetryFailure: {action: {type: MarkAsFailure}}}}";
    for (action, status, done) in [
        ("", Status::Failed, vec!["a", "undo"]),
        (retry, Status::Failed, vec!["a"]),
        ("{type: Ignore}", Status::IgnoreFailed, vec!["a", "c"]),
        ("{type: MarkAsSuccess}", Status::Success, vec!["a", "c"]),
        ("{type: Abort}", Status::Aborted, vec!["a"]),
        (ask, Status::IgnoreFailed, vec!["a", "c"]),
    ] {
        let (story, ended, steps) = guarded(action, NOWHERE).await;
        assert_eq!(ended, status, "{action}: {story}");
        assert_eq!(steps, done, "{action}: {story}");
    }
    let (story, ..) = guarded(retry, NOWHERE).await;
    assert!(story.contains("guarded #2 Failed"), "{story}");
}

#[tokio::test(start_paused = true)]
async fn another_attempt_asks_its_condition_again() {
    let retry = "{type: Retry, spec: {retryCount: 2, retryIntervals: [1m], onRetryFailure: {action: {type: MarkAsFailure}}}}";
    // The counter of attempts is known from the second attempt on.
    for (condition, done) in [
        (
            "<+execution.steps.guarded.retryCount> == 0",
            vec!["a", "guarded", "c"],
        ),
        ("<+execution.steps.guarded.retryCount> == 9", vec!["a", "c"]),
    ] {
        let (story, ended, steps) = guarded(retry, condition).await;
        assert_eq!(ended, Status::Success, "{story}");
        assert_eq!(steps, done, "{story}");
    }
}

/// A step group with these lines of its own.
fn group_with(steps: &[String], lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    group("guarded", steps) + &lines
}

#[tokio::test(start_paused = true)]
async fn groups_and_loops_ask_their_failure_strategies_too() {
    let ask =
        "{type: ManualIntervention, spec: {timeout: 1h, onTimeout: {action: {type: Ignore}}}}";
    let again = "{type: RetryStepGroup, spec: {retryCount: 2, retryIntervals: [1m], onRetryFailure: {action: {type: MarkAsFailure}}}}";
    let retry = "{type: Retry, spec: {retryCount: 2, retryIntervals: [1m], onRetryFailure: {action: {type: MarkAsFailure}}}}";
    let when = format!("when:\n  stageStatus: Success\n  condition: {NOWHERE}\n");
    let inside = [script("inner", "ok", "")];
    let of_group = |action: &str| group_with(&inside, &(when.clone() + &strategy(action)));
    let of_loop = |action: &str| {
        looped(
            &script("guarded", "ok", &strategy(action)),
            "{repeat: {items: '<+execution.steps.nowhere.output.outputVariables.X>.split(\",\")'}}",
        )
    };
    for (action, status, done) in [
        ("", Status::Failed, vec!["a", "undo"]),
        ("{type: StageRollback}", Status::Failed, vec!["a", "undo"]),
        ("{type: MarkAsFailure}", Status::Failed, vec!["a"]),
        ("{type: Ignore}", Status::IgnoreFailed, vec!["a", "c"]),
        ("{type: MarkAsSuccess}", Status::Success, vec!["a", "c"]),
        ("{type: Abort}", Status::Aborted, vec!["a"]),
        (ask, Status::IgnoreFailed, vec!["a", "c"]),
    ] {
        for nodes in [of_group(action), of_loop(action)] {
            let (story, ended, steps) = around(&nodes).await;
            assert_eq!(ended, status, "{action}: {story}");
            assert_eq!(steps, done, "{action}: {story}");
        }
    }
    for nodes in [of_group(again), of_group(retry), of_loop(retry)] {
        let (story, ..) = around(&nodes).await;
        assert!(story.contains("guarded #2 Failed"), "{story}");
    }
    // It is a group of its own, and nothing of it ran.
    let back = "{type: StepGroupRollback}";
    let (story, ended, steps) = around(&of_group(back)).await;
    assert_eq!(
        (ended, steps),
        (Status::Failed, vec!["a".to_owned()]),
        "{story}"
    );
    let (story, ..) = around(&of_loop("")).await;
    insta::assert_snapshot!(story, @r#"
    run Failed: Step guarded: The loop of stages.deploy.spec.execution.steps.guarded: what it goes over is not known: `<+<+execution.steps.nowhere.output.outputVariables.X>.split(",")>` cannot be evaluated: `execution.steps.nowhere.output.outputVariables.X` is not defined here; check its spelling and that it exists before this point. The stage was rolled back cleanly.
    deploy Failed: Step guarded: The loop of stages.deploy.spec.execution.steps.guarded: what it goes over is not known: `<+<+execution.steps.nowhere.output.outputVariables.X>.split(",")>` cannot be evaluated: `execution.steps.nowhere.output.outputVariables.X` is not defined here; check its spelling and that it exists before this point. The stage was rolled back cleanly.
    deploy.rollbackSteps.undo #0 Success
    deploy.steps.a #0 Success
    deploy.steps.guarded #0 Failed
    "#);
}

#[tokio::test(start_paused = true)]
async fn what_is_undecided_in_a_group_is_answered_by_that_group() {
    let undecided = script(
        "inner",
        "ok",
        &format!("when:\n  stageStatus: Success\n  condition: {NOWHERE}\n"),
    );
    let nodes = [script("first", "ok", ""), group("deep", &[undecided])];
    let again = "{type: RetryStepGroup, spec: {retryCount: 1, retryIntervals: [1m], onRetryFailure: {action: {type: Ignore}}}}";
    let (story, ended, steps) = around(&group_with(&nodes, &strategy(again))).await;
    assert_eq!(ended, Status::IgnoreFailed, "{story}");
    assert_eq!(steps, ["a", "first", "first", "c"], "{story}");
}

/// Who waits for a place in it is told at once.
#[tokio::test(start_paused = true)]
async fn nobody_waits_at_a_barrier_for_what_is_undecided() {
    let when = format!("when:\n  stageStatus: Success\n  condition: {NOWHERE}\n");
    for (action, status) in [
        ("{type: Ignore}", Status::IgnoreFailed),
        ("{type: MarkAsFailure}", Status::Failed),
    ] {
        let inside = [gate("there", "1d")];
        let undecided = group_with(&inside, &(when.clone() + &strategy(action)));
        let steps = beside(&[gate("here", "1d"), wait("late", "1h"), undecided]);
        let world = World::new().await;
        let text = with_gate(&pipeline(&[stage("deploy", &steps, "", "")]));
        world.apply(&text).await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let story = world.story(&run).await;
        assert_eq!(run.status, status, "{story}");
        let here = if status.is_good() {
            "Success"
        } else {
            "Failed"
        };
        assert!(story.contains(&format!("here #0 {here}")), "{story}");
        let spent = (run.ended_ms.unwrap_or_default() - run.started_ms) / 3_600_000;
        assert_eq!(spent, 1, "{story}");
        world.assert_clean(&run.id).await;
    }
}

/// What brings forth its turns failed, and so none of them would run.
#[tokio::test(start_paused = true)]
async fn a_loop_behind_a_failure_is_skipped() {
    let bad = script("say", "fail", &strategy("{type: MarkAsFailure}"));
    let each = looped(
        &script("each", "ok", &strategy("{type: Abort}")),
        "{repeat: {items: '<+execution.steps.say.output.outputVariables.word>.split(\",\")'}}",
    );
    let (story, ended, steps) = around(&(bad + &each)).await;
    assert_eq!(ended, Status::Failed, "{story}");
    assert_eq!(steps, ["a", "say"], "{story}");
    assert!(story.contains("each #0 Skipped"), "{story}");
}
