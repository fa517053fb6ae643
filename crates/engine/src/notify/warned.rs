//! What a run warns of because of its notices: those that nobody got, and those that are worded otherwise than their rule
//! wants.

use slipway_model::id::{NodeId, PrincipalId, RunId};
use slipway_plan::Plan;
use slipway_store::StoreError;
use slipway_store::record::SignalRecord;

use crate::error::{Doing, RunError};
use crate::runs::Runs;
use crate::signal::WARNING;

/// Notes in a run what whoever looks at it shall know, once for each thing that it is `about`.
///
/// # Errors
/// When the store cannot be written.
pub async fn warn(runs: &Runs, run: &RunId, about: &str, says: String) -> Result<(), RunError> {
    let signal = SignalRecord {
        run: run.clone(),
        node: NodeId::new(""),
        attempt: 0,
        kind: format!("{WARNING}:{about}"),
        says,
        who: PrincipalId::new("slipway"),
        at_ms: runs.clock.now_ms(),
    };
    match runs.store.put_signal(&signal).await {
        Ok(()) | Err(StoreError::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error).doing(|| format!("note in run {run} what it warns of")),
    }
}

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
    warn(runs, run, &format!("template:{number}"), says).await
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
