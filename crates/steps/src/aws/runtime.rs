//! How the SDK waits, tells the time and retries: by Slipway's clock, and bounded.

use std::time::{Duration, SystemTime};

use aws_sdk_ecs::config::{AsyncSleep, Sleep};
use aws_smithy_async::time::TimeSource;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use serde_json::Value;
use slipway_clock::Clock;

/// Attempts of one call when the connector says nothing.
const ATTEMPTS: u32 = 8;

/// Longest wait between two attempts when the connector says nothing.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Waits of the SDK, on our clock.
#[derive(Clone, Debug)]
pub(super) struct ClockSleep(pub(super) Clock);

impl AsyncSleep for ClockSleep {
    fn sleep(&self, duration: Duration) -> Sleep {
        let clock = self.0.clone();
        Sleep::new(async move { clock.sleep(duration).await })
    }
}

/// The SDK's idea of now, for signatures and expiry, on our clock.
#[derive(Clone, Debug)]
pub(super) struct ClockTime(pub(super) Clock);

impl TimeSource for ClockTime {
    fn now(&self) -> SystemTime {
        SystemTime::from(self.0.now())
    }
}

/// Limits of one call: a target that answers a byte a minute must not hold a function.
pub(super) fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(5))
        .operation_attempt_timeout(Duration::from_secs(30))
        .operation_timeout(Duration::from_secs(120))
        .build()
}

/// How calls are repeated: the connector's `awsSdkClientBackOffStrategyOverride`, clamped.
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    attempts: u32,
    first: Duration,
    longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            attempts: ATTEMPTS,
            first: Duration::from_secs(1),
            longest: LONGEST_WAIT,
        }
    }
}

impl Backoff {
    /// From a connector's spec. Times there are milliseconds; the SDK's own strategy (exponential with
    /// full jitter) is used with them.
    pub fn of_connector(spec: &Value) -> Self {
        let wanted = &spec["awsSdkClientBackOffStrategyOverride"]["spec"];
        let default = Self::default();
        let number = |name: &str| match &wanted[name] {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64(),
        };
        let wait = |name: &str| number(name).map(Duration::from_millis);
        let first = wait("fixedBackoff").or_else(|| wait("baseDelay"));
        let longest = wait("fixedBackoff").or_else(|| wait("maxBackoffTime"));
        let attempts = number("retryCount")
            .and_then(|count| u32::try_from(count.saturating_add(1)).ok())
            .map(|attempts| attempts.clamp(1, 20));
        Self {
            attempts: attempts.unwrap_or(default.attempts),
            first: first.unwrap_or(default.first).min(Duration::from_secs(60)),
            longest: longest
                .unwrap_or(default.longest)
                .min(Duration::from_secs(300)),
        }
    }

    pub(super) fn retry_config(&self) -> RetryConfig {
        RetryConfig::standard()
            .with_max_attempts(self.attempts)
            .with_initial_backoff(self.first)
            .with_max_backoff(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connector_shapes_the_retries_within_limits() {
        let of = |spec: Value| {
            let spec = serde_json::json!({"awsSdkClientBackOffStrategyOverride": {"spec": spec}});
            let Backoff {
                attempts,
                first,
                longest,
            } = Backoff::of_connector(&spec);
            (attempts, first.as_millis(), longest.as_millis())
        };
        let table = [
            (serde_json::json!({}), (8, 1_000, 20_000)),
            (
                serde_json::json!({"fixedBackoff": 100, "retryCount": 5}),
                (6, 100, 100),
            ),
            (
                serde_json::json!({"baseDelay": "50", "maxBackoffTime": 200, "retryCount": 0}),
                (1, 50, 200),
            ),
            (
                serde_json::json!({"baseDelay": 1e9 as u64, "maxBackoffTime": 1e9 as u64, "retryCount": 4e9 as u64}),
                (20, 60_000, 300_000),
            ),
        ];
        for (spec, expected) in table {
            assert_eq!(of(spec.clone()), expected, "{spec}");
        }
    }
}
