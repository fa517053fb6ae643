//! What is left of an execution that ended without success, and how a redrive goes on from it.
//!
//! A failure lets go of everything beside and below it on its way up. How that stood is kept aside until a retrier or a
//! catcher takes the failure, or the execution ends with it. Developer Guide, "Restarting state machine executions with
//! redrive" and "Redriving Map Runs".

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::failure::TOO_LONG;
use super::{Failure, Run, state_of};
use crate::definition::{Definition, Kind};
use crate::history::{EventType, details};
use crate::jsonata::QUERY_EVALUATION;
use crate::record::{Branch, Execution, Phase, Status};

/// Most redrives of one map run (Developer Guide, "Redriving Map Runs").
const MOST_MAP_RUN_REDRIVES: u32 = 1_000;

impl Run {
    /// Whether what is left matters: an express execution cannot go on, nor can a state that is only tried.
    pub(super) fn keeps_remains(&self) -> bool {
        !self.execution.express && self.trial.is_none()
    }

    /// Keeps what a redrive goes on from: what stands, and what the last failure let go of.
    pub(super) fn keep_remains(&mut self) {
        let mut remains = std::mem::take(&mut self.fallen);
        for (id, branch) in &self.branches {
            remains.entry(*id).or_insert_with(|| branch.clone());
        }
        self.step.remains = remains;
    }

    /// Keeps aside how a branch and all below it stand.
    pub(super) fn keep_aside(&mut self, id: u32) {
        if !self.keeps_remains() {
            return;
        }
        let mut inside = BTreeSet::from([id]);
        // Children have higher numbers than what they are children of.
        for (child, branch) in self.branches.range(id..) {
            let is_below = branch
                .parent
                .is_some_and(|(parent, _)| inside.contains(&parent));
            if is_below {
                inside.insert(*child);
            }
            if *child == id || is_below {
                // What fell before stands as it was then.
                let fallen = &mut self.fallen;
                fallen.entry(*child).or_insert_with(|| branch.clone());
            }
        }
    }

    /// Keeps aside how a branch stands that is about to run again, or to leave its state.
    pub(super) fn keep_phase_aside(&mut self, id: u32) {
        if self.keeps_remains()
            && let Some(branch) = self.branches.get_mut(&id)
        {
            let phase = std::mem::replace(&mut branch.phase, Phase::Run);
            let fallen = Branch {
                phase,
                ..branch.clone()
            };
            self.fallen.insert(id, fallen);
        }
    }

    /// Keeps aside a child that has ended.
    pub(super) fn keep_done_aside(&mut self, id: u32, branch: Branch) {
        if self.keeps_remains() {
            self.fallen.insert(id, branch);
        }
    }

    /// Forgets what was kept aside of a branch and below it: its state has been left, or runs from its beginning.
    pub(super) fn forget_aside(&mut self, id: u32) {
        if self.fallen.is_empty() {
            return;
        }
        let mut inside = BTreeSet::from([id]);
        for (child, branch) in self.fallen.range(id..) {
            if branch
                .parent
                .is_some_and(|(parent, _)| inside.contains(&parent))
            {
                inside.insert(*child);
            }
        }
        self.fallen.retain(|id, _| !inside.contains(id));
    }

    /// An execution that ended without success, as it goes on from what was left of it.
    pub(crate) fn redrive(
        number: u64,
        mut execution: Execution,
        definition: Arc<Definition>,
        remains: Vec<(u32, Branch)>,
        last_event: u64,
        now: Timestamp,
    ) -> Self {
        let ended = execution.status;
        execution.status = Status::Running;
        execution.stop_ms = None;
        execution.error = None;
        execution.cause = None;
        execution.redrives.add(now.as_millisecond());
        let count = execution.redrives.count;
        let mut run = Self::read(number, execution, definition, remains, last_event, now);
        run.step.reopened = Some(ended);
        // As AWS counts.
        run.step.transitions = 1;
        let counted = details([("redriveCount", Some(count.into()))]);
        let redriven = run.event(EventType::ExecutionRedriven, last_event, counted);
        let ids: Vec<u32> = run.branches.keys().copied().collect();
        run.step.cleared.clone_from(&ids);
        for id in &ids {
            run.stand_up(*id, redriven);
        }
        for id in ids {
            run.go_on_around(id);
        }
        run
    }

