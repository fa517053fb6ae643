//! Executions that ended without success and are redriven: what runs again, what does not, and what cannot.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::service::{Functions, Service, clock};

/// A task that calls a function with the state's input.
pub(super) fn task(function: &str) -> Value {
    json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": true,
        "Arguments": {"FunctionName": function, "Payload": "{% $states.input %}"},
        "Output": "{% $states.result.Payload %}"})
}

/// With what a function was called, in order.
pub(super) fn called(service: &Service, function: &str) -> Vec<Value> {
    let calls = service.functions.calls.lock().expect("calls");
    let named = calls.iter().filter(|(name, _)| name == function);
    named.map(|(_, payload)| payload.clone()).collect()
}

pub(super) async fn redrive(service: &Service, execution: &str) -> Result<Value, String> {
    let request = json!({"executionArn": execution});
    service.call("RedriveExecution", request).await
}

/// Redrives, and waits for the end.
pub(super) async fn redriven(service: &Service, execution: &str) -> Value {
    redrive(service, execution).await.expect("redriven");
    service.finish(execution).await
}

async fn seconds(service: &Service, count: u64) {
    service.clock.sleep(Duration::from_secs(count)).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_runs_again_with_what_it_had() {
    let service = Service::new();
    let mut flaky = task("flaky");
    flaky.as_object_mut().expect("a state").remove("End");
    flaky["Next"] = json!("C");
    let machine = service
        .machine("m", "A", json!({
            "A": {"Type": "Pass", "Assign": {"x": 7}, "Output": {"n": 1}, "Next": "B"},
            "B": flaky,
            "C": {"Type": "Succeed", "Output":
                "{% [$x, $states.input.attempts, $states.context.Execution.RedriveCount, $states.context.Execution.RedriveTime] %}"},
        }))
        .await;
    let execution = service.start(&machine, "run", json!({})).await;
    let end = service.finish(&execution).await;
    assert_eq!(
        (&end["status"], &end["redriveStatus"], &end["redriveCount"]),
        (&json!("FAILED"), &json!("REDRIVABLE"), &json!(0))
    );
    assert!(end.get("redriveStatusReason").is_none() && end.get("redriveDate").is_none());
    let end = redriven(&service, &execution).await;
    assert_eq!(
        (&end["status"], &end["redriveCount"]),
        (&json!("FAILED"), &json!(1))
    );
    let at = service.clock.now_ms();
    let end = redriven(&service, &execution).await;
    let time = crate::history::iso(at);
    assert_eq!(end["output"], format!("[7,3,2,\"{time}\"]"));
    assert_eq!(
        (&end["redriveCount"], &end["redriveDate"]),
        (&json!(2), &crate::history::seconds(at))
    );
    assert_eq!(
        end["redriveStatusReason"],
        "Execution is SUCCEEDED and cannot be redriven"
    );
    assert!(end.get("error").is_none() && end.get("cause").is_none());
    let listed = service
        .call(
            "ListExecutions",
            json!({"stateMachineArn": machine, "statusFilter": "SUCCEEDED"}),
        )
        .await;
    assert_eq!(listed.expect("listed")["executions"][0]["redriveCount"], 2);
    let failed = service
        .call(
            "ListExecutions",
            json!({"stateMachineArn": machine, "statusFilter": "FAILED"}),
        )
        .await;
    assert_eq!(failed.expect("listed")["executions"], json!([]));
    let trace = service.trace(&execution).await;
    let lines = trace.lines().map(|line| {
        line.split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    });
    let events: Vec<String> = lines.collect();
    assert_snapshot!(events.join("\n"), @r"
    1<0 ExecutionStarted
    2<0 PassStateEntered
    3<2 PassStateExited
    4<3 TaskStateEntered
    5<4 TaskScheduled
    6<5 TaskStarted
    7<6 TaskFailed
    8<7 ExecutionFailed
    9<8 ExecutionRedriven
    10<9 TaskScheduled
    11<10 TaskStarted
    12<11 TaskFailed
    13<12 ExecutionFailed
    14<13 ExecutionRedriven
    15<14 TaskScheduled
    16<15 TaskStarted
    17<16 TaskSucceeded
    18<17 TaskStateExited
    19<18 SucceedStateEntered
    20<19 SucceedStateExited
    21<20 ExecutionSucceeded
    ");
    assert!(
        trace.contains("14<13 ExecutionRedriven") && trace.contains("redriveCount=2"),
        "{trace}"
    );
}

#[tokio::test(start_paused = true)]
async fn branches_that_did_not_succeed_run_again() {
    let service = Service::new();
    let branch = |states: Value| json!({"StartAt": "X", "States": states});
    let mut slow = task("slow");
    slow.as_object_mut().expect("a state").remove("End");
    slow["Next"] = json!("Y");
    let inner = json!({"X": {"Type": "Parallel", "End": true, "Branches": [
        branch(json!({"X": task("echo")})), branch(json!({"X": task("flaky")}))]}});
    let states = json!({"A": {"Type": "Parallel", "Output": "{% $states.result %}", "End": true, "Branches": [
        branch(json!({"X": task("echo")})),
        branch(inner),
        branch(json!({"X": slow, "Y": {"Type": "Pass", "Output": "late", "End": true}})),
    ]}});
    let machine = service.machine("m", "A", states).await;
    let execution = service.start(&machine, "run", json!({"k": 1})).await;
    assert_eq!(service.finish(&execution).await["error"], "Flaky");
    assert_eq!(redriven(&service, &execution).await["error"], "Flaky");
    let end = redriven(&service, &execution).await;
    assert_eq!(
        end["output"],
        r#"[{"k":1},[{"k":1},{"attempts":3}],"late"]"#
    );
    // What had succeeded did so once; what its sibling's failure let go ran each time.
    assert_eq!(called(&service, "echo").len(), 2);
    assert_eq!(called(&service, "slow").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn iterations_that_did_not_succeed_run_again_and_the_others_begin() {
    let service = Service::new();
    let mut item = task("flaky");
    item["Output"] = json!("{% $states.result.Payload.attempts %}");
    let states = json!({"A": {"Type": "Map", "Items": [1, 2, 3], "MaxConcurrency": 1, "End": true,
        "ItemSelector": {"at": "{% $states.context.Map.Item.Index %}"},
        "ItemProcessor": {"StartAt": "I", "States": {"I": item}}}});
    let machine = service.machine("m", "A", states).await;
    let execution = service.start(&machine, "run", json!({})).await;
    let mut end = service.finish(&execution).await;
    let mut redrives = 0;
    while end["status"] == "FAILED" {
        end = redriven(&service, &execution).await;
        redrives += 1;
        assert!(redrives < 10, "{end}");
    }
    // Each of the three fails twice.
    assert_eq!((redrives, &end["output"]), (6, &json!("[3,3,3]")));
    let of = |at: u32| {
        called(&service, "flaky")
            .iter()
            .filter(|call| call["at"] == at)
            .count()
    };
    assert_eq!([of(0), of(1), of(2)], [3, 3, 3]);
    let trace = service.trace(&execution).await;
    assert_eq!(trace.matches("MapIterationStarted").count(), 9);
    assert_eq!(trace.matches("MapStateEntered").count(), 1);
}

/// Results of branches are not lost to an output that cannot be made of them; one that is too long is made anew.
#[tokio::test(start_paused = true)]
async fn a_parallel_that_could_not_be_left_is_left_again() {
    let cases = [
        // Undefined before the first redrive.
        (json!("{% $states.context.Execution.RedriveTime %}"), 1),
        (
            json!(
                "{% $states.context.Execution.RedriveCount > 0 ? 'short' : $pad('', 300000, 'x') %}"
            ),
            2,
        ),
    ];
    for (output, calls) in cases {
        let service = Service::new();
        let states = json!({"A": {"Type": "Parallel", "Output": output, "End": true, "Branches": [
            {"StartAt": "X", "States": {"X": task("echo")}}]}});
        let machine = service.machine("m", "A", states).await;
        let execution = service.start(&machine, "run", json!({})).await;
        assert_eq!(service.finish(&execution).await["status"], "FAILED");
        let end = redriven(&service, &execution).await;
        assert_eq!(end["status"], "SUCCEEDED", "{end}");
        assert_eq!(called(&service, "echo").len(), calls, "{output}");
    }
}

#[tokio::test(start_paused = true)]
async fn times_start_again_and_those_in_the_past_are_over() {
    let service = Service::new();
    let wait = json!({"QueryLanguage": "JSONata", "TimeoutSeconds": 10, "StartAt": "A", "States": {
        "A": {"Type": "Wait", "Seconds": 8, "Next": "B"}, "B": {"Type": "Wait", "Seconds": 8, "End": true}}});
    let machine = service.machine_of("limited", wait).await;
    let execution = service.start(&machine, "run", json!({})).await;
    assert_eq!(service.finish(&execution).await["status"], "TIMED_OUT");
    seconds(&service, 100).await;
    // All of the ten seconds, and all of the wait.
    let began = service.clock.now_ms();
    redrive(&service, &execution).await.expect("redriven");
    seconds(&service, 9).await;
    let end = service.describe(&execution).await;
    assert_eq!(end["status"], "SUCCEEDED");
    assert_eq!(end["stopDate"], crate::history::seconds(began + 8_000));

    let wait = json!({"A": {"Type": "Wait", "Timestamp": "2026-01-03T00:00:00Z", "End": true}});
    let machine = service.machine("until", "A", wait).await;
    let execution = service.start(&machine, "run", json!({})).await;
    let stop = json!({"executionArn": execution, "error": "E"});
    service.call("StopExecution", stop).await.expect("stopped");
    seconds(&service, 3 * 24 * 60 * 60).await;
    redrive(&service, &execution).await.expect("redriven");
    seconds(&service, 1).await;
    assert_eq!(service.describe(&execution).await["status"], "SUCCEEDED");
}

#[tokio::test(start_paused = true)]
async fn retriers_have_all_attempts_again_and_fail_states_fail_again() {
    let service = Service::new();
    let mut boom = task("boom");
    boom["Retry"] = json!([{"ErrorEquals": ["Boom"], "IntervalSeconds": 1, "MaxAttempts": 2}]);
    let machine = service.machine("m", "A", json!({"A": boom})).await;
    let execution = service.start(&machine, "run", json!({})).await;
    service.finish(&execution).await;
    assert_eq!(called(&service, "boom").len(), 3);
    redriven(&service, &execution).await;
    assert_eq!(called(&service, "boom").len(), 6);

    let fail = json!({"A": {"Type": "Fail", "Error": "E", "Cause": "c"}});
    let machine = service.machine("fails", "A", fail).await;
    let execution = service.start(&machine, "run", json!({})).await;
    service.finish(&execution).await;
    assert_eq!(redriven(&service, &execution).await["error"], "E");
    assert_snapshot!(service.trace(&execution).await, @r"
    1<0 ExecutionStarted input={}
    2<0 FailStateEntered name=A input={}
    3<2 ExecutionFailed error=E cause=c
    4<3 ExecutionRedriven redriveCount=1
    5<4 FailStateEntered name=A input={}
    6<5 ExecutionFailed error=E cause=c
    ");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_redriven() {
    let service = Service::new();
    let refused = async |execution: &str| redrive(&service, execution).await.expect_err("refused");
    let not =
        |reason: &str| format!("ExecutionNotRedrivable: Execution Not Redrivable: '{reason}'");
    let wait =
        json!({"A": {"Type": "Wait", "Seconds": 100, "Next": "B"}, "B": {"Type": "Succeed"}});
    let machine = service.machine("m", "A", wait).await;
    let execution = service.start(&machine, "run", json!({})).await;
    assert_eq!(
        refused(&execution).await,
        not("Execution is RUNNING and cannot be redriven")
    );
    service.finish(&execution).await;
    assert_eq!(
        refused(&execution).await,
        not("Execution is SUCCEEDED and cannot be redriven")
    );
    let unknown = execution.replace(":run", ":none");
    assert_eq!(
        refused(&unknown).await,
        format!("ExecutionDoesNotExist: Execution Does Not Exist: '{unknown}'")
    );
    assert!(refused("arn:aws:s3:::b").await.starts_with("InvalidArn"));
    let token = json!({"executionArn": execution, "clientToken": "a b"});
    let error = service
        .call("RedriveExecution", token)
        .await
        .expect_err("refused");
    assert!(error.starts_with("ValidationException"), "{error}");

    let failed = service.start(&machine, "failed", json!({})).await;
    let stop = json!({"executionArn": failed});
    service.call("StopExecution", stop).await.expect("stopped");
    let day = 24 * 60 * 60;
    seconds(&service, 14 * day - 60).await;
    assert_eq!(
        service.describe(&failed).await["redriveStatus"],
        "REDRIVABLE"
    );
    seconds(&service, 60).await;
    assert_eq!(
        refused(&failed).await,
        not("Execution redrivable period exceeded")
    );
    let described = service.describe(&failed).await;
    assert_eq!(
        described["redriveStatusReason"],
        "Execution redrivable period exceeded"
    );

    let deleted = service.start(&machine, "deleted", json!({})).await;
    let stop = json!({"executionArn": deleted});
    service.call("StopExecution", stop).await.expect("stopped");
    let gone = json!({"stateMachineArn": machine});
    service
        .call("DeleteStateMachine", gone)
        .await
        .expect("deleted");
    assert_eq!(
        refused(&deleted).await,
        not("State machine is in DELETING status")
    );

    let express = json!({"name": "fast", "type": "EXPRESS", "roleArn": "arn:aws:iam::000000000000:role/local",
        "definition": json!({"StartAt": "A", "States": {"A": {"Type": "Fail"}}}).to_string()});
    let express = service
        .call("CreateStateMachine", express)
        .await
        .expect("created");
    let express = service
        .start(
            express["stateMachineArn"].as_str().expect("an ARN"),
            "n",
            json!({}),
        )
        .await;
    service.finish(&express).await;
    assert_eq!(
        refused(&express).await,
        not("Execution is of type EXPRESS and cannot be redriven")
    );
}

#[tokio::test(start_paused = true)]
async fn a_year_and_a_full_history_are_too_much() {
    let service = Service::new();
    let day = 24 * 60 * 60;
    let states =
        json!({"A": {"Type": "Wait", "Seconds": 360 * day, "Next": "B"}, "B": {"Type": "Fail"}});
    let machine = service.machine("m", "A", states).await;
    let execution = service.start(&machine, "run", json!({})).await;
    let end = service.finish(&execution).await;
    assert_eq!(end["redriveStatus"], "REDRIVABLE");
    seconds(&service, 5 * day).await;
    let end = service.describe(&execution).await;
    assert_eq!(
        end["redriveStatusReason"],
        "Execution has exceeded the max execution time"
    );

    let choice = json!({"Type": "Choice", "Default": "A", "Choices": [{"Condition": "{% false %}", "Next": "C"}]});
    let states = json!({"A": {"Type": "Pass", "Next": "B"}, "B": choice, "C": {"Type": "Succeed"}});
    let machine = service.machine("loop", "A", states).await;
    let execution = service.start(&machine, "run", json!({})).await;
    let mut end = service.finish(&execution).await;
    let mut redrives = 0;
    while end["redriveStatus"] == "REDRIVABLE" {
        end = redriven(&service, &execution).await;
        redrives += 1;
        assert!(redrives < 10, "{end}");
    }
    assert_eq!(
        end["redriveStatusReason"],
        "Execution history event limit exceeded"
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_token_is_the_same_redrive() {
    let service = Service::new();
    let machine = service.machine("m", "A", json!({"A": task("boom")})).await;
    let execution = service.start(&machine, "run", json!({})).await;
    service.finish(&execution).await;
    let ask = async |token: &str| {
        let request = json!({"executionArn": execution, "clientToken": token});
        let answer = service.call("RedriveExecution", request).await;
        seconds(&service, 1).await;
        answer.expect("redriven")["redriveDate"].clone()
    };
    let at = service.clock.now_ms();
    let first = ask("one").await;
    assert_eq!(first, crate::history::seconds(at));
    seconds(&service, 60).await;
    let second = ask("two").await;
    assert_ne!(first, second);
    assert_eq!((ask("one").await, ask("two").await), (first, second));
    assert_eq!(service.describe(&execution).await["redriveCount"], 2);
    // A quarter of an hour after its first use it is a new one.
    seconds(&service, 15 * 60).await;
    ask("one").await;
    assert_eq!(service.describe(&execution).await["redriveCount"], 3);
}

/// A parent that failed with its child has gone on without it: nobody stops the child that is redriven, after a restart either.
#[tokio::test(start_paused = true)]
async fn a_nested_execution_goes_on_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.db");
    let (clock, functions) = (clock(), Arc::new(Functions::default()));
    let service = Service::on_disk(&path, &clock, &functions);
    let states = json!({"A": {"Type": "Wait", "Seconds": 100, "End": true}});
    let child = service.machine("child", "A", states).await;
    let outer = json!({"A": {"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync:2", "End": true,
        "Arguments": {"StateMachineArn": child, "Name": "nested", "Input": {}}}});
    let outer = service.machine("outer", "A", outer).await;
    let outer = service.start(&outer, "run", json!({})).await;
    seconds(&service, 1).await;
    let child = "arn:aws:states:us-east-1:000000000000:execution:child:nested";
    let stop = json!({"executionArn": child});
    service.call("StopExecution", stop).await.expect("stopped");
    assert_eq!(service.finish(&outer).await["status"], "FAILED");
    redrive(&service, child).await.expect("redriven");
    service.engine.clone().shutdown().await;
    drop(service);
    let service = Service::on_disk(&path, &clock, &functions);
    service.engine.resume();
    assert_eq!(service.finish(child).await["status"], "SUCCEEDED");
    assert_eq!(service.describe(&outer).await["status"], "FAILED");
    service.engine.shutdown().await;
}

async fn redrive_with_crash(commits: i64) -> (Value, Vec<String>, i64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.db");
    let (clock, functions) = (clock(), Arc::new(Functions::default()));
    let mut service = Service::on_disk(&path, &clock, &functions);
    let branch = |state: Value| json!({"StartAt": "X", "States": {"X": state}});
    // Fails before its first redrive only, whatever is called again after a crash.
    let mut once = task("token");
    once["Arguments"]["FunctionName"] =
        json!("{% $states.context.Execution.RedriveCount = 0 ? 'boom' : 'token' %}");
    let once = json!({"X": once});
    let each = json!({"Type": "Map", "Items": [1, 2, 3], "End": true, "ItemProcessor": {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, "StartAt": "X", "States": once}});
    let states = json!({"A": {"Type": "Parallel", "End": true, "Branches": [
        branch(task("echo")), branch(task("slow")), branch(each)]}});
    let machine = service.machine("m", "A", states).await;
    let execution = service.start(&machine, "run", json!({"k": 1})).await;
    assert_eq!(service.finish(&execution).await["status"], "FAILED");
    seconds(&service, 60).await;
    service
        .engine
        .0
        .journal
        .commits_left
        .store(commits, Ordering::Relaxed);
    let request = json!({"executionArn": execution, "clientToken": "t"});
    let mut asked = service.call("RedriveExecution", request.clone()).await;
    let mut used = 0;
    for _ in 0..3 {
        for _ in 0..20 {
            seconds(&service, 1).await;
        }
        let left = service
            .engine
            .0
            .journal
            .commits_left
            .load(Ordering::Relaxed);
        if asked.is_ok() && left >= 0 {
            used = commits - left;
            break;
        }
        service.engine.clone().shutdown().await;
        drop(service);
        service = Service::on_disk(&path, &clock, &functions);
        service.engine.resume();
        // Whoever got no answer asks again, with the same token.
        asked = service.call("RedriveExecution", request.clone()).await;
    }
    let end = service.describe(&execution).await;
    let mut types: Vec<String> = service
        .events(&execution)
        .await
        .iter()
        .map(|event| event["type"].as_str().expect("a type").to_owned())
        .collect();
    types.sort_unstable();
    assert_eq!(called(&service, "echo").len(), 1);
    service.engine.shutdown().await;
    (
        json!([end["status"], end["output"], end["redriveCount"]]),
        types,
        used,
    )
}

#[tokio::test(start_paused = true)]
async fn death_after_any_commit_of_a_redrive_changes_nothing() {
    let (end, history, commits) = redrive_with_crash(i64::MAX).await;
    assert_eq!(end, json!(["SUCCEEDED", r#"[{"k":1},{"k":1},[1,2,3]]"#, 1]));
    assert!((5..60).contains(&commits), "{commits} commits");
    for commits in 0..commits {
        let (found, types, _) = redrive_with_crash(commits).await;
        assert_eq!(
            (&found, &types),
            (&end, &history),
            "after {commits} commits"
        );
    }
}
