//! Templates in NG form: `/template/api/templates`. Bodies are YAML, whatever their header says.

use axum::Router;
use axum::extract::Path;
use axum::response::Response;
use axum::routing::{get, post, put};
use serde_json::{Value, json};
use slipway_model::entity::Kind;

use super::{
    How, Shown, Version, find, list, make_stable, remove_all, remove_version, store, take,
    version_place,
};
use crate::Deps;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{Draft, Filter, Saved};
use crate::envelope::{success, success_with};
use crate::error::{ApiError, ApiResult};
use crate::git::{Wanted, branch, entity as in_git, routes as git, shown};
use crate::page::Page;
use crate::query::Query;
use crate::wire::{self, tags_map};

pub(crate) fn routes() -> Router<Deps> {
    let path = "/template/api/templates";
    Router::new()
        .route(path, post(create))
        .route(&format!("{path}/list"), post(list_all))
        .route(&format!("{path}/list-metadata"), post(list_all))
        .route(&format!("{path}/update/{{id}}/{{version}}"), put(update))
        .route(
            &format!("{path}/updateStableTemplate/{{id}}/{{version}}"),
            put(stable),
        )
        .route(&format!("{path}/import/{{id}}"), post(import))
        .route(&format!("{path}/move-config/{{id}}"), post(move_config))
        .route(&format!("{path}/{{id}}"), get(one).delete(remove))
        .route(
            &format!("{path}/{{id}}/{{version}}"),
            axum::routing::delete(remove_one),
        )
        .route("/template/api/templates/templateInputs/{id}", get(inputs))
}

fn render(version: &Version) -> Value {
    let record = &version.record;
    json!({
        "accountId": record.scope.account.as_str(),
        "orgIdentifier": wire::org(&record.scope),
        "projectIdentifier": wire::project(&record.scope),
        "identifier": version.template(),
        "name": record.name,
        "description": record.description,
        "tags": tags_map(&record.tags),
        "yaml": record.yaml,
        "versionLabel": record.id.as_str(),
        "templateEntityType": record.entity_type,
        "childType": version.child_type(),
        "templateScope": version.scope_name(),
        "version": record.version,
        "stableTemplate": version.stable,
        "storeType": shown::store_type(record),
        "connectorRef": shown::connector(record),
        "gitDetails": shown::details(record),
        "entityValidityDetails": {"valid": true, "invalidYaml": null},
        "createdAt": record.created_ms,
        "lastUpdatedAt": record.updated_ms,
    })
}

