//! Buckets of Google, at a server that answers as its JSON API does.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;
use serde_json::{Value, json};
use slipway_clock::Clock;
use slipway_model::id::Scope;
use slipway_model::status::Failure;
use slipway_plan::ConnectorPlan;
use slipway_source::{Polled, Source, SourceConfig};
use slipway_steps::aws::{Ambient, AwsTargets, TargetConfig};
use slipway_steps::secrets::SecretSource;

use crate::feed_host::{Asked, Host, connector, feed, page, poll, seen};

/// The key of a service account, whatever is asked for.
struct Key(String);

#[async_trait]
impl SecretSource for Key {
    async fn value(&self, _: &Scope, _: &str) -> Result<SecretString, Failure> {
        Ok(SecretString::from(self.0.clone()))
    }
}

fn gcp() -> ConnectorPlan {
    let key = json!({"type": "ManualConfig", "spec": {"secretKeyRef": "account.key"}});
    connector("Gcp", json!({"credential": key}))
}

/// A source whose Google is this host.
fn source(host: &Host) -> Source {
    let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
    let der = pair.as_der().expect("a key");
    let body = STANDARD.encode(der.as_ref());
    let key = json!({
        "client_email": "bot@shop.example",
        "private_key": format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"),
        "token_uri": format!("{}/token", host.address),
    });
    let target = TargetConfig {
        endpoint_url: Some("http://target.invalid".to_owned()),
        http_client: None,
        ambient: Ambient::Sandbox,
        objects: None,
    };
    let clock = Clock::system();
    let config = SourceConfig {
        limit: Duration::from_secs(20),
        google_storage: Some(host.address.clone()),
        google_compute: Some(host.address.clone()),
        ..SourceConfig::default()
    };
    let targets = AwsTargets::new(target, clock.clone());
    Source::new(config, targets, Arc::new(Key(key.to_string())), clock)
}

fn object(name: &str, day: u32) -> Value {
    json!({"name": name, "updated": format!("2026-01-{day:02}T00:00:00.000Z"), "etag": "CJ=", "generation": "17"})
}

fn image(name: &str, day: u32, status: &str) -> Value {
    json!({"id": "42", "name": name, "status": status, "family": "web", "selfLink": format!("https://compute.example/{name}"),
        "creationTimestamp": format!("2026-01-{day:02}T01:00:00.000-08:00")})
}

