//! What failures that count as none, and runs that are aborted, leave in the account: each is told.

use serde_json::json;
use slipway_engine::signal::warnings;

use super::*;

/// Scales the service by hand.
async fn scaled(shop: &Shop) {
    let target = |mut request: Value| {
        request["ServiceNamespace"] = json!("ecs");
        request["ResourceId"] = json!("service/main/shop");
        request["ScalableDimension"] = json!("ecs:service:DesiredCount");
        request
    };
    let bounds = target(json!({"MinCapacity": 1, "MaxCapacity": 8}));
    shop.0.scaling("RegisterScalableTarget", &bounds).await;
    let policy = target(json!({
        "PolicyName": "busy", "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 60, "PredefinedMetricSpecification":
            {"PredefinedMetricType": "ECSServiceAverageCPUUtilization"}},
    }));
    let put = shop.0.scaling("PutScalingPolicy", &policy).await;
    assert!(put["PolicyARN"].is_string(), "{put}");
}

/// A rolling deployment whose failures are answered so.
fn answering(id: &str, action: &str) -> String {
    let steps = wait("pause", "<+pipeline.variables.pause>") + &step("rollout", "EcsRollingDeploy");
    let answer = ROLL_BACK.replace("StageRollback", action);
    let ship = stage(
        "ship",
        &steps,
        &step("rollback", "EcsRollingRollback"),
        &answer,
    );
    let whole = with_inputs(&pipeline(&[deployment(&ship)]));
    whole.replace(": release\n", &format!(": {id}\n"))
}

/// What a run warns of.
fn warned(run: &RunRecord) -> String {
    let all = warnings(run);
    let all: Vec<&str> = all.iter().map(|warning| warning.says.as_str()).collect();
    all.join("\n")
}

#[tokio::test(start_paused = true)]
async fn a_service_that_lost_its_scaling_is_told_where_nobody_puts_it_on_again() {
    let shop = Shop::new().await;
    shop.deploy("1").await;
    let missing = "Service shop in cluster main in us-east-1 (infrastructure cluster) is without its scalable target and \
                   scaling policies busy, which it had with shop:";
    for (id, action, status) in [
        ("ignores", "Ignore", Status::IgnoreFailed),
        ("pretends", "MarkAsSuccess", Status::Success),
        ("leaves", "MarkAsFailure", Status::Failed),
    ] {
        shop.0.apply(&answering(id, action)).await;
        scaled(&shop).await;
        let run = shop.start_of(id, "missing", "1s").await;
        let run = shop.0.finish(&run).await;
        assert_eq!(run.status, status, "{id}: {}", told(&shop.0, &run).await);
        let failed = status == Status::Failed;
        let warned_of = warned(&run);
        let told = format!("When stage ship ended: {missing}");
        assert_eq!(warned_of.contains(&told), !failed, "{id}: {warned_of}");
        let left = run.failure.and_then(|failure| failure.left_behind);
        let left = left.unwrap_or_default();
        assert_eq!(left.contains(missing), failed, "{id}: {left}");
        // What works is deployed without anything to tell of that.
        let good = shop.deploy("1").await;
        assert!(!warned(&good).contains(missing), "{}", warned(&good));
    }
    // Who rolls back puts it on again.
    scaled(&shop).await;
    let run = shop.deploy("missing").await;
    assert_eq!(
        run.failure.as_ref().and_then(|one| one.left_behind.clone()),
        None
    );
    assert!(!warned(&run).contains(missing), "{}", warned(&run));
}

