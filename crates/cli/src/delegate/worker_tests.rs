//! A delegate between a small service and a small activity, both on one port.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Path as UrlPath, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use slipway_clock::Clock;
use slipway_expr::secret::{SecretRef, SecretText};
use tokio_util::sync::CancellationToken;

use super::{DelegateConfig, run};

/// What the service and the activity have, and what happened to them, in order.
#[derive(Default)]
struct World {
    waiting: VecDeque<String>,
    tasks: std::collections::HashMap<String, Value>,
    lost: Vec<String>,
    log: String,
    happened: Vec<String>,
    results: Vec<Value>,
}

type Shared = Arc<Mutex<World>>;

async fn step_functions(
    State(world): State<Shared>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, Json<Value>) {
    let target = headers["x-amz-target"]
        .to_str()
        .unwrap_or_default()
        .to_owned();
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let token = body["taskToken"].as_str().unwrap_or_default().to_owned();
    let action = target.rsplit('.').next().unwrap_or_default();
    if action == "GetActivityTask" {
        for _ in 0..50 {
            if let Some(task) = world.lock().expect("a lock").waiting.pop_front() {
                let input = json!({"task": task}).to_string();
                return (
                    StatusCode::OK,
                    Json(json!({"taskToken": format!("token-{task}"), "input": input})),
                );
            }
            Clock::system().sleep(Duration::from_millis(20)).await;
        }
        return (StatusCode::OK, Json(json!({})));
    }
    let mut world = world.lock().expect("a lock");
    if world.lost.contains(&token) {
        let error = json!({"__type": "TaskTimedOut", "message": "Task Timed Out"});
        return (StatusCode::BAD_REQUEST, Json(error));
    }
    if action != "SendTaskHeartbeat" {
        let error = body["error"].as_str().unwrap_or_default();
        world
            .happened
            .push(format!("{action} {token} {error}").trim_end().to_owned());
    }
    (StatusCode::OK, Json(json!({})))
}

async fn claim(
    State(world): State<Shared>,
    headers: HeaderMap,
    UrlPath(id): UrlPath<String>,
) -> Result<Json<Value>, StatusCode> {
    let mut world = world.lock().expect("a lock");
    let name = headers["x-delegate-name"].to_str().unwrap_or_default();
    world.happened.push(format!("claim {id} {name}"));
    world
        .tasks
        .get(&id)
        .cloned()
        .map(Json)
        .ok_or(StatusCode::CONFLICT)
}

async fn logs(State(world): State<Shared>, UrlPath(_): UrlPath<String>, Json(body): Json<Value>) {
    for line in body["lines"].as_array().into_iter().flatten() {
        world
            .lock()
            .expect("a lock")
            .log
            .push_str(line["out"].as_str().unwrap_or_default());
    }
}

async fn result(
    State(world): State<Shared>,
    UrlPath(id): UrlPath<String>,
    Json(body): Json<Value>,
) {
    let mut world = world.lock().expect("a lock");
    world.happened.push(format!("result {id}"));
    world.results.push(body);
}

