//! Time: when something is due next, and what happens then.

use jiff::Timestamp;

use super::Run;
use crate::record::{Branch, Phase};

/// Longest express execution, in seconds (Developer Guide, "Choosing workflow type").
const LONGEST_EXPRESS: i64 = 300;

impl Run {
    /// The next time at which something is due.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let machine = self.machine_deadline_ms();
        let branches = self.branches.values().filter_map(due_ms);
        let earliest = machine.into_iter().chain(branches).min()?;
        Timestamp::from_millisecond(earliest).ok()
    }

    /// Acts on everything that is due at `now`.
    pub(crate) fn fire(&mut self, now: Timestamp) {
        self.now = now;
        let now_ms = now.as_millisecond();
        if self.machine_deadline_ms().is_some_and(|due| due <= now_ms) {
            self.time_out_execution();
            return;
        }
        let due: Vec<u32> = self
            .branches
            .iter()
            .filter(|(_, branch)| due_ms(branch).is_some_and(|due| due <= now_ms))
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            self.fire_branch(id, now_ms);
        }
    }

    fn fire_branch(&mut self, id: u32, now_ms: i64) {
        let Some(branch) = self.branches.get_mut(&id) else {
            return;
        };
        match &branch.phase {
            Phase::Wait { .. } => self.finish_wait(id),
            Phase::Backoff { .. } => {
                branch.phase = Phase::Run;
                self.step.dirty.insert(id);
                self.ready.push_back(id);
            }
            Phase::Task(task) => {
                let heartbeat = task.deadline_ms.is_none_or(|due| due > now_ms);
                self.time_out_task(id, heartbeat);
            }
            _ => {}
        }
    }

    fn machine_deadline_ms(&self) -> Option<i64> {
        let seconds = match (self.execution.processor, self.definition.timeout_seconds) {
            (None, Some(seconds)) if self.execution.express => seconds.min(LONGEST_EXPRESS),
            (None, Some(seconds)) => seconds,
            // A child of a distributed `Map` has the limit of its kind only.
            _ if self.execution.express => LONGEST_EXPRESS,
            _ => return None,
        };
        // A redrive has all of the time again.
        let execution = &self.execution;
        let since_ms = execution.redrives.last_ms.unwrap_or(execution.start_ms);
        Some(since_ms.saturating_add(seconds.saturating_mul(1000)))
    }
}

fn due_ms(branch: &Branch) -> Option<i64> {
    match &branch.phase {
        Phase::Wait { until_ms } | Phase::Backoff { until_ms } => Some(*until_ms),
        Phase::Task(task) => match (task.deadline_ms, task.heartbeat_ms) {
            (Some(deadline), Some(heartbeat)) => Some(deadline.min(heartbeat)),
            (deadline, heartbeat) => deadline.or(heartbeat),
        },
        _ => None,
    }
}
