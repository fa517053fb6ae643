//! Functions that run: `Invoke` as `aws-sdk-lambda` sees it, with handlers in processes of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Write as _};
use std::time::Duration;

use aws_sdk_lambda::Client;
use aws_sdk_lambda::client::Waiters;
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_lambda::error::ProvideErrorMetadata;
use aws_sdk_lambda::operation::invoke::InvokeOutput;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::{Environment, FunctionCode, InvocationType, LogType, Runtime};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::sdk::serve;

const PATIENCE: Duration = Duration::from_secs(30);
const ROLE: &str = "arn:aws:iam::123456789012:role/shop";

/// An account that runs functions, and a client of its Lambda.
struct Account {
    lambda: Client,
    endpoint: String,
    _folder: tempfile::TempDir,
}

impl Account {
    async fn open() -> Self {
        let (sandbox, endpoint) = serve().await;
        let folder = tempfile::tempdir().expect("a folder");
        sandbox
            .run_functions_in(&folder.path().join("functions"))
            .expect("a folder for functions");
        let config = aws_sdk_lambda::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::new("AKIATEST", "secret", None, None, "test"))
            .retry_config(RetryConfig::disabled())
            .endpoint_url(&endpoint)
            .build();
        Self {
            lambda: Client::from_conf(config),
            endpoint,
            _folder: folder,
        }
    }

    /// A function of a package, active.
    async fn create(&self, name: &str, runtime: Runtime, handler: &str, package: Vec<u8>) {
        let code = FunctionCode::builder().zip_file(Blob::new(package));
        let variables = Environment::builder().variables("COLOUR", "blue");
        let made = self.lambda.create_function().function_name(name);
        let made = made
            .role(ROLE)
            .runtime(runtime)
            .handler(handler)
            .environment(variables.build())
            .code(code.build());
        made.send().await.expect("a function");
        self.active(name).await;
    }

    async fn active(&self, name: &str) {
        let active = self.lambda.wait_until_function_active_v2();
        let active = active.function_name(name).wait(PATIENCE).await;
        active.expect("active");
        let updated = self.lambda.wait_until_function_updated_v2();
        let updated = updated.function_name(name).wait(PATIENCE).await;
        updated.expect("updated");
    }

    async fn python(&self, name: &str, source: &str) {
        let package = package(&[("handler.py", source)]);
        self.create(name, Runtime::Python313, "handler.handler", package)
            .await;
    }

    async fn invoke(&self, name: &str, event: &Value) -> InvokeOutput {
        let call = self.lambda.invoke().function_name(name);
        let call = call.payload(Blob::new(event.to_string()));
        let answer = call.log_type(LogType::Tail).send().await;
        answer.unwrap_or_else(|error| panic!("{name}: {error:?}"))
    }

    /// The result of an invocation that does well.
    async fn result(&self, name: &str, event: &Value) -> Value {
        let answer = self.invoke(name, event).await;
        assert_eq!(answer.function_error(), None, "{}", payload(&answer));
        payload(&answer)
    }

    /// The error of a handler.
    async fn error(&self, name: &str, event: &Value) -> Value {
        let answer = self.invoke(name, event).await;
        let failed = answer.function_error();
        assert_eq!(failed, Some("Unhandled"), "{}", payload(&answer));
        payload(&answer)
    }

    /// Code and message of an invocation that Lambda refuses.
    async fn refusal(&self, name: &str, event: &str, kind: InvocationType) -> (String, String) {
        let call = self.lambda.invoke().function_name(name);
        let call = call.payload(Blob::new(event)).invocation_type(kind);
        let refused = call.send().await.expect_err("refused").into_service_error();
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        (text(refused.code()), text(refused.message()))
    }
}

fn package(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in entries {
        let options = SimpleFileOptions::default();
        zip.start_file(*name, options).expect("an entry");
        zip.write_all(text.as_bytes()).expect("written");
    }
    zip.finish().expect("an archive").into_inner()
}

fn payload(answer: &InvokeOutput) -> Value {
    let bytes = answer.payload().map(Blob::as_ref).unwrap_or_default();
    serde_json::from_slice(bytes).expect("JSON")
}

fn log(answer: &InvokeOutput) -> String {
    let bytes = STANDARD.decode(answer.log_result().expect("a log"));
    String::from_utf8(bytes.expect("base64")).expect("text")
}

