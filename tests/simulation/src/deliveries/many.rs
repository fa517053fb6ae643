//! Many worlds of deliveries, one after the other on each processor, with what is told meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Counts, simulate};
use crate::crew::{self, Work};

/// Progress is told after so many deliveries.
const TOLD_EVERY: u64 = 10_000;

/// Plays worlds from a seed on, until so many deliveries were made or `most` worlds have failed, and prints progress, each
/// failure with its trace, and the sum. A world that takes longer than `limit` has failed. Answers whether all held.
pub fn many(deliveries: u64, from: u64, jobs: usize, most: usize, limit: Duration) -> bool {
    let many = Arc::new(Many {
        next: AtomicU64::new(from),
        wanted: deliveries,
        most,
        began: Instant::now(),
        tally: Mutex::default(),
    });
    crew::play(&many, jobs, limit);
    let worlds = many.next.load(Ordering::SeqCst) - from;
    let seconds = many.began.elapsed().as_secs_f64();
    let tally = many.tally();
    let Counts {
        deliveries,
        duplicates,
        replays,
        late,
        repeated,
        happenings,
        runs,
        overtaken,
        deaths,
        refused,
        invocations,
        whole,
    } = tally.counts;
    println!(
        "{deliveries} deliveries of {happenings} events in {worlds} worlds from {from}, {seconds:.1} s: {:.0} deliveries/s, {jobs} at a time",
        rate(deliveries, seconds),
    );
    println!(
        "duplicates: {duplicates}, {replays} of them days later; late: {late}; repeated by their senders: {repeated}"
    );
    println!(
        "functions that died: {deaths}; requests refused: {refused}; invocations lost or doubled: {invocations}"
    );
    println!(
        "runs: {runs}; overtaken by something newer: {overtaken}; worlds with the real machines: {whole}"
    );
    match tally.failed.as_slice() {
        [] => println!("one run for each event and trigger, none lost, none doubled"),
        failed => println!("failed seeds: {failed:?}"),
    }
    tally.failed.is_empty()
}

struct Many {
    next: AtomicU64,
    wanted: u64,
    most: usize,
    began: Instant,
    tally: Mutex<Tally>,
}

#[derive(Default)]
struct Tally {
    counts: Counts,
    failed: Vec<u64>,
}

impl Work for Many {
    type Played = Result<Counts, String>;

    fn next(&self) -> Option<u64> {
        self.goes_on()
            .then(|| self.next.fetch_add(1, Ordering::SeqCst))
    }

    fn play(&self, seed: u64) -> Self::Played {
        simulate(seed)
    }

    fn done(&self, seed: u64, played: Self::Played) {
        match played {
            Ok(counts) => {
                let mut tally = self.tally();
                let before = tally.counts.deliveries / TOLD_EVERY;
                tally.counts += counts;
                let now = tally.counts.deliveries;
                if now / TOLD_EVERY > before {
                    let seconds = self.began.elapsed().as_secs_f64();
                    println!("{now} deliveries, {:.0} deliveries/s", rate(now, seconds));
                }
            }
            Err(told) => self.fails(seed, &told),
        }
    }

    fn late(&self, seed: u64, after: Duration) {
        let seconds = after.as_secs();
        self.fails(
            seed,
            &format!("seed {seed} of deliveries: it does not end within {seconds} s"),
        );
    }
}

impl Many {
    fn fails(&self, seed: u64, told: &str) {
        println!("{told}\n");
        self.tally().failed.push(seed);
    }

    fn goes_on(&self) -> bool {
        let tally = self.tally();
        tally.counts.deliveries < self.wanted && tally.failed.len() < self.most
    }

    fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate is about")]
fn rate(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds.max(0.001)
}
