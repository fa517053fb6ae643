//! Nodes, waits and plans.

use serde_json::{Value, json};
use slipway_model::id::{EntityId, LaneId, NodeId, PrincipalId, StageId};
use slipway_model::status::Status;
use slipway_store::record::{NodeRecord, SignalRecord, UnitRecord, WaitRecord};
use slipway_store::{NodeEnd, Store, StoreError};

use crate::{noise, run, store};

fn node(name: &str, attempt: u32) -> NodeRecord {
    NodeRecord {
        run: run("r1"),
        id: NodeId::new(name),
        stage: StageId::new("s"),
        lane: LaneId::new("l"),
        attempt,
        identifier: EntityId::new(name),
        name: name.to_owned(),
        node_type: "Http".to_owned(),
        status: Status::Running,
        started_ms: 5,
        ended_ms: None,
        failure: None,
        spec: json!({"url": "http://x"}),
        outputs: Value::Null,
        progress: Value::Null,
        units: Vec::new(),
        delegate: None,
        asked_ms: None,
        round: 0,
        base: 0,
        refused: Vec::new(),
    }
}

fn end(name: &str) -> NodeEnd {
    NodeEnd {
        run: run("r1"),
        node: NodeId::new(name),
        attempt: 0,
        status: Status::Success,
        failure: None,
        outputs: json!({"code": 200}),
        refused: Vec::new(),
        units: vec![UnitRecord {
            name: "Execute".to_owned(),
            status: "SUCCESS".to_owned(),
            started_ms: 5,
            ended_ms: Some(6),
        }],
        progress: None,
    }
}

