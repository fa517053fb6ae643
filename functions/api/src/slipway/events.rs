//! Events for people: what a delivery would start (`POST /slipway/api/triggers/test`), a delivery as if it came
//! (`POST /slipway/api/triggers/fire`), and events that could not be handled (`GET /slipway/api/events/dead`,
//! `POST /slipway/api/events/{event}/redrive`).
//!
//! `test` and `fire` take `{"payload": text, "headers": {name: value}, "pipelineIdentifier", "triggerIdentifier"}`; without
//! a trigger `test` asks all that listen. Organization and project are in the query.

use axum::extract::Path;
use serde_json::{Value, json};
use slipway_engine::intake::handle::{Rehearsed, Starting, rehearse};
use slipway_engine::intake::listen::{place_of, read_trigger};
use slipway_engine::intake::{Happening, Offer, accept, offered};
use slipway_model::entity::Kind;
use slipway_model::id::Scope;
use slipway_steps::registry::STEP_TYPES;
use slipway_store::TriggerPlace;
use slipway_store::record::EntityRecord;
use slipway_trigger::{Delivery, Provider, Source, webhook};

use crate::Deps;
use crate::auth::Caller;
use crate::body::LargeBody;
use crate::call::Call;
use crate::entity;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::place::Place;
use crate::query::Query;

/// What was asked for.
struct Asked {
    scope: Scope,
    trigger: Option<EntityRecord>,
    delivery: Delivery,
}

async fn asked(deps: &Deps, caller: &Caller, query: &Query, body: &Value) -> ApiResult<Asked> {
    let scope = query.project_scope(caller)?;
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let trigger = match text("triggerIdentifier") {
        Some(id) => {
            let pipeline = text("pipelineIdentifier");
            let pipeline = pipeline
                .ok_or_else(|| ApiError::field("pipelineIdentifier", "must not be empty"))?;
            let place = Place::of_pipeline(scope.clone(), Kind::Trigger, pipeline, id)?;
            Some(entity::get(deps, &place).await?)
        }
        None => None,
    };
    let headers = body.get("headers").and_then(Value::as_object);
    let headers = headers.into_iter().flatten().map(|(name, value)| {
        let value = value.as_str().unwrap_or_default();
        (name.to_ascii_lowercase(), value.to_owned())
    });
    Ok(Asked {
        scope,
        trigger,
        delivery: Delivery {
            headers: headers.collect(),
            body: text("payload").unwrap_or_default().as_bytes().to_vec(),
        },
    })
}

/// What happened, as if the delivery had come, from somebody who needs no signature.
fn happenings(deps: &Deps, asked: &Asked) -> ApiResult<Vec<Happening>> {
    let named = asked
        .trigger
        .as_ref()
        .map(|record| (place_of(record), read_trigger(record)));
    let (to, trigger) = match named {
        Some((place, trigger)) => (Some(place), Some(trigger?)),
        None => (None, None),
    };
    if let (Some(place), Some(trigger)) = (&to, &trigger)
        && !matches!(trigger.source, Source::Webhook(_))
    {
        return of_other(deps, place, &trigger.source);
    }
    let own = trigger.as_ref().and_then(|trigger| match &trigger.source {
        Source::Webhook(spec) => Some(spec.provider),
        _ => None,
    });
    let custom = own == Some(Provider::Custom);
    let provider = match custom {
        true => own,
        false => webhook::provider_of(&asked.delivery).or(own),
    };
    let provider = provider.ok_or_else(|| {
        ApiError::invalid(
            "No provider sends such headers: give X-GitHub-Event, X-Gitlab-Event, X-Event-Key or the like, or name a trigger",
        )
    })?;
    let heard = webhook::read(provider, &asked.delivery).map_err(ApiError::invalid)?;
    if let webhook::Heard::Ignored(why) = &heard {
        return Err(ApiError::invalid(format!(
            "No trigger can listen to it: {why}"
        )));
    }
    Ok(heard
        .events()
        .into_iter()
        .map(|event| Happening::Webhook {
            event: Box::new(event),
            to: to.clone(),
            within: Some(asked.scope.clone()),
            signed: Vec::new(),
            by_hand: true,
        })
        .collect())
}

