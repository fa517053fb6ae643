//! `EcsCanaryDeploy` and `EcsCanaryDelete`: one task beside the live service, and nothing of anybody else's.

use serde_json::json;
use slipway_fn_instances::{Deps, sweep};
use slipway_sandbox::{Fault, FaultEffect, Pace};
use slipway_steps::aws::wire::whole;
use slipway_store::InstanceFilter;

use crate::balancer::{Kind, balanced_definition};
use crate::world::{World, manifest, scope, service_definition, task_definition};

const DEPLOY: &str = "EcsCanaryDeploy";
const DELETE: &str = "EcsCanaryDelete";
const ROLL: &str = "EcsRollingDeploy";

/// Image and task definition of each instance that is counted.
async fn counted(world: &World) -> Vec<String> {
    let filter = InstanceFilter::default();
    let found = world.store.list_instances(&scope(), &filter).await;
    let mut found: Vec<_> = found
        .expect("a list")
        .into_iter()
        .map(|instance| {
            let run = instance.run.map_or("?".to_owned(), |run| run.to_string());
            let service = instance.info["serviceName"].as_str().unwrap_or("?");
            format!("{service}:{} by {run}", instance.info["version"])
        })
        .collect();
    found.sort_unstable();
    found
}

/// Registers a task definition past Slipway.
async fn register(world: &World, family: &str) {
    let mut definition = task_definition("nginx:9");
    definition["family"] = json!(family);
    let call = world.ecs().register_task_definition().customize();
    let call = call.mutate_request(whole(&definition));
    call.send().await.expect("a task definition");
}

/// A service made by somebody else, with one task of its own.
async fn somebodys(world: &World, name: &str) {
    register(world, "other").await;
    let mut definition = service_definition(1);
    definition["serviceName"] = json!(name);
    definition["cluster"] = json!("prod");
    definition["taskDefinition"] = json!("other");
    let call = world.ecs().create_service().customize();
    let call = call.mutate_request(whole(&definition));
    call.send().await.expect("a service");
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
}

