//! Two events of a ref that are handled at once, one of them slowly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use slipway_world::tap::{Place, Tap, Verdict};

use crate::{deliver, history, minutes, push, runs, world_with};

/// The n-th request to the store is carried out long after it was sent; 0 for none.
#[derive(Default)]
struct Nth(AtomicUsize);

impl Tap for Nth {
    fn request(&self, place: Place, _operation: &str) -> Verdict {
        if place != Place::Store || self.0.load(Ordering::SeqCst) == 0 {
            return Verdict::Pass;
        }
        match self.0.fetch_sub(1, Ordering::SeqCst) {
            1 => Verdict::Stall(Duration::from_secs(20)),
            _ => Verdict::Pass,
        }
    }
}

/// Whoever handles a push is stopped anywhere, goes on after a newer one was handled, and starts nothing behind its run.
#[tokio::test(start_paused = true)]
async fn w18_an_older_push_that_is_handled_slowly_does_not_start_behind_a_newer_one() {
    let (mut both, mut overtaken) = (0, 0);
    for request in 1.. {
        let tap = Arc::new(Nth::default());
        let world = world_with(tap.clone()).await;
        let hooks = world.unheard_hooks();
        let (_, first) = deliver(&hooks, "d-1", &push("0", "a", "2026-01-01T00:00:00Z")).await;
        let (_, second) = deliver(&hooks, "d-2", &push("a", "b", "2026-01-01T00:01:00Z")).await;
        tap.0.store(request, Ordering::SeqCst);
        let older = world.handle(first["data"].as_str().expect("an event"));
        let newer = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let reached = tap.0.swap(0, Ordering::SeqCst) == 0;
            let newer = second["data"].as_str().expect("an event");
            world.handle(newer).await;
            reached
        };
        let ((), reached) = tokio::join!(older, newer);
        minutes(&world, 1).await;
        world.take_in().await;
        let rows = history(&world, "main").await;
        let mut begun = runs(&world).await;
        begun.sort_by_key(|run| run.started_ms);
        let commits: Vec<String> = begun
            .iter()
            .filter_map(|run| run.trigger.as_ref()?.about.get("commitSha").cloned())
            .collect();
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        match commits.as_slice() {
            [only] => assert_eq!(*only, b, "request {request}"),
            all => assert_eq!(all, [a, b], "request {request}"),
        }
        both += usize::from(commits.len() == 2);
        overtaken += usize::from(commits.len() == 1);
        let told = rows.iter().filter(|row| row.run.is_some()).count();
        assert_eq!((rows.len(), told), (2, commits.len()), "request {request}");
        if !reached {
            break;
        }
    }
    assert!(both > 3 && overtaken > 3, "{both} {overtaken}");
}
