//! How the SDK waits, tells the time and retries: by Slipway's clock, and bounded.

use std::time::{Duration, SystemTime};

use aws_sdk_ecs::config::{AsyncSleep, Sleep};
use aws_smithy_async::time::TimeSource;
use aws_smithy_runtime::client::retries::{RetryPartition, TokenBucket};
use aws_smithy_types::timeout::TimeoutConfig;
use slipway_clock::Clock;

use super::backoff;

/// Waits of the SDK, on our clock.
#[derive(Clone, Debug)]
pub(super) struct ClockSleep(pub(super) Clock);

impl AsyncSleep for ClockSleep {
    fn sleep(&self, duration: Duration) -> Sleep {
        let clock = self.0.clone();
        let duration = backoff::meant(duration);
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

/// Retries that no other client uses up: the SDK's own count is one for all clients of a service in a process, so that a
/// busy account would leave none to the others.
pub(super) fn retries() -> RetryPartition {
    let partition = RetryPartition::custom("target");
    partition.token_bucket(TokenBucket::unlimited()).build()
}

/// Limits of one call: a target that answers a byte a minute must not hold a function.
pub(super) fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(5))
        .operation_attempt_timeout(Duration::from_secs(30))
        .operation_timeout(Duration::from_secs(120))
        .build()
}