/// Canary, its deletion and the rolling deployment of one version; the calls of each.
async fn deploy(world: &mut World, image: &str) -> String {
    world.next_run();
    world.deploys(&task_definition(image), &service_definition(2));
    let mut traces = Vec::new();
    for step in [DEPLOY, DELETE, ROLL] {
        let before = world.sandbox.calls().len();
        world.run(step, json!({})).await.done();
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
    insta::assert_snapshot!(first, @"
    EcsCanaryDeploy
    DescribeServices DescribeTaskDefinition RegisterTaskDefinition DescribeServices CreateService DescribeServices ListTasks DescribeTasks ListTasks DescribeTasks
    EcsCanaryDelete
    DescribeServices DescribeScalableTargets DescribeScalingPolicies UpdateService DeleteService DescribeServices ListTasks
    EcsRollingDeploy
    DescribeServices DescribeTaskDefinition RegisterTaskDefinition DescribeServices CreateService DescribeServices ListTasks DescribeTasks
    ");
    let second = deploy(&mut world, "nginx:2").await;
    insta::assert_snapshot!(second, @"
    EcsCanaryDeploy
    DescribeServices DescribeTaskDefinition RegisterTaskDefinition DescribeServices CreateService DescribeServices ListTasks DescribeTasks ListTasks DescribeTasks ListTasks DescribeTasks
    EcsCanaryDelete
    DescribeServices DescribeScalableTargets DescribeScalingPolicies UpdateService DeleteService DescribeServices ListTasks DescribeTasks
    EcsRollingDeploy
    DescribeServices DescribeScalableTargets DescribeScalingPolicies DescribeTaskDefinition RegisterTaskDefinition DescribeServices DescribeScalableTargets DescribeScalingPolicies UpdateService DescribeServices ListTasks DescribeTasks
    ");
    let third = deploy(&mut world, "nginx:3").await;
    assert_eq!(third, second);
    // The canary and the rolling deployment each register a revision.
    assert_eq!(world.account().await, "web:6 2/2 COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn a_canary_is_one_task_beside_the_live_service_and_is_counted() {
    let mut world = World::new().await;
    world.run(ROLL, json!({})).await.done();
    let first = world.run.to_string();
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &service_definition(2));
    let outputs = world.run(DEPLOY, json!({})).await.done();
    assert_eq!(
        world.account().await,
        "web:1 2/2 COMPLETED, beside it webCanary web:2 1/1"
    );
    assert_eq!(outputs["output"]["serviceName"], "webCanary");
    let instances = &outputs["deploymentInfoOutcome"]["serverInstanceInfoList"];
    assert_eq!(instances.as_array().map(Vec::len), Some(1));
    assert_eq!(instances[0]["version"], "2");

    let live = format!("web:\"1\" by {first}");
    let canary = format!("webCanary:\"2\" by {}", world.run);
    let both = [live.clone(), live.clone(), canary];
    assert_eq!(counted(&world).await, both);
    let deps = Deps {
        services: world.services.clone(),
    };
    let swept = sweep(&deps).await.expect("a sweep");
    assert_eq!((swept.counted, swept.failed), (1, 0), "{swept:?}");
    assert_eq!(counted(&world).await, both);

    insta::assert_snapshot!(world.log(DEPLOY, "Prepare rollback data").await, @"To roll back, the canary service webCanary is deleted");
    world.run(DELETE, json!({})).await.done();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
    assert_eq!(counted(&world).await, [live.clone(), live]);
    insta::assert_snapshot!(world.log(DELETE, "Delete").await, @"
    Deleting service webCanary..
    Waiting for existing Service webCanary to reach inactive state
    Canary service webCanary deleted
    ");
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_fails_leaves_the_live_service_alone() {
    let mut world = World::new().await;
    world.run(ROLL, json!({})).await.done();
    world.next_run();
    world.deploys(&task_definition("nginx:missing"), &service_definition(2));
    let failure = world.run(DEPLOY, json!({})).await.failed();
    for part in ["webCanary", "CannotPullContainerError"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    world.run(DELETE, json!({})).await.done();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_was_left_is_deleted_first() {
    let mut world = World::new().await;
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &service_definition(2));
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(
        world.account().await,
        "absent, beside it webCanary web:2 1/1"
    );
    assert_eq!(world.count("DeleteService"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_was_left_is_told_whatever_is_deployed_next() {
    for kind in ["EcsServiceSetup", "EcsBlueGreenCreateService"] {
        let mut world = World::with_pace(Pace::brisk()).await;
        world.run(DEPLOY, json!({})).await.done();
        let left = world.run.to_string();
        world.next_run();
        let spec = match kind {
            "EcsServiceSetup" => {
                world.deploys(&task_definition("nginx:2"), &service_definition(2));
                json!({})
            }
            _ => {
                let balancer = world.balance(Kind::Own).await;
                world.deploys(&task_definition("nginx:2"), &balanced_definition(2));
                balancer.swap_spec()
            }
        };
        world.run(kind, spec).await.done();
        let log = world.log(kind, "Prepare rollback data").await;
        for part in [
            "Canary service webCanary in ",
            "stays, with web:1",
            "aws ecs delete-service --force",
            &format!("Run {left} left it, and no step of this stage deletes it."),
        ] {
            assert!(log.contains(part), "{kind}: {log}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_only_has_the_name_of_a_canary_is_never_touched() {
    let world = World::new().await;
    somebodys(&world, "webCanary").await;
    let account = world.account().await;
    assert_eq!(account, "absent, beside it webCanary other:1 1/1");
    let failure = world.run(DEPLOY, json!({})).await.failed();
    for part in ["webCanary", "other:1", "not touched", "rename"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    world.run(DELETE, json!({})).await.done();
    assert_eq!(world.account().await, account);
    for operation in ["DeleteService", "UpdateService", "RegisterTaskDefinition"] {
        let expected = usize::from(operation == "RegisterTaskDefinition");
        assert_eq!(world.count(operation), expected, "{operation}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_somebody_took_over_is_not_deleted() {
    let world = World::new().await;
    world.run(DEPLOY, json!({})).await.done();
    register(&world, "web").await;
    let taken = world.ecs().update_service().cluster("prod");
    let taken = taken.service("webCanary").task_definition("web");
    taken.send().await.expect("taken over");
    let failure = world.run(DELETE, json!({})).await.failed();
    assert!(
        failure.message.contains("is not deleted"),
        "{}",
        failure.message
    );
    let left = failure.left_behind.expect("something is left");
    assert!(left.contains("webCanary"), "{left}");
    assert_eq!(world.count("DeleteService"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_a_canary_is_refused_before_anything_is_done() {
    let mut world = World::new().await;
    let mut daemon = service_definition(1);
    daemon["schedulingStrategy"] = json!("DAEMON");
    let mut long = service_definition(1);
    long["serviceName"] = json!("w".repeat(250));
    for (definition, part) in [(daemon, "DAEMON"), (long, "255 characters")] {
        world.next_run();
        world.manifests = vec![
            manifest("EcsTaskDefinition", &task_definition("nginx:1")),
            manifest("EcsServiceDefinition", &definition),
        ];
        let failure = world.run(DEPLOY, json!({})).await.failed();
        assert!(failure.message.contains(part), "{}", failure.message);
        world.run(DELETE, json!({})).await.done();
    }
    assert_eq!(world.count("CreateService"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_was_never_created_is_not_told_as_deleted() {
    let world = World::new().await;
    world.sandbox.faults().add(Fault {
        service: None,
        operation: Some("CreateService".to_owned()),
        skip: 0,
        count: None,
        effect: FaultEffect::AccessDenied,
    });
    world.run(DEPLOY, json!({})).await.failed();
    world.run(DELETE, json!({})).await.done();
    insta::assert_snapshot!(world.log(DELETE, "Delete").await, @"Canary service webCanary does not exist: nothing is left");
}
