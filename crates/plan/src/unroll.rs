//! Loops over what a run brings forth: taken apart when they begin, by what was recorded then.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use slipway_expr::Context;
use slipway_model::id::{EntityId, NodeId, StageId};
use slipway_model::names::{MOST_STAGES, MOST_STEPS};

use crate::resolve::{group_in_turn, in_turn, taken_apart};
use crate::{GroupPlan, Iteration, Node, ParallelPlan, Plan, RunLoop, StagePlan, StepPlan};

/// Most bytes of a plan that the turns of one loop may take.
const MOST_BYTES: usize = 16 * 1024 * 1024;

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
        let mut stages = self.groups.iter().flatten();
        stages.any(|stage| stage.each.is_some())
            || self.sections().any(|nodes| nodes.iter().any(has_run_loops))
    }

    /// The parts of a run, as groups of its plan before loops are taken apart: one ends where a group follows whose
    /// stages loop over what the run brings forth until then. The first may have no groups.
    pub fn parts(&self) -> Vec<Range<usize>> {
        let loops = |group: &Vec<StagePlan>| group.iter().any(|stage| stage.each.is_some());
        let begins = self.groups.iter().enumerate();
        let begins = begins
            .filter(|(_, group)| loops(group))
            .map(|(index, _)| index);
        let mut parts = Vec::new();
        let mut from = 0;
        for index in begins {
            parts.push(from..index);
            from = index;
        }
        parts.push(from..self.groups.len());
        parts
    }

    /// The plan with its loops taken apart as far as they have begun; `turns_of` tells what was recorded of one.
    pub fn unrolled(&self, turns_of: &dyn Fn(&NodeId) -> Option<Vec<RunTurn>>) -> Self {
        let mut plan = self.clone();
        let groups = plan.groups.into_iter();
        plan.groups = groups.flat_map(|group| waves_of(group, turns_of)).collect();
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
        // Where it was taken apart before, its turns are its branches.
        let element = block.branches.get(..1).unwrap_or_default();
        self.check_steps(steps(element), turns)?;
        check_bytes(&element, turns)
    }

    /// As [`Plan::check_turns`], for a stage that loops.
    ///
    /// # Errors
    /// When the run would have too many stages or steps.
    pub fn check_stage_turns(&self, stage: &StagePlan, turns: usize) -> Result<(), String> {
        if !self.has_room(turns) {
            return Err(format!(
                "with {turns} turns the run has more than {MOST_STAGES} stages"
            ));
        }
        self.check_steps(steps(&stage.steps) + steps(&stage.rollback_steps), turns)?;
        check_bytes(stage, turns)
    }

    /// Whether a stage of the plan may become so many.
    pub fn has_room(&self, turns: usize) -> bool {
        let others = self.groups.iter().flatten().count().saturating_sub(1);
        others.saturating_add(turns) <= MOST_STAGES
    }

    fn check_steps(&self, of_turn: usize, turns: usize) -> Result<(), String> {
        let known: usize = self.sections().map(steps).sum();
        match known.saturating_add(of_turn.saturating_mul(turns)) > MOST_STEPS {
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

/// The name under which the turns of a stage that loops are recorded.
pub fn loop_of_stage(stage: &StageId) -> NodeId {
    NodeId::new(format!("stages.{stage}"))
}

fn check_bytes(of_turn: &impl Serialize, turns: usize) -> Result<(), String> {
    let bytes = serde_json::to_vec(of_turn).map_or(0, |json| json.len());
    match bytes.saturating_mul(turns) > MOST_BYTES {
        true => Err(format!(
            "with {turns} turns the plan of the run has more than {MOST_BYTES} bytes"
        )),
        false => Ok(()),
    }
}

/// A group of stages with the loops among them taken apart that have begun: what waits for its turn runs beside what
/// waits in its neighbours.
fn waves_of(
    group: Vec<StagePlan>,
    turns_of: &dyn Fn(&NodeId) -> Option<Vec<RunTurn>>,
) -> Vec<Vec<StagePlan>> {
    let mut waves: Vec<Vec<StagePlan>> = Vec::new();
    let loops: Vec<EntityId> = group
        .iter()
        .filter_map(|stage| stage.each.as_ref().map(|each| each.of.clone()))
        .collect();
    for stage in group {
        let skips = stage.each.as_ref().map(RunLoop::skips_queued);
        let turns = skips.and_then(|_| turns_of(&loop_of_stage(&stage.id)));
        let Some(turns) = turns.filter(|turns| !turns.is_empty()) else {
            add(&mut waves, 0, vec![stage]);
            continue;
        };
        let limit = turns.first().map_or(0, |turn| turn.iteration.concurrency);
        let width = match usize::try_from(limit) {
            Ok(width) if width > 0 && skips == Some(true) => width,
            _ => usize::MAX,
        };
        // Each turn deploys the services that stand side by side in it at once.
        let of = stage.each.as_ref().map(|each| &each.of);
        let beside = loops.iter().filter(|other| Some(*other) == of).count();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let own = stage.iteration.as_ref().map(|target| target.concurrency);
        let at_once = match (limit, own.filter(|width| *width > 0)) {
            (limit, None) => limit.saturating_mul(number(beside)),
            (0, Some(width)) => width.saturating_mul(number(turns.len())),
            (limit, Some(width)) => width.saturating_mul(limit),
        };
        for (wave, turns) in turns.chunks(width).enumerate() {
            let stages = turns.iter().map(|turn| {
                let mut own = stage_in_turn(&stage, turn);
                if let Some(iteration) = &mut own.iteration {
                    iteration.concurrency = at_once;
                }
                own
            });
            add(&mut waves, wave, stages.collect());
        }
    }
    waves
}

fn add(waves: &mut Vec<Vec<StagePlan>>, wave: usize, stages: Vec<StagePlan>) {
    match waves.get_mut(wave) {
        Some(known) => known.extend(stages),
        None => waves.push(stages),
    }
}

/// A stage as it is called in a turn, and everything in it.
fn stage_in_turn(stage: &StagePlan, turn: &RunTurn) -> StagePlan {
    let id = format!("{}{}", stage.id, turn.iteration.postfix());
    let mut own = StagePlan {
        id: StageId::new(id.as_str()),
        identifier: EntityId::new(id.as_str()),
        name: turn.name.clone(),
        iteration: Some(match &stage.iteration {
            Some(target) => on_target(turn.iteration.clone(), target),
            None => turn.iteration.clone(),
        }),
        each: None,
        ..stage.clone()
    };
    let (old, new) = (format!("stages.{}.", stage.id), format!("stages.{id}."));
    let nodes = own.steps.iter_mut().chain(&mut own.rollback_steps);
    nodes.for_each(|node| rename(node, &old, &new));
    in_turn(&mut own, stage.id.as_str(), &id);
    own
}

/// A turn of a stage that deploys several services or to several infrastructures, on one of them: it knows both.
fn on_target(turn: Iteration, target: &Iteration) -> Iteration {
    let mut matrix = turn.matrix;
    matrix.extend(target.matrix.clone());
    Iteration { matrix, ..turn }
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
            group_in_turn(&mut group.variables, old, new);
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