#[tokio::test(start_paused = true)]
async fn a_first_run_that_was_only_a_canary_is_taken_back() {
    let shop = Shop::new().await;
    shop.0
        .apply(&of_canaries("canary", &["EcsCanaryDeploy"]))
        .await;
    let only = shop.start_of("canary", "1", "1s").await;
    let only = shop.0.finish(&only).await;
    assert_eq!(
        (only.status, shop.canary().await),
        (Status::Success, json!(1))
    );
    let run = shop.roll_back(&only.id).await;
    assert_eq!(run.status, Status::Success, "{}", told(&shop.0, &run).await);
    assert_eq!(shop.canary().await, Value::Null);
    shop.0.assert_clean(&run.id).await;
    // What is deployed after it is the first.
    let one = shop.deploy("1").await;
    let why = refusal(shop.0.undo(undo(&one.id)).await, &one.id);
    assert!(why.contains("was the first that deployed"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn the_canary_of_an_aborted_run_is_told_until_somebody_deletes_it() {
    let shop = Shop::new().await;
    let steps = step("canary", "EcsCanaryDeploy") + &wait("watch", "1h");
    let ship = stage(
        "ship",
        &steps,
        &step("delete", "EcsCanaryDelete"),
        ROLL_BACK,
    );
    let slow = with_inputs(&pipeline(&[deployment(&ship)]));
    shop.0.apply(&slow.replace(": release\n", ": slow\n")).await;
    shop.deploy("1").await;
    let aborted = shop.start_of("slow", "2", "1s").await;
    shop.0.runs.clock.sleep(Duration::from_secs(20 * 60)).await;
    let who = PrincipalId::new("kim");
    abort_run(&shop.0.runs, &aborted, &who)
        .await
        .expect("it runs");
    let run = shop.0.finish(&aborted).await;
    assert_eq!(
        (run.status, shop.canary().await),
        (Status::Aborted, json!(1))
    );
    let why = refusal(shop.0.undo(undo(&aborted)).await, &aborted);
    insta::assert_snapshot!(why, @"run R was aborted, and only runs that succeeded can be rolled back: an abort stops a run where it is, and no rollback step runs after it. Its failure says what it left; deploy the version that you want. It left canary service shopCanary in cluster main: the next EcsCanaryDelete of that service and environment deletes it, or `aws ecs delete-service --force --region us-east-1 --cluster main --service shopCanary`");
    let two = shop.deploy("2").await;
    let told = format!(
        "Canary service shopCanary in cluster main in us-east-1 (infrastructure cluster) stays, with shop:2: the next \
         EcsCanaryDelete or EcsCanaryDeploy of this service and environment deletes it, or `aws ecs delete-service --force \
         --region us-east-1 --cluster main --service shopCanary`. Run {aborted} left it, and no step of this stage deletes it."
    );
    assert!(warned(&two).contains(&told), "{}", warned(&two));
    let gone = json!({"cluster": "main", "service": "shopCanary", "force": true});
    shop.0.ecs("DeleteService", &gone).await;
    shop.0.runs.clock.sleep(Duration::from_secs(10 * 60)).await;
    let three = shop.deploy("3").await;
    assert!(!warned(&three).contains("shopCanary"), "{}", warned(&three));
}

/// Found by the simulation (seed 7443): the rollback steps had nothing that rolls back what was deployed, and the stage said
/// that it was rolled back cleanly.
#[tokio::test(start_paused = true)]
async fn what_no_rollback_step_undid_is_told() {
    let steps = step("rollout", "EcsRollingDeploy") + &wait("watch", "1m");
    let fails = step("rollout", "EcsRollingDeploy") + &script("check", "fail", "");
    let stays = "no EcsRollingRollback ran after EcsRollingDeploy rollout: what that changed stays, unless another step took \
                 it back";
    for (action, rollback) in [
        ("StageRollback", wait("look", "1s")),
        ("PipelineRollback", wait("look", "1s")),
        ("StageRollback", step("back", "EcsRollingRollback")),
        ("PipelineRollback", step("back", "EcsRollingRollback")),
    ] {
        let shop = Shop::new().await;
        shop.deploy("1").await;
        let undone = rollback.contains("EcsRollingRollback");
        let answer = ROLL_BACK.replace("StageRollback", action);
        let of = |steps: &str| {
            with_inputs(&pipeline(&[deployment(&stage(
                "ship", steps, &rollback, &answer,
            ))]))
        };
        shop.0
            .apply(&of(&fails).replace(": release\n", ": bare\n"))
            .await;
        let run = shop.start_of("bare", "2", "1s").await;
        let run = shop.0.finish(&run).await;
        let why = run.failure.clone().expect("it failed");
        let left = why.left_behind.clone().unwrap_or_default();
        let told = match action {
            "StageRollback" => left,
            _ => warned(&run),
        };
        assert_eq!(told.contains(stays), !undone, "{action}: {why:?} {told}");
        let cleanly = action == "StageRollback" && undone;
        assert_eq!(
            why.message.contains("rolled back cleanly"),
            cleanly,
            "{why:?}"
        );
        // What ends well has nothing to tell of.
        shop.0
            .apply(&of(&steps).replace(": release\n", ": bare\n"))
            .await;
        let run = shop.start_of("bare", "3", "1s").await;
        let run = shop.0.finish(&run).await;
        assert_eq!(
            (run.status, warned(&run).contains(stays)),
            (Status::Success, false)
        );
        shop.0.assert_clean(&run.id).await;
    }
}
