//! What somebody else changed between a deployment and its rollback: it is left, and told with what is there and what to
//! do. What this run itself left half way is undone.

mod asg;
mod ecs;
mod lambda;

use slipway_model::status::Failure;

/// What a person reads of a rollback that left something.
fn told(failure: Failure) -> String {
    let left = failure.left_behind.unwrap_or_default();
    format!("{}\nleft behind: {left}", failure.message)
}
