//! What was accepted stays: over a restart, on a full disk, before a newer version's file.

use slipway_store::Page;
use slipway_store::embedded::{Embedded, OpenError};

use crate::{clock, noise, run, runs, scope};

#[tokio::test]
async fn a_second_opening_finds_everything() {
    let dir = tempfile::tempdir().expect("a folder");
    let large = noise(400_000);
    let digest = {
        let store = Embedded::open(dir.path()).expect("opened").store(clock());
        store
            .create_run(&runs::record("r1", 10))
            .await
            .expect("created");
        store.put_blob(large.as_bytes()).await.expect("stored")
    };
    let store = Embedded::open(dir.path())
        .expect("opened again")
        .store(clock());
    assert_eq!(
        store.get_run(&run("r1")).await.expect("read"),
        runs::record("r1", 10)
    );
    assert!(store.get_blob(&digest).await.expect("read") == large.as_bytes());
    let listed = store
        .list_runs(&scope(), None, Page::first(9))
        .await
        .expect("listed");
    assert_eq!(listed.items.len(), 1);
}

/// As after a kill -9: a copy of the files of a running store, its write-ahead log included.
#[tokio::test]
async fn what_was_answered_is_in_the_files() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = Embedded::open(dir.path()).expect("opened").store(clock());
    for n in 0..20 {
        store
            .create_run(&runs::record(&format!("r{n}"), 10))
            .await
            .expect("created");
    }
    let copy = tempfile::tempdir().expect("a folder");
    for file in ["dynamodb.sqlite", "dynamodb.sqlite-wal"] {
        std::fs::copy(dir.path().join(file), copy.path().join(file)).expect("copied");
    }
    let found = Embedded::open(copy.path()).expect("opened").store(clock());
    for n in 0..20 {
        found
            .get_run(&run(&format!("r{n}")))
            .await
            .expect("it was answered, so it is there");
    }
}

#[tokio::test]
async fn a_damaged_file_is_refused_untouched() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("dynamodb.sqlite");
    std::fs::write(&file, noise(10_000)).expect("written");
    let refused = Embedded::open(dir.path()).err().expect("refused");
    assert!(matches!(refused, OpenError::Database { .. }), "{refused}");
    assert!(std::fs::read(&file).expect("still there") == noise(10_000).as_bytes());
}

#[tokio::test]
async fn a_directory_of_a_newer_version_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    drop(Embedded::open(dir.path()).expect("opened"));
    std::fs::write(dir.path().join("store.format"), "2\n").expect("written");
    let refused = Embedded::open(dir.path()).err().expect("refused");
    assert!(
        matches!(&refused, OpenError::Newer { found, .. } if found == "2"),
        "{refused}"
    );
}
