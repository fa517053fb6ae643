//! The part of a stage's plan that one lane walks.

use slipway_model::id::NodeId;
use slipway_plan::{FailureStrategy, Node, StagePlan, StepPlan};

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
    /// All nodes of the section that the lane belongs to (`steps` or `rollbackSteps`): what the
    /// `stageStatus` of a condition looks at.
    pub section: &'p [Node],
    /// Failure strategies of the groups around `nodes`, from the outside in.
    pub(crate) groups: Vec<&'p [FailureStrategy]>,
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
                    let branches = find_parallel(section, parallel, &mut groups)?;
                    let nodes = branches.get(*branch..*branch + 1)?;
                    Some(plan(nodes, section.as_slice(), groups))
                })
            }
        }
    }

    /// A step of the lane's section, and the failure strategies that apply to it, nearest first.
    pub fn step(&self, id: &NodeId) -> Option<(&'p StepPlan, Vec<&'p [FailureStrategy]>)> {
        let mut groups = Vec::new();
        let step = find_step(self.section, id, &mut groups)?;
        Some((step, self.levels(&step.failure_strategies, &groups)))
    }

    /// The levels of failure strategies, nearest first, for a node below `groups`.
    pub(crate) fn levels(
        &self,
        own: &'p [FailureStrategy],
        groups: &[&'p [FailureStrategy]],
    ) -> Vec<&'p [FailureStrategy]> {
        let mut levels = vec![own];
        levels.extend(groups.iter().rev());
        levels.push(&self.stage.failure_strategies);
        levels
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

/// The nodes directly below a node.
pub(crate) fn children(node: &Node) -> &[Node] {
    match node {
        Node::Step(_) => &[],
        Node::Group(group) => &group.nodes,
        Node::Parallel(parallel) => &parallel.branches,
    }
}

fn find_parallel<'p>(
    nodes: &'p [Node],
    id: &NodeId,
    groups: &mut Vec<&'p [FailureStrategy]>,
) -> Option<&'p [Node]> {
    nodes.iter().find_map(|node| match node {
        Node::Parallel(parallel) if parallel.id == *id => Some(parallel.branches.as_slice()),
        other => below(other, groups, |nodes, groups| {
            find_parallel(nodes, id, groups)
        }),
    })
}

fn find_step<'p>(
    nodes: &'p [Node],
    id: &NodeId,
    groups: &mut Vec<&'p [FailureStrategy]>,
) -> Option<&'p StepPlan> {
    nodes.iter().find_map(|node| match node {
        Node::Step(step) => (step.id == *id).then_some(step),
        other => below(other, groups, |nodes, groups| find_step(nodes, id, groups)),
    })
}

/// Searches below a node, keeping track of the groups on the way; they stay on a find.
fn below<'p, T>(
    node: &'p Node,
    groups: &mut Vec<&'p [FailureStrategy]>,
    search: impl Fn(&'p [Node], &mut Vec<&'p [FailureStrategy]>) -> Option<T>,
) -> Option<T> {
    if let Node::Group(group) = node {
        groups.push(&group.failure_strategies);
    }
    let found = search(children(node), groups);
    if found.is_none() && matches!(node, Node::Group(_)) {
        groups.pop();
    }
    found
}
