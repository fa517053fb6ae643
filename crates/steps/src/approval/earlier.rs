//! An approval that rejects what earlier runs of its pipeline wait for at the same step (`isAutoRejectEnabled`). The
//! step does it before it ends, and so again where it died over it.

use serde_json::Map;
use slipway_engine::error::RunError;
use slipway_engine::error_name::ErrorName;
use slipway_engine::runs::Runs;
use slipway_engine::signal::{Word, say};
use slipway_model::id::{NodeId, PrincipalId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_store::Page;
use slipway_store::record::RunRecord;

use crate::context::{run_failure, store_failure};

use super::{Activity, KIND, Verdict};

/// Earlier runs that are looked at.
const EARLIER: usize = 50;
/// For errors.
const DOING: &str = "reject what earlier runs wait for";

/// Rejects them, as the one who approved `run`.
pub(super) async fn reject(
    runs: &Runs,
    node: &NodeId,
    run: &RunRecord,
    who: &str,
) -> Result<(), Failure> {
    let page = Page::first(EARLIER);
    let newest = runs.store.list_runs(&run.scope, Some(&run.pipeline), page);
    let newest = newest.await.map_err(|error| store_failure(DOING, &error))?;
    let open = |other: &&RunRecord| !other.status.is_final() && other.sequence < run.sequence;
    for earlier in newest.items.iter().filter(open) {
        let found = runs.store.get_node(&earlier.id, node).await;
        let found = found.map_err(|error| store_failure(DOING, &error))?;
        let Some(found) = found.filter(|found| found.status == Status::ApprovalWaiting) else {
            continue;
        };
        let activity = Activity {
            verdict: Verdict::Reject,
            comments: format!("Run {} of the same pipeline was approved.", run.sequence),
            inputs: Map::new(),
            who: String::new(),
            at_ms: 0,
        };
        let says = serde_json::to_string(&activity).map_err(|error| unwritten(&error))?;
        let word = Word::Step {
            node: found.id,
            attempt: found.attempt,
            kind: format!("{KIND}{who}"),
            says,
        };
        match say(runs, &earlier.id, &PrincipalId::new(who), &word).await {
            Ok(()) => {}
            // It was answered, or ended, in the meantime.
            Err(error) if is_late(&error) => {}
            Err(error) => return Err(run_failure(DOING, &error)),
        }
    }
    Ok(())
}

fn is_late(error: &RunError) -> bool {
    error.name() == ErrorName::Conflict
}

fn unwritten(error: &serde_json::Error) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!("Cannot {DOING}: {error}"),
        left_behind: None,
    }
}
