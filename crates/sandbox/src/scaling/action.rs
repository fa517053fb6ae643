//! Scheduled actions. They are kept and shown; nothing happens at their times.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{OfTarget, Scope, listed_of_targets, remove, required, validation};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, epoch, omit};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ScheduledAction {
    /// The request, whole.
    document: Document,
    arn: String,
    created_at: Timestamp,
}

impl OfTarget for ScheduledAction {
    fn document(&self) -> &Document {
        &self.document
    }

    fn view(&self) -> Value {
        let mut view = self.document.clone();
        view.insert("ScheduledActionARN".into(), json!(self.arn));
        view.insert("CreationTime".into(), epoch(self.created_at));
        Value::Object(view)
    }
}

pub(super) fn put(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "ScheduledActionName")?;
    let scope = Scope::read(request)?;
    let target = scope.key(caller);
    if account.scalable_targets.get(&target).is_none() {
        return Err(scope.target_not_found());
    }
    let key = format!("{target}|{name}");
    let known = account.scheduled_actions.get(&key).cloned();
    let schedule = request.text("Schedule")?;
    let forms = ["at(", "rate(", "cron("];
    if known.is_none() && schedule.is_none()
        || schedule.is_some_and(|text| !forms.iter().any(|form| text.starts_with(form)))
    {
        return Err(validation("Schedule expression is not valid."));
    }
    // A time that is over is refused.
    for (member, what) in [("StartTime", "Start time"), ("EndTime", "End time")] {
        let at = request.0.get(member).and_then(Value::as_f64);
        if at.is_some_and(|at| at <= account.now.as_second() as f64) {
            return Err(validation(format!("{what} must be in the future.")));
        }
    }
    let id = account.draw_uuid();
    let mut document = known
        .as_ref()
        .map(|known| known.document.clone())
        .unwrap_or_default();
    document.extend(omit(request.0, &[]));
    let action = ScheduledAction {
        document,
        arn: match &known {
            Some(known) => known.arn.clone(),
            None => format!(
                "arn:aws:autoscaling:{}:{}:scheduledAction:{id}:resource/{}/{}:scheduledActionName/{name}",
                caller.region, account.id, scope.namespace, scope.resource
            ),
        },
        created_at: known.map_or(account.now, |known| known.created_at),
    };
    account.scheduled_actions.put(key, action);
    Ok(json!({}))
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let names = ("ScheduledActionName", "ScheduledActions");
    listed_of_targets(caller, request, &account.scheduled_actions, names)
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let names = ("ScheduledActionName", "scheduled action");
    remove(caller, request, &mut account.scheduled_actions, names)
}
