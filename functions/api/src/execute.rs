//! Starting runs: by id, with a list of input sets, and in v1 form.

use axum::extract::Path;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use slipway_engine::context::status_name;
use slipway_model::id::{EntityId, Scope};
use slipway_store::record::RunRecord;

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::entity;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::execution::{find, summary};
use crate::identifier;
use crate::pipeline::{place, v1};
use crate::query::Query;
use crate::runs::{self, Inputs};

pub(crate) fn routes() -> Router<Deps> {
    let v1 = "/v1/orgs/{org}/projects/{project}/pipelines/{id}/execute";
    Router::new()
        .route("/pipeline/api/pipeline/execute/{id}", post(by_id))
        .route(
            "/pipeline/api/pipeline/execute/{id}/inputSetList",
            post(with_input_sets),
        )
        .route(
            "/pipeline/api/pipeline/execute/retryHistory/{id}",
            get(retry_history),
        )
        .route(v1, post(in_v1))
        .route(&format!("{v1}/dynamic"), post(dynamic))
}

/// What every NG execute answers.
fn started(run: &RunRecord) -> Value {
    json!({
        "planExecution": {
            "uuid": run.id.as_str(),
            "planId": run.id.as_str(),
            "status": status_name(run.status),
            "startTs": run.started_ms,
            "endTs": run.ended_ms,
            "createdAt": run.started_ms,
            "metadata": {
                "runSequence": run.sequence,
                "executionUuid": run.id.as_str(),
                "pipelineIdentifier": run.pipeline.as_str(),
                "moduleType": "cd",
                "triggerInfo": summary::trigger_info(run),
            },
            "governanceMetadata": null,
        },
        "gitDetails": null,
    })
}

/// The body is `pipeline:` YAML with the runtime inputs, or JSON of the same form, or nothing.
async fn by_id(Call(deps, caller, query): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let inputs = inputs(&query, body.text()?)?;
    let run = start(&deps, &caller, query.project_scope(&caller)?, &id, inputs).await?;
    Ok(success(started(&run)))
}

/// The runtime inputs of a request: input sets by `inputSetIdentifiers`, and the body.
pub(crate) fn inputs(query: &Query, text: &str) -> ApiResult<Inputs> {
    let named = query.all("inputSetIdentifiers");
    Ok(Inputs {
        sets: named.map(input_set).collect::<ApiResult<_>>()?,
        own: own(text),
    })
}

fn input_set(name: &str) -> ApiResult<EntityId> {
    identifier::check("inputSetIdentifiers", name).map(EntityId::new)
}

/// The runtime inputs of a body; blank text and an empty JSON object are none.
pub(crate) fn own(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let none = trimmed.is_empty() || trimmed == "{}" || trimmed == "null";
    (!none).then(|| text.to_owned())
}

/// What a body gives that names input sets: `inputSetReferences`, and `lastYamlToMerge` over them.
pub(crate) fn listed(body: &Value) -> ApiResult<Inputs> {
    let listed = |field: &str| body.get(field).and_then(Value::as_array);
    if listed("stageIdentifiers").is_some_and(|items| !items.is_empty()) {
        return Err(ApiError::unsupported(
            "Running selected stages is not supported by this version: run the whole pipeline",
        ));
    }
    let names = listed("inputSetReferences").into_iter().flatten();
    let wrong = || ApiError::field("inputSetReferences", "must be a list of identifiers");
    let last = body
        .get("lastYamlToMerge")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Ok(Inputs {
        sets: names
            .map(|name| name.as_str().ok_or_else(wrong).and_then(input_set))
            .collect::<ApiResult<_>>()?,
        own: own(last),
    })
}

async fn with_input_sets(
    Call(deps, caller, query): Call,
    Path(id): Path<String>,
    body: Body,
) -> ApiResult {
    let inputs = listed(&body.object()?)?;
    let run = start(&deps, &caller, query.project_scope(&caller)?, &id, inputs).await?;
    Ok(success(started(&run)))
}

async fn in_v1(
    Call(deps, caller, _): Call,
    Path((org, project, id)): Path<(String, String, String)>,
    body: Body,
) -> ApiResult {
    let body = body.object()?;
    let given = body
        .get("inputs_yaml")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let scope = v1::scope(&caller, &org, &project)?;
    let run = start(&deps, &caller, scope, &id, own(given).into()).await?;
    let status = status_name(run.status);
    let details = json!({"execution_id": run.id.as_str(), "status": status});
    Ok(Json(json!({"execution_details": details})).into_response())
}

async fn dynamic() -> ApiResult {
    Err(ApiError::unsupported(
        "Dynamic execution is not enabled: save the pipeline and execute it by its identifier",
    ))
}

async fn start(
    deps: &Deps,
    caller: &Caller,
    scope: Scope,
    id: &str,
    inputs: Inputs,
) -> ApiResult<RunRecord> {
    let place = place(scope, id)?;
    let pipeline = entity::get(deps, &place).await?;
    let run = runs::start(deps, caller, &pipeline, inputs).await?;
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        token.id = %caller.token.id,
        pipeline = %place.id,
        run.id = %run.id,
        action = "executed",
        "{} executed `{}`", caller.principal, place.id
    );
    Ok(run)
}

/// A run of this version is never a retry of another.
async fn retry_history(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    Ok(success(json!({
        "latestExecutionId": run.id.as_str(),
        "errorMessage": null,
        "executionInfos": [{
            "uuid": run.id.as_str(),
            "startTs": run.started_ms,
            "endTs": run.ended_ms,
            "status": run.status,
        }],
        "retryStagesMetadata": {"retryStagesIdentifier": [], "skipStagesIdentifier": []},
    })))
}
