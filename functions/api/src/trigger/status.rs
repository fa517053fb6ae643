//! How a trigger is doing: whether it can be read, its registry can be asked, and its provider has its webhook.

use serde_json::{Value, json};
use slipway_engine::intake::{hook, owner, poll};
use slipway_store::TriggerPlace;
use slipway_store::record::EntityRecord;
use slipway_trigger::Trigger;

use crate::Deps;
use crate::error::ApiResult;

/// `triggerStatus` of a trigger (`None` where its YAML cannot be read), and its `registrationStatus`.
pub(super) async fn of(
    deps: &Deps,
    record: &EntityRecord,
    trigger: Option<&Trigger>,
    place: &TriggerPlace,
) -> ApiResult<(Value, Option<&'static str>)> {
    let (feed, webhook) = match trigger {
        Some(trigger) => (
            poll::standing(&deps.runs, trigger, place).await?,
            hook::standing(&deps.runs, place).await?,
        ),
        None => (None, None),
    };
    // Why it starts nothing whatever happens.
    let stopped = owner::why_stopped(&deps.runs, record).await?;
    let validity = match trigger {
        Some(_) if stopped.is_none() => "SUCCESS",
        _ => "FAILED",
    };
    // Why its registry could not be asked, where it could not.
    let away = feed.as_ref().and_then(|feed| feed.why.as_deref());
    let unregistered = webhook.as_ref().and_then(|hook| hook.message.as_deref());
    let registered = webhook.as_ref().map(|hook| hook.result);
    let failed = away.is_some() || registered.is_some_and(|result| result.is_failure());
    let registered = registered.map(|result| result.name());
    let status = json!({
        "pollingSubscriptionStatus": feed.as_ref().map(|feed| json!({
            "statusResult": if away.is_some() { "FAILED" } else { "SUCCESS" },
            "detailedMessage": away,
            "lastPollingUpdate": feed.asked_ms,
        })),
        "validationStatus": {"statusResult": validity, "detailedMessage": stopped},
        "webhookAutoRegistrationStatus": registered.map(|result| json!({
            "registrationResult": result,
            "detailedMessage": unregistered,
        })),
        "status": if failed { "FAILED" } else { validity },
        "detailMessages": stopped.as_deref().into_iter().chain(away).chain(unregistered).collect::<Vec<_>>(),
    });
    Ok((status, registered))
}
