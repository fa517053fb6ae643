//! What EventBridge Scheduler does on AWS: the instance sweep, every ten minutes, and the start of accepted runs and the
//! intake of events, every minute.

use std::sync::Arc;
use std::time::Duration;

use slipway_clock::Clock;
use tokio_util::sync::CancellationToken;

use crate::local::functions::Functions;

/// Time between two instance sweeps, as in `infra/app.yaml`.
const SWEEP: Duration = Duration::from_secs(600);

/// Time between two looks at what was accepted and has not begun, as in `infra/app.yaml`.
const START: Duration = Duration::from_secs(60);

/// Time between two looks at events and schedules, as in `infra/app.yaml`: at the beginning of each minute, which is what
/// schedules name.
const INTAKE_MS: i64 = 60_000;

/// Time between two looks at which feeds are due, as in `infra/app.yaml`.
const POLL: Duration = Duration::from_secs(60);

/// Finishes what a crash interrupted, then does all of it until `stop`.
pub async fn run(functions: Arc<Functions>, clock: Clock, stop: CancellationToken) {
    functions.resume().await;
    tokio::join!(
        count(&functions, &clock, &stop),
        start(&functions, &clock, &stop),
        take_in(&functions, &clock, &stop),
        poll(&functions, &clock, &stop)
    );
}

async fn count(functions: &Functions, clock: &Clock, stop: &CancellationToken) {
    loop {
        functions.sweep().await;
        if is_over(SWEEP, clock, stop).await {
            return;
        }
    }
}

async fn start(functions: &Functions, clock: &Clock, stop: &CancellationToken) {
    loop {
        functions.start_accepted().await;
        if is_over(START, clock, stop).await {
            return;
        }
    }
}

async fn take_in(functions: &Functions, clock: &Clock, stop: &CancellationToken) {
    loop {
        functions.take_in().await;
        let left = INTAKE_MS - clock.now_ms().rem_euclid(INTAKE_MS);
        let left = Duration::from_millis(left.unsigned_abs());
        if is_over(left, clock, stop).await {
            return;
        }
    }
}

async fn poll(functions: &Functions, clock: &Clock, stop: &CancellationToken) {
    loop {
        functions.poll().await;
        if is_over(POLL, clock, stop).await {
            return;
        }
    }
}

/// Whether `stop` came before the time was over.
async fn is_over(time: Duration, clock: &Clock, stop: &CancellationToken) -> bool {
    stop.run_until_cancelled(clock.sleep(time)).await.is_none()
}
