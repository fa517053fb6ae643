//! Loops over what a run brings forth: taken apart when they begin, by what was recorded then.

use serde::{Deserialize, Serialize};
use slipway_expr::Context;
use slipway_model::id::{EntityId, NodeId};
use slipway_model::names::MOST_STEPS;

use crate::resolve::taken_apart;
use crate::{GroupPlan, Iteration, Node, ParallelPlan, Plan, RunLoop, StepPlan};

/// One turn of a loop, as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunTurn {
    /// `name` of the element in this turn.
    pub name: String,
    /// Which turn it is.
    pub iteration: Iteration,
}

/// The turns of a loop that begins now; `context` knows what the run has brought forth.
///
/// # Errors
/// What the loop goes over is not known, no list, or too long.
pub fn turns(each: &RunLoop, context: &dyn Context) -> Result<Vec<RunTurn>, String> {
    let found = taken_apart(&each.strategy, &each.of, context)?;
    let turns = found.turns.into_iter().map(|turn| RunTurn {
        name: turn.name(&each.name),
        iteration: turn.iteration,
    });
    Ok(turns.collect())
}

impl Plan {
    /// Whether a loop of the plan goes over what the run brings forth.
    pub fn has_run_loops(&self) -> bool {
        self.sections().any(|nodes| nodes.iter().any(has_run_loops))
    }

    /// The plan with its loops taken apart as far as they have begun; `turns_of` tells what was recorded of one.
    pub fn unrolled(&self, turns_of: &dyn Fn(&NodeId) -> Option<Vec<RunTurn>>) -> Self {
        let mut plan = self.clone();
        for stage in plan.groups.iter_mut().flatten() {
            for nodes in [&mut stage.steps, &mut stage.rollback_steps] {
                nodes.iter_mut().for_each(|node| unroll(node, turns_of));
            }
        }
        plan
    }

    /// Whether the plan would not have too many steps with `turns` of a block's element. The block may have been taken
    /// apart before, in another round of the groups around it: its turns are equally many steps each.
    ///
    /// # Errors
    /// When they are too many.
    pub fn check_turns(&self, block: &ParallelPlan, turns: usize) -> Result<(), String> {
        let known: usize = self.sections().map(steps).sum();
        let element = block.branches.get(..1).map_or(0, steps);
        let more = element.saturating_mul(turns);
        match known.saturating_add(more) > MOST_STEPS {
            true => Err(format!(
                "with {turns} turns the run has more than {MOST_STEPS} steps"
            )),
            false => Ok(()),
        }
    }

    fn sections(&self) -> impl Iterator<Item = &[Node]> {
        let stages = self.groups.iter().flatten();
        stages.flat_map(|stage| [stage.steps.as_slice(), stage.rollback_steps.as_slice()])
    }
}

fn steps(nodes: &[Node]) -> usize {
    let of = |node: &Node| match node {
        Node::Step(_) => 1,
        Node::Group(group) => steps(&group.nodes) + steps(&group.rollback_steps),
        Node::Parallel(parallel) => steps(&parallel.branches),
    };
    nodes.iter().map(of).sum()
}

fn has_run_loops(node: &Node) -> bool {
    match node {
        Node::Step(_) => false,
        Node::Group(group) => {
            let mut all = group.nodes.iter().chain(&group.rollback_steps);
            all.any(has_run_loops)
        }
        Node::Parallel(parallel) => {
            parallel.each.is_some() || parallel.branches.iter().any(has_run_loops)
        }
    }
}

fn unroll(node: &mut Node, turns_of: &dyn Fn(&NodeId) -> Option<Vec<RunTurn>>) {
    match node {
        Node::Step(_) => {}
        Node::Group(group) => {
            let all = group.nodes.iter_mut().chain(&mut group.rollback_steps);
            all.for_each(|node| unroll(node, turns_of));
        }
        Node::Parallel(parallel) => {
            if parallel.each.is_some()
                && let Some(turns) = turns_of(&parallel.id)
            {
                take_apart(parallel, &turns);
            }
            // Loops inside of it are looked up by their names in this turn.
            let inner = parallel.branches.iter_mut();
            inner.for_each(|node| unroll(node, turns_of));
        }
    }
}

fn take_apart(parallel: &mut ParallelPlan, turns: &[RunTurn]) {
    let Some(element) = parallel.branches.first().cloned() else {
        return;
    };
    let branch = |turn: &RunTurn| {
        let mut branch = element.clone();
        begin_turn(&mut branch, turn);
        branch
    };
    parallel.branches = turns.iter().map(branch).collect();
    parallel.concurrency = turns.first().map_or(0, |turn| turn.iteration.concurrency);
}

/// Calls an element as it is called in a turn, and everything in it.
fn begin_turn(element: &mut Node, turn: &RunTurn) {
    let postfix = turn.iteration.postfix();
    let identifier = |own: &EntityId| EntityId::new(format!("{own}{postfix}"));
    let old = match element {
        Node::Step(StepPlan {
            id,
            identifier: own,
            name,
            iteration,
            ..
        })
        | Node::Group(GroupPlan {
            id,
            identifier: own,
            name,
            iteration,
            ..
        }) => {
            *own = identifier(own);
            name.clone_from(&turn.name);
            *iteration = Some(turn.iteration.clone());
            id.clone()
        }
        Node::Parallel(parallel) => parallel.id.clone(),
    };
    let new = format!("{old}{postfix}");
    rename(element, old.as_str(), &new);
}

fn rename(node: &mut Node, old: &str, new: &str) {
    let renamed = |id: &NodeId| match id.as_str().strip_prefix(old) {
        Some(rest) => NodeId::new(format!("{new}{rest}")),
        None => id.clone(),
    };
    match node {
        Node::Step(step) => step.id = renamed(&step.id),
        Node::Group(group) => {
            group.id = renamed(&group.id);
            let all = group.nodes.iter_mut().chain(&mut group.rollback_steps);
            all.for_each(|node| rename(node, old, new));
        }
        Node::Parallel(parallel) => {
            parallel.id = renamed(&parallel.id);
            let all = parallel.branches.iter_mut();
            all.for_each(|node| rename(node, old, new));
        }
    }
}
