//! Runs, their stages, their numbers and their lists.

use std::collections::BTreeSet;

use slipway_model::id::{PrincipalId, StageId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_store::embedded::Embedded;
use slipway_store::record::{Again, Origin, RunRecord, StageSummary};
use slipway_store::{Page, StoreError};

use crate::{clock, id, run, scope, store};

pub(crate) fn record(name: &str, started_ms: i64) -> RunRecord {
    RunRecord {
        id: run(name),
        scope: scope(),
        pipeline: id("deploy"),
        name: "Deploy".to_owned(),
        sequence: 1,
        status: Status::NotStarted,
        trigger_type: "MANUAL".to_owned(),
        triggered_by: PrincipalId::new("me"),
        started_ms,
        ended_ms: None,
        yaml: "digest".to_owned(),
        inputs: None,
        plan: None,
        failure: None,
        abort: None,
        signals: Vec::new(),
        parent: None,
        trigger: None,
        tags: Vec::new(),
        stages: Vec::new(),
        chosen: None,
        origin: None,
        notes: String::new(),
        url: None,
        git: None,
    }
}

fn stage(name: &str, status: Status) -> StageSummary {
    StageSummary {
        id: StageId::new(name),
        name: name.to_owned(),
        stage_type: "Custom".to_owned(),
        status,
        started_ms: None,
        ended_ms: None,
        failure: None,
        rolled_back: false,
        undoes_run: false,
        taken_apart: false,
        undo: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_created_once_planned_and_ended_once() {
    let store = store();
    let new = record("r1", 10);
    store.create_run(&new).await.expect("created");
    assert_eq!(store.get_run(&run("r1")).await.expect("read"), new);
    let again = store.create_run(&new).await.expect_err("it is there");
    assert_eq!(again.to_string(), "run r1 exists already");

    let stages = [
        stage("b", Status::NotStarted),
        stage("a", Status::NotStarted),
    ];
    store
        .set_run_planned(&run("r1"), "plan-digest", &stages)
        .await
        .expect("planned");
    store
        .put_stage(&run("r1"), &stage("a", Status::Running))
        .await
        .expect("stored");
    let read = store.get_run(&run("r1")).await.expect("read");
    let seen: Vec<_> = read
        .stages
        .iter()
        .map(|s| (s.id.as_str(), s.status))
        .collect();
    assert_eq!(seen, [("b", Status::NotStarted), ("a", Status::Running)]);
    assert_eq!(
        (read.status, read.plan.as_deref()),
        (Status::Running, Some("plan-digest"))
    );

    let failure = Failure {
        error: ErrorType::Timeout,
        message: "too slow".to_owned(),
        left_behind: None,
    };
    let end = |to| {
        let store = store.clone();
        let failure = failure.clone();
        async move {
            let from = [Status::Running, Status::Discontinuing];
            store
                .set_run_status(&run("r1"), &from, to, Some(&failure))
                .await
        }
    };
    end(Status::Failed).await.expect("ended");
    let twice = end(Status::Success).await;
    assert!(
        matches!(twice, Err(StoreError::Conflict { .. })),
        "{twice:?}"
    );
    let read = store.get_run(&run("r1")).await.expect("read");
    assert_eq!((read.status, read.failure), (Status::Failed, Some(failure)));
    assert_eq!(read.ended_ms, Some(1_767_225_600_000));
    let missing = store
        .set_run_status(&run("r2"), &[Status::Running], Status::Failed, None)
        .await;
    assert!(
        matches!(missing, Err(StoreError::NotFound { .. })),
        "{missing:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_wish_to_abort_stays() {
    let store = store();
    store.create_run(&record("r1", 10)).await.expect("created");
    store
        .request_abort(&run("r1"), &PrincipalId::new("ann"))
        .await
        .expect("noted");
    let second = store
        .request_abort(&run("r1"), &PrincipalId::new("bob"))
        .await;
    assert!(
        matches!(second, Err(StoreError::Conflict { .. })),
        "{second:?}"
    );
    let read = store.get_run(&run("r1")).await.expect("read");
    assert_eq!(
        read.abort.map(|(who, _)| who),
        Some(PrincipalId::new("ann"))
    );
}

#[tokio::test(start_paused = true)]
async fn runs_are_listed_newest_first_by_scope_and_by_pipeline() {
    let store = store();
    for n in 0..5 {
        let pipeline = if n == 2 { "other" } else { "deploy" };
        let new = RunRecord {
            pipeline: id(pipeline),
            ..record(&format!("r{n}"), 1000 + n)
        };
        store.create_run(&new).await.expect("created");
    }
    let names = |listing: &slipway_store::Listing<RunRecord>| {
        listing
            .items
            .iter()
            .map(|r| r.id.to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let first = store
        .list_runs(&scope(), None, Page::first(3))
        .await
        .expect("listed");
    assert_eq!(names(&first), "r4 r3 r2");
    let rest = Page {
        limit: 3,
        after: first.next,
    };
    let rest = store.list_runs(&scope(), None, rest).await.expect("listed");
    assert_eq!((names(&rest).as_str(), rest.next), ("r1 r0", None));
    let of = store
        .list_runs(&scope(), Some(&id("deploy")), Page::first(9))
        .await
        .expect("listed");
    assert_eq!(names(&of), "r4 r3 r1 r0");
}

#[tokio::test]
async fn sixty_four_at_once_get_sixty_four_numbers() {
    let store = store();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let store = store.clone();
        tasks.spawn(async move { store.next_sequence(&scope(), &id("deploy")).await });
    }
    let numbers: BTreeSet<u64> = tasks
        .join_all()
        .await
        .into_iter()
        .map(|n| n.expect("a number").number)
        .collect();
    assert_eq!(numbers, (1..=64).collect());
    assert_eq!(
        store
            .next_sequence(&scope(), &id("other"))
            .await
            .expect("a number")
            .number,
        1
    );
}

/// Puts one attribute of a run's own item.
async fn rewrite(embedded: &Embedded, name: &str, attribute: &str, value: &str) {
    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    let store = embedded.store(clock());
    embedded
        .dynamodb()
        .update_item()
        .table_name(&store.layout().runs)
        .key("pk", text(&format!("run#{name}")))
        .key("sk", text("run"))
        .condition_expression("attribute_exists(pk)")
        .update_expression("SET #name = :value")
        .expression_attribute_names("#name", attribute)
        .expression_attribute_values(":value", text(value))
        .send()
        .await
        .expect("rewritten");
}

#[tokio::test(start_paused = true)]
async fn y20_records_of_other_versions_are_read_or_left_out_of_lists() {
    let embedded = Embedded::temporary().expect("embedded services");
    let store = embedded.store(clock());
    for (at, name) in [(1, "old"), (2, "future"), (3, "now"), (4, "torn")] {
        let record = record(name, at);
        store.create_run(&record).await.expect("created");
    }
    // An older version knew no tags and no stages; a newer one writes a field that nobody here knows.
    let mut body = serde_json::to_value(record("old", 1)).expect("JSON");
    let fields = body.as_object_mut().expect("an object");
    fields.remove("tags").expect("there were tags");
    fields.remove("stages").expect("there were stages");
    fields.insert("colour".to_owned(), "blue".into());
    rewrite(&embedded, "old", "body", &body.to_string()).await;
    rewrite(&embedded, "future", "status", "Dreaming").await;
    rewrite(&embedded, "torn", "body", "{\"id\": ").await;

    assert_eq!(
        store.get_run(&run("old")).await.expect("read"),
        record("old", 1)
    );
    for name in ["future", "torn"] {
        let alone = store.get_run(&run(name)).await.expect_err("unreadable");
        assert!(matches!(alone, StoreError::Unreadable { .. }), "{alone}");
    }
    let listed = store.list_runs(&scope(), None, Page::first(9)).await;
    let ids: Vec<_> = listed
        .expect("listed")
        .items
        .into_iter()
        .map(|run| run.id.to_string())
        .collect();
    assert_eq!(ids, ["now", "old"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_retried_once_and_so_is_its_retry() {
    let store = store();
    let origin = |of: &str| Origin {
        run: run(of),
        how: Again::Retry,
        root: run("r1"),
        root_started_ms: 10,
        stages: vec![StageId::new("b")],
        kept: vec![(StageId::new("a"), run("r1"))],
    };
    let retry = |name: &str, of: &str| RunRecord {
        origin: Some(origin(of)),
        notes: "why".to_owned(),
        ..record(name, 20)
    };
    store.create_run(&record("r1", 10)).await.expect("created");
    let alone = store.list_retries(&run("r1")).await.expect("read");
    assert_eq!(alone, [run("r1")]);
    // The order of names says nothing about the order of the chain.
    for (name, of) in [("z", "r1"), ("b", "z"), ("m", "b")] {
        store.create_run(&retry(name, of)).await.expect("created");
    }
    let again = store.create_run(&retry("y", "r1")).await;
    assert!(
        matches!(again, Err(StoreError::AlreadyExists { .. })),
        "{again:?}"
    );
    assert_eq!(store.find_run(&run("y")).await.expect("read"), None);
    let chain = store.list_retries(&run("r1")).await.expect("read");
    assert_eq!(chain, [run("r1"), run("z"), run("b"), run("m")]);
    let read = store.get_run(&run("z")).await.expect("read");
    assert_eq!(read, retry("z", "r1"));
    assert_eq!(read.doer(&StageId::new("a")), &run("r1"));
    assert_eq!(read.doer(&StageId::new("b")), &run("z"));
    assert_eq!(read.root(), &run("r1"));
    // A rerun is a run of its own.
    let rerun = RunRecord {
        origin: Some(Origin {
            how: Again::Rerun,
            ..origin("r1")
        }),
        ..record("other", 30)
    };
    store.create_run(&rerun).await.expect("created");
    assert_eq!(rerun.root(), &run("other"));
}

#[tokio::test(start_paused = true)]
async fn notes_are_changed_whenever_there_is_a_run() {
    let store = store();
    let missing = store.set_notes(&run("r1"), "x").await;
    assert!(
        matches!(missing, Err(StoreError::NotFound { .. })),
        "{missing:?}"
    );
    store.create_run(&record("r1", 10)).await.expect("created");
    for notes in ["CHG-1", ""] {
        store.set_notes(&run("r1"), notes).await.expect("noted");
        assert_eq!(store.get_run(&run("r1")).await.expect("read").notes, notes);
    }
}

#[tokio::test(start_paused = true)]
async fn tags_are_added_and_the_newest_value_counts() {
    let store = store();
    let of = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let new = RunRecord {
        tags: vec![of("team", "shop")],
        ..record("r1", 10)
    };
    store.create_run(&new).await.expect("created");
    store
        .put_stage(&run("r1"), &stage("a", Status::Success))
        .await
        .expect("stored");
    let sets = [
        vec![of("version", "1"), of("team", "pay")],
        vec![of("version", "2")],
        vec![of("version", "1"), of("team", "pay")],
    ];
    for tags in &sets {
        store.add_tags(&run("r1"), tags).await.expect("added");
        clock().sleep(std::time::Duration::from_millis(5)).await;
    }
    let read = store.get_run(&run("r1")).await.expect("read");
    assert_eq!(read.tags.len(), 2);
    assert_eq!(read.tags[0], of("team", "pay"));
    assert_eq!(read.stages.len(), 1, "{:?}", read.stages);
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_is_listed_until_it_begins_and_its_pipeline_falls_behind() {
    let store = store();
    let shard = slipway_store::Store::shard_of(&scope());
    let listed = async |before_ms| {
        let listed = store.list_unstarted(shard, before_ms, 9).await;
        let runs = listed.expect("listed").into_iter().map(|one| one.run);
        runs.map(|run| run.to_string()).collect::<Vec<_>>()
    };
    for (name, at) in [("b", 20), ("a", 10), ("c", 30)] {
        store.create_run(&record(name, at)).await.expect("created");
    }
    assert_eq!(listed(100).await, ["a", "b", "c"]);
    assert_eq!(listed(30).await, ["a", "b"], "what is as new is under way");
    let (a, first) = (record("a", 10), stage("s", Status::Running));
    store.begin_run(&a, Some(&first)).await.expect("begun");
    let ended = stage("s", Status::Success);
    store.put_stage(&a.id, &ended).await.expect("ended");
    let late = store.begin_run(&a, Some(&first)).await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })), "{late:?}");
    store.begin_run(&a, None).await.expect("begun");
    assert_eq!(store.list_stages(&a.id).await.expect("read"), [ended]);
    assert_eq!(listed(100).await, ["b", "c"]);
    let status = store.get_run(&run("a")).await.expect("read").status;
    assert_eq!(status, Status::Running);
    let open = [Status::NotStarted];
    let b = run("b");
    let ended = store.set_run_status(&b, &open, Status::Errored, None);
    ended.await.expect("ended");
    let late = store.begin_run(&record("b", 20), None).await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })), "{late:?}");
    let left = store.list_unstarted(shard, 25, 9).await.expect("listed");
    store.forget_unstarted(&left[0]).await.expect("forgotten");
    assert_eq!(listed(100).await, ["c"]);

    let behind = async || {
        let sequence = store.next_sequence(&scope(), &id("deploy")).await;
        sequence.expect("a number").behind
    };
    assert!(!behind().await);
    store
        .fall_behind(&scope(), &id("deploy"))
        .await
        .expect("noted");
    assert!(behind().await && behind().await);
    let left = store.list_unstarted(shard, 100, 9).await.expect("listed");
    store.catch_up(&left[0]).await.expect("noted");
    assert!(!behind().await);
}
