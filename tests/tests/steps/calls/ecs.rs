//! The strategies of ECS.

use std::time::Duration;

use serde_json::json;
use slipway_sandbox::Pace;

use super::{DEPLOYMENTS, part, told, told_each, undone};
use crate::balancer::Kind;
use crate::strategies::Strategy;
use crate::world::{World, job, service_definition, task_definition};

/// Longest that a service goes on by itself.
const QUIET: Duration = Duration::from_secs(300);

/// Deploys each version, rolls it back, and deploys it again for the next one.
async fn told_by(strategy: Strategy) -> String {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.balance(strategy.rules()).await;
    let mut parts = Vec::new();
    for number in 0..DEPLOYMENTS {
        let index = usize::try_from(number).expect("a small number");
        world.next_run();
        strategy.deploys(&mut world, &format!("nginx:{}", number + 1), false);
        let deployed = told_each(&world, strategy.steps(&world, index)).await;
        let rolled_back = undone(&world, strategy.rollback()).await;
        parts.push(part(number + 1, &deployed, &rolled_back));
        world.clock.sleep(QUIET).await;
        world.next_run();
        strategy.run(&world, index).await.expect("deployed");
        world.clock.sleep(QUIET).await;
    }
    parts.join("\n\n")
}

#[tokio::test(start_paused = true)]
async fn rolling() {
    insta::assert_snapshot!("ecs_rolling", told_by(Strategy::Rolling).await);
}

#[tokio::test(start_paused = true)]
async fn canary() {
    insta::assert_snapshot!("ecs_canary", told_by(Strategy::Canary).await);
}

#[tokio::test(start_paused = true)]
async fn basic() {
    insta::assert_snapshot!("ecs_basic", told_by(Strategy::Basic).await);
}

#[tokio::test(start_paused = true)]
async fn blue_green() {
    insta::assert_snapshot!("ecs_blue_green", told_by(Strategy::Swap).await);
}

#[tokio::test(start_paused = true)]
async fn traffic_shift() {
    insta::assert_snapshot!("ecs_traffic_shift", told_by(Strategy::Shift).await);
}

/// Rules that something else has made: only their weights change.
#[tokio::test(start_paused = true)]
async fn standalone_shift() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.balance(Kind::Weighted).await;
    world.fills_both().await;
    let mut parts = Vec::new();
    for number in 1..=DEPLOYMENTS {
        world.next_run();
        let balancer = world.balancer.clone().expect("a load balancer");
        let weight = i32::try_from(number).expect("a small number");
        let shift = balancer.standalone_spec(weight, 2);
        let shifted = told_each(&world, vec![("EcsBlueGreenTrafficShift", shift)]).await;
        let rolled_back = undone(&world, &["StandAloneTrafficShiftRollback"]).await;
        parts.push(part(number, &shifted, &rolled_back));
    }
    insta::assert_snapshot!("ecs_standalone_shift", parts.join("\n\n"));
}

#[tokio::test(start_paused = true)]
async fn tasks_and_sizes() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys(&task_definition("nginx:1"), &service_definition(2));
    world.run("EcsRollingDeploy", json!({})).await.done();
    let mut parts = Vec::new();
    for number in 1..=DEPLOYMENTS {
        world.next_run();
        world.step_manifests = job(&format!("nginx-{number}:exits-0"), 1);
        let task = told(&world, "EcsRunTask", json!({}), 0).await;
        world.step_manifests.clear();
        let spec = json!({"service": "web", "instanceUnit": "Count", "instances": number + 2});
        let scale = told(&world, "EcsScale", spec, 0).await;
        parts.push(part(number, &[task, scale], &[]));
    }
    insta::assert_snapshot!("ecs_tasks_and_sizes", parts.join("\n\n"));
}
