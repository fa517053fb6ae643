//! Carries out the faults of a case, and writes down what functions did.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use slipway_world::tap::{Invocation, Place, Tap, Verdict};

use crate::ast::Fault;

/// Stands between the functions and the services.
pub struct Faults {
    faults: Vec<Fault>,
    requests: [AtomicU64; 3],
    tokens: AtomicU64,
    invocations: AtomicU64,
    trace: Mutex<Vec<String>>,
    clock: tokio::time::Instant,
    deaths_are_heard: bool,
    traced: Traced,
}

/// What becomes of the lines that tell what functions did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traced {
    /// They are not written.
    No,
    /// They are kept.
    Kept,
    /// They are kept, and printed at once: for a case that does not end.
    Printed,
}

impl Faults {
    /// Those of a case. Must be called inside the runtime whose time the case lives in.
    pub fn new(faults: &[Fault], deaths_are_heard: bool, traced: Traced) -> Self {
        Self {
            faults: faults.to_vec(),
            requests: Default::default(),
            tokens: AtomicU64::new(0),
            invocations: AtomicU64::new(0),
            trace: Mutex::default(),
            clock: tokio::time::Instant::now(),
            deaths_are_heard,
            traced,
        }
    }

    /// What functions did, a line each.
    pub fn trace(&self) -> Vec<String> {
        self.trace
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How many requests functions made to stores, workflows and targets.
    pub fn counts(&self) -> [u64; 3] {
        [0, 1, 2].map(|index: usize| self.requests[index].load(Ordering::SeqCst))
    }

    /// Adds a line to the trace.
    pub fn note(&self, line: &str) {
        if self.traced == Traced::No {
            return;
        }
        let at = self.clock.elapsed().as_millis();
        let line = format!("{:>9}.{:03} {line}", at / 1_000, at % 1_000);
        if self.traced == Traced::Printed {
            println!("{line}");
        }
        self.trace
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }
}

/// Where the requests of functions to a service are counted.
fn index(place: Place) -> Option<usize> {
    match place {
        Place::Store => Some(0),
        Place::Workflows => Some(1),
        Place::Target => Some(2),
        Place::Outside => None,
    }
}

impl Faults {
    fn of_token(&self) -> Option<Verdict> {
        let count = self.tokens.fetch_add(1, Ordering::SeqCst) + 1;
        self.faults.iter().find_map(|fault| match fault {
            Fault::Token { number, verdict } if *number == count => Some(*verdict),
            _ => None,
        })
    }

    fn of_request(&self, place: Place, count: u64) -> Option<Verdict> {
        self.faults.iter().find_map(|fault| match fault {
            Fault::Request {
                place: at,
                number,
                often,
                verdict,
            } if *at == place && (*number..number + often).contains(&count) => Some(*verdict),
            _ => None,
        })
    }
}

impl Tap for Faults {
    fn request(&self, place: Place, operation: &str) -> Verdict {
        let count = index(place).map_or(0, |index| {
            self.requests[index].fetch_add(1, Ordering::SeqCst) + 1
        });
        let token = match operation {
            "SendTaskSuccess" => self.of_token(),
            _ => None,
        };
        let found = token.or_else(|| self.of_request(place, count));
        let verdict = found.unwrap_or(Verdict::Pass);
        match found {
            // A delegate asks for work all the time.
            None if place == Place::Outside => {}
            None => self.note(&format!("  {place:?} {count} {operation}")),
            Some(verdict) => self.note(&format!(
                "  {place:?} {count} {operation} FAULT {verdict:?}"
            )),
        }
        verdict
    }

    fn invocation(&self, function: &str) -> Invocation {
        let count = self.invocations.fetch_add(1, Ordering::SeqCst) + 1;
        let found = self.faults.iter().find_map(|fault| match fault {
            Fault::Invocation { number, becomes } if *number == count => Some(*becomes),
            _ => None,
        });
        match found {
            None => self.note(&format!("invoke {count} {function}")),
            Some(becomes) => self.note(&format!("invoke {count} {function} FAULT {becomes:?}")),
        }
        found.unwrap_or(Invocation::Once)
    }

    fn death(&self) -> Option<&'static str> {
        self.deaths_are_heard.then_some("Lambda.Unknown")
    }
}