#[tokio::test]
async fn a_handler_gets_its_event_its_context_and_the_whole_package() {
    let account = Account::open().await;
    let source = "
import logging
from shop.prices import price
def handler(event, context):
    print('asked for', event['what'])
    logging.warning('careful')
    return {'price': price(event['what']), 'name': context.function_name, 'version': context.function_version,
        'arn': context.invoked_function_arn, 'memory': context.memory_limit_in_mb, 'id': context.aws_request_id,
        'left': 0 < context.get_remaining_time_in_millis() <= 3000}
";
    let bytes = package(&[
        ("src/handler.py", source),
        ("shop/__init__.py", ""),
        ("shop/prices.py", "def price(what): return len(what)"),
    ]);
    account
        .create("till", Runtime::Python312, "src/handler.handler", bytes)
        .await;
    let answer = account.invoke("till", &json!({"what": "tea"})).await;
    assert_eq!(
        (answer.status_code(), answer.executed_version()),
        (200, Some("$LATEST"))
    );
    let result = payload(&answer);
    let id = result["id"].as_str().expect("an id");
    assert_eq!(
        result,
        json!({"price": 3, "name": "till", "version": "$LATEST", "memory": "128", "id": id, "left": true,
            "arn": "arn:aws:lambda:eu-west-1:123456789012:function:till"})
    );
    let log = log(&answer);
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[0], format!("START RequestId: {id} Version: $LATEST"));
    assert_eq!(lines[1], "asked for tea");
    assert!(
        lines[2].starts_with("[WARNING]\t") && lines[2].ends_with(&format!("\t{id}\tcareful")),
        "{log}"
    );
    assert_eq!(lines[3], format!("END RequestId: {id}"));
    assert!(
        lines[4].starts_with(&format!("REPORT RequestId: {id}\tDuration: ")),
        "{log}"
    );
    assert!(
        lines[4].contains("Memory Size: 128 MB\tInit Duration: "),
        "{log}"
    );
}

#[tokio::test]
async fn a_handler_sees_nothing_of_this_process() {
    let account = Account::open().await;
    let source = "
import os
def handler(event, context):
    return dict(os.environ)
";
    account.python("spy", source).await;
    let seen = account.result("spy", &json!({})).await;
    let seen: BTreeMap<String, String> = serde_json::from_value(seen).expect("texts");
    let names: BTreeSet<&str> = seen.keys().map(String::as_str).collect();
    let known = [
        "AWS_ACCESS_KEY_ID",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_EXECUTION_ENV",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_VERSION",
        "AWS_LAMBDA_INITIALIZATION_TYPE",
        "AWS_LAMBDA_LOG_GROUP_NAME",
        "AWS_LAMBDA_LOG_STREAM_NAME",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "COLOUR",
        "HOME",
        "LAMBDA_TASK_ROOT",
        "LANG",
        "PATH",
        "TMPDIR",
        "TZ",
        "_HANDLER",
        // The shell that starts the interpreter sets these.
        "OLDPWD",
        "PWD",
        "SHLVL",
        "_",
    ];
    let more: Vec<_> = names.iter().filter(|name| !known.contains(name)).collect();
    assert!(more.is_empty(), "{more:?}");
    assert!(
        std::env::var_os("CARGO_MANIFEST_DIR").is_some(),
        "there is something to leak"
    );
    assert_eq!(seen["COLOUR"], "blue");
    assert_eq!(
        (&*seen["AWS_REGION"], &*seen["AWS_EXECUTION_ENV"]),
        ("eu-west-1", "AWS_Lambda_python3.13")
    );
    assert_eq!(seen["AWS_ENDPOINT_URL"], account.endpoint);
    // The keys are those of the function's role, in this account.
    let config = aws_sdk_sts::Config::builder()
        .behavior_version(aws_sdk_sts::config::BehaviorVersion::latest())
        .region(aws_sdk_sts::config::Region::new("eu-west-1"))
        .credentials_provider(Credentials::new(
            &seen["AWS_ACCESS_KEY_ID"],
            &seen["AWS_SECRET_ACCESS_KEY"],
            Some(seen["AWS_SESSION_TOKEN"].clone()),
            None,
            "test",
        ))
        .endpoint_url(&account.endpoint)
        .build();
    let caller = aws_sdk_sts::Client::from_conf(config).get_caller_identity();
    let caller = caller.send().await.expect("known");
    assert_eq!(
        caller.arn(),
        Some("arn:aws:sts::123456789012:assumed-role/shop/spy")
    );
}