async fn list_all(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let body = body.object()?;
    let strings = |field: &str| -> Vec<String> {
        let items = body.get(field).and_then(Value::as_array);
        let texts = items.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    let shown = match query.one("templateListType")? {
        None | Some("Stable") => Shown::Stable,
        Some("LastUpdated") => Shown::LastUpdated,
        Some("All") => Shown::All,
        Some(_) => {
            let message = "must be Stable, LastUpdated or All";
            return Err(ApiError::field("templateListType", message));
        }
    };
    let search = body.get("searchTerm").and_then(Value::as_str);
    let filter = Filter {
        search: query
            .one("searchTerm")?
            .or(search.filter(|text| !text.is_empty()))
            .map(str::to_owned),
        identifiers: strings("templateIdentifiers"),
        types: strings("templateEntityTypes"),
    };
    let (scope, page) = (query.scope(&caller)?, Page::ng(&query)?);
    let (found, total) = list(&deps, &scope, &filter, shown, page).await?;
    Ok(success(
        page.render(found.iter().map(render).collect(), total),
    ))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let label = query.one("versionLabel")?;
    let mut version = find(&deps, query.scope(&caller)?, &id, label).await?;
    let branch = branch(&query)?;
    let fallback = query.one("loadFromFallbackBranch")? == Some("true");
    let before = version.record;
    let found = in_git::show(&deps, &before, branch.as_deref(), fallback).await?;
    version.record = found.record;
    let mut rendered = render(&version);
    if let Some(git) = &version.record.git {
        rendered["gitDetails"] = shown::with_drift(&before, git);
    }
    if let Some(fault) = found.fault {
        let broken = &version.record.yaml;
        rendered["entityValidityDetails"] = json!({"valid": false, "invalidYaml": broken});
        rendered["yamlSchemaErrorWrapper"] = json!({"message": fault});
    }
    Ok(success(rendered))
}

/// What the users of a template are asked for; null when it asks for nothing.
async fn inputs(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let label = query.one("versionLabel")?;
    let version = find(&deps, query.scope(&caller)?, &id, label).await?;
    Ok(success(version.inputs().into()))
}

fn answer(saved: Saved, stable: bool) -> Response {
    let version = Version {
        record: saved.record,
        stable,
    };
    let mut data = render(&version);
    data["templateResponseDTO"] = data.clone();
    success_with(data, &saved.warnings)
}

fn says(query: &Query, field: &str) -> ApiResult<bool> {
    Ok(query.one(field)? == Some("true"))
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let yaml = body.text()?.to_owned();
    let draft = Draft::of_yaml(query.scope(&caller)?, Kind::Template, yaml)?;
    let stable = says(&query, "setDefaultTemplate")?;
    let (saved, stable) = store(
        &deps,
        &caller,
        draft,
        How::Create { stable },
        &Wanted::of(&query)?,
    )
    .await?;
    Ok(answer(saved, stable))
}

async fn update(
    Call(deps, caller, query): Call,
    Path((id, label)): Path<(String, String)>,
    body: Body,
) -> ApiResult {
    let yaml = body.text()?.to_owned();
    let draft = Draft::of_yaml(query.scope(&caller)?, Kind::Template, yaml)?;
    super::v1::check_same(&draft, &id, &label)?;
    let stable = says(&query, "setDefaultTemplate")?;
    let (saved, stable) = store(
        &deps,
        &caller,
        draft,
        How::Update { stable },
        &Wanted::of(&query)?,
    )
    .await?;
    Ok(answer(saved, stable))
}

/// Takes a version over that is in Git already.
async fn import(Call(deps, caller, query): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let body = body.object()?;
    let label = body["templateVersion"].as_str();
    let named = (id.as_str(), label.filter(|label| !label.is_empty()));
    let wanted = Wanted::of(&query)?;
    let from = (&wanted, "filePath");
    let version = take(&deps, &caller, query.scope(&caller)?, from, named).await?;
    Ok(success(json!({
        "templateIdentifier": version.template(),
        "templateVersion": version.record.id.as_str(),
    })))
}

/// Moves a version into Git, or out of it; without a label the stable one.
async fn move_config(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let (scope, label) = (query.scope(&caller)?, query.one("versionLabel")?);
    let version = find(&deps, scope.clone(), &id, label).await?;
    let place = version_place(scope, &id, version.record.id.as_str())?;
    git::moved(&deps, &caller, &query, place).await
}

async fn stable(
    Call(deps, caller, query): Call,
    Path((id, label)): Path<(String, String)>,
) -> ApiResult {
    let version = make_stable(&deps, query.scope(&caller)?, &id, &label).await?;
    Ok(success(version.record.id.as_str().into()))
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let scope = query.scope(&caller)?;
    let labels: Vec<&str> = query.all("templateVersionLabels").collect();
    if labels.is_empty() {
        remove_all(&deps, &caller, scope.clone(), &id).await?;
    }
    for label in labels {
        remove_version(&deps, &caller, scope.clone(), &id, label).await?;
    }
    Ok(success(Value::Bool(true)))
}

async fn remove_one(
    Call(deps, caller, query): Call,
    Path((id, label)): Path<(String, String)>,
) -> ApiResult {
    remove_version(&deps, &caller, query.scope(&caller)?, &id, &label).await?;
    Ok(success(Value::Bool(true)))
}
