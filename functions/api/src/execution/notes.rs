//! Notes of runs: `/pipeline/api/pipelines/execution/{id}/notes`.

use axum::extract::Path;
use serde_json::json;
use slipway_engine::notes;

use super::find;
use crate::call::Call;
use crate::envelope::success;
use crate::error::ApiResult;

/// What is noted about a run.
pub(super) async fn get(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    Ok(success(json!({"notes": run.notes})))
}

/// Notes something else about a run, whether it runs or has ended.
pub(super) async fn put(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    // Nothing, or nothing but the name of the parameter, takes the notes away.
    let text = query.one("notesForPipelineExecution")?.unwrap_or_default();
    notes::set(&deps.runs, &run.id, text).await?;
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        token.id = %caller.token.id,
        run.id = %run.id,
        action = "noted",
        "{} noted something about run {}", caller.principal, run.id
    );
    Ok(success(json!({"notes": text})))
}
