//! One look at one group: what is due for its instances, its refresh, and its number of instances.

use jiff::Timestamp;

use super::group::{self, Group, Launch};
use super::member::{self, Lifecycle, Member};
use super::refresh;
use crate::account::{Account, Wake};
use crate::ec2;

/// Instances that one look starts at most.
const AT_ONCE: i64 = 100;

/// Looks at a group as soon as the scheduler does.
pub(super) fn soon(account: &mut Account, key: &str) {
    let at = account.later(account.pace.scheduler);
    wake(account, key, at);
}

fn wake(account: &mut Account, key: &str, at: Timestamp) {
    let Some(row) = account.autoscaling.groups.get_mut(key) else {
        return;
    };
    if row.due.is_none_or(|due| at < due) {
        row.due = Some(at);
        account.schedule(at, Wake::Group(key.to_owned()));
    }
}

/// Something about an instance changed elsewhere.
pub(crate) fn notice(account: &mut Account, instance: &str) {
    if let Some((region, name)) = ec2::group_of(account, instance) {
        soon(account, &group::key(&region, &name));
    }
}

/// Lives through what is due for a group.
pub(crate) fn advance(account: &mut Account, key: &str, at: Timestamp) {
    let due = account.autoscaling.groups.get(key).and_then(|row| row.due);
    if due != Some(at) {
        return;
    }
    let Some(mut group) = account.autoscaling.groups.take(key) else {
        return;
    };
    group.due = None;
    member::live(account, &mut group);
    if group.deleting && group.members.is_empty() {
        account.autoscaling.groups.put(key.to_owned(), group);
        group::forget(account, key);
        return;
    }
    replace_unhealthy(account, &mut group);
    let moved = match refresh::step(account, &mut group) {
        Some(moved) => moved,
        None => balance(account, &mut group),
    };
    let next = next(account, &group, moved);
    account.autoscaling.groups.put(key.to_owned(), group);
    if let Some(next) = next {
        wake(account, key, next);
    }
}

/// When to look again: when something is due, and soon after a change or a failed start.
fn next(account: &Account, group: &Group, moved: bool) -> Option<Timestamp> {
    let members = group.members.iter().filter_map(|member| member.due);
    let refresh = refresh::next(account, group);
    let live = count(&group.members);
    let short =
        !group.deleting && live < group.desired && refresh.is_none() && group.runs("Launch");
    let again = if moved {
        Some(account.later(account.pace.scheduler))
    } else if short {
        Some(account.later(account.pace.throttle))
    } else {
        None
    };
    members.chain(refresh).chain(again).min()
}

pub(super) fn count(members: &[Member]) -> i64 {
    let live = members.iter().filter(|member| member.counts()).count();
    i64::try_from(live).unwrap_or(i64::MAX)
}

fn replace_unhealthy(account: &mut Account, group: &mut Group) {
    if !group.runs("ReplaceUnhealthy") || !group.runs("Terminate") {
        return;
    }
    let failed: Vec<String> = group
        .members
        .iter()
        .filter(|member| member.lifecycle == Lifecycle::InService && !member.healthy)
        .map(|member| member.id.clone())
        .collect();
    for id in failed {
        let cause = match group.by_balancer() {
            true => {
                "an instance was taken out of service in response to an ELB system health check failure."
            }
            false => {
                "an instance was taken out of service in response to an EC2 health check failure."
            }
        };
        member::end(account, group, &id, cause);
    }
}

/// Starts and ends instances until there are as many as desired. Says whether it did.
fn balance(account: &mut Account, group: &mut Group) -> bool {
    let live = count(&group.members);
    let desired = if group.deleting { 0 } else { group.desired };
    if live < desired {
        if !group.runs("Launch") {
            return false;
        }
        let launch = group.launch.clone();
        let cause = format!(
            "an instance was started in response to a difference between desired and actual capacity, increasing \
             the capacity from {live} to {desired}."
        );
        return launch_some(
            account,
            group,
            &launch,
            (desired - live).min(AT_ONCE),
            &cause,
        );
    }
    if !group.deleting && !group.runs("Terminate") {
        return false;
    }
    let surplus = usize::try_from(live - desired).unwrap_or(0);
    // Whoever is protected stays, even if the group stays too large then.
    let may_leave = |one: &&Member| one.counts() && (group.deleting || !one.protected);
    let mut leaving: Vec<&Member> = group.members.iter().filter(may_leave).collect();
    // The oldest launch template version first, as the default termination policy has it.
    leaving.sort_by_key(|one| (one.serves(), one.template.2, one.launched, one.id.clone()));
    let leaving: Vec<String> = leaving
        .into_iter()
        .take(surplus)
        .map(|one| one.id.clone())
        .collect();
    let cause = format!(
        "an instance was taken out of service in response to a difference between desired and actual capacity, \
         shrinking the capacity from {live} to {desired}."
    );
    for id in &leaving {
        member::end(account, group, id, &cause);
    }
    !leaving.is_empty()
}

/// Starts instances. Says whether any was.
pub(super) fn launch_some(
    account: &mut Account,
    group: &mut Group,
    launch: &Launch,
    number: i64,
    cause: &str,
) -> bool {
    let before = group.members.len();
    match group::ready(account, &group.region, launch) {
        Ok(ready) => {
            for _ in 0..number {
                member::start(account, group, &ready, cause);
            }
        }
        Err(error) => {
            let failed = super::activity::Activity::failed(
                account,
                "Launching a new EC2 instance",
                cause,
                error.message,
            );
            group.note(failed);
        }
    }
    group.members.len() > before
}
