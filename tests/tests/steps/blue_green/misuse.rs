//! What would take away or change what serves is refused before anything is done.

use serde_json::{Value, json};
use slipway_model::status::Failure;
use slipway_sandbox::{Fault, FaultEffect};
use slipway_steps::aws::wire::whole;

use super::{CREATE, ROLLBACK, SWAP, brisk, deploy, next};
use crate::balancer::{Balancer, Kind, balanced_definition, forward, inherit_spec, sorry};
use crate::world::{World, service_definition, task_definition};

/// Operations that change something.
fn changes(world: &World) -> usize {
    let calls = world.sandbox.calls();
    let looks = ["Describe", "List"];
    let changes = calls.iter().filter(|call| {
        !looks.iter().any(|look| call.operation.starts_with(look)) && call.operation != "AssumeRole"
    });
    changes.count()
}

/// A creation that is refused without having changed anything, rolled back as stages are.
pub(super) async fn refused(world: &mut World, spec: Value, parts: &[&str]) -> Failure {
    let (before, account) = (changes(world), world.account().await);
    let failure = world.run(CREATE, spec).await.failed();
    for part in parts {
        assert!(
            failure.message.contains(part),
            "{part}: {}",
            failure.message
        );
    }
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(changes(world), before, "{}", failure.message);
    assert_eq!(world.account().await, account);
    world.next_run();
    failure
}

/// A service past Slipway, in these target groups.
async fn somebodys(world: &World, name: &str, groups: &[&String]) {
    let mut task = task_definition("nginx:9");
    task["family"] = json!("other");
    task["containerDefinitions"][0]["environment"] = json!([]);
    let call = world.ecs().register_task_definition().customize();
    call.mutate_request(whole(&task))
        .send()
        .await
        .expect("a task definition");
    let mut definition = service_definition(1);
    definition["serviceName"] = json!(name);
    definition["cluster"] = json!("prod");
    definition["taskDefinition"] = json!("other");
    let balancers = groups
        .iter()
        .map(|group| json!({"targetGroupArn": group, "containerName": "web", "containerPort": 80}));
    definition["loadBalancers"] = balancers.collect();
    let call = world.ecs().create_service().customize();
    call.mutate_request(whole(&definition))
        .send()
        .await
        .expect("a service");
    world.clock.sleep(std::time::Duration::from_secs(30)).await;
}

/// Lets the rule of production forward to something else, past Slipway.
async fn point(world: &World, balancer: &Balancer, groups: &[(&str, i32)]) {
    let call = world.elb().modify_rule().rule_arn(&balancer.rules[0]);
    call.actions(forward(groups))
        .send()
        .await
        .expect("a changed rule");
}

