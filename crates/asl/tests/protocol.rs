//! The official client against the engine on loopback: what it sends is understood, and so is what it gets.

#![expect(
    clippy::expect_used,
    reason = "what a test cannot set up is a failure of the test"
)]

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_sfn::Client;
use aws_sdk_sfn::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sfn::types::{ExecutionRedriveStatus, ExecutionStatus, HistoryEventType};
use serde_json::{Value, json};
use slipway_asl::{Engine, EngineConfig, Lambda, LambdaError};
use slipway_clock::Clock;

struct Echo;

#[async_trait]
impl Lambda for Echo {
    async fn invoke(&self, _: &str, payload: Value) -> Result<Value, LambdaError> {
        Ok(payload)
    }
}

async fn client() -> (Client, Engine) {
    let config = EngineConfig {
        clock: Clock::system(),
        region: "us-east-1".to_owned(),
        account: "000000000000".to_owned(),
        begin_at_once: None,
    };
    let engine = Engine::in_memory(config, Arc::new(Echo)).expect("opens");
    let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = engine.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let config = aws_sdk_sfn::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(format!("http://{address}"))
        .credentials_provider(Credentials::new("local", "local", None, None, "tests"))
        .build();
    (Client::from_conf(config), engine)
}

async fn create(client: &Client, name: &str, state: Value) -> String {
    let definition = json!({"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": state}});
    client
        .create_state_machine()
        .name(name)
        .definition(definition.to_string())
        .role_arn("arn:aws:iam::000000000000:role/local")
        .send()
        .await
        .expect("created")
        .state_machine_arn()
        .to_owned()
}

