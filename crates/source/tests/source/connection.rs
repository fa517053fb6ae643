//! Whether what connectors lead to takes their logins, against servers that answer as the real ones do.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use slipway_engine::gather::SourceReader;
use slipway_model::id::{AccountId, Scope};
use slipway_plan::ConnectorPlan;

use crate::host::Host;
use crate::support::{repository, serve, source, tested};

/// `jo:t0p-s3cret-token`, as a browser would send it.
const BASIC: &str = "Basic am86dDBwLXMzY3JldC10b2tlbg==";

type Asked = Arc<Mutex<Vec<String>>>;

/// A server that holds an Artifactory, both kinds of Nexus, a Jira and a ServiceNow, for `jo` alone; its address and
/// what it is asked.
async fn server() -> (String, Asked) {
    let asked = Asked::default();
    let app = Router::new().fallback(answer).with_state(asked.clone());
    let address = serve(app).await;
    (address, asked)
}

async fn answer(State(asked): State<Asked>, request: Request) -> Response {
    let path = request.uri().to_string();
    asked.lock().expect("a lock").push(path.clone());
    match path.as_str() {
        "/busy/api/repositories" => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        "/silent/api/repositories" => return std::future::pending().await,
        "/moved/api/repositories" => {
            let to = "http://169.254.169.254/latest/meta-data/";
            return (StatusCode::FOUND, [(header::LOCATION, to)]).into_response();
        }
        "/page/api/repositories" => return "<html>sign in</html>".into_response(),
        "/endless/api/repositories" => {
            let chunk = Bytes::from_static(&[b' '; 1 << 16]);
            let endless = futures::stream::repeat_with(move || {
                Ok::<_, std::convert::Infallible>(chunk.clone())
            });
            return Response::new(Body::from_stream(endless));
        }
        _ => {}
    }
    let given = request.headers().get(header::AUTHORIZATION);
    let given = given.and_then(|value| value.to_str().ok());
    if given != Some(BASIC) && given != Some("Bearer t0p-s3cret-token") {
        let body = json!({"errorMessages": ["who are you?"]});
        return (StatusCode::UNAUTHORIZED, body.to_string()).into_response();
    }
    let found = match path.as_str() {
        "/artifactory/api/repositories" => json!([{"key": "docker-local"}]),
        "/service/rest/v1/repositories" => json!([{"name": "docker-hosted"}]),
        "/service/local/repositories" => json!({"data": []}),
        "/jira/rest/api/2/myself" => json!({"accountId": "5b10", "active": true}),
        "/api/now/table/incident?sysparm_limit=1&sysparm_fields=number" => json!({"result": []}),
        "/forbidden/rest/api/2/myself" => {
            let body = json!({"errorMessages": ["no"]}).to_string();
            return (StatusCode::FORBIDDEN, body).into_response();
        }
        "/list/rest/api/2/myself" => json!(["nobody"]),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    found.to_string().into_response()
}

fn connector(kind: &str, spec: Value) -> ConnectorPlan {
    ConnectorPlan {
        reference: "account.own".to_owned(),
        kind: kind.to_owned(),
        spec,
    }
}

fn login(user: &str) -> Value {
    json!({"type": "UsernamePassword", "spec": {"username": user, "passwordRef": "account.token"}})
}

#[tokio::test]
async fn servers_are_asked_what_only_those_who_are_known_may_ask() {
    let (address, asked) = server().await;
    let pat = json!({"type": "PersonalAccessToken", "spec": {"patRef": "account.token"}});
    let table = [
        (
            "Artifactory",
            json!({"artifactoryServerUrl": format!("{address}/artifactory/"), "auth": login("jo")}),
        ),
        (
            "Nexus",
            json!({"nexusServerUrl": address, "version": "3.x", "auth": login("jo")}),
        ),
        (
            "Nexus",
            json!({"nexusServerUrl": address, "version": "2.x", "auth": login("jo")}),
        ),
        (
            "Jira",
            json!({"jiraUrl": format!("{address}/jira"), "auth": login("jo")}),
        ),
        (
            "Jira",
            json!({"jiraUrl": format!("{address}/jira"), "auth": pat}),
        ),
        (
            "ServiceNow",
            json!({"serviceNowUrl": address, "auth": login("jo")}),
        ),
    ];
    for (kind, spec) in table {
        assert_eq!(
            tested(&connector(kind, spec.clone())).await,
            "good",
            "{spec}"
        );
    }
    assert_eq!(
        asked.lock().expect("a lock").len(),
        6,
        "one request for each"
    );
    let other = connector("Bamboo", json!({}));
    assert_eq!(tested(&other).await, "untested");
}

#[tokio::test]
async fn why_a_connection_does_not_work_is_said() {
    let (address, _) = server().await;
    let artifactory = |path: &str, auth: Value| {
        let url = format!("{address}/{path}");
        (
            "Artifactory",
            json!({"artifactoryServerUrl": url, "auth": auth}),
        )
    };
    let jira = |path: &str, auth: Value| {
        (
            "Jira",
            json!({"jiraUrl": format!("{address}/{path}"), "auth": auth}),
        )
    };
    let anonymous = json!({"type": "Anonymous"});
    let no_password = json!({"type": "UsernamePassword", "spec": {"username": "jo"}});
    let table = [
        (
            artifactory("artifactory", login("eve")),
            "Authentication",
            "does not accept the connector's login",
        ),
        (
            artifactory("artifactory", anonymous.clone()),
            "Authentication",
            "the connector has none",
        ),
        (
            artifactory("artifactory", no_password),
            "Authentication",
            "it has no `passwordRef`",
        ),
        (
            artifactory("nowhere", login("jo")),
            "Unknown",
            "check `artifactoryServerUrl`",
        ),
        (
            artifactory("page", login("jo")),
            "Unknown",
            "no list of repositories",
        ),
        (
            artifactory("busy", login("jo")),
            "Connectivity",
            "it answers 503: try again later",
        ),
        (
            artifactory("moved", login("jo")),
            "Connectivity",
            "link-local",
        ),
        (
            jira("jira", login("eve")),
            "Authentication",
            "Check the login of connector account.own",
        ),
        (
            jira("forbidden", login("jo")),
            "Authorization",
            "may not do this",
        ),
        (
            jira("list", login("jo")),
            "Unknown",
            "Is the address that of Jira?",
        ),
        (jira("nowhere", login("jo")), "Unknown", "HTTP 404"),
        (
            ("Jira", json!({"auth": login("jo")})),
            "Unknown",
            "it has no jiraUrl",
        ),
        (
            (
                "ServiceNow",
                json!({"serviceNowUrl": "http://169.254.169.254", "auth": login("jo")}),
            ),
            "Unknown",
            "link-local",
        ),
        (
            (
                "Nexus",
                json!({"nexusServerUrl": "http://nexus.example", "auth": login("jo")}),
            ),
            "Unknown",
            "not sent over http",
        ),
        (
            (
                "Nexus",
                json!({"nexusServerUrl": "http://127.0.0.1:1", "auth": anonymous}),
            ),
            "Connectivity",
            "127.0.0.1",
        ),
    ];
    for ((kind, spec), failure, expected) in table {
        let told = tested(&connector(kind, spec.clone())).await;
        assert!(told.starts_with(&format!("{failure}: ")), "{spec}: {told}");
        assert!(told.contains(expected), "{spec}: {told}");
        assert!(told.contains("onnector account.own"), "{spec}: {told}");
    }
    // As long as it likes, it is a list that was cut.
    let (kind, spec) = artifactory("endless", login("jo"));
    assert_eq!(tested(&connector(kind, spec)).await, "good");
}

#[tokio::test]
async fn a_server_that_says_nothing_holds_nobody_up() {
    let (address, _) = server().await;
    let url = format!("{address}/silent");
    let silent = connector("Artifactory", json!({"artifactoryServerUrl": url}));
    let source = source(false, Duration::from_millis(300));
    let scope = Scope::account(AccountId::new("acme"));
    let tested = source.test_connection(&silent, &scope).await;
    let failure = tested.expect("it is tested").unwrap_err();
    assert!(
        failure.message.contains("connector account.own"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn the_branches_of_a_repository_are_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let closed = Host::start(folder.path().to_owned(), Some(BASIC.to_owned())).await;
    let code = |kind: &str, extent: &str, url: String, user: &str, repository: Value| {
        let login = json!({"type": "UsernamePassword", "spec": {"username": user, "passwordRef": "account.token"}});
        let login = json!({"type": "Http", "spec": login});
        let spec = json!({"url": url, "type": extent, "authentication": login, "validationRepo": repository});
        connector(kind, spec)
    };
    for kind in ["Github", "Gitlab", "Bitbucket"] {
        let one = code(kind, "Repo", closed.url("/acme/shop"), "jo", Value::Null);
        assert_eq!(tested(&one).await, "good", "{kind}");
        let all = code(kind, "Account", closed.url("/acme"), "jo", json!("shop"));
        assert_eq!(tested(&all).await, "good", "{kind}");
    }
    assert_eq!(closed.posts(), 6, "a list of branches each, and no pack");
    let plain = connector(
        "Git",
        json!({"url": closed.url("/acme/shop"), "connectionType": "Repo", "type": "Http",
        "spec": {"username": "jo", "passwordRef": "account.token"}}),
    );
    assert_eq!(tested(&plain).await, "good");
    let here = json!({"url": format!("file://{}", folder.path().display()), "type": "Repo"});
    assert_eq!(tested(&connector("Git", here)).await, "good");
    let gone = json!({"url": "file:///srv/not-there", "type": "Repo"});
    let table = [
        (
            code(
                "Github",
                "Repo",
                closed.url("/acme/shop"),
                "eve",
                Value::Null,
            ),
            "Authentication",
            "does not accept the connector's login",
        ),
        (
            code(
                "Github",
                "Repo",
                closed.url("/acme/gone"),
                "jo",
                Value::Null,
            ),
            "Unknown",
            "there is no such repository",
        ),
        (
            code(
                "Github",
                "Repo",
                closed.url("/forbidden"),
                "jo",
                Value::Null,
            ),
            "Authorization",
            "may not read it",
        ),
        (
            code("Github", "Account", closed.url("/acme"), "jo", Value::Null),
            "Unknown",
            "name one in `validationRepo`",
        ),
        (
            code(
                "AzureRepo",
                "Project",
                closed.url("/acme"),
                "jo",
                json!("../x"),
            ),
            "Unknown",
            "is no name of a repository",
        ),
        (
            code(
                "Github",
                "Repo",
                "http://127.0.0.1:1/x".to_owned(),
                "jo",
                Value::Null,
            ),
            "Connectivity",
            "cannot fetch from the repository",
        ),
        (
            code(
                "Github",
                "Repo",
                "ssh://git@github.com/acme/shop".to_owned(),
                "jo",
                Value::Null,
            ),
            "Authentication",
            "its `url` is an SSH address",
        ),
        (
            connector("Git", gone),
            "Unknown",
            "does not exist on this machine",
        ),
    ];
    for (connector, failure, expected) in table {
        let told = tested(&connector).await;
        let wanted = format!("{failure}: Cannot test connector account.own: ");
        assert!(told.starts_with(&wanted), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}
