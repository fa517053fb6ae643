//! What goes wrong between the functions and the services, request by request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use slipway_world::tap::{Invocation, Place, Tap, Verdict};

use super::Counts;
use super::script::Script;

/// Longest stall of a request, in seconds: less than the time limit of the functions.
const LONGEST_STALL: u64 = 25;

/// Stands between functions and services.
pub(super) struct Storm {
    rages: AtomicBool,
    state: Mutex<State>,
    clock: tokio::time::Instant,
    traced: bool,
    weather: super::script::Weather,
}

struct State {
    random: Rng,
    /// So many of the next requests to the store are throttled.
    throttled: u32,
    trace: Vec<String>,
    counts: Counts,
}

impl Storm {
    /// Must be called inside the runtime whose time the world lives in.
    pub(super) fn new(script: &Script, traced: bool) -> Self {
        Self {
            rages: AtomicBool::new(false),
            state: Mutex::new(State {
                random: Rng::with_seed(script.seed ^ 0x5707),
                throttled: 0,
                trace: Vec::new(),
                counts: Counts::default(),
            }),
            clock: tokio::time::Instant::now(),
            traced,
            weather: script.weather,
        }
    }

    /// Begins, or lets everything pass from now on.
    pub(super) fn rage(&self, rages: bool) {
        self.rages.store(rages, Ordering::SeqCst);
        self.state().throttled = 0;
    }

    /// Adds a line to the trace.
    pub(super) fn note(&self, line: impl FnOnce() -> String) {
        if self.traced {
            let at = self.clock.elapsed().as_millis();
            let line = format!("{:>9}.{:03} {}", at / 1_000, at % 1_000, line());
            self.state().trace.push(line);
        }
    }

    pub(super) fn trace(&self) -> Vec<String> {
        std::mem::take(&mut self.state().trace)
    }

    pub(super) fn counts(&self) -> Counts {
        self.state().counts
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn verdict(&mut self, place: Place, one_of: u32) -> Verdict {
        if place == Place::Store && self.throttled > 0 {
            self.throttled -= 1;
            return Verdict::Throttle;
        }
        if one_of == u32::MAX || self.random.u32(0..one_of) > 0 {
            return Verdict::Pass;
        }
        let after = self.random.bool();
        match self.random.u32(0..8) {
            0..=3 => Verdict::Die { after },
            4..=5 => Verdict::Fail { after },
            6 => {
                // Clients try thrice: a long one reaches who asked.
                self.throttled = self.random.u32(0..9);
                Verdict::Throttle
            }
            _ => Verdict::Stall(Duration::from_secs(self.random.u64(1..LONGEST_STALL))),
        }
    }
}

impl Tap for Storm {
    fn request(&self, place: Place, operation: &str) -> Verdict {
        if !self.rages.load(Ordering::SeqCst) || !matches!(place, Place::Store | Place::Workflows) {
            return Verdict::Pass;
        }
        let verdict = {
            let mut state = self.state();
            let verdict = state.verdict(place, self.weather.requests);
            match verdict {
                Verdict::Die { .. } => state.counts.deaths += 1,
                Verdict::Fail { .. } | Verdict::Throttle => state.counts.refused += 1,
                _ => {}
            }
            verdict
        };
        self.note(|| match verdict {
            Verdict::Pass => format!("  {place:?} {operation}"),
            _ => format!("  {place:?} {operation}: {verdict:?}"),
        });
        verdict
    }

    fn invocation(&self, function: &str) -> Invocation {
        let of = self.weather.invocations;
        if function != "trigger" || of == u32::MAX || !self.rages.load(Ordering::SeqCst) {
            return Invocation::Once;
        }
        let becomes = {
            let mut state = self.state();
            if state.random.u32(0..of) > 0 {
                return Invocation::Once;
            }
            state.counts.invocations += 1;
            match state.random.u32(0..3) {
                0 => Invocation::Twice,
                1 => Invocation::Refused("TooManyRequestsException"),
                _ => Invocation::Unheard("ServiceException"),
            }
        };
        self.note(|| format!("  invocation of {function}: {becomes:?}"));
        becomes
    }
}
