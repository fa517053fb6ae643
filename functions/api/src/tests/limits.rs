//! Requests that are too large, of a wrong form, or for nothing.

use axum::body::{Body, Bytes};
use axum::http::Request;

use super::{Api, SCOPE};

#[tokio::test(start_paused = true)]
async fn unknown_paths_and_methods_answer_json() {
    let api = Api::new().await;
    assert_eq!(api.get("/no/such/path").await.refusal().0, 404);
    assert_eq!(api.get("/gateway").await.refusal().0, 404);
    assert_eq!(api.delete("/ng/api/organizations").await.refusal().0, 405);
}

#[tokio::test(start_paused = true)]
async fn every_alias_of_a_path_is_served() {
    let api = Api::new().await;
    for path in [
        "/ng/api/organizations/default",
        "/gateway/ng/api/organizations/default",
        "/v1/orgs/default/projects/default/pipelines",
        "/gateway/v1/orgs/default/projects/default/pipelines",
        "/pipeline/api/v1/orgs/default/projects/default/pipelines",
        "/gateway/pipeline/api/v1/orgs/default/projects/default/pipelines?limit=1",
    ] {
        assert_eq!(api.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_announces_too_much_is_not_read() {
    let api = Api::new().await;
    let unread = Body::from_stream(futures::stream::poll_fn(
        |_| -> std::task::Poll<Option<Result<Bytes, std::io::Error>>> {
            panic!("the body was read")
        },
    ));
    let request = Request::post(format!("/ng/api/servicesV2?{SCOPE}"))
        .header("x-api-key", &api.token)
        .header("content-type", "application/json")
        .header("content-length", "10000000000");
    let answer = api.send(request.body(unread).expect("a request")).await;
    assert_eq!(answer.refusal().0, 413);
}

#[tokio::test(start_paused = true)]
async fn an_endless_body_is_cut_off() {
    let api = Api::new().await;
    let endless =
        futures::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b'a'; 65_536])));
    let request =
        Request::post(format!("/ng/api/servicesV2?{SCOPE}")).header("x-api-key", &api.token);
    let answer = api
        .send(request.body(Body::from_stream(endless)).expect("a request"))
        .await;
    assert_eq!(answer.refusal().0, 413);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_runs_into_the_time_limit() {
    let api = Api::new().await;
    let stalled = futures::stream::pending::<Result<Bytes, std::io::Error>>();
    let request =
        Request::post(format!("/ng/api/servicesV2?{SCOPE}")).header("x-api-key", &api.token);
    let answer = api
        .send(request.body(Body::from_stream(stalled)).expect("a request"))
        .await;
    assert_eq!(answer.refusal().0, 503);
}

#[tokio::test(start_paused = true)]
async fn nonsense_in_a_body_is_refused_with_a_reason() {
    let api = Api::new().await;
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let cases: [(&[u8], &str); 7] = [
        (b"{", "not JSON"),
        (b"[]", "JSON object"),
        (b"\xff\xfe", "not UTF-8"),
        (b"{\"a\":1e999}", "not JSON"),
        (b"{\"a\":\"\\ud800\"}", "not JSON"),
        (deep.as_bytes(), "not JSON"),
        (b"", "identifier"),
    ];
    for (body, says) in cases {
        let request = Request::post(format!("/ng/api/servicesV2?{SCOPE}"))
            .header("x-api-key", &api.token)
            .header("content-type", "application/json; charset=utf-8");
        let answer = api
            .send(request.body(Body::from(body.to_vec())).expect("a request"))
            .await;
        let (status, _, message) = answer.refusal();
        assert_eq!(status, 400);
        assert!(message.contains(says), "{message}");
    }
    let form = api
        .call(
            "POST",
            &format!("/ng/api/servicesV2?{SCOPE}"),
            "application/x-www-form-urlencoded",
            "a=b",
        )
        .await;
    assert_eq!(form.refusal().0, 415);
}

#[tokio::test(start_paused = true)]
async fn doubtful_parameters_are_refused() {
    let api = Api::new().await;
    let many = format!("/ng/api/organizations?{}", "a=b&".repeat(10_000));
    for path in [
        "/ng/api/servicesV2?orgIdentifier=a&orgIdentifier=b",
        "/ng/api/servicesV2?projectIdentifier=only",
        "/ng/api/servicesV2?orgIdentifier=a%2Fb",
        "/ng/api/servicesV2?page=-1",
        "/ng/api/servicesV2?page=18446744073709551615",
        "/ng/api/infrastructures?orgIdentifier=default&projectIdentifier=default",
        many.as_str(),
    ] {
        assert_eq!(
            api.get(path).await.refusal().0,
            400,
            "{}",
            &path[..60.min(path.len())]
        );
    }
    // The same value twice, empty values and unknown names mean nothing.
    let twice = format!("/ng/api/servicesV2?{SCOPE}&{SCOPE}&searchTerm=&branch=x");
    assert_eq!(api.get(&twice).await.status, 200);
}
