//! Templates in v1 form, at every scope: bare objects in snake_case, totals in headers. They hold v0 YAML.

use std::collections::HashMap;

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde_json::{Value, json};
use slipway_model::entity::Kind;
use slipway_model::id::{OrgId, ProjectId, Scope};

use super::{How, Shown, Version, find, list, make_stable, remove_version, store, take};
use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{Draft, Filter};
use crate::error::{ApiError, ApiResult};
use crate::git::{DETAILS, Wanted, entity as in_git, shown};
use crate::identifier;
use crate::page::Page;
use crate::query;
use crate::wire::{self, tags_map};

/// The scopes that have templates, as v1 paths.
const BELOW: &[&str] = &["/v1", "/v1/orgs/{org}", "/v1/orgs/{org}/projects/{project}"];

pub(crate) fn routes() -> Router<Deps> {
    let mut router = Router::new();
    for scope in BELOW {
        let path = format!("{scope}/templates");
        let version = format!("{path}/{{id}}/versions/{{version}}");
        router = router
            .route(&path, get(list_all).post(create))
            .route(&format!("{path}/{{id}}"), get(one))
            .route(&format!("{path}/{{id}}/import"), post(import))
            .route(&version, get(one).put(update).delete(remove))
            .route(&format!("{version}/stable"), put(stable));
    }
    router
}

/// The parts of a path, by name: which there are depends on the scope.
type Parts = HashMap<String, String>;

fn part<'a>(parts: &'a Parts, name: &str) -> &'a str {
    parts.get(name).map(String::as_str).unwrap_or_default()
}

fn scope(caller: &Caller, parts: &Parts) -> ApiResult<Scope> {
    let one = |name: &str| {
        let found = parts.get(name).map(String::as_str);
        found.map(|id| identifier::check(name, id)).transpose()
    };
    let (org, project) = (one("org")?, one("project")?);
    query::scope(caller, org.map(OrgId::new), project.map(ProjectId::new))
}

fn render(version: &Version) -> Value {
    let record = &version.record;
    json!({
        "account": record.scope.account.as_str(),
        "org": wire::org(&record.scope),
        "project": wire::project(&record.scope),
        "identifier": version.template(),
        "slug": version.template(),
        "name": record.name,
        "description": record.description,
        "tags": tags_map(&record.tags),
        "yaml": record.yaml,
        "version_label": record.id.as_str(),
        "entity_type": record.entity_type,
        "child_type": version.child_type(),
        "scope": version.scope_name(),
        "version": record.version,
        "git_details": shown::in_v1(&shown::details(record), record),
        "updated": record.updated_ms,
        "store_type": shown::store_type(record),
        "connector_ref": shown::connector(record),
        "stable_template": version.stable,
    })
}

