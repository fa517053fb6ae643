//! The blue-green steps: what serves is told by rules, and always answers.

mod by_hand;
mod misuse;
mod options;
mod others;
mod shift;

use serde_json::{Value, json};
use slipway_fn_instances::{Deps, sweep};
use slipway_sandbox::Pace;
use slipway_store::InstanceFilter;

use crate::balancer::{Balancer, Kind, balanced_definition};
use crate::world::{World, scope, task_definition};

pub(crate) const CREATE: &str = "EcsBlueGreenCreateService";
pub(crate) const SWAP: &str = "EcsBlueGreenSwapTargetGroups";
pub(crate) const ROLLBACK: &str = "EcsBlueGreenRollback";

/// A brisk account with a load balancer.
async fn brisk(kind: Kind) -> (World, Balancer) {
    let mut world = World::with_pace(Pace::brisk()).await;
    let balancer = world.balance(kind).await;
    (world, balancer)
}

/// The next run deploys an image.
fn next(world: &mut World, image: &str) {
    world.next_run();
    world.deploys(&task_definition(image), &balanced_definition(2));
}

/// Creation and swap of one version; the calls of each.
async fn deploy(world: &mut World, balancer: &Balancer, image: &str) -> String {
    next(world, image);
    let mut traces = Vec::new();
    for (step, spec) in [(CREATE, balancer.swap_spec()), (SWAP, json!({}))] {
        let before = world.sandbox.calls().len();
        world.run(step, spec).await.done();
        let trace = world.trace(before).replace('\n', " ");
        traces.push(format!("{step}\n{trace}"));
    }
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    traces.join("\n")
}

