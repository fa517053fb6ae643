//! Variables of an account, an organization or a project: `/ng/api/variables`; the wrapper is `variable`.

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use serde_json::{Value, json};
use slipway_model::entity::Kind;
use slipway_store::record::EntityRecord;

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::bundle;
use crate::call::Call;
use crate::entity::{self, Draft, Filter, Place};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::query::Query;

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/ng/api/variables", get(list).post(create).put(update))
        .route("/ng/api/variables/{id}", get(one).delete(remove))
}

fn render(record: &EntityRecord) -> Value {
    json!({
        "variable": bundle::object(Kind::Variable, record),
        "createdAt": record.created_ms,
        "lastModifiedAt": record.updated_ms,
    })
}

fn place(caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
    Place::of(query.scope(caller)?, Kind::Variable, id)
}

async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let filter = Filter {
        search: query.one("searchTerm")?.map(str::to_owned),
        ..Filter::default()
    };
    let (scope, page) = (query.scope(&caller)?, Page::ng(&query)?);
    let (found, total) = entity::list(&deps, &scope, Kind::Variable, None, &filter, page).await?;
    Ok(success(
        page.render(found.iter().map(render).collect(), total),
    ))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    Ok(success(render(&record)))
}

fn draft(caller: &Caller, query: &Query, body: &Value) -> ApiResult<Draft> {
    let scope = bundle::scope(caller, query, Kind::Variable, body)?;
    let draft = bundle::draft(scope, Kind::Variable, body, None)?;
    check(&draft)?;
    Ok(draft)
}

/// Variables are texts: fixed ones, of a set, or of a pattern. What Harness announces for later is told by name.
pub(crate) fn check(draft: &Draft) -> ApiResult<()> {
    let parsed = crate::flat::parsed(Kind::Variable, &draft.yaml);
    if draft.entity_type.as_deref() != Some("String") {
        let message = "Variables of type Secret are not supported by this version: keep the value as a secret and refer to it with <+secrets.getValue(\"…\")>";
        return Err(ApiError::unsupported(message));
    }
    let Some(parsed) = parsed else {
        return Ok(());
    };
    match slipway_model::variable::value_of(parsed.body()) {
        Ok(_) => Ok(()),
        Err((field, message)) => Err(ApiError::field(&format!("spec.{field}"), message)),
    }
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let draft = draft(&caller, &query, &body.object()?)?;
    let saved = entity::create(&deps, &caller, draft).await?;
    Ok(saved.answer(render))
}

async fn update(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let draft = draft(&caller, &query, &body.object()?)?;
    let saved = entity::update(&deps, &caller, draft).await?;
    Ok(saved.answer(render))
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    entity::delete(&deps, &caller, &place(&caller, &query, &id)?).await?;
    Ok(success(Value::Bool(true)))
}
