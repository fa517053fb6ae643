//! What the world adds to the times of a case.

use std::collections::BTreeMap;
use std::time::Duration;

/// What has chances of its own: a stage of a run by its number, or all that is in no stage.
pub type Part = Option<(usize, String)>;

tokio::task_local! {
    /// The part that goes on now.
    static PART: Part;
}

/// What the world adds to the times of a case: instants between things that happen at once, in any order, and a few
/// longer delays. What is drawn for one part says nothing about the others.
#[derive(Clone, Debug)]
pub struct Delays {
    seed: u64,
    kept: BTreeMap<Part, u64>,
    chances: BTreeMap<Part, Chances>,
    /// What is left of the longer delays, in all.
    left: Duration,
    pub(super) none: bool,
}

/// The chances of one part.
#[derive(Clone, Debug)]
struct Chances {
    random: fastrand::Rng,
    /// One in so many beginnings and ends takes some of the longer delays.
    rare: u32,
    /// How long a delegate takes at most, in milliseconds.
    work: u64,
    /// How long the machine takes at most until branches begin, in milliseconds.
    fork: u64,
}

impl Chances {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            rare: 1 << random.u32(0..8),
            work: 1 << random.u32(0..8),
            fork: 1 << random.u32(0..6),
            random,
        }
    }
}

impl Delays {
    /// Nothing is ever late.
    pub fn none() -> Self {
        Self {
            none: true,
            ..Self::some(0, Duration::ZERO)
        }
    }

    /// Beginnings and ends are late by so much in all, each seed in its own way.
    pub fn some(seed: u64, left: Duration) -> Self {
        Self {
            seed,
            kept: BTreeMap::new(),
            chances: BTreeMap::new(),
            left,
            none: false,
        }
    }

    /// The same, but these parts have the chances that they had with those seeds.
    #[must_use]
    pub fn keeping(self, kept: BTreeMap<Part, u64>) -> Self {
        Self { kept, ..self }
    }

    /// The seed that the chances of a part come from.
    pub fn seed_of(&self, part: &Part) -> u64 {
        self.kept.get(part).copied().unwrap_or(self.seed)
    }

    /// What a part does, with its own chances.
    pub(super) async fn of<T>(part: Part, does: impl Future<Output = T>) -> T {
        PART.scope(part, does).await
    }

    fn chances(&mut self) -> &mut Chances {
        let part = PART.try_with(Clone::clone).unwrap_or_default();
        let seed = self.seed_of(&part);
        // Parts with the same seed differ all the same.
        let named = part.iter().flat_map(|(run, stage)| {
            let stage = stage.bytes().map(u64::from);
            stage.chain([*run as u64])
        });
        let mixed = named.fold(seed, |mixed, next| {
            (mixed ^ next).wrapping_mul(0x0100_0000_01b3)
        });
        self.chances
            .entry(part)
            .or_insert_with(|| Chances::new(mixed))
    }

    pub(super) fn random(&mut self) -> &mut fastrand::Rng {
        &mut self.chances().random
    }

    pub(super) fn instant(&mut self) -> Duration {
        match self.none || self.random().bool() {
            true => Duration::ZERO,
            false => Duration::from_millis(self.random().u64(0..5)),
        }
    }

    pub(super) fn work(&mut self) -> Duration {
        let chances = self.chances();
        Duration::from_millis(chances.random.u64(0..chances.work))
    }

    pub(super) fn fork(&mut self) -> Duration {
        let chances = self.chances();
        Duration::from_millis(chances.random.u64(0..chances.fork))
    }

    pub(super) fn next(&mut self) -> Duration {
        if self.none {
            return Duration::ZERO;
        }
        let chances = self.chances();
        if chances.random.u32(0..chances.rare) != 0 {
            return self.instant();
        }
        // Short ones are the more likely: a request that is made again, rather than all that may be late at once.
        let share = chances.random.f64().powi(3);
        let some = self.left.mul_f64(share);
        self.left -= some;
        some
    }
}
