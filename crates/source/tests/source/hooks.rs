//! Webhooks, made at servers that answer as the APIs of the providers do.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use slipway_engine::gather::SourceReader;
use slipway_engine::intake::hook::WantedHook;
use slipway_model::id::{AccountId, Scope};
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::ConnectorPlan;

use crate::feed_host::{Asked, BASIC, Host, page, patient};
use crate::support::{TOKEN, source};

const URL: &str = "https://slipway.example/gateway/ng/api/webhook?accountIdentifier=acme";

/// The value of `account.phrase`.
const SECRET: &str = "open s3same";

fn token(url: &str) -> Value {
    let login =
        json!({"type": "UsernameToken", "spec": {"username": "bot", "tokenRef": "account.token"}});
    json!({
        "url": url,
        "type": "Repo",
        "authentication": {"type": "Http", "spec": login},
        "apiAccess": {"type": "Token", "spec": {"tokenRef": "account.token"}},
    })
}

fn wanted(kind: &str, url: &str, events: &[&str]) -> WantedHook {
    WantedHook {
        connector: ConnectorPlan {
            reference: "account.code".to_owned(),
            kind: kind.to_owned(),
            spec: token(url),
        },
        scope: Scope::account(AccountId::new("acme")),
        repository: None,
        url: URL.to_owned(),
        events: events.iter().map(|event| (*event).to_owned()).collect(),
        secret: Some("account.phrase".to_owned()),
    }
}

fn unsigned(wanted: &WantedHook) -> WantedHook {
    WantedHook {
        secret: None,
        ..wanted.clone()
    }
}

async fn register(wanted: &WantedHook) -> Result<(), Failure> {
    let done = patient().register_hook(wanted).await;
    if let Err(failure) = &done {
        let message = &failure.message;
        let hidden =
            !message.contains(TOKEN) && !message.contains(SECRET) && !message.contains(BASIC);
        assert!(hidden && message.contains("account.code"), "{message}");
    }
    done
}

async fn refused(wanted: &WantedHook) -> (ErrorType, String) {
    let failure = register(wanted).await.expect_err("a refusal");
    (failure.error, failure.message)
}

/// The webhooks of one repository, in a list with pages of one each, and what changed them.
#[derive(Clone, Default)]
struct Shelf {
    hooks: Arc<Mutex<Vec<Value>>>,
    changes: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Shelf {
    fn of(hooks: &[Value]) -> Self {
        Self {
            hooks: Arc::new(Mutex::new(hooks.to_vec())),
            ..Self::default()
        }
    }

    fn hooks(&self) -> Vec<Value> {
        self.hooks.lock().expect("a lock").clone()
    }

    /// The changes since this was asked last.
    fn changes(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.changes.lock().expect("a lock"))
    }

    fn change(&self, asked: &Asked) -> Value {
        let body: Value = serde_json::from_str(&asked.body).expect("JSON");
        let what = format!("{} {}", asked.method, asked.path);
        self.changes
            .lock()
            .expect("a lock")
            .push((what, body.clone()));
        body
    }

    /// Keeps a new one.
    fn add(&self, body: Value) -> Response {
        let mut hooks = self.hooks.lock().expect("a lock");
        let mut made = body;
        made["id"] = json!(hooks.len() + 1);
        hooks.push(made.clone());
        (StatusCode::CREATED, made.to_string()).into_response()
    }

    /// Puts the members of a body into those of one.
    fn merge(&self, id: usize, at: Option<&str>, body: &Value) -> Response {
        let mut hooks = self.hooks.lock().expect("a lock");
        let Some(hook) = hooks.iter_mut().find(|hook| hook["id"] == id) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let own = match at {
            Some(at) => &mut hook[at],
            None => &mut *hook,
        };
        for (name, value) in body.as_object().expect("an object") {
            own[name] = value.clone();
        }
        page(hook)
    }

