//! A process that dies after any commit: the next one goes on, and the history is the same.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::service::{Functions, Service, clock};

/// A machine with everything that can be under way: retries, waits, branches, iterations, children of a
/// distributed map, a job of a service, a token, a worker and a nested execution.
async fn prepare(service: &Service) -> String {
    let activity = service
        .call("CreateActivity", json!({"name": "work"}))
        .await
        .expect("created");
    let child = service
        .machine(
            "child",
            "A",
            json!({"A": {"Type": "Wait", "Seconds": 5, "Next": "B"},
            "B": {"Type": "Succeed", "Output": 7}}),
        )
        .await;
    let task = |function: &str| {
        json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": function, "Payload": "{% $states.input %}"},
        "Output": "{% $states.result.Payload %}", "End": true})
    };
    let mut boom = task("boom");
    boom["Retry"] = json!([{"ErrorEquals": ["Boom"], "IntervalSeconds": 2, "MaxAttempts": 2}]);
    boom["Catch"] = json!([{"ErrorEquals": ["States.ALL"], "Next": "Caught",
        "Assign": {"why": "{% $states.errorOutput.Error %}"}, "Output": "{% $states.input %}"}]);
    service
        .machine("machine", "Boom", json!({
            "Boom": boom,
            "Caught": {"Type": "Parallel", "Next": "Each", "Branches": [
                {"StartAt": "Echo", "States": {"Echo": task("echo")}},
                {"StartAt": "Child", "States": {"Child": {"Type": "Task",
                    "Resource": "arn:aws:states:::states:startExecution.sync:2",
                    "Arguments": {"StateMachineArn": child, "Name": "nested", "Input": {}},
                    "Output": "{% $states.result.Output %}", "End": true}}},
                {"StartAt": "Pause", "States": {"Pause": {"Type": "Wait", "Seconds": 20, "End": true}}}]},
            "Each": {"Type": "Map", "Items": [1, 2, 3], "MaxConcurrency": 2, "Next": "Many",
                "ItemProcessor": {"StartAt": "Echo", "States": {"Echo": task("slow")}}},
            "Many": {"Type": "Map", "Items": [4, 5], "MaxConcurrency": 1, "Next": "Job", "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                "StartAt": "Echo", "States": {"Echo": task("slow")}}},
            "Job": {"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync", "Next": "Work",
                "Arguments": {"TaskDefinition": "t", "Cluster": "{% $states.input %}"}},
            "Work": {"Type": "Task", "Resource": activity["activityArn"], "Next": "Token",
                "Arguments": {"why": "{% $why %}"}},
            "Token": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
                "Arguments": {"FunctionName": "token", "Payload": {"token": "{% $states.context.Task.Token %}"}},
                "Next": "End"},
            "End": {"Type": "Succeed"},
        }))
        .await
}

/// Plays worker and token holder until the execution ends or the process dies.
async fn carry_on(service: &Service, execution: &str) -> Option<Value> {
    let activity = "arn:aws:states:us-east-1:000000000000:activity:work";
    for _ in 0..200 {
        let described = service
            .call("DescribeExecution", json!({"executionArn": execution}))
            .await;
        match described {
            Ok(described) if described["status"] != "RUNNING" => return Some(described),
            Ok(_) => {}
            Err(_) => return None,
        }
        let events = service.events(execution).await;
        let last = events.last().expect("an event")["type"]
            .as_str()
            .expect("a type")
            .to_owned();
        let mut answers = Vec::new();
        if last == "ActivityScheduled" {
            // A worker remembers its token as long as it lives, through crashes of the engine.
            let task = service
                .call("GetActivityTask", json!({"activityArn": activity}))
                .await;
            answers.extend(task.map(|task| task["taskToken"].clone()));
        } else if last == "ActivityStarted" || last == "TaskSubmitted" || last == "TaskStarted" {
            let calls = service.functions.calls.lock().expect("calls");
            answers.extend(
                calls
                    .iter()
                    .rev()
                    .find(|(name, _)| name == "token")
                    .map(|(_, p)| p["token"].clone()),
            );
        }
        for token in answers.into_iter().filter(Value::is_string) {
            service
                .functions
                .calls
                .lock()
                .expect("calls")
                .push(("token".to_owned(), json!({"token": token})));
            let done = json!({"taskToken": token, "output": "\"done\""});
            let _ = service.call("SendTaskSuccess", done).await;
        }
        service.clock.sleep(Duration::from_secs(1)).await;
        if is_dead(service) {
            return None;
        }
    }
    panic!("{execution} does not end");
}

fn is_dead(service: &Service) -> bool {
    service
        .engine
        .0
        .journal
        .commits_left
        .load(Ordering::Relaxed)
        < 0
}

