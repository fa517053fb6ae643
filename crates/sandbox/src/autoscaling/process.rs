//! Processes of a group, which can be suspended, and the protection of its instances from scale-in.

use serde_json::{Value, json};

use super::group::{Group, find_mut};
use super::request::{named_of, required, validation};
use super::scheduler;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

/// The processes that there are (Auto Scaling API reference, `ScalingProcessQuery`).
pub(super) const ALL: [&str; 9] = [
    "Launch",
    "Terminate",
    "AddToLoadBalancer",
    "AlarmNotification",
    "AZRebalance",
    "HealthCheck",
    "InstanceRefresh",
    "ReplaceUnhealthy",
    "ScheduledActions",
];

/// Most instances of one `SetInstanceProtection`.
const MOST: usize = 50;

impl Group {
    /// Whether a process goes on.
    pub(super) fn runs(&self, process: &str) -> bool {
        !self.suspended.contains(process)
    }

    /// Whether instances that start are protected from scale-in.
    pub(super) fn protects(&self) -> bool {
        let told = self.settings.get("NewInstancesProtectedFromScaleIn");
        told.and_then(Value::as_str) == Some("true")
    }
}

/// The processes that a request names; all where it names none.
fn named<'a>(request: Fields<'a>) -> Result<Vec<&'a str>, ApiError> {
    named_of(request, "ScalingProcesses", &ALL, |unknown| {
        let all = ALL.join(", ");
        format!("'{unknown}' is not a valid process type. Valid process types are [{all}]")
    })
}

pub(super) fn suspend(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let names = named(request)?;
    let row = find_mut(account, caller, request)?;
    row.suspended.extend(names.into_iter().map(str::to_owned));
    Ok(json!({}))
}

pub(super) fn resume(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let names = named(request)?;
    let row = find_mut(account, caller, request)?;
    row.suspended.retain(|name| !names.contains(&name.as_str()));
    let key = row.key();
    scheduler::soon(account, &key);
    Ok(json!({}))
}

/// `SetInstanceProtection`.
pub(super) fn protect(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let ids = request.texts("InstanceIds")?;
    let protected = required(request, "ProtectedFromScaleIn")? == "true";
    if ids.is_empty() || ids.len() > MOST {
        return Err(validation(format!(
            "1 validation error detected: Value at 'instanceIds' failed to satisfy constraint: Member must have length \
             between 1 and {MOST}"
        )));
    }
    let row = find_mut(account, caller, request)?;
    for id in &ids {
        if !row.members.iter().any(|one| one.id == *id && one.counts()) {
            return Err(validation(format!(
                "The instance {id} is not part of Auto Scaling group {}.",
                row.name
            )));
        }
    }
    for member in row
        .members
        .iter_mut()
        .filter(|one| ids.contains(&one.id.as_str()))
    {
        member.protected = protected;
    }
    let key = row.key();
    scheduler::soon(account, &key);
    Ok(json!({}))
}
