//! Words about one stage of a run, and aborts of the whole.

use std::collections::BTreeMap;

use slipway_model::status::Status;

use super::run::Run;
use super::state::{NodeState, StageState, State};
use crate::ast::Stop;

/// How stale the knowledge of an abort or a pause may be, in milliseconds.
const ABORT_SEEN_WITHIN: u64 = 1_000;

/// What was aborted, and when, in milliseconds.
#[derive(Default)]
pub(super) struct Aborts {
    run: Option<u64>,
    /// Stages, and whether it was their rollback with the run.
    stages: BTreeMap<(String, bool), u64>,
}

impl State {
    /// Whether the run is aborted.
    pub(super) fn is_aborted(&self) -> bool {
        self.aborts.run.is_some()
    }

    /// The run is aborted; for the first time or again.
    pub(super) fn aborts(&mut self, now_ms: u64) {
        self.aborts.run.get_or_insert(now_ms);
    }

    /// When what goes on of a stage was stopped: a word about the stage is none about its rollback with the run.
    fn stage_aborted_ms(&self, stage: &str) -> Option<u64> {
        let of_stage = self.aborts.stages.get(&(stage.to_owned(), self.undoing));
        self.aborts.run.into_iter().chain(of_stage.copied()).min()
    }

    /// Somebody aborts a stage: one that goes on, or waits for its infrastructure. Whether that fits.
    pub(super) fn aborts_stage(&mut self, stage: &str, now_ms: u64) -> bool {
        let fits = self.goes_on(stage) || self.waiting.contains_key(stage);
        if fits {
            let key = (stage.to_owned(), self.undoing);
            self.aborts.stages.entry(key).or_insert(now_ms);
        }
        fits
    }

    fn goes_on(&self, stage: &str) -> bool {
        let known = self.stages.get(stage);
        known.is_some_and(|known| match self.undoing {
            true => known.undoing,
            false => known.status == Status::Running,
        })
    }

    /// Somebody stops what runs in a stage, or the stage while it waits for its infrastructure.
    pub(super) fn stops_stage(&mut self, stage: &str, stop: Stop, now_ms: u64) -> bool {
        if let Some(word) = self.waiting.get_mut(stage) {
            return match stop {
                Stop::Fail | Stop::Expire => {
                    word.get_or_insert(stop == Stop::Expire);
                    true
                }
                Stop::RollBack => false,
            };
        }
        if !self.goes_on(stage) {
            return false;
        }
        let below = format!("stages.{stage}.");
        let mut heard = false;
        for (id, node) in &mut self.nodes {
            // A rollback is not rolled back.
            let spared = stop == Stop::RollBack && id.contains(".rollbackSteps.");
            if id.starts_with(&below) && !spared {
                heard |= stops(node, stop, now_ms);
            }
        }
        heard
    }

    /// Whether somebody aborted a stage, and that is how it ended: none after it begins.
    pub(super) fn was_aborted_alone(&self, stage: &str) -> bool {
        let ended = self.stages.get(stage);
        let aborted = |known: &StageState| known.status == Status::Aborted;
        ended.is_some_and(aborted) && self.aborts.stages.contains_key(&(stage.to_owned(), false))
    }
}

/// Stops a step that runs, or the attempt that it waits for; or answers what is asked about its failure. Whether that
/// fits.
pub(super) fn stops(node: &mut NodeState, stop: Stop, now_ms: u64) -> bool {
    let answer = match stop {
        Stop::Fail => Some("MarkAsFailure"),
        Stop::RollBack => Some("StageRollback"),
        // A question has a time of its own.
        Stop::Expire => None,
    };
    if node.open {
        node.stopped.get_or_insert((stop, now_ms));
        return true;
    }
    if node.comes_again {
        node.stopped_next.get_or_insert(stop);
        return true;
    }
    match answer.filter(|_| node.asks) {
        Some(answer) => {
            node.answer.get_or_insert((answer, now_ms));
            true
        }
        None => false,
    }
}

impl Run {
    /// Whether the run is aborted, or what goes on of a stage.
    pub(super) fn is_aborted(&self, stage: &str) -> bool {
        self.state().stage_aborted_ms(stage).is_some()
    }

    /// Whether nothing new begins, as far as the function knows that is about to begin something: what it has read may be
    /// a second old.
    pub(super) fn is_paused(&self) -> bool {
        let since = self.state().paused;
        since.is_some_and(|since| {
            let fresh = self.model.now() - since <= ABORT_SEEN_WITHIN;
            !(fresh && self.model.one_in(3))
        })
    }

    /// Whether a function that is under way has not read yet that its stage is aborted: it looks once a second.
    pub(super) fn sees_abort_late(&self, stage: &str) -> bool {
        let since = self.state().stage_aborted_ms(stage);
        let fresh = since.is_some_and(|since| self.model.now() - since <= ABORT_SEEN_WITHIN);
        fresh && self.model.one_in(3)
    }
}
