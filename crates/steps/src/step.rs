//! What a step is.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use slipway_model::status::{Failure, Status};

use crate::context::StepContext;

/// One step type. A new one costs a folder with an implementation, a line in `registry.rs` and a test.
#[async_trait]
pub trait Step: Send + Sync {
    /// `type` in YAML.
    fn step_type(&self) -> &'static str;

    /// Names of its command units, in order.
    fn units(&self) -> &'static [&'static str];

    /// Checks the shape of `spec` (expressions unresolved) before a run starts: a message per fault.
    fn check(&self, spec: &Value) -> Vec<String>;

    /// Top-level fields of `spec` whose expressions the step resolves itself, because they read what it
    /// only learns while it runs (`assertion`). The lane loop leaves them in `cx.spec()` as written.
    fn own_expressions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a call of it that comes to [`Progress::Hold`] changes nothing anywhere and saves nothing, so that it may be
    /// made before it is written that the step has begun: that and what it waits for are then one write.
    fn only_asks(&self) -> bool {
        false
    }

    /// What undoes it: the step type of its rollback step, or why nothing needs undoing.
    fn undo(&self) -> Undo;

    /// The step types of which each undoes it. The default is what [`Step::undo`] says.
    fn undone_by(&self) -> Vec<&'static str> {
        match self.undo() {
            Undo::Step(step_type) => vec![step_type],
            Undo::Nothing(_) => Vec::new(),
        }
    }

    /// Does as much as can be done without waiting. Called again with the same `cx.node` after a wait or
    /// a crash; what it must remember it writes with [`StepContext::save`] before the effect it
    /// guards, so that doing it twice is doing it once.
    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure>;

    /// Called once instead of `advance` when the step must stop early (abort or timeout): releases what
    /// would go on by itself. The default has nothing to release.
    async fn stop(&self, _cx: &mut StepContext<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

/// How far a step came.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Ended well; what expressions may read below the step's name: `{"output": {…}, …}`, stored as the
    /// record's `outputs`.
    Done(Value),
    /// Call again after this time.
    Again(Duration),
    /// Call again after this time, or as soon as somebody says something about the run
    /// ([`slipway_engine::signal`]). The step shows this status meanwhile.
    Hold {
        /// The time.
        time: Duration,
        /// `ApprovalWaiting`, `ResourceWaiting`, ….
        status: Status,
    },
    /// A delegate must do this first; the result is in `cx.delegate_result()` at the next call.
    Delegate(DelegateWork),
}

/// Work for a delegate.
#[derive(Clone, Debug, PartialEq)]
pub struct DelegateWork {
    /// `ShellScript`, ….
    pub task_type: String,
    /// What to do; secrets are references, never values.
    pub payload: Value,
    /// Selectors that the delegate must carry.
    pub selectors: Vec<String>,
    /// Which work of this attempt it is, from 0, for steps that ask more than once: the same work is given out once.
    pub turn: u32,
}

/// How a step is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// By this step type in `rollbackSteps`.
    Step(&'static str),
    /// It changes nothing that Slipway answers for, and this is why.
    Nothing(&'static str),
}
