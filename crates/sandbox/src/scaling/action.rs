//! Scheduled actions. They are kept and shown; nothing happens at their times.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{PAGING, Scope, required, validation};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, epoch, omit};
use crate::page::cut;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ScheduledAction {
    /// The request, whole.
    document: Document,
    arn: String,
    created_at: Timestamp,
}

impl ScheduledAction {
    fn text(&self, name: &str) -> &str {
        let value = self.document.get(name).and_then(Value::as_str);
        value.unwrap_or_default()
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
    let namespace = required(request, "ServiceNamespace")?;
    let resource = request.text("ResourceId")?;
    let dimension = request.text("ScalableDimension")?;
    let names = request.texts("ScheduledActionNames")?;
    let prefix = format!("{}/{namespace}|", caller.region);
    let all = account.scheduled_actions.under(&prefix).filter(|(_, row)| {
        resource.is_none_or(|id| row.text("ResourceId") == id)
            && dimension.is_none_or(|id| row.text("ScalableDimension") == id)
            && (names.is_empty() || names.contains(&row.text("ScheduledActionName")))
    });
    let page = cut(request, &PAGING, false, all.map(|(key, _)| key))?;
    let rows = page.items.iter();
    let rows = rows.filter_map(|key| account.scheduled_actions.get(key));
    let views: Vec<Value> = rows.map(ScheduledAction::view).collect();
    Ok(json!({"ScheduledActions": views, "NextToken": page.next_token}))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "ScheduledActionName")?;
    let scope = Scope::read(request)?;
    let key = format!("{}|{name}", scope.key(caller));
    if account.scheduled_actions.take(&key).is_none() {
        return Err(ApiError::client(
            "ObjectNotFoundException",
            format!(
                "No scheduled action found for service namespace: {}, resource ID: {}, scalable dimension: {}: {name}",
                scope.namespace, scope.resource, scope.dimension
            ),
        ));
    }
    Ok(json!({}))
}
