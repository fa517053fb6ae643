//! When stages went on: who says something about one must know.

use super::Span;
use super::run::Run;
use crate::ast::Stage;

impl Run {
    pub(super) fn spans(&self) -> Vec<Span> {
        self.state().spans.clone()
    }

    /// A stage goes on from now.
    pub(super) fn goes_on(&self, stage: &Stage) {
        let now = self.model.now();
        let span = Span {
            stage: stage.id.clone(),
            from_ms: now,
            to_ms: now,
        };
        self.state_mut().spans.push(span);
    }

    /// A stage does not go on any more.
    pub(super) fn comes_to_rest(&self, stage: &Stage) {
        let now = self.model.now();
        let mut state = self.state_mut();
        let mut spans = state.spans.iter_mut().rev();
        if let Some(span) = spans.find(|span| span.stage == stage.id) {
            span.to_ms = now;
        }
    }
}
