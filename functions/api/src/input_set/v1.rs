//! Input sets in v1 form: bare objects in snake_case. They hold v0 YAML.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde_json::{Value, json};
use slipway_model::entity::Kind;
use slipway_model::id::Scope;
use slipway_store::record::EntityRecord;

use super::{draft, find};
use crate::Deps;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Draft, Place};
use crate::error::{ApiError, ApiResult};
use crate::git::{DETAILS, Wanted, entity as in_git, routes as git, shown};
use crate::pipeline::v1::{IMPORT, IMPORT_FILE, placed_anew, scope};
use crate::query::Query;
use crate::wire::{self, tags_map};

pub(crate) fn routes() -> Router<Deps> {
    let path = "/v1/orgs/{org}/projects/{project}/input-sets";
    let one_path = format!("{path}/{{id}}");
    Router::new()
        .route(path, post(create))
        .route(&one_path, get(one).put(update).delete(remove))
        .route(&format!("{one_path}/import"), post(import))
        .route(&format!("{one_path}/git-metadata"), put(placed))
        .route(&format!("{one_path}/move-config"), post(moved))
}

fn render(record: &EntityRecord) -> Value {
    json!({
        "identifier": record.id.as_str(),
        "name": record.name,
        "org": wire::org(&record.scope),
        "project": wire::project(&record.scope),
        "description": record.description,
        "tags": tags_map(&record.tags),
        "input_set_yaml": record.yaml,
        "store_type": shown::store_type(record),
        "connector_ref": shown::connector(record),
        "git_details": shown::in_v1(&shown::details(record), record),
        "created": record.created_ms,
        "updated": record.updated_ms,
    })
}

fn draft_of(scope: Scope, query: &Query, body: &Value, id: Option<&str>) -> ApiResult<Draft> {
    let yaml = body
        .get("input_set_yaml")
        .and_then(Value::as_str)
        .filter(|yaml| !yaml.trim().is_empty())
        .ok_or_else(|| ApiError::field("input_set_yaml", "must not be empty"))?;
    let written = body.get("identifier").and_then(Value::as_str);
    let id = id.or(written.filter(|id| !id.is_empty()));
    let pipeline = query.required("pipeline")?;
    draft(scope, Kind::InputSet, pipeline, yaml.to_owned(), id)
}

async fn create(
    Call(deps, caller, query): Call,
    Path((org, project)): Path<(String, String)>,
    body: Body,
) -> ApiResult {
    let scope = scope(&caller, &org, &project)?;
    let body = body.kept()?;
    let draft = draft_of(scope, &query, &body, None)?;
    let wanted = Wanted::in_body(&body, DETAILS)?;
    let saved = in_git::create(&deps, &caller, draft, &wanted).await?;
    Ok((StatusCode::CREATED, Json(render(&saved.record))).into_response())
}

fn place(scope: Scope, query: &Query, id: &str) -> ApiResult<Place> {
    Place::of_pipeline(scope, Kind::InputSet, query.required("pipeline")?, id)
}

async fn one(
    Call(deps, caller, query): Call,
    Path((org, project, id)): Path<(String, String, String)>,
) -> ApiResult {
    let place = place(scope(&caller, &org, &project)?, &query, &id)?;
    let before = find(&deps, &place, false).await?;
    let (found, details) = in_git::show_in_v1(&deps, &query, &before).await?;
    let mut answer = render(&found.record);
    answer[DETAILS] = details;
    if let Some(fault) = found.fault {
        answer["input_set_error_details"] = json!({"message": fault});
    }
    Ok(Json(answer).into_response())
}

async fn update(
    Call(deps, caller, query): Call,
    Path((org, project, id)): Path<(String, String, String)>,
    body: Body,
) -> ApiResult {
    let scope = scope(&caller, &org, &project)?;
    let body = body.kept()?;
    let draft = draft_of(scope, &query, &body, Some(&id))?;
    find(&deps, &draft.place, false).await?;
    let wanted = Wanted::in_body(&body, DETAILS)?;
    let saved = in_git::update(&deps, &caller, draft, &wanted).await?;
    Ok(Json(render(&saved.record)).into_response())
}

/// Takes an input set over that is in Git already.
async fn import(
    Call(deps, caller, query): Call,
    Path((org, project, id)): Path<(String, String, String)>,
    body: Body,
) -> ApiResult {
    let wanted = Wanted::in_body(&body.kept()?, IMPORT)?;
    let scope = scope(&caller, &org, &project)?;
    let of = (scope, query.required("pipeline")?, id.as_str());
    let saved = git::take_set(&deps, &caller, (&wanted, IMPORT_FILE), of).await?;
    let answer = json!({"input_set_identifier": saved.record.id.as_str()});
    Ok(Json(answer).into_response())
}

/// Says anew where an input set is in Git.
async fn placed(
    Call(deps, caller, query): Call,
    Path((org, project, id)): Path<(String, String, String)>,
    body: Body,
) -> ApiResult {
    let place = place(scope(&caller, &org, &project)?, &query, &id)?;
    placed_anew(&deps, &caller, &body, place).await
}

/// Moves an input set into Git, or out of it.
async fn moved(
    Call(deps, caller, query): Call,
    Path((org, project, id)): Path<(String, String, String)>,
    body: Body,
) -> ApiResult {
    let place = place(scope(&caller, &org, &project)?, &query, &id)?;
    let saved = git::moved_in_v1(&deps, &caller, &body.kept()?, place).await?;
    Ok(Json(json!({"input_set_identifier": saved.record.id.as_str()})).into_response())
}

async fn remove(
    Call(deps, caller, query): Call,
    Path((org, project, id)): Path<(String, String, String)>,
) -> ApiResult {
    let place = place(scope(&caller, &org, &project)?, &query, &id)?;
    entity::delete(&deps, &caller, &place).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
