//! What a run warns of because of its notices: those that nobody got, and those that are worded otherwise than their rule
//! wants.

use slipway_model::id::{NodeId, RunId};
use slipway_plan::Plan;

use crate::error::RunError;
use crate::runs::Runs;
use crate::signal::warn;

/// Warns that a rule sends the standard message, by its number and name, although it has a template.
///
/// # Errors
/// When the store cannot be written.
pub async fn warn_of_template(
    runs: &Runs,
    run: &RunId,
    (number, name): (usize, &str),
    fault: &str,
) -> Result<(), RunError> {
    let says = format!("The notification rule `{name}` sends the standard message: {fault}");
    warn(
        runs,
        run,
        NodeId::new(""),
        &format!("template:{number}"),
        says,
    )
    .await
}

/// Warns of what the plan of a run knows of its rules already.
pub(crate) async fn warn_of_plan(runs: &Runs, run: &RunId, plan: &Plan) -> Result<(), RunError> {
    for (number, rule) in plan.notifications.iter().enumerate() {
        if let Some(fault) = &rule.fault {
            warn_of_template(runs, run, (number, &rule.name), fault).await?;
        }
    }
    Ok(())
}
