//! Lambda over loopback, as `aws-sdk-lambda` sees it: its waiters end, its pages end, its errors have names.

use std::time::Duration;

use aws_sdk_lambda::Client;
use aws_sdk_lambda::client::Waiters;
use aws_sdk_lambda::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_lambda::error::ProvideErrorMetadata;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::{AliasRoutingConfiguration, FunctionCode, Runtime, State};
use slipway_sandbox::{Fault, FaultEffect};

use crate::sdk::serve;

const PATIENCE: Duration = Duration::from_secs(30);

fn client(endpoint: &str) -> Client {
    let config = aws_sdk_lambda::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("AKIATEST", "secret", None, None, "test"))
        .endpoint_url(endpoint)
        .build();
    Client::from_conf(config)
}

async fn create(lambda: &Client, name: &str) {
    let code = FunctionCode::builder().zip_file(Blob::new(&b"PK\x03\x04one"[..]));
    let made = lambda
        .create_function()
        .function_name(name)
        .role("arn:aws:iam::123456789012:role/shop")
        .runtime(Runtime::Nodejs22x)
        .handler("index.handler")
        .code(code.build())
        .send()
        .await
        .expect("a function");
    assert_eq!(made.state(), Some(&State::Pending));
    let active = lambda.wait_until_function_active_v2().function_name(name);
    active.wait(PATIENCE).await.expect("active");
}

#[tokio::test]
async fn a_function_from_creation_to_shifted_traffic() {
    let (_sandbox, endpoint) = serve().await;
    let lambda = client(&endpoint);
    create(&lambda, "shop").await;
    let mut versions = Vec::new();
    for content in [&b"PK\x03\x04two"[..], b"PK\x03\x04three"] {
        let changed = lambda.update_function_code().function_name("shop");
        changed
            .zip_file(Blob::new(content))
            .send()
            .await
            .expect("an update");
        let updated = lambda
            .wait_until_function_updated_v2()
            .function_name("shop");
        updated.wait(PATIENCE).await.expect("updated");
        let published = lambda.publish_version().function_name("shop").send().await;
        let version = published.expect("a version").version.expect("a number");
        let active = lambda.wait_until_published_version_active();
        let active = active.function_name("shop").qualifier(&version);
        active.wait(PATIENCE).await.expect("active");
        versions.push(version);
    }
    assert_eq!(versions, ["1", "2"]);
    let alias = lambda
        .create_alias()
        .function_name("shop")
        .name("live")
        .function_version("1");
    let routing = AliasRoutingConfiguration::builder().additional_version_weights("2", 0.25);
    let alias = alias
        .routing_config(routing.build())
        .send()
        .await
        .expect("an alias");
    let weights = alias
        .routing_config()
        .and_then(|routing| routing.additional_version_weights());
    assert_eq!(weights.and_then(|weights| weights.get("2")), Some(&0.25));
    let gone = lambda
        .get_alias()
        .function_name("shop")
        .name("none")
        .send()
        .await;
    let gone = gone.expect_err("no alias").into_service_error();
    assert!(gone.is_resource_not_found_exception(), "{gone:?}");
}

#[tokio::test]
async fn pages_end_and_throttled_calls_are_repeated() {
    let (sandbox, endpoint) = serve().await;
    let lambda = client(&endpoint);
    for name in ["a", "b", "c"] {
        create(&lambda, name).await;
    }
    let pages = lambda
        .list_functions()
        .max_items(2)
        .into_paginator()
        .items()
        .send();
    let names: Result<Vec<_>, _> = pages.collect().await;
    let names: Vec<_> = names
        .expect("pages")
        .into_iter()
        .filter_map(|one| one.function_name)
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    sandbox.faults().add(Fault {
        service: Some("lambda".to_owned()),
        operation: Some("GetFunction".to_owned()),
        skip: 0,
        count: Some(1),
        effect: FaultEffect::Throttle,
    });
    lambda
        .get_function()
        .function_name("a")
        .send()
        .await
        .expect("after one more try");
    let answered: Vec<_> = sandbox
        .calls()
        .into_iter()
        .filter_map(|call| call.error)
        .collect();
    assert_eq!(answered, ["TooManyRequestsException"]);
    sandbox.faults().add(Fault {
        service: None,
        operation: None,
        skip: 0,
        count: None,
        effect: FaultEffect::AccessDenied,
    });
    let denied = lambda
        .list_functions()
        .send()
        .await
        .expect_err("denied")
        .into_service_error();
    assert_eq!(denied.code(), Some("AccessDeniedException"));
}
