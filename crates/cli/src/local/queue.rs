//! Lambda's own queue of asynchronous invocations: what was taken in is handled at once where nothing else is to do, and a
//! burst is taken in before all of it is handled ([`Share`]). Nothing of it is lost with the process: what is invoked here
//! is on a list of the store, which a sweep goes through.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_asl::Lambda;
use slipway_clock::{Clock, Share};

use super::functions::Functions;

/// Invocations that stand in line; more are left to the sweep, so that memory is bounded.
const LONGEST: usize = 100_000;
/// An invocation that takes longer waits for somebody else, and keeps no other from beginning.
const PATIENCE: SignedDuration = SignedDuration::from_millis(250);
/// Time between two looks at the line. Whoever is ready meanwhile is looked after first.
const BREATH: Duration = Duration::from_millis(1);

/// Invokes functions of this process for those who do not wait for them. Cheap to clone.
#[derive(Clone)]
pub(super) struct Queue(Arc<Inner>);

struct Inner {
    functions: Arc<Functions>,
    clock: Clock,
    /// How many begin at once.
    most: usize,
    state: Mutex<State>,
}

/// A function and what it is given.
struct Invocation {
    function: String,
    payload: Value,
}

#[derive(Default)]
struct State {
    /// Oldest first.
    line: VecDeque<Invocation>,
    /// What has begun, by its number, and since when.
    under_way: BTreeMap<u64, Timestamp>,
    begun: u64,
    share: Share,
    /// Whether somebody looks at the line.
    kept: bool,
    /// Whether it was told that the line is full.
    full: bool,
}

impl Queue {
    /// An empty one, of which so many begin at once.
    pub(super) fn new(functions: Arc<Functions>, clock: Clock, most: usize) -> Self {
        Self(Arc::new(Inner {
            functions,
            clock,
            most,
            state: Mutex::default(),
        }))
    }

    /// Invokes a function now or later; at most once.
    pub(super) fn add(&self, function: String, payload: Value) {
        let invocation = Invocation { function, payload };
        let now = self.0.clock.now();
        let mut state = self.0.lock();
        if state.line.is_empty() && state.room(self.0.most, now) > 0 {
            let number = state.begin(now);
            drop(state);
            self.carry_out(number, invocation);
            return;
        }
        if state.line.len() >= LONGEST {
            if !std::mem::replace(&mut state.full, true) {
                tracing::warn!(
                    function = invocation.function,
                    waiting = LONGEST,
                    "more events come than are handled: the next sweeps handle what is left"
                );
            }
            return;
        }
        state.line.push_back(invocation);
        state.share.come(1);
        if !std::mem::replace(&mut state.kept, true) {
            drop(state);
            tokio::spawn(self.clone().keep());
        }
    }

    /// Lets in those who wait, until nobody does.
    async fn keep(self) {
        loop {
            let now = self.0.clock.now();
            let Some(next) = self.0.lock().next(self.0.most, now) else {
                return;
            };
            for (number, invocation) in next {
                self.carry_out(number, invocation);
            }
            self.0.clock.sleep(BREATH).await;
        }
    }

    fn carry_out(&self, number: u64, invocation: Invocation) {
        let Invocation { function, payload } = invocation;
        let queue = self.clone();
        tokio::spawn(async move {
            if let Err(why) = queue.0.functions.invoke(&function, payload).await {
                tracing::warn!(function, error = why.message, "an invocation failed");
            }
            queue.0.lock().under_way.remove(&number);
        });
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How many more may be under way.
    fn room(&self, most: usize, now: Timestamp) -> usize {
        let all = self.under_way.values();
        let at_work = all.filter(|since| now.duration_since(**since) < PATIENCE);
        most.saturating_sub(at_work.count())
    }

    fn begin(&mut self, now: Timestamp) -> u64 {
        self.begun += 1;
        self.under_way.insert(self.begun, now);
        self.begun
    }

    /// Those that begin now; `None` where nobody waits any more.
    fn next(&mut self, most: usize, now: Timestamp) -> Option<Vec<(u64, Invocation)>> {
        if self.line.is_empty() {
            self.kept = false;
            self.full = false;
            return None;
        }
        let room = self.room(most, now);
        let count = room.min(self.share.due(now)).min(self.line.len());
        let mut next = Vec::with_capacity(count);
        for _ in 0..count {
            let Some(invocation) = self.line.pop_front() else {
                break;
            };
            self.share.let_in(now);
            next.push((self.begin(now), invocation));
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(millisecond).unwrap()
    }

    /// How many begin in one look after the other, while so many come before each; each ends at once.
    fn looks<const N: usize>(state: &mut State, from_ms: i64, comes: [u64; N]) -> [usize; N] {
        let mut looks = (from_ms..).zip(comes);
        std::array::from_fn(|_| {
            let (now_ms, come) = looks.next().unwrap();
            for number in 0..come {
                state.line.push_back(Invocation {
                    function: "trigger".to_owned(),
                    payload: number.into(),
                });
            }
            state.share.come(come);
            let next = state.next(4, at(now_ms)).unwrap_or_default();
            for (number, _) in &next {
                state.under_way.remove(number);
            }
            next.len()
        })
    }

    #[test]
    fn a_burst_is_taken_in_before_it_is_handled() {
        let mut state = State::default();
        assert_eq!(looks(&mut state, 0, [20, 5, 7, 40, 1]), [1, 0, 1, 2, 0]);
        assert_eq!(looks(&mut state, 5, [0, 0, 0, 1, 0]), [4, 4, 4, 0, 4]);
    }

    #[test]
    fn oldest_first_and_each_once() {
        let mut state = State::default();
        looks(&mut state, 0, [0]);
        let mut seen = Vec::new();
        for number in 0..9_u64 {
            state.line.push_back(Invocation {
                function: "trigger".to_owned(),
                payload: number.into(),
            });
        }
        for look in 0.. {
            let Some(next) = state.next(4, at(look)) else {
                break;
            };
            for (number, invocation) in next {
                state.under_way.remove(&number);
                seen.push(invocation.payload);
            }
        }
        assert_eq!(seen, (0..9_u64).map(Value::from).collect::<Vec<_>>());
    }

    #[test]
    fn who_waits_for_somebody_else_keeps_no_other_from_beginning() {
        let mut state = State::default();
        let slow: Vec<u64> = (0..4).map(|_| state.begin(at(0))).collect();
        assert_eq!(state.room(4, at(200)), 0);
        assert_eq!(state.room(4, at(250)), 4);
        slow.iter().for_each(|number| {
            state.under_way.remove(number);
        });
        assert_eq!(state.room(4, at(250)), 4);
    }
}