async fn wait_for_end(client: &Client, arn: &str) -> ExecutionStatus {
    loop {
        let described = client
            .describe_execution()
            .execution_arn(arn)
            .send()
            .await
            .expect("described");
        if *described.status() != ExecutionStatus::Running {
            return described.status().clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn executions_run_and_are_listed() {
    let (client, engine) = client().await;
    let state = json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": "echo", "Payload": "{% $states.input %}"},
        "Output": "{% $states.result.Payload %}", "End": true});
    let machine = create(&client, "machine", state).await;
    for i in 0..5 {
        let started = client
            .start_execution()
            .state_machine_arn(&machine)
            .name(format!("run-{i}"))
            .input(format!("{{\"i\":{i}}}"))
            .send()
            .await
            .expect("started");
        assert_eq!(
            wait_for_end(&client, started.execution_arn()).await,
            ExecutionStatus::Succeeded
        );
    }
    let pages: Vec<_> = client
        .list_executions()
        .state_machine_arn(&machine)
        .status_filter(ExecutionStatus::Succeeded)
        .max_results(2)
        .into_paginator()
        .items()
        .send()
        .collect::<Result<Vec<_>, _>>()
        .await
        .expect("listed");
    let names: Vec<&str> = pages.iter().map(|execution| execution.name()).collect();
    assert_eq!(names, ["run-4", "run-3", "run-2", "run-1", "run-0"]);

    let history = client
        .get_execution_history()
        .execution_arn(pages[0].execution_arn())
        .max_results(3)
        .into_paginator()
        .items()
        .send()
        .collect::<Result<Vec<_>, _>>()
        .await
        .expect("history");
    let types: Vec<&HistoryEventType> = history.iter().map(|event| event.r#type()).collect();
    use HistoryEventType as T;
    assert_eq!(
        types,
        [
            &T::ExecutionStarted,
            &T::TaskStateEntered,
            &T::TaskScheduled,
            &T::TaskStarted,
            &T::TaskSucceeded,
            &T::TaskStateExited,
            &T::ExecutionSucceeded
        ]
    );
    let newest = client
        .get_execution_history()
        .execution_arn(pages[0].execution_arn())
        .reverse_order(true)
        .max_results(1)
        .send()
        .await
        .expect("history");
    assert_eq!(newest.events()[0].id(), 7);
    let output = newest.events()[0]
        .execution_succeeded_event_details()
        .and_then(|d| d.output());
    assert_eq!(output, Some("{\"i\":4}"));
    assert_eq!(engine.transitions(), 5);
}

#[tokio::test]
async fn workers_use_the_official_client() {
    let (client, _engine) = client().await;
    let activity = client
        .create_activity()
        .name("work")
        .send()
        .await
        .expect("created");
    let arn = activity.activity_arn().to_owned();
    let machine = create(
        &client,
        "m",
        json!({"Type": "Task", "Resource": arn, "End": true}),
    )
    .await;
    let polling = {
        let (client, arn) = (client.clone(), arn.clone());
        tokio::spawn(async move {
            client
                .get_activity_task()
                .activity_arn(arn)
                .worker_name("w")
                .send()
                .await
        })
    };
    let started = client
        .start_execution()
        .state_machine_arn(&machine)
        .input("[1]")
        .send()
        .await
        .expect("started");
    let task = polling.await.expect("joined").expect("a task");
    assert_eq!(task.input(), Some("[1]"));
    let token = task.task_token().expect("a token");
    client
        .send_task_heartbeat()
        .task_token(token)
        .send()
        .await
        .expect("alive");
    client
        .send_task_success()
        .task_token(token)
        .output("2")
        .send()
        .await
        .expect("completed");
    assert_eq!(
        wait_for_end(&client, started.execution_arn()).await,
        ExecutionStatus::Succeeded
    );
    let late = client
        .send_task_success()
        .task_token(token)
        .output("2")
        .send()
        .await
        .expect_err("over");
    assert!(late.into_service_error().is_task_timed_out());
}

#[tokio::test]
async fn errors_have_their_types() {
    let (client, _engine) = client().await;
    let refused = client
        .create_state_machine()
        .name("m")
        .definition("{}")
        .role_arn("arn:aws:iam::000000000000:role/local")
        .send()
        .await
        .expect_err("refused");
    assert!(refused.into_service_error().is_invalid_definition());
    let none = "arn:aws:states:us-east-1:000000000000:stateMachine:none";
    let missing = client
        .start_execution()
        .state_machine_arn(none)
        .send()
        .await
        .expect_err("missing");
    assert!(
        missing
            .into_service_error()
            .is_state_machine_does_not_exist()
    );
    let machine = create(
        &client,
        "m",
        json!({"Type": "Wait", "Seconds": 900, "End": true}),
    )
    .await;
    let start = || {
        client
            .start_execution()
            .state_machine_arn(&machine)
            .name("run")
    };
    let first = start().send().await.expect("started");
    assert_eq!(
        start().send().await.expect("the same").execution_arn(),
        first.execution_arn()
    );
    let other = start().input("1").send().await.expect_err("taken");
    assert!(other.into_service_error().is_execution_already_exists());
    let stopped = client
        .stop_execution()
        .execution_arn(first.execution_arn())
        .error("E")
        .send()
        .await;
    assert!(stopped.is_ok());
    assert_eq!(
        wait_for_end(&client, first.execution_arn()).await,
        ExecutionStatus::Aborted
    );
    let bad = client
        .start_execution()
        .state_machine_arn(&machine)
        .input("{")
        .send()
        .await
        .expect_err("bad");
    assert!(bad.into_service_error().is_invalid_execution_input());
    let updated = client
        .update_state_machine()
        .state_machine_arn(&machine)
        .definition(r#"{"StartAt":"B","States":{"B":{"Type":"Succeed"}}}"#)
        .send()
        .await
        .expect("updated");
    assert!(updated.revision_id().is_some());
    let started_with = client
        .describe_state_machine_for_execution()
        .execution_arn(first.execution_arn())
        .send()
        .await
        .expect("described");
    assert!(
        started_with.definition().contains("900"),
        "an execution keeps its definition"
    );
}

#[tokio::test]
async fn executions_are_redriven_and_map_runs_updated() {
    let (client, _engine) = client().await;
    // Fails until it is redriven.
    let state = json!({"Type": "Map", "End": true, "Items": "{% $states.input %}", "ItemProcessor": {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, "StartAt": "I", "States": {
            "I": {"Type": "Wait", "End": true, "Seconds":
                "{% $states.context.Execution.RedriveCount = 0 ? $error('not yet') : 900 %}"}}}});
    let machine = create(&client, "m", state).await;
    let started = client
        .start_execution()
        .state_machine_arn(&machine)
        .input("[1,2]")
        .send()
        .await
        .expect("started");
    let arn = started.execution_arn();
    let redrive = || client.redrive_execution().execution_arn(arn);
    assert_eq!(wait_for_end(&client, arn).await, ExecutionStatus::Failed);
    let described = client.describe_execution().execution_arn(arn).send().await;
    let described = described.expect("described");
    assert_eq!(
        described.redrive_status(),
        Some(&ExecutionRedriveStatus::Redrivable)
    );
    let redriven = redrive().client_token("one").send().await;
    let date = redriven.expect("redriven").redrive_date;
    let again = redrive().client_token("one").send().await;
    assert_eq!(again.expect("the same").redrive_date, date);
    let described = client.describe_execution().execution_arn(arn).send().await;
    let described = described.expect("described");
    assert_eq!(
        (described.redrive_count(), described.redrive_date()),
        (Some(1), Some(&date))
    );
    let runs = client.list_map_runs().execution_arn(arn).send().await;
    let run = runs.expect("listed").map_runs()[0].map_run_arn().to_owned();
    let update = client.update_map_run().map_run_arn(&run);
    let update = update.max_concurrency(7).tolerated_failure_count(1);
    update.send().await.expect("updated");
    let told = client.describe_map_run().map_run_arn(&run).send().await;
    let told = told.expect("described");
    assert_eq!(
        (told.max_concurrency(), told.tolerated_failure_count()),
        (7, 1)
    );
    assert_eq!(told.redrive_count(), Some(1));
    let history = client.get_execution_history().execution_arn(arn).send();
    let history = history.await.expect("history");
    let counts: Vec<(Option<i32>, Option<i32>)> = history
        .events()
        .iter()
        .map(|event| {
            let execution = event.execution_redriven_event_details();
            let map_run = event.map_run_redriven_event_details();
            (
                execution.and_then(|details| details.redrive_count()),
                map_run.and_then(|details| details.redrive_count()),
            )
        })
        .filter(|counts| *counts != (None, None))
        .collect();
    assert_eq!(counts, [(Some(1), None), (None, Some(1))]);
    client
        .stop_execution()
        .execution_arn(arn)
        .send()
        .await
        .expect("stopped");
    let late = client.update_map_run().map_run_arn(&run).max_concurrency(1);
    let late = late.send().await.expect_err("it has ended");
    assert!(late.into_service_error().is_validation_exception());
    let none = run.replace(":m/", ":none/");
    let missing = client.update_map_run().map_run_arn(none).send().await;
    let missing = missing.expect_err("missing").into_service_error();
    assert!(missing.is_resource_not_found());
}
