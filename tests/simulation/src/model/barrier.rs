//! Barriers: who is waited for.

use slipway_model::status::Status;

use super::run::Run;
use crate::ast::Kind;

impl Run {
    /// A step arrives at a barrier, or looks again: whether all are there, or will never be; `None` to wait.
    pub(super) fn at_barrier(&self, name: &str, own: &str) -> Option<bool> {
        let new = self
            .state()
            .nodes
            .get(own)
            .is_some_and(|node| !node.arrived);
        if new {
            self.set(own, |node| node.arrived = true);
            self.wake();
        }
        let pipeline = &self.model.case.pipeline;
        let state = self.state();
        let mut all = true;
        for stage in pipeline.stages() {
            let list = format!("{}.", stage.list());
            let ended = state.stages.get(&stage.id).map(|stage| stage.status);
            let ended = ended.filter(|status| *status != Status::Running);
            for (id, step) in pipeline.steps() {
                let here = step.kind == Kind::Barrier(name.to_owned()) && id.starts_with(&list);
                if !here || id.contains(".rollbackSteps.") {
                    continue;
                }
                // A group that is skipped has steps that nothing is known of.
                let mut skipped = state.nodes.iter().filter(|(group, node)| {
                    node.status == Status::Skipped && id.starts_with(&format!("{group}."))
                });
                // The outermost, as its names sort first.
                if let Some((_, group)) = skipped.next() {
                    if group.given_up {
                        return Some(false);
                    }
                    continue;
                }
                let node = state.nodes.get(&id);
                let status = node.map(|node| node.status);
                let given_up = node.is_some_and(|node| node.given_up);
                let arrived = node.is_some_and(|node| node.arrived);
                match (status, ended) {
                    (Some(Status::Skipped), _) if given_up => return Some(false),
                    (Some(Status::Skipped), _) => {}
                    (Some(status), _) if is_bad(status) => return Some(false),
                    _ if arrived => {}
                    (_, Some(stage)) if stage.is_good() => {}
                    (_, Some(_)) => return Some(false),
                    _ => all = false,
                }
            }
        }
        all.then_some(true)
    }
}

fn is_bad(status: Status) -> bool {
    matches!(
        status,
        Status::Failed
            | Status::Expired
            | Status::Errored
            | Status::Aborted
            | Status::ApprovalRejected
    )
}