/// The history as a multiset: what ran at once may be recorded in another order, but all of it once.
/// Without ids, times, and what holds a token or a date.
async fn shape(service: &Service, execution: &str) -> Vec<String> {
    let mut shape: Vec<String> = service.events(execution).await.iter().map(fact).collect();
    shape.sort();
    shape
}

fn fact(event: &Value) -> String {
    let mut fact = event["type"].to_string();
    let details = event.as_object().expect("an object").iter();
    for (_, details) in details.filter(|(key, _)| key.ends_with("EventDetails")) {
        for (key, value) in details.as_object().expect("details") {
            let text = value.to_string();
            let varies = ["token", "StartDate", ":mapRun:"]
                .iter()
                .any(|word| text.contains(word));
            if !varies {
                fact.push_str(&format!(" {key}={text}"));
            }
        }
    }
    fact
}

async fn run_with_crash(commits: i64) -> (Vec<String>, i64, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.db");
    let (clock, functions) = (clock(), Arc::new(Functions::default()));
    let mut service = Service::on_disk(&path, &clock, &functions);
    let machine = prepare(&service).await;
    let left = &service.engine.0.journal.commits_left;
    left.store(commits, Ordering::Relaxed);
    let request = json!({"stateMachineArn": machine, "name": "run", "input": "{\"in\":1}"});
    let mut started = service.call("StartExecution", request.clone()).await;
    let execution = "arn:aws:states:us-east-1:000000000000:execution:machine:run";
    let mut used = 0;
    for _ in 0..3 {
        if started.is_ok()
            && let Some(end) = carry_on(&service, execution).await
        {
            assert_eq!(end["status"], "SUCCEEDED", "{end}");
            used = commits
                - service
                    .engine
                    .0
                    .journal
                    .commits_left
                    .load(Ordering::Relaxed);
            break;
        }
        service.engine.clone().shutdown().await;
        drop(service);
        service = Service::on_disk(&path, &clock, &functions);
        service.engine.resume();
        // Whoever got no answer asks again.
        started = service.call("StartExecution", request.clone()).await;
    }
    let child = "arn:aws:states:us-east-1:000000000000:execution:child:nested";
    let result = (
        shape(&service, execution).await,
        used,
        shape(&service, child).await,
    );
    service.engine.shutdown().await;
    result
}

#[tokio::test(start_paused = true)]
async fn death_after_any_commit_changes_nothing() {
    let (expected, commits, child) = run_with_crash(i64::MAX).await;
    assert!((15..100).contains(&commits), "{commits} commits");
    assert!(expected.len() > 40, "{expected:#?}");
    for commits in 0..commits {
        let (history, _, nested) = run_with_crash(commits).await;
        assert_eq!(history, expected, "after {commits} commits");
        assert_eq!(nested, child, "after {commits} commits");
    }
}

/// A worker takes two tasks and dies with the engine, when it has written the token of one down.
#[tokio::test(start_paused = true)]
async fn what_a_dead_worker_does_not_know_of_is_offered_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.db");
    let (clock, functions) = (clock(), Arc::new(Functions::default()));
    let service = Service::on_disk(&path, &clock, &functions);
    let activity = service
        .call("CreateActivity", json!({"name": "work"}))
        .await
        .expect("created")["activityArn"]
        .as_str()
        .expect("an ARN")
        .to_owned();
    let work = json!({"Type": "Task", "Resource": activity, "HeartbeatSeconds": 60, "End": true});
    let machine = service
        .machine("machine", "Work", json!({"Work": work}))
        .await;
    let mut taken = Vec::new();
    for name in ["known", "unknown"] {
        service.start(&machine, name, json!(name)).await;
        taken.push(service.take(&activity).await["taskToken"].clone());
    }
    service.engine.clone().shutdown().await;
    drop(service);

    let service = Service::on_disk(&path, &clock, &functions);
    let known = taken[0].as_str().expect("a token").to_owned();
    service.engine.resume_after("w", &HashSet::from([known]));
    let again = service.take(&activity).await;
    assert_eq!(
        (&again["input"], &again["taskToken"]),
        (&json!("\"unknown\""), &taken[1])
    );
    // Nothing else is offered, before the long poll ends.
    assert_eq!(service.take(&activity).await, json!({}));
    for token in &taken {
        let done = json!({"taskToken": token, "output": "1"});
        // The long poll was as long as the heartbeat of both.
        let late = service
            .call("SendTaskSuccess", done)
            .await
            .expect_err("late");
        assert!(late.starts_with("TaskTimedOut"), "{late}");
    }
    service.engine.shutdown().await;
}
