//! State machines of users in local mode invoke the functions of the sandbox account, which run; Slipway's own functions
//! are nobody else's.

use std::io::{Cursor, Write as _};
use std::path::Path;

use aws_credential_types::Credentials;
use aws_sdk_lambda::config::Region;
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::error::ProvideErrorMetadata as _;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::{FunctionCode, Runtime};
use serde_json::{Value, json};
use slipway_tests::LocalProcess;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const ROLE: &str = "arn:aws:iam::123456789012:role/shop";

/// Doubles a number, fails on request, and tells who it is.
const SOURCE: &str = "
class TooMany(Exception): pass
def handler(event, context):
    if event.get('fail'): raise TooMany('of %d' % event['n'])
    return {'twice': 2 * event['n'], 'version': context.function_version, 'token': event.get('token')}
";

fn arn(name: &str) -> String {
    format!("arn:aws:lambda:us-east-1:123456789012:function:{name}")
}

fn lambda(local: &LocalProcess) -> aws_sdk_lambda::Client {
    let config = aws_sdk_lambda::Config::builder()
        .behavior_version_latest()
        .endpoint_url(local.url())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::for_tests())
        .retry_config(RetryConfig::disabled())
        .build();
    aws_sdk_lambda::Client::from_conf(config)
}

/// A local mode with a function; nobody waits until it is active.
async fn open(folder: &Path, function: &str) -> LocalProcess {
    let local = LocalProcess::start(folder);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("handler.py", SimpleFileOptions::default())
        .expect("an entry");
    zip.write_all(SOURCE.as_bytes()).expect("written");
    let package = zip.finish().expect("an archive").into_inner();
    let code = FunctionCode::builder().zip_file(Blob::new(package));
    let made = lambda(&local).create_function().function_name(function);
    let made = made
        .role(ROLE)
        .runtime(Runtime::Python312)
        .handler("handler.handler")
        .code(code.build());
    made.send().await.expect("a function");
    local
}

/// A task `lambda:invoke`.
fn invoke(parameters: &Value) -> Value {
    json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": parameters})
}

/// Starts an execution of the state `First`, whatever it ends with reaching the activity behind it: its ARN.
async fn start(local: &LocalProcess, name: &str, mut first: Value) -> String {
    let states = local.states();
    let told = states.create_activity().name(name).send().await;
    let activity = told.expect("an activity").activity_arn;
    first["Next"] = json!("Told");
    first["Catch"] = json!([{"ErrorEquals": ["States.ALL"], "Next": "Told"}]);
    let told = json!({"Type": "Task", "Resource": activity, "End": true});
    let definition = json!({"StartAt": "First", "States": {"First": first, "Told": told}});
    let machine = states.create_state_machine().name(name).role_arn(ROLE);
    let machine = machine.definition(definition.to_string()).send().await;
    let machine = machine.expect("a machine").state_machine_arn;
    let started = states.start_execution().state_machine_arn(machine);
    let started = started.input(json!({"n": 4}).to_string()).send().await;
    started.expect("an execution").execution_arn
}

/// What reached the activity. It is asked for until it is there, at most a minute.
async fn told(local: &LocalProcess, name: &str) -> Value {
    let activity = format!("arn:aws:states:us-east-1:123456789012:activity:{name}");
    let task = local.states().get_activity_task().activity_arn(activity);
    let task = task.send().await.expect("an answer");
    serde_json::from_str(task.input().expect("a task in time")).expect("JSON")
}

async fn output(local: &LocalProcess, name: &str, first: Value) -> Value {
    start(local, name, first).await;
    told(local, name).await
}

