//! Auto Scaling groups: looked at, created, updated.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use slipway_model::status::Failure;

use super::site::Site;
use super::spec::Sizes;
use super::template::Version;
use crate::aws::document::fields;

/// A group as `DescribeAutoScalingGroups` shows it: every leaf is a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Group(pub(super) Value);

/// An instance of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'g>(pub(super) &'g Value);

impl Member<'_> {
    pub(super) fn id(&self) -> &str {
        self.0["InstanceId"].as_str().unwrap_or_default()
    }

    /// Whether it is in service and healthy.
    pub(super) fn serves(&self) -> bool {
        self.0["LifecycleState"] == "InService" && self.0["HealthStatus"] == "Healthy"
    }

    /// Whether it is one of those that the group has, and not on its way out.
    pub(super) fn counts(&self) -> bool {
        let state = self.0["LifecycleState"].as_str().unwrap_or_default();
        !state.starts_with("Terminat") && !state.starts_with("Detach")
    }

    /// The version of this launch template that it was started from.
    pub(super) fn version_of(&self, id: &str) -> Option<&str> {
        let template = &self.0["LaunchTemplate"];
        let number = template["Version"].as_str();
        number.filter(|_| template["LaunchTemplateId"] == id)
    }

    /// Whether it was started from this version.
    pub(super) fn runs(&self, version: &Version) -> bool {
        let template = &self.0["LaunchTemplate"];
        template["LaunchTemplateId"] == version.id.as_str()
            && template["Version"] == version.number.as_str()
    }
}

impl Group {
    pub(super) fn name(&self) -> &str {
        self.0["AutoScalingGroupName"].as_str().unwrap_or_default()
    }

    pub(super) fn number(&self, field: &str) -> i64 {
        let value = &self.0[field];
        let text = value.as_str().and_then(|text| text.parse().ok());
        text.or_else(|| value.as_i64()).unwrap_or_default()
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes {
            min: self.number("MinSize"),
            max: self.number("MaxSize"),
            desired: self.number("DesiredCapacity"),
        }
    }

    /// Whether it is being deleted.
    pub(super) fn is_leaving(&self) -> bool {
        !self.0["Status"].is_null()
    }

    pub(super) fn members(&self) -> Vec<Member<'_>> {
        let members = self.0["Instances"].as_array();
        members.into_iter().flatten().map(Member).collect()
    }

    /// Instances that are in service and healthy, of this version where one is given.
    pub(super) fn serving(&self, version: Option<&Version>) -> usize {
        self.serving_ids(version).len()
    }

    /// Ids of the instances that are in service and healthy, of this version where one is given.
    pub(super) fn serving_ids(&self, version: Option<&Version>) -> BTreeSet<String> {
        let members = self.members().into_iter().filter(Member::serves);
        let fits = |member: &Member<'_>| version.is_none_or(|version| member.runs(version));
        members
            .filter(fits)
            .map(|member| member.id().to_owned())
            .collect()
    }

    /// Instances that wait for a lifecycle hook, each with its state.
    pub(super) fn held(&self) -> Vec<String> {
        let state = |member: &Member<'_>| {
            member.0["LifecycleState"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let members = self.members().into_iter();
        let held = members.map(|member| (member.id().to_owned(), state(&member)));
        held.filter(|(_, state)| state.ends_with(":Wait"))
            .map(|(id, state)| format!("{id} ({state})"))
            .collect()
    }

    /// Instances that were started from something else than this version, each with what it was started from. Overrides of
    /// a mixed instances policy may name launch templates of their own, and those are left alone.
    pub(super) fn strays(&self, version: &Version) -> Vec<String> {
        let overrides = &self.0["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"];
        let overrides = overrides.as_array().into_iter().flatten();
        let named: Vec<&Value> = overrides
            .map(|one| &one["LaunchTemplateSpecification"]["LaunchTemplateId"])
            .collect();
        let members = self.members().into_iter();
        let members = members.filter(|member| member.counts() && !member.runs(version));
        let members = members.filter(|member| {
            let template = &member.0["LaunchTemplate"]["LaunchTemplateId"];
            template.is_null() || !named.contains(&template)
        });
        let told = |member: Member<'_>| {
            let template = &member.0["LaunchTemplate"];
            let number = template["Version"].as_str();
            let from = match (number, template["LaunchTemplateId"] == version.id.as_str()) {
                (Some(number), true) => format!("version {number}"),
                (Some(number), false) => format!(
                    "version {number} of {}",
                    template["LaunchTemplateName"]
                        .as_str()
                        .unwrap_or("another launch template")
                ),
                (None, _) => "no launch template".to_owned(),
            };
            let state = member.0["LifecycleState"].as_str().unwrap_or("unknown");
            format!("{} ({from}, {state})", member.id())
        };
        members.map(told).collect()
    }

    /// Its launch template, alone or in a mixed instances policy: id, name, version as it is written.
    pub(super) fn template(&self) -> Option<(&str, &str, &str)> {
        let mixed =
            &self.0["MixedInstancesPolicy"]["LaunchTemplate"]["LaunchTemplateSpecification"];
        let own = &self.0["LaunchTemplate"];
        let used = if own.is_object() { own } else { mixed };
        let text = |field: &str| used[field].as_str();
        let version = text("Version").unwrap_or("$Default");
        Some((
            text("LaunchTemplateId")?,
            text("LaunchTemplateName").unwrap_or_default(),
            version,
        ))
    }

    /// What it starts instances from, for people.
    pub(super) fn told_template(&self) -> String {
        match self.template() {
            Some((_, name, number)) => format!("version {number} of launch template {name}"),
            None => match self.0["LaunchConfigurationName"].as_str() {
                Some(name) => format!("launch configuration {name}"),
                None => "something unknown".to_owned(),
            },
        }
    }

    /// Whether it starts instances from this version.
    pub(super) fn uses(&self, version: &Version) -> bool {
        let used = self.template();
        used.is_some_and(|(id, _, number)| id == version.id && number == version.number)
    }

    pub(super) fn tag(&self, key: &str) -> Option<&str> {
        let tags = self.0["Tags"].as_array().into_iter().flatten();
        let mut tags = tags.filter(|tag| tag["Key"] == key);
        tags.next()
            .map(|tag| tag["Value"].as_str().unwrap_or_default())
    }

    /// The processes that somebody suspended.
    pub(super) fn suspended_processes(&self) -> Vec<&str> {
        let all = self.0["SuspendedProcesses"]
            .as_array()
            .into_iter()
            .flatten();
        all.filter_map(|one| one["ProcessName"].as_str()).collect()
    }

    /// Why a process of it is suspended, if it is.
    pub(super) fn suspended(&self, process: &str) -> Option<&str> {
        let suspended = self.0["SuspendedProcesses"].as_array()?;
        let mut found = suspended.iter();
        let found = found.find(|one| one["ProcessName"] == process)?;
        Some(
            found["SuspensionReason"]
                .as_str()
                .unwrap_or("for no reason that AWS tells"),
        )
    }

    pub(super) fn target_groups(&self) -> Vec<String> {
        texts(&self.0["TargetGroupARNs"])
    }
}

