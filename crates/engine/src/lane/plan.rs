//! The part of a stage's plan that one lane walks.

use slipway_model::id::NodeId;
use slipway_model::status::Status;
use slipway_plan::{GroupPlan, Node, ParallelPlan, StagePlan};

use super::facts::Facts;
use crate::name::{Lane, Walk};

/// A lane with the nodes it walks.
#[derive(Clone, Debug)]
pub struct LanePlan<'p> {
    /// Which lane.
    pub lane: Lane,
    /// The stage.
    pub stage: &'p StagePlan,
    /// The nodes to walk, in order.
    pub nodes: &'p [Node],
    /// All nodes of the section that the lane belongs to (`steps` or `rollbackSteps`, of the stage or of a group):
    /// what the `stageStatus` of a condition looks at.
    pub section: &'p [Node],
    /// The groups around `nodes`, from the outside in.
    pub(crate) groups: Vec<&'p GroupPlan>,
    /// The block that the lane is a branch of.
    pub(crate) block: Option<&'p ParallelPlan>,
}

impl<'p> LanePlan<'p> {
    /// Finds what `lane` walks in the plan of its stage; `None` if the plan has no such lane.
    pub fn of(stage: &'p StagePlan, lane: &Lane) -> Option<Self> {
        let plan = |nodes, section, groups| Self {
            lane: lane.clone(),
            stage,
            nodes,
            section,
            groups,
            block: None,
        };
        match &lane.walk {
            Walk::Steps => Some(plan(&stage.steps, &stage.steps, Vec::new())),
            Walk::Rollback => {
                let nodes = &stage.rollback_steps;
                Some(plan(nodes, nodes, Vec::new()))
            }
            Walk::Branch { parallel, branch } => {
                let sections = [&stage.steps, &stage.rollback_steps];
                sections.into_iter().find_map(|section| {
                    let mut groups = Vec::new();
                    let block = find_parallel(section, parallel, &mut groups)?;
                    let nodes = block.branches.get(*branch..*branch + 1)?;
                    let undoing = groups.iter().rev().map(|group| &group.rollback_steps);
                    let mut sections = undoing.chain([section]);
                    let section = sections.find(|nodes| contains(nodes, parallel))?;
                    Some(Self {
                        block: Some(block),
                        ..plan(nodes, section.as_slice(), groups)
                    })
                })
            }
        }
    }

    /// The turns whose failure gives `node` up: those beside it, where it is a turn that waits for its time and its loop
    /// says so. What has begun goes on.
    pub(crate) fn gives_up_for(&self, node: &'p Node) -> &'p [Node] {
        let Walk::Branch { branch, .. } = self.lane.walk else {
            return &[];
        };
        if !self.nodes.iter().any(|own| std::ptr::eq(own, node)) {
            return &[];
        }
        let queued = |block: &&ParallelPlan| {
            let at_once = usize::try_from(block.concurrency).unwrap_or(usize::MAX);
            block.skips_queued && at_once > 0 && branch >= at_once
        };
        let block = self.block.filter(queued);
        block.map_or(&[], |block| block.branches.as_slice())
    }

    /// The branch of a loop's block that the lane is in, where it is in one: what happens in other turns is not for
    /// its conditions to see.
    pub(crate) fn own_turn(&self, block: &'p ParallelPlan) -> Option<&'p Node> {
        let own = self.block.filter(|_| is_loop(block))?;
        match self.lane.walk {
            Walk::Branch { branch, .. } if own.id == block.id => block.branches.get(branch),
            _ => {
                let mut turns = block.branches.iter();
                turns.find(|turn| contains(std::slice::from_ref(turn), &own.id))
            }
        }
    }

    /// The groups around a node of the stage, from the outside in: also around rollback steps, for a lane whose section
    /// these are. `None` where the stage has no such node.
    pub(crate) fn around(&self, id: &NodeId) -> Option<Vec<&'p GroupPlan>> {
        let mut sections = [&self.stage.steps, &self.stage.rollback_steps].into_iter();
        sections.find_map(|section| {
            let mut groups = Vec::new();
            find(section, id, &mut groups).then_some(groups)
        })
    }
}

/// The fully qualified name of a node.
pub fn node_id(node: &Node) -> &NodeId {
    match node {
        Node::Step(step) => &step.id,
        Node::Group(group) => &group.id,
        Node::Parallel(parallel) => &parallel.id,
    }
}

/// The nodes directly below a node, rollback steps of a group not among them.
pub(crate) fn children(node: &Node) -> &[Node] {
    match node {
        Node::Step(_) => &[],
        Node::Group(group) => &group.nodes,
        Node::Parallel(parallel) => &parallel.branches,
    }
}

/// The rollback steps of a node, which only groups have.
pub(crate) fn undoing(node: &Node) -> &[Node] {
    match node {
        Node::Group(group) => &group.rollback_steps,
        Node::Step(_) | Node::Parallel(_) => &[],
    }
}

/// Whether a node is among `nodes` or below them.
pub(crate) fn contains(nodes: &[Node], id: &NodeId) -> bool {
    nodes.iter().any(|node| {
        node_id(node) == id || contains(children(node), id) || contains(undoing(node), id)
    })
}

/// Whether a node belongs to the rollback of a stage or of one of its groups.
pub(crate) fn is_rollback(stage: &StagePlan, id: &NodeId) -> bool {
    fn of_group(nodes: &[Node], id: &NodeId) -> bool {
        nodes
            .iter()
            .any(|node| contains(undoing(node), id) || of_group(children(node), id))
    }
    contains(&stage.rollback_steps, id) || of_group(&stage.steps, id)
}

/// The groups whose rollback steps run when their stage is rolled back, in that order: those in which a step ran, the
/// last one first, inner ones before those around them. Each comes as the way to it, from the outside in.
pub(crate) fn groups_to_undo<'p>(stage: &'p StagePlan, facts: &Facts) -> Vec<Vec<&'p GroupPlan>> {
    groups_below(&stage.steps, facts)
}

