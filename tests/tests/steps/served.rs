//! What a rollback leads to is what served when the deployment began, and not what an aborted one before it had asked for
//! and that never came up.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_sandbox::{Fault, FaultEffect};

use crate::world::{World, service_definition, task_definition};

const PREPARE: &str = "Prepare rollback data";

/// Runs a step for some time, and aborts it then; what it says that it leaves.
async fn aborted(world: &World, (step, spec): (&str, Value), seconds: u64) -> String {
    let time = Duration::from_secs(seconds);
    let ended = tokio::time::timeout(time, world.run(step, spec.clone())).await;
    assert!(ended.is_err(), "{step} ended: {ended:?}");
    let left = world.abort(step, spec).await;
    left.map_or_else(|failure| failure.message, |()| String::new())
}

mod ecs {
    use super::*;

    const DEPLOY: &str = "EcsRollingDeploy";
    const ROLLBACK: &str = "EcsRollingRollback";

    /// A service with web:1, after an aborted deployment of web:2, whose image cannot be pulled, to another subnet.
    async fn after_an_abort() -> World {
        let mut world = World::new().await;
        world.run(DEPLOY, json!({})).await.done();
        world.next_run();
        let mut elsewhere = service_definition(2);
        elsewhere["networkConfiguration"]["awsvpcConfiguration"]["subnets"] = json!(["subnet-2"]);
        world.deploys(&task_definition("nginx:missing"), &elsewhere);
        aborted(&world, (DEPLOY, json!({})), 12).await;
        assert_eq!(
            world.account().await,
            "web:2 2/2 IN_PROGRESS,COMPLETED",
            "after the abort"
        );
        world.next_run();
        world
    }

    async fn subnet(world: &World) -> String {
        let described = world.ecs().describe_services().cluster("prod");
        let described = described.services("web").send().await.expect("an answer");
        let network = described.services()[0].network_configuration();
        let network = network.and_then(|one| one.awsvpc_configuration());
        network.map_or_else(String::new, |one| one.subnets().join(","))
    }

