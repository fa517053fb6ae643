//! Services.

use serde_json::{Value, json};
use slipway_sandbox::{Fault, FaultEffect, Pace};

use super::told;
use crate::strategies::Strategy;
use crate::tap::Mode;
use crate::world::{Ended, World, service_definition, task_definition};

const DEPLOY: &str = "EcsRollingDeploy";
const ROLLBACK: &str = "EcsRollingRollback";

/// An account that runs version 2 of `web`, which this run deployed in the place of version 1.
async fn deployed() -> World {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.scales();
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    second(&mut world);
    world.run(DEPLOY, json!({})).await.done();
    world
}

/// Version 2 is about to be deployed.
fn second(world: &mut World) {
    let scaling: Vec<_> = world.manifests.drain(..).skip(2).collect();
    world.deploys(&task_definition("nginx:2"), &service_definition(3));
    world.manifests.extend(scaling);
}

/// Somebody gives a service another task definition, by hand.
async fn takes_over(world: &World, service: &str) -> String {
    let ecs = world.ecs();
    let container = aws_sdk_ecs::types::ContainerDefinition::builder()
        .name("web")
        .image("nginx:hotfix")
        .port_mappings(
            aws_sdk_ecs::types::PortMapping::builder()
                .container_port(80)
                .build(),
        );
    let registered = ecs
        .register_task_definition()
        .family("hotfix")
        .cpu("256")
        .memory("512")
        .network_mode("awsvpc".into())
        .requires_compatibilities("FARGATE".into())
        .execution_role_arn("arn:aws:iam::123456789012:role/ecsTaskExecutionRole")
        .container_definitions(container.build());
    let registered = registered.send().await.expect("registered").task_definition;
    let arn = registered
        .and_then(|one| one.task_definition_arn)
        .expect("an ARN");
    let update = ecs.update_service().cluster("prod").service(service);
    update.task_definition(&arn).send().await.expect("updated");
    world.clock.sleep(std::time::Duration::from_secs(120)).await;
    arn
}

