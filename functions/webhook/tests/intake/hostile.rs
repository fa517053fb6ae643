//! Hostile deliveries: names begin with the id of their case in `docs/hostile.md`.

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use slipway_model::id::{AccountId, PrincipalId};
use slipway_store::record::TokenRecord;
use tower::ServiceExt as _;

use crate::{
    GIT, SECRET, deliver, history, minutes, on_push, place, push, runs, signature, trigger, world,
};

const FIRST: &str = "2026-01-01T00:00:00Z";

#[tokio::test(start_paused = true)]
async fn w1_an_unsigned_delivery_is_refused_and_nothing_is_kept() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let writes = world.store.writes();
    let headers = [("x-github-event", "push"), ("x-github-delivery", "d-1")];
    // The body is not read: rubbish is answered like a push.
    for body in [push("0", "a", FIRST), "{{{".to_owned()] {
        let (status, answer) = hooks.post(GIT, &headers, body).await;
        assert_eq!(status, 401, "{answer}");
        assert!(!answer.to_string().contains(SECRET));
    }
    let wrong = signature("another", &push("0", "a", FIRST));
    let signed = [headers[0], headers[1], ("x-hub-signature-256", &*wrong)];
    let (status, _) = hooks.post(GIT, &signed, push("0", "a", FIRST)).await;
    assert_eq!((status, world.store.writes()), (401, writes));
    assert!(history(&world, "main").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn w1_each_trigger_wants_its_own_secret() {
    let world = world().await;
    world.put_secret("other", "another secret").await;
    world.apply(&on_push("main", "")).await;
    world
        .apply(&on_push("others", "").replace("Identifier: hook", "Identifier: other"))
        .await;
    let hooks = world.hooks();
    let (status, _) = deliver(&hooks, "d-1", &push("0", "a", FIRST)).await;
    assert_eq!(status, 200);
    assert_eq!(
        history(&world, "main").await[0].status,
        "TARGET_EXECUTION_REQUESTED"
    );
    let refused = &history(&world, "others").await[0];
    assert_eq!(refused.status, "TRIGGER_AUTHENTICATION_FAILED");
    assert_eq!(runs(&world).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn w1_a_secret_that_is_changed_counts_beside_the_new_one_for_a_day() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let (status, _) = deliver(&hooks, "d-1", &push("0", "a", FIRST)).await;
    assert_eq!(status, 200);
    world.put_secret("hook", "the new one").await;
    minutes(&world, 2).await;
    let (status, _) = deliver(&hooks, "d-2", &push("a", "b", "2026-01-01T00:01:00Z")).await;
    assert_eq!(status, 200, "the sender has the old one still");
    let body = push("b", "c", "2026-01-01T00:02:00Z");
    let signed = signature("the new one", &body);
    let headers = [
        ("x-github-event", "push"),
        ("x-hub-signature-256", &*signed),
    ];
    let (status, _) = hooks.post(GIT, &headers, body).await;
    assert_eq!((status, runs(&world).await.len()), (200, 3));
}

#[tokio::test(start_paused = true)]
async fn w7_a_body_that_api_gateway_encoded_is_decoded_once_and_then_verified() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let body = push("0", "a", FIRST).replace("change", "Änderung");
    let once = STANDARD.encode(&body);
    let twice = STANDARD.encode(&once);
    for (sent, encoded, expected) in [
        (&twice, true, 401),
        // What only looks encoded is the body itself.
        (&once, false, 401),
        (&once, true, 200),
        (&body, false, 200),
    ] {
        let event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": "/ng/api/webhook",
            "rawQueryString": "accountIdentifier=acme",
            "headers": {
                "x-github-event": "push", "x-github-delivery": "d-1",
                "x-hub-signature-256": signature(SECRET, &body), "host": "hooks.example.com",
            },
            "requestContext": {
                "stage": "$default", "http": {"method": "POST", "path": "/ng/api/webhook"},
            },
            "body": sent, "isBase64Encoded": encoded,
        });
        let request = lambda_http::request::from_str(&event.to_string()).expect("a request");
        let answer = hooks.router().oneshot(request).await.expect("an answer");
        assert_eq!(answer.status(), expected, "{encoded} {sent}");
    }
    assert_eq!(runs(&world).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn w8_a_body_beyond_the_limit_is_refused_before_it_is_read() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let announced = [
        ("x-github-event", "push"),
        ("content-length", "10737418240"),
    ];
    let (status, _) = hooks.post(GIT, &announced, "{}").await;
    assert_eq!(status, 413);
    // An endless body: what is beyond the limit is never asked for.
    let chunk = axum::body::Bytes::from(vec![b' '; 1 << 20]);
    let endless = futures::stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
    let (status, answer) = hooks
        .post(
            GIT,
            &[("x-github-event", "push")],
            Body::from_stream(endless),
        )
        .await;
    assert_eq!(status, 413, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn w14_a_delivery_that_is_played_again_starts_no_second_run() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let body = push("0", "a", FIRST);
    deliver(&hooks, "d-1", &body).await;
    for later in [1, 9, 2, 89 * 24 * 60] {
        minutes(&world, later).await;
        let (status, _) = deliver(&hooks, "d-1", &body).await;
        assert_eq!((status, runs(&world).await.len()), (200, 1), "{later}");
    }
    minutes(&world, 2 * 24 * 60).await;
    let (status, answer) = deliver(&hooks, "d-9", &body).await;
    assert_eq!((status, runs(&world).await.len()), (400, 1));
    assert!(
        answer["message"]
            .as_str()
            .is_some_and(|why| why.contains("90 days")),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn w15_another_body_under_the_id_of_a_delivery_is_refused() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    deliver(&hooks, "d-1", &push("0", "a", FIRST)).await;
    let (status, answer) = deliver(&hooks, "d-1", &push("0", "e", FIRST)).await;
    assert_eq!((status, runs(&world).await.len()), (409, 1), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn w18_an_older_push_does_not_deploy_over_a_newer_one() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    deliver(&hooks, "d-2", &push("a", "b", "2026-01-01T00:05:00Z")).await;
    let (status, _) = deliver(&hooks, "d-1", &push("0", "a", "2026-01-01T00:01:00Z")).await;
    assert_eq!((status, runs(&world).await.len()), (200, 1));
    let rows = history(&world, "main").await;
    let late = rows
        .iter()
        .find(|row| row.run.is_none())
        .expect("a refusal");
    assert_eq!(late.status, "TARGET_DID_NOT_EXECUTE");
    assert!(late.message.contains("a newer event"), "{}", late.message);
}

#[tokio::test(start_paused = true)]
async fn w20_a_ping_is_answered_and_starts_nothing() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    for event in ["ping", "__proto__", "star"] {
        let body = json!({"zen": "Keep it simple."}).to_string();
        let signed = signature(SECRET, &body);
        let headers = [("x-github-event", event), ("x-hub-signature-256", &*signed)];
        let (status, answer) = hooks.post(GIT, &headers, body).await;
        assert_eq!((status, &answer["data"]), (200, &Value::Null), "{answer}");
    }
    assert!(runs(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn w26_w27_what_aws_sends_by_other_ways_is_not_taken_over_http() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let ecr = json!({
        "version": "0", "id": "1", "detail-type": "ECR Image Action", "source": "aws.ecr",
        "account": "123456789012", "region": "us-east-1",
        "detail": {"result": "SUCCESS", "repository-name": "shop", "image-tag": "1", "action-type": "PUSH"},
    });
    let sns = json!({
        "Type": "SubscriptionConfirmation", "MessageId": "1", "TopicArn": "arn:aws:sns:us-east-1:1:t",
        "SubscribeURL": "http://169.254.169.254/", "SigningCertURL": "https://evil.example/cert.pem",
        "SignatureVersion": "1",
    });
    for (body, headers) in [
        (ecr, vec![]),
        (
            sns,
            vec![("x-amz-sns-message-type", "SubscriptionConfirmation")],
        ),
    ] {
        let (status, answer) = hooks.post(GIT, &headers, body.to_string()).await;
        assert_eq!((status, runs(&world).await.len()), (400, 0), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn w31_nothing_tells_an_unknown_webhook_from_one_that_is_not_for_the_sender() {
    let world = world().await;
    let source = "type: Webhook\nspec:\n  type: Custom\n  spec: {}\n";
    world.apply(&trigger("called", source, "")).await;
    let hooks = world.hooks();
    let path = |token: &str, name: &str| {
        format!(
            "/pipeline/api/webhook/custom/{token}/v3?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop&pipelineIdentifier=release&triggerIdentifier={name}"
        )
    };
    let mut bodies = Vec::new();
    for (token, name) in [("x", "called"), ("x", "unknown"), ("", "called")] {
        let (status, mut answer) = hooks.post(&path(token, name), &[], "{}").await;
        if let Some(body) = answer.as_object_mut() {
            body.remove("correlationId");
        }
        if !token.is_empty() {
            assert_eq!(status, 404);
            bodies.push(answer);
        }
    }
    assert_eq!(bodies[0], bodies[1]);
    let right = slipway_engine::intake::url::url_token(&world.url_key().await, &place("called"));
    for trick in [
        path(&right, "called").replace("/custom/", "/Custom/"),
        path(&right, "called").replace("/pipeline/api", "//pipeline/api"),
        path(&right, "called").replace("/v3", "/v3;x=y"),
        path(&right, "called").replace("/custom/", "/custom/%2e%2e/custom/"),
    ] {
        let (status, _) = hooks.post(&trick, &[], "{}").await;
        assert_eq!((status, runs(&world).await.len()), (404, 0), "{trick}");
    }
    let (status, _) = hooks.post(&path(&right, "called"), &[], "{}").await;
    assert_eq!((status, runs(&world).await.len()), (200, 1));
}

/// Without the URL of a trigger or a token of the API: whether there is a trigger of a name, and whether its secret can be
/// read, is nothing that a stranger hears.
#[tokio::test(start_paused = true)]
async fn w31_a_stranger_hears_the_same_of_a_trigger_that_is_there_and_of_none() {
    let world = world().await;
    let source = "type: Webhook\nspec:\n  type: Custom\n  spec: {}\n";
    let on = |id: &str, secret: &str| {
        trigger(
            id,
            source,
            &format!("encryptedWebhookSecretIdentifier: {secret}\n"),
        )
    };
    world.apply(&on("called", "hook")).await;
    world.apply(&on("lost", "gone")).await;
    let pushes = on_push("main", "");
    world.apply(&pushes).await;
    let hooks = world.hooks();
    let wrong = signature("another", "{}");
    for headers in [
        &[][..],
        &[("x-hub-signature-256", &*wrong)],
        &[("x-hub-signature-256", "nonsense")],
        &[("webhook-signature", "v1,AAAA")],
        &[("x-gitlab-token", "x")],
    ] {
        for api in ["custom", "custom/v2"] {
            let mut told = Vec::new();
            for name in ["unknown", "called", "lost", "main"] {
                let path = format!(
                    "/pipeline/api/webhook/{api}?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop&pipelineIdentifier=release&triggerIdentifier={name}"
                );
                let (status, mut answer) = hooks.post(&path, headers, "{}").await;
                assert_eq!(status, 401, "{name} {answer}");
                let body = answer.as_object_mut().expect("an answer");
                body.remove("correlationId");
                told.push(answer);
            }
            assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
        }
    }
    assert!(runs(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn w32_a_large_payload_is_kept_beside_and_no_execution_carries_it() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let mut body: Value = serde_json::from_str(&push("0", "a", FIRST)).expect("JSON");
    body["padding"] = "x".repeat(900_000).into();
    let (status, answer) = deliver(&hooks, "d-1", &body.to_string()).await;
    assert_eq!(status, 200, "{answer}");
    let run = runs(&world).await.remove(0);
    let run = world.finish(&run.id).await;
    assert_eq!(run.failure, None);
    let event = answer["data"].as_str().expect("an event");
    let kept = world
        .store
        .find_event(event)
        .await
        .expect("an answer")
        .expect("an event");
    assert_eq!(kept.body["event"]["payload"], body);
}

#[tokio::test(start_paused = true)]
async fn w33_a_disabled_or_deleted_trigger_starts_nothing() {
    let world = world().await;
    world
        .apply(&on_push("off", "").replace("  source:", "  enabled: false\n  source:"))
        .await;
    let source = "type: Webhook\nspec:\n  type: Custom\n  spec: {}\n";
    world
        .apply(&trigger("called", source, "enabled: false\n"))
        .await;
    let hooks = world.hooks();
    let (status, _) = deliver(&hooks, "d-1", &push("0", "a", FIRST)).await;
    assert_eq!(status, 200);
    assert_eq!(
        history(&world, "off").await[0].status,
        "NO_ENABLED_TRIGGER_FOR_PROJECT"
    );
    for (name, known) in [("called", true), ("gone", false)] {
        let token = slipway_engine::intake::url::url_token(&world.url_key().await, &place(name));
        let path = format!(
            "/pipeline/api/webhook/custom/{token}/v3?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop&pipelineIdentifier=release&triggerIdentifier={name}"
        );
        let (status, answer) = hooks.post(&path, &[], "{}").await;
        assert_eq!(
            (status, answer["data"].is_object()),
            (200, known),
            "{answer}"
        );
    }
    let rows = history(&world, "called").await;
    assert_eq!(rows[0].status, "NO_ENABLED_TRIGGER_FOR_PROJECT");
    assert!(runs(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a8_a_delivery_opens_the_account_project_and_trigger_that_it_is_for_and_no_other() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let source = "type: Webhook\nspec:\n  type: Custom\n  spec: {}\n";
    let secret = "encryptedWebhookSecretIdentifier: hook\n";
    for id in ["called", "other"] {
        world.apply(&trigger(id, source, secret)).await;
    }
    let hooks = world.hooks();
    // Nobody listens in another account, and in another project none of these triggers does.
    let body = push("0", "a", FIRST);
    let signed = signature(SECRET, &body);
    let headers = [
        ("x-github-event", "push"),
        ("x-hub-signature-256", &*signed),
    ];
    for place in [
        "accountIdentifier=another",
        "accountIdentifier=acme&orgIdentifier=default&projectIdentifier=another",
        "accountIdentifier=acme&orgIdentifier=another",
    ] {
        let path = format!("/ng/api/webhook?{place}");
        let (status, answer) = hooks.post(&path, &headers, body.clone()).await;
        assert_eq!(
            (status, runs(&world).await.len()),
            (200, 0),
            "{place}: {answer}"
        );
    }
    // The URL of one trigger is not that of another, nor of one of this name elsewhere.
    let token = slipway_engine::intake::url::url_token(&world.url_key().await, &place("called"));
    let path = |account: &str, project: &str, name: &str| {
        format!(
            "/pipeline/api/webhook/custom/{token}/v3?accountIdentifier={account}&orgIdentifier=default&projectIdentifier={project}&pipelineIdentifier=release&triggerIdentifier={name}"
        )
    };
    for path in [
        path("acme", "shop", "other"),
        path("acme", "another", "called"),
        path("another", "shop", "called"),
    ] {
        let (status, _) = hooks.post(&path, &[], "{}").await;
        assert_eq!((status, runs(&world).await.len()), (404, 0), "{path}");
    }
    // A token of the API opens its own account, while it is valid, and only with the right to start runs.
    let path = "/pipeline/api/webhook/custom/v2?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop&pipelineIdentifier=release&triggerIdentifier=called";
    let record = |account: &str, permission: &str, valid_to_ms: i64| TokenRecord {
        account: AccountId::new(account),
        principal: PrincipalId::new("alex"),
        id: "t".to_owned(),
        name: "t".to_owned(),
        permissions: vec![permission.to_owned()],
        valid_from_ms: 0,
        valid_to_ms,
    };
    for (record, expected) in [
        (None, 401),
        (Some(record("another", "admin", 0)), 401),
        (Some(record("acme", "delegate", 0)), 401),
        (Some(record("acme", "admin", 1)), 401),
        (Some(record("acme", "admin", 0)), 200),
    ] {
        if let Some(record) = &record {
            let put = world.store.put_token("pat.acme.t.secret", record).await;
            put.expect("a token");
        }
        let headers = [("x-api-key", "pat.acme.t.secret")];
        let (status, answer) = hooks.post(path, &headers, "{}").await;
        assert_eq!(status, expected, "{record:?}: {answer}");
    }
    assert_eq!(runs(&world).await.len(), 1);
}
