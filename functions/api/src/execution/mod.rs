//! Runs of pipelines as clients see them.

mod filter;
pub(crate) mod graph;
pub(crate) mod node;
mod notes;
pub(crate) mod routes;
pub(crate) mod summary;
mod waits;

use std::sync::Arc;

use slipway_model::id::Scope;
use slipway_plan::Plan;
use slipway_store::record::RunRecord;

use crate::Deps;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::query::Query;

fn not_found(id: &str) -> ApiError {
    ApiError::not_found(format!(
        "Plan Execution Summary does not exist for the given planExecutionId: {id}"
    ))
}

/// A run of the caller's account; a project in the query must be the run's own.
pub(crate) async fn find(
    deps: &Deps,
    caller: &Caller,
    query: &Query,
    id: &str,
) -> ApiResult<RunRecord> {
    let run = deps.store.find_run(&crate::identifier::run(id)?).await?;
    let run = run
        .filter(|run| run.scope.account == caller.account)
        .ok_or_else(|| not_found(id))?;
    let named: Scope = query.scope(caller)?;
    let fits = named.org.is_none() || named.org == run.scope.org;
    match fits && (named.project.is_none() || named.project == run.scope.project) {
        true => Ok(run),
        false => Err(not_found(id)),
    }
}

/// The plan of a run, once it has one.
pub(crate) async fn plan(deps: &Deps, run: &RunRecord) -> ApiResult<Option<Arc<Plan>>> {
    match &run.plan {
        Some(digest) => {
            let plan = deps.store.get_plan(digest).await?;
            Ok(Some(deps.runs.unrolled(&run.id, plan).await?))
        }
        None => Ok(None),
    }
}
