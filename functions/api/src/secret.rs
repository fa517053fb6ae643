//! Secrets: `/ng/api/v2/secrets`. Texts only; a value goes in and never comes out.
//!
//! The entity holds everything but the value, which the secret store keeps. The entity is written first
//! and taken back when the value cannot be stored, so that no value is ever overwritten by a request
//! that is then refused.

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
use crate::entity::{self, Change, Draft, Filter, Place};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::query::Query;

/// Largest value: that of AWS Secrets Manager, in bytes (*Secrets Manager quotas*).
const LARGEST: usize = 65_536;

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
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
    Ok(Place {
        scope: query.scope(caller)?,
        kind: Kind::Secret,
        parent: None,
        id: crate::identifier::entity(id)?,
    })
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

async fn one(
    State(deps): State<Deps>,
    Extension(caller): Extension<Caller>,
    query: Query,
    Path(id): Path<String>,
) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    Ok(success(render(&record)))
}

async fn create(
    State(deps): State<Deps>,
    Extension(caller): Extension<Caller>,
    query: Query,
    body: Body,
) -> ApiResult {
    let mut body = body.object()?;
    let value = take_value(&mut body)?;
    let scope = bundle::scope(&caller, &query, Kind::Secret, &body)?;
    let draft = bundle::draft(scope, Kind::Secret, &body, None)?;
    check_type(&draft)?;
    let value = value.ok_or_else(|| ApiError::field("spec.value", "must not be empty"))?;
    let record = entity::create(&deps, &caller, draft).await?;
    if let Err(error) = keep(&deps, &record.scope, &record, value).await {
        take_back(&deps, &record).await;
        return Err(error);
    }
    Ok(success(render(&record)))
}

/// An update without a value changes everything but the value.
async fn update(
    State(deps): State<Deps>,
    Extension(caller): Extension<Caller>,
    query: Query,
    Path(id): Path<String>,
    body: Body,
) -> ApiResult {
    let mut body = body.object()?;
    let value = take_value(&mut body)?;
    let scope = bundle::scope(&caller, &query, Kind::Secret, &body)?;
    let draft = bundle::draft(scope, Kind::Secret, &body, Some(&id))?;
    check_type(&draft)?;
    let record = entity::update(&deps, &caller, draft).await?;
    if let Some(value) = value {
        keep(&deps, &record.scope, &record, value).await?;
    }
    Ok(success(render(&record)))
}

async fn remove(
    State(deps): State<Deps>,
    Extension(caller): Extension<Caller>,
    query: Query,
    Path(id): Path<String>,
) -> ApiResult {
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
) -> ApiResult<Change> {
    let mut root = Map::new();
    root.insert(Kind::Secret.key().to_owned(), parsed.to_json());
    let mut body = Value::Object(root);
    let value = take_value(&mut body)?;
    let draft = bundle::draft(scope, Kind::Secret, &body, None)?;
    check_type(&draft)?;
    let exists = entity::find(deps, &draft.place).await?.is_some();
    if !exists && value.is_none() {
        return Err(ApiError::field(
            "spec.value",
            "must not be empty for a new secret",
        ));
    }
    let (record, change) = entity::upsert(deps, caller, draft).await?;
    let Some(value) = value else {
        return Ok(change);
    };
    if let Err(error) = keep(deps, &record.scope, &record, value).await {
        if change == Change::Created {
            take_back(deps, &record).await;
        }
        return Err(error);
    }
    // Whether a value changed is nobody's business.
    Ok(if change == Change::Unchanged {
        Change::Updated
    } else {
        change
    })
}

fn check_type(draft: &Draft) -> ApiResult<()> {
    match draft.entity_type.as_deref() {
        Some("SecretText") => Ok(()),
        other => Err(ApiError::unsupported(format!(
            "Secrets of type {} are not supported by this version; SecretText is",
            other.unwrap_or("(none)")
        ))),
    }
}

/// Takes the value out of a body, so that what is stored, logged or answered cannot hold it.
fn take_value(body: &mut Value) -> ApiResult<Option<SecretString>> {
    let Some(Value::Object(spec)) = body.pointer_mut("/secret/spec") else {
        return Ok(None);
    };
    // `spec.type` is decoration: clients disagree about it.
    spec.shift_remove("type");
    let value_type = spec
        .get("valueType")
        .and_then(Value::as_str)
        .unwrap_or("Inline");
    if value_type != "Inline" {
        let message = format!("`{value_type}` is not supported by this version; `Inline` is");
        return Err(ApiError::field("spec.valueType", message));
    }
    match spec.shift_remove("value") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) if text.len() <= LARGEST => Ok(Some(SecretString::from(text))),
        Some(Value::String(_)) => Err(ApiError::field(
            "spec.value",
            format!("is longer than {LARGEST} bytes"),
        )),
        Some(_) => Err(ApiError::field("spec.value", "must be a string")),
    }
}

async fn keep(
    deps: &Deps,
    scope: &Scope,
    record: &EntityRecord,
    value: SecretString,
) -> ApiResult<()> {
    Ok(deps.secret_values.put(scope, &record.id, &value).await?)
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
