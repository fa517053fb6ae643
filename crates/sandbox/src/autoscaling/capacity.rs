//! `SetDesiredCapacity`, and what people do to single instances.

use serde_json::{Value, json};

use super::group::{find_mut, key};
use super::request::{bounded, flag, required, validation};
use super::{member, scheduler};
use crate::account::Account;
use crate::caller::Caller;
use crate::ec2;
use crate::error::ApiError;
use crate::fields::Fields;

pub(super) fn set(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    required(request, "DesiredCapacity")?;
    let desired = bounded(request, "DesiredCapacity", 0, 10_000)?.unwrap_or(0);
    let row = find_mut(account, caller, request)?;
    if desired > row.max {
        return Err(validation(format!(
            "New SetDesiredCapacity value {desired} is above max value {} for the AutoScalingGroup.",
            row.max
        )));
    }
    if desired < row.min {
        return Err(validation(format!(
            "New SetDesiredCapacity value {desired} is below min value {} for the AutoScalingGroup.",
            row.min
        )));
    }
    row.desired = desired;
    let key = row.key();
    scheduler::soon(account, &key);
    Ok(json!({}))
}

/// Key of the group of the instance that a request names.
fn of_instance(
    account: &Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<(String, String), ApiError> {
    let id = required(request, "InstanceId")?;
    let unknown = || {
        validation(format!(
            "Instance Id not found - No managed instance found for instance ID {id}"
        ))
    };
    let (region, name) = ec2::group_of(account, id).ok_or_else(unknown)?;
    let key = key(&region, &name);
    let group = account.autoscaling.groups.get(&key).ok_or_else(unknown)?;
    let managed = group.members.iter().any(|one| one.id == id && one.counts());
    if region != caller.region || !managed {
        return Err(unknown());
    }
    Ok((key, id.to_owned()))
}

pub(super) fn terminate(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let (key, id) = of_instance(account, caller, request)?;
    let shrinks = flag(request, "ShouldDecrementDesiredCapacity")?;
    if let Some(mut group) = account.autoscaling.groups.take(&key) {
        if shrinks && group.desired <= group.min {
            let min = group.min;
            account.autoscaling.groups.put(key, group);
            return Err(validation(format!(
                "Currently, desiredSize equals minSize ({min}). Terminating instance without replacement will \
                 violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or \
                 lower group's min size."
            )));
        }
        group.desired -= i64::from(shrinks);
        let cause = "instance was taken out of service in response to a user request.";
        member::end(account, &mut group, &id, cause);
        account.autoscaling.groups.put(key.clone(), group);
    }
    scheduler::soon(account, &key);
    Ok(json!({}))
}

pub(super) fn set_health(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let (key, id) = of_instance(account, caller, request)?;
    let healthy = match required(request, "HealthStatus")? {
        "Healthy" => true,
        "Unhealthy" => false,
        other => return Err(validation(format!("Invalid HealthStatus: {other}"))),
    };
    if let Some(row) = account.autoscaling.groups.get_mut(&key) {
        for member in row.members.iter_mut().filter(|member| member.id == id) {
            member.healthy = healthy;
        }
    }
    scheduler::soon(account, &key);
    Ok(json!({}))
}

/// The instance was ended by EC2 and not by its group, whose health checks find it; the group replaces it then.
pub(crate) fn ended_behind_it(account: &mut Account, id: &str) {
    let Some((region, name)) = ec2::group_of(account, id) else {
        return;
    };
    let key = key(&region, &name);
    if let Some(group) = account.autoscaling.groups.get_mut(&key)
        && group.runs("HealthCheck")
    {
        let ended = group.members.iter_mut().filter(|member| member.id == id);
        ended.for_each(|member| member.healthy = false);
    }
    scheduler::soon(account, &key);
}