/// As [`groups_to_undo`], for the groups below `nodes`; the ways begin there.
pub(crate) fn groups_below<'p>(nodes: &'p [Node], facts: &Facts) -> Vec<Vec<&'p GroupPlan>> {
    fn collect<'p>(
        nodes: &'p [Node],
        facts: &Facts,
        way: &mut Vec<&'p GroupPlan>,
        found: &mut Vec<Vec<&'p GroupPlan>>,
    ) {
        for node in nodes.iter().rev() {
            let Node::Group(group) = node else {
                collect(children(node), facts, way, found);
                continue;
            };
            way.push(group);
            collect(&group.nodes, facts, way, found);
            if !group.rollback_steps.is_empty() && any_step_ran(&group.nodes, facts) {
                found.push(way.clone());
            }
            way.pop();
        }
    }
    let mut found = Vec::new();
    collect(nodes, facts, &mut Vec::new(), &mut found);
    found
}

/// Whether a node is among `nodes` or below them, rollback steps of groups not counted.
pub(crate) fn runs_in(nodes: &[Node], id: &NodeId) -> bool {
    let mut nodes = nodes.iter();
    nodes.any(|node| node_id(node) == id || runs_in(children(node), id))
}

/// Whether a step below `nodes` has begun; one that was skipped has not.
pub(crate) fn any_step_ran(nodes: &[Node], facts: &Facts) -> bool {
    nodes.iter().any(|node| match node {
        Node::Step(step) => {
            let status = facts.status(&step.id);
            status.is_some_and(|status| status != Status::Skipped)
        }
        other => any_step_ran(children(other), facts),
    })
}

/// Whether the branches of a block are the turns of a loop.
fn is_loop(block: &ParallelPlan) -> bool {
    let is_turn = |node: &Node| match node {
        Node::Step(step) => step.iteration.is_some(),
        Node::Group(group) => group.iteration.is_some(),
        Node::Parallel(_) => false,
    };
    block.branches.first().is_some_and(is_turn)
}

fn find_parallel<'p>(
    nodes: &'p [Node],
    id: &NodeId,
    groups: &mut Vec<&'p GroupPlan>,
) -> Option<&'p ParallelPlan> {
    nodes.iter().find_map(|node| match node {
        Node::Parallel(parallel) if parallel.id == *id => Some(parallel),
        other => below(other, groups, |nodes, groups| {
            find_parallel(nodes, id, groups)
        }),
    })
}

/// Whether a node is among `nodes` or below them; the groups on the way to it stay in `groups`.
fn find<'p>(nodes: &'p [Node], id: &NodeId, groups: &mut Vec<&'p GroupPlan>) -> bool {
    nodes.iter().any(|node| {
        node_id(node) == id
            || below(node, groups, |nodes, groups| {
                find(nodes, id, groups).then_some(())
            })
            .is_some()
    })
}

/// Searches below a node, keeping track of the groups on the way; they stay on a find.
fn below<'p, T>(
    node: &'p Node,
    groups: &mut Vec<&'p GroupPlan>,
    search: impl Fn(&'p [Node], &mut Vec<&'p GroupPlan>) -> Option<T>,
) -> Option<T> {
    if let Node::Group(group) = node {
        groups.push(group);
    }
    let found = search(children(node), groups).or_else(|| search(undoing(node), groups));
    if found.is_none() && matches!(node, Node::Group(_)) {
        groups.pop();
    }
    found
}
