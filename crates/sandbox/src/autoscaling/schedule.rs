//! Scheduled actions of groups. They are kept and shown; nothing scales by itself.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cron;
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

/// What an action is to do: sizes, at least one of them, in their order.
fn check_sizes(request: Fields<'_>) -> Result<(), ApiError> {
    let size = |name: &str| bounded(request, name, -1, 10_000);
    let (min, max, desired) = (size("MinSize")?, size("MaxSize")?, size("DesiredCapacity")?);
    if min.or(max).or(desired).is_none() {
        return Err(validation(
            "At least one of max size, min size, or desired capacity must be specified",
        ));
    }
    // -1 leaves a size as it is.
    let told = |size: Option<i64>| size.filter(|size| *size >= 0);
    for (low, high, what) in [
        (
            desired,
            max,
            "Desired capacity must be less than or equal to max size",
        ),
        (
            min,
            desired,
            "Desired capacity must be greater than or equal to min size",
        ),
        (
            min,
            max,
            "Max size must be greater than or equal to min size",
        ),
    ] {
        if let (Some(low), Some(high)) = (told(low), told(high))
            && low > high
        {
            return Err(validation(what));
        }
    }
    Ok(())
}

/// When: times to come in their order, a recurrence that there is, in a time zone that there is.
fn check_times(account: &Account, request: Fields<'_>) -> Result<(), ApiError> {
    let time = |name: &str| match request.text(name)? {
        None => Ok(None),
        Some(text) => text
            .parse::<jiff::Timestamp>()
            .map(Some)
            .map_err(|_| validation(format!("{name} must be a timestamp: {text}"))),
    };
    let start = time("StartTime")?.or(time("Time")?);
    let end = time("EndTime")?;
    for (at, what) in [(start, "start"), (end, "end")] {
        if at.is_some_and(|at| at <= account.now) {
            return Err(validation(format!("Given {what} time is in the past")));
        }
    }
    if let (Some(start), Some(end)) = (start, end)
        && end < start
    {
        return Err(validation("Given end time must be after start time"));
    }
    match request.text("Recurrence")? {
        Some(recurrence) => cron::check(recurrence)?,
        None if start.is_none() => {
            return Err(validation(
                "Scheduled start time must be specified for non-recurrent future group action",
            ));
        }
        None => {}
    }
    match request.text("TimeZone")? {
        Some(zone) if jiff::tz::TimeZone::get(zone).is_err() => Err(validation(
            "Time zone specified does not conform to standardized time zones found in IANA Time Zone Database",
        )),
        _ => Ok(()),
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
    check_sizes(request)?;
    check_times(account, request)?;
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
