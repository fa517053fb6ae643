//! The loop of steps that go through phases: each is carried out, what it came to is saved, and the next begins.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use slipway_model::status::Failure;

use crate::context::StepContext;
use crate::step::Progress;

/// What a phase came to.
pub(crate) enum Turn {
    /// The next phase may begin.
    On,
    /// The same phase goes on after this time.
    Wait(Duration),
    /// The step has ended well, with these outputs.
    Done(Value),
}

impl From<Option<Duration>> for Turn {
    fn from(pause: Option<Duration>) -> Self {
        pause.map_or(Self::On, Self::Wait)
    }
}

/// One call's worth of a step.
#[async_trait]
pub(crate) trait Phases: Send {
    /// What it remembers.
    type State: Serialize + Send + Sync;

    fn state(&self) -> &Self::State;

    /// Carries out the phase that is next. What it must know after a crash it saves itself before its effects.
    async fn turn(&mut self, cx: &mut StepContext<'_>) -> Result<Turn, Failure>;

    /// Told when a phase has been saved: what follows is not the repetition of a call that was cut off.
    fn saved(&mut self) {}
}

/// Goes as far as possible without waiting.
pub(crate) async fn walk<P: Phases>(
    mut phases: P,
    cx: &mut StepContext<'_>,
) -> Result<Progress, Failure> {
    loop {
        let turn = phases.turn(cx).await?;
        if let Turn::Done(outputs) = turn {
            return Ok(Progress::Done(outputs));
        }
        cx.save(phases.state()).await?;
        phases.saved();
        if let Turn::Wait(pause) = turn {
            return Ok(Progress::Again(pause));
        }
    }
}