fn of_other(deps: &Deps, place: &TriggerPlace, source: &Source) -> ApiResult<Vec<Happening>> {
    match source {
        Source::Scheduled { .. } => Ok(vec![Happening::Scheduled {
            to: place.clone(),
            at_ms: deps.clock.now_ms(),
        }]),
        _ => Err(ApiError::unsupported(
            "Only webhooks and schedules can be tested and fired by hand",
        )),
    }
}

fn offer(asked: &Asked, happening: Happening) -> Offer {
    Offer {
        account: asked.scope.account.clone(),
        happening,
        delivery: None,
        body: asked.delivery.body.clone(),
    }
}

fn render(rehearsed: &Rehearsed) -> Value {
    let refusal = rehearsed.refusal.as_ref();
    let status = refusal.map_or_else(
        || "TARGET_EXECUTION_REQUESTED".to_owned(),
        |refusal| refusal.outcome.name(),
    );
    json!({
        "triggerIdentifier": rehearsed.place.trigger.as_str(),
        "pipelineIdentifier": rehearsed.place.pipeline.as_str(),
        "fires": refusal.is_none(),
        "status": status,
        "message": refusal.map(|refusal| refusal.message.as_str()),
        "inputYaml": rehearsed.inputs,
    })
}

/// What would start, or why not. Nothing is written, and no signature is looked at.
pub(super) async fn test(Call(deps, caller, query): Call, body: LargeBody) -> ApiResult {
    let body = body.into_inner().object()?;
    let asked = asked(&deps, &caller, &query, &body).await?;
    let on = Starting {
        runs: &deps.runs,
        steps: &STEP_TYPES,
        sources: &*deps.sources,
    };
    let mut all = Vec::new();
    for happening in happenings(&deps, &asked)? {
        let event = offered(&deps.runs, offer(&asked, happening))?;
        let found = Box::pin(rehearse(on, &event)).await?;
        all.extend(found.iter().map(render));
    }
    Ok(success(json!(all)))
}

/// Takes a delivery as if its sender had sent it to a trigger. Each call is a happening of its own.
pub(super) async fn fire(Call(deps, caller, query): Call, body: LargeBody) -> ApiResult {
    let body = body.into_inner().object()?;
    let asked = asked(&deps, &caller, &query, &body).await?;
    if asked.trigger.is_none() {
        return Err(ApiError::field("triggerIdentifier", "must not be empty"));
    }
    let mut ids = Vec::new();
    for mut happening in happenings(&deps, &asked)? {
        if let Happening::Webhook { event, .. } = &mut happening {
            event.key = None;
            event.delivery = None;
        }
        let (record, _) = accept(&deps.runs, offer(&asked, happening)).await?;
        wake(&deps, &record.id).await;
        ids.push(record.id);
    }
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        account = %caller.account,
        action = "fired",
        "{} fired a trigger", caller.principal
    );
    Ok(success(json!({"eventCorrelationIds": ids})))
}

/// Has an event handled now.
async fn wake(deps: &Deps, event: &str) {
    if let Some(intake) = &deps.intake {
        intake.wake(event).await;
    }
}

/// Events that could not be handled, oldest first.
pub(super) async fn dead(Call(deps, caller, _): Call) -> ApiResult {
    let found = deps.store.list_dead(&caller.account).await?;
    let shown = found.iter().map(|entry| {
        json!({
            "eventId": entry.event,
            "receivedAt": entry.received_ms,
            "attempts": entry.attempts,
            "message": entry.why,
        })
    });
    Ok(success(shown.collect()))
}

/// Lists an event that was given up among those to handle.
pub(super) async fn redrive(Call(deps, caller, _): Call, Path(id): Path<String>) -> ApiResult {
    let none = || ApiError::not_found(format!("There is no event {id} that was given up"));
    let event = deps.store.find_event(&id).await?;
    let event = event.filter(|event| event.account == caller.account);
    let event = event.ok_or_else(none)?;
    if !deps.store.redrive(&event).await? {
        return Err(none());
    }
    wake(&deps, &id).await;
    Ok(success(json!({"eventId": id})))
}
