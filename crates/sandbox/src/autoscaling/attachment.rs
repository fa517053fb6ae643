//! Target groups of a group, which are traffic sources too.

use serde_json::{Value, json};

use super::group::{Group, find, find_mut};
use super::member::Lifecycle;
use super::request::{page, validation};
use super::scheduler;
use crate::account::Account;
use crate::caller::Caller;
use crate::elb;
use crate::error::ApiError;
use crate::fields::Fields;

/// Target groups that a new group is to have.
pub(super) fn named(account: &Account, request: Fields<'_>) -> Result<Vec<String>, ApiError> {
    let mut arns = request.texts("TargetGroupARNs")?;
    arns.extend(sources(request)?);
    check(account, &arns)?;
    let mut arns: Vec<String> = arns.into_iter().map(str::to_owned).collect();
    arns.sort();
    arns.dedup();
    Ok(arns)
}

fn sources(request: Fields<'_>) -> Result<Vec<&str>, ApiError> {
    let mut arns = Vec::new();
    for source in request.objects("TrafficSources")? {
        arns.extend(Fields(source).text("Identifier")?);
    }
    Ok(arns)
}

fn check(account: &Account, arns: &[&str]) -> Result<(), ApiError> {
    for arn in arns {
        let found = account.target_group(arn);
        if found.is_none_or(|group| group.target_type != "instance") {
            return Err(validation(
                "Provided Target Groups may not be valid. Please ensure they exist and try again.",
            ));
        }
    }
    Ok(())
}

pub(super) fn attach(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    attach_all(account, caller, request, request.texts("TargetGroupARNs")?)
}

pub(super) fn attach_sources(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    attach_all(account, caller, request, sources(request)?)
}

fn attach_all(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
    arns: Vec<&str>,
) -> Result<Value, ApiError> {
    check(account, &arns)?;
    let row = find_mut(account, caller, request)?;
    let new = arns.into_iter().map(str::to_owned);
    let new: Vec<String> = new.filter(|arn| !row.target_groups.contains(arn)).collect();
    row.target_groups.extend(new.clone());
    let serving = row.members.iter();
    let serving = serving.filter(|member| member.lifecycle == Lifecycle::InService);
    let serving: Vec<String> = serving.map(|member| member.id.clone()).collect();
    let key = row.key();
    for (arn, id) in new
        .iter()
        .flat_map(|arn| serving.iter().map(move |id| (arn, id)))
    {
        elb::register_instance(account, arn, id);
    }
    scheduler::soon(account, &key);
    Ok(json!({}))
}

pub(super) fn detach(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    detach_all(account, caller, request, request.texts("TargetGroupARNs")?)
}

pub(super) fn detach_sources(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    detach_all(account, caller, request, sources(request)?)
}

fn detach_all(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
    arns: Vec<&str>,
) -> Result<Value, ApiError> {
    let row = find_mut(account, caller, request)?;
    if arns
        .iter()
        .any(|arn| !row.target_groups.iter().any(|own| own == arn))
    {
        return Err(validation(
            "Trying to remove Target Groups that are not part of the group",
        ));
    }
    row.target_groups
        .retain(|own| !arns.contains(&own.as_str()));
    let members: Vec<String> = row.members.iter().map(|member| member.id.clone()).collect();
    for (arn, id) in arns
        .iter()
        .flat_map(|arn| members.iter().map(move |id| (arn, id)))
    {
        elb::deregister_instance(account, arn, id);
    }
    Ok(json!({}))
}

/// `Added` until an instance is healthy there, then `InService`.
fn state(account: &Account, group: &Group, arn: &str) -> &'static str {
    let healthy = |id: &str| elb::instance_is_healthy(account, arn, id);
    match group.members.iter().any(|member| healthy(&member.id)) {
        true => "InService",
        false => "Added",
    }
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let group = find(account, caller, request)?;
    let mut own: Vec<&str> = group.target_groups.iter().map(String::as_str).collect();
    own.sort_unstable();
    let page = page(request, (100, 100), own.into_iter())?;
    let shown = page
        .items
        .iter()
        .map(|arn| json!({"LoadBalancerTargetGroupARN": arn, "State": state(account, group, arn)}));
    let shown: Vec<Value> = shown.collect();
    Ok(json!({"LoadBalancerTargetGroups": shown, "NextToken": page.next_token}))
}

pub(super) fn describe_sources(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let group = find(account, caller, request)?;
    let mut own: Vec<&str> = group.target_groups.iter().map(String::as_str).collect();
    own.sort_unstable();
    let page = page(request, (50, 50), own.into_iter())?;
    let shown = page.items.iter().map(
        |arn| json!({"Identifier": arn, "Type": "elbv2", "State": state(account, group, arn)}),
    );
    let shown: Vec<Value> = shown.collect();
    Ok(json!({"TrafficSources": shown, "NextToken": page.next_token}))
}
