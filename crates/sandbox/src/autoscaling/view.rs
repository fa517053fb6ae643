//! `DescribeAutoScalingGroups`.

use serde_json::{Value, json};

use super::group::{Group, Launch};
use super::member::Member;
use super::request::{page, required, validation};
use super::tag;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let names = request.texts("AutoScalingGroupNames")?;
    let mut filters = Vec::new();
    for filter in request.objects("Filters")? {
        let filter = Fields(filter);
        filters.push((required(filter, "Name")?, filter.texts("Values")?));
    }
    let mut chosen = Vec::new();
    let all = account
        .autoscaling
        .groups
        .under(&format!("{}/", caller.region));
    for (key, group) in all {
        let asked = names.is_empty() || names.contains(&group.name.as_str());
        if asked && fits(group, &filters)? {
            chosen.push(key);
        }
    }
    let page = page(request, (50, 100), chosen.into_iter())?;
    let rows = page.items.iter();
    let rows = rows.filter_map(|key| account.autoscaling.groups.get(key));
    let views: Vec<Value> = rows.map(view).collect();
    Ok(json!({"AutoScalingGroups": views, "NextToken": page.next_token}))
}

/// `DescribeAutoScalingInstances`: those of all groups, or those that are named.
pub(super) fn instances(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let ids = request.texts("InstanceIds")?;
    let groups = account
        .autoscaling
        .groups
        .under(&format!("{}/", caller.region));
    let all = groups.flat_map(|(_, group)| group.members.iter().map(move |one| (group, one)));
    let mut all: Vec<(&Group, &Member)> = all
        .filter(|(_, one)| ids.is_empty() || ids.contains(&one.id.as_str()))
        .collect();
    all.sort_by(|(_, a), (_, b)| a.id.cmp(&b.id));
    let page = page(
        request,
        (50, 50),
        all.iter().map(|(_, one)| one.id.as_str()),
    )?;
    let shown = all.iter().filter(|(_, one)| page.items.contains(&one.id));
    let shown = shown.map(|(group, one)| {
        let mut view = member(one);
        view["AutoScalingGroupName"] = json!(group.name);
        // Here, and here alone, it is written in capitals (Auto Scaling API reference, `AutoScalingInstanceDetails`).
        view["HealthStatus"] = json!(if one.healthy { "HEALTHY" } else { "UNHEALTHY" });
        view
    });
    Ok(json!({"AutoScalingInstances": shown.collect::<Vec<_>>(), "NextToken": page.next_token}))
}

fn fits(group: &Group, filters: &[(&str, Vec<&str>)]) -> Result<bool, ApiError> {
    for (name, values) in filters {
        let fits = match *name {
            "tag-key" => group.tags.keys().any(|key| values.contains(&key.as_str())),
            "tag-value" => group
                .tags
                .values()
                .any(|tag| values.contains(&tag.value.as_str())),
            name => {
                let Some(key) = name.strip_prefix("tag:") else {
                    return Err(validation(format!("Invalid filter name: {name}")));
                };
                let tag = group.tags.get(key);
                tag.is_some_and(|tag| values.contains(&tag.value.as_str()))
            }
        };
        if !fits {
            return Ok(false);
        }
    }
    Ok(true)
}

fn launch(launch: &Launch) -> Value {
    json!({
        "LaunchTemplateId": launch.id,
        "LaunchTemplateName": launch.name,
        "Version": launch.version,
    })
}

fn view(group: &Group) -> Value {
    let mut view = group.settings.clone();
    let mut set = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    set("AutoScalingGroupName", json!(group.name));
    set("AutoScalingGroupARN", json!(group.arn));
    set("MinSize", json!(group.min));
    set("MaxSize", json!(group.max));
    set("DesiredCapacity", json!(group.desired));
    set("CreatedTime", json!(group.created.to_string()));
    set("Tags", json!(tag::view(group)));
    set("TargetGroupARNs", json!(group.target_groups));
    let metrics = group.metrics.iter();
    let metrics = metrics.map(|name| json!({"Metric": name, "Granularity": "1Minute"}));
    set("EnabledMetrics", metrics.collect());
    let members: Vec<Value> = group.members.iter().map(member).collect();
    set("Instances", json!(members));
    set("LoadBalancerNames", json!([]));
    let suspended = group.suspended.iter();
    let suspended =
        suspended.map(|name| json!({"ProcessName": name, "SuspensionReason": "User suspended"}));
    set("SuspendedProcesses", suspended.collect());
    if group.deleting {
        set("Status", json!("Delete in progress"));
    }
    if !group.settings.contains_key("MixedInstancesPolicy") {
        set("LaunchTemplate", launch(&group.launch));
    }
    let sources = group.target_groups.iter();
    let sources = sources.map(|arn| json!({"Identifier": arn, "Type": "elbv2"}));
    set("TrafficSources", sources.collect());
    let defaults = [
        ("DefaultCooldown", json!(300)),
        ("HealthCheckType", json!("EC2")),
        ("HealthCheckGracePeriod", json!(0)),
        ("NewInstancesProtectedFromScaleIn", json!(false)),
        ("TerminationPolicies", json!(["Default"])),
        (
            "AvailabilityZones",
            json!([format!("{}a", group.region), format!("{}b", group.region)]),
        ),
        (
            "ServiceLinkedRoleARN",
            json!(
                "arn:aws:iam::123456789012:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
            ),
        ),
    ];
    for (name, value) in defaults {
        view.entry(name).or_insert(value);
    }
    Value::Object(view)
}

fn member(member: &Member) -> Value {
    let (id, name, version) = &member.template;
    json!({
        "InstanceId": member.id,
        "InstanceType": member.kind,
        "AvailabilityZone": member.zone,
        "LifecycleState": member.lifecycle,
        "HealthStatus": if member.healthy { "Healthy" } else { "Unhealthy" },
        "LaunchTemplate": {
            "LaunchTemplateId": id,
            "LaunchTemplateName": name,
            "Version": version.to_string(),
        },
        "ProtectedFromScaleIn": member.protected,
    })
}
