//! The event of an invocation, as `Advance` in `statemachines/lane.asl.json` sends it.

use serde::Deserialize;
use slipway_engine::directive::Directive;
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
    pub next: Option<Directive>,
    /// Ends the `Pause` that the machine is in: to be noted, not to walk.
    pub token: Option<String>,
    /// The error with which carrying it out ended, if it did.
    pub error: Option<String>,
}
