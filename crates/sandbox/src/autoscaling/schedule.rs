//! Scheduled actions of groups. They are kept and shown; nothing scales by itself.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::group::find;
use super::request::{bounded, page, required, validation};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, omit};

/// Most scheduled actions of a group (Auto Scaling quotas).
const MOST: usize = 125;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Action {
    group: String,
    name: String,
    arn: String,
    settings: Document,
}

impl Action {
    fn view(&self) -> Value {
        let mut view = self.settings.clone();
        for (name, value) in [
            ("AutoScalingGroupName", json!(self.group)),
            ("ScheduledActionName", json!(self.name)),
            ("ScheduledActionARN", json!(self.arn)),
        ] {
            view.insert(name.to_owned(), value);
        }
        if let Some(start) = view.get("StartTime").cloned() {
            view.entry("Time").or_insert(start);
        }
        Value::Object(view)
    }
}

pub(super) fn put(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "ScheduledActionName")?.to_owned();
    let group = find(account, caller, request)?;
    let (prefix, group) = (format!("{}|", group.key()), group.name.clone());
    let sizes = ["MinSize", "MaxSize", "DesiredCapacity"];
    let mut sized = false;
    for size in sizes {
        sized |= bounded(request, size, -1, 10_000)?.is_some();
    }
    if !sized {
        return Err(validation(
            "At least one of MinSize, MaxSize or DesiredCapacity must be specified.",
        ));
    }
    let times = ["StartTime", "Time", "EndTime"];
    for time in times {
        let text = request.text(time)?;
        let parsed = text.map(str::parse::<jiff::Timestamp>);
        match parsed {
            Some(Err(_)) => {
                return Err(validation(format!(
                    "{time} must be a timestamp: {}",
                    text.unwrap_or_default()
                )));
            }
            Some(Ok(at)) if at <= account.now => {
                return Err(validation(format!(
                    "Given {time} is not after the current time"
                )));
            }
            _ => {}
        }
    }
    if request.text("Recurrence")?.is_none()
        && request
            .text("StartTime")?
            .or(request.text("Time")?)
            .is_none()
    {
        return Err(validation(
            "Either StartTime or Recurrence must be specified.",
        ));
    }
    let key = format!("{prefix}{name}");
    let known = account
        .autoscaling
        .actions
        .get(&key)
        .map(|known| known.arn.clone());
    if known.is_none() && account.autoscaling.actions.under(&prefix).count() >= MOST {
        return Err(ApiError::client(
            "LimitExceeded",
            format!("You have already reached the limit of {MOST} scheduled actions of this group"),
        ));
    }
    let arn = known.unwrap_or_else(|| {
        let id = account.draw_uuid();
        format!(
            "arn:aws:autoscaling:{}:{}:scheduledUpdateGroupAction:{id}:autoScalingGroupName/{group}:\
             scheduledActionName/{name}",
            caller.region, account.id
        )
    });
    let own = [
        "Action",
        "Version",
        "AutoScalingGroupName",
        "ScheduledActionName",
    ];
    let action = Action {
        group,
        name,
        arn,
        settings: omit(request.0, &own),
    };
    account.autoscaling.actions.put(key, action);
    Ok(json!({}))
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let names = request.texts("ScheduledActionNames")?;
    let prefix = match request.text("AutoScalingGroupName")? {
        Some(_) => format!("{}|", find(account, caller, request)?.key()),
        None => format!("{}/", caller.region),
    };
    let all = account.autoscaling.actions.under(&prefix);
    let all = all.filter(|(_, row)| names.is_empty() || names.contains(&row.name.as_str()));
    let page = page(request, (50, 100), all.map(|(key, _)| key))?;
    let rows = page.items.iter();
    let rows = rows.filter_map(|key| account.autoscaling.actions.get(key));
    let views: Vec<Value> = rows.map(Action::view).collect();
    Ok(json!({"ScheduledUpdateGroupActions": views, "NextToken": page.next_token}))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "ScheduledActionName")?;
    let key = format!("{}|{name}", find(account, caller, request)?.key());
    match account.autoscaling.actions.take(&key) {
        Some(_) => Ok(json!({})),
        None => Err(validation(format!(
            "Scheduled action name not found - {name}"
        ))),
    }
}
