//! Logs of command units.

use slipway_model::id::NodeId;
use slipway_store::Store;
use slipway_store::record::LogLine;

use crate::{noise, run, store};

fn line(out: impl Into<String>) -> LogLine {
    LogLine {
        level: "INFO".to_owned(),
        out: out.into(),
        time: "2026-01-01T00:00:00.000Z".to_owned(),
    }
}

async fn append(store: &Store, lines: &[LogLine]) {
    store
        .append_log(&run("r1"), &NodeId::new("a"), "Execute", lines)
        .await
        .expect("appended");
}

/// The texts from a line on, and whether the log is complete.
async fn read(store: &Store, mut after: u64) -> (Vec<String>, bool) {
    let mut texts = Vec::new();
    loop {
        let page = store
            .read_log(&run("r1"), &NodeId::new("a"), "Execute", after)
            .await;
        let page = page.expect("read");
        let more = page.next > after;
        texts.extend(page.lines.into_iter().map(|line| line.out));
        after = page.next;
        if page.closed || !more {
            return (texts, page.closed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lines_come_back_in_order_from_any_line_on() {
    let store = store();
    assert_eq!(read(&store, 0).await, (vec![], false));
    append(&store, &[line("0"), line("1"), line("2")]).await;
    append(&store, &[]).await;
    append(&store, &[line("3")]).await;
    append(&store, &[line("4"), line("5")]).await;
    for from in 0..=7_usize {
        let expected: Vec<String> = (from..6).map(|n| n.to_string()).collect();
        assert_eq!(
            read(&store, from as u64).await,
            (expected, false),
            "from {from}"
        );
    }
    store
        .close_log(&run("r1"), &NodeId::new("a"), "Execute")
        .await
        .expect("closed");
    assert_eq!(
        read(&store, 4).await,
        (vec!["4".to_owned(), "5".to_owned()], true)
    );
}

#[tokio::test]
async fn writers_that_do_not_know_of_each_other_lose_nothing() {
    let embedded = slipway_store::embedded::Embedded::temporary().expect("embedded services");
    let (one, two) = (
        embedded.store(crate::clock()),
        embedded.store(crate::clock()),
    );
    for n in 0..10 {
        append(if n % 3 == 0 { &one } else { &two }, &[line(n.to_string())]).await;
    }
    let expected: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    assert_eq!(read(&one, 0).await.0, expected);
}

#[tokio::test(start_paused = true)]
async fn a_large_log_is_written_and_read_in_bounded_parts() {
    let store = store();
    let long = noise(60_000);
    let lines: Vec<LogLine> = (0..200).map(|n| line(format!("{n} {long}"))).collect();
    append(&store, &lines).await;
    let page = store
        .read_log(&run("r1"), &NodeId::new("a"), "Execute", 0)
        .await
        .expect("read");
    let size: usize = page.lines.iter().map(|line| line.out.len()).sum();
    assert!((1_000_000..2_000_000).contains(&size), "{size}");
    assert_eq!(read(&store, 0).await.0.len(), 200);
    assert_eq!(read(&store, 157).await.0[0], lines[157].out);
}
