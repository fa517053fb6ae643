//! The nodes of a plan by the place of their log.
//!
//! A step's log is below `{account}/pipeline/{pipeline}/{sequence}/-{run}/{stage}[/{group}…]/{step}`; a
//! command unit of it appends `-commandUnit:{unit}`.

use slipway_model::id::{NodeId, StageId};
use slipway_plan::{Node, Plan, StagePlan};
use slipway_store::record::RunRecord;

/// A step of a plan, and where its log is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogPlace {
    pub(crate) stage: StageId,
    pub(crate) node: NodeId,
    /// Below the log of the run: `deploy/rollout`.
    pub(crate) path: String,
    /// Whether it is a rollback step, of its stage or of a step group.
    pub(crate) undoes: bool,
}

/// What the logs of a run begin with.
pub(crate) fn run_key(run: &RunRecord) -> String {
    let account = &run.scope.account;
    format!(
        "{account}/pipeline/{}/{}/-{}",
        run.pipeline, run.sequence, run.id
    )
}

/// The log of a command unit below the log of its step.
pub(crate) fn unit_key(base: &str, unit: &str) -> String {
    format!("{base}-commandUnit:{unit}")
}

/// The id of a node.
pub(crate) fn id(node: &Node) -> &NodeId {
    match node {
        Node::Step(step) => &step.id,
        Node::Group(group) => &group.id,
        Node::Parallel(parallel) => &parallel.id,
    }
}

/// Every step of a plan with the place of its log, in the order in which they run.
pub(crate) fn log_places(plan: &Plan) -> Vec<LogPlace> {
    let mut places = Vec::new();
    for stage in plan.groups.iter().flatten() {
        stage_places(stage, &mut places);
    }
    places
}

fn stage_places(stage: &StagePlan, into: &mut Vec<LogPlace>) {
    let base = stage.id.to_string();
    let first = into.len();
    for node in &stage.steps {
        below(stage, node, &base, into);
    }
    undoing(stage, &stage.rollback_steps, &base, first, into);
}

/// The rollback steps of the stage or step group whose own places begin at `first`.
fn undoing(stage: &StagePlan, nodes: &[Node], base: &str, first: usize, into: &mut Vec<LogPlace>) {
    let rollback = into.len();
    for node in nodes {
        below(stage, node, base, into);
    }
    for at in rollback..into.len() {
        into[at].undoes = true;
        // A rollback step may carry the name of a step; their logs must not mix.
        let path = into[at].path.clone();
        if into[first..rollback].iter().any(|place| place.path == path) {
            let rest = path.strip_prefix(base).unwrap_or(&path);
            into[at].path = format!("{base}/rollbackSteps{rest}");
        }
    }
}

/// Nesting is bounded by the depth that the language accepts.
fn below(stage: &StagePlan, node: &Node, base: &str, into: &mut Vec<LogPlace>) {
    match node {
        Node::Step(step) => into.push(LogPlace {
            stage: stage.id.clone(),
            node: step.id.clone(),
            path: format!("{base}/{}", step.identifier),
            undoes: false,
        }),
        Node::Group(group) => {
            let base = format!("{base}/{}", group.identifier);
            let first = into.len();
            for node in &group.nodes {
                below(stage, node, &base, into);
            }
            undoing(stage, &group.rollback_steps, &base, first, into);
        }
        Node::Parallel(parallel) => {
            for node in &parallel.branches {
                below(stage, node, base, into);
            }
        }
    }
}
