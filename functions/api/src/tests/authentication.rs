//! Nothing is answered without a valid token.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use super::{Api, SCOPE};
use crate::Permission;

const ROUTES: &[(&str, &str)] = &[
    ("GET", "/ng/api/user/currentUser"),
    ("POST", "/ng/api/token/validate"),
    ("GET", "/ng/api/organizations"),
    ("GET", "/gateway/ng/api/servicesV2?accountIdentifier=acme"),
    ("POST", "/pipeline/api/pipelines/list"),
    ("GET", "/v1/orgs/o/projects/p/pipelines"),
    ("POST", "/pipeline/api/pipeline/execute/p"),
    ("GET", "/gateway/log-service/blob?accountID=acme&key=k"),
    ("GET", "/log-service/token"),
    ("POST", "/slipway/api/apply"),
    ("GET", "/slipway/api/version"),
    ("GET", "/slipway/api/delegate/tasks/t"),
    ("GET", "/slipway/api/health/"),
    ("GET", "/slipway/api/health/../version"),
    ("GET", "//slipway/api/health"),
    ("GET", "/gateway/slipway/api/health"),
    ("GET", "/ng/api/oidc/account/acme"),
    ("GET", "/ng/api/oidc/account/acme/.well-known/keys"),
    ("GET", "/ng/api/oidc/account/acme/x/.well-known/jwks"),
    ("GET", "/gateway/ng/api/oidc/account/acme/.well-known/jwks"),
    ("TRACE", "/ng/api/organizations"),
    ("GET", "/"),
    ("GET", "/no/such/path"),
];

