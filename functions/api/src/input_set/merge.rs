//! What a pipeline asks for, and what input sets give to it.

use axum::Router;
use axum::routing::post;
use serde_json::{Value, json};
use slipway_model::emit;
use slipway_model::entity::Kind;
use slipway_model::id::EntityId;

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Filter};
use crate::envelope::success;
use crate::error::ApiResult;
use crate::execute::{listed, own};
use crate::git::{branch, entity as in_git};
use crate::page::Page;
use crate::pipeline::place;
use crate::query::Query;
use crate::runs::{self, Inputs};

pub(crate) fn routes() -> Router<Deps> {
    let path = "/pipeline/api/inputSets";
    Router::new()
        .route(&format!("{path}/template"), post(template))
        .route(&format!("{path}/merge"), post(merge))
        .route(&format!("{path}/mergeWithTemplateYaml"), post(merge_own))
}

/// The skeleton of a pipeline that keeps only the places of runtime inputs; null when it has none.
async fn template(Call(deps, caller, query): Call) -> ApiResult {
    let id = query.required("pipelineIdentifier")?;
    let branch = branch(&query)?;
    let record = entity::get(&deps, &place(query.project_scope(&caller)?, id)?).await?;
    let record = in_git::current(&deps, &record, branch.as_deref()).await?;
    let yaml = runs::asked(&deps, &record).await?;
    let (first, all) = (Page { index: 0, size: 1 }, Filter::default());
    let parent = EntityId::new(id);
    let sets = entity::list(
        &deps,
        &record.scope,
        Kind::InputSet,
        Some(&parent),
        &all,
        first,
    );
    let (_, sets) = sets.await?;
    Ok(success(json!({
        "inputSetTemplateYaml": yaml,
        "replacedExpressions": [],
        "modules": ["cd"],
        "hasInputSets": sets > 0,
    })))
}

/// `inputSetReferences` in order, then `lastYamlToMerge`.
async fn merge(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let body = body.object()?;
    let inputs = listed(&body)?;
    merged(&deps, &caller, &query, &inputs, &body).await
}

/// `runtimeInputYaml` alone.
async fn merge_own(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let body = body.object()?;
    let text = body.get("runtimeInputYaml").and_then(Value::as_str);
    let inputs = Inputs::from(own(text.unwrap_or_default()));
    merged(&deps, &caller, &query, &inputs, &body).await
}

async fn merged(
    deps: &Deps,
    caller: &Caller,
    query: &Query,
    inputs: &Inputs,
    body: &Value,
) -> ApiResult {
    let id = query.required("pipelineIdentifier")?;
    let branch = branch(query)?;
    let record = entity::get(deps, &place(query.project_scope(caller)?, id)?).await?;
    let record = in_git::current(deps, &record, branch.as_deref()).await?;
    let inputs = Inputs {
        branch,
        ..inputs.clone()
    };
    let given = runs::put_together(deps, &record, &inputs).await?;
    let whole = body.get("withMergedPipelineYaml") == Some(&Value::Bool(true));
    Ok(success(json!({
        "pipelineYaml": given.inputs.map(|tree| emit::to_yaml(&tree)),
        "completePipelineYaml": whole.then(|| emit::to_yaml(&given.pipeline)),
        "isErrorResponse": false,
        "errorResponse": false,
        "inputSetErrorWrapper": null,
    })))
}