async fn names(store: &Store, stage: Option<&str>) -> Vec<String> {
    let stage = stage.map(StageId::new);
    let nodes = store
        .list_nodes(&run("r1"), stage.as_ref())
        .await
        .expect("listed");
    nodes
        .iter()
        .map(|n| format!("{}.{} {:?}", n.id, n.attempt, n.status))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn an_attempt_starts_once_remembers_and_ends_once() {
    let store = store();
    store.start_node(&node("a", 0)).await.expect("started");
    let twice = store
        .start_node(&node("a", 0))
        .await
        .expect_err("it was started");
    assert_eq!(twice.to_string(), "attempt 0 of node a exists already");
    let progress = json!({"state": {"taskDefinition": "arn"}, "units": [
        {"name": "Deploy", "status": "RUNNING", "started_ms": 5, "ended_ms": null},
    ]});
    store
        .save_progress(&run("r1"), &NodeId::new("a"), 0, &progress)
        .await
        .expect("saved");
    // Whoever looks meanwhile sees where it is.
    let open = store.get_node(&run("r1"), &NodeId::new("a")).await;
    let units = open.expect("an answer").expect("a node").units;
    let units: Vec<_> = units
        .iter()
        .map(|unit| (&*unit.name, &*unit.status))
        .collect();
    assert_eq!(units, [("Deploy", "RUNNING")]);
    store.end_node(&end("a")).await.expect("ended");
    let twice = store.end_node(&end("a")).await;
    assert!(
        matches!(twice, Err(StoreError::NotFound { .. })),
        "{twice:?}"
    );

    let read = store
        .get_node(&run("r1"), &NodeId::new("a"))
        .await
        .expect("read")
        .expect("there");
    let expected = NodeRecord {
        status: Status::Success,
        ended_ms: Some(1_767_225_600_000),
        outputs: end("a").outputs,
        units: end("a").units,
        progress,
        ..node("a", 0)
    };
    assert_eq!(read, expected);
}

#[tokio::test(start_paused = true)]
async fn end_and_start_are_one_write_and_happen_both_or_not_at_all() {
    let store = store();
    store.start_node(&node("a", 0)).await.expect("started");
    let before = store.writes();
    store
        .end_and_start(&end("a"), Some(&node("b", 0)))
        .await
        .expect("moved on");
    assert_eq!(store.writes() - before, 1);
    let again = store.end_and_start(&end("a"), Some(&node("c", 0))).await;
    assert!(
        matches!(again, Err(StoreError::Conflict { .. })),
        "{again:?}"
    );
    let again = store.end_and_start(&end("b"), Some(&node("a", 0))).await;
    assert!(
        matches!(again, Err(StoreError::Conflict { .. })),
        "{again:?}"
    );
    assert_eq!(names(&store, None).await, ["a.0 Success", "b.0 Running"]);
}

#[tokio::test(start_paused = true)]
async fn attempts_and_stages_are_told_apart() {
    let store = store();
    for attempt in 0..12 {
        store
            .start_node(&node("a", attempt))
            .await
            .expect("started");
    }
    let other = NodeRecord {
        stage: StageId::new("t"),
        ..node("a.b", 0)
    };
    store.start_node(&other).await.expect("started");
    let newest = store
        .get_node(&run("r1"), &NodeId::new("a"))
        .await
        .expect("read");
    assert_eq!(newest.expect("there").attempt, 11);
    assert_eq!(names(&store, Some("t")).await, ["a.b.0 Running"]);
    assert_eq!(names(&store, Some("s")).await.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_read_with_the_nodes_of_one_stage_in_one_round_trip() {
    let store = store();
    let (id, stage) = (run("r1"), StageId::new("s"));
    store.start_node(&node("a", 0)).await.expect("started");
    let none = store.get_run_with_nodes(&id, &stage).await;
    assert!(matches!(none, Err(StoreError::NotFound { .. })), "{none:?}");
    let record = crate::runs::record("r1", 10);
    store.create_run(&record).await.expect("created");
    let other = NodeRecord {
        stage: StageId::new("t"),
        ..node("b", 0)
    };
    let early = NodeRecord {
        started_ms: 1,
        ..node("c", 0)
    };
    for node in [&other, &early, &node("a", 1)] {
        store.start_node(node).await.expect("started");
    }
    let tags = [("k".to_owned(), "v".to_owned())];
    store.add_tags(&id, &tags).await.expect("tagged");
    for (kind, at_ms) in [("a", 20), ("b", 10)] {
        let signal = SignalRecord {
            run: id.clone(),
            node: NodeId::new("a"),
            attempt: 0,
            kind: kind.to_owned(),
            says: String::new(),
            who: PrincipalId::new("sam"),
            at_ms,
        };
        store.put_signal(&signal).await.expect("said");
    }
    store
        .request_abort(&id, &PrincipalId::new("sam"))
        .await
        .expect("asked");

    let before = store.reads();
    let (read, nodes) = store.get_run_with_nodes(&id, &stage).await.expect("read");
    assert_eq!(store.reads() - before, 1);
    assert_eq!(read, store.get_run(&id).await.expect("read"));
    assert_eq!((read.signals.len(), read.tags.len()), (2, 1));
    assert_eq!(
        nodes,
        store.list_nodes(&id, Some(&stage)).await.expect("read")
    );
    let told = nodes
        .iter()
        .map(|node| format!("{}.{}", node.id, node.attempt));
    assert_eq!(told.collect::<Vec<_>>(), ["c.0", "a.0", "a.1"]);
}

#[tokio::test(start_paused = true)]
async fn large_values_of_a_node_spill_and_come_back() {
    let store = store();
    let large = json!({"text": noise(2_000_000)});
    let medium = json!({"text": noise(60_000)});
    let new = NodeRecord {
        spec: large.clone(),
        progress: medium.clone(),
        ..node("a", 0)
    };
    store.start_node(&new).await.expect("started");
    let ended = NodeEnd {
        outputs: medium,
        progress: Some(large),
        ..end("a")
    };
    store.end_node(&ended).await.expect("ended");
    let read = store
        .get_node(&run("r1"), &NodeId::new("a"))
        .await
        .expect("read")
        .expect("there");
    assert!(read.spec == new.spec && read.outputs == ended.outputs);
    assert!(Some(read.progress) == ended.progress);
}

#[tokio::test(start_paused = true)]
async fn of_all_who_take_a_wait_one_gets_it() {
    let store = store();
    let wait = WaitRecord {
        run: run("r1"),
        node: NodeId::new("a"),
        attempt: 0,
        kind: "delegate".to_owned(),
        token: Some("t".to_owned()),
        task: None,
    };
    store.put_wait(&wait).await.expect("noted");
    assert_eq!(
        store.list_waits(&run("r1")).await.expect("listed"),
        std::slice::from_ref(&wait)
    );
    let take = || store.take_wait(&wait.run, &wait.node, 0, "delegate");
    assert_eq!(take().await.expect("taken"), Some(wait.clone()));
    assert_eq!(take().await.expect("too late"), None);
    assert_eq!(store.list_waits(&run("r1")).await.expect("listed"), []);
}

#[tokio::test(start_paused = true)]
async fn blobs_are_found_by_what_they_hold() {
    let store = store();
    for size in [0, 10, 90_000, 500_000] {
        let content = noise(size);
        let digest = store.put_blob(content.as_bytes()).await.expect("stored");
        assert_eq!(
            store
                .put_blob(content.as_bytes())
                .await
                .expect("stored again"),
            digest
        );
        assert!(
            store.get_blob(&digest).await.expect("read") == content.as_bytes(),
            "{size}"
        );
    }
    let missing = store.get_blob("00").await.expect_err("not there");
    assert_eq!(missing.to_string(), "blob 00 does not exist");
}
