//! Runs that roll others back are no runs to repeat, and runs that were retried are rolled back as a whole.

use slipway_engine::rerun::Rerun;
use slipway_engine::retry::RetryRun;
use slipway_engine::start::StartRun;
use slipway_world::by_hand;

use super::*;

fn retry(run: &RunId, inputs: Option<String>) -> RetryRun {
    RetryRun {
        run: run.clone(),
        pipeline: EntityId::new("release"),
        stages: Vec::new(),
        all: false,
        inputs_yaml: inputs,
        principal: PrincipalId::new("sam"),
        notes: String::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollback_is_not_retried_and_not_rerun() {
    let (world, first) = ran(&release("fail")).await;
    let run = world.undo(undo(&first.id)).await.expect("it succeeded");
    let run = world.finish(&run.id).await;
    assert_eq!(run.status, Status::Failed);
    let why = refusal(world.retry(retry(&run.id, None)).await, &first.id);
    insta::assert_snapshot!(why.replace(run.id.as_str(), "U"), @"run U is the rollback of run R: ask for that rollback again, not for a retry");
    let rerun = Rerun {
        run: run.id.clone(),
        pipeline: EntityId::new("release"),
        inputs_yaml: None,
        chosen: None,
        principal: PrincipalId::new("sam"),
        notes: String::new(),
    };
    let why = refusal(world.rerun(rerun).await, &first.id);
    insta::assert_snapshot!(why.replace(run.id.as_str(), "U"), @"run U is the rollback of run R: rerun that one, or run the pipeline");
}

#[tokio::test(start_paused = true)]
async fn what_a_retry_took_over_is_rolled_back_with_it() {
    let world = world().await;
    let what = |value: &str| {
        Some(format!(
            "pipeline:\n  identifier: release\n  variables:\n    - name: what\n      type: String\n      value: {value}\n"
        ))
    };
    let undoes = wait("pause", "10s") + &script("undo", "ok", "");
    let asks = script("deploy", "<+pipeline.variables.what>", "");
    let stages = [
        deployment(&stage("a", &script("deploy", "ok", ""), &undoes, "")),
        deployment(&stage("b", &asks, &undoes, "")),
    ];
    let head =
        "  variables:\n    - name: what\n      type: String\n      value: <+input>\n  stages:\n";
    world
        .apply(&pipeline(&stages).replacen("  stages:\n", head, 1))
        .await;
    let start = StartRun {
        inputs_yaml: what("fail"),
        ..by_hand("release")
    };
    let first = world.try_start(start).await.expect("it starts").id;
    world.finish(&first).await;
    let second = world.retry(retry(&first, what("ok"))).await;
    let second = world.finish(&second.expect("it failed").id).await;
    assert_eq!(second.status, Status::Success);

    let run = world.undo(undo(&second.id)).await.expect("it succeeded");
    let run = world.finish(&run.id).await;
    insta::assert_snapshot!(told(&world, &run).await, @"
    run Success
    a Success
    b Success
    a.rollbackSteps.pause #0 Success
    a.rollbackSteps.undo #0 Success
    b.rollbackSteps.pause #0 Success
    b.rollbackSteps.undo #0 Success
    ");
    assert_eq!(order(&world, &run).await, ["b", "a"]);
    let origin = run.undoes().expect("a rollback");
    let doers: Vec<_> = origin.kept.iter().map(|(_, doer)| doer.clone()).collect();
    assert_eq!(doers, [first, second.id]);
    world.assert_clean(&run.id).await;
}
