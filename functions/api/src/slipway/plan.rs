//! `POST /slipway/api/plan/{pipeline}`: what a run would do, without starting it.
//!
//! Query and body are those of an execute request: `inputSetIdentifiers`, and `pipeline:` YAML with the
//! runtime inputs, or nothing. Answer: `{"data":{"text":"…"}}`, the plan as readable text; 400 with every fault when it cannot be planned.

use axum::extract::{Extension, Path, State};
use serde_json::json;

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::envelope::success;
use crate::error::ApiResult;
use crate::execute::inputs;
use crate::pipeline::place;
use crate::query::Query;
use crate::{entity, runs};

pub(super) async fn plan(
    State(deps): State<Deps>,
    Extension(caller): Extension<Caller>,
    query: Query,
    Path(id): Path<String>,
    body: Body,
) -> ApiResult {
    let place = place(query.project_scope(&caller)?, &id)?;
    let pipeline = entity::get(&deps, &place).await?;
    let text = runs::plan(&deps, &caller, &pipeline, inputs(&query, body.text()?)?).await?;
    Ok(success(json!({"text": text})))
}
