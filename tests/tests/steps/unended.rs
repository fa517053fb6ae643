//! Rollback steps that run into their timeout say what they leave.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_model::status::Failure;

use crate::asg::Groups;
use crate::world::{World, service_definition, task_definition};

/// Runs a step for some time, and stops it then as its timeout does.
async fn cut_off(world: &World, step: &str, seconds: u64) -> Failure {
    let time = Duration::from_secs(seconds);
    let ended = tokio::time::timeout(time, world.run(step, json!({}))).await;
    assert!(ended.is_err(), "{step} ended: {ended:?}");
    left(world, step).await
}

/// What the stopped step says.
async fn left(world: &World, step: &str) -> Failure {
    let stopped = world.abort(step, json!({})).await;
    let failure = stopped.expect_err("something is left");
    assert!(failure.message.contains("did not end"), "{failure:?}");
    failure
}

fn check(failure: Failure, parts: &[&str]) {
    let left = failure.left_behind.unwrap_or_default();
    for part in parts {
        assert!(left.contains(part), "{part} in {left}");
    }
}

/// Instances of a group wait for whoever this hook is for, who never answers.
async fn hold(groups: &Groups, name: &str) {
    let hook = json!({
        "AutoScalingGroupName": name, "LifecycleHookName": "mine", "HeartbeatTimeout": 3600,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING",
    });
    groups.scaling("PutLifecycleHook", hook).await;
}

#[tokio::test(start_paused = true)]
async fn a_group_whose_instances_wait_for_a_hook() {
    let mut groups = Groups::new().await.beside().await;
    let deploy = "AsgRollingDeploy";
    groups.world.run(deploy, json!({})).await.done();
    groups.world.next_run();
    groups.deploys("ami-2", 3);
    groups.world.run(deploy, json!({})).await.done();
    groups.quiet().await;
    hold(&groups, "web").await;
    let failure = cut_off(&groups.world, "AsgRollingRollback", 180).await;
    let parts = [
        "web with 2 instances of version 1",
        "wait for a lifecycle hook (the group has mine)",
        "(Pending:Wait)",
        " goes on by itself, to what was there; `aws autoscaling cancel-instance-refresh --auto-scaling-group-name web` ends it",
    ];
    check(failure, &parts);
    let log = groups.world.log("AsgRollingRollback", "Rollback").await;
    assert!(log.contains("(Pending:Wait)"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn blue_that_does_not_get_its_instances_back() {
    let mut groups = Groups::new().await.beside().await;
    groups.balance(false).await;
    let spec = groups.balancer.as_ref().map(|one| one.swap_spec());
    let spec = spec.expect("a load balancer");
    for image in ["ami-1", "ami-2"] {
        groups.world.next_run();
        groups.deploys(image, 2);
        let steps = [
            ("AsgBlueGreenDeploy", spec.clone()),
            ("AsgBlueGreenSwapService", json!({"downsizeOldAsg": true})),
        ];
        for (step, spec) in steps {
            groups.world.run(step, spec).await.done();
        }
    }
    groups.quiet().await;
    hold(&groups, "web__1").await;
    let failure = cut_off(&groups.world, "AsgBlueGreenRollback", 120).await;
    let parts = [
        "requests may not go to web__1 again",
        "web__2, created by this run, may still exist",
        "(Pending:Wait)",
    ];
    check(failure, &parts);
}

#[tokio::test(start_paused = true)]
async fn phases_that_do_not_go_back() {
    let mut groups = Groups::new().await.beside().await;
    groups.world.run("AsgRollingDeploy", json!({})).await.done();
    groups.world.next_run();
    groups.deploys("ami-2", 2);
    let setup = json!({
        "asgName": "web", "resizeStrategy": "resize_new_first",
        "instances": {"type": "Fixed", "spec": {"min": 1, "max": 6, "desired": 2}},
    });
    groups.world.run("AsgSetup", setup).await.done();
    let all = json!({"instanceSelection": {"type": "Percentage", "spec": {"percentage": 100}}});
    groups.world.run("AsgPhasedDeploy", all).await.done();
    hold(&groups, "web").await;
    let failure = cut_off(&groups.world, "AsgRollback", 120).await;
    let parts = [
        "web__1, created by this run, may still exist",
        "web with 2 instances of version 1",
        "(Pending:Wait)",
    ];
    check(failure, &parts);
}

#[tokio::test(start_paused = true)]
async fn canaries_that_are_not_gone_yet() {
    let groups = Groups::new().await;
    let one = json!({"instanceSelection": {"type": "Count", "spec": {"count": 1}}});
    groups.world.run("AsgCanaryDeploy", one).await.done();
    let failure = cut_off(&groups.world, "AsgCanaryDelete", 1).await;
    check(failure, &["web__Canary may still exist"]);

    let world = World::new().await;
    world.run("EcsCanaryDeploy", json!({})).await.done();
    let failure = cut_off(&world, "EcsCanaryDelete", 1).await;
    check(failure, &["canary service webCanary in", "may still exist"]);
}

#[tokio::test(start_paused = true)]
async fn a_function_that_is_still_being_changed() {
    for (deploy, rollback) in [
        ("AwsLambdaDeploy", "AwsLambdaRollback"),
        ("AwsLambdaCanaryDeploy", "AwsLambdaCanaryRollback"),
    ] {
        let mut world = World::new().await;
        for number in [1, 2] {
            world.next_run();
            world.deploys_package(number).await;
            world.run(deploy, json!({})).await.done();
        }
        let failure = cut_off(&world, rollback, 1).await;
        check(
            failure,
            &["function shop in", "may not be back on version 1"],
        );
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_that_do_not_come_back() {
    let mut world = World::new().await;
    let percent = |count: u32| json!({"newServiceInstanceCount": count, "newServiceInstanceUnit": "Percentage"});
    for (image, share) in [("nginx:1", 100), ("nginx:2", 50)] {
        world.next_run();
        world.deploys(&task_definition(image), &service_definition(4));
        world.run("EcsServiceSetup", json!({})).await.done();
        let share: Value = percent(share);
        world.run("EcsUpgradeContainer", share).await.done();
    }
    let failure = cut_off(&world, "EcsBasicRollback", 1).await;
    let parts = [
        "web__2, created by this run, may still exist",
        "web__1 may not have its 4 tasks of web:1 back",
    ];
    check(failure, &parts);
}
