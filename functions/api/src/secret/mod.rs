//! Secrets: `/ng/api/v2/secrets`. A value goes in and never comes out; keys and credentials only refer to
//! secrets.
//!
//! The entity holds everything but the value, which the secret store keeps. The entity is written first
//! and taken back when the value cannot be stored, so that no value is ever overwritten by a request
//! that is then refused.

mod file;
mod value;

use axum::Router;
use axum::extract::{Extension, Path, State};
use axum::routing::{get, post};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use slipway_model::entity::{Kind, Parsed};
use slipway_model::id::Scope;
use slipway_store::record::EntityRecord;

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::bundle;
use crate::call::Call;
use crate::entity::{self, Change, Draft, Filter, Place, Saved};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::query::Query;

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .merge(file::routes())
        .route("/ng/api/v2/secrets", get(list).post(create))
        .route("/ng/api/v2/secrets/list/secrets", post(list_filtered))
        .route(
            "/ng/api/v2/secrets/{id}",
            get(one).put(update).delete(remove),
        )
}

/// A secret as every answer wraps it, without its value.
fn render(record: &EntityRecord) -> Value {
    let mut secret = bundle::object(Kind::Secret, record);
    if let Some(Value::Object(spec)) = secret.get_mut("spec") {
        let reference = spec.get("valueType").and_then(Value::as_str) == Some("Reference");
        if !reference {
            spec.insert("value".to_owned(), Value::Null);
        }
    }
    json!({
        "secret": secret,
        "createdAt": record.created_ms,
        "updatedAt": record.updated_ms,
        "draft": false,
        "governanceMetadata": null,
    })
}

fn place(caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
    Place::of(query.scope(caller)?, Kind::Secret, id)
}

async fn list(state: State<Deps>, caller: Extension<Caller>, query: Query) -> ApiResult {
    filtered(state, caller, query, &Value::Null).await
}

async fn list_filtered(
    state: State<Deps>,
    caller: Extension<Caller>,
    query: Query,
    body: Body,
) -> ApiResult {
    let body = body.object()?;
    filtered(state, caller, query, &body).await
}

async fn filtered(
    State(deps): State<Deps>,
    Extension(caller): Extension<Caller>,
    query: Query,
    body: &Value,
) -> ApiResult {
    let text = |field: &str| {
        body.get(field)
            .and_then(Value::as_str)
            .filter(|t| !t.is_empty())
    };
    let types = body.get("secretTypes").and_then(Value::as_array);
    let filter = Filter {
        search: query
            .one("searchTerm")?
            .or(text("searchTerm"))
            .map(str::to_owned),
        identifiers: text("secretIdentifier")
            .map(str::to_owned)
            .into_iter()
            .collect(),
        types: types
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
    };
    let (scope, page) = (query.scope(&caller)?, Page::ng(&query)?);
    let (found, total) = entity::list(&deps, &scope, Kind::Secret, None, &filter, page).await?;
    Ok(success(
        page.render(found.iter().map(render).collect(), total),
    ))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    Ok(success(render(&record)))
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let mut body = body.object()?;
    let value = value::take(&mut body)?;
    let scope = bundle::scope(&caller, &query, Kind::Secret, &body)?;
    let draft = bundle::draft(scope, Kind::Secret, &body, None)?;
    value::check_given(&draft, value.is_some())?;
    let saved = create_with(&deps, &caller, draft, value).await?;
    Ok(saved.answer(render))
}

/// Creates a secret; without its value nothing stays.
async fn create_with(
    deps: &Deps,
    caller: &Caller,
    draft: Draft,
    value: Option<SecretString>,
) -> ApiResult<Saved> {
    let saved = entity::create(deps, caller, draft).await?;
    if let Some(value) = value
        && let Err(error) = keep(deps, &saved.record, value).await
    {
        take_back(deps, &saved.record).await;
        return Err(error);
    }
    Ok(saved)
}

/// An update without a value changes everything but the value.
async fn update(Call(deps, caller, query): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let mut body = body.object()?;
    let value = value::take(&mut body)?;
    let scope = bundle::scope(&caller, &query, Kind::Secret, &body)?;
    let draft = bundle::draft(scope, Kind::Secret, &body, Some(&id))?;
    let saved = update_with(&deps, &caller, draft, value).await?;
    Ok(saved.answer(render))
}

async fn update_with(
    deps: &Deps,
    caller: &Caller,
    draft: Draft,
    value: Option<SecretString>,
) -> ApiResult<Saved> {
    let before = entity::get(deps, &draft.place).await?;
    if before.entity_type != draft.entity_type {
        return Err(ApiError::field("type", "of a secret cannot be changed"));
    }
    let saved = entity::update(deps, caller, draft).await?;
    if let Some(value) = value {
        keep(deps, &saved.record, value).await?;
    }
    Ok(saved)
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = place(&caller, &query, &id)?;
    entity::delete(&deps, &caller, &place).await?;
    deps.secret_values.delete(&place.scope, &place.id).await?;
    Ok(success(Value::Bool(true)))
}

/// `apply` of a `secret:` document. Without a value only the rest is stored.
pub(crate) async fn apply(
    deps: &Deps,
    caller: &Caller,
    scope: Scope,
    parsed: &Parsed,
) -> ApiResult<Saved> {
    let mut root = Map::new();
    root.insert(Kind::Secret.key().to_owned(), parsed.to_json());
    let mut body = Value::Object(root);
    let value = value::take(&mut body)?;
    let mut draft = bundle::draft(scope, Kind::Secret, &body, None)?;
    draft.warnings.clone_from(&parsed.warnings);
    if entity::find(deps, &draft.place).await?.is_none() {
        match draft.entity_type.as_deref() {
            Some("SecretFile") => draft.warnings.push(file::without_content(parsed)),
            _ => value::check_given(&draft, value.is_some())?,
        }
        return create_with(deps, caller, draft, value).await;
    }
    let changed = value.is_some();
    let mut saved = update_with(deps, caller, draft, value).await?;
    // Whether a value changed is nobody's business.
    if changed && saved.change == Change::Unchanged {
        saved.change = Change::Updated;
    }
    Ok(saved)
}

async fn keep(deps: &Deps, record: &EntityRecord, value: SecretString) -> ApiResult<()> {
    let put = deps.secret_values.put(&record.scope, &record.id, &value);
    Ok(put.await?)
}

/// Removes an entity whose value could not be stored. Should that fail too, the entity stays without a
/// value, and a run that needs it says so.
async fn take_back(deps: &Deps, record: &EntityRecord) {
    let kind = Kind::Secret.key();
    let removed = deps
        .store
        .delete_entity(&record.scope, kind, None, &record.id, None)
        .await;
    if let Err(error) = removed {
        tracing::warn!(%error, identifier = %record.id, "a secret without a value stays behind");
    }
}
