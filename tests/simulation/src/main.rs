//! `simulate`: plays seeds, prints what fails and how fast it went. `cargo xtask simulate` builds and starts it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use slipway_simulation::check::Judged;
use slipway_simulation::deliveries::many;
use slipway_simulation::simulate;

// A sixth of the time of a seed went into the allocator of glibc.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Plays the simulation.
#[derive(Parser)]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// How many at a time; as many as there are processors unless given.
    #[arg(long)]
    jobs: Option<usize>,
    /// Stop after so many that fail.
    #[arg(long, default_value_t = 5)]
    most: usize,
    /// Play so many deliveries of webhooks instead, in as many worlds as that takes.
    #[arg(long)]
    deliveries: Option<u64>,
}

#[derive(Default)]
struct Tally {
    next: AtomicU64,
    exactly: AtomicU64,
    several: AtomicU64,
    without: AtomicU64,
    failed: Mutex<Vec<u64>>,
}

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    let jobs = arguments
        .jobs
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1);
    if let Some(deliveries) = arguments.deliveries {
        return match many(deliveries, arguments.from, jobs, arguments.most) {
            true => std::process::ExitCode::SUCCESS,
            false => std::process::ExitCode::FAILURE,
        };
    }
    let (tally, began) = (Tally::default(), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| work(&arguments, &tally, began));
        }
    });
    let played = tally.next.load(Ordering::SeqCst).min(arguments.seeds);
    let seconds = began.elapsed().as_secs_f64();
    let failed = tally.failed.into_inner().unwrap_or_default();
    println!(
        "{played} seeds from {} in {seconds:.1} s: {:.1} seeds/s, {jobs} at a time",
        arguments.from,
        rate(played, seconds),
    );
    println!(
        "as the model says: {}; one of several that the model allows: {}; checked without the model: {}; failed: {}",
        tally.exactly.load(Ordering::SeqCst),
        tally.several.load(Ordering::SeqCst),
        tally.without.load(Ordering::SeqCst),
        failed.len(),
    );
    match failed.is_empty() {
        true => std::process::ExitCode::SUCCESS,
        false => {
            println!("failed seeds: {failed:?}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn work(arguments: &Arguments, tally: &Tally, began: Instant) {
    loop {
        let number = tally.next.fetch_add(1, Ordering::SeqCst);
        if number >= arguments.seeds {
            return;
        }
        let seed = arguments.from + number;
        match simulate(seed) {
            Ok(judged) => {
                let count = match judged {
                    Judged::Exactly => &tally.exactly,
                    Judged::AsOneOfSeveral => &tally.several,
                    Judged::WithoutModel => &tally.without,
                };
                count.fetch_add(1, Ordering::SeqCst);
            }
            Err(finding) => {
                let told = finding.told();
                let mut failed = tally.failed.lock().expect("nobody panics with it");
                println!("{told}\n");
                failed.push(seed);
                if failed.len() >= arguments.most {
                    tally.next.store(arguments.seeds, Ordering::SeqCst);
                    return;
                }
            }
        }
        if (number + 1).is_multiple_of(1_000) {
            let seconds = began.elapsed().as_secs_f64();
            println!(
                "{} seeds, {:.1} seeds/s",
                number + 1,
                rate(number + 1, seconds)
            );
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate is about")]
fn rate(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds.max(0.001)
}