    /// One page of the list, numbered from one, with a link to the next.
    fn linked(&self, asked: &Asked) -> Response {
        let number: usize = query(asked, "page").parse().expect("a page");
        let hooks = self.hooks();
        let one: Vec<&Value> = hooks.get(number - 1).into_iter().collect();
        let body = json!(one).to_string();
        match number < hooks.len() {
            true => (
                [("link", "<https://elsewhere/?page=2>; rel=\"next\"")],
                body,
            )
                .into_response(),
            false => body.into_response(),
        }
    }
}

fn query(asked: &Asked, name: &str) -> String {
    let mut pairs = asked
        .query
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(known, _)| *known == name);
    found.map(|(_, value)| value.to_owned()).unwrap_or_default()
}

/// The number at the end of a path.
fn last(path: &str) -> usize {
    path.rsplit('/')
        .next()
        .and_then(|id| id.parse().ok())
        .unwrap_or_default()
}

async fn github(shelf: &Shelf) -> Host {
    let shelf = shelf.clone();
    Host::new(move |asked| {
        assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
        let Some(rest) = asked.path.strip_prefix("/api/v3/repos/acme/shop/hooks") else {
            return StatusCode::NOT_FOUND.into_response();
        };
        match (asked.method.as_str(), rest.strip_suffix("/config")) {
            ("GET", _) => shelf.linked(asked),
            ("POST", _) => shelf.add(shelf.change(asked)),
            ("PATCH", Some(one)) => shelf.merge(last(one), Some("config"), &shelf.change(asked)),
            ("PATCH", None) => shelf.merge(last(rest), None, &shelf.change(asked)),
            _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        }
    })
    .await
}

async fn harness(shelf: &Shelf) -> Host {
    let shelf = shelf.clone();
    Host::new(move |asked| {
        assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
        let Some(rest) = asked
            .path
            .strip_prefix("/api/v1/repos/acme/shop/+/webhooks")
        else {
            return StatusCode::NOT_FOUND.into_response();
        };
        match asked.method.as_str() {
            "GET" => {
                let number: usize = query(asked, "page").parse().expect("a page");
                let hooks = shelf.hooks();
                let one: Vec<&Value> = hooks.get(number - 1).into_iter().collect();
                let next = [("x-next-page", (number + 1).to_string())];
                match number < hooks.len() {
                    true => (next, json!(one).to_string()).into_response(),
                    false => page(&json!(one)),
                }
            }
            "POST" => shelf.add(shelf.change(asked)),
            "PATCH" => {
                let name = rest.trim_start_matches('/');
                let hooks = shelf.hooks();
                let is_it = |hook: &&Value| match hook["identifier"].as_str() {
                    Some(identifier) => identifier == name,
                    None => hook["id"].as_u64() == name.parse().ok(),
                };
                let found = hooks.iter().find(is_it);
                let id = found.and_then(|hook| hook["id"].as_u64());
                let id = usize::try_from(id.unwrap_or_default()).expect("a number");
                shelf.merge(id, None, &shelf.change(asked))
            }
            _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        }
    })
    .await
}

