//! Handles events that were accepted: which triggers fire for them, and the runs that they start.
//!
//! Invoked with `{"event": id}` by whoever accepted one (with `"again": true` where it came again and was refused), and with
//! `{}` by a schedule every minute, which finds what a crash left, and the schedules whose time came. With `{"poll": true}` it
//! asks registries for new versions. Events of AWS come from EventBridge, alone or as messages of a queue. All of it may be
//! repeated. With `{"hook": place}` it registers the webhook of a trigger at its provider.

mod wiring;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use slipway_engine::error::HandlerError;
use slipway_engine::error_name::ErrorName;
use slipway_engine::gather::SourceReader;
use slipway_engine::intake::again::decide_anew;
use slipway_engine::intake::aws::Hearing;
use slipway_engine::intake::handle::{Starting, handle_by_id};
use slipway_engine::intake::hook;
use slipway_engine::intake::poll::poll;
use slipway_engine::intake::sweep::sweep;
use slipway_engine::runs::Runs;
use slipway_steps::registry::STEP_TYPES;
use slipway_store::TriggerPlace;

pub use wiring::{ConfigError, wire};

/// What lives as long as the function.
#[derive(Clone)]
pub struct Deps {
    /// Facts, time, and the machine of runs.
    pub runs: Runs,
    /// Reads what pipelines refer to outside.
    pub sources: Arc<dyn SourceReader>,
}

/// What the function is asked to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Asked {
    /// Id of an accepted event; without one, everything that is due.
    #[serde(default)]
    pub event: Option<String>,
    /// Whether only triggers that have refused the event decide, once more.
    #[serde(default)]
    pub again: bool,
    /// The trigger whose webhook is registered at its provider, instead.
    #[serde(default)]
    pub hook: Option<TriggerPlace>,
    /// Whether registries are asked for new versions instead.
    #[serde(default)]
    pub poll: bool,
}

/// Answers one invocation.
///
/// # Errors
/// When the store or Step Functions cannot be reached: the event stays listed for the next sweep.
pub async fn answer(deps: &Deps, event: Value) -> Result<Value, HandlerError> {
    if event.get("detail-type").is_some() || event.get("Records").is_some() {
        return hear(deps, &event).await;
    }
    let asked: Asked = serde_json::from_value(event).map_err(|error| {
        let message = format!("the event of the trigger function cannot be read: {error}");
        HandlerError::new(ErrorName::InvalidRequest, message)
    })?;
    let on = starting(deps);
    if let Some(place) = &asked.hook {
        let tried = Box::pin(hook::register_of(on, place)).await?;
        return Ok(json!({"hooks": usize::from(tried)}));
    }
    match asked.event {
        Some(id) => {
            // Boxed: planning nests deeper than the compiler likes to lay out.
            let outcomes = match asked.again {
                true => Box::pin(decide_anew(on, &id)).await?,
                false => Box::pin(handle_by_id(on, &id)).await?,
            };
            let started = outcomes.iter().filter(|outcome| outcome.run.is_some());
            Ok(json!({"triggers": outcomes.len(), "started": started.count()}))
        }
        None if asked.poll => {
            let polled = Box::pin(poll(on)).await?;
            Ok(json!({"asked": polled.asked, "failed": polled.failed, "new": polled.new}))
        }
        None => {
            let swept = Box::pin(sweep(on)).await?;
            Ok(json!({
                "handled": swept.handled,
                "failed": swept.failed,
                "dead": swept.dead,
                "due": swept.due,
                "hooks": swept.hooks,
            }))
        }
    }
}

fn starting(deps: &Deps) -> Starting<'_> {
    Starting {
        runs: &deps.runs,
        steps: &STEP_TYPES,
        sources: &*deps.sources,
    }
}

/// An event of EventBridge, or several as messages of SQS. Of those the ones that failed are named, which the queue gives
/// again and puts aside in the end.
async fn hear(deps: &Deps, event: &Value) -> Result<Value, HandlerError> {
    let mut hearing = Hearing::new(starting(deps));
    let Some(messages) = event["Records"].as_array() else {
        let heard = Box::pin(hearing.hear(event)).await?;
        return Ok(json!({"heard": heard}));
    };
    let mut failed = Vec::new();
    for message in messages {
        let id = message["messageId"].as_str().unwrap_or_default();
        let body = message["body"].as_str().unwrap_or_default();
        let why = match serde_json::from_str(body) {
            Ok(event) => match Box::pin(hearing.hear(&event)).await {
                Ok(_) => continue,
                Err(why) => why.full_text(),
            },
            Err(why) => format!("it is not JSON: {why}"),
        };
        tracing::warn!(message.id = id, error = why, "an event of AWS comes again");
        failed.push(json!({"itemIdentifier": id}));
    }
    Ok(json!({"batchItemFailures": failed}))
}
