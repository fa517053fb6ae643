//! A target account that is not as the pipeline thinks, or not well.

use serde_json::{Value, json};
use slipway_tests::LocalProcess;

use crate::{code, errors, outcome, run, shop};

/// Asks the sandbox account to misbehave.
async fn fault(local: &LocalProcess, fault: Value) {
    let url = format!("{}/_sandbox/faults", local.url());
    let answer = reqwest::Client::new()
        .put(url)
        .json(&fault)
        .send()
        .await
        .expect("an answer");
    assert!(answer.status().is_success(), "{}", answer.status());
}

#[tokio::test]
async fn a_missing_cluster_fails_the_step_with_its_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path(), false).await;
    let output = run(&local, "deploy_shop", &["tag=1.0"]);
    assert_eq!(code(&output), 1, "{}", errors(&output));
    let why = outcome(&output)["reason"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        why.contains("shop") && why.contains("ClusterNotFoundException"),
        "{why}"
    );

    // The cluster is made, and the same pipeline goes on.
    local
        .ecs()
        .create_cluster()
        .cluster_name("shop")
        .send()
        .await
        .expect("a cluster");
    let output = run(&local, "deploy_shop", &["tag=1.0"]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
}

#[tokio::test]
async fn expired_credentials_fail_the_step_and_say_what_to_do() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path(), true).await;
    fault(
        &local,
        json!({"service": "ecs", "effect": {"kind": "expired-credentials"}}),
    )
    .await;
    let output = run(&local, "deploy_shop", &["tag=1.0"]);
    assert_eq!(code(&output), 1, "{}", errors(&output));
    let why = outcome(&output)["reason"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(why.contains("ExpiredToken"), "{why}");
}

#[tokio::test]
async fn throttling_by_the_target_is_waited_out() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path(), true).await;
    for operation in [
        "DescribeServices",
        "RegisterTaskDefinition",
        "CreateService",
    ] {
        let throttle = json!({"operation": operation, "count": 4, "effect": {"kind": "throttle"}});
        fault(&local, throttle).await;
    }
    let output = run(&local, "deploy_shop", &["tag=1.0"]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    let registered = local
        .ecs()
        .list_task_definitions()
        .family_prefix("shop")
        .send()
        .await;
    assert_eq!(registered.expect("a list").task_definition_arns().len(), 1);
}

#[tokio::test]
async fn an_account_that_does_not_answer_right_fails_the_step_in_bounded_time() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path(), true).await;
    fault(
        &local,
        json!({"operation": "CreateService", "effect": {"kind": "access-denied"}}),
    )
    .await;
    let output = run(&local, "deploy_shop", &["tag=1.0"]);
    assert_eq!(code(&output), 1, "{}", errors(&output));
    let why = outcome(&output)["reason"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(why.contains("AccessDenied"), "{why}");
}
