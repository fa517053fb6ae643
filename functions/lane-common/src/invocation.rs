//! The event of an invocation, as `Advance` in `statemachines/lane.asl.json` sends it.

use serde::Deserialize;
use slipway_engine::directive::{Directive, Next};
use slipway_model::id::{LaneId, RunId};

/// Which lane to walk, and what the machine did since the last invocation.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The run.
    pub run_id: RunId,
    /// The lane.
    pub lane_id: LaneId,
    /// The directive that was carried out; none at the first invocation.
    pub next: Option<Next>,
    /// Which execution of the lane this is, at its first invocation; none for the first execution.
    pub part: Option<u32>,
    /// Ends the `Pause` that the machine is in: to be noted, not to walk.
    pub token: Option<String>,
    /// The error with which carrying it out ended, if it did.
    pub error: Option<String>,
}

impl Event {
    /// The directive that was carried out.
    pub(crate) fn done(&self) -> Option<&Directive> {
        self.next.as_ref().map(|next| &next.directive)
    }
}
