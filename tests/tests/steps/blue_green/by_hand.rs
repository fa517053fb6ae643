//! What serves was updated in place by somebody else: that has not come up, or is on its way.

use std::time::Duration;

use serde_json::json;
use slipway_steps::aws::wire::whole;

use super::{CREATE, ROLLBACK, SWAP, brisk, counted, deploy, next};
use crate::balancer::Kind;
use crate::world::{World, task_definition};

const PREPARE: &str = "Prepare rollback data";

/// Lets a service run the next revision of its family, with an image, past Slipway.
async fn updated(world: &World, service: &str, image: &str) {
    let ecs = world.ecs();
    let register = ecs.register_task_definition().customize();
    let definition = task_definition(image);
    let made = register.mutate_request(whole(&definition)).send().await;
    let made = made.expect("a revision").task_definition;
    let arn = made.and_then(|made| made.task_definition_arn);
    let update = ecs.update_service().cluster("prod").service(service);
    let update = update.set_task_definition(arn).send().await;
    update.expect("updated");
}

#[tokio::test(start_paused = true)]
async fn what_served_comes_back_where_an_update_by_hand_did_not_come_up() {
    let (mut world, balancer) = brisk(Kind::Own).await;
    deploy(&mut world, &balancer, "nginx:1").await;
    let since = world.clock.now();
    updated(&world, "web__1", "nginx:missing").await;
    world.clock.sleep(Duration::from_secs(60)).await;
    deploy(&mut world, &balancer, "nginx:3").await;
    let log = world.log(CREATE, PREPARE).await;
    for part in [
        "Service web__1 in cluster prod in eu-west-1 (infrastructure prod_cluster) was told to run web:2, which has not come \
         up (IN_PROGRESS, 0 of 2 tasks run",
        "): web:1 serves, with 2 tasks, as Slipway's records say (run run-",
        "a rollback brings back web:1.",
    ] {
        assert!(log.contains(part), "{log}");
    }
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:2 0/0 GREEN, beside it web__2 web:3 2/2 BLUE; prod to one; stage to two"
    );
    world.run(ROLLBACK, json!({})).await.done();
    let log = world.log(ROLLBACK, "Rollback").await;
    let told =
        "Updating Service web__1 back to web:1, which served, with 2 tasks: web:2 had not come up";
    assert!(log.contains(told), "{log}");
    world.clock.sleep(Duration::from_secs(60)).await;
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:1 2/2 BLUE, beside it web__2 web:3 0/0 GREEN; prod to two; stage to one"
    );
    assert_eq!(counted(&world).await, ["web__1:1"; 2]);
    let requests = world.requests(since);
    assert!(
        requests.sent > 0.0 && requests.failed == 0.0,
        "{requests:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_by_hand_that_is_on_its_way_is_told_and_judged_again_by_the_swap() {
    for (image, back) in [("nginx:2", "web:2"), ("nginx:unhealthy", "web:1")] {
        let mut world = World::new().await;
        let balancer = world.balance(Kind::Own).await;
        deploy(&mut world, &balancer, "nginx:1").await;
        updated(&world, "web__1", image).await;
        next(&mut world, "nginx:3");
        world.run(CREATE, balancer.swap_spec()).await.done();
        let log = world.log(CREATE, PREPARE).await;
        world.clock.sleep(Duration::from_secs(900)).await;
        world.run(SWAP, json!({})).await.done();
        let log = log + &world.log(SWAP, "Swap Target Groups").await;
        assert!(
            log.contains("Service web__1 in cluster prod in eu-west-1 (infrastructure prod_cluster) was told to run web:2, which has not come up"),
            "{log}"
        );
        world.run(ROLLBACK, json!({})).await.done();
        world.clock.sleep(Duration::from_secs(60)).await;
        let account = world.account().await;
        let serves = format!("beside it web__1 {back} 2/2 BLUE");
        assert!(account.contains(&serves), "{image}: {account}");
    }
}
