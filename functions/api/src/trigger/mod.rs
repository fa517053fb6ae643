//! Triggers: `/pipeline/api/triggers`, the history of their events, and what became of an event
//! (API 4.10). Webhooks themselves are taken by the function `webhook`.

mod history;
mod look;
mod status;

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use serde_json::{Value, json};
use slipway_engine::intake::{listen, url};
use slipway_model::entity::Kind;
use slipway_model::id::EntityId;
use slipway_store::Page;
use slipway_store::record::EntityRecord;
use slipway_trigger::{Source, Trigger};

pub(crate) use look::look;

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Draft, Filter, Place};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::flat;
use crate::page::Page as NgPage;
use crate::query::Query;
use crate::wire::{self, tags_map};

pub(crate) fn routes() -> Router<Deps> {
    let path = "/pipeline/api/triggers";
    Router::new()
        .route(path, get(list).post(create))
        .route(
            &format!("{path}/{{id}}"),
            get(one).put(update).delete(remove),
        )
        .route(&format!("{path}/{{id}}/details"), get(details))
        .route(&format!("{path}/catalog"), get(catalog))
        .merge(history::routes())
}

/// What triggers there are, by category.
async fn catalog() -> ApiResult {
    let of =
        |category: &str, kinds: &[&str]| json!({"category": category, "triggerCatalogType": kinds});
    Ok(success(json!({"catalog": [
        of("Webhook", &["Github", "Gitlab", "Bitbucket", "AzureRepo", "AwsCodeCommit", "Harness", "HarnessArtifactRegistry", "Custom"]),
        of("Artifact", &[
            "DockerRegistry", "Ecr", "AmazonS3", "AmazonMachineImage", "Acr", "Gcr", "GoogleArtifactRegistry",
            "GoogleCloudStorage", "GithubPackageRegistry", "ArtifactoryRegistry", "Nexus3Registry", "Jenkins",
        ]),
        of("MultiRegionArtifact", &["MultiRegionArtifact"]),
        of("Manifest", &["HelmChart"]),
        of("Scheduled", &["Cron"]),
        of("SystemEvent", &["Pipeline"]),
    ]})))
}

fn enabled(record: &EntityRecord) -> bool {
    let parsed = flat::parsed(Kind::Trigger, &record.yaml);
    parsed.is_none_or(|parsed| parsed.body().get_text("enabled") != Some("false"))
}

fn read(record: &EntityRecord) -> Option<Trigger> {
    listen::read_trigger(record).ok()
}

/// Where the sender of its webhook posts to; null for triggers that nobody posts to.
async fn webhook_url(deps: &Deps, record: &EntityRecord) -> ApiResult<Value> {
    let Some(trigger) = read(record) else {
        return Ok(Value::Null);
    };
    let key = url::key(&deps.secret_values).await?;
    let path = url::url_path(&trigger, &listen::place_of(record), &key);
    let base = deps.runs.url.as_deref().unwrap_or_default();
    Ok(path.map_or(Value::Null, |path| format!("{base}{path}").into()))
}

fn render(record: &EntityRecord, url: &Value) -> Value {
    let stages = read(record).map(|trigger| trigger.stages);
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
        "webhookUrl": url,
        "errors": {},
        "errorResponse": false,
        "stagesToExecute": stages,
    })
}

/// An item of a list, with what became of the last event.
async fn render_item(deps: &Deps, record: &EntityRecord) -> ApiResult<Value> {
    let place = listen::place_of(record);
    let last = deps.store.list_history(&place, Page::first(1)).await?;
    let last = last.items.into_iter().next();
    let trigger = read(record);
    let webhook = trigger.as_ref().and_then(|trigger| match &trigger.source {
        Source::Webhook(spec) => Some(json!({
            "webhookSecret": trigger.secret,
            "webhookSourceRepo": spec.provider.name(),
        })),
        _ => None,
    });
    let next = trigger.as_ref().filter(|trigger| trigger.enabled);
    let next = next.and_then(|trigger| listen::next_time(trigger, deps.clock.now_ms()));
    let (status, registered) = status::of(deps, record, trigger.as_ref(), &place).await?;
    Ok(json!({
        "name": record.name,
        "identifier": record.id.as_str(),
        "description": record.description,
        "type": record.entity_type,
        "enabled": enabled(record),
        "triggerStatus": status,
        "lastTriggerExecutionDetails": last.map(|last| json!({
            "lastExecutionTime": last.decided_ms,
            "lastExecutionStatus": last.status,
            "lastExecutionSuccessful": last.run.is_some(),
            "planExecutionId": last.run,
            "message": last.message,
        })),
        "nextExecutionTime": next,
        "webhookDetails": webhook,
        "buildDetails": null,
        "tags": tags_map(&record.tags),
        "executions": [],
        "yaml": record.yaml,
        "webhookUrl": webhook_url(deps, record).await?,
        "registrationStatus": registered,
    }))
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
    let (scope, page) = (query.project_scope(&caller)?, NgPage::ng(&query)?);
    let kind = Kind::Trigger;
    let (found, total) = entity::list(&deps, &scope, kind, Some(&pipeline), &filter, page).await?;
    let mut items = Vec::with_capacity(found.len());
    for record in &found {
        items.push(render_item(&deps, record).await?);
    }
    Ok(success(page.render(items, total)))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    let url = webhook_url(&deps, &record).await?;
    Ok(success(render(&record, &url)))
}

async fn details(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    Ok(success(render_item(&deps, &record).await?))
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

/// As [`draft`], with what its author should look at.
async fn looked_at(
    deps: &Deps,
    caller: &Caller,
    query: &Query,
    (body, id): (&Body, Option<&str>),
) -> ApiResult<Draft> {
    let mut draft = draft(caller, query, body, id)?;
    if let Some(parsed) = flat::parsed(Kind::Trigger, &draft.yaml) {
        look(deps, &mut draft, &parsed).await?;
    }
    Ok(draft)
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let draft = looked_at(&deps, &caller, &query, (&body, None)).await?;
    let saved = entity::create(&deps, &caller, draft).await?;
    let url = webhook_url(&deps, &saved.record).await?;
    Ok(saved.answer(|record| render(record, &url)))
}

async fn update(Call(deps, caller, query): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let draft = looked_at(&deps, &caller, &query, (&body, Some(&id))).await?;
    let saved = entity::update(&deps, &caller, draft).await?;
    let url = webhook_url(&deps, &saved.record).await?;
    Ok(saved.answer(|record| render(record, &url)))
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    entity::delete(&deps, &caller, &place(&caller, &query, &id)?).await?;
    Ok(success(Value::Bool(true)))
}
