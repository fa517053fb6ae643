//! How calls are repeated: an AWS connector's `awsSdkClientBackOffStrategyOverride`.
//!
//! The three strategies are those of AWS's SDK for Java, by whose names Harness calls them (AWS connector settings
//! reference, *AWS backoff strategy*); all times are milliseconds:
//!
//! | `type` | before the retry that follows `n` others |
//! |---|---|
//! | `FixedDelayBackoffStrategy` | `fixedBackoff` |
//! | `FullJitterBackoffStrategy` | 1 to `c`, where `c` is `baseDelay`·2ⁿ and at most `maxBackoffTime` |
//! | `EqualJitterBackoffStrategy` | `c`/2 to `c` |
//!
//! `retryCount` is the number of retries; a call that was repeated so often has failed. Without one there are seven, after
//! which the step waits and calls again while its time lasts ([`crate::advance`]). Without an override the SDK's own
//! strategy counts: exponential, with full jitter. A call ends after two minutes, whatever its strategy.
//!
//! The SDKs for Rust take no strategy of others. So theirs is asked to wait for no time at all, which it tells to
//! [`super::runtime::ClockSleep`]; that one waits for what [`BackoffDelay`] found out right before, in the same poll of the same task.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::FinalizerInterceptorContextRef;
use aws_smithy_runtime_api::client::interceptors::{Intercept, dyn_dispatch_hint};
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;
use aws_smithy_types::retry::RetryConfig;
use serde_json::Value;

/// Attempts of one call when the connector says nothing.
const ATTEMPTS: u32 = 8;
/// Most attempts, whatever the connector says.
const MOST_ATTEMPTS: u32 = 20;
/// First and longest wait of the SDK's own strategy.
const USUAL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(20));
/// Longest first and longest wait, whatever the connector says, in milliseconds.
const LONGEST_MS: (u64, u64) = (60_000, 300_000);

thread_local! {
    /// What the next retry of the call that is being worked on waits for.
    static DELAY: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// A number from 0 to the given one, both included.
type Dice = Arc<dyn Fn(u64) -> u64 + Send + Sync>;

/// How calls of a connector are repeated, clamped.
#[derive(Clone)]
pub struct Backoff {
    attempts: u32,
    strategy: Strategy,
    dice: Dice,
}

/// Times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    /// The SDK's own.
    Sdk { first: u64, longest: u64 },
    /// The same each time.
    Fixed { delay: u64 },
    /// Anything up to the ceiling.
    FullJitter { base: u64, longest: u64 },
    /// Half of the ceiling, and anything up to the other half.
    EqualJitter { base: u64, longest: u64 },
}

impl fmt::Debug for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} attempts, {:?}", self.attempts, self.strategy)
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            attempts: ATTEMPTS,
            strategy: Strategy::Sdk {
                first: millis(USUAL.0),
                longest: millis(USUAL.1),
            },
            dice: Arc::new(|most| fastrand::u64(0..=most)),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a connector with this `spec` says how often a call is repeated: after that it has failed.
pub fn limits_retries(spec: &Value) -> bool {
    let wanted = &spec["awsSdkClientBackOffStrategyOverride"]["spec"]["retryCount"];
    match wanted {
        Value::String(text) => text.trim().parse::<u64>().is_ok(),
        other => other.as_u64().is_some(),
    }
}

impl Backoff {
    /// From a connector's spec. Numbers may be texts; a strategy of an unknown type shapes the SDK's own.
    pub fn of_connector(spec: &Value) -> Self {
        let wanted = &spec["awsSdkClientBackOffStrategyOverride"];
        let number = |name: &str| match &wanted["spec"][name] {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64(),
        };
        let default = Self::default();
        let attempts = number("retryCount")
            .and_then(|count| u32::try_from(count.saturating_add(1)).ok())
            .map_or(default.attempts, |attempts| {
                attempts.clamp(1, MOST_ATTEMPTS)
            });
        let or = |name, usual: Duration| number(name).unwrap_or(millis(usual));
        let base = or("baseDelay", USUAL.0).min(LONGEST_MS.0);
        let longest = or("maxBackoffTime", USUAL.1).min(LONGEST_MS.1);
        let strategy = match wanted["type"].as_str() {
            Some("FixedDelayBackoffStrategy") => Strategy::Fixed {
                delay: or("fixedBackoff", USUAL.0).min(LONGEST_MS.0),
            },
            Some("FullJitterBackoffStrategy") => Strategy::FullJitter { base, longest },
            Some("EqualJitterBackoffStrategy") => Strategy::EqualJitter { base, longest },
            _ => Strategy::Sdk {
                first: base,
                longest,
            },
        };
        Self {
            attempts,
            strategy,
            ..default
        }
    }

