//! What became of events: by trigger, newest first, and by event.

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use serde_json::{Value, json};
use slipway_engine::intake::{listen, poll};
use slipway_model::id::AccountId;
use slipway_store::Page;
use slipway_store::record::{EventRecord, OutcomeRecord};
use slipway_trigger::Source;

use super::place;
use crate::Deps;
use crate::call::Call;
use crate::entity;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::execution::summary;
use crate::page::Page as NgPage;
use crate::wire;

/// Newest events of a trigger that a list looks at.
const MOST_LISTED: usize = 1_000;

/// Most rows of a page: with [`LONGEST_LISTED`] that is less than a Lambda function may answer.
const MOST_ROWS: usize = 100;

/// Longest payload that a row shows, in bytes. Where it is null, `triggerProcessingDetails` has it.
const LONGEST_LISTED: usize = 32 << 10;

pub(super) fn routes() -> Router<Deps> {
    let path = "/pipeline/api/triggers/eventHistory";
    let hooks = "/pipeline/api/webhook";
    Router::new()
        .route(&format!("{path}/{{id}}"), get(of_trigger))
        .route(&format!("{path}/eventCorrelation/{{id}}"), get(of_event))
        .route(&format!("{path}/v2/eventCorrelation/{{id}}"), get(of_event))
        .route(&format!("{path}/polledResponse/{{id}}"), get(polled))
        .route(&format!("{path}/artifact-manifest-info"), get(by_source))
        .route(
            &format!("{hooks}/triggerProcessingDetails"),
            get(processing),
        )
        .route(
            &format!("{hooks}/triggerExecutionDetails/{{id}}"),
            get(execution),
        )
        .route(
            &format!("{hooks}/triggerExecutionDetailsV2/{{id}}"),
            get(execution),
        )
}

/// The versions of artifacts or charts that the registry of a trigger is known to have.
async fn polled(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    let trigger = listen::read_trigger(&record)?;
    let watches = matches!(
        trigger.source,
        Source::Artifact(_) | Source::Manifest(_) | Source::MultiRegion { .. }
    );
    if !watches {
        let why =
            format!("Trigger {id} watches no registry: triggers on artifacts and manifests do");
        return Err(ApiError::invalid(why));
    }
    let known = poll::standing(&deps.runs, &trigger, &listen::place_of(&record)).await?;
    let seen = known.and_then(|known| known.seen).unwrap_or_default();
    Ok(success(json!({
        "pollingDocId": null,
        "perpetualTaskId": null,
        "perpetualTaskInfoForTriggers": null,
        "polledResponse": {"allPolledKeys": seen},
    })))
}

/// Events are found by their trigger, or by their id.
async fn by_source() -> ApiError {
    ApiError::unsupported(
        "This version lists events by their trigger: /pipeline/api/triggers/eventHistory/{triggerIdentifier}",
    )
}

/// A row, with what the event told where that is known.
fn render(outcome: &OutcomeRecord, event: Option<&EventRecord>) -> Value {
    let payload = event
        .map(payload)
        .filter(|text| text.len() <= LONGEST_LISTED);
    json!({
        "triggerIdentifier": outcome.place.trigger.as_str(),
        "type": outcome.source,
        "accountId": outcome.place.scope.account.as_str(),
        "orgIdentifier": wire::org(&outcome.place.scope),
        "projectIdentifier": wire::project(&outcome.place.scope),
        "targetIdentifier": outcome.place.pipeline.as_str(),
        "eventCorrelationId": outcome.event,
        "payload": payload,
        "eventCreatedAt": outcome.received_ms,
        "createdAt": outcome.decided_ms,
        "finalStatus": outcome.status,
        "message": outcome.message,
        "exceptionOccurred": outcome.run.is_none(),
        "triggerEventStatus": {
            "status": if outcome.run.is_some() { "SUCCESS" } else { "FAILED" },
            "message": outcome.message,
        },
        "targetExecutionSummary": outcome.run.as_ref().map(|run| json!({
            "triggerId": outcome.place.trigger.as_str(),
            "targetId": outcome.place.pipeline.as_str(),
            "planExecutionId": run.as_str(),
            "runtimeInput": outcome.inputs,
        })),
        "ngTriggerEventInfo": null,
    })
}

