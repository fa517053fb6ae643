//! What opening a journal refuses.

use super::{Batch, FORMAT, Journal};
use crate::error::OpenError;
use crate::record::{Branch, Phase};
use crate::sync::lock;

#[test]
fn a_newer_format_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = Journal::open(Some(&path)).expect("opens");
    let second = Journal::open(Some(&path)).err();
    assert!(
        matches!(second, Some(OpenError::InUse { .. })),
        "{second:?}"
    );
    lock(&journal.writer)
        .pragma_update(None, "user_version", FORMAT + 1)
        .expect("written");
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
fn other_files_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let notes = folder.path().join("notes.txt");
    let text = "not a journal, but long enough to be taken for the header of one".repeat(20);
    std::fs::write(&notes, &text).expect("written");
    let refused = Journal::open(Some(&notes)).err();
    assert!(
        matches!(refused, Some(OpenError::Open { .. })),
        "{refused:?}"
    );
    assert_eq!(std::fs::read_to_string(&notes).expect("read"), text);

    let other = folder.path().join("other.db");
    let connection = rusqlite::Connection::open(&other).expect("opens");
    connection
        .execute_batch("CREATE TABLE t (x)")
        .expect("created");
    let refused = Journal::open(Some(&other)).err();
    assert!(
        matches!(refused, Some(OpenError::Foreign { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_an_older_version_wrote_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.db");
    drop(Journal::open(Some(&path)).expect("created"));
    let connection = rusqlite::Connection::open(&path).expect("opens");
    let execution = r#"{"arn":"a","name":"n","machine":"m","machine_name":"m","role":"r","revision":"v",
        "input":"{}","status":"Running","start_ms":0,"stop_ms":null,"output":null,"error":null,"cause":null,
        "parent":null,"trace":null}"#;
    let branch = r#"{"parent":null,"machine":0,"state":"S","input":{},"item":null,"variables":{},"previous":3,
        "entered":2,"before":0,"entered_ms":0,"retries":[],"phase":{"Task":{"attempt":3,"deadline_ms":null,
        "timeout_seconds":null,"heartbeat_seconds":null,"heartbeat_ms":null,"nonce":null,
        "awaited":{"Function":{"name":"f","payload":{}}}}}}"#;
    let map_run = r#"{"arn":"p","execution":"a","machine":"m","start_ms":0,"stop_ms":1,"status":"Failed",
        "max_concurrency":1,"tolerated_count":0,"tolerated_percentage":0.0,"items":1,"children":1,"succeeded":0,
        "failed":1}"#;
    let under_way = branch.replace(
        r#"{"Task":{"attempt":3,"deadline_ms":null,
        "timeout_seconds":null,"heartbeat_seconds":null,"heartbeat_ms":null,"nonce":null,
        "awaited":{"Function":{"name":"f","payload":{}}}}}"#,
        r#"{"MapRun":{"branch":1,"arn":"p","started":4,"start_ms":0,"inputs":[1],"items":1,"max_concurrency":1,
        "tolerated_count":null,"tolerated_percentage":null,"writing":false}}"#,
    );
    let records = [
        (super::key::execution(7), execution),
        (super::key::branch(7, 0), branch),
        (super::key::branch(7, 1), under_way.as_str()),
        (super::key::map_run("p"), map_run),
    ];
    for (key, record) in records {
        connection
            .execute(super::PUT, (key, record.as_bytes()))
            .expect("written");
    }
    connection
        .pragma_update(None, "user_version", 1)
        .expect("dated back");
    drop(connection);

    let journal = Journal::open(Some(&path)).expect("opens");
    let execution = journal.execution(7).expect("read").expect("there");
    assert!(!execution.express && execution.map_run.is_none());
    assert!(execution.redrives.is_none());
    let branches = journal.branches(7).expect("read");
    let is_map_run = |branch: &Branch| matches!(branch.phase, Phase::MapRun(_));
    let phases: Vec<bool> = branches.iter().map(|(_, b)| is_map_run(b)).collect();
    assert_eq!(phases, [false, true]);
    assert_eq!(journal.remains(7).expect("read").len(), 0);
    let map_run = journal.map_run("p").expect("read").expect("there");
    assert!(map_run.redrives.is_none());
    let version: i64 = rusqlite::Connection::open(&path)
        .and_then(|connection| {
            connection.pragma_query_value(None, "user_version", |row| row.get(0))
        })
        .expect("a version");
    assert_eq!(
        version,
        super::FORMAT,
        "an older version must not read what this one writes"
    );
}

#[tokio::test]
async fn large_records_are_packed_beside_those_that_are_not() {
    let journal = Journal::open(None).expect("opens");
    let activity = |name: String| crate::record::Activity {
        arn: name.clone(),
        name,
        created_ms: 0,
    };
    let names = ["short".to_owned(), "long".repeat(200)];
    let mut batch = Batch::default();
    for name in &names {
        let record = activity(name.clone());
        batch.put(super::key::activity(name), &record).expect("put");
    }
    journal.commit(batch).await.expect("written");
    for (name, first) in names.iter().zip([b'{', 1]) {
        let stored: Vec<u8> = lock(&journal.writer)
            .query_row(
                "SELECT value FROM journal WHERE key = ?1",
                [super::key::activity(name)],
                |row| row.get(0),
            )
            .expect("there");
        assert_eq!(stored.first(), Some(&first));
        let read = journal.activity(name).expect("read").expect("there");
        assert_eq!(read.name, *name);
    }
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
