//! The one clock that tests can move.
//!
//! Everything in Slipway that asks for the time or waits takes a [`Clock`]. Production code uses
//! [`Clock::system`]. Tests use [`Clock::paused`] inside a Tokio runtime whose time is paused
//! (`#[tokio::test(start_paused = true)]`): when every task is idle Tokio jumps to the next timer, so a
//! three-day wait ends in microseconds and in the same order every time.
//!
//! This crate exists apart from its users because `asl` and `sandbox` must not know each other and yet
//! must be moved by one hand.

mod share;

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

pub use share::Share;

/// Longest single sleep of the system clock: after a suspend or a wall-clock jump a waiter is at most
/// this late.
const LONGEST_NAP: Duration = Duration::from_secs(30);

/// A source of wall-clock time and of waits.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    /// Wall time `at` when Tokio's clock stood at `from`.
    Paused {
        at: Timestamp,
        from: Instant,
    },
}

impl Clock {
    /// The machine's own clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that starts at `at` and moves with Tokio's time, which a test pauses or advances.
    /// Must be called inside a Tokio runtime.
    pub fn paused(at: Timestamp) -> Self {
        Self(Source::Paused {
            at,
            from: Instant::now(),
        })
    }

    /// The current wall-clock time.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => Timestamp::now(),
            Source::Paused { at, from } => {
                let gone = jiff::SignedDuration::try_from(from.elapsed())
                    .unwrap_or(jiff::SignedDuration::MAX);
                at.checked_add(gone).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Milliseconds since the Unix epoch, the form of the REST API and of the store.
    pub fn now_ms(&self) -> i64 {
        self.now().as_millisecond()
    }

    /// Returns once [`Clock::now`] has reached `deadline`; at once if it has already.
    pub async fn sleep_until(&self, deadline: Timestamp) {
        loop {
            let left = deadline.duration_since(self.now());
            let Ok(left) = Duration::try_from(left) else {
                return;
            };
            if left.is_zero() {
                return;
            }
            let nap = match self.0 {
                Source::System => left.min(LONGEST_NAP),
                Source::Paused { .. } => left,
            };
            tokio::time::sleep(nap).await;
        }
    }

    /// Returns after `duration` of this clock's time.
    pub async fn sleep(&self, duration: Duration) {
        let duration =
            jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX);
        let deadline = self.now().checked_add(duration).unwrap_or(Timestamp::MAX);
        self.sleep_until(deadline).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_paused_clock_crosses_days_at_once() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a timestamp");
        let clock = Clock::paused(start);
        clock.sleep(Duration::from_secs(3 * 86_400)).await;
        assert_eq!(clock.now().to_string(), "2026-01-04T00:00:00Z");
    }
}
