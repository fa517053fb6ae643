//! `currentStatus` and `liveStatus`: how what an element holds has gone so far (developer.harness.io, *Expression status
//! type reference*). `status` is the element's own, which is RUNNING as long as it goes on.
//!
//! What has ended counts as it ended. In what goes on, every step that has begun counts; one that failed makes all of it
//! failed. The step that asks does not count: it would always run.

use slipway_model::id::NodeId;
use slipway_model::status::Status;
use slipway_plan::{Node, StagePlan};

use super::RunContext;
use super::node::is_loop;
use crate::lane::{children, node_id, worst};

/// What counts of loops that go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// `currentStatus`: nothing.
    Current,
    /// `liveStatus`: their turns.
    Live,
}

impl Counted {
    /// What the last word of a path asks for, if it is one of the two.
    pub(super) fn of(word: &str) -> Option<Self> {
        match word {
            "currentStatus" => Some(Self::Current),
            "liveStatus" => Some(Self::Live),
            _ => None,
        }
    }
}

impl RunContext<'_> {
    /// How the run has gone so far.
    pub(super) fn pipeline_standing(&self, counted: Counted) -> Status {
        let stages = self.plan.groups.iter().flatten();
        let stages =
            stages.filter(|stage| counted == Counted::Live || !self.goes_on_as_turn(stage));
        // The stage whose condition asks has not begun.
        let begins = |stage: &&StagePlan| {
            let own = self.own_status(stage);
            let begun = own.is_some_and(|own| own == Status::Running || own.is_final());
            self.is_here(stage) && !begun
        };
        let held = stages.filter(|stage| !begins(stage));
        let held = held.filter_map(|stage| self.stage_standing(stage, counted));
        let held = held.filter(|status| *status != Status::NotStarted);
        combined(self.run.status, held.collect(), self.stage.is_some())
    }

    /// How a stage has gone so far; `None` where nothing is known of it.
    pub(super) fn stage_standing(&self, stage: &StagePlan, counted: Counted) -> Option<Status> {
        let own = self.own_status(stage)?;
        if own != Status::Running {
            return Some(own);
        }
        let mut held = Vec::new();
        self.add(&stage.steps, counted, &mut held);
        self.add(&stage.rollback_steps, counted, &mut held);
        Some(combined(own, held, self.is_here(stage)))
    }

    /// How a node has gone so far; `None` where it has not begun.
    pub(super) fn node_standing(&self, node: &Node, counted: Counted) -> Option<Status> {
        let own = self.nodes.get(node_id(node))?.status;
        if own.is_final() || matches!(node, Node::Step(_)) {
            return Some(own);
        }
        let mut held = Vec::new();
        self.add(children(node), counted, &mut held);
        let around = self
            .stage
            .map(|stage| self.around(stage))
            .unwrap_or_default();
        let here = around.iter().any(|known| node_id(known) == node_id(node));
        Some(combined(own, held, here))
    }

    /// Adds what counts of `nodes`.
    fn add(&self, nodes: &[Node], counted: Counted, held: &mut Vec<Status>) {
        let asks = |id: &NodeId| self.node.is_some_and(|own| own == id);
        for node in nodes {
            let own = self.nodes.get(node_id(node)).map(|record| record.status);
            match (node, own) {
                (_, Some(own)) if own.is_final() => held.push(own),
                (Node::Step(step), Some(own)) if !asks(&step.id) => held.push(own),
                (Node::Parallel(_), _) if counted == Counted::Current && is_loop(node) => {}
                _ => self.add(children(node), counted, held),
            }
        }
    }

    fn own_status(&self, stage: &StagePlan) -> Option<Status> {
        let mut known = self.run.stages.iter();
        Some(known.find(|known| known.id == stage.id)?.status)
    }

    fn is_here(&self, stage: &StagePlan) -> bool {
        self.stage.is_some_and(|own| own.id == stage.id)
    }

    /// Whether a stage is a turn of a loop of which not all turns have ended.
    fn goes_on_as_turn(&self, stage: &StagePlan) -> bool {
        let Some(turn) = &stage.iteration else {
            return false;
        };
        let mut stages = self.plan.groups.iter().flatten();
        stages.any(|other| {
            let same = other
                .iteration
                .as_ref()
                .is_some_and(|known| known.of == turn.of);
            same && !self.own_status(other).is_some_and(Status::is_final)
        })
    }
}

/// The status of what is `own` by itself and holds these; `here` says that the expression stands in it.
fn combined(own: Status, held: Vec<Status>, here: bool) -> Status {
    if own.is_final() {
        return own;
    }
    let failed = held
        .iter()
        .filter(|status| status.is_final() && !status.is_good());
    let failed: Vec<Status> = failed.copied().collect();
    match failed.is_empty() {
        false => worst(failed),
        true if held.is_empty() && !here => own,
        true if held.iter().any(|status| !status.is_final()) => Status::Running,
        true => worst(held),
    }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