/// The payload of an event as a text, as the history shows it.
fn payload(event: &EventRecord) -> String {
    let told = &event.body["event"]["payload"];
    match told {
        Value::Null => event.body.to_string(),
        told => told.to_string(),
    }
}

async fn event_of(deps: &Deps, account: &AccountId, id: &str) -> ApiResult<Option<EventRecord>> {
    let found = deps.store.find_event(id).await?;
    Ok(found.filter(|event| event.account == *account))
}

async fn of_trigger(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    let page = NgPage::ng(&query)?;
    let page = NgPage {
        size: page.size.min(MOST_ROWS),
        ..page
    };
    let search = query.one("searchTerm")?.map(str::to_lowercase);
    let place = listen::place_of(&record);
    let listed = deps.store.list_history(&place, Page::first(MOST_LISTED));
    let mut items = listed.await?.items;
    items.retain(|item| {
        search.as_ref().is_none_or(|text| {
            item.event.contains(text)
                || item.status.to_lowercase().contains(text)
                || item.message.to_lowercase().contains(text)
        })
    });
    let total = items.len();
    let mut shown = Vec::new();
    for outcome in page.cut(items) {
        let event = event_of(&deps, &caller.account, &outcome.event).await?;
        shown.push(render(&outcome, event.as_ref()));
    }
    Ok(success(page.render(shown, total)))
}

async fn of_event(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let page = NgPage::ng(&query)?;
    let event = event_of(&deps, &caller.account, &id).await?;
    let event = event.ok_or_else(|| no_such(&id))?;
    let outcomes = deps.store.list_outcomes(&id).await?;
    let total = outcomes.len();
    let shown = page.cut(outcomes);
    let shown = shown.iter().map(|outcome| render(outcome, Some(&event)));
    Ok(success(page.render(shown.collect(), total)))
}

fn no_such(id: &str) -> ApiError {
    ApiError::not_found(format!("There is no event {id}"))
}

/// The first trigger that fired for an event, or else the first that did not.
fn foremost(outcomes: Vec<OutcomeRecord>) -> Option<OutcomeRecord> {
    let mut all = outcomes;
    let at = all.iter().position(|outcome| outcome.run.is_some());
    match all.is_empty() {
        true => None,
        false => Some(all.swap_remove(at.unwrap_or(0))),
    }
}

fn processed(id: &str, event: Option<&EventRecord>, outcome: Option<&OutcomeRecord>) -> Value {
    json!({
        "eventFound": event.is_some(),
        "eventId": id,
        "triggerIdentifier": outcome.map(|it| it.place.trigger.as_str()),
        "pipelineIdentifier": outcome.map(|it| it.place.pipeline.as_str()),
        "pipelineExecutionId": outcome.and_then(|it| it.run.as_ref()).map(|run| run.as_str()),
        "exceptionOccured": outcome.is_some_and(|it| it.run.is_none()),
        "status": outcome.map(|it| it.status.as_str()),
        "message": outcome.map(|it| it.message.as_str()),
        "warningMsg": null,
        "payload": event.map(payload),
        "eventCreatedAt": event.map(|event| event.received_ms),
        "runtimeInput": outcome.and_then(|it| it.inputs.as_deref()),
    })
}

async fn processing(Call(deps, caller, query): Call) -> ApiResult {
    let id = query.required("eventId")?;
    let event = event_of(&deps, &caller.account, id).await?;
    let outcome = match &event {
        Some(_) => foremost(deps.store.list_outcomes(id).await?),
        None => None,
    };
    Ok(success(processed(id, event.as_ref(), outcome.as_ref())))
}

async fn execution(Call(deps, caller, _): Call, Path(id): Path<String>) -> ApiResult {
    let event = event_of(&deps, &caller.account, &id).await?;
    let event = event.ok_or_else(|| no_such(&id))?;
    let outcome = foremost(deps.store.list_outcomes(&id).await?);
    let run = match outcome.as_ref().and_then(|outcome| outcome.run.as_ref()) {
        Some(run) => deps.store.find_run(run).await?,
        None => None,
    };
    let executed = run.as_ref().map(|run| summary::render(run, None));
    Ok(success(json!({
        "webhookProcessingDetails": processed(&id, Some(&event), outcome.as_ref()),
        "executionDetails": {"pipelineExecutionSummary": executed},
        "executionUrl": run.as_ref().and_then(|run| {
            Some(slipway_engine::link::of_run(run.url.as_deref()?, run))
        }),
    })))
}