async fn google() -> Host {
    Host::new(|asked: &Asked| {
        if asked.path == "/token" {
            return page(&json!({"access_token": "ya29", "expires_in": 3599}));
        }
        assert_eq!(asked.header("authorization"), "Bearer ya29");
        let second = asked.query.contains("pageToken=more");
        match asked.path.as_str() {
            "/storage/v1/b/builds/o" if second => page(&json!({"items": [object("a/1.zip", 1), object("a/", 1)]})),
            "/storage/v1/b/builds/o" => {
                page(&json!({"items": [object("a/2.zip", 2)], "nextPageToken": "more"}))
            }
            "/storage/v1/b/empty/o" => page(&json!({"kind": "storage#objects"})),
            "/storage/v1/b/charts/o/stable%2Findex.yaml" => {
                assert!(asked.query.contains("alt=media"), "{}", asked.query);
                match asked.header("if-none-match") {
                    "\"i1\"" => StatusCode::NOT_MODIFIED.into_response(),
                    _ => (
                        [("etag", "\"i1\"")],
                        "apiVersion: v1\nentries:\n  web:\n  - version: 1.1.0\n  - version: 1.0.0\n",
                    )
                        .into_response(),
                }
            }
            "/compute/v1/projects/shop/global/images" => {
                let wanted = "filter=%28family+%3D+%22web%22%29+%28labels.team+%3D+%22a%5C%22b%22%29";
                assert!(asked.query.contains(wanted), "{}", asked.query);
                match second {
                    false => page(&json!({"items": [image("web-10", 9, "READY"), image("web-11", 9, "PENDING")], "nextPageToken": "more"})),
                    true => {
                        let mut gone = image("web-8", 1, "READY");
                        gone["deprecated"] = json!({"state": "OBSOLETE"});
                        page(&json!({"items": [image("web-9", 2, "READY"), gone]}))
                    }
                }
            }
            "/storage/v1/b/closed/o" | "/compute/v1/projects/closed/global/images" => StatusCode::FORBIDDEN.into_response(),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await
}

#[tokio::test]
async fn objects_of_a_bucket_of_google_are_listed_by_their_times() {
    let host = google().await;
    let source = source(&host);
    let of = |bucket: &str| {
        let spec = json!({"project": "shop", "bucket": bucket, "artifactPath": "<+trigger.artifact.build>"});
        feed("GoogleCloudStorage", spec)
    };
    let (versions, state, last) = seen(poll(&source, &of("builds"), &gcp(), None).await);
    assert_eq!(versions, ["a/1.zip", "a/2.zip"]);
    assert_eq!(
        (&last["fileName"], &last["bucket"]),
        (&json!("2.zip"), &json!("builds"))
    );
    let again = poll(&source, &of("builds"), &gcp(), state.as_deref()).await;
    assert_eq!(again, Ok(Polled::Unchanged));
    let (versions, ..) = seen(poll(&source, &of("empty"), &gcp(), None).await);
    assert!(versions.is_empty(), "{versions:?}");
    for (bucket, why) in [("closed", "does not accept"), ("none", "(404)")] {
        let fault = poll(&source, &of(bucket), &gcp(), None)
            .await
            .expect_err("a fault");
        let message = fault.failure.message;
        assert!(
            message.contains(why) && !message.contains("ya29"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn charts_in_a_bucket_of_google_are_read_while_their_index_changes() {
    let host = google().await;
    let source = source(&host);
    let store = |folder: &str| json!({"type": "Gcs", "spec": {"connectorRef": "account.shop", "bucketName": "charts", "folderPath": folder}});
    let web = feed(
        "HelmChart",
        json!({"store": store("/stable/"), "chartName": "web"}),
    );
    let (versions, state, _) = seen(poll(&source, &web, &gcp(), None).await);
    assert_eq!(versions, ["1.0.0", "1.1.0"]);
    let again = poll(&source, &web, &gcp(), state.as_deref()).await;
    assert_eq!(again, Ok(Polled::Unchanged));
    let gone = feed(
        "HelmChart",
        json!({"store": store("other"), "chartName": "web"}),
    );
    let fault = poll(&source, &gone, &gcp(), None)
        .await
        .expect_err("a fault");
    assert!(
        fault.failure.message.contains("(404)"),
        "{}",
        fault.failure.message
    );
}

#[tokio::test]
async fn images_of_google_are_listed_by_their_times_with_filters_and_labels() {
    let host = google().await;
    let source = source(&host);
    let of = |project: &str, family: &str| {
        let pair = |name: &str, value: &str| json!([{"name": name, "value": value}]);
        let spec = json!({"project": project, "filters": pair(family, "web"), "labels": pair("team", "a\"b"), "version": "<+trigger.artifact.build>"});
        feed("GceImage", spec)
    };
    let (versions, state, last) = seen(poll(&source, &of("shop", "family"), &gcp(), None).await);
    assert_eq!(versions, ["web-9", "web-10"]);
    assert_eq!(
        last,
        json!({"image": "web-10", "id": "42", "family": "web", "url": "https://compute.example/web-10"})
    );
    let again = poll(&source, &of("shop", "family"), &gcp(), state.as_deref()).await;
    assert_eq!(again, Ok(Polled::Unchanged));
    for (of, why) in [
        (of("closed", "family"), "does not accept"),
        (of("gone", "family"), "(404): check `project`"),
        (of("shop", "a) OR (b"), "is no name of a field"),
    ] {
        let fault = poll(&source, &of, &gcp(), None).await.expect_err("a fault");
        let message = fault.failure.message;
        assert!(
            message.contains(why) && !message.contains("ya29"),
            "{message}"
        );
    }
}
