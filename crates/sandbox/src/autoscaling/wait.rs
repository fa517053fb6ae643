//! Instances that lifecycle hooks hold, in `Pending:Wait` and `Terminating:Wait` (Auto Scaling user guide, "How lifecycle
//! hooks work"). Each hook of the transition has its heartbeat; who completes the action, or the end of the heartbeat with
//! the hook's default result, lets the instance go on. Abandoned in its launch an instance is terminated; a termination
//! goes on either way, and `ABANDON` ends the waits for the other hooks too. Heartbeats are as long as they are said, at
//! any pace.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::group::{Group, find, find_mut};
use super::hook::{self, Hook, Outcome, Transition};
use super::member::{Lifecycle, Member};
use super::request::{required, validation};
use super::scheduler;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

/// An instance waits for a hook.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Wait {
    hook: String,
    token: String,
    /// Seconds.
    heartbeat: i64,
    default: Outcome,
    /// When the heartbeat ends.
    ends: Timestamp,
    /// When it ends at the latest, whoever says what.
    last: Timestamp,
    /// How it ended, once it did.
    ended: Option<Outcome>,
    /// Whether its heartbeat ran out.
    late: bool,
}

/// What comes next for an instance that hooks hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It waits until then.
    Waits(Timestamp),
    GoesOn,
    /// It was abandoned, and why.
    Abandoned(String),
}

fn seconds(number: i64) -> Duration {
    Duration::from_secs(u64::try_from(number).unwrap_or(0))
}

/// Lets an instance wait for the hooks of a transition. Says when the first of them ends; `None` where there is none.
pub(super) fn begin(
    account: &mut Account,
    group: &Group,
    transition: Transition,
) -> Option<(Vec<Wait>, Timestamp)> {
    let now = account.now;
    let hooks = hook::of(account, &group.key(), transition);
    let waits = hooks.iter().map(|hook: &Hook| Wait {
        hook: hook.name.clone(),
        token: account.draw_uuid(),
        heartbeat: hook.heartbeat,
        default: hook.default,
        ends: account.after(now, seconds(hook.heartbeat)),
        last: account.after(now, seconds(hook.global())),
        ended: None,
        late: false,
    });
    let waits: Vec<Wait> = waits.collect();
    let first = waits.iter().map(|wait| wait.ends).min()?;
    Some((waits, first))
}

/// Ends the heartbeats that are over, and says what comes next.
pub(super) fn next(member: &mut Member, now: Timestamp) -> Next {
    for wait in &mut member.waits {
        if wait.ended.is_none() && wait.ends.min(wait.last) <= now {
            (wait.ended, wait.late) = (Some(wait.default), true);
        }
    }
    let mut waits = member.waits.iter();
    if let Some(abandoned) = waits.find(|wait| wait.ended == Some(Outcome::Abandon)) {
        let why = if abandoned.late {
            ": Heartbeat Timeout"
        } else {
            ""
        };
        return Next::Abandoned(format!(
            "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token {} was abandoned{why}",
            abandoned.token
        ));
    }
    let open = member.waits.iter().filter(|wait| wait.ended.is_none());
    match open.map(|wait| wait.ends.min(wait.last)).min() {
        Some(ends) => Next::Waits(ends),
        None => Next::GoesOn,
    }
}

/// Ends the wait of an instance for a hook: with `None` as a deleted hook does. Says whether there was one.
pub(super) fn end(
    member: &mut Member,
    hook: &str,
    outcome: Option<Outcome>,
    now: Timestamp,
) -> bool {
    let deleted = match member.lifecycle {
        Lifecycle::PendingWait => Outcome::Abandon,
        _ => Outcome::Continue,
    };
    let waits = member.waits.iter_mut();
    let mut open = waits.filter(|wait| wait.hook == hook && wait.ended.is_none());
    let Some(wait) = open.next() else {
        return false;
    };
    wait.ended = Some(outcome.unwrap_or(deleted));
    member.due = Some(now);
    true
}

/// The member of a group whose action a request names by its token or its instance.
fn named(account: &Account, caller: &Caller, request: Fields<'_>) -> Result<String, ApiError> {
    let hook = required(request, "LifecycleHookName")?;
    let group = find(account, caller, request)?;
    let (token, id) = (
        request.text("LifecycleActionToken")?,
        request.text("InstanceId")?,
    );
    let waits = |member: &&Member| {
        let mut waits = member.waits.iter();
        waits.any(|wait| {
            wait.hook == hook
                && wait.ended.is_none()
                && token.is_none_or(|token| token == wait.token)
        })
    };
    let mut members = group.members.iter().filter(waits);
    let found = members.find(|member| id.is_none_or(|id| id == member.id));
    match (token, id, found) {
        (None, None, _) => Err(validation(
            "Either the instance ID or the lifecycle action token must be specified.",
        )),
        (_, _, Some(found)) => Ok(found.id.clone()),
        (_, Some(id), None) => Err(validation(format!(
            "No active Lifecycle Action found with instance ID {id}"
        ))),
        (Some(token), None, None) => Err(validation(format!(
            "No active Lifecycle Action found with token {token}"
        ))),
    }
}

/// `CompleteLifecycleAction`.
pub(super) fn complete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let outcome = match required(request, "LifecycleActionResult")? {
        "CONTINUE" => Outcome::Continue,
        "ABANDON" => Outcome::Abandon,
        other => {
            return Err(validation(format!(
                "Invalid Lifecycle Action Result: {other}"
            )));
        }
    };
    let id = named(account, caller, request)?;
    let hook = required(request, "LifecycleHookName")?.to_owned();
    let now = account.now;
    let row = find_mut(account, caller, request)?;
    for member in row.members.iter_mut().filter(|member| member.id == id) {
        end(member, &hook, Some(outcome), now);
    }
    let key = row.key();
    scheduler::soon(account, &key);
    Ok(json!({}))
}

/// `RecordLifecycleActionHeartbeat`: the heartbeat begins anew.
pub(super) fn heartbeat(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let id = named(account, caller, request)?;
    let hook = required(request, "LifecycleHookName")?.to_owned();
    let now = account.now;
    let row = find(account, caller, request)?;
    let members = row.members.iter().filter(|member| member.id == id);
    let mut waits = members.flat_map(|member| &member.waits);
    let length = waits
        .find(|wait| wait.hook == hook)
        .map_or(0, |wait| wait.heartbeat);
    let ends = account.after(now, seconds(length));
    let row = find_mut(account, caller, request)?;
    for member in row.members.iter_mut().filter(|member| member.id == id) {
        let mut waits = member.waits.iter_mut();
        if let Some(wait) = waits.find(|wait| wait.hook == hook && wait.ended.is_none()) {
            wait.ends = ends;
        }
        let open = member.waits.iter().filter(|wait| wait.ended.is_none());
        member.due = open.map(|wait| wait.ends.min(wait.last)).min();
    }
    Ok(json!({}))
}
