//! Runtime inputs of a pipeline. Input sets themselves come with a later version; until then lists of
//! them are empty, which is true.

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::{get, post};
use serde_json::json;
use slipway_engine::error_name::ErrorName;
use slipway_model::entity::{self as language, Kind};
use slipway_model::{emit, inputs};

use crate::Deps;
use crate::auth::Caller;
use crate::entity;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::pipeline::place;
use crate::query::Query;

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/pipeline/api/inputSets", get(list).post(create))
        .route("/pipeline/api/inputSets/template", post(template))
}

async fn list(query: Query) -> ApiResult {
    query.required("pipelineIdentifier")?;
    Ok(success(Page::ng(&query)?.render(Vec::new(), 0)))
}

async fn create() -> ApiResult {
    Err(ApiError::unsupported(
        "Input sets are not supported by this version: send runtime inputs with each run",
    ))
}

/// The skeleton of a pipeline that keeps only the places of runtime inputs; null when it has none.
async fn template(
    State(deps): State<Deps>,
    Extension(caller): Extension<Caller>,
    query: Query,
) -> ApiResult {
    let id = query.required("pipelineIdentifier")?;
    let record = entity::get(&deps, &place(query.project_scope(&caller)?, id)?).await?;
    let parsed = language::parse(Kind::Pipeline.key(), &record.yaml)
        .map_err(|found| ApiError::diagnostics(ErrorName::InvalidRequest, &found))?;
    let yaml = inputs::template(&parsed.tree).map(|tree| emit::to_yaml(&tree));
    Ok(success(json!({
        "inputSetTemplateYaml": yaml,
        "replacedExpressions": [],
        "modules": ["cd"],
        "hasInputSets": false,
    })))
}