/// By a connector of type `Git`: Harness Code has none of its own.
#[tokio::test]
async fn a_webhook_of_harness_code_is_made_once_and_has_what_it_lacks() {
    let other = json!({"id": 1, "identifier": "ci", "url": "https://ci.example/", "triggers": ["branch_updated"]});
    let shelf = Shelf::of(&[other.clone(), other.clone()]);
    let host = harness(&shelf).await;
    let mut push = wanted(
        "Git",
        &format!("{}/git/acme/shop.git", host.address),
        &["Push"],
    );
    push.connector.spec = json!({
        "url": push.connector.spec["url"], "type": "Http", "connectionType": "Repo",
        "spec": {"username": "bot", "passwordRef": "account.token"},
    });
    register(&push).await.expect("registered");
    let made = shelf.changes();
    let [(what, body)] = made.as_slice() else {
        panic!("{made:?}");
    };
    assert_eq!(what, "POST /api/v1/repos/acme/shop/+/webhooks");
    let pushes = json!([
        "branch_created",
        "branch_updated",
        "tag_created",
        "tag_updated"
    ]);
    assert_eq!(body["triggers"], pushes);
    assert_eq!(
        (&body["url"], &body["secret"], &body["insecure"]),
        (&json!(URL), &json!(SECRET), &json!(false))
    );
    // It shows no secret; without one nothing is lacking.
    let name = body["identifier"].as_str().expect("a name").to_owned();
    register(&push).await.expect("registered");
    let at = format!("PATCH /api/v1/repos/acme/shop/+/webhooks/{name}");
    assert_eq!(shelf.changes(), [(at.clone(), json!({"secret": SECRET}))]);
    register(&unsigned(&push)).await.expect("registered");
    assert_eq!(shelf.changes(), []);
    // What it lacks is added to what somebody else had it post.
    let hooks = || shelf.hooks.lock().expect("a lock");
    hooks()[2]["triggers"] = json!(["pullreq_closed"]);
    hooks()[2]["enabled"] = json!(false);
    let mut more = unsigned(&push);
    more.events = ["Push", "MergeQueue"].map(str::to_owned).into();
    register(&more).await.expect("registered");
    let body = json!({"enabled": true, "triggers": [
        "branch_created", "branch_updated", "merge_queue_checks_requested", "pullreq_closed", "tag_created", "tag_updated",
    ]});
    assert_eq!(shelf.changes(), [(at, body)]);
    // One that names no events posts all.
    hooks()[2]["triggers"] = json!([]);
    register(&more).await.expect("registered");
    assert_eq!((shelf.changes(), &shelf.hooks()[0]), (vec![], &other));
    // On an older server it has a number only.
    hooks()[2]["identifier"] = Value::Null;
    register(&push).await.expect("registered");
    let at = "PATCH /api/v1/repos/acme/shop/+/webhooks/3".to_owned();
    assert_eq!(shelf.changes(), [(at, json!({"secret": SECRET}))]);
}

fn elsewhere() -> Value {
    json!({"id": 1, "active": true, "events": ["push"], "config": {"url": "https://ci.example/", "content_type": "form"}})
}

#[tokio::test]
async fn a_webhook_of_github_is_made_once_and_has_what_it_lacks() {
    let shelf = Shelf::of(&[elsewhere(), elsewhere()]);
    let host = github(&shelf).await;
    let push = wanted(
        "Github",
        &format!("{}/acme/shop.git", host.address),
        &["Push"],
    );
    register(&push).await.expect("registered");
    let made = json!({
        "name": "web", "active": true, "events": ["push"],
        "config": {"url": URL, "content_type": "json", "insecure_ssl": "0", "secret": SECRET},
    });
    assert_eq!(
        shelf.changes(),
        [("POST /api/v3/repos/acme/shop/hooks".to_owned(), made)]
    );
    // It shows no secret, so that who has one writes it again; nothing else is touched.
    register(&push).await.expect("registered");
    let config = json!({"content_type": "json", "insecure_ssl": "0", "secret": SECRET});
    let at = "PATCH /api/v3/repos/acme/shop/hooks/3/config".to_owned();
    assert_eq!(shelf.changes(), [(at, config)]);
    register(&unsigned(&push)).await.expect("registered");
    assert_eq!(shelf.changes(), []);
    let all = [
        "Push",
        "PullRequest",
        "IssueComment",
        "Release",
        "Create",
        "Delete",
        "PullRequestReview",
        "MergeQueue",
    ];
    let more = WantedHook {
        events: all.iter().map(|event| (*event).to_owned()).collect(),
        ..unsigned(&push)
    };
    register(&more).await.expect("registered");
    let events = json!([
        "create",
        "delete",
        "issue_comment",
        "merge_group",
        "pull_request",
        "pull_request_review",
        "push",
        "release",
    ]);
    let at = "PATCH /api/v3/repos/acme/shop/hooks/3".to_owned();
    assert_eq!(
        shelf.changes(),
        [(at, json!({"active": true, "events": events}))]
    );
    // What it posts beside stays.
    register(&push).await.expect("registered");
    assert_eq!(shelf.hooks()[2]["events"], events);
    assert_eq!((shelf.hooks().len(), &shelf.hooks()[0]), (3, &elsewhere()));
}

