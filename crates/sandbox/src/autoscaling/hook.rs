//! Lifecycle hooks: `PutLifecycleHook` and its like. What they do to instances is in [`super::wait`].

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::group::{find, find_mut};
use super::request::{bounded, required, validation};
use super::{scheduler, wait};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, pick};

/// Most lifecycle hooks of a group (Auto Scaling quotas).
const MOST: usize = 50;
/// Seconds that a hook waits where nobody says how long (`PutLifecycleHook`, `HeartbeatTimeout`).
const HEARTBEAT: i64 = 3_600;
/// Longest that an instance waits, seconds, and in times of the heartbeat (`LifecycleHook`, `GlobalTimeout`).
const LONGEST: (i64, i64) = (172_800, 100);

/// Members that are kept as they are.
const TOLD: &[&str] = &["NotificationMetadata", "NotificationTargetARN", "RoleARN"];

/// When a hook holds an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Transition {
    #[serde(rename = "autoscaling:EC2_INSTANCE_LAUNCHING")]
    Launching,
    #[serde(rename = "autoscaling:EC2_INSTANCE_TERMINATING")]
    Terminating,
}

/// What becomes of an instance that a hook held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    #[serde(rename = "CONTINUE")]
    Continue,
    #[serde(rename = "ABANDON")]
    Abandon,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hook {
    group: String,
    pub(super) name: String,
    pub(super) transition: Transition,
    /// Seconds.
    pub(super) heartbeat: i64,
    pub(super) default: Outcome,
    told: Document,
}

impl Hook {
    /// Longest that an instance waits for it, seconds.
    pub(super) fn global(&self) -> i64 {
        LONGEST.0.min(LONGEST.1 * self.heartbeat)
    }

    fn view(&self) -> Value {
        let mut view = self.told.clone();
        for (name, value) in [
            ("AutoScalingGroupName", json!(self.group)),
            ("LifecycleHookName", json!(self.name)),
            ("LifecycleTransition", json!(self.transition)),
            ("HeartbeatTimeout", json!(self.heartbeat)),
            ("GlobalTimeout", json!(self.global())),
            ("DefaultResult", json!(self.default)),
        ] {
            view.insert(name.to_owned(), value);
        }
        Value::Object(view)
    }

    /// A hook as a request has it; what it does not say stays as `known` has it.
    pub(super) fn read(
        request: Fields<'_>,
        group: &str,
        known: Option<&Self>,
    ) -> Result<Self, ApiError> {
        let name = required(request, "LifecycleHookName")?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/".contains(&byte);
        if name.len() > 255 || !name.bytes().all(plain) {
            return Err(validation(format!(
                "1 validation error detected: Value '{name}' at 'lifecycleHookName' failed to satisfy constraint: \
                 Member must satisfy regular expression pattern: [A-Za-z0-9\\-_\\/]+"
            )));
        }
        let transition = match (request.text("LifecycleTransition")?, known) {
            (Some("autoscaling:EC2_INSTANCE_LAUNCHING"), _) => Transition::Launching,
            (Some("autoscaling:EC2_INSTANCE_TERMINATING"), _) => Transition::Terminating,
            (Some(other), _) => {
                return Err(validation(format!("Invalid Lifecycle Transition: {other}")));
            }
            (None, Some(known)) => known.transition,
            (None, None) => {
                return Err(validation("Lifecycle Transition must be specified."));
            }
        };
        let default = match request.text("DefaultResult")? {
            Some("CONTINUE") => Outcome::Continue,
            Some("ABANDON") => Outcome::Abandon,
            Some(other) => return Err(validation(format!("Invalid Default Result: {other}"))),
            None => known.map_or(Outcome::Abandon, |known| known.default),
        };
        let heartbeat = bounded(request, "HeartbeatTimeout", 30, 7_200)?;
        let mut told = known.map(|known| known.told.clone()).unwrap_or_default();
        told.extend(pick(request.0, TOLD));
        Ok(Self {
            group: group.to_owned(),
            name: name.to_owned(),
            transition,
            heartbeat: heartbeat.unwrap_or(known.map_or(HEARTBEAT, |known| known.heartbeat)),
            default,
            told,
        })
    }
}

/// The hooks of a group at a transition, by name.
pub(super) fn of(account: &Account, group: &str, transition: Transition) -> Vec<Hook> {
    let all = account.autoscaling.hooks.under(&format!("{group}|"));
    let all = all.filter(|(_, hook)| hook.transition == transition);
    all.map(|(_, hook)| hook.clone()).collect()
}

/// Those of a group's creation.
pub(super) fn of_creation(request: Fields<'_>, group: &str) -> Result<Vec<Hook>, ApiError> {
    let written = request.objects("LifecycleHookSpecificationList")?;
    let hooks: Vec<Hook> = written
        .into_iter()
        .map(|one| Hook::read(Fields(one), group, None))
        .collect::<Result<_, _>>()?;
    match hooks.len() > MOST {
        true => Err(too_many()),
        false => Ok(hooks),
    }
}

/// Gives a group its hooks.
pub(super) fn keep(account: &mut Account, group: &str, hooks: Vec<Hook>) {
    for hook in hooks {
        let key = format!("{group}|{}", hook.name);
        account.autoscaling.hooks.put(key, hook);
    }
}

fn too_many() -> ApiError {
    ApiError::client(
        "LimitExceeded",
        format!("You have already reached the limit of {MOST} lifecycle hooks of this group"),
    )
}

pub(super) fn put(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let group = find(account, caller, request)?;
    let (prefix, name) = (format!("{}|", group.key()), group.name.clone());
    let key = format!("{prefix}{}", required(request, "LifecycleHookName")?);
    let known = account.autoscaling.hooks.get(&key);
    let hook = Hook::read(request, &name, known)?;
    if known.is_none() && account.autoscaling.hooks.under(&prefix).count() >= MOST {
        return Err(too_many());
    }
    account.autoscaling.hooks.put(key, hook);
    Ok(json!({}))
}

/// `DescribeLifecycleHooks`, which has no pages.
pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let names = request.texts("LifecycleHookNames")?;
    let prefix = format!("{}|", find(account, caller, request)?.key());
    let all = account.autoscaling.hooks.under(&prefix);
    let all = all.filter(|(_, hook)| names.is_empty() || names.contains(&hook.name.as_str()));
    let views: Vec<Value> = all.map(|(_, hook)| hook.view()).collect();
    Ok(json!({"LifecycleHooks": views}))
}

/// `DeleteLifecycleHook`: instances that wait for it are abandoned when they launch, and go on when they terminate.
pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "LifecycleHookName")?.to_owned();
    let key = find(account, caller, request)?.key();
    if account
        .autoscaling
        .hooks
        .take(&format!("{key}|{name}"))
        .is_none()
    {
        return Err(validation(format!(
            "No Lifecycle Hook found with name {name}"
        )));
    }
    let now = account.now;
    let row = find_mut(account, caller, request)?;
    for member in &mut row.members {
        wait::end(member, &name, None, now);
    }
    scheduler::soon(account, &key);
    Ok(json!({}))
}

/// `DescribeLifecycleHookTypes`.
pub(super) fn types(
    _account: &mut Account,
    _caller: &Caller,
    _request: Fields<'_>,
) -> Result<Value, ApiError> {
    Ok(json!({"LifecycleHookTypes": [Transition::Launching, Transition::Terminating]}))
}
