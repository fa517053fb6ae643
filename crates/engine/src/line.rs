//! Whom a stage or a step waits for: those in front of it in the line for its infrastructure, or for the key of a queue.

use slipway_model::id::{RunId, StageId};
use slipway_plan::{Plan, StagePlan};
use slipway_store::Holder;
use slipway_store::record::NodeRecord;

use crate::begin::infrastructure_key;
use crate::error::{Doing, RunError};
use crate::queue;
use crate::runs::Runs;

/// A line, as whoever waits in it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The key of a queue; empty for an infrastructure, which the plan names.
    pub key: String,
    /// Who holds it, and then who comes before the one who asks.
    pub ahead: Vec<Holder>,
}

/// Whom a stage waits for that wants its infrastructure; `None` where it waits for nobody.
///
/// # Errors
/// When the store cannot be read.
pub async fn of_stage(
    runs: &Runs,
    plan: &Plan,
    run: &RunId,
    stage: &StagePlan,
) -> Result<Option<Line>, RunError> {
    let Some(name) = infrastructure_key(plan, stage) else {
        return Ok(None);
    };
    let own = |holder: &Holder| holder.run == *run && holder.stage == stage.id;
    ahead(runs, &name, String::new(), own).await
}

/// Whom a `Queue` step waits for; `None` where it waits for nobody, and for other steps.
///
/// # Errors
/// When the store cannot be read.
pub async fn of_step(
    runs: &Runs,
    plan: &Plan,
    run: &RunId,
    node: &NodeRecord,
) -> Result<Option<Line>, RunError> {
    let Some((key, scope)) = queue::held(node) else {
        return Ok(None);
    };
    let holder = scope.holder(run, &node.stage);
    let name = queue::hold(&plan.scope.account, key);
    ahead(runs, &name, key.to_owned(), |known| *known == holder).await
}

async fn ahead(
    runs: &Runs,
    name: &str,
    key: String,
    own: impl Fn(&Holder) -> bool,
) -> Result<Option<Line>, RunError> {
    let ahead = runs.store.ahead_of(name, own).await;
    let ahead = ahead.doing(|| format!("read who waits for {name}"))?;
    Ok((!ahead.is_empty()).then_some(Line { key, ahead }))
}

/// The stage of a holder; none where its whole run holds.
pub fn stage_of(holder: &Holder) -> Option<&StageId> {
    Some(&holder.stage).filter(|stage| !stage.as_str().is_empty())
}
