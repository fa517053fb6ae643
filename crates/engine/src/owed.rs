//! What steps took off something and put on again when they end well or are rolled back, the scaling of a service for
//! instance. Where neither happens, because the failure is ignored, say, the stage's end tells that it is missing.

use serde::{Deserialize, Serialize};
use slipway_store::record::NodeRecord;

/// Field of a step's progress that holds an [`Owed`].
pub const OWED: &str = "owed";

/// What a step took off, or that it is on again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owed {
    /// What it was taken off and where, in words that are the same for each step that does: `service web in cluster prod`.
    pub holder: String,
    /// What was taken off; `None` once it is on again.
    pub what: Option<Missing>,
}

/// What was taken off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// In words that follow "without".
    pub name: String,
    /// A sentence about it, and what to do.
    pub told: String,
}

/// What the steps of a stage took off and no later one put on again.
pub(crate) fn missing(mut nodes: Vec<&NodeRecord>) -> Vec<Missing> {
    nodes.sort_by_key(|node| (node.started_ms, node.attempt));
    let mut known: Vec<Owed> = Vec::new();
    for node in nodes {
        let Ok(owed) = Owed::deserialize(&node.progress[OWED]) else {
            continue;
        };
        known.retain(|one| one.holder != owed.holder);
        known.push(owed);
    }
    known.into_iter().filter_map(|one| one.what).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Missing, NodeRecord, OWED, Owed, missing};
    use crate::fixture;

    fn said(at: i64, holder: &str, what: Option<&str>) -> NodeRecord {
        let mut node = fixture::record("stages.deploy.spec.execution.steps.rollout", json!({}));
        node.started_ms = at;
        let what = what.map(|name| Missing {
            name: name.to_owned(),
            told: format!("{holder} is without {name}"),
        });
        let holder = holder.to_owned();
        node.progress = json!({OWED: Owed { holder, what }});
        node
    }

    #[test]
    fn what_a_later_step_put_on_again_is_not_missing() {
        let table = [
            (vec![said(1, "web", Some("P1"))], vec!["web is without P1"]),
            // In whatever order they are read.
            (
                vec![said(9, "web", None), said(1, "web", Some("P1"))],
                vec![],
            ),
            (
                vec![
                    said(1, "web", None),
                    said(2, "jobs", Some("P2")),
                    said(3, "web", Some("P1")),
                ],
                vec!["jobs is without P2", "web is without P1"],
            ),
            (vec![fixture::record("stages.deploy", json!({}))], vec![]),
        ];
        for (nodes, expected) in table {
            let found = missing(nodes.iter().collect());
            let told: Vec<&str> = found.iter().map(|one| one.told.as_str()).collect();
            assert_eq!(told, expected);
        }
    }
}