#[tokio::test(start_paused = true)]
async fn definitions_that_cannot_be_deployed() {
    let (mut world, balancer) = brisk(Kind::Own).await;
    let definition = |change: fn(&mut Value)| {
        let mut definition = balanced_definition(2);
        change(&mut definition);
        definition
    };
    let table: Vec<(Value, &[&str])> = vec![
        (
            service_definition(2),
            &["`loadBalancers`", "<+targetGroupArn>", "it has 0"],
        ),
        (
            definition(|d| d["loadBalancers"][0]["targetGroupArn"] = json!("arn:aws:x")),
            &["arn:aws:x", "write `targetGroupArn: <+targetGroupArn>`"],
        ),
        (
            definition(|d| {
                let one = d["loadBalancers"][0].clone();
                d["loadBalancers"] = json!([one, one]);
            }),
            &["exactly one entry", "it has 2"],
        ),
        (
            definition(|d| d["loadBalancers"][0]["containerPort"] = json!(8080)),
            &["port 8080 of container web", "portMappings"],
        ),
        (
            definition(|d| d["loadBalancers"][0]["containerName"] = json!("sidecar")),
            &["container sidecar"],
        ),
        (
            definition(|d| d["desiredCount"] = json!(0)),
            &["`desiredCount` is 0"],
        ),
        (
            definition(|d| d["desiredCount"] = json!(null)),
            &["no `desiredCount`"],
        ),
        (
            definition(|d| d["schedulingStrategy"] = json!("DAEMON")),
            &["DAEMON"],
        ),
        (
            definition(|d| d["serviceName"] = json!("w".repeat(253))),
            &["255 characters", "shorten `serviceName`"],
        ),
        (
            definition(|d| d["deploymentConfiguration"]["strategy"] = json!("BLUE_GREEN")),
            &["strategy` is BLUE_GREEN"],
        ),
        (
            definition(|d| d["deploymentController"] = json!({"type": "CODE_DEPLOY"})),
            &["`deploymentController` is CODE_DEPLOY"],
        ),
    ];
    for (definition, parts) in table {
        world.deploys(&task_definition("nginx:1"), &definition);
        refused(&mut world, balancer.swap_spec(), parts).await;
    }
    let mut task = task_definition("nginx:1");
    task["containerDefinitions"][0]["portMappings"] = json!([{"containerPort": 8080}]);
    let on_8080 = definition(|d| d["loadBalancers"][0]["containerPort"] = json!(8080));
    world.deploys(&task, &on_8080);
    let parts = [
        "port mapping that matches the target port: 80",
        &*balancer.groups[1],
    ];
    refused(&mut world, balancer.swap_spec(), &parts).await;
    // The longest name that has room for its suffix.
    world.deploys(
        &task_definition("nginx:1"),
        &definition(|d| d["serviceName"] = json!("w".repeat(252))),
    );
    world.run(CREATE, balancer.swap_spec()).await.done();
}

