//! Barriers beside stages that do not run, on the real machines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use slipway_model::status::Status;
use slipway_world::tap::{Place, Tap, Verdict};
use slipway_world::yaml::{gate, pipeline, script, stage, together, with_gate};
use slipway_world::{Options, World};

/// Holds up one request of a function to the store.
struct Late {
    at: usize,
    requests: AtomicUsize,
}

impl Tap for Late {
    fn request(&self, place: Place, _operation: &str) -> Verdict {
        if place != Place::Store {
            return Verdict::Pass;
        }
        match self.requests.fetch_add(1, Ordering::SeqCst) + 1 == self.at {
            true => Verdict::Stall(Duration::from_secs(20)),
            false => Verdict::Pass,
        }
    }
}

/// `runs` after the failure of `first`, and `skipped` does not: both have a place at the barrier.
fn whole() -> String {
    let gate = gate("gate", "1h");
    let both = [
        stage("runs", &gate, "", "when:\n  pipelineStatus: Failure\n"),
        stage("skipped", &gate, "", ""),
    ];
    let first = stage("first", &script("bad", "fail", ""), "", "");
    with_gate(&pipeline(&[first, together(&both)]))
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_is_skipped_late_opens_the_barrier() {
    let mut late = 0;
    for at in (20..50).step_by(2) {
        let tap = Arc::new(Late {
            at,
            requests: AtomicUsize::new(0),
        });
        let options = Options {
            tap: Some(tap.clone()),
            in_memory: true,
            ..Options::default()
        };
        let world = World::with(options).await;
        world.apply(&whole()).await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let statuses: Vec<_> = run.stages.iter().map(|stage| stage.status).collect();
        let expected = [Status::Failed, Status::Success, Status::Skipped];
        assert_eq!(statuses, expected, "late at request {at}");
        let seconds = (run.ended_ms.expect("an end") - run.started_ms) / 1_000;
        assert!(seconds < 60, "late at request {at}: {seconds} s");
        world.assert_clean(&run.id).await;
        late += usize::from(seconds >= 20);
    }
    assert!(late > 3, "only {late} runs were held up");
}