/// Service, revision and run of each instance that is counted.
async fn counted(world: &World) -> Vec<String> {
    let filter = InstanceFilter::default();
    let found = world.store.list_instances(&scope(), &filter).await;
    let of = |instance: &Value| {
        let service = instance["serviceName"].as_str().unwrap_or("?");
        format!("{service}:{}", instance["version"].as_str().unwrap_or("?"))
    };
    let found = found.expect("a list");
    let mut found: Vec<String> = found.iter().map(|one| of(&one.info)).collect();
    found.sort_unstable();
    found
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_the_first_the_second_and_the_third_deployment() {
    let (mut world, balancer) = brisk(Kind::Default).await;
    let first = deploy(&mut world, &balancer, "nginx:1").await;
    insta::assert_snapshot!(first, @"
    EcsBlueGreenCreateService
    DescribeLoadBalancers DescribeListeners DescribeRules DescribeTargetGroups DescribeListeners DescribeRules ListServices DescribeTargetHealth DescribeTaskDefinition RegisterTaskDefinition DescribeServices CreateService DescribeServices DescribeTargetHealth TagResource ListTasks DescribeTasks ListTasks DescribeTasks
    EcsBlueGreenSwapTargetGroups
    DescribeRules DescribeServices DescribeTargetHealth ModifyListener TagResource ListTasks DescribeTasks
    ");
    insta::assert_snapshot!(world.account().await, @"absent, beside it web__1 web:1 2/2 BLUE; prod to two; stage to one");
    let second = deploy(&mut world, &balancer, "nginx:2").await;
    insta::assert_snapshot!(second, @"
    EcsBlueGreenCreateService
    DescribeLoadBalancers DescribeListeners DescribeRules DescribeTargetGroups DescribeListeners DescribeRules ListServices DescribeServices DescribeTargetHealth DescribeScalableTargets DescribeScalingPolicies DescribeTaskDefinition RegisterTaskDefinition DescribeServices CreateService DescribeServices DescribeTargetHealth TagResource ListTasks DescribeTasks ListTasks DescribeTasks ListTasks DescribeTasks
    EcsBlueGreenSwapTargetGroups
    DescribeRules DescribeServices DescribeTargetHealth DescribeServices DescribeScalableTargets DescribeScalingPolicies ModifyListener TagResource DescribeScalableTargets DescribeScalingPolicies DescribeRules DescribeListeners DescribeRules DescribeServices UpdateService ListTasks DescribeTasks ListTasks
    ");
    insta::assert_snapshot!(world.account().await, @"absent, beside it web__1 web:1 0/0 GREEN, beside it web__2 web:2 2/2 BLUE; prod to one; stage to two");
    let third = deploy(&mut world, &balancer, "nginx:3").await;
    insta::assert_snapshot!(third, @"
    EcsBlueGreenCreateService
    DescribeLoadBalancers DescribeListeners DescribeRules DescribeTargetGroups DescribeListeners DescribeRules ListServices DescribeServices DescribeScalableTargets DescribeScalingPolicies DescribeServices DescribeScalableTargets DescribeScalingPolicies DescribeTaskDefinition DescribeServices DescribeScalableTargets DescribeScalingPolicies DeleteService DescribeServices RegisterTaskDefinition DescribeServices CreateService DescribeServices DescribeTargetHealth TagResource ListTasks DescribeTasks ListTasks DescribeTasks ListTasks DescribeTasks
    EcsBlueGreenSwapTargetGroups
    DescribeRules DescribeServices DescribeTargetHealth DescribeServices DescribeScalableTargets DescribeScalingPolicies ModifyListener TagResource DescribeScalableTargets DescribeScalingPolicies DescribeRules DescribeListeners DescribeRules DescribeServices UpdateService ListTasks DescribeTasks ListTasks
    ");
    insta::assert_snapshot!(world.account().await, @"absent, beside it web__1 web:3 2/2 BLUE, beside it web__2 web:2 0/0 GREEN; prod to two; stage to one");
    let fourth = deploy(&mut world, &balancer, "nginx:4").await;
    assert_eq!(fourth, third);
    insta::assert_snapshot!(world.account().await, @"absent, beside it web__1 web:3 0/0 GREEN, beside it web__2 web:4 2/2 BLUE; prod to one; stage to two");
}

#[tokio::test(start_paused = true)]
async fn rules_of_their_own_and_network_load_balancers_are_swapped_too() {
    for (kind, changes) in [(Kind::Own, "ModifyRule"), (Kind::Network, "ModifyListener")] {
        let (mut world, balancer) = brisk(kind).await;
        deploy(&mut world, &balancer, "nginx:1").await;
        deploy(&mut world, &balancer, "nginx:2").await;
        assert_eq!(
            world.account().await,
            "absent, beside it web__1 web:1 0/0 GREEN, beside it web__2 web:2 2/2 BLUE; prod to one; stage to two",
            "{kind:?}"
        );
        assert_eq!(world.count(changes), 4, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_reach_the_new_version_after_the_swap_and_are_all_answered() {
    let mut world = World::new().await;
    let balancer = world.balance(Kind::Own).await;
    world.run(CREATE, balancer.swap_spec()).await.done();
    world.run(SWAP, json!({})).await.done();
    let since = world.clock.now();
    next(&mut world, "nginx:2");
    world.run(CREATE, balancer.swap_spec()).await.done();
    world.clock.sleep(std::time::Duration::from_secs(600)).await;
    let requests = world.requests(since);
    let served: Vec<_> = requests.by_task_definition.keys().collect();
    assert!(served.len() == 1 && served[0].ends_with(":1"), "{served:?}");
    assert!(requests.failed == 0.0, "{requests:?}");

    let swap = json!({"downsizeOldServiceDelayInSecs": 120});
    let swapped = world.clock.now();
    world.run(SWAP, swap).await.done();
    world.clock.sleep(std::time::Duration::from_secs(600)).await;
    let requests = world.requests(swapped);
    let served: Vec<_> = requests.by_task_definition.keys().collect();
    assert!(served.len() == 1 && served[0].ends_with(":2"), "{served:?}");

    // The old version gets its tasks back before it gets the requests back.
    world.run(ROLLBACK, json!({})).await.done();
    world.clock.sleep(std::time::Duration::from_secs(600)).await;
    let requests = world.requests(since);
    assert!(
        requests.sent > 1800.0 && requests.failed == 0.0,
        "{requests:?}"
    );
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:1 2/2 BLUE, beside it web__2 web:2 0/0 GREEN; prod to two; stage to one"
    );
    let log = world.log(SWAP, "Swap Target Groups").await;
    insta::assert_snapshot!(balancer.plain(&log), @"
    Modifying ELB Prod Listener PROD with listener rule PROD-RULE to Forward requests to Target group associated with new Service, TargetGroup: one
    Successfully updated Prod Listener
    Modifying ELB Stage Listener STAGE with listener rule STAGE-RULE to Forward requests to Target group associated with old Service, TargetGroup: two
    Successfully updated Stage Listener
    Tag: [BG_VERSION, BLUE] is associated with Service web__2
    Tag: [BG_VERSION, GREEN] is associated with Service web__1
    Swapping Successful.
    Service web__1 is scaled down in 120 seconds
    Scaling Service web__1 from 2 to 0 tasks
    ");
    let log = world.log(ROLLBACK, "Rollback").await;
    insta::assert_snapshot!(balancer.plain(&log), @"
    Scaling Service web__1 from 0 to 2 tasks
    Waiting for pending tasks to finish. 0/2 running ...
    Waiting for pending tasks to finish. 1/2 running ...
    Waiting for Service web__1 to reach steady state
    Service web__1 reached steady state
    Waiting for healthy targets in two: 0/2 (initial: Initial health checks in progress)
    Waiting for healthy targets in two: 1/2 (initial: Initial health checks in progress)
    Modifying listener rule PROD-RULE to forward to two again
    Modifying listener rule STAGE-RULE to forward to one again
    Tag: [BG_VERSION, BLUE] is associated with Service web__1
    Tag: [BG_VERSION, GREEN] is associated with Service web__2
    Scaling Service web__2 from 2 to 0 tasks
    Service web__2 stays without tasks and requests, on web:2, for who looks for the reason; the next deployment replaces it
    Service web__1 serves: rolled back cleanly
    ");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_fails_its_checks_never_gets_a_request() {
    for image in ["nginx:unhealthy", "nginx:missing", "nginx:exits-1"] {
        let mut world = World::new().await;
        let balancer = world.balance(Kind::Own).await;
        world.run(CREATE, balancer.swap_spec()).await.done();
        world.run(SWAP, json!({})).await.done();
        let before = world.account().await;
        let since = world.clock.now();
        next(&mut world, image);
        let failure = world.run(CREATE, balancer.swap_spec()).await.failed();
        for part in ["web__2", "steady state", "web:2", "Tasks stopped because"] {
            assert!(
                failure.message.contains(part),
                "{image}: {}",
                failure.message
            );
        }
        let refused = world.run(SWAP, json!({})).await.failed();
        assert!(
            refused.message.contains("none has ended well"),
            "{}",
            refused.message
        );
        world.run(ROLLBACK, json!({})).await.done();
        world.clock.sleep(std::time::Duration::from_secs(600)).await;
        let after = world.account().await;
        assert_eq!(
            after.replace(", beside it web__2 web:2 0/0", ""),
            before,
            "{image}"
        );
        let requests = world.requests(since);
        assert!(
            requests.failed == 0.0 && requests.by_task_definition.len() == 1,
            "{requests:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_tasks_of_both_versions_are_instances() {
    let (mut world, balancer) = brisk(Kind::Default).await;
    deploy(&mut world, &balancer, "nginx:1").await;
    assert_eq!(counted(&world).await, ["web__1:1"; 2]);
    next(&mut world, "nginx:2");
    let outputs = world.run(CREATE, balancer.swap_spec()).await.done();
    assert_eq!(outputs["output"]["serviceName"], "web__2");
    assert_eq!(outputs["output"]["targetGroupArn"], balancer.groups[0]);
    let instances = &outputs["deploymentInfoOutcome"]["serverInstanceInfoList"];
    assert_eq!(instances.as_array().map(Vec::len), Some(2));
    let both = ["web__1:1", "web__1:1", "web__2:2", "web__2:2"];
    assert_eq!(counted(&world).await, both);
    let deps = Deps {
        services: world.services.clone(),
    };
    let outputs = world
        .run(SWAP, json!({"doNotDownsizeOldService": true}))
        .await
        .done();
    assert_eq!(outputs["output"]["oldServiceName"], "web__1");
    assert_eq!(counted(&world).await, both);
    let swept = sweep(&deps).await.expect("a sweep");
    assert_eq!((swept.counted, swept.failed), (1, 0), "{swept:?}");
    assert_eq!(counted(&world).await, both);
    world.run(ROLLBACK, json!({})).await.done();
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    sweep(&deps).await.expect("a sweep");
    assert_eq!(counted(&world).await, ["web__1:1"; 2]);
}

#[tokio::test(start_paused = true)]
async fn what_is_scaled_down_is_not_counted() {
    for world in [World::new().await, World::with_pace(Pace::brisk()).await] {
        let mut world = world;
        let balancer = world.balance(Kind::Own).await;
        for image in ["nginx:1", "nginx:2"] {
            next(&mut world, image);
            world.run(CREATE, balancer.swap_spec()).await.done();
            world.run(SWAP, json!({})).await.done();
        }
        assert_eq!(counted(&world).await, ["web__2:2", "web__2:2"]);
    }
}