async fn serve(world: Shared) -> String {
    let router = Router::new()
        .route("/", post(step_functions))
        .route("/slipway/api/delegate/tasks/{id}", get(claim))
        .route("/slipway/api/delegate/tasks/{id}/logs", post(logs))
        .route("/slipway/api/delegate/tasks/{id}/result", post(result))
        .route(
            "/slipway/api/delegate/tasks/{id}/cancelled",
            get(async || Json(json!({"cancelled": false}))),
        )
        .with_state(world);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

fn task(id: &str, script: &str, selectors: &[&str]) -> (String, Value) {
    let secret = SecretText::secret(SecretRef::new("account.token").expect("a reference")).encode();
    let task = json!({
        "id": id, "taskType": "ShellScript", "timeoutSeconds": 60, "selectors": selectors,
        "payload": {"script": script, "environment": [{"name": "TOKEN", "value": secret}],
            "outputs": [{"name": "OUT", "variable": "out", "secret": false}], "workingDirectory": null,
            "timeoutSeconds": 60},
        "secrets": [{"placeholder": secret, "value": "s3cr3t-value"}],
    });
    (id.to_owned(), task)
}

/// Starts a delegate and lets it work until `done`.
async fn delegate(world: &Shared, work_dir: &Path, done: impl Fn(&World) -> bool) {
    let url = serve(Arc::clone(world)).await;
    let sfn = aws_sdk_sfn::Config::builder()
        .behavior_version_latest()
        .region(aws_sdk_sfn::config::Region::new("us-east-1"))
        .credentials_provider(aws_sdk_sfn::config::Credentials::new(
            "a", "b", None, None, "test",
        ))
        .endpoint_url(&url)
        .build();
    let config = DelegateConfig {
        name: "box".to_owned(),
        base_url: url,
        token: "pat.a.b.c".to_owned().into(),
        activity_arn: "arn:aws:states:us-east-1:000000000000:activity:delegate".to_owned(),
        selectors: vec!["linux".to_owned()],
        work_dir: work_dir.to_owned(),
        tasks: 4,
        heartbeat: Duration::from_millis(200),
    };
    let shutdown = CancellationToken::new();
    let stop = async {
        while !done(&world.lock().expect("a lock")) {
            Clock::system().sleep(Duration::from_millis(10)).await;
        }
        shutdown.cancel();
    };
    let http = reqwest::Client::new();
    let sfn = aws_sdk_sfn::Client::from_conf(sfn);
    let work = run(config, sfn, http, Clock::system(), shutdown.clone());
    let (worked, ()) = tokio::join!(work, stop);
    worked.expect("a free folder");
}

fn world(tasks: impl IntoIterator<Item = (String, Value)>) -> Shared {
    let tasks: Vec<_> = tasks.into_iter().collect();
    Arc::new(Mutex::new(World {
        waiting: tasks.iter().map(|(id, _)| id.clone()).collect(),
        tasks: tasks.into_iter().collect(),
        ..World::default()
    }))
}

#[tokio::test]
async fn a_task_is_fetched_run_reported_and_then_completed() {
    let folder = tempfile::tempdir().expect("a folder");
    let world = world([task(
        "r.n.0",
        "echo with $TOKEN; echo -n \"u:$TOKEN\" | base64; out=7",
        &[],
    )]);
    delegate(&world, folder.path(), |world| world.happened.len() == 3).await;
    let world = world.lock().expect("a lock");
    assert_eq!(
        world.happened,
        [
            "claim r.n.0 box",
            "result r.n.0",
            "SendTaskSuccess token-r.n.0"
        ]
    );
    assert_eq!(world.results[0]["outputs"], json!({"OUT": "7"}));
    assert!(
        world.log.starts_with("with **************\n"),
        "{}",
        world.log
    );
    assert!(!world.log.contains("czNjcjN0"), "{}", world.log);
    assert_eq!(
        std::fs::read_dir(folder.path().join("claims"))
            .expect("a folder")
            .count(),
        0
    );
}

#[tokio::test]
async fn a_task_for_other_selectors_is_given_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let world = world([task("r.w.0", "true", &["linux", "windows"])]);
    delegate(&world, folder.path(), |world| world.happened.len() == 2).await;
    let happened = world.lock().expect("a lock").happened.clone();
    assert_eq!(
        happened[1],
        "SendTaskFailure token-r.w.0 DelegateUnsuitable"
    );
}

#[tokio::test]
async fn a_delegate_goes_on_with_the_claims_of_its_predecessor() {
    let folder = tempfile::tempdir().expect("a folder");
    let world = world([
        task("r.a.0", "sleep 60", &[]),
        task("r.b.0", "true", &["box"]),
    ]);
    // The first delegate ends while the long script runs; its claim stays.
    delegate(&world, folder.path(), |world| {
        world.results.len() == 1 && world.happened.len() == 4
    })
    .await;
    {
        let mut world = world.lock().expect("a lock");
        assert!(
            !world
                .happened
                .iter()
                .any(|what| what.starts_with("SendTaskSuccess token-r.a.0"))
        );
        world.tasks.extend([task("r.a.0", "echo again", &[])]);
        world.happened.clear();
    }
    delegate(&world, folder.path(), |world| world.happened.len() == 3).await;
    let world = world.lock().expect("a lock");
    assert_eq!(world.happened[2], "SendTaskSuccess token-r.a.0");
    assert!(world.log.contains("run anew.\nagain\n"), "{}", world.log);
}

#[tokio::test]
async fn a_task_that_has_a_result_is_only_completed() {
    let folder = tempfile::tempdir().expect("a folder");
    let world = world([]);
    world
        .lock()
        .expect("a lock")
        .waiting
        .push_back("r.done.0".to_owned());
    delegate(&world, folder.path(), |world| world.happened.len() == 2).await;
    let happened = world.lock().expect("a lock").happened.clone();
    assert_eq!(happened[1], "SendTaskSuccess token-r.done.0");
}

#[tokio::test]
async fn a_task_that_was_given_up_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let world = world([task(
        "r.lost.0",
        "trap 'echo ended; exit 1' TERM; sleep 60 & wait",
        &[],
    )]);
    world
        .lock()
        .expect("a lock")
        .lost
        .push("token-r.lost.0".to_owned());
    delegate(&world, folder.path(), |world| world.log.contains("ended")).await;
    assert!(world.lock().expect("a lock").results.is_empty());
    assert_eq!(
        std::fs::read_dir(folder.path().join("claims"))
            .expect("a folder")
            .count(),
        0
    );
}
