//! What steps deployed and no later step of the stage undid, because its rollback steps have none that does, or those did
//! not run: an operator who reads that a stage was rolled back reads of it.

use indexmap::IndexMap;
use slipway_model::id::NodeId;
use slipway_model::status::Status;
use slipway_store::record::NodeRecord;

/// Field of a step's progress that holds the types of the steps that undo it, where it has noted something to undo.
pub const UNDONE_BY: &str = "undoneBy";

/// The step group whose `rollbackSteps` a node is among; `None` for those of the stage and for other nodes. Such an id is
/// `stages.S.spec.execution` and then pairs of a list and an identifier in it.
pub fn group_rolled_back(node: &NodeId) -> Option<&str> {
    let id = node.as_str();
    let mut dots = id.match_indices('.').map(|(at, _)| at);
    let execution = dots.nth(3)?;
    let mut end = execution;
    loop {
        if id.get(end..)?.starts_with(".rollbackSteps.") {
            return id.get(..end).filter(|_| end > execution);
        }
        end = dots.nth(1)?;
    }
}

/// Whether a node is below the one with the id `above`.
pub fn is_below(node: &NodeId, above: &str) -> bool {
    let below = node.as_str().strip_prefix(above);
    below.is_some_and(|below| below.starts_with('.'))
}

/// What of the nodes of a stage nothing undid, as clauses: oldest first, steps of one type together.
pub(crate) fn standing(mut nodes: Vec<&NodeRecord>) -> Vec<String> {
    nodes.sort_by_key(|node| (node.started_ms, node.attempt));
    let mut told: IndexMap<&str, (Vec<&str>, Vec<&str>)> = IndexMap::new();
    for (at, node) in nodes.iter().enumerate() {
        let undoing: Vec<&str> = types(node).collect();
        let later = nodes.get(at + 1..).unwrap_or_default();
        let is_undone = |later: &&NodeRecord| undoes(later, &undoing, node, &nodes);
        if undoing.is_empty() || later.iter().any(is_undone) {
            continue;
        }
        let first = || (undoing, Vec::new());
        let (_, steps) = told.entry(&node.node_type).or_insert_with(first);
        let step = node.identifier.as_str();
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    let told = told.into_iter();
    told.map(|(kind, (undoing, steps))| {
        let (steps, undoing) = (steps.join(", "), undoing.join(" or "));
        format!("no {undoing} ran after {kind} {steps}: what that changed stays, unless another step took it back")
    })
    .collect()
}

fn types(node: &NodeRecord) -> impl Iterator<Item = &str> {
    let types = node.progress[UNDONE_BY].as_array().into_iter().flatten();
    types.filter_map(|kind| kind.as_str())
}

/// Whether a step ran that is of one of the types `undoing`, and that `node` is a matter of: a step group that rolls itself
/// back undoes what is in it, and where that is nothing, what is in its stage.
fn undoes(step: &NodeRecord, undoing: &[&str], node: &NodeRecord, all: &[&NodeRecord]) -> bool {
    let runs = step.status != Status::Skipped && undoing.contains(&step.node_type.as_str());
    let concerns = group_rolled_back(&step.id).is_none_or(|group| {
        let inside = |node: &NodeRecord| is_below(&node.id, group);
        let has_own = all
            .iter()
            .any(|one| one.node_type == node.node_type && inside(one));
        inside(node) || !has_own
    });
    runs && concerns
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use slipway_model::id::{EntityId, NodeId};
    use slipway_model::status::Status;

    use super::{NodeRecord, UNDONE_BY, group_rolled_back, standing};
    use crate::fixture;

    const EXECUTION: &str = "stages.deploy.spec.execution";

    /// A step that ran, in the order of their numbers.
    fn ran(at: i64, way: &str, kind: &str, undoing: &[&str]) -> NodeRecord {
        let mut node = fixture::record(&format!("{EXECUTION}.{way}"), json!({}));
        node.started_ms = at;
        node.status = Status::Success;
        kind.clone_into(&mut node.node_type);
        node.identifier = EntityId::new(way.rsplit('.').next().unwrap_or(way));
        if !undoing.is_empty() {
            node.progress = json!({UNDONE_BY: undoing});
        }
        node
    }

    #[test]
    fn what_a_later_step_undid_is_not_told() {
        let rollout = |at, way: &str| ran(at, way, "EcsRollingDeploy", &["EcsRollingRollback"]);
        let back = |at, way: &str| ran(at, way, "EcsRollingRollback", &[]);
        let skipped = |mut node: NodeRecord| {
            node.status = Status::Skipped;
            node
        };
        let stays = "no EcsRollingRollback ran after EcsRollingDeploy a: what that changed stays, unless another step took \
                     it back";
        let approval = || ran(2, "rollbackSteps.ask", "HarnessApproval", &[]);
        let table = [
            (vec![approval()], vec![]),
            (
                vec![rollout(1, "steps.a"), approval()],
                vec![stays.to_owned()],
            ),
            // In whatever order they are read.
            (
                vec![back(2, "rollbackSteps.r"), rollout(1, "steps.a")],
                vec![],
            ),
            (
                vec![rollout(1, "steps.a"), skipped(back(2, "rollbackSteps.r"))],
                vec![stays.to_owned()],
            ),
            (
                vec![
                    back(1, "rollbackSteps.r"),
                    rollout(2, "steps.a"),
                    rollout(3, "steps.b"),
                ],
                vec![stays.replace(" a:", " a, b:")],
            ),
            // What a step group undoes is what is in it.
            (
                vec![
                    rollout(1, "steps.g.steps.a"),
                    back(2, "steps.g.rollbackSteps.r"),
                ],
                vec![],
            ),
            (
                vec![rollout(1, "steps.a"), back(2, "steps.g.rollbackSteps.r")],
                vec![],
            ),
            (
                vec![
                    rollout(1, "steps.a"),
                    rollout(2, "steps.g.steps.b"),
                    back(3, "steps.g.rollbackSteps.r"),
                ],
                vec![stays.to_owned()],
            ),
            (
                vec![
                    ran(1, "steps.s", "Shift", &["One", "Other"]),
                    ran(2, "rollbackSteps.o", "Other", &[]),
                ],
                vec![],
            ),
        ];
        for (nodes, expected) in table {
            assert_eq!(standing(nodes.iter().collect()), expected);
        }
    }

    #[test]
    fn the_group_that_rolls_itself_back_is_found() {
        for (id, expected) in [
            ("stages.s.spec.execution.rollbackSteps.a", None),
            ("stages.s.spec.execution.steps.g.steps.a", None),
            (
                "stages.s.spec.execution.steps.g.rollbackSteps.a",
                Some("stages.s.spec.execution.steps.g"),
            ),
        ] {
            assert_eq!(group_rolled_back(&NodeId::new(id)), expected, "{id}");
        }
    }
}
