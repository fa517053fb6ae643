//! Interrupts of runs: `/pipeline/api/pipeline/execute/interrupt`.

use axum::Router;
use axum::extract::{Extension, Path, State};
use axum::routing::put;
use serde_json::json;
use uuid::Uuid;

use crate::Deps;
use crate::auth::Caller;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::execution::find;
use crate::query::Query;
use crate::runs;

/// Interrupt types that this version carries out.
const SUPPORTED: &[&str] = &["AbortAll", "Abort"];

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/pipeline/api/pipeline/execute/interrupt/{id}", put(run))
        .route(
            "/pipeline/api/pipeline/execute/interrupt/{id}/{node}",
            put(node),
        )
}

/// Notes that the run shall stop. Asking twice, or after its end, changes nothing.
async fn run(
    State(deps): State<Deps>,
    Extension(caller): Extension<Caller>,
    query: Query,
    Path(id): Path<String>,
) -> ApiResult {
    let interrupt = query.required("interruptType")?;
    if !SUPPORTED.contains(&interrupt) {
        return Err(ApiError::unsupported(format!(
            "Interrupt type {interrupt} is not supported by this version; {} are",
            SUPPORTED.join(" and ")
        )));
    }
    let run = find(&deps, &caller, &query, &id).await?;
    if !run.status.is_final() {
        runs::abort(&deps, &caller, &run).await?;
        tracing::info!(
            target: "slipway::audit",
            principal = %caller.principal,
            token.id = %caller.token.id,
            run.id = %run.id,
            action = "aborted",
            "{} asked run {} to stop", caller.principal, run.id
        );
    }
    Ok(success(json!({
        "id": Uuid::new_v4().to_string(),
        "type": "ABORT_ALL",
        "planExecutionId": run.id.as_str(),
    })))
}

async fn node() -> ApiResult {
    Err(ApiError::unsupported(
        "Interrupts of a single node are not supported by this version; AbortAll of the run is",
    ))
}