#[tokio::test(start_paused = true)]
async fn every_route_refuses_every_wrong_token_in_the_same_words() {
    let api = Api::new().await;
    let long = format!("pat.acme.id.{}", "a".repeat(100_000));
    let foreign = api.token.replacen("pat.acme.", "pat.other.", 1);
    let service_account = api.token.replacen("pat.", "sat.", 1);
    let token = api.token.as_str();
    let bearer = format!("Bearer {token}");
    let lower = format!("bearer {token}");
    let expired = api
        .mint("acme", Permission::Admin, api.clock.now_ms())
        .await;
    let cases: &[&[(&str, &str)]] = &[
        &[],
        &[("authorization", "Bearer nothing")],
        &[("authorization", "Bearer ")],
        &[("authorization", "")],
        &[("authorization", token)],
        &[("authorization", &lower)],
        &[("authorization", "Basic YTpi")],
        &[("x-api-key", "")],
        &[("x-api-key", "nothing")],
        &[("x-api-key", "pat.acme.id.secret")],
        &[("x-api-key", &long)],
        &[("x-api-key", &foreign)],
        &[("x-api-key", &service_account)],
        &[("x-api-key", &expired)],
        &[("x-api-key", token), ("x-api-key", "pat.acme.id.other")],
        &[
            ("x-api-key", "pat.acme.id.other"),
            ("authorization", &bearer),
        ],
        &[("cookie", token)],
    ];
    let mut answers = std::collections::BTreeSet::new();
    for (method, path) in ROUTES {
        for headers in cases {
            let mut request = Request::builder().method(*method).uri(*path);
            for (name, value) in *headers {
                request = request.header(*name, *value);
            }
            let answer = api
                .send(request.body(Body::empty()).expect("a request"))
                .await;
            let (status, code, message) = answer.refusal();
            assert_eq!(status, 401, "{method} {path} {headers:?}");
            answers.insert((code, message));
        }
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_taken_however_its_header_is_spelt() {
    let api = Api::new().await;
    let bearer = format!("Bearer {}", api.token);
    for (name, value) in [
        ("x-api-key", &api.token),
        ("X-Api-Key", &api.token),
        ("X-API-KEY", &api.token),
        ("Authorization", &bearer),
    ] {
        let request = Request::get("/ng/api/user/currentUser").header(name, value);
        let answer = api
            .send(request.body(Body::empty()).expect("a request"))
            .await;
        assert_eq!(answer.data()["email"], "jo@example.com", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_health_is_open_and_it_tells_nothing() {
    let api = Api::new().await;
    let request = Request::get("/slipway/api/health")
        .body(Body::empty())
        .expect("a request");
    let answer = api.send(request).await;
    assert_eq!(
        (answer.status.as_u16(), answer.text.as_str()),
        (200, r#"{"status":"UP"}"#)
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_for_another_account_is_denied() {
    let api = Api::new().await;
    for path in [
        "/ng/api/organizations?accountIdentifier=other",
        "/ng/api/organizations?routingId=other",
        "/ng/api/organizations?accountIdentifier=acme&routingId=other",
        "/gateway/log-service/token?accountID=other",
        "/ng/api/accounts/other",
    ] {
        let (status, code, _) = api.get(path).await.refusal();
        assert_eq!((status, code.as_str()), (403, "NG_ACCESS_DENIED"), "{path}");
    }
    let request = Request::get("/v1/orgs/default/projects/default/pipelines")
        .header("x-api-key", &api.token)
        .header("Harness-Account", "other");
    let answer = api
        .send(request.body(Body::empty()).expect("a request"))
        .await;
    assert_eq!(answer.refusal().0, 403);
}

#[tokio::test(start_paused = true)]
async fn a_token_opens_no_more_than_it_permits() {
    let api = Api::new().await;
    let cases = [
        (Permission::Delegate, "/slipway/api/delegate/tasks/t", 400),
        (
            Permission::Delegate,
            "/gateway/slipway/api/delegate/tasks/t",
            400,
        ),
        (Permission::Delegate, "/ng/api/organizations", 403),
        (Permission::Delegate, "/log-service/token", 403),
        (Permission::Logs, "/log-service/blob?key=x", 404),
        (Permission::Logs, "/slipway/api/delegate/tasks/t", 403),
        (Permission::Logs, "/ng/api/organizations", 403),
        (Permission::Admin, "/slipway/api/delegate/tasks/t", 400),
    ];
    for (permission, path, status) in cases {
        let token = api.mint("acme", permission, 0).await;
        let request = Request::get(path).header("x-api-key", token);
        let answer = api
            .send(request.body(Body::empty()).expect("a request"))
            .await;
        assert_eq!(
            answer.status.as_u16(),
            status,
            "{permission:?} {path}: {}",
            answer.text
        );
    }
}

#[tokio::test(start_paused = true)]
async fn guessing_is_slowed_down_and_nobody_is_locked_out() {
    let api = Api::new().await;
    let mut last = 0;
    for n in 0..1_001 {
        let request =
            Request::get("/ng/api/organizations").header("x-api-key", format!("pat.acme.id.{n}"));
        let answer = api
            .send(request.body(Body::empty()).expect("a request"))
            .await;
        last = answer.status.as_u16();
        if last == 429 {
            assert!(answer.headers.contains_key("retry-after"));
        }
    }
    assert_eq!(last, 429);
    assert_eq!(api.get("/ng/api/organizations").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_a_login_succeed() {
    let api = Api::new().await;
    let validated = api
        .call(
            "POST",
            "/ng/api/token/validate?accountIdentifier=acme",
            "text/plain",
            &api.token,
        )
        .await
        .data();
    assert_eq!(validated["validTo"], 0);
    assert_eq!(validated["accountIdentifier"], "acme");
    let wrong = api
        .call(
            "POST",
            "/ng/api/token/validate",
            "text/plain",
            "pat.acme.x.y",
        )
        .await;
    assert_eq!(wrong.refusal().0, 401);
    let account = api
        .get("/ng/api/accounts/acme?accountIdentifier=acme")
        .await
        .data();
    assert_eq!(account["identifier"], "acme");
    let project = api
        .get(&format!("/ng/api/projects/default?{SCOPE}"))
        .await
        .data();
    assert_eq!(project["project"]["name"], "default");
    let org = api.get("/ng/api/organizations/default").await.data();
    assert_eq!(org["organization"]["name"], "default");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_made_for_somebody_else() {
    let api = Api::new().await;
    let body = json!({
        "identifier": "laptop", "name": "laptop", "apiKeyType": "USER", "parentIdentifier": "kim@example.com",
        "apiKeyIdentifier": "key", "accountIdentifier": "acme",
    });
    let path = "/ng/api/token?accountIdentifier=acme";
    let made = api.post(path, &body).await.data();
    let token = made.as_str().expect("a token");
    assert!(token.starts_with("pat.acme."), "its form");
    let validated = api
        .call("POST", "/ng/api/token/validate", "text/plain", token)
        .await
        .data();
    assert_eq!(validated["username"], "kim@example.com");
    assert_eq!(validated["name"], "laptop");

    let mut service = body.clone();
    service["apiKeyType"] = "SERVICE_ACCOUNT".into();
    let made = api.post(path, &service).await.data();
    assert!(made.as_str().is_some_and(|it| it.starts_with("sat.acme.")));
    for (field, value) in [
        ("parentIdentifier", json!("")),
        ("parentIdentifier", json!("a\nb")),
        ("parentIdentifier", json!(7)),
        ("apiKeyType", json!("ROOT")),
        ("validTo", json!(1)),
        ("validTo", json!("soon")),
    ] {
        let mut wrong = body.clone();
        wrong[field] = value;
        let (status, _, message) = api.post(path, &wrong).await.refusal();
        assert!(status == 400 && message.contains(field), "{message}");
    }
}