    /// Lets a branch run its state again that did not succeed.
    fn stand_up(&mut self, id: u32, redriven: u64) {
        let definition = self.definition();
        let Some(branch) = self.branches.get_mut(&id) else {
            return;
        };
        self.step.dirty.insert(id);
        if matches!(branch.phase, Phase::Done { .. }) {
            return;
        }
        branch.previous = redriven;
        branch.retries.clear();
        if let Some((parent, index)) = branch.parent
            && self.is_map(parent)
        {
            let again =
                self.iteration_event(parent, EventType::MapIterationStarted, index, redriven);
            self.follow(id, again);
        }
        let Some(branch) = self.branches.get_mut(&id) else {
            return;
        };
        let is_fail = state_of(&definition, branch)
            .is_some_and(|state| matches!(state.kind, Kind::Fail { .. }));
        match branch.phase {
            Phase::Children(_) | Phase::MapRun(_) => return,
            Phase::Enter => {}
            _ if is_fail => branch.phase = Phase::Enter,
            _ => branch.phase = Phase::Run,
        }
        self.ready.push_back(id);
    }

    /// Lets the next event of a branch follow this one.
    fn follow(&mut self, id: u32, event: u64) {
        if let Some(branch) = self.branches.get_mut(&id) {
            branch.previous = event;
        }
    }

    /// Goes on with a state whose children stand up.
    fn go_on_around(&mut self, id: u32) {
        match self.phase(id) {
            Some(Phase::MapRun(_)) => self.redrive_map_run(id),
            Some(Phase::Children(_)) => self.go_on_with_children(id),
            _ => {}
        }
    }

    fn go_on_with_children(&mut self, id: u32) {
        let (started, done, total, most) = self.progress(id);
        let previous = self.previous_of(id);
        if done == total {
            // Only leaving it has failed.
            if let Err(failure) = self.finish_children(id) {
                self.fail_state(id, failure);
            }
        } else if self.is_map(id) {
            let more = most.saturating_sub(started - done).min(total - started);
            for index in started..started + more {
                self.start_iteration(id, index, previous);
            }
        }
    }

    /// Goes on with a map run: children that did not succeed are redriven, those that never began are started.
    fn redrive_map_run(&mut self, id: u32) {
        let Some(Phase::MapRun(map_run)) = self.phase(id) else {
            return;
        };
        let (mut map_run, now_ms) = (map_run.clone(), self.now.as_millisecond());
        map_run.redrives.add(now_ms);
        if map_run.redrives.count > MOST_MAP_RUN_REDRIVES {
            let cause = format!("The map run has been redriven {MOST_MAP_RUN_REDRIVES} times");
            return self.fail_map_run(id, Failure::runtime(cause));
        }
        let redriven = details([
            ("mapRunArn", Some(map_run.arn.clone().into())),
            ("redriveCount", Some(map_run.redrives.count.into())),
        ]);
        map_run.started = self.branch_event(id, EventType::MapRunRedriven, redriven);
        self.set_phase(id, Phase::MapRun(map_run));
        self.resume_map_run(id);
    }
}

/// Whether a map run that failed so goes on with a redrive. Otherwise a new one is started: what it was made of, or what
/// it made, cannot be used.
pub(super) fn goes_on(failure: &Failure) -> bool {
    !matches!(
        failure.error.as_deref(),
        Some(TOO_LONG | "States.Runtime" | QUERY_EVALUATION)
    )
}
