//! Tasks: retries, timeouts, tokens, workers and nested executions.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::service::Service;

fn invoke(function: &str) -> Value {
    json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": function, "Payload": "{% $states.input %}"}, "End": true})
}

fn with(mut state: Value, more: Value) -> Value {
    for (key, value) in more.as_object().expect("an object") {
        state[key] = value.clone();
    }
    state
}

#[tokio::test(start_paused = true)]
async fn retries_back_off_and_then_succeed() {
    let service = Service::new();
    let state = with(
        invoke("flaky"),
        json!({"Output": "{% $states.result.Payload %}", "Retry": [
            {"ErrorEquals": ["Other"]},
            {"ErrorEquals": ["Flaky"], "IntervalSeconds": 3, "BackoffRate": 10, "MaxDelaySeconds": 20}]}),
    );
    assert_snapshot!(service.run("A", json!({"A": state}), json!(1)).await, @r#"
    1<0 ExecutionStarted input=1
    2<0 TaskStateEntered name=A input=1
    3<2 TaskScheduled resourceType=lambda resource=invoke parameters={"FunctionName":"flaky","Payload":1}
    4<3 TaskStarted resourceType=lambda resource=invoke
    5<4 TaskFailed resourceType=lambda resource=invoke error=Flaky cause={"errorMessage":"on request","errorType":"Flaky"}
    6<5 TaskScheduled +3s resourceType=lambda resource=invoke parameters={"FunctionName":"flaky","Payload":1}
    7<6 TaskStarted +3s resourceType=lambda resource=invoke
    8<7 TaskFailed +3s resourceType=lambda resource=invoke error=Flaky cause={"errorMessage":"on request","errorType":"Flaky"}
    9<8 TaskScheduled +23s resourceType=lambda resource=invoke parameters={"FunctionName":"flaky","Payload":1}
    10<9 TaskStarted +23s resourceType=lambda resource=invoke
    11<10 TaskSucceeded +23s resourceType=lambda resource=invoke output={"ExecutedVersion":"$LATEST","Payload":{"attempts":3},"StatusCode":200}
    12<11 TaskStateExited +23s name=A output={"attempts":3}
    13<12 ExecutionSucceeded +23s output={"attempts":3}
    "#);
}

#[tokio::test(start_paused = true)]
async fn which_names_catch_which_errors() {
    let service = Service::new();
    // Function, limits of the task, and whether States.ALL, States.TaskFailed, States.Timeout catch.
    let cases = [
        ("boom", json!({}), [true, true, false]),
        ("slow", json!({"TimeoutSeconds": 2}), [true, false, true]),
        (
            "slow",
            json!({"Arguments": "{% {} %}"}),
            [false, false, false],
        ),
    ];
    for (i, (function, more, caught)) in cases.into_iter().enumerate() {
        for (name, caught) in ["States.ALL", "States.TaskFailed", "States.Timeout"]
            .iter()
            .zip(caught)
        {
            let catch = json!({"Catch": [{"ErrorEquals": [name], "Next": "Caught"}]});
            let states = json!({
                "A": with(with(invoke(function), more.clone()), catch),
                "Caught": {"Type": "Succeed", "Output": "caught"},
            });
            let machine = service
                .machine(&format!("m{i}{}", name.replace('.', "-")), "A", states)
                .await;
            let execution = service.start(&machine, "run", json!({})).await;
            let end = service.finish(&execution).await;
            assert_eq!(
                end["output"] == "\"caught\"",
                caught,
                "{function} {more} {name}: {end}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_completes_its_task_once() {
    let service = Service::new();
    let state = json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "Arguments": {"FunctionName": "token", "Payload": {"token": "{% $states.context.Task.Token %}"}},
        "TimeoutSeconds": 600, "HeartbeatSeconds": 60, "End": true});
    let machine = service.machine("m", "A", json!({"A": state})).await;
    let execution = service.start(&machine, "run", json!({})).await;
    service.clock.sleep(Duration::from_secs(50)).await;
    let token = service.functions.calls.lock().expect("calls")[0].1["token"].clone();
    let beat = json!({"taskToken": token});
    service
        .call("SendTaskHeartbeat", beat.clone())
        .await
        .expect("alive");
    service.clock.sleep(Duration::from_secs(50)).await;
    let done = json!({"taskToken": token, "output": "{\"ok\":true}"});
    let bad = json!({"taskToken": token, "output": "{"});
    assert!(
        service
            .call("SendTaskSuccess", bad)
            .await
            .is_err_and(|e| e.starts_with("InvalidOutput"))
    );
    service
        .call("SendTaskSuccess", done.clone())
        .await
        .expect("completed");
    let again = service
        .call("SendTaskSuccess", done)
        .await
        .expect_err("over");
    assert_snapshot!(again, @"TaskTimedOut: Task Timed Out: 'Provided task does not exist anymore'");
    let end = service.finish(&execution).await;
    assert_eq!(end["output"], "{\"ok\":true}");
    let types: Vec<String> = service
        .events(&execution)
        .await
        .iter()
        .map(|event| event["type"].as_str().expect("a type").to_owned())
        .collect();
    assert_snapshot!(types.join(" "), @"ExecutionStarted TaskStateEntered TaskScheduled TaskStarted TaskSubmitted TaskSucceeded TaskStateExited ExecutionSucceeded");
    let late = service
        .call("SendTaskHeartbeat", beat)
        .await
        .expect_err("over");
    assert!(late.starts_with("TaskTimedOut"), "{late}");
    for garbage in ["x", "", "QUFBQQ"] {
        let error = service
            .call("SendTaskHeartbeat", json!({"taskToken": garbage}))
            .await;
        assert_eq!(
            error,
            Err("InvalidToken: Invalid Token: 'Invalid token'".to_owned())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn missing_heartbeats_time_a_task_out() {
    let service = Service::new();
    let state = json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "Arguments": {"FunctionName": "token", "Payload": 1}, "HeartbeatSeconds": 60, "End": true,
        "Catch": [{"ErrorEquals": ["States.HeartbeatTimeout"], "Next": "Lost"}]});
    let states = json!({"A": state, "Lost": {"Type": "Pass", "End": true}});
    assert_snapshot!(service.run("A", states, json!({})).await, @r#"
    1<0 ExecutionStarted input={}
    2<0 TaskStateEntered name=A input={}
    3<2 TaskScheduled resourceType=lambda resource=invoke.waitForTaskToken parameters={"FunctionName":"token","Payload":1} heartbeatInSeconds=60
    4<3 TaskStarted resourceType=lambda resource=invoke.waitForTaskToken
    5<4 TaskSubmitted resourceType=lambda resource=invoke.waitForTaskToken output={"ExecutedVersion":"$LATEST","Payload":1,"StatusCode":200}
    6<5 TaskTimedOut +60s resourceType=lambda resource=invoke.waitForTaskToken error=States.Timeout
    7<6 TaskStateExited +60s name=A output={"Error":"States.Timeout","Cause":null}
    8<7 PassStateEntered +60s name=Lost input={"Error":"States.Timeout","Cause":null}
    9<8 PassStateExited +60s name=Lost output={"Error":"States.Timeout","Cause":null}
    10<9 ExecutionSucceeded +60s output={"Error":"States.Timeout","Cause":null}
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_worker_takes_and_completes_an_activity() {
    let service = Service::new();
    let created = service
        .call("CreateActivity", json!({"name": "work"}))
        .await
        .expect("created");
    let activity = created["activityArn"].as_str().expect("an ARN").to_owned();
    assert_eq!(
        service.take(&activity).await,
        json!({}),
        "nothing after a minute"
    );
    let state = json!({"Type": "Task", "Resource": activity, "Arguments": {"job": 7},
        "HeartbeatSeconds": 30, "TimeoutSeconds": 100, "End": true});
    let machine = service.machine("m", "A", json!({"A": state})).await;
    let execution = service.start(&machine, "run", json!({})).await;
    let task = service.take(&activity).await;
    assert_eq!(task["input"], "{\"job\":7}");
    let failed = json!({"taskToken": task["taskToken"], "error": "Broken", "cause": "gears"});
    service
        .call("SendTaskFailure", failed)
        .await
        .expect("failed");
    service.finish(&execution).await;
    assert_snapshot!(service.trace(&execution).await, @r#"
    1<0 ExecutionStarted input={}
    2<0 TaskStateEntered name=A input={}
    3<2 ActivityScheduled resource=arn:aws:states:us-east-1:000000000000:activity:work input={"job":7} timeoutInSeconds=100 heartbeatInSeconds=30
    4<3 ActivityStarted workerName=w
    5<4 ActivityFailed error=Broken cause=gears
    6<5 ExecutionFailed error=Broken cause=gears
    "#);
    // A worker that takes a task and says nothing.
    let lost = service.start(&machine, "lost", json!({})).await;
    assert!(service.take(&activity).await["taskToken"].is_string());
    let end = service.finish(&lost).await;
    assert_eq!(
        (&end["status"], &end["error"]),
        (&json!("FAILED"), &json!("States.Timeout"))
    );
    let lasted =
        end["stopDate"].as_f64().expect("a time") - end["startDate"].as_f64().expect("a time");
    assert_eq!(lasted, 30.0);
}

#[tokio::test(start_paused = true)]
async fn a_nested_execution_is_awaited_and_stopped() {
    let service = Service::new();
    let child = service.machine("child", "A", json!({
        "A": {"Type": "Wait", "Seconds": "{% $states.input.s %}", "Output": {"waited": true}, "End": true}})).await;
    let start = |seconds: u64| {
        json!({"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Arguments": {"StateMachineArn": child, "Name": "{% 'c' & $states.context.Execution.Name %}",
            "Input": {"s": seconds}},
        "Output": "{% $states.result.Output.waited %}", "End": true})
    };
    let parent = service
        .machine("parent", "A", json!({"A": start(100)}))
        .await;
    let done = service.start(&parent, "done", json!({})).await;
    let end = service.finish(&done).await;
    assert_eq!(
        (&end["status"], &end["output"]),
        (&json!("SUCCEEDED"), &json!("true"))
    );

    let stopped = service.start(&parent, "stopped", json!({})).await;
    service.clock.sleep(Duration::from_secs(10)).await;
    let request = json!({"executionArn": stopped, "error": "Enough", "cause": "by hand"});
    service
        .call("StopExecution", request)
        .await
        .expect("stopped");
    let child_run = "arn:aws:states:us-east-1:000000000000:execution:child:cstopped";
    let end = service.finish(child_run).await;
    assert_eq!(end["status"], "ABORTED");
    let end = service.describe(&stopped).await;
    assert_eq!(
        (&end["status"], &end["error"]),
        (&json!("ABORTED"), &json!("Enough"))
    );

    // The child's name is taken for good.
    let taken = service
        .machine(
            "taken",
            "A",
            json!({"A": with(start(1), json!({"Arguments":
        {"StateMachineArn": child, "Name": "cdone", "Input": {"s": 100}}}))}),
        )
        .await;
    let end = service.start(&taken, "run", json!({})).await;
    let end = service.finish(&end).await;
    assert_eq!(
        end["error"],
        "StepFunctions.ExecutionAlreadyExistsException"
    );
}

#[tokio::test(start_paused = true)]
async fn a_start_with_the_same_name_is_the_same_execution_while_it_runs() {
    let service = Service::new();
    let machine = service
        .machine(
            "m",
            "A",
            json!({"A": {"Type": "Wait", "Seconds": 60, "End": true}}),
        )
        .await;
    let start = |input: &str| json!({"stateMachineArn": machine, "name": "run", "input": input});
    let first = service
        .call("StartExecution", start("{}"))
        .await
        .expect("started");
    service.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(
        service.call("StartExecution", start("{}")).await.as_ref(),
        Ok(&first)
    );
    let refused = "ExecutionAlreadyExists: Execution Already Exists: 'arn:aws:states:us-east-1:000000000000:execution:m:run'";
    assert_eq!(
        service.call("StartExecution", start("{\"x\":1}")).await,
        Err(refused.to_owned())
    );
    service
        .finish(first["executionArn"].as_str().expect("an ARN"))
        .await;
    assert_eq!(
        service.call("StartExecution", start("{}")).await,
        Err(refused.to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn payloads_beyond_the_limit_fail_the_state() {
    let service = Service::new();
    let states = json!({"A": {"Type": "Pass", "Output": "{% $pad('', 262143) %}", "End": true}});
    let machine = service.machine("m", "A", states).await;
    let execution = service.start(&machine, "run", json!({})).await;
    let end = service.finish(&execution).await;
    assert_eq!(end["error"], "States.DataLimitExceeded");
    let request =
        json!({"stateMachineArn": machine, "input": format!("\"{}\"", "x".repeat(262_144))});
    let refused = service
        .call("StartExecution", request)
        .await
        .expect_err("too long");
    assert!(refused.starts_with("ValidationException"), "{refused}");
}
