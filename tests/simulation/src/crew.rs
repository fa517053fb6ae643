//! Seeds played side by side, each of them given up where it takes too long: one that never ends stops no other.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often somebody looks whether a seed takes too long.
const LOOK: Duration = Duration::from_millis(500);

/// What is done with seeds.
pub trait Work: Send + Sync + 'static {
    /// What playing a seed comes to.
    type Played;

    /// The next seed; `None` where there is none left, or enough have failed.
    fn next(&self) -> Option<u64>;

    /// Plays a seed.
    fn play(&self, seed: u64) -> Self::Played;

    /// Takes what a seed came to. Not called for a seed that was given up.
    fn done(&self, seed: u64, played: Self::Played);

    /// Takes that a seed was given up after so long.
    fn late(&self, seed: u64, after: Duration);
}

struct Crew<W> {
    work: Arc<W>,
    /// Who plays which seed, and for how long while somebody looked: a process that is stopped for a while loses no seed.
    desks: Mutex<BTreeMap<usize, (u64, Duration)>>,
}

/// Plays seeds, so many at a time, until there is no next one. A seed that is played for longer than `limit` is given up:
/// its thread is left to itself, and another takes its place.
pub fn play<W: Work>(work: &Arc<W>, jobs: usize, limit: Duration) {
    let crew = Arc::new(Crew {
        work: Arc::clone(work),
        desks: Mutex::default(),
    });
    let (sender, receiver) = channel();
    let mut hired = 0;
    let mut hire = || {
        let (crew, sender, desk) = (Arc::clone(&crew), sender.clone(), hired);
        std::thread::spawn(move || crew.work(desk, &sender));
        hired += 1;
    };
    for _ in 0..jobs {
        hire();
    }
    let mut at_work = jobs;
    while at_work > 0 {
        match receiver.recv_timeout(LOOK) {
            Ok(()) => at_work -= 1,
            Err(RecvTimeoutError::Timeout) => {
                for seed in crew.give_up(limit) {
                    work.late(seed, limit);
                    hire();
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl<W: Work> Crew<W> {
    fn work(&self, desk: usize, leaves: &Sender<()>) {
        while let Some(seed) = self.work.next() {
            self.desks().insert(desk, (seed, Duration::ZERO));
            let played = self.work.play(seed);
            if self.desks().remove(&desk).is_none() {
                // Given up, and somebody else has the place.
                return;
            }
            self.work.done(seed, played);
        }
        // Nobody listens any longer where all others were given up too.
        let _ = leaves.send(());
    }

    /// Somebody has looked again: clears the desks of those who take too long, and answers their seeds.
    fn give_up(&self, limit: Duration) -> Vec<u64> {
        let mut desks = self.desks();
        let late = desks.extract_if(.., |_, (_, spent)| {
            *spent += LOOK;
            *spent > limit
        });
        late.map(|(_, (seed, _))| seed).collect()
    }

    fn desks(&self) -> MutexGuard<'_, BTreeMap<usize, (u64, Duration)>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::{Arc, Duration, Work, play};

    /// Seed 3 ends once all others have, which is never where it is waited for.
    struct Stuck {
        next: AtomicU64,
        done: Mutex<Vec<u64>>,
        late: Mutex<Vec<u64>>,
        release: Mutex<Option<Sender<()>>>,
        wait: Mutex<Option<Receiver<()>>>,
    }

    impl Work for Stuck {
        type Played = u64;

        fn next(&self) -> Option<u64> {
            let next = self.next.fetch_add(1, Ordering::SeqCst);
            (next < 10).then_some(next)
        }

        fn play(&self, seed: u64) -> u64 {
            if seed == 3 {
                let wait = self.wait.lock().expect("unspoilt").take();
                // Until the sender is gone.
                let _ = wait.expect("once").recv();
            }
            seed * 2
        }

        fn done(&self, seed: u64, played: u64) {
            assert_eq!(played, seed * 2);
            self.done.lock().expect("unspoilt").push(seed);
        }

        fn late(&self, seed: u64, _after: Duration) {
            self.late.lock().expect("unspoilt").push(seed);
        }
    }

    #[test]
    fn a_seed_that_never_ends_is_named_and_stops_no_other() {
        for jobs in [1, 3] {
            let (release, wait) = channel();
            let stuck = Arc::new(Stuck {
                next: AtomicU64::new(0),
                done: Mutex::default(),
                late: Mutex::default(),
                release: Mutex::new(Some(release)),
                wait: Mutex::new(Some(wait)),
            });
            play(&stuck, jobs, Duration::from_millis(200));
            stuck.release.lock().expect("unspoilt").take();
            let mut done = stuck.done.lock().expect("unspoilt").clone();
            done.sort_unstable();
            assert_eq!(done, [0, 1, 2, 4, 5, 6, 7, 8, 9]);
            assert_eq!(*stuck.late.lock().expect("unspoilt"), [3]);
        }
    }
}
