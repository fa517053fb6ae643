//! Following a run until it ends.

use std::time::Duration;

use slipway_clock::Clock;

use crate::client::Client;
use crate::commands::graph::{self, Run};
use crate::commands::tree::Tree;
use crate::error::CliError;
use crate::exit::Exit;

/// Polls grow from the first to the last of these while nothing changes.
const FIRST_POLL: Duration = Duration::from_millis(150);
const LAST_POLL: Duration = Duration::from_secs(2);

/// How long to stay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    /// End as soon as the run waits for a person.
    pub no_wait: bool,
    /// Give up after so long.
    pub limit: Option<Duration>,
}

/// Shows the run's progress until it ends; how it ended, and what it looked like then.
pub async fn follow(
    client: &Client,
    clock: &Clock,
    run: &str,
    patience: Patience,
) -> Result<(Exit, Run), CliError> {
    let began = clock.now();
    let mut tree = Tree::new();
    let mut poll = FIRST_POLL;
    let mut last: Option<Run> = None;
    loop {
        let seen = graph::fetch(client, run).await?;
        tree.show(&seen, clock.now_ms());
        if let Some(exit) = Exit::of_status(&seen.status) {
            return Ok((exit, seen));
        }
        if patience.no_wait && waits(&seen) {
            return Ok((Exit::WaitsForPerson, seen));
        }
        let gone = Duration::try_from(clock.now().duration_since(began)).unwrap_or_default();
        if patience.limit.is_some_and(|limit| gone >= limit) {
            anstream::eprintln!(
                "gave up following after {} s; the run goes on",
                gone.as_secs()
            );
            return Ok((Exit::TimedOut, seen));
        }
        poll = if last.as_ref() == Some(&seen) {
            (poll * 2).min(LAST_POLL)
        } else {
            FIRST_POLL
        };
        last = Some(seen);
        clock.sleep(poll).await;
    }
}

fn waits(run: &Run) -> bool {
    Exit::waits_for_person(&run.status)
        || run
            .nodes
            .iter()
            .any(|node| Exit::waits_for_person(&node.status) || !node.asking.is_empty())
}
