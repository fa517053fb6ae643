//! `EcsServiceSetup`, `EcsUpgradeContainer` and `EcsBasicRollback`: tasks move from one service to the next.

use serde_json::{Value, json};
use slipway_sandbox::Pace;
use slipway_store::InstanceFilter;

use crate::tap::Mode;
use crate::world::{World, manifest, scope, service_definition, task_definition};

const SETUP: &str = "EcsServiceSetup";
const UPGRADE: &str = "EcsUpgradeContainer";
const ROLLBACK: &str = "EcsBasicRollback";

fn percent(count: u32) -> Value {
    json!({"newServiceInstanceCount": count, "newServiceInstanceUnit": "Percentage"})
}

/// A policy that scales the service.
fn scaling() -> [slipway_plan::ManifestPlan; 2] {
    [
        manifest(
            "EcsScalableTargetDefinition",
            &json!({"minCapacity": 1, "maxCapacity": 8}),
        ),
        manifest(
            "EcsScalingPolicyDefinition",
            &json!({"policyName": "P1", "policyType": "TargetTrackingScaling",
                "targetTrackingScalingPolicyConfiguration": {"targetValue": 60,
                "predefinedMetricSpecification": {"predefinedMetricType": "ECSServiceAverageCPUUtilization"}}}),
        ),
    ]
}

