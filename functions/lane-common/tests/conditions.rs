//! Steps whose condition cannot be evaluated: they fail as a step that ran, and what they guard is never done.

use slipway_model::status::Status;
use slipway_world::World;
use slipway_world::yaml::{ROLL_BACK, pipeline, script, stage};

/// A stage of `a`, a guarded step with this failure strategy, and `c`.
async fn guarded(action: &str, condition: &str) -> (String, Status, Vec<String>) {
    let world = World::new().await;
    let strategy = match action {
        "" => String::new(),
        action => format!(
            "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action: {action}\n"
        ),
    };
    let when = format!("when:\n  stageStatus: Success\n  condition: {condition}\n");
    let steps = [
        script("a", "ok", ""),
        script("guarded", "ok", &format!("{when}{strategy}")),
        script("c", "ok", ""),
    ];
    let undo = script("undo", "ok", "");
    let text = pipeline(&[stage("deploy", &steps.concat(), &undo, ROLL_BACK)]);
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
