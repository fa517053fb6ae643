//! The hold of an infrastructure, and leases.

use std::time::Duration;

use slipway_model::id::StageId;
use slipway_store::{Claim, Holder, Missed, MissedRecord, Turn};

use crate::{clock, run, store};

fn holder(n: usize) -> Holder {
    Holder {
        run: run(&format!("r{n}")),
        stage: StageId::new("s"),
        attempt: 0,
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_first_is_served_first() {
    let store = store();
    let hold = |n, token| {
        let store = store.clone();
        async move {
            store
                .hold("svc/infra", &holder(n), token)
                .await
                .expect("an answer")
        }
    };
    let release = |n| {
        let store = store.clone();
        async move {
            store
                .release("svc/infra", &holder(n))
                .await
                .expect("an answer")
        }
    };
    assert_eq!(hold(0, None).await, Turn::Held);
    assert_eq!(hold(1, None).await, Turn::Waiting(1));
    assert_eq!(hold(2, Some("two")).await, Turn::Waiting(2));
    let ahead = async |key: &'static str| store.ahead_of(key, |own| *own == holder(2)).await;
    assert_eq!(
        ahead("svc/infra").await.expect("a line"),
        [holder(0), holder(1)]
    );
    assert_eq!(ahead("nobody's").await.expect("a line"), []);
    assert_eq!(
        hold(1, Some("one")).await,
        Turn::Waiting(1),
        "asking again keeps the place"
    );
    assert_eq!(release(0).await, ["one"]);
    assert_eq!(
        release(0).await,
        ["one"],
        "again, should the first answer be lost"
    );
    assert_eq!(hold(1, None).await, Turn::Held);
    assert_eq!(release(2).await, ["one"], "a waiter may leave");
    assert!(release(1).await.is_empty());
    assert_eq!(hold(3, None).await, Turn::Held);
    assert_eq!(
        store
            .hold("other", &holder(4), None)
            .await
            .expect("an answer"),
        Turn::Held
    );
}

#[tokio::test]
async fn a_part_of_who_holds_does_not_wait_for_it() {
    let store = store();
    let turn = store.hold("k", &holder(0), Some("parent")).await;
    assert_eq!(turn.expect("asked"), Turn::Held);
    let turn = store.hold("k", &holder(1), Some("stranger")).await;
    assert_eq!(turn.expect("asked"), Turn::Waiting(1));
    let child = Claim {
        holder: holder(2),
        within: vec![holder(0)],
        widens: None,
        token: Some("child".to_owned()),
    };
    let claimed = store.claim("k", &child).await.expect("asked");
    assert_eq!((claimed.turn, claimed.called), (Turn::Held, vec![]));
    let ahead = store.ahead_of("k", |own| *own == holder(1)).await;
    assert_eq!(ahead.expect("a line"), [holder(0), holder(2)]);
    let called = store.release("k", &holder(0)).await;
    assert_eq!(called.expect("given back"), ["child"]);
    let called = store.release("k", &holder(2)).await;
    assert_eq!(called.expect("given back"), ["stranger"]);
}

#[tokio::test]
async fn of_many_at_once_each_has_its_turn_alone() {
    let store = store();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..32 {
        let store = store.clone();
        tasks.spawn(async move { store.hold("k", &holder(n), Some(&format!("t{n}"))).await });
    }
    let turns = tasks.join_all().await;
    let held = turns
        .iter()
        .filter(|turn| matches!(turn, Ok(Turn::Held)))
        .count();
    assert_eq!(
        (held, turns.iter().filter(|turn| turn.is_ok()).count()),
        (1, 32)
    );

    let mut served = Vec::new();
    let mut next = (0..32).find(|n| matches!(turns[*n], Ok(Turn::Held)));
    while let Some(n) = next {
        served.push(n);
        let tokens = store.release("k", &holder(n)).await.expect("given back");
        let token = tokens.first().and_then(|token| token.strip_prefix('t'));
        next = token.and_then(|n| n.parse().ok());
    }
    served.sort_unstable();
    assert_eq!(served, (0..32).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_by_itself() {
    let store = store();
    let take = |who: &'static str| {
        let store = store.clone();
        async move {
            store
                .take_lease("sweep", who, Duration::from_secs(60))
                .await
                .expect("asked")
        }
    };
    assert!(take("a").await && take("a").await);
    assert!(!take("b").await);
    clock().sleep(Duration::from_secs(61)).await;
    assert!(take("b").await && !take("a").await);
    store
        .release_lease("sweep", "a")
        .await
        .expect("not its own: nothing happens");
    assert!(!take("a").await);
    store.release_lease("sweep", "b").await.expect("given back");
    assert!(take("a").await);
}

#[tokio::test(start_paused = true)]
async fn what_a_receiver_missed_is_bounded_counted_and_kept_once() {
    let store = store();
    let message = |number: i64| MissedRecord {
        id: format!("m/{number}"),
        at_ms: number,
        message: serde_json::json!({"number": number}),
    };
    for number in [3, 1, 2, 1] {
        store
            .keep_missed("hook", &message(number))
            .await
            .expect("kept");
    }
    let missed = store.missed("hook").await.expect("read");
    let order: Vec<i64> = missed.messages.iter().map(|one| one.at_ms).collect();
    assert_eq!((order, missed.left_out), (vec![1, 2, 3], 0));
    assert_eq!(
        store.missed("other").await.expect("read"),
        Missed::default()
    );

    for number in 4..=67 {
        let kept = store.keep_missed("hook", &message(number)).await;
        kept.expect("kept");
    }
    // Of those that come at once each has its room made for it.
    let mut tasks = tokio::task::JoinSet::new();
    for number in 68..=70 {
        let (store, message) = (store.clone(), message(number));
        tasks.spawn(async move { store.keep_missed("hook", &message).await });
    }
    for kept in tasks.join_all().await {
        kept.expect("kept");
    }
    let missed = store.missed("hook").await.expect("read");
    assert_eq!((missed.messages.len(), missed.left_out), (50, 20));
    assert_eq!(missed.messages.last().map(|one| one.at_ms), Some(70));

    // What came after it was read stays.
    store.keep_missed("hook", &message(71)).await.expect("kept");
    store
        .forget_missed("hook", &missed)
        .await
        .expect("forgotten");
    let left = store.missed("hook").await.expect("read");
    let order: Vec<i64> = left.messages.iter().map(|one| one.at_ms).collect();
    assert_eq!((order, left.left_out), (vec![71], 1));
}
