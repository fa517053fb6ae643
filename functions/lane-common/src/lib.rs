//! The function of lanes that need no swimlane of their own, and the lane loop that the functions of
//! all swimlanes share.
//!
//! One invocation walks a lane as far as it goes: `slipway_engine::lane::next` decides, this loop carries
//! out, the store remembers. Any invocation may be repeated at any point: what has begun is recorded
//! before it has an effect, and ends are recorded on conditions.

mod before;
mod expressions;
mod input;
mod invocation;
mod late;
mod mention;
mod pause;
mod record;
mod refusal;
mod skip;
mod step;
mod tags;
mod task;
mod tell;
mod unroll;
mod walk;
mod wiring;

use std::time::Duration;

use slipway_engine::directive::{Directive, Next};
use slipway_engine::runs::Runs;
use slipway_engine::{name, runs};
use slipway_steps::{Step, StepServices};

pub use invocation::Event;
pub use slipway_engine::directive::MOST_TURNS;
pub use slipway_engine::error::HandlerError;
pub use wiring::{ConfigError, answer, variable, wire};

/// How long an invocation goes on before it hands over to the next one.
pub const BUDGET: Duration = Duration::from_secs(60);

/// What lives as long as the function.
#[derive(Clone)]
pub struct Deps {
    /// Store, Step Functions and clock.
    pub runs: Runs,
    /// What steps may touch.
    pub services: StepServices,
    /// The steps of this swimlane.
    pub find: fn(&str) -> Option<&'static dyn Step>,
    /// How long an invocation goes on.
    pub budget: Duration,
    /// How many directives an execution is given before the lane goes on in another; at most [`MOST_TURNS`].
    pub turns: u32,
}

/// Walks a lane until it must wait, fork or end; or, for an event with a token, notes what ends its wait and
/// answers with the directive that is being carried out.
pub async fn handle(deps: &Deps, event: Event) -> Result<Next, HandlerError> {
    if let Some(token) = &event.token {
        return Box::pin(pause::note(deps, &event, token)).await;
    }
    pause::forget(deps, &event).await?;
    // Boxed: the futures of the SDK clients nest deeper than the compiler likes to lay out.
    let walk = Box::pin(walk::Walk::load(deps, event.clone())).await?;
    let (directive, heard) = Box::pin(walk.go()).await?;
    number(deps, &event, directive, heard)
}

/// Counts a directive. Where the history of the execution gets long, another execution is to ask again.
fn number(
    deps: &Deps,
    event: &Event,
    directive: Directive,
    heard: usize,
) -> Result<Next, HandlerError> {
    let before = event.next.as_ref();
    let turn = before.map_or(0, |next| next.turn) + 1;
    let part = before.map_or(event.part.unwrap_or(0), |next| next.part);
    let (directive, part) = match turn < deps.turns.min(MOST_TURNS) || directive.is_end() {
        true => (directive, part),
        false => {
            let (lane, part) = (runs::lane(&event.lane_id)?, part + 1);
            let execution = name::lane_part(&event.run_id, &lane, part);
            (Directive::Continue { execution }, part)
        }
    };
    Ok(Next {
        directive,
        turn,
        part,
        heard,
    })
}

/// The steps of lanes that need no swimlane of their own.
pub fn find(step_type: &str) -> Option<&'static dyn Step> {
    let everywhere = slipway_steps::registry::deployment_types(step_type).is_empty();
    everywhere.then(|| slipway_steps::find(step_type)).flatten()
}
