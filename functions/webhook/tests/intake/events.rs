//! Faults of services between the delivery and its run: names begin with the id of their case in `docs/hostile.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use slipway_model::status::Status;
use slipway_world::minutes;
use slipway_world::tap::{Invocation, Place, Tap, Verdict};

use crate::{
    GIT, SECRET, deliver, history, on_push, only_run, push, runs, signature, world, world_with,
};

const FIRST: &str = "2026-01-01T00:00:00Z";

#[tokio::test(start_paused = true)]
async fn f3_of_many_who_handle_an_event_at_once_one_starts_its_run() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.unheard_hooks();
    let (_, answer) = deliver(&hooks, "d-1", &push("0", "a", FIRST)).await;
    let event = answer["data"].as_str().expect("an event");
    minutes(&world, 1).await;
    let handles = join_all((0..20).map(|_| world.handle(event)));
    let sweeps = join_all((0..4).map(|_| world.take_in()));
    tokio::join!(handles, sweeps);
    let run = world.finish(&only_run(&world).await).await;
    assert_eq!(run.status, Status::Success);
    let rows = history(&world, "main").await;
    assert_eq!((rows.len(), rows[0].run.as_ref()), (1, Some(&run.id)));
    assert_eq!(world.deeds.list().len(), 1, "one execution");
}

#[tokio::test(start_paused = true)]
async fn f5_an_event_whose_function_dies_each_time_is_finished_by_a_sweep() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.unheard_hooks();
    let (_, answer) = deliver(&hooks, "d-1", &push("0", "a", FIRST)).await;
    let event = answer["data"].as_str().expect("an event");
    // Whoever dies tells nobody: that is no failure of the event, however often it happens.
    for request in 1..=8 {
        world.crash.arm(request, request % 2 == 0);
        world.handle(event).await;
    }
    world.crash.disarm();
    minutes(&world, 1).await;
    let swept = world.take_in().await.expect("an answer");
    assert_eq!(
        swept,
        json!({"handled": 1, "failed": 0, "dead": 0, "due": 0, "hooks": 1})
    );
    let run = world.finish(&only_run(&world).await).await;
    assert_eq!(run.status, Status::Success);
}

/// Lambda does this to each invocation of the function that handles events.
pub(crate) struct Each(pub(crate) Invocation);

impl Tap for Each {
    fn request(&self, _: Place, _: &str) -> Verdict {
        Verdict::Pass
    }