    #[tokio::test(start_paused = true)]
    async fn a_deployment_after_an_aborted_one_goes_back_to_what_serves() {
        for image in ["nginx:missing", "nginx:3"] {
            let mut world = after_an_abort().await;
            world.deploys(&task_definition(image), &service_definition(2));
            let ended = world.run(DEPLOY, json!({})).await;
            match image {
                "nginx:3" => drop(ended.done()),
                _ => drop(ended.failed()),
            }
            let log = world.log(DEPLOY, PREPARE).await;
            for part in [
                "Service web in cluster prod in eu-west-1 (infrastructure prod_cluster) was told to run web:2, which has \
                 not come up (IN_PROGRESS, 0 of 2 tasks run",
                "): web:1 serves, with 2 tasks, as Slipway's records say (run run-",
                "a rollback brings back web:1.",
            ] {
                assert!(log.contains(part), "{log}");
            }
            world.run(ROLLBACK, json!({})).await.done();
            assert_eq!(world.account().await, "web:1 2/2 COMPLETED", "{image}");
            assert_eq!(subnet(&world).await, "subnet-1", "{image}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_serves_comes_back_also_where_the_update_was_refused() {
        let mut world = after_an_abort().await;
        world.deploys(&task_definition("nginx:3"), &service_definition(2));
        world.sandbox.faults().add(Fault {
            service: None,
            operation: Some("UpdateService".to_owned()),
            skip: 0,
            count: None,
            effect: FaultEffect::AccessDenied,
        });
        world.run(DEPLOY, json!({})).await.failed();
        world.sandbox.faults().clear();
        world.run(ROLLBACK, json!({})).await.done();
        assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
    }

    #[tokio::test(start_paused = true)]
    async fn a_deployment_of_somebody_else_that_goes_well_is_what_comes_back() {
        let mut world = World::new().await;
        world.run(DEPLOY, json!({})).await.done();
        let ecs = world.ecs();
        let theirs = ecs.describe_task_definition().task_definition("web:1");
        let theirs = theirs.send().await.expect("an answer");
        let theirs = theirs.task_definition.expect("a definition");
        let register = ecs.register_task_definition().family("web");
        let register = register
            .set_container_definitions(theirs.container_definitions)
            .cpu("512")
            .memory("1024")
            .network_mode("awsvpc".into())
            .requires_compatibilities("FARGATE".into())
            .execution_role_arn("arn:aws:iam::123456789012:role/ecsTaskExecutionRole");
        register.send().await.expect("registered");
        let update = ecs.update_service().cluster("prod").service("web");
        update
            .task_definition("web:2")
            .send()
            .await
            .expect("theirs");
        loop {
            world.clock.sleep(Duration::from_secs(1)).await;
            let described = ecs.describe_services().cluster("prod").services("web");
            let described = described.send().await.expect("an answer");
            let newest = &described.services()[0].deployments()[0];
            assert_eq!(
                newest.rollout_state().map(|one| one.as_str()),
                Some("IN_PROGRESS")
            );
            if newest.running_count() > 0 {
                break;
            }
        }
        world.next_run();
        world.deploys(&task_definition("nginx:3"), &service_definition(2));
        world.run(DEPLOY, json!({})).await.done();
        let log = world.log(DEPLOY, PREPARE).await;
        assert!(
            log.contains("runs web:2, and Slipway's records say web:1 (run "),
            "{log}"
        );
        world.run(ROLLBACK, json!({})).await.done();
        assert_eq!(world.account().await, "web:2 2/2 COMPLETED");
    }

    #[tokio::test(start_paused = true)]
    async fn the_basic_strategy_gives_an_earlier_service_back_what_served() {
        let percent =
            json!({"newServiceInstanceCount": 100, "newServiceInstanceUnit": "Percentage"});
        let mut world = after_an_abort().await;
        world.deploys(&task_definition("nginx:3"), &service_definition(2));
        world.run("EcsServiceSetup", json!({})).await.done();
        let log = world.log("EcsServiceSetup", PREPARE).await;
        assert!(
            log.contains(
                "was told to run web:2, which has not come up: web:1 serves, with 2 tasks."
            ),
            "{log}"
        );
        world.run("EcsUpgradeContainer", percent).await.done();
        world.run("EcsBasicRollback", json!({})).await.done();
        assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
    }

    #[tokio::test(start_paused = true)]
    async fn the_basic_strategy_takes_over_from_what_serves() {
        let percent =
            json!({"newServiceInstanceCount": 100, "newServiceInstanceUnit": "Percentage"});
        let (setup, upgrade) = ("EcsServiceSetup", "EcsUpgradeContainer");
        let mut world = World::new().await;
        for image in ["nginx:1", "nginx:missing", "nginx:3"] {
            world.next_run();
            world.deploys(&task_definition(image), &service_definition(4));
            world.run(setup, json!({})).await.done();
            match image {
                "nginx:missing" => drop(aborted(&world, (upgrade, percent.clone()), 12).await),
                _ => drop(world.run(upgrade, percent.clone()).await.done()),
            }
        }
        let log = world.log(setup, PREPARE).await;
        for part in [
            "web__3 takes over from web__1, which runs web:1 with 4/4 tasks",
            "Service web__2 was deployed last and has not come up (0 of 4 tasks run): web__1 serves, with 4 tasks.",
        ] {
            assert!(log.contains(part), "{log}");
        }
        assert!(!log.contains("Earlier versions"), "{log}");
        assert_eq!(
            world.account().await,
            "absent, beside it web__1 web:1 0/0, beside it web__2 web:2 0/4, beside it web__3 web:3 4/4"
        );
        world.run("EcsBasicRollback", json!({})).await.done();
        assert_eq!(
            world.account().await,
            "absent, beside it web__1 web:1 4/4, beside it web__2 web:2 0/4"
        );
    }
}