#[tokio::test(start_paused = true)]
async fn a_service_that_somebody_else_deployed_to_is_left_to_them() {
    let world = deployed().await;
    takes_over(&world, "web").await;
    let before = world.account().await;
    assert_eq!(before, "hotfix:1 3/3 COMPLETED scaled by P1");
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    insta::assert_snapshot!(told(failure), @"
    Service web in cluster prod in eu-west-1 (infrastructure prod_cluster) is left as it is: it runs hotfix:1, and this run put web:2 there in the place of web:1 with 2 tasks. Somebody or something else changed it since: look at who did. If web:1 with 2 tasks is to come back, deploy it again or put it back by hand.
    left behind: Service web in cluster prod in eu-west-1 (infrastructure prod_cluster): it runs hotfix:1; web:1 with 2 tasks is not back
    ");
    assert_eq!(world.account().await, before);
    let log = world.log(ROLLBACK, "Rollback").await;
    assert!(log.contains("Service web in cluster prod"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_settings_somebody_changed_is_left_to_them() {
    let world = deployed().await;
    let vpc = aws_sdk_ecs::types::AwsVpcConfiguration::builder()
        .subnets("subnet-9")
        .build()
        .expect("a configuration");
    let network = aws_sdk_ecs::types::NetworkConfiguration::builder().awsvpc_configuration(vpc);
    let update = world.ecs().update_service().cluster("prod").service("web");
    let update = update.network_configuration(network.build()).send().await;
    update.expect("updated");
    world.clock.sleep(std::time::Duration::from_secs(120)).await;
    let before = world.account().await;
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    insta::assert_snapshot!(told(failure), @"
    Service web in cluster prod in eu-west-1 (infrastructure prod_cluster) is left as it is: it runs web:2 with another `networkConfiguration`, and this run put web:2 there in the place of web:1 with 2 tasks. Somebody or something else changed it since: look at who did. If web:1 with 2 tasks is to come back, deploy it again or put it back by hand.
    left behind: Service web in cluster prod in eu-west-1 (infrastructure prod_cluster): it runs web:2 with another `networkConfiguration`; web:1 with 2 tasks is not back
    ");
    assert_eq!(world.account().await, before);
}

#[tokio::test(start_paused = true)]
async fn tasks_that_scaling_or_a_hand_added_are_no_other_deployment() {
    let world = deployed().await;
    let update = world.ecs().update_service().cluster("prod").service("web");
    let update = update
        .desired_count(5)
        .force_new_deployment(true)
        .send()
        .await;
    update.expect("updated");
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED scaled by P1");
}

#[tokio::test(start_paused = true)]
async fn a_first_service_that_somebody_else_deployed_to_is_not_deleted() {
    let world = World::with_pace(Pace::brisk()).await;
    world.run(DEPLOY, json!({})).await.done();
    takes_over(&world, "web").await;
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    insta::assert_snapshot!(told(failure), @"
    Service web in cluster prod in eu-west-1 (infrastructure prod_cluster) is left as it is: it runs hotfix:1, and this run created it with web:1. Somebody or something else changed it since: look at who did. Delete it by hand if nobody needs it.
    left behind: Service web in cluster prod in eu-west-1 (infrastructure prod_cluster): it runs hotfix:1
    ");
    assert_eq!(world.account().await, "hotfix:1 2/2 COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_was_cut_off_anywhere_is_our_own() {
    let store = World::new().await;
    for call in 1.. {
        let mut world = store.beside(Pace::brisk()).await;
        world.scales();
        world.run(DEPLOY, json!({})).await.done();
        world.next_run();
        second(&mut world);
        world.tap.set(Mode::RefuseAfter(call));
        let ended = world.run(DEPLOY, json!({})).await;
        world.tap.set(Mode::Open);
        if let Ended::Done(_) = ended {
            assert!(call > 5, "refused {call} times only");
            break;
        }
        world.run(ROLLBACK, json!({})).await.done();
        world.clock.sleep(std::time::Duration::from_secs(300)).await;
        assert_eq!(
            world.account().await,
            "web:1 2/2 COMPLETED scaled by P1",
            "refused after call {call}"
        );
    }
}

/// The other strategies: who is taken over, and what then stays as it is.
#[tokio::test(start_paused = true)]
async fn every_strategy_leaves_what_somebody_else_deployed() {
    let mut said = Vec::new();
    for (strategy, taken) in [
        (Strategy::Rolling, "web"),
        (Strategy::Canary, "web"),
        // The version before, which the rollback would give its tasks back; and the new one, which it would delete.
        (Strategy::Basic, "web__1"),
        (Strategy::Basic, "web__2"),
        // The version before, which the rollback would send the requests to; and the new one.
        (Strategy::Swap, "web__1"),
        (Strategy::Swap, "web__2"),
        (Strategy::Shift, "web__1"),
        (Strategy::Shift, "web__2"),
    ] {
        let mut world = World::with_pace(Pace::brisk()).await;
        world.balance(strategy.rules()).await;
        for number in 0..2 {
            world.next_run();
            strategy.deploys(&mut world, &format!("nginx:{}", number + 1), false);
            strategy.run(&world, number).await.expect("deployed");
            world.clock.sleep(std::time::Duration::from_secs(300)).await;
        }
        let taken_by = takes_over(&world, taken).await;
        let mut failure = None;
        for step in strategy.rollback() {
            if let Ended::Failed(failed) = world.attempt(step, json!({}), 9).await {
                failure = Some(failed);
            }
        }
        let failure = failure.unwrap_or_else(|| panic!("{strategy:?} took {taken} back"));
        let first = failure.message.split(". ").next().unwrap_or_default();
        said.push(format!("{strategy:?}: {first}"));
        let described = world
            .ecs()
            .describe_services()
            .cluster("prod")
            .services(taken);
        let described = described.send().await.expect("an answer");
        assert_eq!(
            described.services()[0].task_definition(),
            Some(taken_by.as_str()),
            "{strategy:?} of {taken}"
        );
    }
    insta::assert_snapshot!(said.join("\n"), @"
    Rolling: Service web in cluster prod in eu-west-1 (infrastructure prod_cluster) is left as it is: it runs hotfix:1, and this run put web:2 there in the place of web:1 with 2 tasks
    Canary: Service web in cluster prod in eu-west-1 (infrastructure prod_cluster) is left as it is: it runs hotfix:1, and this run put web:4 there in the place of web:2 with 2 tasks
    Basic: Service web__1 in cluster prod in eu-west-1 (infrastructure prod_cluster) is left as it is: it runs hotfix:1, and this run found web:1 with 2 tasks there
    Basic: Service web__2 in cluster prod in eu-west-1 (infrastructure prod_cluster) is left as it is: it runs hotfix:1, and this run created it with web:2
    Swap: Service web__1 in cluster prod in eu-west-1 (infrastructure prod_cluster) is left as it is: it runs hotfix:1, and this run found web:1 with 2 tasks there
    Swap: Service web__2 in cluster prod in eu-west-1 (infrastructure prod_cluster) is left as it is: it runs hotfix:1, and this run created it with web:2
    Shift: Service web__1 in cluster prod in eu-west-1 (infrastructure prod_cluster) is left as it is: it runs hotfix:1, and this run found web:1 with 2 tasks there
    Shift: Service web__2 in cluster prod in eu-west-1 (infrastructure prod_cluster) is left as it is: it runs hotfix:1, and this run created it with web:2
    ");
}

fn refused(operation: &str) -> Fault {
    Fault {
        service: None,
        operation: Some(operation.to_owned()),
        skip: 0,
        count: None,
        effect: FaultEffect::AccessDenied,
    }
}

#[tokio::test(start_paused = true)]
async fn scaling_that_the_deployment_took_off_is_on_again_where_the_rollback_cannot_work() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.scales();
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    second(&mut world);
    world.sandbox.faults().add(refused("UpdateService"));
    world.run(DEPLOY, json!({})).await.failed();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED scaled by P1");
    let told = failure.left_behind.expect("something may be left");
    assert!(!told.contains("without"), "{told}");

    // What cannot be put on either is told.
    world.next_run();
    world.run(DEPLOY, json!({})).await.failed();
    world
        .sandbox
        .faults()
        .add(refused("RegisterScalableTarget"));
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    let told = failure.left_behind.expect("something is left");
    for part in [
        "may be without its scalable target and scaling policies P1",
        "register the scalable target",
    ] {
        assert!(told.contains(part), "{told}");
    }
    world.sandbox.faults().clear();
}

#[tokio::test(start_paused = true)]
async fn scaling_that_was_off_comes_back_to_a_service_that_somebody_else_deployed_to() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.scales();
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    second(&mut world);
    world.sandbox.faults().add(refused("UpdateService"));
    world.run(DEPLOY, json!({})).await.failed();
    world.sandbox.faults().clear();
    takes_over(&world, "web").await;
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    assert!(
        failure.message.contains("is left as it is"),
        "{}",
        failure.message
    );
    assert_eq!(world.account().await, "hotfix:1 2/2 COMPLETED scaled by P1");

    // Who wants no tasks keeps none.
    world.next_run();
    world.sandbox.faults().add(refused("UpdateService"));
    world.run(DEPLOY, json!({})).await.failed();
    world.sandbox.faults().clear();
    takes_over(&world, "web").await;
    let update = world.ecs().update_service().cluster("prod").service("web");
    update.desired_count(0).send().await.expect("updated");
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    let left = failure.left_behind.expect("something is left");
    assert!(left.contains("it would change its 0 tasks"), "{left}");
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_somebody_else_changed_is_left_to_them() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.balance(crate::balancer::Kind::Weighted).await;
    world.fills_both().await;
    let balancer = world.balancer.clone().expect("a load balancer");
    let shift: Value = balancer.standalone_spec(1, 2);
    world
        .run("EcsBlueGreenTrafficShift", shift.clone())
        .await
        .done();
    let elb = world.elb();
    let spec = &shift["ecsTrafficShiftWrapper"]["spec"];
    let listener = spec["listener"].as_str().expect("a listener");
    let action = aws_sdk_elasticloadbalancingv2::types::Action::builder()
        .r#type("forward".into())
        .target_group_arn(&balancer.groups[0])
        .build();
    let modify = elb
        .modify_listener()
        .listener_arn(listener)
        .default_actions(action);
    modify.send().await.expect("modified");
    let failure = world
        .run("StandAloneTrafficShiftRollback", json!({}))
        .await
        .failed();
    for part in [
        "is left as it is: it forwards to ",
        "in the place of",
        "Somebody or something else",
    ] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
}
