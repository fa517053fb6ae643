//! Which of its answers the model is asked for: where stages go on side by side, each may come out in many ways, and hardly
//! any answer has them all as they were seen. So those that came out as seen are kept, and the others are tried again.
//!
//! An answer still is one play of the whole model; what is found this way could have been drawn at once.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ast::{Case, Stage, Story};
use crate::model::{Delays, Outcome, Part};
use crate::seen::Seen;

/// After so many answers that are no better another beginning is made.
const PATIENCE: u32 = 2_000;

/// Looks for an answer that is what was seen.
pub struct Search<'c> {
    case: &'c Case,
    seen: &'c Seen,
    slack: Duration,
    /// The parts of the best answer that came out as seen, and the seeds of their chances.
    kept: BTreeMap<Part, u64>,
    waited: u32,
}

impl<'c> Search<'c> {
    /// A search for what was seen of a case, of which every turn of a loop is a stage of its own.
    pub fn new(case: &'c Case, seen: &'c Seen, slack: Duration) -> Self {
        Self {
            case,
            seen,
            slack,
            kept: BTreeMap::new(),
            waited: 0,
        }
    }

    /// What to ask for next; half of all answers keep nothing.
    pub fn next(&mut self, attempt: u64) -> Delays {
        let seed = self.case.seed.wrapping_add(attempt);
        let delays = Delays::some(seed, self.slack);
        match attempt.is_multiple_of(2) {
            true => delays,
            false => delays.keeping(self.kept.clone()),
        }
    }

    /// Learns from an answer.
    pub fn learn(&mut self, asked: &Delays, answer: &[Outcome]) {
        // One stage has nothing beside it.
        if self.case.pipeline.stages().nth(1).is_none() {
            return;
        }
        let mut right: BTreeMap<Part, u64> = BTreeMap::new();
        for (number, (expected, run)) in answer.iter().zip(&self.seen.runs).enumerate() {
            for stage in self.case.pipeline.stages() {
                if of(stage, &expected.story).eq(of(stage, &run.story)) {
                    let part = Some((number, stage.id.clone()));
                    right.insert(part.clone(), asked.seed_of(&part));
                }
            }
        }
        // What is said, and when runs begin, goes with it.
        right.insert(None, asked.seed_of(&None));
        if right.len() > self.kept.len() {
            self.kept = right;
            self.waited = 0;
            return;
        }
        self.waited += 1;
        if self.waited > PATIENCE {
            self.kept.clear();
            self.waited = 0;
        }
    }
}

/// What a story says of a stage.
fn of<'s>(
    stage: &Stage,
    story: &'s Story,
) -> impl Iterator<Item = (&'s String, &'s (u32, String))> {
    let nodes = story.nodes.iter();
    nodes.filter(|(id, _)| **id == stage.id || stage.has(id))
}
