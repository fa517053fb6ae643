//! `CreateAutoScalingGroup` and `UpdateAutoScalingGroup`.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::group::{self, Group, Launch, find, find_mut};
use super::request::{bounded, required, validation};
use super::{attachment, hook, scheduler, tag};
use crate::account::Account;
use crate::arn::Arn;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, omit};

/// Most groups in a region (Auto Scaling quotas).
const MOST: usize = 500;
/// Longest name of a group (Auto Scaling API reference).
const LONGEST: usize = 255;

/// Members that have fields of their own.
const OWN: &[&str] = &[
    "Action",
    "Version",
    "AutoScalingGroupName",
    "MinSize",
    "MaxSize",
    "DesiredCapacity",
    "LaunchTemplate",
    "Tags",
    "TargetGroupARNs",
    "TrafficSources",
    "LifecycleHookSpecificationList",
];

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "AutoScalingGroupName")?;
    let long = !(1..=LONGEST).contains(&name.chars().count());
    if long || name.contains(':') || name.chars().any(char::is_control) {
        return Err(validation(format!(
            "1 validation error detected: Value '{name}' at 'autoScalingGroupName' failed to satisfy constraint: \
             Member must have length between 1 and {LONGEST} and satisfy its pattern"
        )));
    }
    let key = group::key(&caller.region, name);
    if account.autoscaling.groups.get(&key).is_some() {
        return Err(ApiError::client(
            "AlreadyExists",
            format!(
                "AutoScalingGroup by this name already exists - A group with the name {name} already exists"
            ),
        ));
    }
    let own = account
        .autoscaling
        .groups
        .under(&format!("{}/", caller.region));
    if own.count() >= MOST {
        return Err(ApiError::client(
            "LimitExceeded",
            format!("You have already reached the limit of {MOST} Auto Scaling groups"),
        ));
    }
    required(request, "MinSize")?;
    required(request, "MaxSize")?;
    let Some(launch) = named_launch(account, caller, request)? else {
        return Err(validation(
            "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or \
             MixedInstancesPolicy parameter.",
        ));
    };
    group::ready(account, &caller.region, &launch)?;
    let zones = !request.texts("AvailabilityZones")?.is_empty();
    if !zones && request.text("VPCZoneIdentifier")?.is_none() {
        return Err(validation(
            "At least one Availability Zone or VPC Subnet is required.",
        ));
    }
    check_health_type(request)?;
    check_places(caller, request)?;
    check_termination(request)?;
    let min = bounded(request, "MinSize", 0, 10_000)?.unwrap_or(0);
    let max = bounded(request, "MaxSize", 0, 10_000)?.unwrap_or(0);
    let desired = bounded(request, "DesiredCapacity", 0, 10_000)?.unwrap_or(min);
    check_bounds(min, max, desired)?;
    let hooks = hook::of_creation(request, name)?;
    let id = account.draw_uuid();
    let group = Group {
        region: caller.region.clone(),
        name: name.to_owned(),
        arn: format!(
            "arn:aws:autoscaling:{}:{}:autoScalingGroup:{id}:autoScalingGroupName/{name}",
            caller.region, account.id
        ),
        settings: omit(request.0, OWN),
        launch,
        min,
        max,
        desired,
        created: account.now,
        tags: tag::of_group(request, name)?,
        target_groups: attachment::named(account, request)?,
        metrics: BTreeSet::new(),
        suspended: BTreeSet::new(),
        members: Vec::new(),
        refreshes: Vec::new(),
        activities: VecDeque::new(),
        deleting: false,
        due: None,
    };
    account.autoscaling.groups.put(key.clone(), group);
    hook::keep(account, &key, hooks);
    scheduler::soon(account, &key);
    Ok(json!({}))
}

