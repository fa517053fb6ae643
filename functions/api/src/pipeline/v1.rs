//! Pipelines in v1 form: bare objects in snake_case, totals in headers. They hold v0 YAML.

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde_json::{Value, json};
use slipway_model::entity::{self as language, Kind};
use slipway_model::id::{OrgId, ProjectId, Scope};
use slipway_store::record::{EntityRecord, RunRecord};

use super::{applied, ng, place, recent_runs};
use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Draft, Filter, Place, Saved};
use crate::error::{ApiError, ApiResult};
use crate::git::{DETAILS, Wanted, entity as in_git, routes as git, shown};
use crate::page::Page;
use crate::wire::tags_map;
use crate::{edit, envelope, identifier};

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route(
            "/v1/orgs/{org}/projects/{project}/pipelines",
            get(list).post(create),
        )
        .route(
            "/v1/orgs/{org}/projects/{project}/pipelines/{id}",
            get(one).put(update).delete(remove),
        )
        .route(
            "/v1/orgs/{org}/projects/{project}/pipelines/{id}/import",
            post(import),
        )
        .route(
            "/v1/orgs/{org}/projects/{project}/pipelines/{id}/git-metadata",
            put(placed),
        )
        .route(
            "/v1/orgs/{org}/projects/{project}/pipelines/{id}/move-config",
            post(moved),
        )
}

/// The object of an import's body that says where to find it.
pub(crate) const IMPORT: &str = "git_import_info";
/// What its file is called where it is missing.
pub(crate) const IMPORT_FILE: &str = "git_import_info.file_path";

/// The scope of a v1 path.
pub(crate) fn scope(caller: &Caller, org: &str, project: &str) -> ApiResult<Scope> {
    identifier::check("org", org)?;
    identifier::check("project", project)?;
    Ok(Scope::project(
        caller.account.clone(),
        OrgId::new(org),
        ProjectId::new(project),
    ))
}

async fn list(
    Call(deps, caller, query): Call,
    Path((org, project)): Path<(String, String)>,
) -> ApiResult {
    let scope = scope(&caller, &org, &project)?;
    let filter = Filter {
        search: query
            .one("search_term")?
            .or(query.one("name")?)
            .map(str::to_owned),
        identifiers: query
            .all("pipeline_identifiers")
            .map(str::to_owned)
            .collect(),
        types: Vec::new(),
    };
    let page = Page::v1(&query)?;
    let (found, total) = entity::list(&deps, &scope, Kind::Pipeline, None, &filter, page).await?;
    let mut items = Vec::with_capacity(found.len());
    for record in &found {
        items.push(render_item(record, &recent_runs(&deps, record).await?));
    }
    let mut response = Json(Value::Array(items)).into_response();
    for (name, value) in [
        ("x-total-elements", total),
        ("x-page-number", page.index),
        ("x-page-size", page.size),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from(value));
    }
    Ok(response)
}

fn render_item(record: &EntityRecord, runs: &[RunRecord]) -> Value {
    json!({
        "identifier": record.id.as_str(),
        "name": record.name,
        "description": record.description,
        "tags": tags_map(&record.tags),
        "created": record.created_ms,
        "updated": record.updated_ms,
        "modules": ["cd"],
        "store_type": shown::store_type(record),
        "connector_ref": shown::connector(record),
        "valid": true,
        "yaml_version": "0",
        "git_details": shown::in_v1(&shown::details(record), record),
        "execution_summary": null,
        "recent_execution_info": runs.iter().map(recent).collect::<Vec<_>>(),
    })
}

fn recent(run: &RunRecord) -> Value {
    json!({
        "execution_id": run.id.as_str(),
        "execution_status": run.status,
        "started": run.started_ms,
        "ended": run.ended_ms,
        "run_number": run.sequence,
        "executor_info": {
            "trigger_type": run.trigger_type,
            "username": run.starter(),
            "email": run.person().map(crate::user::email),
        },
    })
}

async fn one(
    Call(deps, caller, query): Call,
    Path((org, project, id)): Path<(String, String, String)>,
) -> ApiResult {
    let scope = scope(&caller, &org, &project)?;
    let before = entity::get(&deps, &place(scope, &id)?).await?;
    let (found, details) = in_git::show_in_v1(&deps, &query, &before).await?;
    let record = found.record;
    let applied = match found.fault {
        Some(fault) => Err(fault),
        None => applied(&deps, &record).await?,
    };
    let faults: Vec<Value> = applied
        .as_ref()
        .err()
        .map(|message| json!({"message": message}))
        .into_iter()
        .collect();
    Ok(Json(json!({
        "identifier": record.id.as_str(),
        "name": record.name,
        "org": org,
        "project": project,
        "description": record.description,
        "tags": tags_map(&record.tags),
        "pipeline_yaml": record.yaml,
        "template_applied_pipeline_yaml": applied.as_ref().ok(),
        "modules": ["cd"],
        "store_type": shown::store_type(&record),
        "connector_ref": shown::connector(&record),
        "git_details": details,
        "valid": faults.is_empty(),
        "yaml_error_wrapper": faults,
        "created": record.created_ms,
        "updated": record.updated_ms,
    }))
    .into_response())
}

