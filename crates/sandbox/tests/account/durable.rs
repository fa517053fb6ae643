//! What is on disk is the account.

use serde_json::{Value, json};
use slipway_clock::Clock;
use slipway_sandbox::{OpenError, Pace, Sandbox, SandboxConfig};

use crate::support::Aws;

/// Everything that clients see, after `seconds` of a rolling update, reopening every `every` seconds.
async fn update_and_reopen(seconds: u64, every: Option<u64>) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("account.redb");
    let start = "2026-01-01T00:00:00Z".parse().expect("a timestamp");
    let clock = Clock::paused(start);
    let mut aws = Aws::open(Some(&path), clock.clone());
    let breaker = json!({"deploymentCircuitBreaker": {"enable": true, "rollback": true}});
    aws.steady_service(2, breaker).await;
    let next = aws.register("web:exits").await;
    aws.update(&next).await;
    for second in 0..seconds {
        aws.pass(1).await;
        if every.is_some_and(|every| second % every == 0) {
            // Reading moves the account on without writing, so this loses all that only time changed.
            aws.service().await;
            drop(aws);
            aws = Aws::open(Some(&path), clock.clone());
        }
    }
    let tasks = [aws.tasks("RUNNING").await, aws.tasks("STOPPED").await];
    json!({"service": aws.service().await, "tasks": tasks})
}

#[tokio::test(start_paused = true)]
async fn killed_and_opened_again_it_goes_on_the_same() {
    for seconds in [7, 21, 45, 200] {
        let whole = update_and_reopen(seconds, None).await;
        let broken = update_and_reopen(seconds, Some(3)).await;
        assert_eq!(whole, broken, "after {seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn one_file_has_one_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("account.redb");
    let _first = Aws::open(Some(&path), Clock::system());
    let config = SandboxConfig {
        clock: Clock::system(),
        region: "us-east-1".into(),
        account: "123456789012".into(),
        pace: Pace::brisk(),
    };
    let second = Sandbox::open(Some(&path), config);
    assert!(matches!(second, Err(OpenError::InUse { .. })), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn a_file_of_a_newer_version_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("account.redb");
    drop(Aws::open(Some(&path), Clock::system()));
    let database = redb::Database::open(&path).expect("a database");
    let transaction = database.begin_write().expect("a transaction");
    let file: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("file");
    transaction
        .open_table(file)
        .expect("a table")
        .insert("format", 99)
        .expect("a row");
    transaction.commit().expect("a commit");
    drop(database);
    let config = SandboxConfig {
        clock: Clock::system(),
        region: "us-east-1".into(),
        account: "123456789012".into(),
        pace: Pace::brisk(),
    };
    let refused = Sandbox::open(Some(&path), config);
    assert!(
        matches!(
            refused,
            Err(OpenError::NewerFormat {
                found: 99,
                supported: 1,
                ..
            })
        ),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_year_of_crashing_is_caught_up_with() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.register("web:exits").await;
    aws.ecs("CreateService", crate::support::service(4, json!({})))
        .await;
    aws.pass(365 * 86_400).await;
    let service = aws.service().await;
    assert_eq!(service["status"], "ACTIVE");
    assert!(
        service["events"]
            .as_array()
            .is_some_and(|events| events.len() == 100)
    );
    assert!(aws.tasks("STOPPED").await.len() <= 100);
}