#[tokio::test]
async fn a_webhook_that_somebody_made_by_hand_is_mended_and_keeps_its_secret() {
    let by_hand = json!({
        "id": 1, "active": false, "events": ["*"],
        "config": {"url": URL, "content_type": "form", "insecure_ssl": "1", "secret": "********"},
    });
    let shelf = Shelf::of(&[by_hand]);
    let host = github(&shelf).await;
    let push = wanted("Github", &format!("{}/acme/shop", host.address), &["Push"]);
    register(&unsigned(&push)).await.expect("registered");
    let now = json!([{
        "id": 1, "active": true, "events": ["*"],
        "config": {"url": URL, "content_type": "json", "insecure_ssl": "0", "secret": "********"},
    }]);
    assert_eq!(json!(shelf.hooks()), now);
}

#[tokio::test]
async fn a_webhook_of_gitlab_has_a_flag_for_each_event_and_keeps_its_token() {
    let shelf = Shelf::default();
    let own = shelf.clone();
    let host = Host::new(move |asked| {
        assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
        assert!(
            asked
                .path
                .starts_with("/api/v4/projects/acme%2Fweb%2Fshop/hooks"),
            "{}",
            asked.path
        );
        match asked.method.as_str() {
            "GET" => own.linked(asked),
            "POST" => own.add(own.change(asked)),
            "PUT" => own.merge(last(&asked.path), None, &own.change(asked)),
            _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        }
    })
    .await;
    let push = wanted(
        "Gitlab",
        &format!("{}/acme/web/shop.git", host.address),
        &["Push"],
    );
    register(&push).await.expect("registered");
    let flags = |on: &[&str]| {
        let mut body = json!({"url": URL, "enable_ssl_verification": true});
        for name in ["push", "tag_push", "merge_requests", "note", "pipeline"] {
            body[format!("{name}_events")] = json!(on.contains(&name));
        }
        body
    };
    let mut made = flags(&["push"]);
    made["token"] = json!(SECRET);
    let (how, body) = shelf.changes().remove(0);
    assert_eq!((how.split(' ').next(), body), (Some("POST"), made));
    register(&unsigned(&push)).await.expect("registered");
    assert_eq!(shelf.changes(), []);
    // Somebody wants jobs too: that stays.
    shelf.hooks.lock().expect("a lock")[0]["job_events"] = json!(true);
    let more = wanted(
        "Gitlab",
        &push.connector.spec["url"].to_string().replace('"', ""),
        &["MergeRequest", "MRComment", "Tag", "PipelineHook"],
    );
    register(&unsigned(&more)).await.expect("registered");
    let all = flags(&["push", "tag_push", "merge_requests", "note", "pipeline"]);
    let (how, body) = shelf.changes().remove(0);
    assert!(how.ends_with("/hooks/1") && how.starts_with("PUT"), "{how}");
    assert_eq!(body, all);
    let hooks = shelf.hooks();
    assert_eq!(
        (hooks.len(), &hooks[0]["token"], &hooks[0]["job_events"]),
        (1, &json!(SECRET), &json!(true))
    );
    register(&more).await.expect("registered");
    assert_eq!((shelf.hooks().len(), shelf.changes().len()), (1, 1));
}

