//! Auto Scaling groups.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::activity::Activity;
use super::member::Member;
use super::refresh::Refresh;
use super::request::{flag, required, validation};
use super::scheduler;
use crate::account::Account;
use crate::caller::Caller;
use crate::ec2::template::{self, Template};
use crate::ec2::{image, kind, user_data, version};
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Activities of a group that stay visible.
const ACTIVITIES: usize = 100;

/// A tag of a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Tag {
    pub(super) value: String,
    pub(super) propagated: bool,
}

/// The launch template that a group starts instances from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Launch {
    pub(super) id: String,
    pub(super) name: String,
    /// As it was written: a number, `$Latest`, `$Default`, or nothing.
    pub(super) version: Option<String>,
}

/// A launch template's version, with what of it matters for an instance.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    pub(super) launch: Launch,
    pub(super) number: u64,
    pub(super) image: String,
    pub(super) kind: String,
    /// The ECS cluster that its user data names.
    pub(super) cluster: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(super) region: String,
    pub(super) name: String,
    pub(super) arn: String,
    /// Everything that was set and has no field of its own.
    pub(super) settings: Document,
    pub(super) launch: Launch,
    pub(super) min: i64,
    pub(super) max: i64,
    pub(super) desired: i64,
    pub(super) created: Timestamp,
    pub(super) tags: BTreeMap<String, Tag>,
    pub(super) target_groups: Vec<String>,
    pub(super) metrics: BTreeSet<String>,
    /// Processes that were suspended.
    #[serde(default)]
    pub(super) suspended: BTreeSet<String>,
    pub(super) members: Vec<Member>,
    /// Oldest first.
    pub(super) refreshes: Vec<Refresh>,
    /// Newest first.
    pub(super) activities: VecDeque<Activity>,
    pub(super) deleting: bool,
    /// When it is looked at next.
    pub(super) due: Option<Timestamp>,
}

impl Group {
    pub(super) fn key(&self) -> String {
        key(&self.region, &self.name)
    }

    /// A setting that is a number.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.settings.get(name)?.as_str()?.parse().ok()
    }

    /// Whether the health that load balancers found counts.
    pub(super) fn by_balancer(&self) -> bool {
        let kinds = self.settings.get("HealthCheckType").and_then(Value::as_str);
        kinds.is_some_and(|kinds| kinds.split(',').any(|kind| kind.trim() == "ELB"))
    }

    pub(super) fn note(&mut self, activity: Activity) {
        self.activities.push_front(activity);
        self.activities.truncate(ACTIVITIES);
    }

    /// The refresh that is not over.
    pub(super) fn refresh(&mut self) -> Option<&mut Refresh> {
        self.refreshes.last_mut().filter(|last| last.is_active())
    }
}

pub(super) fn key(region: &str, name: &str) -> String {
    format!("{region}/{name}")
}

/// The group that a request names.
pub(super) fn find<'a>(
    account: &'a Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<&'a Group, ApiError> {
    let name = required(request, "AutoScalingGroupName")?;
    let found = account.autoscaling.groups.get(&key(&caller.region, name));
    found.ok_or_else(|| not_found(name))
}

/// The same, to be changed. Being deleted it takes no changes.
pub(super) fn find_mut<'a>(
    account: &'a mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<&'a mut Group, ApiError> {
    let found = find(account, caller, request)?;
    if found.deleting {
        return Err(ApiError::client(
            "ScalingActivityInProgress",
            format!("AutoScalingGroup {} is pending delete", found.name),
        ));
    }
    let (key, name) = (found.key(), found.name.clone());
    let found = account.autoscaling.groups.get_mut(&key);
    found.ok_or_else(|| not_found(&name))
}

pub(super) fn not_found(name: &str) -> ApiError {
    validation(format!("AutoScalingGroup name not found - {name}"))
}

/// Name of the group of an ARN.
pub(crate) fn name_of(account: &Account, region: &str, arn: &str) -> Option<String> {
    let mut own = account.autoscaling.groups.under(&format!("{region}/"));
    own.find(|(_, row)| row.arn == arn)
        .map(|(_, row)| row.name.clone())
}

