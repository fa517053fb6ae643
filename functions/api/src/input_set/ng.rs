//! Input sets and overlays in NG form: `/pipeline/api/inputSets`. Bodies are YAML, whatever their header says.

use axum::Router;
use axum::extract::Path;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::Value;
use slipway_model::entity::Kind;
use slipway_model::id::EntityId;

use super::{draft, fault, find, render, summary};
use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Filter, Place, Saved};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::git::{Wanted, branch, entity as in_git, shown};
use crate::page::Page;
use crate::pipeline;
use crate::query::Query;

pub(crate) fn routes() -> Router<Deps> {
    let path = "/pipeline/api/inputSets";
    Router::new()
        .route(path, get(list).post(create))
        .route(&format!("{path}/overlay"), post(create_overlay))
        .route(
            &format!("{path}/overlay/{{id}}"),
            get(one_overlay).put(update_overlay).delete(remove),
        )
        .route(
            &format!("{path}/{{id}}"),
            get(one).put(update).delete(remove),
        )
}

fn place(caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
    let pipeline = query.required("pipelineIdentifier")?;
    Place::of_pipeline(query.project_scope(caller)?, Kind::InputSet, pipeline, id)
}

async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let owner = query.required("pipelineIdentifier")?;
    let of_pipeline = pipeline::place(query.project_scope(&caller)?, owner)?;
    let types = match query.one("inputSetType")? {
        None | Some("ALL") => Vec::new(),
        Some(kind @ ("INPUT_SET" | "OVERLAY_INPUT_SET")) => vec![kind.to_owned()],
        Some(_) => {
            let message = "must be ALL, INPUT_SET or OVERLAY_INPUT_SET";
            return Err(ApiError::field("inputSetType", message));
        }
    };
    let filter = Filter {
        search: query.one("searchTerm")?.map(str::to_owned),
        identifiers: query
            .all("inputSetIdentifiers")
            .map(str::to_owned)
            .collect(),
        types,
    };
    let (scope, page) = (&of_pipeline.scope, Page::ng(&query)?);
    let parent = EntityId::new(owner);
    let (found, total) =
        entity::list(&deps, scope, Kind::InputSet, Some(&parent), &filter, page).await?;
    let pipeline = entity::find(&deps, &of_pipeline).await?;
    let content = found
        .iter()
        .map(|record| summary(record, fault(pipeline.as_ref(), record).as_deref()))
        .collect();
    Ok(success(page.render(content, total)))
}

async fn show(deps: &Deps, caller: &Caller, query: &Query, id: &str, overlay: bool) -> ApiResult {
    let place = place(caller, query, id)?;
    let before = find(deps, &place, overlay).await?;
    let branch = branch(query)?;
    let fallback = query.one("loadFromFallbackBranch")? == Some("true");
    let found = in_git::show(deps, &before, branch.as_deref(), fallback).await?;
    let record = found.record;
    let owner = query.required("pipelineIdentifier")?;
    let pipeline = entity::find(deps, &pipeline::place(place.scope, owner)?).await?;
    let fault = found.fault.or_else(|| fault(pipeline.as_ref(), &record));
    let mut rendered = render(&record, fault.as_deref());
    if let Some(git) = &record.git {
        rendered["gitDetails"] = shown::with_drift(&before, git);
    }
    Ok(success(rendered))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    show(&deps, &caller, &query, &id, false).await
}

async fn one_overlay(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    show(&deps, &caller, &query, &id, true).await
}

/// Stores the body: a new set without `id`, a new version of one with it.
async fn store(
    deps: &Deps,
    caller: &Caller,
    query: &Query,
    body: &Body,
    (kind, id): (Kind, Option<&str>),
) -> ApiResult {
    let pipeline = query.required("pipelineIdentifier")?;
    let scope = query.project_scope(caller)?;
    let draft = draft(scope, kind, pipeline, body.text()?.to_owned(), id)?;
    let wanted = Wanted::of(query)?;
    let saved = match id {
        None => in_git::create(deps, caller, draft, &wanted).await?,
        Some(_) => {
            find(deps, &draft.place, kind == Kind::OverlayInputSet).await?;
            in_git::update(deps, caller, draft, &wanted).await?
        }
    };
    Ok(answer(&saved))
}

fn answer(saved: &Saved) -> Response {
    saved.answer(|record| render(record, None))
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    store(&deps, &caller, &query, &body, (Kind::InputSet, None)).await
}

async fn create_overlay(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let which = (Kind::OverlayInputSet, None);
    store(&deps, &caller, &query, &body, which).await
}

async fn update(Call(deps, caller, query): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let which = (Kind::InputSet, Some(id.as_str()));
    store(&deps, &caller, &query, &body, which).await
}

async fn update_overlay(
    Call(deps, caller, query): Call,
    Path(id): Path<String>,
    body: Body,
) -> ApiResult {
    let which = (Kind::OverlayInputSet, Some(id.as_str()));
    store(&deps, &caller, &query, &body, which).await
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    entity::delete(&deps, &caller, &place(&caller, &query, &id)?).await?;
    Ok(success(Value::Bool(true)))
}