#[tokio::test]
async fn machines_invoke_functions_of_the_account() {
    let folder = tempfile::tempdir().expect("a folder");
    let local = open(folder.path(), "twice").await;
    let plain = json!({"Type": "Task", "Resource": arn("twice")});
    let eight = json!({"twice": 8, "version": "$LATEST", "token": null});
    assert_eq!(output(&local, "plain", plain.clone()).await, eight);

    let whole = json!({"FunctionName": "twice", "Payload.$": "$", "LogType": "Tail"});
    let whole = output(&local, "whole", invoke(&whole)).await;
    assert_eq!(whole["Payload"], eight);
    assert_eq!(
        (&whole["StatusCode"], &whole["ExecutedVersion"]),
        (&json!(200), &json!("$LATEST"))
    );
    assert!(
        whole["LogResult"]
            .as_str()
            .is_some_and(|log| !log.is_empty())
    );

    let version = lambda(&local).publish_version().function_name("twice");
    version.send().await.expect("a version");
    let of_version = json!({"FunctionName": arn("twice"), "Payload.$": "$", "Qualifier": "1"});
    let of_version = output(&local, "version", invoke(&of_version)).await;
    assert_eq!(
        (
            &of_version["Payload"]["version"],
            &of_version["ExecutedVersion"]
        ),
        (&json!("1"), &json!("1"))
    );

    let fails = json!({"FunctionName": "twice", "Payload": {"n": 5, "fail": true}});
    let fails = output(&local, "fails", invoke(&fails)).await;
    assert_eq!(fails["Error"], "TooMany");
    let cause: Value = serde_json::from_str(fails["Cause"].as_str().expect("text")).expect("JSON");
    assert_eq!(
        (&cause["errorMessage"], &cause["errorType"]),
        (&json!("of 5"), &json!("TooMany"))
    );
    assert!(
        cause["stackTrace"][0]
            .as_str()
            .is_some_and(|frame| frame.contains("/var/task/handler.py"))
    );

    let none = output(&local, "none", invoke(&json!({"FunctionName": "nobody"}))).await;
    assert_eq!(none["Error"], "Lambda.ResourceNotFoundException");
    let cause = none["Cause"].as_str().expect("text");
    let text = format!(
        "Function not found: {}:$LATEST (Service: AWSLambda; Status Code: 404; ",
        arn("nobody")
    );
    assert!(cause.starts_with(&text), "{cause}");

    // The code is unpacked anew by the next process.
    local.kill();
    let local = LocalProcess::start(folder.path());
    assert_eq!(output(&local, "later", plain).await, eight);
}

#[tokio::test]
async fn a_function_hands_a_token_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let local = open(folder.path(), "asks").await;
    let mut asks =
        invoke(&json!({"FunctionName": "asks", "Payload": {"n": 1, "token.$": "$$.Task.Token"}}));
    asks["Resource"] = json!("arn:aws:states:::lambda:invoke.waitForTaskToken");
    let execution = start(&local, "asks", asks).await;
    // The function's answer is the submission; it holds the token.
    let token = loop {
        let history = local.states().get_execution_history();
        let history = history.execution_arn(&execution).send().await;
        let history = history.expect("a history");
        let submitted = history.events().iter().find_map(|event| {
            let output = event.task_submitted_event_details()?.output()?;
            serde_json::from_str::<Value>(output).ok()
        });
        if let Some(submitted) = submitted {
            break submitted["Payload"]["token"]
                .as_str()
                .expect("a token")
                .to_owned();
        }
    };
    let done = local.states().send_task_success().task_token(token);
    done.output(r#"{"answered": true}"#)
        .send()
        .await
        .expect("heard");
    assert_eq!(told(&local, "asks").await, json!({"answered": true}));
}

#[tokio::test]
async fn functions_of_slipway_are_out_of_reach() {
    let folder = tempfile::tempdir().expect("a folder");
    // Of a name that one of Slipway's own has: it is another function.
    let local = open(folder.path(), "slipway-notify").await;
    let theirs = json!({"FunctionName": "slipway-notify", "Payload.$": "$"});
    let theirs = output(&local, "theirs", invoke(&theirs)).await;
    assert_eq!(theirs["Payload"]["twice"], 8);
    for (name, first) in [
        (
            "by-name",
            invoke(&json!({"FunctionName": "slipway-pipeline", "Payload": {}})),
        ),
        (
            "by-arn",
            json!({"Type": "Task", "Resource": arn("slipway-pipeline")}),
        ),
    ] {
        let error = output(&local, name, first).await;
        assert_eq!(
            error["Error"], "Lambda.ResourceNotFoundException",
            "{error}"
        );
    }
    let refused = lambda(&local).invoke().function_name("slipway-pipeline");
    let refused = refused.send().await.expect_err("not theirs");
    assert_eq!(
        refused.into_service_error().code(),
        Some("ResourceNotFoundException")
    );
    // The machines that do reach them can be neither changed nor removed from outside.
    let machine = "arn:aws:states:us-east-1:123456789012:stateMachine:slipway-notify";
    let states = local.states();
    let definition = r#"{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}"#;
    let changed = states.update_state_machine().state_machine_arn(machine);
    let changed = changed.definition(definition).send().await;
    let changed = changed.expect_err("refused").into_service_error();
    assert_eq!(changed.code(), Some("AccessDeniedException"), "{changed:?}");
    let removed = states.delete_state_machine().state_machine_arn(machine);
    let removed = removed
        .send()
        .await
        .expect_err("refused")
        .into_service_error();
    assert_eq!(removed.code(), Some("AccessDeniedException"), "{removed:?}");
}
