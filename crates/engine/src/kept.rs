//! What steps set and no step takes back, `EcsScale`'s count for instance: an operator reads at the end of a stage that was
//! rolled back what of it still stands.

use serde::{Deserialize, Serialize};
use slipway_store::record::NodeRecord;

/// Field of a step's progress that holds a [`Kept`].
pub const KEPT: &str = "kept";

/// A count that a step set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// What has it and where, in words that are the same for each step that sets it: `service web in cluster prod`.
    pub holder: String,
    /// What is counted: `tasks`.
    pub unit: String,
    /// The count before the step.
    pub had: i64,
    /// The count that it set.
    pub has: i64,
    /// The step's type.
    pub by: String,
}

/// What the steps of a stage leave otherwise than the first of them found it, as clauses. A count that a later step
/// brought back is not told.
pub(crate) fn left(mut nodes: Vec<&NodeRecord>) -> Vec<String> {
    nodes.sort_by_key(|node| (node.started_ms, node.attempt));
    let mut told: Vec<Kept> = Vec::new();
    for node in nodes {
        let Ok(kept) = Kept::deserialize(&node.progress[KEPT]) else {
            continue;
        };
        match told.iter_mut().find(|one| one.holder == kept.holder) {
            Some(one) => (one.has, one.by) = (kept.has, kept.by),
            None => told.push(kept),
        }
    }
    let left = told.into_iter().filter(|one| one.has != one.had);
    left.map(|one| {
        format!(
            "{} keeps the {} {} that {} gave it; it had {}",
            one.holder, one.has, one.unit, one.by, one.had
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{KEPT, Kept, NodeRecord, left};
    use crate::fixture;

    fn set(at: i64, holder: &str, had: i64, has: i64) -> NodeRecord {
        let mut node = fixture::record("stages.deploy.spec.execution.steps.scale", json!({}));
        node.started_ms = at;
        node.progress = json!({KEPT: Kept {
            holder: holder.to_owned(),
            unit: "tasks".to_owned(),
            had,
            has,
            by: "EcsScale".to_owned(),
        }});
        node
    }

    #[test]
    fn what_a_later_step_brought_back_is_not_told() {
        let table = [
            (
                vec![set(1, "web", 2, 4)],
                vec!["web keeps the 4 tasks that EcsScale gave it; it had 2"],
            ),
            // In whatever order they are read.
            (vec![set(9, "web", 4, 2), set(1, "web", 2, 4)], vec![]),
            (
                vec![
                    set(1, "web", 2, 4),
                    set(2, "jobs", 1, 0),
                    set(3, "web", 4, 3),
                ],
                vec![
                    "web keeps the 3 tasks that EcsScale gave it; it had 2",
                    "jobs keeps the 0 tasks that EcsScale gave it; it had 1",
                ],
            ),
            (vec![fixture::record("stages.deploy", json!({}))], vec![]),
        ];
        for (nodes, expected) in table {
            assert_eq!(left(nodes.iter().collect()), expected);
        }
    }
}
