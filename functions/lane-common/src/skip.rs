//! Nodes that do not run.

use serde_json::json;
use slipway_engine::directive::Directive;
use slipway_engine::lane::{Attempt, GIVEN_UP, node_id};
use slipway_engine::wake::tell_end;
use slipway_model::status::Status;
use slipway_plan::Node;
use slipway_store::record::NodeRecord;

use crate::HandlerError;
use crate::walk::Walk;

/// The step type that others wait for.
const BARRIER: &str = "Barrier";

impl Walk<'_> {
    /// Notes that a node does not run. Who waits at a barrier for a step in it is told; where something failed before it,
    /// so that it was given up, they fail.
    pub(crate) async fn skip(
        &mut self,
        node: &Node,
        attempt: Attempt,
        (reason, given_up): (&str, bool),
    ) -> Result<Option<Directive>, HandlerError> {
        let id = node_id(node);
        tracing::debug!(run.id = %self.event.run_id, node.id = %id, "skipped: {reason}");
        let skipped = self
            .writer()
            .ends_unrun(node, attempt, Status::Skipped, None);
        let waited_for = is_waited_for(node);
        let progress = match waited_for && given_up {
            true => json!({ GIVEN_UP: true }),
            false => skipped.progress.clone(),
        };
        self.begin(NodeRecord {
            progress,
            ..skipped
        })
        .await?;
        if waited_for {
            self.write().await?;
            let run = &self.event.run_id;
            tell_end(&self.deps.runs, run, id, attempt.number).await?;
        }
        Ok(None)
    }
}

fn is_waited_for(node: &Node) -> bool {
    match node {
        Node::Step(step) => step.step_type == BARRIER,
        Node::Group(group) => group.nodes.iter().any(is_waited_for),
        Node::Parallel(parallel) => parallel.branches.iter().any(is_waited_for),
    }
}
