//! What the interpreter remembers of a run, and of what runs share.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::abort::Aborts;
use super::{Asked, Span};
use crate::ast::Stop;
use slipway_model::status::Status;
use tokio::sync::Notify;

/// A node in its newest attempt.
#[derive(Clone, Debug)]
pub(super) struct NodeState {
    pub(super) attempt: u32,
    pub(super) status: Status,
    /// A step that runs, and can be stopped.
    pub(super) open: bool,
    /// People are asked to approve.
    pub(super) votes_wanted: bool,
    /// Its failure asks for an answer.
    pub(super) asks: bool,
    /// It was stopped, and when that was said.
    pub(super) stopped: Option<(Stop, u64)>,
    /// It waits for its next attempt.
    pub(super) comes_again: bool,
    /// Its next attempt is stopped before it does anything.
    pub(super) stopped_next: Option<Stop>,
    /// Who approved, and who did not.
    pub(super) votes: Vec<(String, bool)>,
    /// What was answered to its failure, and when.
    pub(super) answer: Option<(&'static str, u64)>,
    /// It has arrived at its barrier, in this or an earlier attempt.
    pub(super) arrived: bool,
    /// It does not run because something failed before it.
    pub(super) given_up: bool,
    /// How often it was begun again in its round, where it is a group.
    pub(super) retried: u32,
    /// The group around it was begun again since.
    pub(super) forgotten: bool,
}

/// A stage.
#[derive(Clone, Debug)]
pub(super) struct StageState {
    pub(super) status: Status,
    pub(super) rolled_back: bool,
    /// Its failure rolls the run back.
    pub(super) undoes_run: bool,
    /// It was being rolled back with the run, and the abort of the run stopped that.
    pub(super) stopped: bool,
    /// It waits to be rolled back with the run, or is.
    pub(super) undoing: bool,
}

impl StageState {
    /// A stage of this status that nothing else is to be said about.
    pub(super) fn of(status: Status) -> Self {
        Self {
            status,
            rolled_back: false,
            undoes_run: false,
            stopped: false,
            undoing: false,
        }
    }
}

/// A run.
#[derive(Default)]
pub(super) struct State {
    pub(super) aborts: Aborts,
    /// The run is being rolled back.
    pub(super) undoing: bool,
    /// Since when nothing new begins, in milliseconds.
    pub(super) paused: Option<u64>,
    pub(super) ended: Option<Status>,
    pub(super) stages: BTreeMap<String, StageState>,
    pub(super) nodes: BTreeMap<String, NodeState>,
    /// Stages that deploy, in the order in which they came to where they do.
    pub(super) deployed: Vec<String>,
    /// Stages that wait for their infrastructure; and where somebody gave one up: whether it was made to expire.
    pub(super) waiting: BTreeMap<String, Option<bool>>,
    /// How often everything that waits was woken.
    pub(super) wakes: u64,
    pub(super) asked: Vec<Asked>,
    pub(super) spans: Vec<Span>,
}

impl State {
    /// The run is rolled back, and these stages with it.
    pub(super) fn undoes<'s>(&mut self, stages: impl Iterator<Item = &'s str>) {
        self.undoing = true;
        for stage in stages {
            if let Some(known) = self.stages.get_mut(stage) {
                known.undoing = true;
            }
        }
    }
}

/// Who holds what, and who waits for it, first come first served.
#[derive(Default)]
pub(super) struct Lines {
    lines: RefCell<BTreeMap<String, Vec<String>>>,
    pub(super) moved: Notify,
}

impl Lines {
    /// Whether somebody is the first.
    pub(super) fn is_held_by(&self, key: &str, who: &str) -> bool {
        let lines = self.lines.borrow();
        let line = lines.get(key);
        line.and_then(|line| line.first())
            .is_some_and(|first| first == who)
    }

    /// Takes a place; whether it is the first.
    pub(super) fn take(&self, key: &str, who: &str) -> bool {
        let mut lines = self.lines.borrow_mut();
        let line = lines.entry(key.to_owned()).or_default();
        if !line.iter().any(|one| one == who) {
            line.push(who.to_owned());
        }
        line.first().is_some_and(|first| first == who)
    }

    /// Gives a place back; the others move up.
    pub(super) fn leave(&self, who: &str) {
        for line in self.lines.borrow_mut().values_mut() {
            line.retain(|one| one != who);
        }
        self.moved.notify_waiters();
    }
}
