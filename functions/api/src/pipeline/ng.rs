//! Pipelines in NG form: `/pipeline/api/pipelines`. Bodies are YAML, whatever their header says.

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post, put};
use serde_json::{Value, json};
use slipway_model::entity::Kind;
use slipway_store::record::{EntityRecord, RunRecord};

use super::{applied, place, recent_runs, stage_names};
use crate::Deps;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Draft, Filter};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::git::entity as in_git;
use crate::git::{Wanted, shown};
use crate::page::Page;
use crate::query::Query;
use crate::wire::{self, tags_map};

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/pipeline/api/pipelines/list", post(list))
        .route("/pipeline/api/pipelines/summary/{id}", get(summary))
        .route("/pipeline/api/pipelines", post(create))
        .route("/pipeline/api/pipelines/v2", post(create))
        .route("/pipeline/api/pipelines/v2/{id}", put(update))
        .route(
            "/pipeline/api/pipelines/{id}",
            get(one).put(update).delete(remove),
        )
}

async fn list(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let body = body.object()?;
    let filter = filter(&query, &body)?;
    let (scope, page) = (query.project_scope(&caller)?, Page::ng(&query)?);
    let (found, total) = entity::list(&deps, &scope, Kind::Pipeline, None, &filter, page).await?;
    let mut content = Vec::with_capacity(found.len());
    for record in &found {
        content.push(render_summary(record, &recent_runs(&deps, record).await?));
    }
    Ok(success(page.render(content, total)))
}

fn filter(query: &Query, body: &Value) -> ApiResult<Filter> {
    let text = |field: &str| {
        body.get(field)
            .and_then(Value::as_str)
            .filter(|t| !t.is_empty())
    };
    let identifiers = body.get("pipelineIdentifiers").and_then(Value::as_array);
    Ok(Filter {
        search: query.one("searchTerm")?.or(text("name")).map(str::to_owned),
        identifiers: identifiers
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        types: Vec::new(),
    })
}

fn render_summary(record: &EntityRecord, runs: &[RunRecord]) -> Value {
    let stages = stage_names(record);
    let last = runs.first();
    json!({
        "identifier": record.id.as_str(),
        "name": record.name,
        "description": record.description,
        "tags": tags_map(&record.tags),
        "version": record.version,
        "numOfStages": stages.len(),
        "stageNames": stages,
        "modules": ["cd"],
        "storeType": shown::store_type(record),
        "connectorRef": shown::connector(record),
        "gitDetails": shown::details(record),
        "yamlVersion": "0",
        "createdAt": record.created_ms,
        "lastUpdatedAt": record.updated_ms,
        "executionSummaryInfo": {
            "lastExecutionTs": last.map(|run| run.started_ms),
            "lastExecutionStatus": last.map(|run| run.status),
            "lastExecutionId": last.map(|run| run.id.as_str()),
            "numOfErrors": [],
            "deployments": [],
        },
        "recentExecutionsInfo": runs.iter().map(recent).collect::<Vec<_>>(),
        "entityValidityDetails": {"valid": true, "invalidYaml": null},
        "orgIdentifier": wire::org(&record.scope),
        "projectIdentifier": wire::project(&record.scope),
    })
}

fn recent(run: &RunRecord) -> Value {
    json!({
        "planExecutionId": run.id.as_str(),
        "status": run.status,
        "startTs": run.started_ms,
        "endTs": run.ended_ms,
        "runSequence": run.sequence,
        "executorInfo": {
            "triggerType": run.trigger_type,
            "username": run.starter(),
            "email": run.person().map(crate::user::email),
        },
    })
}

async fn summary(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(query.project_scope(&caller)?, &id)?).await?;
    let runs = recent_runs(&deps, &record).await?;
    Ok(success(render_summary(&record, &runs)))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let before = entity::get(&deps, &place(query.project_scope(&caller)?, &id)?).await?;
    let found = in_git::shown(&deps, &query, &before).await?;
    let record = found.record;
    let resolved = match query.one("getTemplatesResolvedPipeline")? {
        Some("true") if found.fault.is_none() => Some(applied(&deps, &record).await?),
        _ => None,
    };
    let fault = resolved.as_ref().and_then(|applied| applied.as_ref().err());
    let broken = found.fault.as_ref().map(|_| record.yaml.as_str());
    let fault = found.fault.as_ref().or(fault);
    let details = record
        .git
        .as_ref()
        .map(|git| shown::with_drift(&before, git));
    Ok(success(json!({
        "yamlPipeline": record.yaml,
        "resolvedTemplatesPipelineYaml": resolved.as_ref().and_then(|applied| applied.as_ref().ok()),
        "gitDetails": details,
        "entityValidityDetails": {"valid": fault.is_none(), "invalidYaml": broken},
        "yamlSchemaErrorWrapper": fault.map(|message| json!({"message": message})),
        "modules": ["cd"],
        "storeType": shown::store_type(&record),
        "connectorRef": shown::connector(&record),
        "allowDynamicExecutions": false,
        "version": record.version,
    })))
}

fn saved(record: &EntityRecord) -> Value {
    json!({
        "identifier": record.id.as_str(),
        "governanceMetadata": null,
        "gitDetails": shown::details(record),
    })
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let yaml = body.text()?.to_owned();
    let draft = Draft::of_yaml(query.project_scope(&caller)?, Kind::Pipeline, yaml)?;
    let stored = in_git::create(&deps, &caller, draft, &Wanted::of(&query)?).await?;
    Ok(stored.answer(saved))
}

async fn update(Call(deps, caller, query): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let yaml = body.text()?.to_owned();
    let draft = Draft::of_yaml(query.project_scope(&caller)?, Kind::Pipeline, yaml)?;
    check_same(&id, &draft)?;
    let stored = in_git::update(&deps, &caller, draft, &Wanted::of(&query)?).await?;
    Ok(stored.answer(saved))
}

/// The identifier of a pipeline is in its YAML; a path that says otherwise is a slip.
pub(crate) fn check_same(path_id: &str, draft: &Draft) -> ApiResult<()> {
    match draft.place.id.as_str() == path_id {
        true => Ok(()),
        false => Err(ApiError::field(
            "identifier",
            format!(
                "the YAML says `{}`, the request `{path_id}`",
                draft.place.id
            ),
        )),
    }
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = place(query.project_scope(&caller)?, &id)?;
    super::remove(&deps, &caller, place).await?;
    Ok(success(Value::Bool(true)))
}
