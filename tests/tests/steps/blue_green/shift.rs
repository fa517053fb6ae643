//! `EcsBlueGreenTrafficShift` and `StandAloneTrafficShiftRollback`.

use serde_json::json;

use super::{CREATE, ROLLBACK, SWAP, brisk, next};
use crate::balancer::{Balancer, Kind, inherit_spec};
use crate::world::World;

const SHIFT: &str = "EcsBlueGreenTrafficShift";
const STANDALONE_ROLLBACK: &str = "StandAloneTrafficShiftRollback";

/// Creation and shift by weights of one version, to the target group of that number; the calls of each.
async fn deploy(world: &mut World, balancer: &Balancer, image: &str, group: usize) -> String {
    next(world, image);
    let steps = [
        (CREATE, balancer.shift_spec(group)),
        (SHIFT, inherit_spec(20)),
        (SHIFT, inherit_spec(100)),
    ];
    let mut traces = Vec::new();
    for (attempt, (step, spec)) in (0..).zip(steps) {
        let before = world.sandbox.calls().len();
        world.attempt(step, spec, attempt).await.done();
        let trace = world.trace(before).replace('\n', " ");
        traces.push(format!("{step}\n{trace}"));
    }
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    traces.join("\n")
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_the_first_the_second_and_the_third_deployment() {
    let (mut world, balancer) = brisk(Kind::Weighted).await;
    let first = deploy(&mut world, &balancer, "nginx:1", 0).await;
    insta::assert_snapshot!(first, @"
    EcsBlueGreenCreateService
    DescribeLoadBalancers DescribeListeners DescribeRules DescribeTargetGroups DescribeListeners DescribeRules ListServices DescribeTargetHealth DescribeTaskDefinition RegisterTaskDefinition DescribeServices CreateService DescribeServices DescribeTargetHealth TagResource ListTasks DescribeTasks ListTasks DescribeTasks
    EcsBlueGreenTrafficShift
    DescribeRules DescribeServices DescribeTargetHealth ModifyListener
    EcsBlueGreenTrafficShift
    DescribeRules DescribeServices DescribeTargetHealth ModifyListener TagResource ListTasks DescribeTasks
    ");
    insta::assert_snapshot!(world.account().await, @"absent, beside it web__1 web:1 2/2 BLUE; prod to one 100 and two 0; stage to one 100 and two 0");
    let since = world.clock.now();
    let second = deploy(&mut world, &balancer, "nginx:2", 1).await;
    insta::assert_snapshot!(second, @"
    EcsBlueGreenCreateService
    DescribeLoadBalancers DescribeListeners DescribeRules DescribeTargetGroups DescribeListeners DescribeRules ListServices DescribeServices DescribeTargetHealth DescribeScalableTargets DescribeScalingPolicies DescribeTaskDefinition RegisterTaskDefinition DescribeServices CreateService DescribeServices DescribeTargetHealth TagResource ListTasks DescribeTasks ListTasks DescribeTasks ListTasks DescribeTasks
    EcsBlueGreenTrafficShift
    DescribeRules DescribeServices DescribeTargetHealth ModifyListener
    EcsBlueGreenTrafficShift
    DescribeRules DescribeServices DescribeTargetHealth ModifyListener TagResource ListTasks DescribeTasks ListTasks DescribeTasks
    ");
    insta::assert_snapshot!(world.account().await, @"absent, beside it web__1 web:1 2/2 GREEN, beside it web__2 web:2 2/2 BLUE; prod to one 0 and two 100; stage to one 100 and two 0");
    let third = deploy(&mut world, &balancer, "nginx:3", 0).await;
    insta::assert_snapshot!(third, @"
    EcsBlueGreenCreateService
    DescribeLoadBalancers DescribeListeners DescribeRules DescribeTargetGroups DescribeListeners DescribeRules ListServices DescribeServices DescribeScalableTargets DescribeScalingPolicies DescribeServices DescribeScalableTargets DescribeScalingPolicies DescribeTaskDefinition DescribeServices DescribeScalableTargets DescribeScalingPolicies UpdateService DeleteService DescribeServices RegisterTaskDefinition DescribeServices CreateService DescribeServices DescribeTargetHealth TagResource ListTasks DescribeTasks ListTasks DescribeTasks ListTasks DescribeTasks
    EcsBlueGreenTrafficShift
    DescribeRules DescribeServices DescribeTargetHealth ModifyListener
    EcsBlueGreenTrafficShift
    DescribeRules DescribeServices DescribeTargetHealth ModifyListener TagResource ListTasks DescribeTasks ListTasks DescribeTasks
    ");
    insta::assert_snapshot!(world.account().await, @"absent, beside it web__1 web:3 2/2 BLUE, beside it web__2 web:2 2/2 GREEN; prod to one 100 and two 0; stage to one 100 and two 0");
    let requests = world.requests(since);
    assert!(
        requests.failed == 0.0 && requests.sent > 0.0,
        "{requests:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_target_group_without_requests_need_not_be_named() {
    let (mut world, balancer) = brisk(Kind::Weighted).await;
    let mut spec = balancer.shift_spec(0);
    spec["stageTargetGroupArn"] = json!(null);
    for image in ["nginx:1", "nginx:2", "nginx:3"] {
        next(&mut world, image);
        world.run(CREATE, spec.clone()).await.done();
        world.run(SHIFT, inherit_spec(100)).await.done();
    }
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:3 2/2 BLUE, beside it web__2 web:2 2/2 GREEN; prod to one 0 and two 100; \
         stage to one 100 and two 0"
    );
}

#[tokio::test(start_paused = true)]
async fn requests_are_shared_by_weight_and_all_answered() {
    let mut world = World::new().await;
    let balancer = world.balance(Kind::Weighted).await;
    world.run(CREATE, balancer.shift_spec(0)).await.done();
    world.run(SHIFT, inherit_spec(100)).await.done();
    let begin = world.clock.now();
    next(&mut world, "nginx:2");
    world.run(CREATE, balancer.shift_spec(1)).await.done();
    for (weight, expected) in [(0, 0.0), (25, 25.0), (100, 100.0)] {
        world
            .attempt(SHIFT, inherit_spec(weight), weight)
            .await
            .done();
        let since = world.clock.now();
        world.clock.sleep(std::time::Duration::from_secs(100)).await;
        let by = world.requests(since).by_task_definition;
        let new = by.iter().find(|(name, _)| name.ends_with(":2"));
        let share = new.map_or(0.0, |(_, requests)| requests.round());
        assert!((share - expected).abs() < 0.5, "{weight}: {by:?}");
    }
    let account = world.account().await;
    assert!(
        account.contains("web__1 web:1 2/2 GREEN, beside it web__2 web:2 2/2 BLUE"),
        "{account}"
    );
    world.run(ROLLBACK, json!({})).await.done();
    world.clock.sleep(std::time::Duration::from_secs(200)).await;
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:1 2/2 BLUE, beside it web__2 web:2 0/0 GREEN; prod to one 100 and two 0; \
         stage to one 100 and two 0"
    );
    let requests = world.requests(begin);
    assert!(requests.failed == 0.0, "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_shift_that_stands_alone_is_rolled_back_to_what_was_before_the_first() {
    let (mut world, balancer) = brisk(Kind::Weighted).await;
    world.run(CREATE, balancer.shift_spec(0)).await.done();
    world.run(SHIFT, inherit_spec(100)).await.done();
    let since = world.clock.now();
    next(&mut world, "nginx:2");
    world.run(CREATE, balancer.shift_spec(1)).await.done();
    let before = world.account().await;
    for (attempt, (one, two)) in (0..).zip([(30, 70), (0, 1)]) {
        let spec = balancer.standalone_spec(one, two);
        world.attempt(SHIFT, spec, attempt).await.done();
        let account = world.account().await;
        assert!(
            account.ends_with(&format!("stage to one {one} and two {two}")),
            "{account}"
        );
    }
    // Tags and the rule of production are left alone, and so is the stage's by the other rollback.
    let account = world.account().await;
    assert!(
        account.contains("web__2 web:2 2/2 GREEN; prod to one 100 and two 0"),
        "{account}"
    );
    world.run(STANDALONE_ROLLBACK, json!({})).await.done();
    assert_eq!(world.account().await, before);
    assert!(world.requests(since).failed == 0.0);
    let log = world.log(STANDALONE_ROLLBACK, "Rollback").await;
    assert!(log.contains("rolled back cleanly"), "{log}");
    // Had it been stopped, it would have said of which rule.
    let stopped = world.abort(STANDALONE_ROLLBACK, json!({})).await;
    let left = stopped.expect_err("it was stopped").left_behind;
    let left = left.unwrap_or_default();
    assert!(left.contains("may not forward to"), "{left}");
}

#[tokio::test(start_paused = true)]
async fn what_a_shift_refuses() {
    let (mut world, balancer) = brisk(Kind::Weighted).await;
    let failure = world.run(SHIFT, inherit_spec(10)).await.failed();
    assert!(
        failure
            .message
            .contains("needs a step of type EcsBlueGreenCreateService"),
        "{}",
        failure.message
    );

    next(&mut world, "nginx:1");
    world.run(CREATE, balancer.shift_spec(0)).await.done();
    let failure = world.run(SWAP, json!({})).await.failed();
    assert!(
        failure.message.contains("Use EcsBlueGreenTrafficShift"),
        "{}",
        failure.message
    );
    let before = world.account().await;
    let mut same = balancer.standalone_spec(1, 1);
    same["ecsTrafficShiftWrapper"]["spec"]["listener"] = json!(balancer.listeners[0]);
    same["ecsTrafficShiftWrapper"]["spec"]["listenerRuleArn"] = json!(balancer.rules[0]);
    let mut gone = balancer.standalone_spec(1, 1);
    let rule = format!("{}0", balancer.rules[1]);
    gone["ecsTrafficShiftWrapper"]["spec"]["listenerRuleArn"] = json!(rule);
    let mut other = balancer.standalone_spec(1, 1);
    other["ecsTrafficShiftWrapper"]["spec"]["listener"] = json!(balancer.listeners[0]);
    let table = [
        (same, "is the one of EcsBlueGreenCreateService"),
        (gone, "RuleNotFound"),
        (other, "is not a rule of listener"),
        (
            balancer.standalone_spec(1, 1),
            "has no targets to answer them",
        ),
    ];
    for (attempt, (spec, part)) in (0..).zip(table) {
        let failure = world.attempt(SHIFT, spec, attempt).await.failed();
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    assert_eq!(world.account().await, before);
}