#[tokio::test(start_paused = true)]
async fn rules_that_cannot_be_used() {
    let (mut world, balancer) = brisk(Kind::Own).await;
    let (one, two) = (balancer.groups[0].clone(), balancer.groups[1].clone());
    let with = |name: &str, value: &str| {
        let mut spec = balancer.swap_spec();
        spec[name] = json!(value);
        spec
    };
    let gone = format!("{}0", balancer.rules[0]);
    let table: Vec<(Value, Vec<&str>)> = vec![
        (
            with("prodListenerRuleArn", &gone),
            vec![&gone, "RuleNotFound"],
        ),
        (
            with("prodListenerRuleArn", &balancer.rules[1]),
            vec![&balancer.rules[1], "is not a rule of listener"],
        ),
        (
            with("prodListener", &format!("{}0", balancer.listeners[0])),
            vec!["ListenerNotFound"],
        ),
        (
            with("loadBalancer", "webb"),
            vec!["`webb`", "LoadBalancerNotFound"],
        ),
        (
            with("stageListener", ""),
            vec!["`stageListener` is missing"],
        ),
    ];
    for (spec, parts) in table {
        refused(&mut world, spec, &parts).await;
    }
    point(&world, &balancer, &[(&one, 60), (&two, 40)]).await;
    refused(
        &mut world,
        balancer.swap_spec(),
        &[&balancer.rules[0], "shares its requests"],
    )
    .await;
    let call = world.elb().modify_rule().rule_arn(&balancer.rules[0]);
    call.actions(sorry("503"))
        .send()
        .await
        .expect("a changed rule");
    refused(
        &mut world,
        balancer.swap_spec(),
        &["forwards to no target group", "fixed-response"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn rules_that_have_more_or_less_than_two_target_groups_cannot_be_shifted() {
    let (mut world, balancer) = brisk(Kind::Own).await;
    let (one, two) = (balancer.groups[0].clone(), balancer.groups[1].clone());
    let parts = ["forwards to 1 target groups", "exactly two"];
    refused(&mut world, balancer.shift_spec(0), &parts).await;
    let third = world
        .elb()
        .create_target_group()
        .name("three")
        .vpc_id("vpc-1");
    let third = third
        .port(80)
        .protocol("HTTP".into())
        .target_type("ip".into());
    let third = third.send().await.expect("a target group");
    let three = third.target_groups()[0].target_group_arn().expect("an ARN");
    point(&world, &balancer, &[(&one, 1), (&two, 1), (three, 1)]).await;
    let parts = ["forwards to 3 target groups", "exactly two"];
    refused(&mut world, balancer.shift_spec(0), &parts).await;
    point(&world, &balancer, &[(&one, 60), (&two, 40)]).await;
    let mut other = balancer.shift_spec(0);
    other["stageTargetGroupArn"] = json!(three);
    refused(&mut world, other, &[three, "is none of the target groups"]).await;
    let mut none = balancer.shift_spec(0);
    none["stageTargetGroupArn"] = json!(null);
    refused(
        &mut world,
        none,
        &[
            "`stageTargetGroupArn` is missing",
            "with weight 60",
            "Send all of them to one first: by `slipway rollback`",
            "an EcsBlueGreenTrafficShift of type Standalone on this rule in a stage of its own.",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn services_that_stand_in_the_way() {
    // Somebody else's, in either target group.
    for group in [0, 1] {
        let (mut world, balancer) = brisk(Kind::Own).await;
        somebodys(&world, "shop", &[&balancer.groups[group]]).await;
        refused(
            &mut world,
            balancer.swap_spec(),
            &["service shop", "no version of web", "not touched"],
        )
        .await;
    }
    let (mut world, balancer) = brisk(Kind::Own).await;
    somebodys(
        &world,
        "web__1",
        &[&balancer.groups[0], &balancer.groups[1]],
    )
    .await;
    let parts = [
        "Invalid Load balancer configuration in Service",
        "web__1",
        "both target groups",
    ];
    refused(&mut world, balancer.swap_spec(), &parts).await;

    let (mut world, balancer) = brisk(Kind::Own).await;
    somebodys(&world, "web__1", &[&balancer.groups[0]]).await;
    somebodys(&world, "web__2", &[&balancer.groups[0]]).await;
    refused(
        &mut world,
        balancer.swap_spec(),
        &["web__1 and web__2", "both attached"],
    )
    .await;

    // Targets that no service of the cluster registered.
    let (mut world, balancer) = brisk(Kind::Own).await;
    let target = aws_sdk_elasticloadbalancingv2::types::TargetDescription::builder().id("10.9.9.9");
    let call = world.elb().register_targets();
    let call = call
        .target_group_arn(&balancer.groups[1])
        .targets(target.build());
    call.send().await.expect("a target");
    world.clock.sleep(std::time::Duration::from_secs(30)).await;
    let parts = [&*balancer.groups[1], "1 healthy targets", "another cluster"];
    refused(&mut world, balancer.swap_spec(), &parts).await;

    // The name is taken by a service that no load balancer knows.
    let (mut world, balancer) = brisk(Kind::Own).await;
    somebodys(&world, "web__1", &[]).await;
    let parts = ["web__1 has the name", "not in the stage target group"];
    refused(&mut world, balancer.swap_spec(), &parts).await;
}

#[tokio::test(start_paused = true)]
async fn rules_that_are_mixed_up_delete_nothing() {
    let (mut world, balancer) = brisk(Kind::Own).await;
    deploy(&mut world, &balancer, "nginx:1").await;
    next(&mut world, "nginx:2");
    let mut spec = balancer.swap_spec();
    spec["prodListener"] = json!(balancer.listeners[1]);
    spec["prodListenerRuleArn"] = json!(balancer.rules[1]);
    spec["stageListener"] = json!(balancer.listeners[0]);
    spec["stageListenerRuleArn"] = json!(balancer.rules[0]);
    let parts = ["web__1", "runs 2 tasks", "BG_VERSION=BLUE", "mixed up"];
    refused(&mut world, spec, &parts).await;
}

#[tokio::test(start_paused = true)]
async fn a_stage_target_group_that_is_not_alternated_is_refused() {
    let (mut world, balancer) = brisk(Kind::Weighted).await;
    world.run(CREATE, balancer.shift_spec(0)).await.done();
    world
        .run("EcsBlueGreenTrafficShift", inherit_spec(100))
        .await
        .done();
    next(&mut world, "nginx:2");
    let parts = [
        &*balancer.rules[0],
        "weight 100",
        "Service web__1 serves them, and it would be deleted",
        "must be the other target group",
        &*balancer.groups[1],
    ];
    refused(&mut world, balancer.shift_spec(0), &parts).await;
    // Also while both get requests.
    world.deploys(&task_definition("nginx:2"), &balanced_definition(2));
    world.run(CREATE, balancer.shift_spec(1)).await.done();
    world
        .run("EcsBlueGreenTrafficShift", inherit_spec(40))
        .await
        .done();
    next(&mut world, "nginx:3");
    for (group, service) in [(0, "web__1"), (1, "web__2")] {
        let part = format!("Service {service} serves them");
        let way_out =
            "EcsBlueGreenTrafficShift of type Standalone on this rule in a stage of its own";
        let failure = refused(&mut world, balancer.shift_spec(group), &[&part, way_out]).await;
        let circle = failure.message.contains("must be the other target group");
        assert!(!circle, "{}", failure.message);
    }
    // That way leads out.
    let all_to_the_first = json!({"ecsTrafficShiftWrapper": {"type": "Standalone", "spec": {
        "loadBalancer": "web", "listener": balancer.listeners[0], "listenerRuleArn": balancer.rules[0],
        "forwardConfig": [
            {"targetGroupArn": balancer.groups[0], "weight": 100},
            {"targetGroupArn": balancer.groups[1], "weight": 0},
        ],
    }}});
    world.next_run();
    let shift = "EcsBlueGreenTrafficShift";
    world.run(shift, all_to_the_first).await.done();
    next(&mut world, "nginx:3");
    world.run(CREATE, balancer.shift_spec(1)).await.done();
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_being_deleted_is_waited_for() {
    let (mut world, balancer) = brisk(Kind::Own).await;
    deploy(&mut world, &balancer, "nginx:1").await;
    deploy(&mut world, &balancer, "nginx:2").await;
    let up = world
        .ecs()
        .update_service()
        .cluster("prod")
        .service("web__1");
    up.desired_count(1).send().await.expect("a task");
    world.clock.sleep(std::time::Duration::from_secs(30)).await;
    let gone = world
        .ecs()
        .delete_service()
        .cluster("prod")
        .service("web__1");
    gone.force(true).send().await.expect("being deleted");
    next(&mut world, "nginx:3");
    world.run(CREATE, balancer.swap_spec()).await.done();
    let account = world.account().await;
    assert!(account.contains("web__1 web:3 2/2 GREEN"), "{account}");
}

#[tokio::test(start_paused = true)]
async fn what_was_changed_by_hand_is_not_swapped_and_not_rolled_back_over() {
    let (mut world, balancer) = brisk(Kind::Own).await;
    deploy(&mut world, &balancer, "nginx:1").await;
    next(&mut world, "nginx:2");
    world.run(CREATE, balancer.swap_spec()).await.done();
    let third = world
        .elb()
        .create_target_group()
        .name("three")
        .vpc_id("vpc-1");
    let third = third
        .port(80)
        .protocol("HTTP".into())
        .target_type("ip".into());
    let third = third.send().await.expect("a target group");
    let three = third.target_groups()[0].target_group_arn().expect("an ARN");
    point(&world, &balancer, &[(three, 1)]).await;
    let failure = world.run(SWAP, json!({})).await.failed();
    for part in [
        &*balancer.rules[0],
        three,
        "somebody or something else changed it",
        "Nothing is swapped",
    ] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    point(&world, &balancer, &[(&balancer.groups[1], 1)]).await;
    world.attempt(SWAP, json!({}), 1).await.done();
    point(&world, &balancer, &[(three, 1)]).await;
    let before = changes(&world);
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    let left = failure.left_behind.expect("something is left");
    for part in ["web__2", &*balancer.rules[0], "web__1"] {
        assert!(left.contains(part), "{left}");
    }
    assert!(
        failure.message.contains("neither are the services"),
        "{}",
        failure.message
    );
    // The old service has its tasks back; everything else is as it was.
    assert_eq!(changes(&world) - before, 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_version_that_is_gone_or_stopped_gets_no_requests() {
    let (mut world, balancer) = brisk(Kind::Own).await;
    deploy(&mut world, &balancer, "nginx:1").await;
    next(&mut world, "nginx:2");
    world.run(CREATE, balancer.swap_spec()).await.done();
    let stop = world
        .ecs()
        .update_service()
        .cluster("prod")
        .service("web__2");
    stop.desired_count(0).send().await.expect("no task");
    let failure = world.run(SWAP, json!({})).await.failed();
    assert!(
        failure.message.contains("scaled it to 0 tasks"),
        "{}",
        failure.message
    );
    let gone = world
        .ecs()
        .delete_service()
        .cluster("prod")
        .service("web__2");
    gone.force(true).send().await.expect("being deleted");
    let failure = world.attempt(SWAP, json!({}), 1).await.failed();
    assert!(
        failure.message.contains("deleted it"),
        "{}",
        failure.message
    );
    assert_eq!(world.count("ModifyRule"), 2);
    let long = json!({"downsizeOldServiceDelayInSecs": 600});
    let failure = world.attempt(SWAP, long, 2).await.failed();
    assert!(
        failure.message.contains("longer `timeout`"),
        "{}",
        failure.message
    );
}

#[tokio::test(start_paused = true)]
async fn the_service_of_another_slipway_service_is_not_taken_over() {
    let (mut world, balancer) = brisk(Kind::Own).await;
    deploy(&mut world, &balancer, "nginx:1").await;
    next(&mut world, "nginx:2");
    world.service = "shop".to_owned();
    let parts = [
        "web__1",
        "was deployed as service web",
        "different `serviceName`s",
    ];
    refused(&mut world, balancer.swap_spec(), &parts).await;
}

#[tokio::test(start_paused = true)]
async fn a_swap_that_is_cut_between_its_changes_is_rolled_back() {
    let (mut world, balancer) = brisk(Kind::Default).await;
    deploy(&mut world, &balancer, "nginx:1").await;
    next(&mut world, "nginx:2");
    world.run(CREATE, balancer.swap_spec()).await.done();
    // Both rules forward to the new version then, and no rule names the target group of the old one.
    world.sandbox.faults().add(Fault {
        service: None,
        operation: Some("ModifyListener".to_owned()),
        skip: 1,
        count: Some(1),
        effect: FaultEffect::AccessDenied,
    });
    world.run(SWAP, json!({})).await.failed();
    // Its tasks are replaced meanwhile: AWS does not check those that no rule sends requests to.
    let again = world.ecs().update_service().cluster("prod");
    let again = again.service("web__1").force_new_deployment(true);
    again.send().await.expect("a new deployment");
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    let since = world.clock.now();
    world.run(ROLLBACK, json!({})).await.done();
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:1 2/2 BLUE, beside it web__2 web:2 0/0 GREEN; prod to two; stage to one"
    );
    let log = world.log(ROLLBACK, "Rollback").await;
    assert!(log.contains("so that its targets are checked"), "{log}");
    let requests = world.requests(since);
    assert!(requests.failed == 0.0, "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn production_comes_back_where_somebody_changed_the_stage_rule() {
    let (mut world, balancer) = brisk(Kind::Own).await;
    deploy(&mut world, &balancer, "nginx:1").await;
    next(&mut world, "nginx:2");
    world.run(CREATE, balancer.swap_spec()).await.done();
    let keep = json!({"doNotDownsizeOldService": true});
    world.run(SWAP, keep).await.done();
    let call = world.elb().modify_rule().rule_arn(&balancer.rules[1]);
    call.actions(sorry("503"))
        .send()
        .await
        .expect("a changed rule");
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    assert!(
        failure
            .message
            .contains("Service web__1 serves again, and one rule is not as it was"),
        "{}",
        failure.message
    );
    let left = failure.left_behind.expect("something is left");
    let expected = format!("listener rule {} does not forward to ", balancer.rules[1]);
    assert!(left.starts_with(&expected), "{left}");
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    let account = world.account().await;
    for part in [
        "web__1 web:1 2/2 BLUE",
        "web__2 web:2 0/0 GREEN",
        "prod to two",
    ] {
        assert!(account.contains(part), "{account}");
    }
}
