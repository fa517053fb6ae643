//! What opening a journal refuses.

use super::{Batch, FORMAT, Journal};
use crate::error::OpenError;

#[tokio::test]
async fn a_newer_format_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.redb");
    let journal = Journal::open(Some(&path)).expect("opens");
    let mut batch = Batch::default();
    batch.put_bytes(b"f".to_vec(), (FORMAT + 1).to_be_bytes().to_vec());
    journal.commit(batch).await.expect("written");
    assert!(matches!(
        Journal::open(Some(&path)).err(),
        Some(OpenError::Open { .. })
    ));
    drop(journal);
    let error = Journal::open(Some(&path))
        .err()
        .expect("refused")
        .to_string();
    let found = format!(
        "has format {}, this version reads up to {FORMAT}",
        FORMAT + 1
    );
    assert!(error.contains(&found), "{error}");
}

#[test]
fn another_file_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "not a journal").expect("written");
    assert!(matches!(
        Journal::open(Some(&path)).err(),
        Some(OpenError::Open { .. })
    ));
    assert_eq!(
        std::fs::read_to_string(&path).expect("read"),
        "not a journal"
    );
}

#[tokio::test]
async fn batches_that_wait_share_a_commit() {
    let journal = Journal::open(None).expect("opens");
    let batches = (0..10_u8).map(|i| {
        let mut batch = Batch::default();
        batch.put_bytes(vec![b'z', i], vec![i]);
        journal.commit(batch)
    });
    let turn = journal.turn.lock().await;
    let mut all = std::pin::pin!(futures::future::join_all(batches));
    assert!(futures::poll!(&mut all).is_pending());
    drop(turn);
    for result in all.await {
        result.expect("written");
    }
    let commits = journal
        .usage
        .commits
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(commits, 1);
}