/// The YAML of a body; of its other fields only the name may differ from what the YAML says.
fn draft(scope: Scope, body: &Value) -> ApiResult<Draft> {
    let yaml = body
        .get("pipeline_yaml")
        .and_then(Value::as_str)
        .filter(|yaml| !yaml.trim().is_empty())
        .ok_or_else(|| ApiError::field("pipeline_yaml", "must not be empty"))?;
    let text = |field: &str| {
        let text = body.get(field).and_then(Value::as_str);
        text.filter(|text| !text.is_empty())
    };
    let mut yaml = yaml.to_owned();
    let named = language::parse(Kind::Pipeline.key(), &yaml).map(|parsed| parsed.head.name);
    // A name that the YAML contradicts is a new one: what else stands in the text stays as it was written.
    if let (Some(name), Ok(named)) = (text("name"), named)
        && name != named
    {
        yaml = edit::set(Kind::Pipeline, &yaml, "name", &name.into());
    }
    let draft = Draft::of_yaml(scope, Kind::Pipeline, yaml)?;
    if let Some(id) = text("identifier") {
        ng::check_same(id, &draft)?;
    }
    Ok(draft)
}

/// The identifier; beside it what the author should look at, where there is something.
fn answer(saved: &Saved) -> Value {
    let mut answer = json!({"identifier": saved.record.id.as_str()});
    if !saved.warnings.is_empty() {
        answer["warnings"] = saved.warnings.iter().map(envelope::warning).collect();
    }
    answer
}

async fn create(
    Call(deps, caller, _): Call,
    Path((org, project)): Path<(String, String)>,
    body: Body,
) -> ApiResult {
    let body = body.kept()?;
    let draft = draft(scope(&caller, &org, &project)?, &body)?;
    let wanted = Wanted::in_body(&body, DETAILS)?;
    let saved = in_git::create(&deps, &caller, draft, &wanted).await?;
    Ok((StatusCode::CREATED, Json(answer(&saved))).into_response())
}

async fn update(
    Call(deps, caller, _): Call,
    Path((org, project, id)): Path<(String, String, String)>,
    body: Body,
) -> ApiResult {
    let body = body.kept()?;
    let draft = draft(scope(&caller, &org, &project)?, &body)?;
    ng::check_same(&id, &draft)?;
    let wanted = Wanted::in_body(&body, DETAILS)?;
    let saved = in_git::update(&deps, &caller, draft, &wanted).await?;
    Ok(Json(answer(&saved)).into_response())
}

/// Takes a pipeline over that is in Git already.
async fn import(
    Call(deps, caller, _): Call,
    Path((org, project, id)): Path<(String, String, String)>,
    body: Body,
) -> ApiResult {
    let wanted = Wanted::in_body(&body.kept()?, IMPORT)?;
    let scope = scope(&caller, &org, &project)?;
    let from = (&wanted, IMPORT_FILE);
    let saved = git::take_pipeline(&deps, &caller, from, (scope, Some(&id))).await?;
    Ok(Json(answer(&saved)).into_response())
}

/// Says anew where a pipeline is in Git.
async fn placed(
    Call(deps, caller, _): Call,
    Path((org, project, id)): Path<(String, String, String)>,
    body: Body,
) -> ApiResult {
    let place = place(scope(&caller, &org, &project)?, &id)?;
    placed_anew(&deps, &caller, &body, place).await
}

/// Moves a pipeline into Git, or out of it.
async fn moved(
    Call(deps, caller, _): Call,
    Path((org, project, id)): Path<(String, String, String)>,
    body: Body,
) -> ApiResult {
    let place = place(scope(&caller, &org, &project)?, &id)?;
    let saved = git::moved_in_v1(&deps, &caller, &body.kept()?, place).await?;
    Ok(Json(json!({"pipeline_identifier": saved.record.id.as_str()})).into_response())
}

/// Says anew where an entity is in Git, as the body of a v1 request has it.
pub(crate) async fn placed_anew(
    deps: &Deps,
    caller: &Caller,
    body: &Body,
    place: Place,
) -> ApiResult {
    let wanted = Wanted::in_body(&json!({DETAILS: body.kept()?}), DETAILS)?;
    let saved = git::place_anew(deps, caller, &wanted, place).await?;
    Ok(Json(json!({"entity_identifier": saved.record.id.as_str()})).into_response())
}

async fn remove(
    Call(deps, caller, _): Call,
    Path((org, project, id)): Path<(String, String, String)>,
) -> ApiResult {
    let scope = scope(&caller, &org, &project)?;
    super::remove(&deps, &caller, place(scope, &id)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
