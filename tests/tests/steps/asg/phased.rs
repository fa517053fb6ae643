//! `AsgSetup`, `AsgPhasedDeploy` and `AsgRollback`; `AsgScale` and `AsgSteadyState`.

use serde_json::{Value, json};
use slipway_sandbox::{Fault, FaultEffect};

use super::Groups;

const SETUP: &str = "AsgSetup";
const DEPLOY: &str = "AsgPhasedDeploy";
const ROLLBACK: &str = "AsgRollback";

fn setup(strategy: &str) -> Value {
    json!({
        "asgName": "web", "resizeStrategy": strategy,
        "instances": {"type": "Fixed", "spec": {"min": 1, "max": 6, "desired": 4}},
    })
}

fn percent(percentage: u32) -> Value {
    json!({"instanceSelection": {"type": "Percentage", "spec": {"percentage": percentage}}})
}

/// A whole deployment; the calls of each step.
async fn deploy(groups: &mut Groups, image: &str) -> String {
    groups.world.next_run();
    groups.deploys(image, 4);
    groups.scales("more");
    let mut traces = Vec::new();
    for (step, spec) in [(SETUP, setup("resize_new_first")), (DEPLOY, percent(100))] {
        let before = groups.world.sandbox.calls().len();
        groups.world.run(step, spec).await.done();
        traces.push(format!(
            "{step}\n{}",
            groups.world.trace(before).replace('\n', " ")
        ));
    }
    traces.join("\n")
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_the_first_the_second_and_the_third_deployment() {
    let mut groups = Groups::new().await.beside().await;
    let first = deploy(&mut groups, "ami-1").await;
    assert_eq!(
        groups.account().await,
        "web__1 v1 4/4 of v1 more night | web__1"
    );
    insta::assert_snapshot!(first, @"
    AsgSetup
    DescribeAutoScalingGroups DescribeLaunchTemplates CreateLaunchTemplate DescribeAutoScalingGroups CreateAutoScalingGroup
    AsgPhasedDeploy
    DescribeAutoScalingGroups UpdateAutoScalingGroup DescribeAutoScalingGroups DescribePolicies DescribeScheduledActions PutScalingPolicy PutScheduledUpdateGroupAction DescribeAutoScalingGroups
    ");
    let second = deploy(&mut groups, "ami-2").await;
    assert_eq!(
        groups.account().await,
        "web__1 v1 0/0 of , web__2 v1 4/4 of v1 more night | web__1 web__2"
    );
    insta::assert_snapshot!(second, @"
    AsgSetup
    DescribeAutoScalingGroups DescribeLaunchTemplates DescribePolicies DescribeScheduledActions DescribeLaunchTemplates CreateLaunchTemplate DescribeAutoScalingGroups CreateAutoScalingGroup
    AsgPhasedDeploy
    DescribeAutoScalingGroups UpdateAutoScalingGroup DescribeAutoScalingGroups DescribePolicies DescribeScheduledActions DeletePolicy DeleteScheduledAction DescribeAutoScalingGroups UpdateAutoScalingGroup DescribeAutoScalingGroups DescribePolicies DescribeScheduledActions PutScalingPolicy PutScheduledUpdateGroupAction DescribeAutoScalingGroups
    ");
    let third = deploy(&mut groups, "ami-3").await;
    assert_eq!(
        groups.account().await,
        "web__2 v1 0/0 of , web__3 v1 4/4 of v1 more night | web__2 web__3"
    );
    insta::assert_snapshot!(third, @"
    AsgSetup
    DescribeAutoScalingGroups DescribeLaunchTemplates DescribePolicies DescribeScheduledActions DescribeLaunchTemplates DescribeAutoScalingGroups DeleteAutoScalingGroup DescribeAutoScalingGroups DeleteLaunchTemplate CreateLaunchTemplate DescribeAutoScalingGroups CreateAutoScalingGroup
    AsgPhasedDeploy
    DescribeAutoScalingGroups UpdateAutoScalingGroup DescribeAutoScalingGroups DescribePolicies DescribeScheduledActions DeletePolicy DeleteScheduledAction DescribeAutoScalingGroups UpdateAutoScalingGroup DescribeAutoScalingGroups DescribePolicies DescribeScheduledActions PutScalingPolicy PutScheduledUpdateGroupAction DescribeAutoScalingGroups
    ");
    assert_eq!(groups.counted().await, "4 web__3 v1");
}

#[tokio::test(start_paused = true)]
async fn instances_move_in_phases_and_back() {
    let mut groups = Groups::new().await.beside().await;
    deploy(&mut groups, "ami-1").await;
    let before = groups.account().await;
    for strategy in ["resize_new_first", "downsize_old_first"] {
        groups.world.next_run();
        groups.deploys("ami-2", 4);
        groups.world.run(SETUP, setup(strategy)).await.done();
        groups.world.attempt(DEPLOY, percent(25), 0).await.done();
        assert_eq!(
            groups.account().await,
            "web__1 v1 3/3 of v1, web__2 v1 1/1 of v1 | web__1 web__2"
        );
        assert_eq!(groups.counted().await, "3 web__1 v1, 1 web__2 v1");
        let log = groups.world.log(DEPLOY, "Deploy").await;
        let first = log.lines().find(|line| line.starts_with("Resizing"));
        let expected = match strategy {
            "resize_new_first" => "Resizing Asg web__2 to 1 instances",
            _ => "Resizing Asg web__1 to 3 instances",
        };
        assert_eq!(first, Some(expected));
        groups.world.run(ROLLBACK, json!({})).await.done();
        groups.quiet().await;
        assert_eq!(groups.account().await, before);
        assert_eq!(groups.counted().await, "4 web__1 v1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_never_works_gives_its_instances_back() {
    let mut groups = Groups::new().await;
    deploy(&mut groups, "ami-1").await;
    let before = groups.account().await;
    groups.world.next_run();
    groups.deploys("ami-0dead", 4);
    groups
        .world
        .run(SETUP, setup("downsize_old_first"))
        .await
        .done();
    let failure = groups.world.run(DEPLOY, percent(50)).await.failed();
    assert!(
        failure.message.contains("health check"),
        "{}",
        failure.message
    );
    groups.world.run(ROLLBACK, json!({})).await.done();
    groups.quiet().await;
    assert_eq!(groups.account().await, before);
    groups.world.next_run();
    groups.world.run(ROLLBACK, json!({})).await.done();
    let failure = groups.world.run(DEPLOY, percent(50)).await.failed();
    assert!(
        failure.message.contains("no AsgSetup step"),
        "{}",
        failure.message
    );
}

#[tokio::test(start_paused = true)]
async fn a_group_is_scaled_within_its_bounds() {
    let mut groups = Groups::new().await.beside().await;
    groups.world.run("AsgRollingDeploy", json!({})).await.done();
    let count = |number: u32| json!({"asgName": "web", "instanceSelection": {"type": "Count", "spec": {"count": number}}});
    for (spec, expected) in [(count(4), "4/4"), (percent(50), "2/2")] {
        groups.world.next_run();
        let outputs = groups.world.run("AsgScale", spec).await.done();
        assert!(groups.account().await.contains(expected));
        assert_eq!(outputs["output"]["asg"]["autoScalingGroupName"], "web");
    }
    assert_eq!(groups.counted().await, "2 web v1");
    groups.world.next_run();
    groups.world.sandbox.faults().add(Fault {
        service: None,
        operation: Some("SetDesiredCapacity".to_owned()),
        skip: 0,
        count: Some(1),
        effect: FaultEffect::AccessDenied,
    });
    groups.world.run("AsgScale", count(3)).await.failed();
    // Nothing is left of what AWS refused.
    assert_eq!(groups.world.kept("AsgScale").await, Value::Null);
    groups.world.next_run();
    groups.world.run("AsgScale", count(3)).await.done();
    assert_eq!(groups.world.kept("AsgScale").await["has"], 3);
    groups.world.next_run();
    let failure = groups.world.run("AsgScale", count(9)).await.failed();
    assert!(
        failure.message.contains("at least 1 and at most 6"),
        "{}",
        failure.message
    );
    groups.world.next_run();
    let mut nobody = count(2);
    nobody["asgName"] = json!("cart");
    let failure = groups.world.run("AsgScale", nobody).await.failed();
    assert!(
        failure.message.contains("does not exist"),
        "{}",
        failure.message
    );
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_refresh_is_waited_for() {
    let mut groups = Groups::new().await;
    groups.world.run("AsgRollingDeploy", json!({})).await.done();
    groups.world.next_run();
    groups.deploys("ami-2", 2);
    let spec = json!({"skipInstanceTermination": true, "instanceWarmup": 60,
        "minimumHealthyPercentage": 100, "maximumHealthyPercentage": 200});
    groups.world.run("AsgRollingDeploy", spec).await.done();
    assert_eq!(groups.account().await, "web v2 4/2 of v1+v2 | web");
    let outputs = groups
        .world
        .run("AsgSteadyState", json!({"pollingInterval": ""}))
        .await
        .done();
    assert!(outputs["output"]["asg"]["instanceRefreshId"].is_string());
    groups.quiet().await;
    assert_eq!(groups.account().await, "web v2 2/2 of v2 | web");
    // Canaries have no refresh.
    groups.world.next_run();
    let canary = json!({"instanceSelection": {"type": "Count", "spec": {"count": 1}}});
    groups.world.run("AsgCanaryDeploy", canary).await.done();
    let spec = json!({"asgName": "web__Canary", "pollingInterval": "30s"});
    let failure = groups.world.run("AsgSteadyState", spec).await.failed();
    assert!(
        failure.message.contains("no instance refresh"),
        "{}",
        failure.message
    );
    let step = slipway_steps::find("AsgSteadyState").expect("a step");
    assert_eq!(step.check(&json!({"pollingInterval": "soon"})).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_instance_is_given_up_for_some_that_are_replaced_all_the_time() {
    let mut groups = Groups::new().await.beside().await;
    deploy(&mut groups, "ami-1").await;
    let before = groups.account().await;
    groups.world.next_run();
    groups.deploys("ami-00bad", 4);
    let setup = setup("resize_new_first");
    groups.world.run(SETUP, setup).await.done();
    let failure = groups.world.run(DEPLOY, percent(50)).await.failed();
    let message = failure.message;
    assert!(message.contains("health check"), "{message}");
    let account = groups.account().await;
    assert!(account.contains("web__1 v1 4/4 of v1"), "{account}");
    groups.world.run(ROLLBACK, json!({})).await.done();
    groups.quiet().await;
    assert_eq!(groups.account().await, before);
}
