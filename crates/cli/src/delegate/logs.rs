//! Sending the lines of a script's log in batches.

use std::time::Duration;

use slipway_clock::Clock;
use slipway_steps::shell::task::UNIT;
use slipway_store::record::LogLine;
use tokio::sync::mpsc::Receiver;

use super::api::TaskApi;

/// Most lines and bytes of a batch.
const BATCH: (usize, usize) = (500, 256 * 1024);

/// Longest time that a line waits for others.
const WAIT: Duration = Duration::from_millis(300);

/// Sends everything that comes until the senders are gone. While the service cannot be reached it keeps
/// trying, and the script waits once the few lines that are held in memory are full.
pub(super) async fn forward(
    api: &TaskApi,
    task: &str,
    clock: &Clock,
    mut lines: Receiver<LogLine>,
) {
    while let Some(first) = lines.recv().await {
        let mut bytes = first.out.len();
        let mut batch = vec![first];
        let deadline = clock.sleep(WAIT);
        tokio::pin!(deadline);
        while batch.len() < BATCH.0 && bytes < BATCH.1 {
            tokio::select! {
                line = lines.recv() => match line {
                    Some(line) => {
                        bytes += line.out.len();
                        batch.push(line);
                    }
                    None => break,
                },
                () = &mut deadline => break,
            }
        }
        api.send_lines(task, UNIT, &batch).await;
    }
}
