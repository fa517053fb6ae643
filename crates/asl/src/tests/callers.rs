//! Callers who go away while what they asked for is being written: it is done all the same, and whole.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::{Value, json};

use super::service::{Functions, Service, clock};
use crate::turns::going_on;

const ACTIVITY: &str = "arn:aws:states:us-east-1:000000000000:activity:work";
const MACHINE: &str = "arn:aws:states:us-east-1:000000000000:stateMachine:m";

/// Asks, and goes away while the disk is slow.
async fn ask_and_leave(service: &Service, operation: &str, request: Value) {
    let held = service.engine.0.journal.hold().await;
    let impatient = service.call(operation, request);
    let answer = tokio::time::timeout(Duration::from_millis(10), impatient).await;
    assert!(answer.is_err(), "{operation}: {answer:?}");
    drop(held);
    // Somebody else's commit takes with it what was to be written.
    let other = json!({"name": format!("other-{operation}")});
    service.call("CreateActivity", other).await.expect("made");
}

/// What the API knows of the activity and of the machine.
async fn known(service: &Service) -> [bool; 4] {
    let of = |arn: &str| json!({"resourceArn": arn});
    let tags = service.call("ListTagsForResource", of(ACTIVITY)).await;
    let describe = json!({"stateMachineArn": MACHINE});
    [
        service
            .call("DescribeActivity", json!({"activityArn": ACTIVITY}))
            .await
            .is_ok(),
        // Whether workers can ask for its tasks: the queues are in memory.
        service.engine.0.activities.exists(ACTIVITY),
        tags.is_ok_and(|tags| tags["tags"].as_array().is_some_and(|tags| !tags.is_empty())),
        service.call("DescribeStateMachine", describe).await.is_ok(),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_is_done_whole() {
    let service = Service::new();
    let definition = json!({"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}).to_string();
    let role = "arn:aws:iam::000000000000:role/local";
    let tags = json!([{"key": "team", "value": "blue"}]);
    let steps = [
        (
            "CreateActivity",
            json!({"name": "work"}),
            [true, true, false, false],
        ),
        (
            "TagResource",
            json!({"resourceArn": ACTIVITY, "tags": tags}),
            [true, true, true, false],
        ),
        (
            "CreateStateMachine",
            json!({"name": "m", "definition": definition, "roleArn": role}),
            [true, true, true, true],
        ),
        (
            "DeleteStateMachine",
            json!({"stateMachineArn": MACHINE}),
            [true, true, true, false],
        ),
        (
            "UntagResource",
            json!({"resourceArn": ACTIVITY, "tagKeys": ["team"]}),
            [true, true, false, false],
        ),
        (
            "DeleteActivity",
            json!({"activityArn": ACTIVITY}),
            [false, false, false, false],
        ),
    ];
    for (operation, request, expected) in steps {
        ask_and_leave(&service, operation, request).await;
        assert_eq!(known(&service).await, expected, "{operation}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_ends_waits_for_what_is_being_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.db");
    let (clock, functions) = (clock(), Arc::new(Functions::default()));
    let service = Service::on_disk(&path, &clock, &functions);
    let held = service.engine.0.journal.hold().await;
    let asked = service.call("CreateActivity", json!({"name": "work"}));
    let answer = tokio::time::timeout(Duration::from_millis(10), asked).await;
    assert!(answer.is_err(), "{answer:?}");
    let mut shutdown = Box::pin(service.engine.clone().shutdown());
    assert!((&mut shutdown).now_or_never().is_none(), "it does not wait");
    drop(held);
    shutdown.await;
    drop(service);
    let next = Service::on_disk(&path, &clock, &functions);
    let described = next
        .call("DescribeActivity", json!({"activityArn": ACTIVITY}))
        .await;
    assert!(described.is_ok(), "{described:?}");
}

/// A function that calls the API on behalf of an execution goes on: it stands behind nobody who begins.
#[tokio::test(start_paused = true)]
async fn what_a_function_starts_stands_in_no_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.db");
    let functions = Arc::new(Functions::default());
    let service = Service::bounded(&path, &clock(), &functions, Some(1));
    let wait = json!({"A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": true,
        "Arguments": {"FunctionName": "slow"}}});
    let machine = service.machine("m", "A", wait).await;
    for name in ["first", "second"] {
        service.start(&machine, name, json!({})).await;
    }
    assert_eq!(service.engine.counters().waiting, 1);
    let of_a_function = going_on(service.start(&machine, "third", json!({}))).await;
    assert_eq!(service.engine.counters().waiting, 1);
    let trace = service.trace(&of_a_function).await;
    assert!(trace.contains("TaskScheduled"), "{trace}");
}
