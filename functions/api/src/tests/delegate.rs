//! A delegate and its task.

use axum::body::Body;
use axum::http::Request;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use slipway_model::id::{EntityId, NodeId, RunId};
use slipway_store::record::DelegateTaskRecord;

use super::execution::ANNOUNCE;
use super::{Answer, Api};
use crate::Permission;

struct Delegate<'a> {
    api: &'a Api,
    token: String,
    task: String,
}

impl Delegate<'_> {
    async fn ask(&self, method: &str, rest: &str, name: &str, body: &Value) -> Answer {
        let path = format!("/slipway/api/delegate/tasks/{}{rest}", self.task);
        let body = if body.is_null() {
            Body::empty()
        } else {
            Body::from(body.to_string())
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("x-api-key", &self.token)
            .header("X-Delegate-Name", name)
            .header("X-Delegate-Selectors", "linux, fast")
            .header("content-type", "application/json");
        self.api.send(request.body(body).expect("a request")).await
    }

    async fn claim(&self, name: &str) -> Answer {
        self.ask("GET", "", name, &Value::Null).await
    }
}

/// A task of a run, whose script names a secret, for delegates with `selectors`.
async fn task<'a>(api: &'a Api, selectors: &[&str]) -> Delegate<'a> {
    let run = RunId::new(api.run_golden().await);
    let record = api.store.get_run(&run).await.expect("the run");
    let value = SecretString::from("s3cret");
    api._embedded
        .secrets()
        .put(&record.scope, &EntityId::new("token"), &value)
        .await
        .expect("a secret");
    let id = format!("{run}.{ANNOUNCE}.0");
    let task = DelegateTaskRecord {
        id: id.clone(),
        errand_of: None,
        run,
        node: NodeId::new(ANNOUNCE),
        attempt: 0,
        task_type: "ShellScript".to_owned(),
        payload: json!({"script": "echo \u{FDD0}token\u{FDD1}", "timeoutSeconds": 60}),
        selectors: selectors.iter().map(|s| (*s).to_owned()).collect(),
        unsuitable: Vec::new(),
        delegate: None,
        result: None,
        finished_ms: None,
        cancelled: false,
    };
    api.store.put_delegate_task(&task).await.expect("a task");
    Delegate {
        api,
        token: api.mint("acme", Permission::Delegate, 0).await,
        task: id,
    }
}

fn success() -> Value {
    json!({"status": "SUCCESS", "exitCode": 0, "outputs": {"v": "1"}, "secretOutputs": [], "message": null})
}

#[tokio::test(start_paused = true)]
async fn a_task_is_claimed_logged_and_done_once() {
    let api = Api::new().await;
    let delegate = task(&api, &["linux"]).await;
    let claimed = delegate.claim("one").await.json();
    assert_eq!(claimed["taskType"], "ShellScript");
    assert_eq!(claimed["timeoutSeconds"], 60);
    assert_eq!(claimed["selectors"], json!(["linux"]));
    // The payload keeps its hole; the value that fills it comes beside it.
    assert_eq!(claimed["payload"]["script"], "echo \u{FDD0}token\u{FDD1}");
    assert_eq!(
        claimed["secrets"],
        json!([{"placeholder": "\u{FDD0}token\u{FDD1}", "value": "s3cret"}])
    );
    // After a restart the same delegate may ask again; another may not.
    assert_eq!(delegate.claim("one").await.status, 200);
    assert_eq!(delegate.claim("two").await.refusal().0, 409);

    let lines = json!({"unit": "Execute", "lines": [
        {"level": "INFO", "out": "hello\n", "time": "2026-01-01T00:00:00Z"},
        {"level": "weird", "out": "x".repeat(70_000), "time": "yesterday"},
    ]});
    assert_eq!(
        delegate.ask("POST", "/logs", "one", &lines).await.status,
        200
    );
    let (run, _) = delegate.task.split_once('.').expect("a run");
    let log = api
        .store
        .read_log(&RunId::new(run), &NodeId::new(ANNOUNCE), "Execute", 0)
        .await;
    let log = log.expect("a log").lines;
    assert_eq!(
        (log[0].out.as_str(), log[1].level.as_str()),
        ("hello\n", "INFO")
    );
    assert!(log[1].out.len() < 62_000 && log[1].time.starts_with("2026-01-01"));

    let open = delegate.ask("GET", "/cancelled", "one", &Value::Null).await;
    assert_eq!(open.json(), json!({"cancelled": false}));
    let nonsense = delegate
        .ask("POST", "/result", "one", &json!({"status": "FINE"}))
        .await;
    assert_eq!(nonsense.refusal().0, 400);
    assert_eq!(
        delegate
            .ask("POST", "/result", "one", &success())
            .await
            .status,
        200
    );
    let mut later = success();
    later["status"] = "FAILURE".into();
    assert_eq!(
        delegate
            .ask("POST", "/result", "one", &later)
            .await
            .refusal()
            .0,
        409
    );
    let stored = api
        .store
        .get_delegate_task(&delegate.task)
        .await
        .expect("the task");
    assert_eq!(stored.result.expect("a result")["status"], "SUCCESS");
    assert_eq!(
        delegate
            .ask("POST", "/logs", "one", &lines)
            .await
            .refusal()
            .0,
        409
    );
    assert_eq!(delegate.claim("one").await.refusal().0, 409);
}