#[tokio::test]
async fn a_webhook_of_a_bitbucket_server_is_made_once() {
    let shelf =
        Shelf::of(&[json!({"id": 1, "url": "https://ci.example/", "events": [], "active": true})]);
    let own = shelf.clone();
    let host = Host::new(move |asked| {
        assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
        let hooks = "/rest/api/1.0/projects/PRJ/repos/shop/webhooks";
        assert!(asked.path.starts_with(hooks), "{}", asked.path);
        match asked.method.as_str() {
            "GET" => {
                let start: usize = query(asked, "start").parse().expect("a number");
                let hooks = own.hooks();
                let one: Vec<&Value> = hooks.get(start).into_iter().collect();
                let last = start + 1 >= hooks.len();
                page(&json!({"values": one, "isLastPage": last, "nextPageStart": (!last).then_some(start + 1)}))
            }
            "POST" => own.add(own.change(asked)),
            "PUT" => own.merge(last(&asked.path), None, &own.change(asked)),
            _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        }
    })
    .await;
    let pulls = wanted(
        "Bitbucket",
        &format!("{}/scm/PRJ/shop.git", host.address),
        &["PullRequest"],
    );
    register(&pulls).await.expect("registered");
    let events = json!([
        "pr:declined",
        "pr:from_ref_updated",
        "pr:merged",
        "pr:modified",
        "pr:opened"
    ]);
    let made = json!({
        "name": "Slipway", "url": URL, "active": true, "sslVerificationRequired": true, "events": events,
        "configuration": {"secret": SECRET},
    });
    let (how, body) = shelf.changes().remove(0);
    assert_eq!((how.split(' ').next(), body), (Some("POST"), made));
    register(&unsigned(&pulls)).await.expect("registered");
    assert_eq!(shelf.changes(), []);
    let push = WantedHook {
        events: ["Push".to_owned()].into(),
        ..unsigned(&pulls)
    };
    register(&push).await.expect("registered");
    let hook = shelf.hooks().remove(1);
    assert_eq!(hook["events"][5], "repo:refs_changed");
    assert_eq!(hook["configuration"]["secret"], SECRET);
    assert_eq!(shelf.hooks().len(), 2);
}