/// The launch template that a request names, as the group keeps it.
pub(super) fn launch(
    account: &Account,
    caller: &Caller,
    specification: Fields<'_>,
) -> Result<Launch, ApiError> {
    let id = specification.text("LaunchTemplateId")?;
    let name = specification.text("LaunchTemplateName")?;
    if id.is_some() == name.is_some() {
        return Err(validation(
            "Valid requests must contain either launchTemplateId or LaunchTemplateName",
        ));
    }
    let found = template::find(account, &caller.region, id, name).map_err(ill_formed)?;
    Ok(Launch {
        id: found.id.clone(),
        name: found.name.clone(),
        version: specification.text("Version")?.map(str::to_owned),
    })
}

fn ill_formed(error: ApiError) -> ApiError {
    validation(format!(
        "You must use a valid fully-formed launch template. {}",
        error.message
    ))
}

/// A launch template as it is now, if instances can be started from it.
pub(super) fn ready(account: &Account, region: &str, launch: &Launch) -> Result<Ready, ApiError> {
    let found: &Template =
        template::find(account, region, Some(&launch.id), None).map_err(ill_formed)?;
    let number = version::existing(account, found, launch.version.as_deref());
    let number = number.map_err(ill_formed)?;
    let data = version::data(account, found, number);
    let text = |name: &str| {
        let value = data.and_then(|data| data.get(name));
        value.and_then(Value::as_str).map(str::to_owned)
    };
    let Some(image) = text("ImageId") else {
        return Err(validation(
            "You must use a valid fully-formed launch template. The request must contain the parameter ImageId",
        ));
    };
    image::usable(account, region, &image).map_err(ill_formed)?;
    let kind = text("InstanceType").unwrap_or_else(|| "m1.small".to_owned());
    if !kind::is_type(&kind) {
        let unknown = format!("Invalid value '{kind}' for InstanceType.");
        return Err(ill_formed(ApiError::client(
            "InvalidParameterValue",
            unknown,
        )));
    }
    Ok(Ready {
        launch: launch.clone(),
        number,
        image,
        kind,
        cluster: text("UserData").and_then(|data| user_data::cluster(&data)),
    })
}

/// `DeleteAutoScalingGroup`.
pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let force = flag(request, "ForceDelete")?;
    let found = find(account, caller, request)?;
    if !force {
        if found.refreshes.last().is_some_and(Refresh::is_active) {
            return Err(ApiError::client(
                "ResourceInUse",
                "You cannot delete an AutoScalingGroup while there is an instance refresh in progress.",
            ));
        }
        if !found.members.is_empty() {
            return Err(ApiError::client(
                "ResourceInUse",
                "You cannot delete an AutoScalingGroup while there are instances still in the group.",
            ));
        }
    }
    let key = found.key();
    if let Some(row) = account.autoscaling.groups.get_mut(&key) {
        row.deleting = true;
        (row.min, row.desired) = (0, 0);
        // Outstanding lifecycle actions go with the group (`DeleteAutoScalingGroup`, `ForceDelete`).
        for member in &mut row.members {
            member.released = true;
            if !member.waits.is_empty() {
                member.waits.clear();
                member.due = Some(account.now);
            }
        }
    }
    scheduler::soon(account, &key);
    Ok(json!({}))
}

/// Forgets a group without instances, and what belongs to it.
pub(super) fn forget(account: &mut Account, key: &str) {
    account.autoscaling.groups.take(key);
    let prefix = format!("{key}|");
    let policies = account.autoscaling.policies.under(&prefix);
    let policies: Vec<String> = policies.map(|(key, _)| key.to_owned()).collect();
    for key in policies {
        account.autoscaling.policies.take(&key);
    }
    let actions = account.autoscaling.actions.under(&prefix);
    let actions: Vec<String> = actions.map(|(key, _)| key.to_owned()).collect();
    for key in actions {
        account.autoscaling.actions.take(&key);
    }
    let hooks = account.autoscaling.hooks.under(&prefix);
    let hooks: Vec<String> = hooks.map(|(key, _)| key.to_owned()).collect();
    for key in hooks {
        account.autoscaling.hooks.take(&key);
    }
}