async fn list_all(Call(deps, caller, query): Call, Path(parts): Path<Parts>) -> ApiResult {
    let strings = |field: &str| query.all(field).map(str::to_owned).collect();
    let shown = match query.one("type")? {
        None | Some("STABLE_TEMPLATE") => Shown::Stable,
        Some("LAST_UPDATES_TEMPLATE") => Shown::LastUpdated,
        Some("ALL") => Shown::All,
        Some(_) => {
            let message = "must be STABLE_TEMPLATE, LAST_UPDATES_TEMPLATE or ALL";
            return Err(ApiError::field("type", message));
        }
    };
    let filter = Filter {
        search: query.one("search_term")?.map(str::to_owned),
        identifiers: strings("identifiers"),
        types: strings("entity_types"),
    };
    let (scope, page) = (scope(&caller, &parts)?, Page::v1(&query)?);
    let (found, total) = list(&deps, &scope, &filter, shown, page).await?;
    let items = found.iter().map(render).collect();
    let mut response = Json(Value::Array(items)).into_response();
    for (name, value) in [
        ("x-total-elements", total),
        ("x-page-number", page.index),
        ("x-page-size", page.size),
    ] {
        let value = HeaderValue::from(value);
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

async fn one(Call(deps, caller, query): Call, Path(parts): Path<Parts>) -> ApiResult {
    let label = parts.get("version").map(String::as_str);
    let mut version = find(&deps, scope(&caller, &parts)?, part(&parts, "id"), label).await?;
    let (found, details) = in_git::show_in_v1(&deps, &query, &version.record).await?;
    version.record = found.record;
    let mut template = render(&version);
    template[DETAILS] = details;
    if let Some(fault) = found.fault {
        template["yaml_error_wrapper"] = json!([{"message": fault}]);
    }
    let answer = json!({"template": template, "inputs": version.inputs()});
    Ok(Json(answer).into_response())
}

fn draft(scope: Scope, body: &Value) -> ApiResult<Draft> {
    let yaml = body
        .get("template_yaml")
        .and_then(Value::as_str)
        .filter(|yaml| !yaml.trim().is_empty())
        .ok_or_else(|| ApiError::field("template_yaml", "must not be empty"))?;
    Draft::of_yaml(scope, Kind::Template, yaml.to_owned())
}

/// The identifier and the label of a version are in its YAML; a path that says otherwise is a slip.
pub(super) fn check_same(draft: &Draft, id: &str, label: &str) -> ApiResult<()> {
    let own = draft.place.parent.as_ref().map(|id| id.as_str());
    let own = own.unwrap_or_default();
    for (field, yaml, path) in [
        ("identifier", own, id),
        ("versionLabel", draft.place.id.as_str(), label),
    ] {
        if yaml != path {
            let message = format!("the YAML says `{yaml}`, the request `{path}`");
            return Err(ApiError::field(field, message));
        }
    }
    Ok(())
}

async fn create(Call(deps, caller, _): Call, Path(parts): Path<Parts>, body: Body) -> ApiResult {
    let body = body.kept()?;
    let draft = draft(scope(&caller, &parts)?, &body)?;
    let stable = body.get("is_stable") == Some(&Value::Bool(true));
    let (how, wanted) = (How::Create { stable }, Wanted::in_body(&body, DETAILS)?);
    let (saved, stable) = store(&deps, &caller, draft, how, &wanted).await?;
    let record = saved.record;
    let answer = render(&Version { record, stable });
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

async fn update(Call(deps, caller, _): Call, Path(parts): Path<Parts>, body: Body) -> ApiResult {
    let body = body.kept()?;
    let draft = draft(scope(&caller, &parts)?, &body)?;
    check_same(&draft, part(&parts, "id"), part(&parts, "version"))?;
    let how = How::Update { stable: false };
    let wanted = Wanted::in_body(&body, DETAILS)?;
    let (saved, stable) = store(&deps, &caller, draft, how, &wanted).await?;
    let record = saved.record;
    Ok(Json(render(&Version { record, stable })).into_response())
}

async fn stable(Call(deps, caller, _): Call, Path(parts): Path<Parts>) -> ApiResult {
    let (id, label) = (part(&parts, "id"), part(&parts, "version"));
    let found = make_stable(&deps, scope(&caller, &parts)?, id, label).await?;
    let answer = json!({"stable_version": found.record.id.as_str()});
    Ok(Json(answer).into_response())
}

async fn remove(Call(deps, caller, _): Call, Path(parts): Path<Parts>) -> ApiResult {
    let (id, label) = (part(&parts, "id"), part(&parts, "version"));
    remove_version(&deps, &caller, scope(&caller, &parts)?, id, label).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Takes a version over that is in Git already.
async fn import(Call(deps, caller, _): Call, Path(parts): Path<Parts>, body: Body) -> ApiResult {
    let body = body.kept()?;
    let wanted = Wanted::in_body(&body, "git_import_details")?;
    let label = body["template_import_request"]["template_version"].as_str();
    let named = (part(&parts, "id"), label.filter(|label| !label.is_empty()));
    let from = (&wanted, "git_import_details.file_path");
    let version = take(&deps, &caller, scope(&caller, &parts)?, from, named).await?;
    let answer = json!({
        "identifier": version.template(),
        "version_label": version.record.id.as_str(),
    });
    Ok(Json(answer).into_response())
}
