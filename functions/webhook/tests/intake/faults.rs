//! Crashes and storms between the sender and the run.

use futures::future::join_all;
use serde_json::json;
use slipway_model::status::Status;
use slipway_store::record::EventRecord;

use crate::{
    GIT, SECRET, deliver, history, minutes, on_push, only_run, push, runs, signature, world,
};

/// What a sender does: it posts again until it is answered.
#[tokio::test(start_paused = true)]
async fn f1_a_crash_anywhere_between_the_delivery_and_its_run_starts_one_run() {
    let body = push("0", "a", "2026-01-01T00:00:00Z");
    let signed = signature(SECRET, &body);
    let headers = [
        ("x-github-event", "push"),
        ("x-github-delivery", "d-1"),
        ("x-hub-signature-256", signed.as_str()),
    ];
    let mut crashes = 0;
    for request in 1.. {
        let mut reached = false;
        for after in [false, true] {
            let world = world().await;
            world.apply(&on_push("main", "")).await;
            let hooks = world.unheard_hooks();
            world.crash.arm(request, after);
            let mut answered = None;
            while answered.is_none() {
                answered = world.post_in_danger(&hooks, GIT, &headers, &body).await;
            }
            let (status, answer) = answered.unwrap_or_default();
            assert_eq!(status, 200);
            let event = answer["data"].as_str().expect("an event");
            world.handle(event).await;
            reached |= !world.crash.is_armed();
            world.crash.disarm();
            minutes(&world, 1).await;
            world.take_in().await;
            let run = only_run(&world).await;
            let rows = history(&world, "main").await;
            assert_eq!(rows.len(), 1, "request {request}, after {after}");
            assert_eq!(rows[0].run.as_ref(), Some(&run));
            let left = world.take_in().await.expect("an answer");
            assert_eq!(
                left,
                json!({"handled": 0, "failed": 0, "dead": 0, "due": 0, "hooks": 0})
            );
        }
        if !reached {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 10, "{crashes} requests");
}

/// Whoever starts the run of a push dies anywhere, and a newer push is handled before the next sweep.
#[tokio::test(start_paused = true)]
async fn f1_a_run_that_was_started_is_in_the_history_also_when_something_newer_came_meanwhile() {
    let mut overtaken = 0;
    for request in 1.. {
        let world = world().await;
        world.apply(&on_push("main", "")).await;
        let hooks = world.unheard_hooks();
        let (_, first) = deliver(&hooks, "d-1", &push("0", "a", "2026-01-01T00:00:00Z")).await;
        let (_, second) = deliver(&hooks, "d-2", &push("a", "b", "2026-01-01T00:01:00Z")).await;
        world.crash.arm(request, true);
        world
            .handle(first["data"].as_str().expect("an event"))
            .await;
        let reached = !world.crash.is_armed();
        world.crash.disarm();
        world
            .handle(second["data"].as_str().expect("an event"))
            .await;
        minutes(&world, 1).await;
        // The older one did not wait for the sweep, which would begin it behind the newer one.
        for run in runs(&world).await {
            assert_ne!(run.status, Status::NotStarted, "request {request}: {run:?}");
        }
        world.take_in().await;
        let rows = history(&world, "main").await;
        let told = rows.iter().filter(|row| row.run.is_some()).count();
        assert_eq!(
            (rows.len(), told),
            (2, runs(&world).await.len()),
            "request {request}"
        );
        overtaken += usize::from(told == 1);
        if !reached {
            break;
        }
    }
    assert!(overtaken > 3, "{overtaken}");
}

#[tokio::test(start_paused = true)]
async fn w17_a_thousand_copies_of_one_delivery_start_one_run() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let body = push("0", "a", "2026-01-01T00:00:00Z");
    let answers = join_all((0..1_000).map(|_| deliver(&hooks, "d-1", &body))).await;
    let first = &answers[0].1["data"];
    assert!(first.is_string());
    for (status, answer) in &answers {
        assert_eq!((*status, &answer["data"]), (200, first));
    }
    only_run(&world).await;
}

#[tokio::test(start_paused = true)]
async fn f7_an_event_that_cannot_be_handled_is_given_up_and_others_go_on() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let poison = EventRecord {
        id: "poison".to_owned(),
        account: slipway_model::id::AccountId::new("acme"),
        received_ms: world.runs.clock.now_ms(),
        delivery: None,
        digest: String::new(),
        first: None,
        overtaken_by: None,
        in_ref: None,
        body: json!({"kind": "Nonsense"}),
    };
    world.store.accept_event(&poison).await.expect("accepted");
    let hooks = world.unheard_hooks();
    deliver(&hooks, "d-1", &push("0", "a", "2026-01-01T00:00:00Z")).await;
    for attempt in 1..=5 {
        minutes(&world, 1).await;
        let swept = world.take_in().await.expect("an answer");
        let (failed, dead) = if attempt < 5 { (1, 0) } else { (0, 1) };
        assert_eq!(
            (&swept["failed"], &swept["dead"]),
            (&json!(failed), &json!(dead)),
            "{attempt}"
        );
        only_run(&world).await;
    }
    let dead = world
        .store
        .list_dead(&poison.account)
        .await
        .expect("a list");
    assert_eq!((dead.len(), dead[0].attempts), (1, 5));
    assert!(
        dead[0]
            .why
            .as_deref()
            .is_some_and(|why| why.contains("poison")),
        "{dead:?}"
    );
    minutes(&world, 1).await;
    let swept = world.take_in().await.expect("an answer");
    assert_eq!(swept["failed"], 0);
}

#[tokio::test(start_paused = true)]
async fn f8_an_event_that_waited_for_a_week_starts_nothing_when_it_is_handled_again() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.unheard_hooks();
    for (id, before, after) in [("d-1", "0", "a"), ("d-2", "a", "b")] {
        deliver(&hooks, id, &push(before, after, "2026-01-01T00:00:00Z")).await;
    }
    minutes(&world, 8 * 24 * 60).await;
    let swept = world.take_in().await.expect("an answer");
    assert_eq!(swept["handled"], 2);
    assert!(runs(&world).await.is_empty());
    for row in history(&world, "main").await {
        assert_eq!(row.status, "TARGET_DID_NOT_EXECUTE");
        assert!(row.message.contains("7 days"), "{}", row.message);
    }
    // Given back once more, it is still too old.
    let event = history(&world, "main").await[0].event.clone();
    let event = world
        .store
        .find_event(&event)
        .await
        .expect("an answer")
        .expect("an event");
    assert!(!world.store.redrive(&event).await.expect("an answer"));
}
