//! How runs came out.

use slipway_model::status::Status;

/// How a run, its stages and its nodes came out.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Story {
    /// The run.
    pub run: Option<String>,
    /// Stages and nodes by id, with the number of the newest attempt.
    pub nodes: std::collections::BTreeMap<String, (u32, String)>,
}

impl Story {
    /// Notes how a node stands in its newest attempt.
    pub fn note(&mut self, id: &str, attempt: u32, status: Status) {
        self.nodes
            .insert(id.to_owned(), (attempt, format!("{status:?}")));
    }

    /// For people, a line each.
    pub fn told(&self) -> String {
        let mut lines = vec![format!("run {}", self.run.as_deref().unwrap_or("?"))];
        let nodes = self.nodes.iter();
        lines.extend(nodes.map(|(id, (attempt, status))| format!("{id} #{attempt} {status}")));
        lines.join("\n")
    }
}
