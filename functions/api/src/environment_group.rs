//! Environment groups: `/ng/api/environmentGroup`; the wrapper in answers is `envGroup`.

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use serde_json::{Value, json};
use slipway_model::entity::Kind;
use slipway_store::record::EntityRecord;

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Filter, Place};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::flat::{self, Flat, Verb};
use crate::page::Page;
use crate::query::Query;
use crate::wire::{self, tags_map};

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/ng/api/environmentGroup", get(list).post(create))
        .route("/ng/api/environmentGroup/list", post(list))
        .route(
            "/ng/api/environmentGroup/{id}",
            get(one).put(update).delete(remove),
        )
}

fn group(record: &EntityRecord, deleted: bool) -> Value {
    let parsed = flat::parsed(Kind::EnvironmentGroup, &record.yaml);
    let stored = parsed.map(|parsed| parsed.to_json()).unwrap_or_default();
    json!({
        "accountId": record.scope.account.as_str(),
        "orgIdentifier": wire::org(&record.scope),
        "projectIdentifier": wire::project(&record.scope),
        "identifier": record.id.as_str(),
        "name": record.name,
        "description": record.description,
        "color": stored.get("color"),
        "deleted": deleted,
        "tags": tags_map(&record.tags),
        "envIdentifiers": stored.get("envIdentifiers"),
        "envResponse": [],
        "yaml": record.yaml,
    })
}

fn render(record: &EntityRecord) -> Value {
    json!({
        "envGroup": group(record, false),
        "createdAt": record.created_ms,
        "lastModifiedAt": record.updated_ms,
    })
}

fn place(caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
    Place::of(query.scope(caller)?, Kind::EnvironmentGroup, id)
}

async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let filter = Filter {
        search: query.one("searchTerm")?.map(str::to_owned),
        identifiers: query
            .all("envGroupIdentifiers")
            .map(str::to_owned)
            .collect(),
        types: Vec::new(),
    };
    let (scope, page) = (query.scope(&caller)?, Page::ng(&query)?);
    let kind = Kind::EnvironmentGroup;
    let (found, total) = entity::list(&deps, &scope, kind, None, &filter, page).await?;
    Ok(success(
        page.render(found.iter().map(render).collect(), total),
    ))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    Ok(success(render(&record)))
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let body = body.object()?;
    let flat = Flat::new(Kind::EnvironmentGroup, &body, "envGroup")?;
    let saved = flat::store(&deps, &caller, &query, &flat, Verb::Create).await?;
    Ok(saved.answer(render))
}

async fn update(Call(deps, caller, query): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let body = body.object()?;
    let flat = Flat::new(Kind::EnvironmentGroup, &body, "envGroup")?;
    if flat.identifier()? != id {
        let message = "is not that of the path and cannot be changed";
        return Err(ApiError::field("identifier", message));
    }
    let saved = flat::store(&deps, &caller, &query, &flat, Verb::Update).await?;
    Ok(saved.answer(render))
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = place(&caller, &query, &id)?;
    let record = entity::get(&deps, &place).await?;
    entity::delete(&deps, &caller, &place).await?;
    Ok(success(group(&record, true)))
}