    fn invocation(&self, function: &str) -> Invocation {
        match function {
            "trigger" => self.0,
            _ => Invocation::Once,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn f6_an_event_that_lambda_brings_twice_or_drops_starts_one_run() {
    for becomes in [
        Invocation::Twice,
        Invocation::Refused("TooManyRequestsException"),
        Invocation::Unheard("ServiceException"),
    ] {
        let world = world_with(Arc::new(Each(becomes))).await;
        let hooks = world.endangered_hooks();
        let (status, _) = deliver(&hooks, "d-1", &push("0", "a", FIRST)).await;
        assert_eq!(status, 200, "{becomes:?}");
        for _ in 0..2 {
            minutes(&world, 1).await;
            world.take_in().await;
        }
        only_run(&world).await;
        assert_eq!(history(&world, "main").await.len(), 1, "{becomes:?}");
    }
}

/// A service refuses so many requests.
struct Busy {
    place: Place,
    operation: &'static str,
    left: AtomicUsize,
}

impl Busy {
    fn at(place: Place, operation: &'static str) -> Arc<Self> {
        Arc::new(Self {
            place,
            operation,
            left: AtomicUsize::new(0),
        })
    }

    fn refuses(&self, requests: usize) {
        self.left.store(requests, Ordering::SeqCst);
    }
}

impl Tap for Busy {
    fn request(&self, place: Place, operation: &str) -> Verdict {
        if place != self.place || operation != self.operation {
            return Verdict::Pass;
        }
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            });
        match left {
            Ok(_) => Verdict::Throttle,
            Err(_) => Verdict::Pass,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn f9_a_delivery_that_a_throttled_table_does_not_take_is_refused_and_comes_again() {
    let busy = Busy::at(Place::Store, "TransactWriteItems");
    let world = world_with(busy.clone()).await;
    let hooks = world.unheard_hooks();
    let body = push("0", "a", FIRST);
    // Longer than any client tries: the sender is told to send it again, and nothing is kept.
    busy.refuses(usize::MAX);
    let (status, answer) = deliver(&hooks, "d-1", &body).await;
    assert_eq!(status, 503, "{answer}");
    busy.refuses(0);
    minutes(&world, 1).await;
    assert_eq!(
        world.take_in().await.expect("an answer")["handled"],
        json!(0)
    );
    // Twice is what clients try again.
    busy.refuses(2);
    let (status, answer) = deliver(&hooks, "d-1", &body).await;
    assert_eq!(status, 200, "{answer}");
    minutes(&world, 1).await;
    // The table is busy again when the event is handled: it stays on the list.
    busy.refuses(usize::MAX);
    let swept = world.take_in().await.expect("an answer");
    assert_eq!(
        (&swept["failed"], &swept["handled"]),
        (&json!(1), &json!(0))
    );
    busy.refuses(0);
    minutes(&world, 1).await;
    let swept = world.take_in().await.expect("an answer");
    assert_eq!(
        (&swept["failed"], &swept["handled"]),
        (&json!(0), &json!(1))
    );
    only_run(&world).await;
    assert_eq!(history(&world, "main").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn f10_runs_of_events_whose_starts_are_throttled_for_ten_minutes_begin_in_order() {
    let busy = Busy::at(Place::Workflows, "StartExecution");
    let world = world_with(busy.clone()).await;
    let hooks = world.endangered_hooks();
    busy.refuses(usize::MAX);
    let commits = ["a", "b", "c", "d", "e", "f"];
    let mut before = "0";
    for (minute, commit) in commits.into_iter().enumerate() {
        let at = format!("2026-01-01T00:{minute:02}:00Z");
        let body = push(before, commit, &at);
        let (status, _) = deliver(&hooks, &format!("d-{minute}"), &body).await;
        assert_eq!(status, 200);
        before = commit;
        minutes(&world, 2).await;
        world.take_in().await;
        world.start_accepted().await.expect("a sweep");
    }
    let waiting = runs(&world).await;
    assert_eq!(waiting.len(), commits.len());
    assert!(waiting.iter().all(|run| run.status == Status::NotStarted));
    busy.refuses(0);
    minutes(&world, 1).await;
    world.start_accepted().await.expect("a sweep");
    let mut begun = Vec::new();
    for run in runs(&world).await {
        let run = world.finish(&run.id).await;
        assert_eq!(run.status, Status::Success, "run {}", run.sequence);
        begun.push((
            run.sequence,
            run.trigger.expect("a trigger").about["commitSha"].clone(),
        ));
    }
    begun.sort_unstable();
    let in_order: Vec<String> = commits.iter().map(|commit| commit.repeat(40)).collect();
    let begun: Vec<String> = begun.into_iter().map(|(_, commit)| commit).collect();
    assert_eq!(begun, in_order);
    for shard in 0..slipway_store::Store::UNSTARTED_LISTS {
        let left = world.store.list_unstarted(shard, i64::MAX, 9).await;
        assert_eq!(left.expect("a list"), []);
    }
}

/// A sender that is answered too late posts the same again, while the first is still being kept.
#[tokio::test(start_paused = true)]
async fn f6_a_delivery_that_comes_again_while_it_is_kept_is_the_same_event() {
    /// The second request to keep something is carried out long after it was sent.
    struct Slow(AtomicUsize);
    impl Tap for Slow {
        fn request(&self, place: Place, operation: &str) -> Verdict {
            let writes = place == Place::Store && operation == "TransactWriteItems";
            match writes && self.0.fetch_add(1, Ordering::SeqCst) == 0 {
                true => Verdict::Stall(Duration::from_secs(20)),
                false => Verdict::Pass,
            }
        }
    }
    let world = world_with(Arc::new(Slow(AtomicUsize::new(0)))).await;
    let hooks = world.unheard_hooks();
    let body = push("0", "a", FIRST);
    let signed = signature(SECRET, &body);
    let headers = [
        ("x-github-event", "push"),
        ("x-github-delivery", "d-1"),
        ("x-hub-signature-256", &*signed),
    ];
    let (first, second) = tokio::join!(
        hooks.post(GIT, &headers, body.clone()),
        hooks.post(GIT, &headers, body.clone())
    );
    assert_eq!((first.0, &first.1["data"]), (200, &second.1["data"]));
    minutes(&world, 1).await;
    world.take_in().await;
    only_run(&world).await;
}
