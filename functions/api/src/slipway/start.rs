//! `POST /slipway/api/runs/{run}/stages/{stage}/start`: begins a stage that waits for somebody to start it (`runMode`
//! Manual). The stage is its id in the run: its identifier, with the turn behind it where it loops. Answers
//! `{"data":{"stage":"deploy"}}`; 404 where nobody needs to start it, 409 where it does not wait.

use axum::extract::Path;
use serde_json::json;
use slipway_engine::signal::{Word, say};
use slipway_model::id::StageId;

use crate::call::Call;
use crate::envelope::success;
use crate::error::ApiResult;
use crate::execution::find;

pub(super) async fn start(
    Call(deps, caller, query): Call,
    Path((id, stage)): Path<(String, String)>,
) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    let stage = StageId::new(stage);
    let word = Word::Start {
        stage: stage.clone(),
    };
    say(&deps.runs, &run.id, &caller.principal, &word).await?;
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        token.id = %caller.token.id,
        run.id = %run.id,
        stage.id = %stage,
        action = "start",
        "{} started stage {stage} of run {}", caller.principal, run.id
    );
    Ok(success(json!({"stage": stage.as_str()})))
}
