//! Triggers as entities: `/pipeline/api/triggers`. This version keeps them and does not fire them; what would
//! answer about firing says so.

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use serde_json::{Value, json};
use slipway_model::entity::Kind;
use slipway_model::id::EntityId;
use slipway_store::record::EntityRecord;

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Draft, Filter, Place};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::flat;
use crate::page::Page;
use crate::query::Query;
use crate::wire::{self, tags_map};

pub(crate) fn routes() -> Router<Deps> {
    let path = "/pipeline/api/triggers";
    let hooks = "/pipeline/api/webhook";
    Router::new()
        .route(path, get(list).post(create))
        .route(
            &format!("{path}/{{id}}"),
            get(one).put(update).delete(remove),
        )
        .route(&format!("{path}/{{id}}/details"), get(details))
        .route(&format!("{path}/catalog"), get(fires))
        .route(&format!("{path}/eventHistory/{{*rest}}"), get(fires))
        .route("/ng/api/webhook", post(fires))
        .route(&format!("{hooks}/trigger"), post(fires))
        .route(&format!("{hooks}/{{*rest}}"), get(fires).post(fires))
}

async fn fires() -> ApiError {
    ApiError::unsupported(
        "Triggers are kept but not fired by this version: start the pipeline with /pipeline/api/pipeline/execute",
    )
}

fn enabled(record: &EntityRecord) -> bool {
    let parsed = flat::parsed(Kind::Trigger, &record.yaml);
    parsed.is_none_or(|parsed| parsed.body().get_text("enabled") != Some("false"))
}

fn render(record: &EntityRecord) -> Value {
    json!({
        "name": record.name,
        "identifier": record.id.as_str(),
        "description": record.description,
        "type": record.entity_type,
        "accountIdentifier": record.scope.account.as_str(),
        "orgIdentifier": wire::org(&record.scope),
        "projectIdentifier": wire::project(&record.scope),
        "targetIdentifier": record.parent.as_ref().map(|id| id.as_str()),
        "yaml": record.yaml,
        "version": record.version,
        "enabled": enabled(record),
        "webhookUrl": null,
        "errors": {},
        "errorResponse": false,
        "stagesToExecute": [],
    })
}

/// An item of a list. Its status says that nothing listens for it.
fn render_item(record: &EntityRecord) -> Value {
    json!({
        "name": record.name,
        "identifier": record.id.as_str(),
        "description": record.description,
        "type": record.entity_type,
        "enabled": enabled(record),
        "triggerStatus": {
            "pollingSubscriptionStatus": null,
            "validationStatus": null,
            "webhookAutoRegistrationStatus": null,
            "status": "UNKNOWN",
            "detailMessages": ["This version keeps triggers and does not fire them"],
        },
        "lastTriggerExecutionDetails": null,
        "webhookDetails": null,
        "buildDetails": null,
        "tags": tags_map(&record.tags),
        "executions": [],
        "yaml": record.yaml,
        "webhookUrl": null,
        "registrationStatus": null,
    })
}

fn place(caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
    let pipeline = query.required("targetIdentifier")?;
    Place::of_pipeline(query.project_scope(caller)?, Kind::Trigger, pipeline, id)
}

async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let pipeline = crate::identifier::entity(query.required("targetIdentifier")?)?;
    let filter = Filter {
        search: query.one("searchTerm")?.map(str::to_owned),
        ..Filter::default()
    };
    let (scope, page) = (query.project_scope(&caller)?, Page::ng(&query)?);
    let kind = Kind::Trigger;
    let (found, total) = entity::list(&deps, &scope, kind, Some(&pipeline), &filter, page).await?;
    Ok(success(
        page.render(found.iter().map(render_item).collect(), total),
    ))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    Ok(success(render(&record)))
}

async fn details(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    Ok(success(render_item(&record)))
}

/// The trigger of a body, which must be one of the pipeline that the request names.
fn draft(caller: &Caller, query: &Query, body: &Body, id: Option<&str>) -> ApiResult<Draft> {
    let scope = query.project_scope(caller)?;
    let draft = Draft::of_yaml(scope, Kind::Trigger, body.text()?.to_owned())?;
    let own = draft.place.parent.as_ref().map(EntityId::as_str);
    let target = query.one("targetIdentifier")?;
    for (field, yaml, request) in [
        ("identifier", Some(draft.place.id.as_str()), id),
        ("pipelineIdentifier", own, target),
    ] {
        if let (Some(yaml), Some(request)) = (yaml, request)
            && yaml != request
        {
            let message = format!("the YAML says `{yaml}`, the request `{request}`");
            return Err(ApiError::field(field, message));
        }
    }
    Ok(draft)
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let draft = draft(&caller, &query, &body, None)?;
    let saved = entity::create(&deps, &caller, draft).await?;
    Ok(saved.answer(render))
}

async fn update(Call(deps, caller, query): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let draft = draft(&caller, &query, &body, Some(&id))?;
    let saved = entity::update(&deps, &caller, draft).await?;
    Ok(saved.answer(render))
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    entity::delete(&deps, &caller, &place(&caller, &query, &id)?).await?;
    Ok(success(Value::Bool(true)))
}