#[tokio::test]
async fn azure_has_a_subscription_for_each_event() {
    let shelf = Shelf::default();
    let own = shelf.clone();
    let host = Host::new(move |asked| {
        assert!(asked.header("authorization").starts_with("Basic "));
        assert_eq!(query(asked, "api-version"), "7.0");
        match (asked.method.as_str(), asked.path.as_str()) {
            ("GET", "/acme/web/_apis/git/repositories/shop") => {
                page(&json!({"id": "r-1", "name": "shop", "project": {"id": "p-1"}}))
            }
            ("GET", "/acme/_apis/hooks/subscriptions") => {
                assert_eq!(query(asked, "consumerId"), "webHooks");
                page(&json!({"count": 0, "value": own.hooks()}))
            }
            ("POST", "/acme/_apis/hooks/subscriptions") => {
                let mut body = own.change(asked);
                let mut hooks = own.hooks.lock().expect("a lock");
                body["id"] = json!(format!("s-{}", hooks.len()));
                body["status"] = json!("enabled");
                hooks.push(body.clone());
                page(&body)
            }
            ("PUT", path) => {
                let mut body = own.change(asked);
                let id = path.rsplit('/').next().expect("an id").to_owned();
                let mut hooks = own.hooks.lock().expect("a lock");
                let hook = hooks
                    .iter_mut()
                    .find(|hook| hook["id"] == id)
                    .expect("a subscription");
                std::mem::swap(hook, &mut body);
                page(hook)
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let url = format!("{}/acme/web/_git/shop", host.address);
    let pulls = wanted("AzureRepo", &url, &["PullRequest"]);
    register(&pulls).await.expect("registered");
    let kinds = |shelf: &Shelf| -> Vec<String> {
        let hooks = shelf.hooks();
        let kinds = hooks
            .iter()
            .map(|hook| hook["eventType"].as_str().expect("text").to_owned());
        kinds.collect()
    };
    let three = [
        "git.pullrequest.created",
        "git.pullrequest.merged",
        "git.pullrequest.updated",
    ];
    assert_eq!(kinds(&shelf), three);
    let first = shelf.hooks().remove(0);
    assert_eq!(
        first["publisherInputs"],
        json!({"projectId": "p-1", "repository": "r-1"})
    );
    let inputs = &first["consumerInputs"];
    assert_eq!(
        (
            &inputs["url"],
            &inputs["basicAuthPassword"],
            &inputs["acceptUntrustedCerts"],
            &inputs["resourceDetailsToSend"]
        ),
        (&json!(URL), &json!(SECRET), &json!("false"), &json!("all"))
    );
    shelf.changes();
    register(&unsigned(&pulls)).await.expect("registered");
    assert_eq!(shelf.changes(), []);
    // One that Azure gave up, of which nobody is shown the password.
    shelf.hooks.lock().expect("a lock")[1]["status"] = json!("disabledBySystem");
    let why = refused(&unsigned(&pulls)).await.1;
    assert!(
        why.contains("s-1 is not enabled (disabledBySystem)"),
        "{why}"
    );
    let mut hooks = shelf.hooks();
    let open = hooks[1]["consumerInputs"].as_object_mut().expect("inputs");
    open.remove("basicAuthPassword");
    *shelf.hooks.lock().expect("a lock") = hooks;
    // One that has none, and one that is not there yet.
    let more = wanted("AzureRepo", &url, &["Push", "IssueComment", "PullRequest"]);
    register(&unsigned(&more)).await.expect("registered");
    let how: Vec<String> = shelf.changes().into_iter().map(|(how, _)| how).collect();
    let post = "POST /acme/_apis/hooks/subscriptions";
    assert_eq!(how, ["PUT /acme/_apis/hooks/subscriptions/s-1", post, post]);
    assert_eq!(shelf.hooks()[1]["status"], "enabled");
    let five = ["git.push", "ms.vss-code.git-pullrequest-comment-event"];
    assert_eq!(kinds(&shelf), [&three[..], &five].concat());
    register(&more).await.expect("registered");
    assert_eq!(shelf.hooks().len(), 5);
}

#[tokio::test]
async fn a_refusal_says_what_the_provider_said_and_what_the_login_needs() {
    for (status, body, kind, told) in [
        (
            403,
            json!({"message": "Resource not accessible"}),
            ErrorType::Authentication,
            "admin:repo_hook",
        ),
        (
            404,
            json!({"message": "Not Found"}),
            ErrorType::Unknown,
            "admin:repo_hook",
        ),
        (
            422,
            json!({"message": "Validation Failed", "errors": [{"message": format!("is {TOKEN} of {SECRET}")}]}),
            ErrorType::Unknown,
            "Validation Failed; is ",
        ),
        (
            503,
            json!({}),
            ErrorType::Connectivity,
            "busy or broken (503)",
        ),
        (
            201,
            json!({"message": "a page of somebody else"}),
            ErrorType::Unknown,
            "not the webhook that it was asked to make",
        ),
    ] {
        let host = Host::new(move |asked| match asked.method.as_str() {
            "GET" => page(&json!([])),
            _ => (
                StatusCode::from_u16(status).expect("a status"),
                body.to_string(),
            )
                .into_response(),
        })
        .await;
        let push = wanted("Github", &format!("{}/acme/shop", host.address), &["Push"]);
        let (found, why) = refused(&push).await;
        assert!(
            found == kind && why.contains(told),
            "{status}: {found:?} {why}"
        );
    }
}

#[tokio::test]
async fn what_cannot_make_webhooks_is_not_asked() {
    let host = Host::new(|_| page(&json!([]))).await;
    let mut anonymous = wanted("Github", &format!("{}/acme/shop", host.address), &["Push"]);
    let spec = &mut anonymous.connector.spec;
    spec["authentication"] = json!({"type": "Http", "spec": {"type": "Anonymous"}});
    spec["apiAccess"] = Value::Null;
    assert!(refused(&anonymous).await.1.contains("`apiAccess`"));
    let mut gone = wanted("Github", &format!("{}/acme/shop", host.address), &["Push"]);
    gone.secret = Some("nowhere".to_owned());
    assert!(
        refused(&gone)
            .await
            .1
            .contains("there is no secret nowhere")
    );
    let plain = wanted(
        "Codecommit",
        &format!("{}/acme/shop", host.address),
        &["Push"],
    );
    assert!(refused(&plain).await.1.contains("type Codecommit"));
    let open = wanted("Gitlab", "http://gitlab.example/acme/shop", &["Push"]);
    assert!(refused(&open).await.1.contains("https"));
    assert_eq!(host.times(), 0);
    // It takes connections and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let silent = silent.expect("a port");
    let address = silent.local_addr().expect("an address");
    let push = wanted("Github", &format!("http://{address}/acme/shop"), &["Push"]);
    let done = source(false, Duration::from_millis(50))
        .register_hook(&push)
        .await;
    assert_eq!(done.expect_err("late").error, ErrorType::Timeout);
}
