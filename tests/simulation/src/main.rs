//! `simulate`: plays seeds, prints what fails and how fast it went. `cargo xtask simulate` builds and starts it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::Parser;
use slipway_simulation::check::Judged;
use slipway_simulation::deliveries::many;
use slipway_simulation::{Finding, crew, seed, simulate, trace, yaml};

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
    /// How long a seed may take, in seconds; one that takes longer has failed, and the others go on.
    #[arg(long, default_value_t = 300)]
    limit: u64,
    /// Play only the first seed, and print what functions do while they do it: for one that does not end.
    #[arg(long)]
    trace: bool,
    /// Play so many deliveries of webhooks instead, in as many worlds as that takes.
    #[arg(long, conflicts_with = "seeds")]
    deliveries: Option<u64>,
}

/// Seeds of pipelines, and what they came to.
struct Seeds {
    from: u64,
    count: u64,
    most: usize,
    began: Instant,
    next: AtomicU64,
    ended: AtomicU64,
    exactly: AtomicU64,
    several: AtomicU64,
    without: AtomicU64,
    failed: Mutex<Vec<u64>>,
}

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    if arguments.trace {
        return traced(arguments.from);
    }
    let jobs = arguments
        .jobs
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1);
    let limit = Duration::from_secs(arguments.limit);
    let holds = match arguments.deliveries {
        Some(deliveries) => many(deliveries, arguments.from, jobs, arguments.most, limit),
        None => Seeds::of(&arguments).play(jobs, limit),
    };
    // Threads whose seed was given up end with the process.
    match holds {
        true => std::process::ExitCode::SUCCESS,
        false => std::process::ExitCode::FAILURE,
    }
}

/// Plays one seed, aloud.
fn traced(seed: u64) -> std::process::ExitCode {
    match trace(seed) {
        Ok(judged) => {
            println!("seed {seed} holds: {judged:?}");
            std::process::ExitCode::SUCCESS
        }
        Err(wrong) => {
            println!("seed {seed}: {wrong}");
            std::process::ExitCode::FAILURE
        }
    }
}

impl Seeds {
    fn of(arguments: &Arguments) -> Arc<Self> {
        Arc::new(Self {
            from: arguments.from,
            count: arguments.seeds,
            most: arguments.most,
            began: Instant::now(),
            next: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            exactly: AtomicU64::new(0),
            several: AtomicU64::new(0),
            without: AtomicU64::new(0),
            failed: Mutex::default(),
        })
    }

    /// Plays all seeds and prints what they came to; whether all held.
    fn play(self: Arc<Self>, jobs: usize, limit: Duration) -> bool {
        crew::play(&self, jobs, limit);
        let played = self.ended.load(Ordering::SeqCst);
        let seconds = self.began.elapsed().as_secs_f64();
        let failed = self.failed();
        println!(
            "{played} seeds from {} in {seconds:.1} s: {:.1} seeds/s, {jobs} at a time",
            self.from,
            rate(played, seconds),
        );
        println!(
            "as the model says: {}; one of several that the model allows: {}; checked without the model: {}; failed: {}",
            self.exactly.load(Ordering::SeqCst),
            self.several.load(Ordering::SeqCst),
            self.without.load(Ordering::SeqCst),
            failed.len(),
        );
        if !failed.is_empty() {
            println!("failed seeds: {failed:?}");
        }
        failed.is_empty()
    }

    fn failed(&self) -> MutexGuard<'_, Vec<u64>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fails(&self, seed: u64, told: &str) {
        let mut failed = self.failed();
        println!("{told}\n");
        failed.push(seed);
        if failed.len() >= self.most {
            self.next.store(self.count, Ordering::SeqCst);
        }
    }

    fn ends(&self) {
        let ended = self.ended.fetch_add(1, Ordering::SeqCst) + 1;
        if ended.is_multiple_of(1_000) {
            let seconds = self.began.elapsed().as_secs_f64();
            println!("{ended} seeds, {:.1} seeds/s", rate(ended, seconds));
        }
    }
}

impl crew::Work for Seeds {
    type Played = Result<Judged, Box<Finding>>;

    fn next(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        (number < self.count).then(|| self.from + number)
    }

    fn play(&self, seed: u64) -> Self::Played {
        simulate(seed)
    }

    fn done(&self, seed: u64, played: Self::Played) {
        let count = match played {
            Ok(Judged::Exactly) => &self.exactly,
            Ok(Judged::AsOneOfSeveral) => &self.several,
            Ok(Judged::WithoutModel) => &self.without,
            Err(finding) => {
                self.fails(seed, &finding.told());
                self.ends();
                return;
            }
        };
        count.fetch_add(1, Ordering::SeqCst);
        self.ends();
    }

    fn late(&self, seed: u64, after: Duration) {
        let case = seed::case(seed);
        let pipeline = yaml::pipeline(&case.pipeline, case.notices.is_some());
        let seconds = after.as_secs();
        self.fails(
            seed,
            &format!(
                "seed {seed}: it does not end within {seconds} s; its pipeline is\n{pipeline}"
            ),
        );
        self.ends();
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate is about")]
fn rate(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds.max(0.001)
}