    /// The same with other dice.
    pub fn with_dice(mut self, dice: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Self {
        self.dice = Arc::new(dice);
        self
    }

    /// What the SDK is told.
    pub(super) fn retry_config(&self) -> RetryConfig {
        let config = RetryConfig::standard().with_max_attempts(self.attempts);
        let (first, longest) = match self.strategy {
            Strategy::Sdk { first, longest } => {
                (Duration::from_millis(first), Duration::from_millis(longest))
            }
            _ => (Duration::ZERO, Duration::ZERO),
        };
        config.with_initial_backoff(first).with_max_backoff(longest)
    }

    /// Tells [`super::runtime::ClockSleep`] how long the next wait is.
    pub(super) fn delay(&self) -> BackoffDelay {
        BackoffDelay(self.clone())
    }

    /// The wait before the retry that follows `retries` others; `None` leaves it to the SDK.
    fn before_retry(&self, retries: u32) -> Option<Duration> {
        let ceiling = |base: u64, longest: u64| {
            let power = 1_u64.checked_shl(retries).unwrap_or(u64::MAX);
            base.saturating_mul(power).min(longest)
        };
        let roll = |most: u64| (self.dice)(most).min(most);
        let wait = match self.strategy {
            Strategy::Sdk { .. } => return None,
            Strategy::Fixed { delay } => delay,
            Strategy::FullJitter { base, longest } => {
                let ceiling = ceiling(base, longest);
                roll(ceiling.saturating_sub(1)) + 1
            }
            Strategy::EqualJitter { base, longest } => {
                let half = ceiling(base, longest) / 2;
                half + roll(half)
            }
        };
        Some(Duration::from_millis(wait))
    }
}

/// The wait that an SDK's zero stands for.
pub(super) fn meant(asked: Duration) -> Duration {
    match asked.is_zero() {
        true => DELAY.take().unwrap_or(asked),
        false => asked,
    }
}

/// Finds out after each attempt how long a retry would wait.
#[derive(Clone, Debug)]
pub(super) struct BackoffDelay(Backoff);

#[dyn_dispatch_hint]
impl Intercept for BackoffDelay {
    fn name(&self) -> &'static str {
        "BackoffDelay"
    }

    fn read_after_attempt(
        &self,
        _context: &FinalizerInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let attempts = config.load::<RequestAttempts>();
        let attempts = attempts.map_or(1, |made| made.attempts());
        DELAY.set(self.0.before_retry(attempts.saturating_sub(1)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(kind: &str, spec: &Value) -> Backoff {
        let wanted = json!({"awsSdkClientBackOffStrategyOverride": {"type": kind, "spec": spec}});
        Backoff::of_connector(&wanted)
    }

    fn waits(backoff: &Backoff, retries: u32) -> Vec<u128> {
        let waits = (0..retries).map(|n| backoff.before_retry(n).expect("a wait").as_millis());
        waits.collect()
    }

    #[test]
    fn each_strategy_waits_as_it_is_called() {
        let spec =
            json!({"fixedBackoff": 100, "baseDelay": "50", "maxBackoffTime": 300, "retryCount": 5});
        let (low, high) = (|_| 0, |most| most);
        let fixed = of("FixedDelayBackoffStrategy", &spec);
        assert_eq!(waits(&fixed, 3), [100, 100, 100]);
        let full = of("FullJitterBackoffStrategy", &spec);
        assert_eq!(waits(&full.clone().with_dice(low), 4), [1, 1, 1, 1]);
        assert_eq!(waits(&full.with_dice(high), 5), [50, 100, 200, 300, 300]);
        let equal = of("EqualJitterBackoffStrategy", &spec);
        assert_eq!(waits(&equal.clone().with_dice(low), 4), [25, 50, 100, 150]);
        assert_eq!(waits(&equal.with_dice(high), 4), [50, 100, 200, 300]);
        assert_eq!(Backoff::default().before_retry(0), None);
    }

    #[test]
    fn a_connector_shapes_the_retries_within_limits() {
        let huge = json!({"fixedBackoff": 4e9 as u64, "baseDelay": 4e9 as u64, "maxBackoffTime": 4e9 as u64,
            "retryCount": 4e9 as u64});
        let none = json!({});
        let table = [
            ("", &none, "8 attempts, Sdk { first: 1000, longest: 20000 }"),
            (
                "FixedDelayBackoffStrategy",
                &none,
                "8 attempts, Fixed { delay: 1000 }",
            ),
            (
                "FixedDelayBackoffStrategy",
                &huge,
                "20 attempts, Fixed { delay: 60000 }",
            ),
            (
                "EqualJitterBackoffStrategy",
                &huge,
                "20 attempts, EqualJitter { base: 60000, longest: 300000 }",
            ),
        ];
        for (kind, spec, expected) in table {
            assert_eq!(format!("{:?}", of(kind, spec)), expected, "{kind}");
        }
        let never = of(
            "FullJitterBackoffStrategy",
            &json!({"retryCount": 0, "baseDelay": 0}),
        );
        assert_eq!(never.retry_config().max_attempts(), 1);
        assert_eq!(waits(&never.with_dice(|_| 9), 70).last(), Some(&1));
    }
}
