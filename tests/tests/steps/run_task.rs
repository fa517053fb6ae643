//! `EcsRunTask`: tasks that run once and must end well.

use serde_json::{Value, json};
use slipway_sandbox::{Fault, FaultEffect};

use crate::world::{JOB, PASSWORD, World, job, manifest, task_definition};

const RUN: &str = "EcsRunTask";

/// A world in which the step runs `count` tasks of an image.
async fn world(image: &str, count: u32) -> World {
    let mut world = World::new().await;
    world.step_manifests = job(image, count);
    world
}

#[tokio::test(start_paused = true)]
async fn tasks_run_once_and_are_waited_for() {
    let world = world("nginx:exits-0", 2).await;
    let before = world.sandbox.calls().len();
    let outputs = world.run(RUN, json!({})).await.done();
    let output = &outputs["output"];
    assert_eq!(output["taskArns"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        output["tasks"][0]["containers"],
        json!([{"name": "web", "exitCode": 0}])
    );
    assert!(
        output["taskDefinitionArn"]
            .as_str()
            .is_some_and(|arn| arn.ends_with("migrate:1"))
    );
    assert_eq!(world.ran(JOB).await, 2);
    insta::assert_snapshot!(world.trace(before).replace('\n', " "), @"DescribeTaskDefinition RegisterTaskDefinition RunTask DescribeTasks ListTasks");

    let log = world.log(RUN, "Deploy").await;
    for line in [
        "Triggering 2 tasks with task definition migrate:1",
        "2 Tasks were triggered successfully and 0 failures were received.",
        "is RUNNING",
        "is STOPPED",
        "Success.",
    ] {
        assert!(log.contains(line), "{log}");
    }
    assert!(!world.everything_stored().await.contains(PASSWORD));
    // Its tasks are no instances.
    let deployed = world.store.list_deployed().await.expect("a list");
    assert!(deployed.is_empty(), "{deployed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ends_badly_fails_the_step_with_its_reason() {
    let table = [
        ("nginx:exits-3", "exit code 3"),
        ("nginx:missing", "CannotPullContainerError"),
    ];
    for (image, why) in table {
        let world = world(image, 1).await;
        let failure = world.run(RUN, json!({})).await.failed();
        for part in ["1 of 1 tasks", "migrate:1", why] {
            assert!(failure.message.contains(part), "{}", failure.message);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_essential_containers_must_end_well() {
    let mut world = world("nginx:exits-0", 1).await;
    let mut definition = task_definition("nginx:exits-0");
    definition["family"] = json!(JOB);
    let containers = definition["containerDefinitions"]
        .as_array_mut()
        .expect("containers");
    containers.push(json!({"name": "helper", "image": "nginx:1", "essential": false}));
    let identifier = world.step_manifests[0].identifier.clone();
    world.step_manifests[0] = manifest("EcsTaskDefinition", &definition);
    world.step_manifests[0].identifier = identifier;
    world.run(RUN, json!({})).await.done();
}

#[tokio::test(start_paused = true)]
async fn a_step_may_leave_its_tasks_to_themselves() {
    let world = world("nginx:exits-3", 1).await;
    let spec = json!({"skipSteadyStateCheck": "true"});
    world.run(RUN, spec).await.done();
    let log = world.log(RUN, "Deploy").await;
    assert!(log.contains("Skipped Steady State Check"), "{log}");
    assert_eq!(world.count("DescribeTasks"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_definition_by_arn_is_not_registered_again() {
    let mut world = world("nginx:exits-0", 1).await;
    world.run(RUN, json!({})).await.done();
    world.next_run();
    world.step_manifests.remove(0);
    let arn = "arn:aws:ecs:eu-west-1:123456789012:task-definition/migrate:1";
    world
        .run(RUN, json!({"taskDefinitionArn": arn}))
        .await
        .done();
    assert_eq!(world.count("RegisterTaskDefinition"), 1);
    assert_eq!(world.ran(JOB).await, 2);
}

#[tokio::test(start_paused = true)]
async fn what_aws_or_a_document_refuses_is_told() {
    let mut world = world("nginx:exits-0", 1).await;
    let request = |fields: &Value| {
        let mut request = manifest("EcsRunTaskRequestDefinition", fields);
        request.identifier = slipway_model::id::EntityId::new("runTaskRequestDefinition");
        request
    };
    let table = [
        (json!({"count": 11}), "1 to 10 tasks"),
        (
            json!({"launchTyp": "FARGATE"}),
            "did you mean `launchType`?",
        ),
        (
            json!({"launchType": "FARGATE"}),
            "Network Configuration must be provided",
        ),
    ];
    for (fields, why) in table {
        world.next_run();
        world.step_manifests[1] = request(&fields);
        let failure = world.run(RUN, json!({})).await.failed();
        assert!(failure.message.contains(why), "{}", failure.message);
    }
    world.next_run();
    world.step_manifests = job("nginx:exits-0", 1);
    let mut nameless = manifest("EcsTaskDefinition", &json!({"containerDefinitions": []}));
    nameless.identifier = slipway_model::id::EntityId::new("taskDefinition");
    world.step_manifests[0] = nameless;
    let failure = world.run(RUN, json!({})).await.failed();
    assert!(
        failure
            .message
            .contains("`taskDefinition` of the step has no `family`"),
        "{}",
        failure.message
    );
    world.next_run();
    world.step_manifests = job("nginx:exits-0", 1);
    world.sandbox.faults().add(Fault {
        service: None,
        operation: Some("RunTask".to_owned()),
        skip: 0,
        count: None,
        effect: FaultEffect::AccessDenied,
    });
    let failure = world.run(RUN, json!({})).await.failed();
    assert!(
        failure.message.contains("run 1 tasks of migrate"),
        "{}",
        failure.message
    );
    assert_eq!(world.ran(JOB).await, 0);
}

#[test]
fn a_spec_is_checked_before_the_run() {
    let check = |spec: Value| {
        let step = slipway_steps::find(RUN).expect("a step");
        step.check(&spec).join("; ")
    };
    let store = json!({"type": "Inline", "spec": {"content": "{}"}});
    assert_eq!(
        check(json!({"taskDefinition": store, "runTaskRequestDefinition": store})),
        ""
    );
    assert_eq!(
        check(json!({"taskDefinitionArn": "<+x>", "runTaskRequestDefinition": store})),
        ""
    );
    insta::assert_snapshot!(check(json!({})), @"the task definition is missing: give `taskDefinition` or `taskDefinitionArn`; `runTaskRequestDefinition` is missing");
    insta::assert_snapshot!(
        check(json!({"taskDefinition": store, "taskDefinitionArn": "a", "runTaskRequestDefinition": store,
            "skipSteadyStateCheck": "maybe"})),
        @"`skipSteadyStateCheck` must be true or false; `taskDefinition` and `taskDefinitionArn` are both given: a step runs one task definition"
    );
}
