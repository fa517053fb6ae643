//! What a lane does next: a total function of its plan and of what has happened.
//!
//! A lane walks its nodes in order. What has happened is told by facts, one per node; nothing else is
//! remembered, so a lane that is asked again after a crash answers the same. Pure.

mod facts;
mod level;
mod moves;
mod plan;
mod walk;

pub use facts::{Attempt, Facts, NodeFact, Stopped, worst};
pub use level::{Awaited, Failing, deadline_around, judge, retry_conditions};
pub(crate) use level::{awaited_retries, later};
pub use moves::{GroupThen, Halt, Move, Opening, StopReason};
pub use plan::{LanePlan, node_id};
pub(crate) use plan::{any_step_ran, children, contains, groups_to_undo, is_rollback, undoing};
pub use walk::{WalkOutcome, next, steps_verdict};

/// Field of the progress of a node that does not run because something failed before it.
pub const GIVEN_UP: &str = "givenUp";

/// Field of the progress of a node that failed before it was decided whether it runs, or how often: its condition, or what
/// it loops over, cannot be evaluated.
pub const UNDECIDED: &str = "undecided";

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_loops;
#[cfg(test)]
mod tests_strategies;