/// How many instances are counted of each service.
async fn counted(world: &World) -> String {
    let filter = InstanceFilter::default();
    let found = world.store.list_instances(&scope(), &filter).await;
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for instance in found.expect("a list") {
        let service = instance.info["serviceName"].as_str().unwrap_or("?");
        *counts.entry(service.to_owned()).or_default() += 1;
    }
    let counts = counts.iter().map(|(name, count)| format!("{name} {count}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// A whole deployment of one version; the calls of each step.
async fn deploy(world: &mut World, image: &str) -> String {
    world.next_run();
    world.deploys(&task_definition(image), &service_definition(4));
    let mut traces = Vec::new();
    for (step, spec) in [(SETUP, json!({})), (UPGRADE, percent(100))] {
        let before = world.sandbox.calls().len();
        world.run(step, spec).await.done();
        traces.push(format!(
            "{step}\n{}",
            world.trace(before).replace('\n', " ")
        ));
    }
    traces.join("\n")
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_the_first_the_second_and_the_third_deployment() {
    let mut world = World::with_pace(Pace::brisk()).await;
    let first = deploy(&mut world, "nginx:1").await;
    assert_eq!(world.account().await, "absent, beside it web__1 web:1 4/4");
    insta::assert_snapshot!(first, @"
    EcsServiceSetup
    ListServices DescribeServices DescribeTaskDefinition RegisterTaskDefinition DescribeServices CreateService
    EcsUpgradeContainer
    DescribeServices UpdateService DescribeServices ListTasks DescribeTasks
    ");
    let second = deploy(&mut world, "nginx:2").await;
    insta::assert_snapshot!(second, @"
    EcsServiceSetup
    ListServices DescribeServices DescribeScalableTargets DescribeScalingPolicies DescribeTaskDefinition RegisterTaskDefinition DescribeServices CreateService
    EcsUpgradeContainer
    DescribeServices UpdateService DescribeServices DescribeScalableTargets DescribeScalingPolicies UpdateService DescribeServices ListTasks DescribeTasks ListTasks
    ");
    // What the second one had replaced goes.
    let third = deploy(&mut world, "nginx:3").await;
    assert_eq!(third, second.replacen(" DescribeTaskDefinition", " DescribeTaskDefinition DescribeServices DescribeScalableTargets DescribeScalingPolicies DeleteService DescribeServices", 1));
    assert_eq!(
        world.account().await,
        "absent, beside it web__2 web:2 0/0, beside it web__3 web:3 4/4"
    );
    assert_eq!(counted(&world).await, "web__3 4");
}

/// Two versions were deployed, somebody has another such service without tasks, and a third version is about to be deployed.
async fn about_to_clear(store: &World) -> World {
    use aws_sdk_ecs::types::{AwsVpcConfiguration, NetworkConfiguration};
    let mut world = store.beside(Pace::brisk()).await;
    deploy(&mut world, "nginx:1").await;
    deploy(&mut world, "nginx:2").await;
    let subnets = AwsVpcConfiguration::builder().subnets("subnet-1");
    let subnets = subnets.build().expect("a configuration");
    let network = NetworkConfiguration::builder().awsvpc_configuration(subnets);
    let theirs = world.ecs().create_service().cluster("prod");
    let theirs = theirs.service_name("web__7").task_definition("web:1");
    let theirs = theirs.network_configuration(network.build());
    let made = theirs.launch_type("FARGATE".into()).desired_count(0).send();
    made.await.expect("a service");
    world.next_run();
    world.deploys(&task_definition("nginx:3"), &service_definition(4));
    world
}

#[tokio::test(start_paused = true)]
async fn of_the_versions_without_tasks_only_the_one_that_was_replaced_goes() {
    let store = World::new().await;
    let calls = {
        let world = about_to_clear(&store).await;
        world.tap.set(Mode::Open);
        world.run(SETUP, json!({})).await.done();
        world.tap.calls()
    };
    for call in 1..=calls {
        let world = about_to_clear(&store).await;
        world.tap.set(Mode::DieAfter(call));
        world.run(SETUP, json!({})).await.done();
        world.tap.set(Mode::Open);
        world.run(UPGRADE, percent(100)).await.done();
        assert_eq!(
            world.account().await,
            "absent, beside it web__2 web:2 0/0, beside it web__7 web:1 0/0, beside it web__8 web:3 4/4",
            "died after call {call}"
        );
        world.run(ROLLBACK, json!({})).await.done();
        assert_eq!(
            world.account().await,
            "absent, beside it web__2 web:2 4/4, beside it web__7 web:1 0/0",
            "died after call {call}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_move_in_phases_and_all_are_counted() {
    let mut world = World::new().await;
    deploy(&mut world, "nginx:1").await;
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &service_definition(4));
    let outputs = world.run(SETUP, json!({})).await.done();
    assert_eq!(outputs["output"]["serviceName"], "web__2");
    assert_eq!(outputs["output"]["oldServiceName"], "web__1");
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:1 4/4, beside it web__2 web:2 0/0"
    );
    world.attempt(UPGRADE, percent(50), 0).await.done();
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:1 2/2, beside it web__2 web:2 2/2"
    );
    assert_eq!(counted(&world).await, "web__1 2, web__2 2");
    let log = world.log(UPGRADE, "Deploy").await;
    let lines = log.lines().filter(|line| line.starts_with("Scaling"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    Scaling Service web__2 from 0 to 2 tasks
    Scaling Service web__1 from 4 to 2 tasks
    ");
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(world.account().await, "absent, beside it web__1 web:1 4/4");
    assert_eq!(counted(&world).await, "web__1 4");
    assert_eq!(world.count("RegisterTaskDefinition"), 2);
}

#[tokio::test(start_paused = true)]
async fn old_tasks_may_go_first_and_the_count_may_be_kept() {
    let mut world = World::new().await;
    deploy(&mut world, "nginx:1").await;
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &service_definition(9));
    let spec =
        json!({"resizeStrategy": "DownsizeOldFirst", "sameAsAlreadyRunningInstances": "true"});
    world.run(SETUP, spec).await.done();
    world.run(UPGRADE, percent(100)).await.done();
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:1 0/0, beside it web__2 web:2 4/4"
    );
    let log = world.log(UPGRADE, "Deploy").await;
    let lines = log.lines().filter(|line| line.starts_with("Scaling"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    Scaling Service web__1 from 4 to 0 tasks
    Scaling Service web__2 from 0 to 4 tasks
    ");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_does_not_start_gives_its_tasks_back_with_their_scaling() {
    let mut world = World::new().await;
    world.manifests.extend(scaling());
    world.run("EcsRollingDeploy", json!({})).await.done();
    let before = world.account().await;
    assert_eq!(before, "web:1 2/2 COMPLETED scaled by P1");
    world.next_run();
    world.deploys(&task_definition("nginx:missing"), &service_definition(2));
    world
        .run(SETUP, json!({"resizeStrategy": "DownsizeOldFirst"}))
        .await
        .done();
    let failure = world.run(UPGRADE, percent(50)).await.failed();
    assert!(
        failure.message.contains("CannotPullContainerError"),
        "{}",
        failure.message
    );
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(world.account().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_first_deployment_is_taken_back_whole() {
    let mut world = World::new().await;
    world.manifests.extend(scaling());
    world.run(SETUP, json!({})).await.done();
    world.run(UPGRADE, percent(100)).await.done();
    assert_eq!(
        world.account().await,
        "absent scaled by P1, beside it web__1 web:1 2/2"
    );
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(world.account().await, "absent");
    world.next_run();
    world.run(ROLLBACK, json!({})).await.done();
}

#[tokio::test(start_paused = true)]
async fn a_service_of_somebody_else_is_not_replaced() {
    let mut world = World::new().await;
    // Another Slipway service of the project that has the same `serviceName`.
    world.run("EcsRollingDeploy", json!({})).await.done();
    let mut theirs = world.store.list_deployed().await.expect("a list").remove(0);
    world.store.delete_deployed(&theirs).await.expect("deleted");
    theirs.service = slipway_model::id::EntityId::new("cart");
    world.store.put_deployed(&theirs).await.expect("stored");
    world.next_run();
    let failure = world.run(SETUP, json!({})).await.failed();
    for part in ["web", "service cart", "not replaced"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    // One that Slipway does not know is left alone, with a warning.
    world.store.delete_deployed(&theirs).await.expect("deleted");
    world.next_run();
    world.run(SETUP, json!({})).await.done();
    let log = world.log(SETUP, "Prepare rollback data").await;
    assert!(log.contains("it is left alone"), "{log}");
    world.run(UPGRADE, percent(100)).await.done();
    assert_eq!(
        world.account().await,
        "web:1 2/2 COMPLETED, beside it web__1 web:2 2/2"
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_work_is_told_first() {
    let mut world = World::new().await;
    let failure = world.run(UPGRADE, percent(50)).await.failed();
    assert!(
        failure.message.contains("no EcsServiceSetup"),
        "{}",
        failure.message
    );
    let mut daemon = service_definition(1);
    daemon["schedulingStrategy"] = json!("DAEMON");
    let mut uncounted = service_definition(1);
    uncounted["desiredCount"] = Value::Null;
    for (definition, part) in [(daemon, "DAEMON"), (uncounted, "no `desiredCount`")] {
        world.next_run();
        world.deploys(&task_definition("nginx:1"), &definition);
        let failure = world.run(SETUP, json!({})).await.failed();
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    assert_eq!(world.count("CreateService"), 0);
    let faults = |step: &str, spec: Value| {
        let step = slipway_steps::find(step).expect("a step");
        step.check(&spec).join("; ")
    };
    assert_eq!(
        faults(SETUP, json!({"resizeStrategy": "Newest"})),
        "`resizeStrategy` must be ResizeNewFirst or DownsizeOldFirst"
    );
    assert_eq!(
        faults(UPGRADE, json!({"newServiceInstanceCount": -1})),
        "`newServiceInstanceCount` must be a whole number from 0; `newServiceInstanceUnit` is missing"
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_that_keeps_tasks_is_counted_after_the_next_deployments() {
    let mut world = World::with_pace(Pace::brisk()).await;
    deploy(&mut world, "nginx:1").await;
    for (image, expected) in [
        ("nginx:2", "web__1 2, web__2 2"),
        ("nginx:3", "web__1 2, web__2 1, web__3 2"),
    ] {
        world.next_run();
        world.deploys(&task_definition(image), &service_definition(4));
        world.run(SETUP, json!({})).await.done();
        world.run(UPGRADE, percent(50)).await.done();
        assert_eq!(counted(&world).await, expected);
    }
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(counted(&world).await, "web__1 2, web__2 2");
    deploy(&mut world, "nginx:4").await;
    assert_eq!(counted(&world).await, "web__1 2, web__3 4");
}

#[tokio::test(start_paused = true)]
async fn who_keeps_all_tasks_keeps_what_scales_them() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.manifests.extend(scaling());
    world.run(SETUP, json!({})).await.done();
    world.run(UPGRADE, percent(100)).await.done();
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &service_definition(2));
    world.run(SETUP, json!({})).await.done();
    world.run(UPGRADE, percent(0)).await.done();
    let account = world.account().await;
    assert!(account.contains("scaled by P1"), "{account}");
    let log = world.log(UPGRADE, "Deploy").await;
    assert!(!log.contains("Nothing scales"), "{log}");
    world.attempt(UPGRADE, percent(50), 1).await.done();
    let account = world.account().await;
    assert!(!account.contains("scaled by"), "{account}");
    let log = world.log(UPGRADE, "Deploy").await;
    assert!(
        log.contains("Nothing scales services web__1 and web__2 now"),
        "{log}"
    );
}
