//! A stage that deploys one service twice, or two of them: its rollback goes back to what was there before the stage, and
//! that of a step group to what was there before the group.

use serde_json::json;
use slipway_sandbox::Pace;

use crate::asg::Groups;
use crate::world::{STEPS, World, service_definition, task_definition};

/// A step group, and its own rollback.
const GROUP: &str = "stages.deploy.spec.execution.steps.again.steps";
/// The group again, in another turn of its loop.
const NEXT_TURN: &str = "stages.deploy.spec.execution.steps.again_1.steps";
const BACK_IN_GROUP: &str = "stages.deploy.spec.execution.steps.again.rollbackSteps";
const BACK: &str = "stages.deploy.spec.execution.rollbackSteps";

#[tokio::test(start_paused = true)]
async fn a_service_goes_back_to_before_the_stage() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.run("EcsRollingDeploy", json!({})).await.done();
    world.next_run();
    let before = world.account().await;
    for (list, image, desired) in [(STEPS, "nginx:2", 3), (GROUP, "nginx:3", 4)] {
        world.list = list;
        world.deploys(&task_definition(image), &service_definition(desired));
        world.run("EcsRollingDeploy", json!({})).await.done();
    }
    assert_eq!(world.account().await, "web:3 4/4 COMPLETED");
    world.list = BACK_IN_GROUP;
    world.run("EcsRollingRollback", json!({})).await.done();
    assert_eq!(world.account().await, "web:2 3/3 COMPLETED");
    world.list = BACK;
    world.run("EcsRollingRollback", json!({})).await.done();
    assert_eq!(world.account().await, before);
}

#[tokio::test(start_paused = true)]
async fn services_that_the_stage_created_go() {
    let mut world = World::with_pace(Pace::brisk()).await;
    let mut other = service_definition(1);
    other["serviceName"] = json!("other");
    for (list, service) in [
        (STEPS, service_definition(2)),
        (GROUP, other),
        (NEXT_TURN, service_definition(3)),
    ] {
        world.deploys(&task_definition("nginx:1"), &service);
        world.list = list;
        world.run("EcsRollingDeploy", json!({})).await.done();
    }
    world.list = BACK;
    world.run("EcsRollingRollback", json!({})).await.done();
    let log = world.log("EcsRollingRollback", "Rollback").await;
    for gone in ["Service web deleted", "Service other deleted"] {
        assert!(log.contains(gone), "{log}");
    }
    let services = world.ecs().list_services().cluster("prod").send().await;
    assert!(services.expect("an answer").service_arns().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_function_goes_back_to_before_the_stage() {
    let mut world = World::with_pace(Pace::brisk()).await;
    let mut before = String::new();
    for (number, list) in [(1, STEPS), (2, STEPS), (3, GROUP)] {
        if number == 2 {
            before = world.account().await;
            world.next_run();
        }
        world.list = list;
        world.deploys_package(number).await;
        world.run("AwsLambdaDeploy", json!({})).await.done();
    }
    assert_ne!(world.account().await, before);
    world.list = BACK;
    world.run("AwsLambdaRollback", json!({})).await.done();
    assert_eq!(world.account().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_group_goes_back_to_before_the_stage() {
    let mut groups = Groups::new().await;
    let mut before = String::new();
    for (number, list) in [(1, STEPS), (2, STEPS), (3, GROUP)] {
        if number == 2 {
            before = groups.account().await;
            groups.world.next_run();
        }
        groups.world.list = list;
        groups.deploys(&format!("ami-{number}"), number + 1);
        let spec = json!({"instanceWarmup": 0});
        groups.world.run("AsgRollingDeploy", spec).await.done();
    }
    assert_ne!(groups.account().await, before);
    groups.world.list = BACK;
    groups
        .world
        .run("AsgRollingRollback", json!({}))
        .await
        .done();
    groups.quiet().await;
    assert_eq!(groups.account().await, before);
}
