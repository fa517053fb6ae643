//! The start on a journal that holds open executions: those that wait for long rest at once, so that a restart takes
//! no more memory than what was there before it, however many wait.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::driver::{Signal, rests_before};
use crate::engine::{Engine, Inner};
use crate::error::ApiError;
use crate::record::{Awaited, Parent, Phase};
use crate::run::{Run, map_run_of};

impl Engine {
    /// Starts driving every open execution. Call once, inside a Tokio runtime.
    ///
    /// An execution whose records cannot be read is logged and left as it is; the others go on.
    pub fn resume(&self) {
        self.resume_after("", &HashSet::new());
    }

    /// As [`Engine::resume`], after the death of a worker of activities that lives and dies with this process and goes by
    /// this name. It still has the tasks with these tokens. What else it had taken is offered again: on AWS, where nobody
    /// knows that a worker is dead, its heartbeat would have to be missed first.
    pub fn resume_after(&self, worker: &str, held: &HashSet<String>) {
        let inner = &self.0;
        let open = match inner.journal.open_executions() {
            Ok(open) => open,
            Err(error) => {
                tracing::error!(error = %ApiError::internal(&error), "cannot list open executions");
                return;
            }
        };
        let mut waits = Waits::default();
        let (mut awake, mut orphans, mut line) = (Vec::new(), Vec::new(), Vec::new());
        // Parents come before their children, which have started later.
        for &number in &open {
            let mut run = match inner.load(number) {
                Ok(Some(run)) => run,
                Ok(None) => continue,
                Err(error) => {
                    tracing::error!(number, error = %ApiError::internal(&error), "cannot resume an execution");
                    continue;
                }
            };
            run.give_back(worker, held);
            waits.note(&run);
            // What somebody redrove goes on, whoever waited for it before.
            let is_redriven = run.execution.map_run.is_none() && !run.execution.redrives.is_none();
            if !is_redriven && run.execution.parent.is_some_and(|p| waits.left_by(p)) {
                orphans.push(number);
            }
            if inner.turns.is_bounded() && run.is_unbegun() {
                inner.lay_down(number, run.next_deadline());
                line.push(number);
            } else if !inner.rest_again(&run, &open) {
                awake.push(run);
            }
        }
        // All are known before the first moves: it may have something to tell the others.
        let awake: Vec<_> = awake
            .into_iter()
            .map(|run| (inner.expect_driver(run.number), run))
            .collect();
        for (mailbox, run) in awake {
            inner.drive(run, mailbox);
        }
        inner.line_up(&line);
        for execution in orphans {
            inner.signal(
                execution,
                Signal::Stop {
                    error: None,
                    cause: None,
                    reply: None,
                },
            );
        }
    }
}

impl Inner {
    /// Lets an execution rest that has just been read, if it has nothing to do for long and nothing happened that it did
    /// not hear of.
    fn rest_again(self: &Arc<Self>, run: &Run, open: &[u64]) -> bool {
        let due = run.next_deadline();
        let rests = run.can_rest()
            && !run.is_ready()
            && rests_before(due, self.clock.now())
            && run
                .children()
                .all(|child| open.binary_search(&child).is_ok());
        if rests {
            self.lay_down(run.number, due);
        }
        rests
    }
}

/// What branches of open executions wait for.
#[derive(Default)]
struct Waits(HashMap<(u64, u32), Wait>);

enum Wait {
    /// The end of this attempt of a task.
    Task(u64),
    /// The children of the map run that began with this event.
    MapRun(u64),
}

impl Waits {
    fn note(&mut self, run: &Run) {
        let number = run.number;
        let waits = run.phases().filter_map(|(branch, phase)| match phase {
            Phase::Task(task) => Some(((number, branch), Wait::Task(task.attempt))),
            Phase::MapRun(map_run) => Some(((number, branch), Wait::MapRun(map_run.started))),
            _ => None,
        });
        self.0.extend(waits);
    }

    /// Whether a parent that was to wait for its child does so no longer.
    fn left_by(&self, parent: Parent) -> bool {
        let waits = match self.0.get(&(parent.execution, parent.branch)) {
            Some(Wait::Task(attempt)) => *attempt == parent.attempt,
            Some(Wait::MapRun(started)) => *started == map_run_of(parent.attempt).0,
            None => false,
        };
        parent.waits && !waits
    }
}

impl Run {
    /// Executions that tasks of this one wait for.
    fn children(&self) -> impl Iterator<Item = u64> {
        self.phases().filter_map(|(_, phase)| match phase {
            Phase::Task(task) => match task.awaited {
                Awaited::Child { child, .. } => child,
                _ => None,
            },
            _ => None,
        })
    }
}
