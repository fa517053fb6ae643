//! The blue-green strategy: two groups, `<asgName>__1` and `<asgName>__2`, take turns behind listener rules.
//!
//! `AsgBlueGreenDeploy` brings the new version up in the group that does not serve, behind the stage target group.
//! `AsgBlueGreenSwapService` lets the rules change places, or `AsgShiftTraffic` moves weights within one rule.
//! `AsgBlueGreenRollback` brings requests back first, once what they go to is healthy, and then the groups.

mod deploy;
mod others;
mod release;
mod rollback;
mod route;
mod shift;
mod sides;
mod swap;

pub use deploy::BlueGreenDeploy;
pub use rollback::BlueGreenRollback;
pub use shift::ShiftTraffic;
pub use swap::BlueGreenSwapService;

/// Tag of a group; `BLUE` serves.
const COLOUR: &str = "BG_VERSION";
const BLUE: &str = "BLUE";
const GREEN: &str = "GREEN";
