//! The simulation of deliveries: senders of every provider post what happened, twice, too late, in the wrong order and days
//! after it, to the real webhook and trigger functions and the real store, in virtual time, while functions die and
//! services refuse. Each thing that happened must start exactly one run of each trigger that wants it.
//!
//! ```text
//! seed ──▶ script (what happens, who posts it when) ──▶ play (the real thing, under a storm) ──▶ check
//! ```
//!
//! In most worlds the executions of runs are hollow: Step Functions takes each start, and refuses a second one of its name,
//! but the machine ends at once, since what runs do is the other simulation's subject and takes ten times as long. Every
//! [`WHOLE`]th world has the real machines, functions and delegates, and its runs must end well.

mod check;
mod many;
mod play;
mod script;
mod sender;
mod storm;

pub use many::many;

use script::Script;

/// Of so many worlds one has the real machines.
pub const WHOLE: u64 = 50;

/// What a world came through, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Deliveries, without what senders repeated because nobody answered.
    pub deliveries: u64,
    /// Deliveries of what had been delivered before.
    pub duplicates: u64,
    /// Of those, days later.
    pub replays: u64,
    /// Deliveries of something older than what its sender had delivered before.
    pub late: u64,
    /// Posts that senders repeated because they were not answered, or with an error.
    pub repeated: u64,
    /// What happened.
    pub happenings: u64,
    /// Runs that were started.
    pub runs: u64,
    /// What a trigger did not take because something newer came first.
    pub overtaken: u64,
    /// Functions that died.
    pub deaths: u64,
    /// Requests that services refused or answered with an error of their own.
    pub refused: u64,
    /// Invocations of the function that handles events which were lost or doubled.
    pub invocations: u64,
    /// Worlds with the real machines.
    pub whole: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.deliveries += other.deliveries;
        self.duplicates += other.duplicates;
        self.replays += other.replays;
        self.late += other.late;
        self.repeated += other.repeated;
        self.happenings += other.happenings;
        self.runs += other.runs;
        self.overtaken += other.overtaken;
        self.deaths += other.deaths;
        self.refused += other.refused;
        self.invocations += other.invocations;
        self.whole += other.whole;
    }
}

/// Plays the world of a seed and checks it.
///
/// # Errors
/// What does not hold, with the trace of the world.
pub fn simulate(seed: u64) -> Result<Counts, String> {
    let script = Script::of(seed);
    let wrong = match examine(&script, false) {
        Ok(counts) => return Ok(counts),
        Err(wrong) => wrong,
    };
    // Played again, to tell how it came to that.
    let told = match examine(&script, true) {
        Err(told) => told,
        Ok(_) => format!("{wrong}\n(played again it does not come back)"),
    };
    Err(format!("seed {seed} of deliveries: {told}"))
}

fn examine(script: &Script, traced: bool) -> Result<Counts, String> {
    let play = || play::play(script, traced);
    std::panic::catch_unwind(play).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("a panic: {}", text.unwrap_or_default()))
    })
}
