//! Express machines, validation, `TestState` and services through the API.

use serde_json::{Value, json};

use super::service::Service;

fn machine(states: Value) -> Value {
    json!({"StartAt": "A", "States": states})
}

#[tokio::test(start_paused = true)]
async fn express_executions_answer_with_their_end() {
    let service = Service::new();
    let states = json!({"A": {"Type": "Wait", "Seconds": 7, "Next": "B"}, "B": {"Type": "Pass", "Parameters": {"x.$": "$$.Execution.Id"}, "End": true}});
    let created = service
        .call(
            "CreateStateMachine",
            json!({
        "name": "fast", "type": "EXPRESS", "roleArn": "arn:aws:iam::000000000000:role/local",
        "definition": machine(states).to_string()}),
        )
        .await
        .expect("created");
    let arn = &created["stateMachineArn"];
    let end = service
        .call(
            "StartSyncExecution",
            json!({"stateMachineArn": arn, "name": "n"}),
        )
        .await
        .expect("ended");
    assert_eq!(end["status"], "SUCCEEDED");
    let output = end["output"].as_str().expect("an output");
    assert!(output.contains(":express:fast:n:"), "{output}");
    assert_eq!(end["billingDetails"]["billedDurationInMilliseconds"], 7000);
    // The same name starts another one, which can be looked at.
    let started = service
        .call(
            "StartExecution",
            json!({"stateMachineArn": arn, "name": "n"}),
        )
        .await
        .expect("started");
    let execution = started["executionArn"].as_str().expect("an ARN");
    assert_eq!(service.finish(execution).await["status"], "SUCCEEDED");
    assert!(service.events(execution).await.len() > 4);
    let slow = service
        .jsonpath_machine("slow", "A", json!({"A": {"Type": "Succeed"}}))
        .await;
    let refused = service
        .call("StartSyncExecution", json!({"stateMachineArn": slow}))
        .await;
    assert!(
        refused
            .expect_err("refused")
            .starts_with("StateMachineTypeNotSupported")
    );
}

#[tokio::test(start_paused = true)]
async fn an_express_execution_ends_after_five_minutes() {
    let service = Service::new();
    let states = json!({"A": {"Type": "Wait", "Seconds": 1000, "End": true}});
    let created = service
        .call(
            "CreateStateMachine",
            json!({
        "name": "fast", "type": "EXPRESS", "roleArn": "arn:aws:iam::000000000000:role/local",
        "definition": machine(states).to_string()}),
        )
        .await
        .expect("created");
    let request = json!({"stateMachineArn": created["stateMachineArn"]});
    let end = service
        .call("StartSyncExecution", request)
        .await
        .expect("ended");
    assert_eq!(end["status"], "TIMED_OUT");
    let took = end["stopDate"].as_f64().unwrap_or(0.0) - end["startDate"].as_f64().unwrap_or(0.0);
    assert!((300.0..301.0).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn validation_gives_every_error() {
    let service = Service::new();
    let states = json!({"A": {"Type": "Pass"}, "B": {"Type": "Nope"}});
    let request = json!({"definition": machine(states).to_string()});
    let answer = service
        .call("ValidateStateMachineDefinition", request)
        .await
        .expect("validated");
    assert_eq!(answer["result"], "FAIL");
    let places: Vec<_> = answer["diagnostics"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|d| &d["location"])
        .collect();
    assert_eq!(places, ["/States/A", "/States/B/Type"]);
}

async fn tested(service: &Service, state: Value, more: Value) -> Result<Value, String> {
    let mut request = json!({"definition": state.to_string(), "inspectionLevel": "DEBUG"});
    for (key, value) in more.as_object().expect("an object") {
        request[key] = value.clone();
    }
    service.call("TestState", request).await
}

#[tokio::test(start_paused = true)]
async fn one_state_is_tested_with_its_data_flow() {
    let service = Service::new();
    let task = json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Next": "Elsewhere",
        "InputPath": "$.in", "Parameters": {"FunctionName": "echo", "Payload.$": "$"},
        "ResultSelector": {"got.$": "$.Payload.n"}, "ResultPath": "$.out"});
    let answer = tested(&service, task, json!({"input": "{\"in\":{\"n\":1}}"}))
        .await
        .expect("tested");
    assert_eq!(
        answer,
        json!({
            "status": "SUCCEEDED",
            "output": "{\"in\":{\"n\":1},\"out\":{\"got\":1}}",
            "nextState": "Elsewhere",
            "inspectionData": {
                "input": "{\"in\":{\"n\":1}}",
                "afterInputPath": "{\"n\":1}",
                "afterParameters": "{\"FunctionName\":\"echo\",\"Payload\":{\"n\":1}}",
                "result": "{\"ExecutedVersion\":\"$LATEST\",\"Payload\":{\"n\":1},\"StatusCode\":200}",
                "afterResultSelector": "{\"got\":1}",
                "afterResultPath": "{\"in\":{\"n\":1},\"out\":{\"got\":1}}",
            },
        })
    );
}