/// The texts of a list.
pub(super) fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

/// Groups by their names; those that are not there are left out.
pub(super) async fn described(site: &Site, names: &[&str]) -> Result<Vec<Group>, Failure> {
    let doing = format!("look at Auto Scaling group {}", names.join(", "));
    let mut groups = Vec::new();
    let mut next = Value::Null;
    loop {
        let request = json!({"AutoScalingGroupNames": names, "NextToken": next});
        let mut page = site
            .scaling("DescribeAutoScalingGroups", &request, &doing)
            .await?;
        let found = page["AutoScalingGroups"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        groups.extend(found.into_iter().map(Group));
        next = page["NextToken"].take();
        if next.is_null() {
            return Ok(groups);
        }
    }
}

/// A group that is there and is not being deleted.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    Absent,
    Leaving,
    There(Box<Group>),
}

pub(super) async fn describe(site: &Site, name: &str) -> Result<Standing, Failure> {
    let mut found = described(site, &[name]).await?;
    Ok(match found.pop() {
        None => Standing::Absent,
        Some(group) if group.is_leaving() => Standing::Leaving,
        Some(group) => Standing::There(Box::new(group)),
    })
}

/// `CreateAutoScalingGroup` of the user's configuration.
pub(super) fn create_document(
    configuration: &Value,
    name: &str,
    sizes: Sizes,
    version: &Version,
) -> Value {
    let mut document = configuration.clone();
    document["AutoScalingGroupName"] = json!(name);
    size(&mut document, sizes);
    point(&mut document, version);
    // Tags that name the group must name this one.
    for tag in document["Tags"].as_array_mut().into_iter().flatten() {
        if !tag["ResourceId"].is_null() {
            tag["ResourceId"] = json!(name);
        }
    }
    document
}

/// `UpdateAutoScalingGroup` of the user's configuration: what only `CreateAutoScalingGroup` knows is left out.
pub(super) fn update_document(
    configuration: &Value,
    name: &str,
    sizes: Sizes,
    version: &Version,
) -> Value {
    let mut document = create_document(configuration, name, sizes, version);
    let known = |shape: &str, name: &str| fields(shape).any(|field| field == name);
    if let Some(fields) = document.as_object_mut() {
        fields.retain(|name, _| {
            known("UpdateAutoScalingGroup", name) || !known("CreateAutoScalingGroup", name)
        });
    }
    document
}

fn size(document: &mut Value, sizes: Sizes) {
    document["MinSize"] = json!(sizes.min);
    document["MaxSize"] = json!(sizes.max);
    document["DesiredCapacity"] = json!(sizes.desired);
}

