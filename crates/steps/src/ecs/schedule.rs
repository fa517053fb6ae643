//! Scheduled actions of Application Auto Scaling. No manifest has them: people and other tools make them, and AWS deletes
//! them with the scalable target (Application Auto Scaling API reference, `DeregisterScalableTarget`). So whoever takes a
//! target off writes them down, and puts them on again with the next one.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use slipway_model::status::Failure;

use super::scaling::{DIMENSION, NAMESPACE, resource};
use super::site::Site;
use crate::aws::error::{Doing, code, failure};
use crate::aws::wire::{Answer, whole};
use crate::context::StepContext;

/// Members of `PutScheduledAction`.
const FIELDS: [&str; 9] = [
    "ServiceNamespace",
    "ScheduledActionName",
    "ResourceId",
    "ScalableDimension",
    "Schedule",
    "Timezone",
    "StartTime",
    "EndTime",
    "ScalableTargetAction",
];

/// The scheduled actions of a service, as requests that would make them again.
pub(super) async fn describe(site: &Site, service: &str) -> Result<Vec<Value>, Failure> {
    let doing = format!("look at the scheduled actions of service `{service}` in {site}");
    let (mut found, mut next) = (Vec::new(), None);
    loop {
        let answer = Answer::default();
        let page = site
            .aws
            .scaling
            .describe_scheduled_actions()
            .service_namespace(NAMESPACE.into())
            .resource_id(resource(site, service))
            .scalable_dimension(DIMENSION.into())
            .set_next_token(next)
            .customize()
            .interceptor(answer.clone())
            .send()
            .await
            .map_err(|error| failure(Doing::with(&doing), error))?;
        let body = answer.take();
        let shown = body["ScheduledActions"].as_array().into_iter().flatten();
        found.extend(shown.map(request));
        next = page.next_token;
        if next.is_none() {
            return Ok(found);
        }
    }
}

fn request(shown: &Value) -> Value {
    let kept = FIELDS.iter().filter_map(|name| {
        let value = shown.get(*name).filter(|value| !value.is_null())?;
        Some(((*name).to_owned(), value.clone()))
    });
    Value::Object(kept.collect::<Map<_, _>>())
}

/// An action as it can be made now: AWS takes no time that is over. `None` for one whose time is over.
fn lasting(action: &Value, now: Timestamp) -> Option<Value> {
    let over = |name: &str| {
        let at = action[name].as_f64();
        at.is_some_and(|at| at <= now.as_second() as f64)
    };
    if over("EndTime") {
        return None;
    }
    let mut action = action.clone();
    if over("StartTime")
        && let Some(fields) = action.as_object_mut()
    {
        fields.shift_remove("StartTime");
    }
    Some(action)
}

/// Puts scheduled actions on. A repetition changes nothing.
pub(super) async fn attach(
    cx: &mut StepContext<'_>,
    site: &Site,
    actions: &[Value],
    unit: &'static str,
) -> Result<(), Failure> {
    for action in actions {
        let name = action["ScheduledActionName"].as_str().unwrap_or_default();
        let once = action["Schedule"]
            .as_str()
            .is_some_and(|text| text.starts_with("at("));
        let Some(action) = lasting(action, cx.clock().now()) else {
            cx.info(unit, format!("Scheduled action {name} is over"));
            continue;
        };
        let doing = format!("put the scheduled action `{name}` in {site}");
        let call = site.aws.scaling.put_scheduled_action().customize();
        let put = call.mutate_request(whole(&action)).send().await;
        match put {
            Ok(_) => cx.info(unit, format!("Attached scheduled action {name}")),
            // Of a single time AWS alone knows whether it is over, in its time zone.
            Err(error) if once && code(&error) == Some("ValidationException") => {
                cx.info(unit, format!("Scheduled action {name} is over"));
            }
            Err(error) => return Err(failure(Doing::with(&doing), error)),
        }
    }
    Ok(())
}

/// The same actions for another service.
pub(super) fn moved(actions: &[Value], to: &str) -> Vec<Value> {
    let moved = actions.iter().map(|action| {
        let mut action = action.clone();
        action["ResourceId"] = json!(to);
        action
    });
    moved.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_over_are_left_out() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let (past, future) = (now.as_second() - 1, now.as_second() + 60);
        for (action, expected) in [
            (
                json!({"Schedule": "rate(1 hour)"}),
                Some(json!({"Schedule": "rate(1 hour)"})),
            ),
            (
                json!({"StartTime": past, "Schedule": "s"}),
                Some(json!({"Schedule": "s"})),
            ),
            (
                json!({"StartTime": future}),
                Some(json!({"StartTime": future})),
            ),
            (json!({"EndTime": past}), None),
            (json!({"EndTime": future}), Some(json!({"EndTime": future}))),
        ] {
            assert_eq!(lasting(&action, now), expected, "{action}");
        }
    }
}