#[tokio::test]
async fn errors_read_as_those_of_lambda() {
    let account = Account::open().await;
    let source = "
import sys
class Broken(Exception): pass
def handler(event, context):
    if event['do'] == 'exit': sys.exit(event['code'])
    if event['do'] == 'large': return 'x' * ((6 << 20) + 200)
    if event['do'] == 'marshal': return {1, 2}
    raise Broken('out of tea')
";
    account.python("f", source).await;
    let error = account.error("f", &json!({"do": "raise"})).await;
    assert_eq!(
        (&error["errorMessage"], &error["errorType"]),
        (&json!("out of tea"), &json!("Broken"))
    );
    let trace = error["stackTrace"].as_array().expect("a trace");
    assert_eq!(trace.len(), 1, "{error}");
    let frame = trace[0].as_str().expect("text");
    assert!(
        frame.starts_with("  File \"/var/task/handler.py\", line 8, in handler\n"),
        "{frame}"
    );
    for (event, kind, message) in [
        (
            json!({"do": "exit", "code": 3}),
            "Runtime.ExitError",
            "Error: Runtime exited with error: exit status 3",
        ),
        (
            json!({"do": "exit", "code": 0}),
            "Runtime.ExitError",
            "Error: Runtime exited without providing a reason",
        ),
        (
            json!({"do": "large"}),
            "Function.ResponseSizeTooLarge",
            "Response payload size (6291658 bytes) exceeded maximum allowed payload size (6291556 bytes).",
        ),
        (
            json!({"do": "marshal"}),
            "Runtime.MarshalError",
            "Unable to marshal response: Object of type set is not JSON serializable",
        ),
    ] {
        let error = account.error("f", &event).await;
        assert_eq!(error["errorType"], kind, "{error}");
        let text = error["errorMessage"].as_str().expect("text");
        assert!(text.ends_with(message), "{text}");
    }
    for (name, handler, source, kind, message) in [
        (
            "import",
            "nope.handler",
            "",
            "Runtime.ImportModuleError",
            "Unable to import module 'nope': No module named 'nope'",
        ),
        (
            "none",
            "handler.none",
            "",
            "Runtime.HandlerNotFound",
            "Handler 'none' missing on module 'handler'",
        ),
        (
            "bad",
            "handler",
            "",
            "Runtime.MalformedHandlerName",
            "Bad handler 'handler': not enough values to unpack (expected 2, got 1)",
        ),
        (
            "syntax",
            "handler.handler",
            "def (",
            "Runtime.UserCodeSyntaxError",
            "Syntax error in module 'handler': ",
        ),
        (
            "init",
            "handler.handler",
            "raise KeyError('x')",
            "KeyError",
            "'x'",
        ),
    ] {
        let package = package(&[("handler.py", source)]);
        account
            .create(name, Runtime::Python313, handler, package)
            .await;
        let error = account.error(name, &json!({})).await;
        assert_eq!(error["errorType"], kind, "{error}");
        assert!(
            error["errorMessage"]
                .as_str()
                .is_some_and(|text| text.starts_with(message)),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_environment_is_kept_until_the_function_changes() {
    let account = Account::open().await;
    let source = "
N = 0
def handler(event, context):
    global N
    N += 1
    return N
";
    account.python("count", source).await;
    assert_eq!(account.result("count", &json!({})).await, 1);
    assert_eq!(account.result("count", &json!({})).await, 2);
    let changed = account.lambda.update_function_code().function_name("count");
    let changed = changed.zip_file(Blob::new(package(&[(
        "handler.py",
        &source.replace("N = 0", "N = 10"),
    )])));
    changed.send().await.expect("changed");
    account.active("count").await;
    assert_eq!(account.result("count", &json!({})).await, 11);
}

#[tokio::test]
async fn versions_and_aliases_are_invoked_by_their_names() {
    let account = Account::open().await;
    let source = "def handler(event, context): return [context.function_version, context.invoked_function_arn]";
    account.python("f", source).await;
    let lambda = &account.lambda;
    let published = lambda.publish_version().function_name("f").send().await;
    assert_eq!(published.expect("a version").version(), Some("1"));
    let active = lambda
        .wait_until_published_version_active()
        .function_name("f");
    active.qualifier("1").wait(PATIENCE).await.expect("active");
    let alias = lambda.create_alias().function_name("f").name("live");
    alias.function_version("1").send().await.expect("an alias");
    let arn = "arn:aws:lambda:eu-west-1:123456789012:function:f";
    let versioned = format!("{arn}:1");
    for (name, qualifier, version, suffix) in [
        ("f", Some("1"), "1", ":1"),
        ("f", Some("live"), "1", ":live"),
        ("f:live", None, "1", ":live"),
        (versioned.as_str(), None, "1", ":1"),
        ("f", Some("$LATEST"), "$LATEST", ""),
    ] {
        let call = lambda.invoke().function_name(name);
        let answer = call
            .set_qualifier(qualifier.map(str::to_owned))
            .send()
            .await;
        let answer = answer.unwrap_or_else(|error| panic!("{name} {qualifier:?}: {error:?}"));
        assert_eq!(
            answer.executed_version(),
            Some(version),
            "{name} {qualifier:?}"
        );
        assert_eq!(payload(&answer), json!([version, format!("{arn}{suffix}")]));
    }
    for (name, missing) in [("f:2", ":2"), ("f:none", ":none"), ("g", "")] {
        let (code, message) = account
            .refusal(name, "", InvocationType::RequestResponse)
            .await;
        assert_eq!(code, "ResourceNotFoundException");
        let missing = if missing.is_empty() {
            ":$LATEST"
        } else {
            missing
        };
        assert!(
            message.starts_with("Function not found: arn:") && message.ends_with(missing),
            "{message}"
        );
    }
}

#[tokio::test]
async fn events_and_dry_runs_are_answered_at_once() {
    let account = Account::open().await;
    let source = "
import socket
def handler(event, context):
    with socket.create_connection(('127.0.0.1', event['port'])) as heard: heard.sendall(b'done')
";
    account.python("f", source).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    for (kind, status) in [(InvocationType::DryRun, 204), (InvocationType::Event, 202)] {
        let call = account
            .lambda
            .invoke()
            .function_name("f")
            .invocation_type(kind);
        let call = call.payload(Blob::new(json!({"port": port}).to_string()));
        let answer = call.send().await.expect("accepted");
        assert_eq!(answer.status_code(), status);
        assert_eq!(answer.payload().map_or(0, |body| body.as_ref().len()), 0);
    }
    let (mut heard, _) = listener.accept().await.expect("the event was handled");
    let mut text = String::new();
    heard.read_to_string(&mut text).await.expect("read");
    assert_eq!(text, "done");
}

#[tokio::test]
async fn what_cannot_be_invoked_is_refused() {
    let account = Account::open().await;
    account
        .python("f", "def handler(event, context): return event")
        .await;
    let (waiting, event) = (InvocationType::RequestResponse, InvocationType::Event);
    let text = |size: usize| format!("\"{}\"", "x".repeat(size - 2));
    let echoed = account.result("f", &json!("x".repeat(1 << 20))).await;
    assert_eq!(echoed.as_str().map(str::len), Some(1 << 20));
    for (kind, size) in [(waiting.clone(), (6 << 20) + 1), (event, (256 << 10) + 1)] {
        let (code, message) = account.refusal("f", &text(size), kind).await;
        assert_eq!(code, "RequestTooLargeException", "{message}");
    }
    let (code, message) = account.refusal("f", "{", waiting.clone()).await;
    assert_eq!(code, "InvalidRequestContentException");
    assert!(
        message.starts_with("Could not parse request body into json: "),
        "{message}"
    );
    let reserved = account.lambda.put_function_concurrency().function_name("f");
    let reserved = reserved.reserved_concurrent_executions(0).send().await;
    reserved.expect("reserved");
    let (code, _) = account.refusal("f", "{}", waiting.clone()).await;
    assert_eq!(code, "TooManyRequestsException");

    let bytes = package(&[("Main.class", "")]);
    account.create("java", Runtime::Java21, "Main", bytes).await;
    let (code, message) = account.refusal("java", "{}", waiting.clone()).await;
    assert_eq!(code, "InvalidRuntimeException");
    assert!(message.contains("java21"), "{message}");
    let bytes = package(&[("../handler.py", "def handler(event, context): return 1")]);
    account
        .create("slip", Runtime::Python313, "handler.handler", bytes)
        .await;
    let (code, message) = account.refusal("slip", "{}", waiting).await;
    assert_eq!(code, "InvalidZipFileException", "{message}");
}

#[tokio::test]
async fn a_function_that_is_being_created_is_not_invoked() {
    let aws = crate::support::Aws::new();
    let folder = tempfile::tempdir().expect("a folder");
    aws.sandbox
        .run_functions_in(folder.path())
        .expect("a folder for functions");
    let send = |path: &'static str, body: String| {
        let request = http::Request::post(format!("/2015-03-31/functions{path}"));
        let request = request.header(
            "authorization",
            aws.authorization().replace("/ecs/", "/lambda/"),
        );
        aws.send(request.body(body.into()).expect("a request"))
    };
    let zip = STANDARD.encode(package(&[("handler.py", "")]));
    let function = json!({"FunctionName": "f", "Role": ROLE, "Runtime": "python3.13", "Handler": "handler.handler",
        "Code": {"ZipFile": zip}});
    let made = send("", function.to_string()).await;
    assert_eq!(made.status(), 201);
    let refused = send("/f/invocations", String::new()).await;
    assert_eq!(refused.status(), 409);
    assert_eq!(
        refused.headers()["x-amzn-errortype"],
        "ResourceConflictException"
    );
}

#[tokio::test]
async fn a_function_that_takes_too_long_ends_with_all_that_it_started() {
    let account = Account::open().await;
    let source = "
import subprocess, sys
def handler(event, context):
    if event:
        connect = \"import socket; s = socket.create_connection(('127.0.0.1', %d)); s.sendall(b'x'); s.recv(1)\"
        subprocess.Popen([sys.executable, '-c', connect % event['port']])
        while True: pass
    return 'ready'
";
    account.python("f", source).await;
    let shorter = account.lambda.update_function_configuration();
    let shorter = shorter.function_name("f").timeout(1).send().await;
    shorter.expect("changed");
    account.active("f").await;
    let ready = account.result("f", &json!(null)).await;
    assert_eq!(ready, "ready");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let event = json!({"port": port});
    let invoked = account.invoke("f", &event);
    let held = async {
        let (mut held, _) = listener.accept().await.expect("the child of the function");
        held.read_exact(&mut [0]).await.expect("it is there");
        held
    };
    let (answer, mut held) = tokio::join!(invoked, held);
    let error = payload(&answer);
    assert_eq!(error["errorType"], "Sandbox.Timedout");
    let message = error["errorMessage"].as_str().expect("text");
    assert!(
        message.ends_with(" Error: Task timed out after 1.00 seconds"),
        "{message}"
    );
    assert!(
        log(&answer).contains(" Task timed out after 1.00 seconds\nEND RequestId: "),
        "{}",
        log(&answer)
    );
    let left = held.read(&mut [0]).await.unwrap_or(0);
    assert_eq!(left, 0, "the child of the function is gone");
    assert_eq!(
        account.result("f", &json!(null)).await,
        "ready",
        "another environment takes its place"
    );
}

#[tokio::test]
async fn handlers_of_node_run() {
    let there = std::process::Command::new("node").arg("--version").output();
    if !there.is_ok_and(|node| node.status.success()) {
        println!("skipped: there is no node on this machine");
        return;
    }
    let account = Account::open().await;
    let source = "
exports.handler = async (event, context) => {
  console.log('asked for', event.what);
  if (!event.what) throw new RangeError('out of tea');
  return { what: event.what, id: context.awsRequestId, colour: process.env.COLOUR };
};
exports.called = (event, context, callback) => setTimeout(() => callback(null, 'called'), 1);
exports.silent = (event, context, callback) => {};
exports.rejects = () => { Promise.reject(new Error('unseen')); return new Promise(() => {}); };
";
    let bytes = package(&[
        ("index.js", source),
        ("lib/m.mjs", "export const handler = async () => 'module';"),
    ]);
    for name in ["handler", "called", "silent", "rejects", "none"] {
        let handler = format!("index.{name}");
        account
            .create(name, Runtime::Nodejs20x, &handler, bytes.clone())
            .await;
    }
    account
        .create("module", Runtime::Nodejs22x, "lib/m.handler", bytes)
        .await;
    let answer = account.invoke("handler", &json!({"what": "tea"})).await;
    let result = payload(&answer);
    assert_eq!(
        (&result["what"], &result["colour"]),
        (&json!("tea"), &json!("blue"))
    );
    let line = format!(
        "\t{}\tINFO\tasked for tea\n",
        result["id"].as_str().expect("an id")
    );
    assert!(log(&answer).contains(&line), "{}", log(&answer));
    let error = account.error("handler", &json!({})).await;
    assert_eq!(
        (&error["errorType"], &error["errorMessage"]),
        (&json!("RangeError"), &json!("out of tea"))
    );
    let frame = error["trace"][1].as_str().expect("a frame");
    assert!(frame.contains("(/var/task/index.js:4:"), "{error}");
    assert_eq!(account.result("called", &json!({})).await, "called");
    assert_eq!(account.result("silent", &json!({})).await, Value::Null);
    assert_eq!(account.result("module", &json!({})).await, "module");
    let error = account.error("rejects", &json!({})).await;
    assert_eq!(error["errorType"], "Runtime.UnhandledPromiseRejection");
    let error = account.error("none", &json!({})).await;
    assert_eq!(
        (&error["errorType"], &error["errorMessage"]),
        (
            &json!("Runtime.HandlerNotFound"),
            &json!("index.none is undefined or not exported")
        )
    );
}