/// The launch template that a request names, alone or in a mixed instances policy.
fn named_launch(
    account: &Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Option<Launch>, ApiError> {
    for old in ["LaunchConfigurationName", "InstanceId"] {
        if request.text(old)?.is_some() {
            return Err(validation(format!(
                "The sandbox account does not implement {old}: use a launch template."
            )));
        }
    }
    let mixed = request.object("MixedInstancesPolicy")?.map(Fields);
    let mixed = match mixed {
        None => None,
        Some(mixed) => mixed.object("LaunchTemplate")?.map(Fields),
    };
    let mixed = match mixed {
        None => None,
        Some(mixed) => mixed.object("LaunchTemplateSpecification")?,
    };
    let specification = match (request.object("LaunchTemplate")?, mixed) {
        (Some(_), Some(_)) => {
            return Err(validation(
                "Valid requests must contain either LaunchTemplate or MixedInstancesPolicy parameter, not both.",
            ));
        }
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return Ok(None),
    };
    group::launch(account, caller, Fields(specification)).map(Some)
}

/// Zones are those of the region; subnets are at least named like some.
fn check_places(caller: &Caller, request: Fields<'_>) -> Result<(), ApiError> {
    let of_region = |zone: &str| {
        let letter = zone.strip_prefix(caller.region.as_str());
        letter.is_some_and(|letter| matches!(letter.as_bytes(), [b'a'..=b'f']))
    };
    let zones = request.texts("AvailabilityZones")?;
    if let Some(zone) = zones.into_iter().find(|zone| !of_region(zone)) {
        return Err(validation(format!("Invalid availability zones: [{zone}]")));
    }
    let subnets = request.text("VPCZoneIdentifier")?.unwrap_or_default();
    let mut subnets = subnets
        .split(',')
        .map(str::trim)
        .filter(|one| !one.is_empty());
    match subnets.find(|subnet| !subnet.starts_with("subnet-")) {
        Some(subnet) => Err(validation(format!(
            "The subnet ID '{subnet}' does not exist"
        ))),
        None => Ok(()),
    }
}

/// A policy is one of AWS's, or a function of one's own (Auto Scaling API reference, `TerminationPolicies`).
fn check_termination(request: Fields<'_>) -> Result<(), ApiError> {
    const KNOWN: [&str; 7] = [
        "AllocationStrategy",
        "ClosestToNextInstanceHour",
        "Default",
        "NewestInstance",
        "OldestInstance",
        "OldestLaunchConfiguration",
        "OldestLaunchTemplate",
    ];
    let function = |policy: &str| Arn::parse(policy).is_some_and(|arn| arn.service == "lambda");
    let policies = request.texts("TerminationPolicies")?;
    let unknown = policies
        .into_iter()
        .find(|policy| !KNOWN.contains(policy) && !function(policy));
    match unknown {
        Some(policy) => Err(validation(format!(
            "[{policy}] is not a valid termination policy"
        ))),
        None => Ok(()),
    }
}

fn check_health_type(request: Fields<'_>) -> Result<(), ApiError> {
    let kinds = request.text("HealthCheckType")?.unwrap_or("EC2");
    let known = ["EC2", "ELB", "EBS", "VPC_LATTICE"];
    if kinds.split(',').all(|kind| known.contains(&kind.trim())) {
        return Ok(());
    }
    Err(validation(format!("Invalid HealthCheckType: {kinds}")))
}

pub(super) fn check_bounds(min: i64, max: i64, desired: i64) -> Result<(), ApiError> {
    if min > max {
        return Err(validation(format!(
            "Min bound, {min}, must be less than or equal to max bound, {max}"
        )));
    }
    if !(min..=max).contains(&desired) {
        return Err(validation(format!(
            "Desired capacity:{desired} must be between the specified min size:{min} and max size:{max}"
        )));
    }
    Ok(())
}

pub(super) fn update(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let found = find(account, caller, request)?;
    let min = bounded(request, "MinSize", 0, 10_000)?.unwrap_or(found.min);
    let max = bounded(request, "MaxSize", 0, 10_000)?.unwrap_or(found.max);
    let desired = match bounded(request, "DesiredCapacity", 0, 10_000)? {
        Some(desired) => desired,
        // Bounds of their own move the count along.
        None if min <= max => found.desired.clamp(min, max),
        None => found.desired,
    };
    check_bounds(min, max, desired)?;
    check_health_type(request)?;
    check_places(caller, request)?;
    check_termination(request)?;
    let launch = named_launch(account, caller, request)?;
    if let Some(launch) = &launch {
        group::ready(account, &caller.region, launch)?;
    }
    let mixed = request.0.contains_key("MixedInstancesPolicy");
    let given: Document = omit(request.0, OWN);
    let row = find_mut(account, caller, request)?;
    if let Some(launch) = launch {
        row.launch = launch;
        if !mixed {
            row.settings.remove("MixedInstancesPolicy");
        }
    }
    (row.min, row.max, row.desired) = (min, max, desired);
    // One of both: where the group was is where it is told to be now.
    if given.contains_key("VPCZoneIdentifier") && !given.contains_key("AvailabilityZones") {
        row.settings.remove("AvailabilityZones");
    }
    row.settings.extend(given);
    let key = row.key();
    scheduler::soon(account, &key);
    Ok(json!({}))
}