#[tokio::test(start_paused = true)]
async fn mocked_errors_are_retried_and_caught() {
    let service = Service::new();
    let task = json!({"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": true,
        "Parameters": {"QueueUrl": "q", "MessageBody": "b"},
        "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 3, "MaxAttempts": 2}],
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]});
    let mock = json!({"errorOutput": {"error": "Busy", "cause": "much to do"}});
    let first = json!({"mock": mock, "stateConfiguration": {"retrierRetryCount": 1}});
    let answer = tested(&service, task.clone(), first).await.expect("tested");
    assert_eq!(answer["status"], "RETRIABLE");
    assert_eq!(
        answer["inspectionData"]["errorDetails"],
        json!({"retryIndex": 0, "retryBackoffIntervalSeconds": 6})
    );
    let last = json!({"mock": mock, "stateConfiguration": {"retrierRetryCount": 2}});
    let answer = tested(&service, task, last).await.expect("tested");
    assert_eq!(
        (&answer["status"], &answer["nextState"]),
        (&json!("CAUGHT_ERROR"), &json!("Caught"))
    );
    assert_eq!(
        (&answer["error"], &answer["cause"]),
        (&json!("Busy"), &json!("much to do"))
    );
}

#[tokio::test(start_paused = true)]
async fn what_test_state_refuses() {
    let service = Service::new();
    let parallel = json!({"Type": "Parallel", "End": true, "Branches": [
        {"StartAt": "X", "States": {"X": {"Type": "Succeed"}}}]});
    let pass = json!({"Type": "Pass", "End": true});
    let activity = json!({"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Parameters": {"QueueUrl": "q", "MessageBody": "b"}, "End": true});
    let cases = [
        (
            parallel.clone(),
            json!({}),
            "InvalidDefinition: TestState API does not support Map or Parallel states. Supported state types include: [Task, Wait, Pass, Succeed, Fail, Choice]",
        ),
        (
            parallel.clone(),
            json!({"mock": {"result": "{}"}}),
            "ValidationException: Mocked result must be an array.",
        ),
        (
            parallel,
            json!({"mock": {"result": "[1,2]"}}),
            "ValidationException: Mocked result must contain the same number of items as number of Parallel branches.",
        ),
        (
            pass.clone(),
            json!({"mock": {"result": "1"}}),
            "ValidationException: State type 'Pass' is not supported when a mock is specified",
        ),
        (
            pass.clone(),
            json!({"inspectionLevel": "ALL"}),
            "ValidationException: 1 validation error detected: Value 'ALL' at 'inspectionLevel' failed to satisfy constraint: Member must satisfy enum value set: [INFO, DEBUG, TRACE]",
        ),
        (
            json!({"Type": "Pass"}),
            json!({}),
            "InvalidDefinition: Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: This object should have only one of the following fields: [Next, End] at /States/StateName'",
        ),
        (
            activity,
            json!({}),
            "ValidationException: The state waits for somebody else: give a mock of its result",
        ),
    ];
    for (state, more, expected) in cases {
        let refused = tested(&service, state.clone(), more)
            .await
            .expect_err("refused");
        assert_eq!(refused, expected, "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn services_are_called_and_jobs_waited_for() {
    let service = Service::new();
    let states = json!({
        "A": {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "Parameters": {"QueueUrl": "q", "MessageBody": 1},
            "ResultPath": "$.sent", "Next": "B"},
        "B": {"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync", "Parameters": {"TaskDefinition": "t"},
            "ResultPath": "$.ran", "Next": "C"},
        "C": {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:fails:always", "Parameters": {},
            "Catch": [{"ErrorEquals": ["Fails.Always"], "ResultPath": "$.error", "Next": "D"}], "End": true},
        "D": {"Type": "Succeed"},
    });
    let machine = service.jsonpath_machine("m", "A", states).await;
    let execution = service.start(&machine, "run", json!({})).await;
    let end = service.finish(&execution).await;
    let output: Value =
        serde_json::from_str(end["output"].as_str().expect("an output")).expect("JSON");
    assert_eq!(
        output,
        json!({
            "sent": {"Answer": {"QueueUrl": "q", "MessageBody": 1}},
            "ran": {"Finished": {"Answer": {"TaskDefinition": "t"}}},
            "error": {"Error": "Fails.Always", "Cause": "on request"},
        })
    );
}

#[tokio::test(start_paused = true)]
async fn machines_and_activities_are_tagged() {
    let service = Service::new();
    let create = json!({
        "name": "m", "roleArn": "arn:aws:iam::000000000000:role/local",
        "definition": machine(json!({"A": {"Type": "Succeed"}})).to_string(),
        "tags": [{"key": "team", "value": "blue"}, {"key": "stage", "value": "dev"}],
    });
    let created = service.call("CreateStateMachine", create.clone()).await;
    let arn = created.expect("created")["stateMachineArn"].clone();
    let tags = async |arn: &Value| {
        let list = service.call("ListTagsForResource", json!({"resourceArn": arn}));
        list.await.map(|answer| answer["tags"].to_string())
    };
    let both = r#"[{"key":"stage","value":"dev"},{"key":"team","value":"blue"}]"#;
    assert_eq!(tags(&arn).await.as_deref(), Ok(both));
    // Other tags are no other machine, and change nothing.
    let mut again = create;
    again["tags"] = json!([{"key": "team", "value": "red"}]);
    service
        .call("CreateStateMachine", again)
        .await
        .expect("the same");
    assert_eq!(tags(&arn).await.as_deref(), Ok(both));

    let more = json!({"resourceArn": arn, "tags": [{"key": "team", "value": "red"}, {"key": "x", "value": ""}]});
    service.call("TagResource", more).await.expect("tagged");
    let fewer = json!({"resourceArn": arn, "tagKeys": ["stage", "nothing"]});
    service
        .call("UntagResource", fewer)
        .await
        .expect("untagged");
    let left = r#"[{"key":"team","value":"red"},{"key":"x","value":""}]"#;
    assert_eq!(tags(&arn).await.as_deref(), Ok(left));

    let many: Vec<Value> = (0..51)
        .map(|n| json!({"key": n.to_string(), "value": ""}))
        .collect();
    for (request, refused) in [
        (json!({"resourceArn": arn, "tags": many}), "TooManyTags"),
        (
            json!({"resourceArn": arn, "tags": [{"key": "", "value": ""}]}),
            "ValidationException",
        ),
        (
            json!({"resourceArn": "arn:aws:s3:::b", "tags": []}),
            "InvalidArn",
        ),
        (
            json!({"resourceArn": "arn:aws:states:us-east-1:000000000000:stateMachine:none", "tags": []}),
            "ResourceNotFound",
        ),
    ] {
        let error = service
            .call("TagResource", request)
            .await
            .expect_err(refused);
        assert!(error.starts_with(refused), "{error}");
    }

    let activity = json!({"name": "a", "tags": [{"key": "k", "value": "v"}]});
    let activity = service
        .call("CreateActivity", activity)
        .await
        .expect("created");
    let activity = activity["activityArn"].clone();
    assert_eq!(
        tags(&activity).await.as_deref(),
        Ok(r#"[{"key":"k","value":"v"}]"#)
    );
    let gone = json!({"stateMachineArn": arn});
    service
        .call("DeleteStateMachine", gone)
        .await
        .expect("deleted");
    let error = tags(&arn).await.expect_err("it is gone");
    assert!(error.starts_with("ResourceNotFound"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_same_machine_is_created_once_whatever_its_role() {
    let service = Service::new();
    let create = async |role: &str, seconds: u32| {
        let states = json!({"A": {"Type": "Wait", "Seconds": seconds, "End": true}});
        let role = format!("arn:aws:iam::000000000000:role/{role}");
        let request =
            json!({"name": "m", "roleArn": role, "definition": machine(states).to_string()});
        service.call("CreateStateMachine", request).await
    };
    let first = create("one", 1).await.expect("created");
    assert_eq!(create("other", 1).await.expect("the same"), first);
    let refused = create("one", 2).await.expect_err("another definition");
    assert!(
        refused.starts_with("StateMachineAlreadyExists"),
        "{refused}"
    );
    // The role of the later request is not taken over.
    let request = json!({"stateMachineArn": first["stateMachineArn"]});
    let described = service
        .call("DescribeStateMachine", request)
        .await
        .expect("described");
    assert_eq!(described["roleArn"], "arn:aws:iam::000000000000:role/one");
}
