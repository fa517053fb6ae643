//! Repositories that a GitHub app may read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use slipway_engine::gather::{Change, HostApi, SourceReader as _, WantedChange};
use slipway_engine::intake::hook::WantedHook;
use slipway_model::id::{AccountId, Scope};

use crate::feed_host::{self, page};
use crate::host::Host;
use crate::support::{app_pair, branch, connector, one, repository, serve, shown, source, wanted};

/// `x-access-token:ghs_gr4nted`.
const BASIC: &str = "Basic eC1hY2Nlc3MtdG9rZW46Z2hzX2dyNG50ZWQ=";

#[derive(Clone)]
struct GitHub {
    asked: Arc<AtomicUsize>,
    expires: Arc<Mutex<String>>,
}

/// Gives a token to whoever signs with the key of app 12345, installed as 678.
async fn token(
    State(host): State<GitHub>,
    Path(installation): Path<String>,
    headers: HeaderMap,
) -> Response {
    host.asked.fetch_add(1, Ordering::SeqCst);
    let word = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    let word = word
        .and_then(|word| word.strip_prefix("Bearer "))
        .unwrap_or_default();
    let (said, signature) = word.rsplit_once('.').unwrap_or_default();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
    let known = UnparsedPublicKey::new(
        &RSA_PKCS1_2048_8192_SHA256,
        app_pair().public_key().as_ref(),
    );
    let claims = said
        .split('.')
        .nth(1)
        .and_then(|claims| URL_SAFE_NO_PAD.decode(claims).ok());
    let claims: Value = serde_json::from_slice(&claims.unwrap_or_default()).unwrap_or_default();
    if known.verify(said.as_bytes(), &signature).is_err() || claims["iss"] != "12345" {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if installation != "678" {
        return StatusCode::NOT_FOUND.into_response();
    }
    let expires = host.expires.lock().expect("a time").clone();
    let granted = json!({"token": "ghs_gr4nted", "expires_at": expires});
    (StatusCode::CREATED, axum::Json(granted)).into_response()
}

fn app(application: &str, installation: &str) -> Value {
    let spec = json!({"applicationId": application, "installationId": installation, "privateKeyRef": "account.app"});
    json!({"type": "GithubApp", "spec": spec})
}

#[tokio::test]
async fn an_app_reads_with_the_token_of_its_installation_until_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let github = GitHub {
        asked: Arc::default(),
        expires: Arc::new(Mutex::new("2100-01-01T00:00:00Z".to_owned())),
    };
    let code = Host::start(folder.path().to_owned(), Some(BASIC.to_owned())).await;
    let tokens = Router::new()
        .route("/api/v3/app/installations/{id}/access_tokens", post(token))
        .with_state(github.clone());
    let url = serve(code.router().merge(tokens)).await;
    let url = format!("{url}/acme/shop");
    let source = source(false, Duration::from_secs(20));
    let read = async |login: Value| {
        one(
            &source,
            wanted(&connector(&url, login), branch("main"), &["ecs/task.yaml"]),
        )
        .await
    };
    for _ in 0..3 {
        let found = read(app("12345", "678")).await.expect("a file");
        assert_eq!(shown(&found), "ecs/task.yaml=family: two");
    }
    assert_eq!(
        github.asked.load(Ordering::SeqCst),
        1,
        "it is kept while it holds"
    );
    for (login, expected) in [
        (app("12345", "9"), "there is no such installation"),
        (app("999", "678"), "it does not accept the app's key"),
    ] {
        let why = read(login).await.expect_err(expected);
        assert!(why.contains(expected), "{why}");
    }
    // One that has ended, or ends soon, is asked for again.
    let before = github.asked.load(Ordering::SeqCst);
    *github.expires.lock().expect("a time") = "2020-01-01T00:00:00Z".to_owned();
    let other = crate::support::source(false, Duration::from_secs(20));
    for _ in 0..2 {
        let wanted = wanted(
            &connector(&url, app("12345", "678")),
            branch("main"),
            &["ecs"],
        );
        one(&other, wanted).await.expect("files");
    }
    assert_eq!(github.asked.load(Ordering::SeqCst) - before, 2);
}

/// For everything that the API of the repository is asked, whether the connector names the app for Git or for the API.
#[tokio::test]
async fn an_app_reads_changes_and_makes_webhooks_with_the_same_token() {
    let host = feed_host::Host::new(|asked| {
        if asked.path == "/api/v3/app/installations/678/access_tokens" {
            let granted = json!({"token": "ghs_gr4nted", "expires_at": "2100-01-01T00:00:00Z"});
            return (StatusCode::CREATED, axum::Json(granted)).into_response();
        }
        if asked.header("authorization") != "Bearer ghs_gr4nted" {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        match (asked.method.as_str(), asked.path.as_str()) {
            ("GET", "/api/v3/repos/acme/shop/compare/a1...b2") => {
                page(&json!({"files": [{"filename": "ecs/task.yaml"}]}))
            }
            ("GET", "/api/v3/repos/acme/shop/pulls/7") => page(&json!({"head": {"ref": "fix"}})),
            ("GET", "/api/v3/repos/acme/shop/hooks") => page(&json!([])),
            ("POST", "/api/v3/repos/acme/shop/hooks") => {
                let made: Value = serde_json::from_str(&asked.body).expect("a webhook");
                (StatusCode::CREATED, axum::Json(made)).into_response()
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let url = format!("{}/acme/shop", host.address);
    let plain = connector(&url, app("12345", "678"));
    let mut beside = connector(
        &url,
        json!({"type": "UsernameToken", "spec": {"tokenRef": "nowhere"}}),
    );
    beside.spec["apiAccess"] = app("12345", "678");
    for connector in [plain, beside] {
        let source = source(false, Duration::from_secs(20));
        let scope = Scope::account(AccountId::new("acme"));
        let change = |change| WantedChange {
            connector: connector.clone(),
            scope: scope.clone(),
            repository: None,
            change,
            api: HostApi::OfConnector,
        };
        let push = Change::Push {
            before: "a1".to_owned(),
            after: "b2".to_owned(),
        };
        let told = source.changed_files(&change(push)).await.expect("files");
        assert_eq!(told.files, ["ecs/task.yaml"]);
        let pull = change(Change::PullRequest(7));
        let pull = source.pull_request(&pull).await.expect("a pull request");
        assert_eq!(pull.source_branch.as_deref(), Some("fix"));
        let hook = WantedHook {
            connector: connector.clone(),
            scope,
            repository: None,
            url: "https://slipway.example/gateway/ng/api/webhook?accountIdentifier=acme".to_owned(),
            events: ["Push".to_owned()].into(),
            secret: None,
        };
        source.register_hook(&hook).await.expect("a webhook");
    }
    let asked = host.asked.lock().expect("a lock");
    let granted = asked.iter().filter(|path| path.contains("access_tokens"));
    assert_eq!(granted.count(), 2, "once for each process: {asked:?}");
}
