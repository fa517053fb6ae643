//! Targets that are busy, or away for a while: no failure of the step that called them. What the call had not saved is
//! forgotten, as after a crash, and the step is called again later, for as long as its time lasts.
//!
//! An SDK repeats a call by itself first, as the connector says ([`crate::aws::Backoff`]); what is here begins where that
//! has given up. A connector that says how often (`retryCount`) has the last word.

use std::cell::RefCell;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use slipway_model::duration::shown;
use slipway_model::status::Failure;

use super::{Saved, StepContext};
use crate::deployment::open_unit;
use crate::step::{Progress, Step};

/// The first wait at most, and the longest, in milliseconds; each is between half of that and all of it.
const WAITS_MS: (u64, u64) = (10_000, 30_000);

/// What a last look needs before the step's time is up, and the shortest wait that it is worth, in milliseconds.
const LAST_MS: (u64, u64) = (10_000, 2_500);

/// How often credentials of a session that ended too soon are taken anew before they are believed to be wrong.
const RENEWALS: u32 = 3;

tokio::task_local! {
    /// What the call of a step in this task has met last.
    static MET: RefCell<Option<Met>>;
}

/// Why a target did not do what it was asked for, where that passes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    /// Too many calls, an error of its own, or no answer.
    Busy,
    /// The credentials have ended.
    Expired,
}

struct Met {
    why: Passing,
    message: String,
}

/// How long a target has kept a step from going on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Busy {
    /// Waits so far.
    times: u32,
    /// When it began, in epoch milliseconds.
    since_ms: i64,
}

/// A target did not do what it was asked for, which `message` tells.
pub(crate) fn met(why: Passing, message: &str) {
    let message = message.to_owned();
    // Nobody watches calls that are no step's.
    let _ = MET.try_with(|met| met.replace(Some(Met { why, message })));
}

/// Lets a step go on; where a target is busy or away, later. A rollback step is as patient as any other.
///
/// # Errors
/// Those of the step, but for those that pass by themselves while its time lasts.
pub async fn advance(step: &dyn Step, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
    cx.is_undone_by(step.undone_by());
    let call = async {
        let failure = match step.advance(cx).await {
            Ok(progress) => {
                cx.answered(step.units());
                return Ok(progress);
            }
            Err(failure) => failure,
        };
        let Some(pause) = cx.pause_after(&failure) else {
            return Err(cx.waited_for(failure));
        };
        cx.put_off(step.units(), &failure).await;
        Ok(Progress::Again(pause))
    };
    MET.scope(RefCell::default(), call).await
}

impl StepContext<'_> {
    /// Whether the step is called again instead of failing so: what only a failure asks for is then not to be done.
    pub(crate) fn is_put_off(&self, failure: &Failure) -> bool {
        self.pause_after(failure).is_some()
    }

    /// The wait after a failure that passes by itself; `None` where the step fails.
    fn pause_after(&self, failure: &Failure) -> Option<Duration> {
        let told = |message: &str| {
            let left = failure.left_behind.as_deref().unwrap_or_default();
            failure.message.contains(message) || left.contains(message)
        };
        let found = MET.try_with(|met| {
            let met = met.borrow();
            met.as_ref()
                .filter(|met| told(&met.message))
                .map(|met| met.why)
        });
        let times = self.busy.as_ref().map_or(0, |busy| busy.times);
        let passes = match found.ok().flatten()? {
            Passing::Busy => !self.limited,
            Passing::Expired => self.renewable && times < RENEWALS,
        };
        let (needs, shortest) = LAST_MS;
        // A last look comes shortly before the end, however long the next wait would be.
        let latest = self
            .time_left()
            .saturating_sub(Duration::from_millis(needs));
        let pause = self.pause(times).min(latest);
        (passes && pause >= Duration::from_millis(shortest)).then_some(pause)
    }

    /// A failure that was waited for to pass says for how long.
    fn waited_for(&self, failure: Failure) -> Failure {
        let Some(busy) = &self.busy else {
            return failure;
        };
        let waited = self.since(busy);
        Failure {
            message: format!("{} It was tried for {waited}.", failure.message),
            ..failure
        }
    }

    /// For how long a target has kept the step from going on, for people.
    fn since(&self, busy: &Busy) -> String {
        let waited = self.clock().now_ms().saturating_sub(busy.since_ms);
        shown(Duration::from_secs(
            u64::try_from(waited / 1000).unwrap_or_default(),
        ))
    }

    /// Doubles up to the longest. It is not the same for steps that were turned away together.
    fn pause(&self, times: u32) -> Duration {
        let (first, longest) = WAITS_MS;
        let power = 1_u64.checked_shl(times).unwrap_or(u64::MAX);
        let half = first.saturating_mul(power).min(longest) / 2;
        let mut hash = Sha256::new();
        for part in [self.run().as_str(), self.node().as_str()] {
            hash.update(part);
        }
        hash.update(times.to_le_bytes());
        let dice = hash.finalize();
        let dice = u64::from(u16::from_le_bytes([dice[0], dice[1]]));
        Duration::from_millis(half + half * dice / u64::from(u16::MAX))
    }

    /// Forgets what was not saved, as after a crash, and tells once what is waited for.
    async fn put_off(&mut self, units: &[&'static str], failure: &Failure) {
        let unit = open_unit(self, units);
        let saved = Saved::deserialize(&self.stored).unwrap_or_default();
        self.state = saved.state;
        self.outputs = serde_json::Value::Null;
        self.log.clear();
        if self.renewable {
            self.services.aws.forget().await;
        }
        let busy = self.busy.take();
        if busy.is_none() {
            let limit = shown(self.step().timeout);
            self.warn(
                unit,
                format!(
                    "Waiting until AWS does it, at most until the step's timeout of {limit} is up: {}",
                    failure.message
                ),
            );
        }
        self.busy = Some(Busy {
            times: busy.as_ref().map_or(1, |busy| busy.times + 1),
            since_ms: busy.map_or_else(|| self.clock().now_ms(), |busy| busy.since_ms),
        });
    }

    /// The target does what it is asked for.
    fn answered(&mut self, units: &[&'static str]) {
        if let Some(busy) = self.busy.take() {
            let waited = self.since(&busy);
            let unit = open_unit(self, units);
            self.info(unit, format!("AWS did it after {waited}"));
        }
    }
}
