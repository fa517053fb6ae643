//! Organizations: `/ng/api/organizations`.

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use serde_json::{Value, json};
use slipway_model::entity::Kind;
use slipway_model::id::{OrgId, Scope};
use slipway_store::record::EntityRecord;

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::bundle;
use crate::call::Call;
use crate::entity::{self, Filter, Place};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::wire::tags_map;

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/ng/api/organizations", get(list).post(create))
        .route(
            "/ng/api/organizations/{id}",
            get(one).put(update).delete(remove),
        )
}

/// An organization as every answer wraps it.
pub(crate) fn render(record: &EntityRecord) -> Value {
    json!({
        "organization": {
            "identifier": record.id.as_str(),
            "name": record.name,
            "description": record.description.as_deref().unwrap_or_default(),
            "tags": tags_map(&record.tags),
        },
        "createdAt": record.created_ms,
        "lastModifiedAt": record.updated_ms,
        "harnessManaged": false,
    })
}

fn place(caller: &Caller, id: &str) -> ApiResult<Place> {
    Place::of(
        Scope::account(caller.account.clone()),
        Kind::Organization,
        id,
    )
}

async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let filter = Filter {
        search: query.one("searchTerm")?.map(str::to_owned),
        identifiers: query.all("identifiers").map(str::to_owned).collect(),
        types: Vec::new(),
    };
    let (scope, page) = (Scope::account(caller.account.clone()), Page::ng(&query)?);
    let (found, total) =
        entity::list(&deps, &scope, Kind::Organization, None, &filter, page).await?;
    Ok(success(
        page.render(found.iter().map(render).collect(), total),
    ))
}

async fn one(Call(deps, caller, _): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &id)?).await?;
    Ok(success(render(&record)))
}

async fn create(Call(deps, caller, _): Call, body: Body) -> ApiResult {
    let scope = Scope::account(caller.account.clone());
    let draft = bundle::draft(scope, Kind::Organization, &body.object()?, None)?;
    let saved = entity::create(&deps, &caller, draft).await?;
    Ok(saved.answer(render))
}

async fn update(Call(deps, caller, _): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let scope = Scope::account(caller.account.clone());
    let draft = bundle::draft(scope, Kind::Organization, &body.object()?, Some(&id))?;
    let saved = entity::update(&deps, &caller, draft).await?;
    Ok(saved.answer(render))
}

async fn remove(Call(deps, caller, _): Call, Path(id): Path<String>) -> ApiResult {
    let place = place(&caller, &id)?;
    let inside = Scope::org(caller.account.clone(), OrgId::new(place.id.as_str()));
    let first = Page { index: 0, size: 1 };
    let (_, projects) = entity::list(
        &deps,
        &inside,
        Kind::Project,
        None,
        &Filter::default(),
        first,
    )
    .await?;
    if projects > 0 {
        let message =
            format!("Organization [{id}] still has {projects} projects: delete them first");
        return Err(ApiError::invalid(message));
    }
    entity::delete(&deps, &caller, &place).await?;
    Ok(success(Value::Bool(true)))
}