/// Lets a request start instances from a version.
fn point(document: &mut Value, version: &Version) {
    let used = json!({"LaunchTemplateId": version.id, "Version": version.number});
    if document["MixedInstancesPolicy"].is_object() {
        document["MixedInstancesPolicy"]["LaunchTemplate"]["LaunchTemplateSpecification"] = used;
    } else {
        document["LaunchTemplate"] = used;
    }
}

/// How a field of `UpdateAutoScalingGroup` says "none".
fn emptied(field: &str) -> Option<Value> {
    match field {
        "MaxInstanceLifetime" => Some(json!(0)),
        "DefaultInstanceWarmup" => Some(json!(-1)),
        "CapacityRebalance" | "NewInstancesProtectedFromScaleIn" => Some(json!(false)),
        _ => None,
    }
}

/// `UpdateAutoScalingGroup` back to how a group was. `sent` are the fields that the deployment set: what it set and the
/// group did not have is emptied again.
pub(super) fn restore_document(
    before: &Group,
    version: Option<&Version>,
    sent: &[String],
) -> Value {
    let mut document = Map::new();
    let subnets = before.0["VPCZoneIdentifier"]
        .as_str()
        .is_some_and(|text| !text.is_empty());
    for field in fields("UpdateAutoScalingGroup") {
        let was = before.0.get(field).filter(|value| !value.is_null());
        let keep = match (field, was) {
            ("LaunchTemplate" | "LaunchConfigurationName", _) => None,
            // The zones follow from the subnets.
            ("AvailabilityZones" | "AvailabilityZoneIds", _) if subnets => None,
            (_, Some(value)) => Some(value.clone()),
            (_, None) => emptied(field).filter(|_| sent.iter().any(|sent| sent == field)),
        };
        if let Some(value) = keep {
            document.insert(field.to_owned(), value);
        }
    }
    let mut document = Value::Object(document);
    match version {
        Some(version) => point(&mut document, version),
        None => {
            if let Some(name) = before.0["LaunchConfigurationName"].as_str() {
                document["LaunchConfigurationName"] = json!(name);
            }
        }
    }
    document
}

/// The tags of a request or of a group, as requests that tag want them.
pub(super) fn tags_of(document: &Value, name: &str) -> Vec<Value> {
    let tags = document["Tags"].as_array().into_iter().flatten();
    let tags = tags.map(|tag| {
        let mut tag = tag.clone();
        tag["ResourceId"] = json!(name);
        tag["ResourceType"] = json!("auto-scaling-group");
        if tag["PropagateAtLaunch"].is_null() {
            tag["PropagateAtLaunch"] = json!(false);
        }
        tag
    });
    tags.collect()
}

/// Sets tags of groups.
pub(super) async fn put_tags(site: &Site, name: &str, tags: &[Value]) -> Result<(), Failure> {
    if tags.is_empty() {
        return Ok(());
    }
    let doing = format!("tag Auto Scaling group {name}");
    let request = json!({"Tags": tags});
    site.scaling("CreateOrUpdateTags", &request, &doing).await?;
    Ok(())
}

/// Sets the tags that differ, and takes those away that are not wanted.
pub(super) async fn restore_tags(site: &Site, before: &Group, now: &Group) -> Result<(), Failure> {
    let (old, new) = (
        tags_of(&before.0, before.name()),
        tags_of(&now.0, now.name()),
    );
    let changed: Vec<Value> = old
        .iter()
        .filter(|tag| !new.contains(tag))
        .cloned()
        .collect();
    put_tags(site, before.name(), &changed).await?;
    let kept = |tag: &&Value| !old.iter().any(|old| old["Key"] == tag["Key"]);
    let added: Vec<Value> = new.iter().filter(kept).cloned().collect();
    if added.is_empty() {
        return Ok(());
    }
    let doing = format!("take tags off Auto Scaling group {}", before.name());
    site.scaling("DeleteTags", &json!({"Tags": added}), &doing)
        .await?;
    Ok(())
}

/// Attaches the target groups that a group lacks, or detaches those that it has too many of.
pub(super) async fn set_target_groups(
    site: &Site,
    group: &Group,
    wanted: &[String],
    only: bool,
) -> Result<(), Failure> {
    let has = group.target_groups();
    let missing: Vec<&String> = wanted.iter().filter(|arn| !has.contains(arn)).collect();
    let name = group.name();
    if !missing.is_empty() {
        let request = json!({"AutoScalingGroupName": name, "TargetGroupARNs": missing});
        let doing = format!("attach target groups to Auto Scaling group {name}");
        site.scaling("AttachLoadBalancerTargetGroups", &request, &doing)
            .await?;
    }
    let surplus: Vec<&String> = has
        .iter()
        .filter(|arn| only && !wanted.contains(arn))
        .collect();
    if !surplus.is_empty() {
        let request = json!({"AutoScalingGroupName": name, "TargetGroupARNs": surplus});
        let doing = format!("detach target groups from Auto Scaling group {name}");
        site.scaling("DetachLoadBalancerTargetGroups", &request, &doing)
            .await?;
    }
    Ok(())
}
