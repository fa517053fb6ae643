//! Redriving an execution through the port of a `slipway local` that is killed in the middle: it goes on where it stood, and
//! what had succeeded is not done again.

use aws_sdk_sfn::types::{ExecutionRedriveStatus, ExecutionStatus};
use serde_json::{Value, json};
use slipway_tests::LocalProcess;
use slipway_tests::history::entered;

const ROLE: &str = "arn:aws:iam::123456789012:role/machine";

/// An activity of this name.
async fn activity(local: &LocalProcess, name: &str) -> String {
    let made = local.states().create_activity().name(name).send().await;
    made.expect("an activity").activity_arn
}

/// A machine of three tasks, and an execution of it whose first task succeeded and whose second one failed.
async fn failed(local: &LocalProcess, activities: &[String; 2]) -> String {
    let states = local.states();
    let task = |arn: &String| json!({"Type": "Task", "Resource": arn});
    let mut definition = json!({"StartAt": "Build", "States": {
        "Build": task(&activities[0]),
        "Deploy": task(&activities[1]),
        "Tell": {"Type": "Pass", "End": true},
    }});
    definition["States"]["Build"]["Next"] = json!("Deploy");
    definition["States"]["Deploy"]["Next"] = json!("Tell");
    let machine = states.create_state_machine().name("shop").role_arn(ROLE);
    let machine = machine.definition(definition.to_string()).send().await;
    let machine = machine.expect("a machine").state_machine_arn;
    let started = states.start_execution().state_machine_arn(machine);
    let started = started.input("{}").send().await.expect("an execution");
    let (token, _) = taken(local, &activities[0]).await;
    succeed(local, &token, &json!({"image": 7})).await;
    let (token, input) = taken(local, &activities[1]).await;
    assert_eq!(input, json!({"image": 7}));
    let refused = states.send_task_failure().task_token(token).error("Full");
    refused.send().await.expect("heard");
    ended(local, &started.execution_arn, &ExecutionStatus::Failed).await;
    started.execution_arn
}

/// A task of an activity: its token and its input.
async fn taken(local: &LocalProcess, activity: &str) -> (String, Value) {
    let states = local.states();
    let task = states.get_activity_task().activity_arn(activity).send();
    let task = task.await.expect("an answer");
    let input = serde_json::from_str(task.input().expect("a task in time")).expect("JSON");
    (task.task_token.expect("a token"), input)
}

async fn succeed(local: &LocalProcess, token: &str, output: &Value) {
    let states = local.states();
    let done = states.send_task_success().task_token(token);
    let done = done.output(output.to_string()).send().await;
    done.expect("heard");
}

/// Looks until the execution has ended.
async fn ended(local: &LocalProcess, execution: &str, status: &ExecutionStatus) {
    loop {
        let found = local.states().describe_execution();
        let found = found.execution_arn(execution).send().await;
        let found = found.expect("an execution");
        if found.status() != &ExecutionStatus::Running {
            assert_eq!(found.status(), status);
            return;
        }
    }
}

async fn events(local: &LocalProcess, execution: &str) -> Vec<String> {
    let states = local.states();
    let history = states.get_execution_history().execution_arn(execution);
    let history = history.max_results(1_000).send().await.expect("a history");
    let events = history.events().iter();
    events
        .map(|event| {
            format!(
                "{}<{} {}",
                event.id(),
                event.previous_event_id(),
                event.r#type().as_str()
            )
        })
        .collect()
}

#[tokio::test]
async fn a_redriven_execution_goes_on_after_kills() {
    let folder = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(folder.path());
    let activities = [
        activity(&local, "build").await,
        activity(&local, "deploy").await,
    ];
    let execution = failed(&local, &activities).await;

    let redriven = local.states().redrive_execution();
    let redriven = redriven.execution_arn(&execution).send().await;
    let at = redriven.expect("redriven").redrive_date;
    // What was answered is kept: the first kill comes before anybody has taken the task, the second one while it is done.
    local.kill();
    let local = LocalProcess::start(folder.path());
    let (token, input) = taken(&local, &activities[1]).await;
    assert_eq!(input, json!({"image": 7}), "what the first task gave");
    local.kill();
    let local = LocalProcess::start(folder.path());
    succeed(&local, &token, &json!({"deployed": true})).await;
    ended(&local, &execution, &ExecutionStatus::Succeeded).await;

    let found = local.states().describe_execution();
    let found = found.execution_arn(&execution).send().await;
    let found = found.expect("an execution");
    assert_eq!(found.output(), Some(r#"{"deployed":true}"#));
    assert_eq!(found.redrive_count(), Some(1));
    assert_eq!(found.redrive_date(), Some(&at));
    let status = found.redrive_status();
    assert_eq!(status, Some(&ExecutionRedriveStatus::NotRedrivable));
    assert_eq!(found.error(), None);
    assert_eq!(
        events(&local, &execution).await,
        [
            "1<0 ExecutionStarted",
            "2<0 TaskStateEntered",
            "3<2 ActivityScheduled",
            "4<3 ActivityStarted",
            "5<4 ActivitySucceeded",
            "6<5 TaskStateExited",
            "7<6 TaskStateEntered",
            "8<7 ActivityScheduled",
            "9<8 ActivityStarted",
            "10<9 ActivityFailed",
            "11<10 ExecutionFailed",
            "12<11 ExecutionRedriven",
            "13<12 ActivityScheduled",
            "14<13 ActivityStarted",
            "15<14 ActivitySucceeded",
            "16<15 TaskStateExited",
            "17<16 PassStateEntered",
            "18<17 PassStateExited",
            "19<18 ExecutionSucceeded",
        ]
    );
    assert_eq!(
        entered(&local, &execution).await,
        ["Build", "Deploy", "Tell"]
    );
    let again = local.states().redrive_execution();
    let again = again.execution_arn(&execution).send().await;
    let again = again.expect_err("it has succeeded").into_service_error();
    assert!(again.is_execution_not_redrivable(), "{again:?}");
}
