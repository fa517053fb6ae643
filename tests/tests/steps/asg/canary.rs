//! `AsgCanaryDeploy` and `AsgCanaryDelete`.

use serde_json::{Value, json};

use super::{Groups, configuration, template};
use crate::world::manifest;

const DEPLOY: &str = "AsgCanaryDeploy";
const DELETE: &str = "AsgCanaryDelete";

fn spec(kind: &str, field: &str, number: u32) -> Value {
    json!({"instanceSelection": {"type": kind, "spec": {field: number}}})
}

#[tokio::test(start_paused = true)]
async fn a_canary_comes_beside_the_group_and_goes_again() {
    let mut groups = Groups::new().await.beside().await;
    groups.deploys("ami-1", 4);
    groups.world.run("AsgRollingDeploy", json!({})).await.done();
    groups.world.next_run();
    groups.deploys("ami-2", 4);
    let before = groups.world.sandbox.calls().len();
    let outputs = groups
        .world
        .run(DEPLOY, spec("Percentage", "percentage", 30))
        .await
        .done();
    assert_eq!(
        outputs["output"]["asg"]["autoScalingGroupName"],
        "web__Canary"
    );
    assert_eq!(
        groups.account().await,
        "web v1 4/4 of v1, web__Canary v1 2/2 of v1 | web web__Canary"
    );
    assert_eq!(groups.counted().await, "4 web v1, 2 web__Canary v1");
    let deployed = groups.world.trace(before).replace('\n', " ");
    let deployed = deployed
        .split(" DescribePolicies")
        .next()
        .unwrap_or_default()
        .to_owned();
    insta::assert_snapshot!(deployed, @"DescribeAutoScalingGroups DescribeLaunchTemplates CreateLaunchTemplate DescribeAutoScalingGroups CreateAutoScalingGroup DescribeAutoScalingGroups");
    let before = groups.world.sandbox.calls().len();
    groups.world.run(DELETE, json!({})).await.done();
    insta::assert_snapshot!(groups.world.trace(before).replace('\n', " "), @"DescribeAutoScalingGroups DeleteAutoScalingGroup DescribeAutoScalingGroups DeleteLaunchTemplate DescribeAutoScalingGroups");
    assert_eq!(groups.account().await, "web v1 4/4 of v1 | web");
    assert_eq!(groups.counted().await, "4 web v1");
    // What comes after is the rolling deployment.
    groups.world.run("AsgRollingDeploy", json!({})).await.done();
    groups.quiet().await;
    assert_eq!(groups.account().await, "web v2 4/4 of v2 | web");
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_canary_is_replaced_and_a_foreign_group_is_not() {
    let mut groups = Groups::new().await.beside().await;
    groups
        .world
        .run(DEPLOY, spec("Count", "count", 1))
        .await
        .done();
    groups.world.next_run();
    groups.deploys("ami-2", 2);
    groups
        .world
        .run(DEPLOY, spec("Count", "count", 3))
        .await
        .done();
    assert_eq!(
        groups.account().await,
        "web__Canary v2 3/3 of v2 | web__Canary"
    );
    let tag = json!({"Tags": [{"ResourceId": "web__Canary", "ResourceType": "auto-scaling-group", "Key": "slipway-canary-of"}]});
    groups.scaling("DeleteTags", tag).await;
    let failure = groups.world.run(DELETE, json!({})).await.failed();
    assert!(
        failure.message.contains("It is not touched"),
        "{}",
        failure.message
    );
    groups.world.next_run();
    let failure = groups
        .world
        .run(DEPLOY, spec("Count", "count", 1))
        .await
        .failed();
    assert!(
        failure.message.contains("It is not touched"),
        "{}",
        failure.message
    );
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_fails_is_told_and_deleted() {
    let mut groups = Groups::new().await;
    groups.deploys("ami-0dead", 2);
    let failure = groups
        .world
        .run(DEPLOY, spec("Count", "count", 1))
        .await
        .failed();
    assert!(
        failure.message.contains("health check"),
        "{}",
        failure.message
    );
    groups.world.run(DELETE, json!({})).await.done();
    assert_eq!(groups.account().await, " | ");
    groups.world.next_run();
    let outputs = groups.world.run(DELETE, json!({})).await.done();
    assert_eq!(outputs, json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_name_at_the_limit_leaves_no_room_for_the_suffix() {
    let groups = Groups::new().await;
    let mut spec = spec("Count", "count", 1);
    spec["asgName"] = json!("n".repeat(250));
    let failure = groups.world.run(DEPLOY, spec).await.failed();
    assert!(
        failure.message.contains("has 258 characters"),
        "{}",
        failure.message
    );
    assert_eq!(groups.world.count("CreateLaunchTemplate"), 0);
}

/// The group's health check grace period from now on.
fn graced(groups: &mut Groups, image: &str, seconds: u32) {
    let mut configuration = configuration(2);
    configuration["HealthCheckGracePeriod"] = json!(seconds);
    groups.world.manifests = vec![
        manifest("AsgLaunchTemplate", &template(image)),
        manifest("AsgConfiguration", &configuration),
    ];
}

#[tokio::test(start_paused = true)]
async fn instances_that_are_replaced_as_fast_as_they_are_looked_at_are_not_healthy() {
    for image in ["ami-00bad", "ami-0dead"] {
        let mut groups = Groups::new().await.beside().await;
        groups.deploys(image, 4);
        let failure = groups
            .world
            .run(DEPLOY, spec("Count", "count", 3))
            .await
            .failed();
        let message = failure.message;
        assert!(message.contains("health check"), "{image}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn aws_judges_instances_after_the_grace_period_only() {
    let mut groups = Groups::new().await;
    graced(&mut groups, "ami-00bad", 60);
    let failure = groups
        .world
        .run(DEPLOY, spec("Count", "count", 2))
        .await
        .failed();
    let message = failure.message;
    assert!(message.contains("health check"), "{message}");
    groups.world.run(DELETE, json!({})).await.done();
    groups.world.next_run();
    graced(&mut groups, "ami-1", 60);
    let begun = groups.world.clock.now();
    groups
        .world
        .run(DEPLOY, spec("Count", "count", 2))
        .await
        .done();
    let took = groups.world.clock.now().duration_since(begun).as_secs();
    assert!((70..150).contains(&took), "{took}");
    let log = groups.world.log(DEPLOY, "Deploy").await;
    assert!(log.contains("HealthCheckGracePeriod of 60 s"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_grace_period_beyond_the_timeout_is_not_waited_out() {
    let mut groups = Groups::new().await;
    graced(&mut groups, "ami-1", 3600);
    let begun = groups.world.clock.now();
    groups
        .world
        .run(DEPLOY, spec("Count", "count", 1))
        .await
        .done();
    // The timeout of the steps of these tests is 10 minutes.
    let took = groups.world.clock.now().duration_since(begun).as_secs();
    assert!((400..550).contains(&took), "{took}");
    let log = groups.world.log(DEPLOY, "Deploy").await;
    assert!(log.contains("give the step a longer `timeout`"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_canary_of_an_aborted_run_is_told_by_the_next_one() {
    let mut groups = Groups::new().await;
    groups.world.run("AsgRollingDeploy", json!({})).await.done();
    groups.world.next_run();
    groups.deploys("ami-0bad", 2);
    let time = std::time::Duration::from_secs(90);
    let one = spec("Count", "count", 1);
    let ended = tokio::time::timeout(time, groups.world.run(DEPLOY, one.clone())).await;
    assert!(ended.is_err(), "{ended:?}");
    let left = groups.world.abort(DEPLOY, one).await.expect_err("it stays");
    let command = "`aws autoscaling delete-auto-scaling-group --force-delete --region eu-west-1 --auto-scaling-group-name \
                   web__Canary`";
    let told = format!(
        "Canary Auto Scaling group web__Canary in eu-west-1 (infrastructure prod_cluster) stays: the next AsgCanaryDeploy of \
         this group deletes it, or {command}."
    );
    assert_eq!(left.message, told);
    groups.balance(false).await;
    let balancer = groups.balancer.clone().expect("a load balancer");
    for (step, spec) in [
        ("AsgBlueGreenDeploy", balancer.swap_spec()),
        ("AsgSetup", json!({"resizeStrategy": "resize_new_first"})),
    ] {
        groups.world.next_run();
        groups.deploys("ami-2", 2);
        groups.world.run(step, spec).await.done();
        let log = groups.world.log(step, "Prepare rollback data").await;
        assert!(log.contains(command), "{step}: {log}");
    }
    for left in [true, false] {
        groups.world.next_run();
        groups.deploys("ami-2", 2);
        let warmup = json!({"instanceWarmup": 0});
        groups.world.run("AsgRollingDeploy", warmup).await.done();
        let log = groups
            .world
            .log("AsgRollingDeploy", "Prepare rollback data")
            .await;
        assert_eq!(log.contains("web__Canary"), left, "{log}");
        assert_eq!(log.contains(command), left, "{log}");
        let gone = json!({"AutoScalingGroupName": "web__Canary", "ForceDelete": true});
        if left {
            groups.scaling("DeleteAutoScalingGroup", gone).await;
            groups.quiet().await;
        }
    }
}
