//! What EventBridge Scheduler does on AWS: the instance sweep, every ten minutes.

use std::sync::Arc;
use std::time::Duration;

use slipway_clock::Clock;
use tokio_util::sync::CancellationToken;

use crate::local::functions::Functions;

/// Time between two sweeps, as in `infra/app.yaml`.
const SWEEP: Duration = Duration::from_secs(600);

/// Finishes what a crash interrupted, then sweeps until `stop`.
pub async fn run(functions: Arc<Functions>, clock: Clock, stop: CancellationToken) {
    functions.resume_unstarted().await;
    loop {
        functions.sweep().await;
        let next = clock.sleep(SWEEP);
        if stop.run_until_cancelled(next).await.is_none() {
            return;
        }
    }
}
