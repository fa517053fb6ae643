//! Why a step of a ticket system does not go on now, and how often it tries again.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::status::{ErrorType, Failure};

use super::UNIT;
use super::text::shortened;
use crate::context::StepContext;
use crate::step::Progress;

/// How often a server that cannot answer is asked again by a step that does not wait for anything else.
const MOST_TRIES: u32 = 5;

/// Wait before the first of them; each later one waits twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(10);

/// Most characters of a failure.
const MOST_MESSAGE: usize = 2_000;

/// Why a step does not go on now.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The server cannot answer now; asked later it may.
    Later {
        /// What went wrong.
        failure: Failure,
        /// When the server wants to be asked again.
        after: Option<Duration>,
        /// Whether the server said that it did nothing (429).
        untouched: bool,
    },
    /// There is no such thing (404).
    Missing(Failure),
    /// It answers as no such server does: with a page for people, or elsewhere. A wrong address does so, and a proxy
    /// or a login page in front of the right one.
    Odd(Failure),
    /// It cannot succeed.
    Over(Failure),
    /// Nothing is wrong; it has to wait.
    Wait(Duration),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Over(failure)
    }
}

impl Stop {
    /// A failure that no repetition changes. The message may hold what a server said: it is cut where it is long.
    pub(crate) fn over(message: impl Into<String>) -> Self {
        Self::Over(Failure {
            error: ErrorType::Unknown,
            message: shortened(&message.into(), MOST_MESSAGE),
            left_behind: None,
        })
    }
}

/// How often a step has tried again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tries {
    #[serde(default)]
    count: u32,
    /// When to go on, epoch milliseconds.
    #[serde(default)]
    next_ms: Option<i64>,
}

impl Tries {
    /// What is left of the wait, when the step was called before its time.
    pub(crate) fn early(&self, cx: &StepContext<'_>) -> Option<Duration> {
        left(self.next_ms, cx)
    }

    /// How long to wait before the step goes on.
    ///
    /// # Errors
    /// The failure, when the step gives up.
    pub(crate) fn again(
        &mut self,
        stop: Stop,
        cx: &mut StepContext<'_>,
    ) -> Result<Duration, Failure> {
        let wait = match stop {
            Stop::Missing(failure) | Stop::Odd(failure) | Stop::Over(failure) => {
                return Err(failure);
            }
            Stop::Wait(wait) => wait,
            Stop::Later { failure, after, .. } => {
                let wait = after.unwrap_or(FIRST_WAIT * 2_u32.saturating_pow(self.count));
                if self.count == MOST_TRIES || wait >= cx.time_left() {
                    return Err(failure);
                }
                self.count += 1;
                let told = format!("{} Trying again in {} s.", failure.message, wait.as_secs());
                cx.warn(UNIT, told);
                wait
            }
        };
        self.next_ms = Some(later(wait, cx));
        Ok(wait)
    }
}

/// Ends a call of a step that tries again: with its outputs, with the wait before it goes on, or as failed.
/// `tries_of` finds the tries in what the step remembers.
pub(crate) async fn go_on<S: Serialize>(
    worked: Result<Value, Stop>,
    state: &mut S,
    tries_of: fn(&mut S) -> &mut Tries,
    cx: &mut StepContext<'_>,
) -> Result<Progress, Failure> {
    match worked {
        Ok(outputs) => Ok(Progress::Done(outputs)),
        Err(stop) => {
            let wait = tries_of(state).again(stop, cx)?;
            cx.save(state).await?;
            Ok(Progress::Again(wait))
        }
    }
}

/// What is left until a time.
pub(super) fn left(until_ms: Option<i64>, cx: &StepContext<'_>) -> Option<Duration> {
    u64::try_from(until_ms? - cx.clock().now_ms())
        .ok()
        .filter(|left| *left > 0)
        .map(Duration::from_millis)
}

/// The time after a wait that begins now, in epoch milliseconds.
pub(super) fn later(wait: Duration, cx: &StepContext<'_>) -> i64 {
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    cx.clock().now_ms().saturating_add(wait)
}
