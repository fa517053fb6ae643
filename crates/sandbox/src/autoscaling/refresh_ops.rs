//! `StartInstanceRefresh`, `DescribeInstanceRefreshes`, `CancelInstanceRefresh`, `RollbackInstanceRefresh`.

use serde_json::{Value, json};

use super::group::{self, Group, find, find_mut};
use super::refresh::{Refresh, Status};
use super::request::{bounded, flag, page, validation};
use super::scheduler;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Refreshes of a group that stay visible. AWS: those of six weeks.
const MOST: usize = 100;

pub(super) fn start(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let found = find(account, caller, request)?.clone();
    if found.refreshes.last().is_some_and(Refresh::is_active) {
        return Err(ApiError::client(
            "InstanceRefreshInProgress",
            "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh.",
        ));
    }
    let none = Document::new();
    let given = request.object("Preferences")?.unwrap_or(&none);
    let preferences = Fields(given);
    let told_min = bounded(preferences, "MinHealthyPercentage", 0, 100)?;
    let told_max = bounded(preferences, "MaxHealthyPercentage", 100, 200)?;
    let (min, max) = (told_min.unwrap_or(90), told_max.unwrap_or(100));
    if told_max.is_some() && told_min.is_none() {
        return Err(validation(
            "You must specify MinHealthyPercentage when you specify MaxHealthyPercentage.",
        ));
    }
    if max - min > 100 {
        return Err(validation(
            "The difference between MinHealthyPercentage and MaxHealthyPercentage cannot be greater than 100.",
        ));
    }
    for (name, text) in [("AutoRollback", "true"), ("CheckpointPercentages", "")] {
        if given
            .get(name)
            .is_some_and(|value| text.is_empty() || value == text)
        {
            return Err(validation(format!(
                "The sandbox account does not implement {name} of instance refreshes."
            )));
        }
    }
    let wanted = match request.object("DesiredConfiguration")? {
        None => None,
        Some(wanted) => Fields(wanted).object("LaunchTemplate")?,
    };
    let launch = match wanted {
        None => found.launch.clone(),
        Some(wanted) => group::launch(account, caller, Fields(wanted))?,
    };
    let ready = group::ready(account, &caller.region, &launch)?;
    let skips = flag(preferences, "SkipMatching")?;
    let old = found.members.iter().filter(|member| {
        let same = (&member.template.0, member.template.2) == (&launch.id, ready.number);
        member.counts() && !(skips && same)
    });
    let old = old.map(|member| member.id.clone()).collect();
    let warmup = bounded(preferences, "InstanceWarmup", -1, 86_400)?;
    let warmup = warmup
        .or_else(|| found.number("DefaultInstanceWarmup"))
        .or_else(|| found.number("HealthCheckGracePeriod"))
        .unwrap_or(0);
    let refresh = Refresh {
        id: account.draw_uuid(),
        status: Status::Pending,
        reason: None,
        started: account.now,
        ended: None,
        percentage: 0,
        preferences: shown(given, min, max),
        min,
        max,
        warmup,
        launch,
        keeps: wanted.is_some(),
        old,
        progressed: account.now,
    };
    let answer = json!({"InstanceRefreshId": refresh.id});
    let row = find_mut(account, caller, request)?;
    row.refreshes.push(refresh);
    if row.refreshes.len() > MOST {
        row.refreshes.remove(0);
    }
    let key = row.key();
    scheduler::soon(account, &key);
    Ok(answer)
}

fn shown(given: &Document, min: i64, max: i64) -> Document {
    let mut shown = given.clone();
    shown.insert("MinHealthyPercentage".to_owned(), json!(min));
    shown.insert("MaxHealthyPercentage".to_owned(), json!(max));
    shown
}

/// `DescribeInstanceRefreshes`, newest first.
pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let found: &Group = find(account, caller, request)?;
    let ids = request.texts("InstanceRefreshIds")?;
    let all = found.refreshes.iter().rev();
    let mut all: Vec<(String, &Refresh)> = all
        .filter(|one| ids.is_empty() || ids.contains(&one.id.as_str()))
        .enumerate()
        .map(|(at, one)| (format!("{at:06}"), one))
        .collect();
    let page = page(request, (50, 100), all.iter().map(|(at, _)| at.as_str()))?;
    all.retain(|(at, _)| page.items.contains(at));
    let views: Vec<Value> = all.iter().map(|(_, one)| one.view(found)).collect();
    Ok(json!({"InstanceRefreshes": views, "NextToken": page.next_token}))
}

pub(super) fn cancel(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let row = find_mut(account, caller, request)?;
    let name = row.name.clone();
    let active = row.refresh().filter(|one| one.status != Status::Cancelling);
    let Some(refresh) = active else {
        return Err(ApiError::client(
            "ActiveInstanceRefreshNotFound",
            format!(
                "No in progress or pending Instance Refresh found for Auto Scaling group {name}"
            ),
        ));
    };
    refresh.status = Status::Cancelling;
    let answer = json!({"InstanceRefreshId": refresh.id});
    let key = row.key();
    scheduler::soon(account, &key);
    Ok(answer)
}

/// `RollbackInstanceRefresh`: only of a refresh with a desired configuration, to a launch template version that is a
/// number (Auto Scaling user guide, "Roll back an instance refresh").
pub(super) fn roll_back(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let now = account.now;
    let row = find_mut(account, caller, request)?;
    let (name, launch, members) = (row.name.clone(), row.launch.clone(), row.members.clone());
    let active = row
        .refresh()
        .filter(|one| [Status::Pending, Status::InProgress].contains(&one.status));
    let Some(refresh) = active else {
        return Err(ApiError::client(
            "ActiveInstanceRefreshNotFound",
            format!(
                "No in progress or pending Instance Refresh found for Auto Scaling group {name}"
            ),
        ));
    };
    let moving = |version: &Option<String>| {
        version
            .as_deref()
            .is_none_or(|version| version.starts_with('$'))
    };
    if !refresh.keeps || moving(&launch.version) {
        return Err(ApiError::client(
            "IrreversibleInstanceRefresh",
            format!(
                "The Instance Refresh of Auto Scaling group {name} cannot be rolled back: it has no desired \
                 configuration, or the launch template version of the group is $Latest or $Default."
            ),
        ));
    }
    refresh.turn_back((&members, &launch), now);
    let answer = json!({"InstanceRefreshId": refresh.id});
    let key = row.key();
    scheduler::soon(account, &key);
    Ok(answer)
}