#[tokio::test(start_paused = true)]
async fn a_secret_output_is_kept_as_a_secret_and_nowhere_else() {
    let api = Api::new().await;
    let delegate = task(&api, &[]).await;
    let mut outcome = success();
    outcome["outputs"]["key"] = "generated-key".into();
    outcome["secretOutputs"] = json!(["key"]);
    // A delegate cannot choose what its outputs refer to.
    outcome["secretReferences"] = json!({"v": "account.root"});
    let posted = delegate.ask("POST", "/result", "one", &outcome).await;
    assert_eq!(posted.status, 200);

    let stored = api
        .store
        .get_delegate_task(&delegate.task)
        .await
        .expect("the task");
    let run = api.store.get_run(&stored.run).await.expect("the run");
    let result = stored.result.expect("a result");
    assert_eq!(result["outputs"], json!({"v": "1"}));
    let references = result["secretReferences"].as_object().expect("references");
    assert_eq!(references.keys().collect::<Vec<_>>(), ["key"]);
    let id = EntityId::new(references["key"].as_str().expect("a reference"));
    let value = api
        ._embedded
        .secrets()
        .get(&run.scope, &id)
        .await
        .expect("a value");
    assert_eq!(value.expose_secret(), "generated-key");
}

#[tokio::test(start_paused = true)]
async fn a_delegate_gets_only_what_suits_it() {
    let api = Api::new().await;
    let delegate = task(&api, &["linux", "gpu"]).await;
    for _ in 0..2 {
        let refused = delegate.claim("one").await;
        assert_eq!(refused.refusal().0, 412);
        assert!(!refused.text.contains("s3cret"));
    }
    // Whoever looks at the step reads why it waits, once.
    let (run, _) = delegate.task.split_once('.').expect("a run");
    let log = api
        .store
        .read_log(&RunId::new(run), &NodeId::new(ANNOUNCE), "Execute", 0)
        .await;
    let log = log.expect("a log").lines;
    let told: Vec<_> = log.iter().map(|line| line.out.as_str()).collect();
    assert_eq!(
        told,
        [
            "Delegate one does not carry the selectors gpu; the step waits for a delegate that does.\n"
        ]
    );
    // Its own name is a selector too.
    assert_eq!(delegate.claim("gpu").await.status, 200);
    assert_eq!(delegate.claim("").await.refusal().0, 400);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_gone() {
    let api = Api::new().await;
    let delegate = task(&api, &[]).await;
    api.store
        .cancel_delegate_task(&delegate.task)
        .await
        .expect("cancelled");
    assert_eq!(delegate.claim("one").await.refusal().0, 410);
    let over = delegate.ask("GET", "/cancelled", "one", &Value::Null).await;
    assert_eq!(over.json(), json!({"cancelled": true}));
    assert_eq!(
        delegate
            .ask("POST", "/result", "one", &success())
            .await
            .refusal()
            .0,
        410
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_of_another_account_does_not_exist() {
    let api = Api::new().await;
    let mut delegate = task(&api, &[]).await;
    delegate.token = api.mint("other", Permission::Delegate, 0).await;
    let refused = delegate.claim("one").await;
    assert_eq!(refused.refusal().0, 404);
    assert!(!refused.text.contains("s3cret"));
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_does_not_exist_fails_the_step_and_says_so() {
    let api = Api::new().await;
    let delegate = task(&api, &[]).await;
    let run = delegate.task.split('.').next().expect("a run");
    let record = api.store.get_run(&RunId::new(run)).await.expect("the run");
    let id = EntityId::new("token");
    api._embedded
        .secrets()
        .delete(&record.scope, &id)
        .await
        .expect("no secret");
    let (status, _, message) = delegate.claim("one").await.refusal();
    assert!(status == 409 && message.contains("token"), "{message}");
    let stored = api
        .store
        .get_delegate_task(&delegate.task)
        .await
        .expect("the task");
    let result = stored.result.expect("a result");
    assert_eq!(
        (result["status"].as_str(), result["message"].as_str()),
        (Some("FAILURE"), Some(&*message))
    );
}

/// An errand of a project, whose script names a secret of it.
async fn errand<'a>(api: &'a Api, selectors: &[&str]) -> Delegate<'a> {
    let of = task(api, selectors).await;
    let run = RunId::new(of.task.split('.').next().expect("a run"));
    let run = api.store.get_run(&run).await.expect("the run");
    let step = api.store.get_delegate_task(&of.task).await.expect("a task");
    let task = DelegateTaskRecord {
        id: "CustomArtifact-x-1".to_owned(),
        errand_of: Some(run.scope),
        run: RunId::new(""),
        node: NodeId::new(""),
        ..step
    };
    api.store.put_delegate_task(&task).await.expect("a task");
    Delegate {
        task: task.id,
        ..of
    }
}

#[tokio::test(start_paused = true)]
async fn an_errand_has_no_run_and_is_done_as_other_work() {
    let api = Api::new().await;
    let mut delegate = errand(&api, &["linux"]).await;
    let claimed = delegate.claim("one").await.json();
    assert_eq!(
        claimed["secrets"],
        json!([{"placeholder": "\u{FDD0}token\u{FDD1}", "value": "s3cret"}])
    );
    // There is no step whose log its lines could be.
    let lines =
        json!({"unit": "Execute", "lines": [{"level": "INFO", "out": "hello\n", "time": ""}]});
    assert_eq!(
        delegate.ask("POST", "/logs", "one", &lines).await.status,
        200
    );
    let (run, node) = (RunId::new(""), NodeId::new(""));
    let log = api.store.read_log(&run, &node, "Execute", 0).await;
    assert!(log.is_ok_and(|log| log.lines.is_empty()));
    let open = delegate.ask("GET", "/cancelled", "one", &Value::Null).await;
    assert_eq!(open.json(), json!({"cancelled": false}));
    let outcome = json!({"status": "SUCCESS", "exitCode": 0, "artifacts": [{"version": "1.0"}]});
    assert_eq!(
        delegate
            .ask("POST", "/result", "one", &outcome)
            .await
            .status,
        200
    );
    let stored = api.store.get_delegate_task(&delegate.task).await;
    let result = stored.expect("the task").result.expect("a result");
    assert_eq!(result["artifacts"], json!([{"version": "1.0"}]));

    delegate.token = api.mint("other", Permission::Delegate, 0).await;
    assert_eq!(delegate.claim("one").await.refusal().0, 404);
}

#[tokio::test(start_paused = true)]
async fn who_cannot_have_an_errand_is_known_and_a_missing_secret_ends_it() {
    let api = Api::new().await;
    let delegate = errand(&api, &["linux", "gpu"]).await;
    assert_eq!(delegate.claim("one").await.refusal().0, 412);
    let stored = api.store.get_delegate_task(&delegate.task).await;
    let stored = stored.expect("the task");
    assert_eq!(stored.unsuitable, ["one"]);
    let scope = stored.errand_of.expect("a project");
    let (secrets, token) = (api._embedded.secrets(), EntityId::new("token"));
    secrets.delete(&scope, &token).await.expect("no secret");
    assert_eq!(delegate.claim("gpu").await.refusal().0, 409);
    let stored = api.store.get_delegate_task(&delegate.task).await;
    let result = stored.expect("the task").result.expect("a result");
    assert_eq!(
        result["message"],
        "The secret token does not exist: create it."
    );
}
