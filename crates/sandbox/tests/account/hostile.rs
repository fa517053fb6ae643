//! Requests that nobody should send, and faults on request.

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use serde_json::json;
use slipway_sandbox::{Fault, FaultEffect, RoleRule};

use crate::support::{Aws, between};

/// Status and body of a raw request to ECS.
async fn raw(aws: &Aws, operation: &str, body: Vec<u8>) -> (u16, String) {
    let request = Request::post("/")
        .header(
            "x-amz-target",
            format!("AmazonEC2ContainerServiceV20141113.{operation}"),
        )
        .header("authorization", aws.authorization())
        .body(Body::from(body))
        .expect("a request");
    read(aws, request).await
}

async fn read(aws: &Aws, request: Request<Body>) -> (u16, String) {
    let response = aws.send(request).await;
    let status = response.status().as_u16();
    let bytes = response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

async fn sts(aws: &Aws, form: &str) -> (u16, String) {
    let request = Request::post("/")
        .header("authorization", aws.authorization())
        .body(Body::from(form.to_owned()))
        .expect("a request");
    read(aws, request).await
}

#[tokio::test(start_paused = true)]
async fn bad_requests_get_an_answer() {
    let aws = Aws::new();
    for (operation, body, status, code) in [
        (
            "CreateCluster",
            b"{".to_vec(),
            400,
            "SerializationException",
        ),
        (
            "CreateCluster",
            b"[]".to_vec(),
            400,
            "SerializationException",
        ),
        (
            "CreateCluster",
            vec![0xff; 100],
            400,
            "SerializationException",
        ),
        (
            "CreateCluster",
            vec![b'['; 100_000],
            400,
            "SerializationException",
        ),
        (
            "CreateCluster",
            vec![b' '; 2 << 20],
            413,
            "RequestEntityTooLargeException",
        ),
        ("Nope", b"{}".to_vec(), 400, "UnknownOperationException"),
        ("", b"{}".to_vec(), 400, "UnknownOperationException"),
        (
            "CreateCluster",
            br#"{"clusterName":"../x"}"#.to_vec(),
            400,
            "InvalidParameterException",
        ),
        (
            "CreateCluster",
            br#"{"clusterName":7}"#.to_vec(),
            400,
            "SerializationException",
        ),
        (
            "DescribeClusters",
            br#"{"clusters":[{}]}"#.to_vec(),
            400,
            "SerializationException",
        ),
    ] {
        let (found, body) = raw(&aws, operation, body).await;
        assert_eq!(found, status, "{operation}: {body}");
        assert!(body.contains(code), "{operation}: {body}");
    }
    let unsigned = Request::post("/")
        .header(
            "x-amz-target",
            "AmazonEC2ContainerServiceV20141113.ListClusters",
        )
        .body(Body::empty())
        .expect("a request");
    let (_, body) = read(&aws, unsigned).await;
    assert!(
        body.contains("MissingAuthenticationTokenException"),
        "{body}"
    );
}

#[tokio::test(start_paused = true)]
async fn sessions_expire_with_the_clock() {
    let mut aws = Aws::new();
    let form = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A9%3Arole%2Fdeploy\
                &RoleSessionName=slipway&DurationSeconds=900";
    let (status, body) = sts(&aws, form).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(between(&body, "Expiration"), "2026-01-01T00:15:00Z");
    aws.access_key = between(&body, "AccessKeyId").to_owned();
    let (_, who) = sts(&aws, "Action=GetCallerIdentity").await;
    assert_eq!(
        between(&who, "Arn"),
        "arn:aws:sts::9:assumed-role/deploy/slipway"
    );
    aws.ecs("ListClusters", json!({})).await;
    aws.pass(901).await;
    let (code, message) = aws
        .try_ecs("ListClusters", json!({}))
        .await
        .expect_err("expired");
    assert_eq!(code, "ExpiredTokenException");
    assert_eq!(
        message,
        "The security token included in the request is expired"
    );
    let (status, body) = sts(&aws, "Action=GetCallerIdentity").await;
    assert_eq!((status, between(&body, "Code")), (403, "ExpiredToken"));
}

#[tokio::test(start_paused = true)]
async fn a_role_can_want_an_external_id() {
    let aws = Aws::new();
    let rule = RoleRule {
        arn: "arn:aws:iam::9:role/deploy".into(),
        external_id: Some("secret".into()),
        denied: false,
    };
    aws.sandbox.set_role(rule).expect("a rule");
    let form = "Action=AssumeRole&RoleArn=arn:aws:iam::9:role/deploy&RoleSessionName=slipway";
    let (status, body) = sts(&aws, form).await;
    assert_eq!(
        (status, between(&body, "Code")),
        (403, "AccessDenied"),
        "{body}"
    );
    let (status, _) = sts(&aws, &format!("{form}&ExternalId=secret")).await;
    assert_eq!(status, 200);
}

#[tokio::test(start_paused = true)]
async fn faults_hit_what_they_name() {
    let aws = Aws::new();
    let put = |effect: FaultEffect| {
        aws.sandbox.faults().add(Fault {
            service: Some("ecs".into()),
            operation: Some("CreateCluster".into()),
            skip: 0,
            count: Some(1),
            effect,
        });
    };
    let create = || aws.try_ecs("CreateCluster", json!({"clusterName": "c"}));
    let mut codes = Vec::new();
    for effect in [
        FaultEffect::Throttle,
        FaultEffect::AccessDenied,
        FaultEffect::ServerError,
        FaultEffect::ExpiredCredentials,
    ] {
        put(effect);
        aws.ecs("ListClusters", json!({})).await;
        codes.push(create().await.expect_err("a fault").0);
    }
    assert_eq!(
        codes,
        [
            "ThrottlingException",
            "AccessDeniedException",
            "ServerException",
            "ExpiredTokenException"
        ]
    );
    put(FaultEffect::Latency { millis: 5_000 });
    let before = aws.clock.now_ms();
    create().await.expect("a late answer");
    assert_eq!(aws.clock.now_ms() - before, 5_000);
    let calls = aws.sandbox.calls();
    let creations: Vec<Option<&str>> = calls
        .iter()
        .filter(|call| call.operation == "CreateCluster")
        .map(|call| call.error.as_deref())
        .collect();
    assert_eq!(creations.len(), 5);
    assert_eq!(creations[4], None);
}

#[tokio::test(start_paused = true)]
async fn controls_on_http() {
    let aws = Aws::new();
    let send = |method: &str, path: &str, body: &str| {
        Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Body::from(body.to_owned()))
            .expect("a request")
    };
    let rule = r#"{"image": "shop/*", "behaviour": "exits", "exitCode": 7}"#;
    let (status, _) = read(&aws, send("PUT", "/_sandbox/images", rule)).await;
    assert_eq!(status, 204);
    let (_, images) = read(&aws, send("GET", "/_sandbox/images", "")).await;
    assert_eq!(
        images,
        r#"[{"image":"shop/*","behaviour":"exits","exitCode":7}]"#
    );
    let fault = r#"{"operation": "ListClusters", "effect": {"kind": "throttle"}}"#;
    let (status, _) = read(&aws, send("PUT", "/_sandbox/faults", fault)).await;
    assert_eq!(status, 200);
    let refused = aws
        .try_ecs("ListClusters", json!({}))
        .await
        .expect_err("throttled");
    assert_eq!(refused.1, "Rate exceeded");
    let (status, _) = read(&aws, send("DELETE", "/_sandbox/faults", "")).await;
    assert_eq!(status, 204);
    aws.ecs("ListClusters", json!({})).await;
    let (_, calls) = read(
        &aws,
        send("GET", "/_sandbox/calls?operation=ListClusters", ""),
    )
    .await;
    assert_eq!(calls.matches("ListClusters").count(), 2, "{calls}");
    let (status, _) = read(&aws, send("PUT", "/_sandbox/images", r#"{"imag": 1}"#)).await;
    assert_eq!(status, 422);
}
