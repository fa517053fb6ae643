//! Instance refreshes: the instances of a group replaced batch by batch, within its healthy percentages.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::group::{Group, Launch};
use super::member::{self, Lifecycle, Member};
use super::scheduler::{count, launch_some};
use crate::account::Account;
use crate::fields::Document;

/// A refresh whose instances do not get healthy fails after this time (Auto Scaling user guide, "How an instance
/// refresh works").
const PATIENCE: Duration = Duration::from_secs(3_600);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Status {
    Pending,
    InProgress,
    Successful,
    Failed,
    Cancelling,
    Cancelled,
    RollbackInProgress,
    RollbackSuccessful,
    RollbackFailed,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Refresh {
    pub(super) id: String,
    pub(super) status: Status,
    pub(super) reason: Option<String>,
    pub(super) started: Timestamp,
    pub(super) ended: Option<Timestamp>,
    pub(super) percentage: i64,
    pub(super) preferences: Document,
    pub(super) min: i64,
    pub(super) max: i64,
    pub(super) warmup: i64,
    /// What instances are started from.
    pub(super) launch: Launch,
    /// Whether the group is to start instances from that too, once it succeeded.
    pub(super) keeps: bool,
    /// Instances that are to go.
    pub(super) old: BTreeSet<String>,
    /// When the newest instance got ready, or the refresh began.
    pub(super) progressed: Timestamp,
}

impl Refresh {
    pub(super) fn is_active(&self) -> bool {
        matches!(
            self.status,
            Status::Pending | Status::InProgress | Status::Cancelling | Status::RollbackInProgress
        )
    }

    pub(super) fn view(&self, group: &Group) -> Value {
        json!({
            "InstanceRefreshId": self.id,
            "AutoScalingGroupName": group.name,
            "Status": self.status,
            "StatusReason": self.reason,
            "StartTime": self.started.to_string(),
            "EndTime": self.ended.map(|at| at.to_string()),
            "PercentageComplete": self.percentage,
            "InstancesToUpdate": self.left(group),
            "Preferences": self.preferences,
        })
    }

    /// Turns back: what it started goes, and what the group starts by itself comes.
    pub(super) fn turn_back(&mut self, group: (&[Member], &Launch), now: Timestamp) {
        let (members, launch) = group;
        let before = std::mem::take(&mut self.old);
        let live = members.iter().filter(|member| member.counts());
        let started = live.filter(|member| !before.contains(&member.id));
        self.old = started.map(|member| member.id.clone()).collect();
        (self.launch, self.keeps) = (launch.clone(), false);
        (self.status, self.reason) = (Status::RollbackInProgress, None);
        (self.percentage, self.progressed) = (0, now);
    }

    fn left(&self, group: &Group) -> usize {
        let live = group.members.iter().filter(|member| member.counts());
        live.filter(|member| self.old.contains(&member.id)).count()
    }

    fn end(&mut self, status: Status, reason: Option<String>, now: Timestamp) {
        (self.status, self.reason, self.ended) = (status, reason, Some(now));
    }
}

/// Takes a refresh that is not over a step on. Says whether instances came or went; `None` without a refresh.
pub(super) fn step(account: &mut Account, group: &mut Group) -> Option<bool> {
    let mut refresh = group.refreshes.pop().filter(|_| !group.deleting)?;
    let moved = match refresh.status {
        Status::Pending => {
            refresh.status = Status::InProgress;
            refresh.progressed = account.now;
            Some(go_on(account, group, &mut refresh))
        }
        Status::InProgress | Status::RollbackInProgress => {
            Some(go_on(account, group, &mut refresh))
        }
        Status::Cancelling => {
            refresh.end(
                Status::Cancelled,
                Some("Cancelled due to user request.".to_owned()),
                account.now,
            );
            Some(true)
        }
        Status::Successful
        | Status::Failed
        | Status::Cancelled
        | Status::RollbackSuccessful
        | Status::RollbackFailed => None,
    };
    group.refreshes.push(refresh);
    moved
}

fn go_on(account: &mut Account, group: &mut Group, refresh: &mut Refresh) -> bool {
    let desired = group.desired;
    let old = |member: &&Member| refresh.old.contains(&member.id);
    let live: Vec<Member> = group
        .members
        .iter()
        .filter(|one| one.counts())
        .cloned()
        .collect();
    let olds: Vec<&Member> = live.iter().filter(old).collect();
    let warm = live.iter().filter(|one| !old(one));
    let warm = warm.filter(|one| one.is_warm(account, group, refresh.warmup));
    let warm = number(warm.count());
    let news = number(live.len() - olds.len());
    let before = refresh.percentage;
    refresh.percentage = match desired {
        0 => 100,
        _ => (warm * 100 / desired).min(100),
    };
    if refresh.percentage > before {
        refresh.progressed = account.now;
    }
    if olds.is_empty() && warm >= desired && news == desired {
        refresh.percentage = 100;
        let status = match refresh.status {
            Status::RollbackInProgress => Status::RollbackSuccessful,
            _ => Status::Successful,
        };
        refresh.end(status, None, account.now);
        if refresh.keeps {
            group.launch = refresh.launch.clone();
        }
        return true;
    }
    if account.after(refresh.progressed, PATIENCE) <= account.now {
        let reason = refresh.reason.take().unwrap_or_default();
        let reason = format!("Instances did not become healthy in time. {reason}");
        let status = match refresh.status {
            Status::RollbackInProgress => Status::RollbackFailed,
            _ => Status::Failed,
        };
        refresh.end(status, Some(reason), account.now);
        return true;
    }
    let waiting = live
        .iter()
        .find(|one| !old(one) && !one.is_warm(account, group, refresh.warmup));
    refresh.reason = waiting.map(|one| {
        format!(
            "Waiting for remaining instances to be available. For example: {} has insufficient data to evaluate \
             its health with Amazon EC2.",
            one.id
        )
    });
    replace(account, group, refresh, &olds, (warm, news))
}

/// Ends old instances and starts new ones as far as the percentages let it.
fn replace(
    account: &mut Account,
    group: &mut Group,
    refresh: &Refresh,
    olds: &[&Member],
    (warm, news): (i64, i64),
) -> bool {
    let desired = group.desired;
    let extra = desired * (refresh.max - 100) / 100;
    let extra = if refresh.max > 100 { extra.max(1) } else { 0 };
    let spare = desired * (100 - refresh.min) / 100;
    let spare = if extra == 0 { spare.max(1) } else { spare };
    let healthy = number(olds.iter().filter(|one| one.serves()).count()) + warm;
    let surplus = number(olds.len()) + news - desired;
    // An old instance that does not serve is no loss.
    let idle = olds.iter().filter(|one| !one.serves());
    let may_go = (healthy - (desired - spare))
        .max(0)
        .max(surplus.min(healthy - desired));
    let mut leaving: Vec<String> = idle.map(|one| one.id.clone()).collect();
    let serving = olds.iter().filter(|one| one.serves());
    leaving.extend(
        serving
            .take(usize::try_from(may_go).unwrap_or(0))
            .map(|one| one.id.clone()),
    );
    for id in &leaving {
        let cause =
            "an instance was taken out of service in response to an instance refresh.".to_owned();
        member::end(account, group, id, &cause);
    }
    let live = count(&group.members);
    let wanted = (desired + extra - live).min(desired - news).max(0);
    let launch = refresh.launch.clone();
    let cause = "an instance was launched in response to an instance refresh.";
    let launched = wanted > 0 && launch_some(account, group, &launch, wanted, cause);
    !leaving.is_empty() || launched
}

/// When a refresh wants to be looked at again, whatever happens.
pub(super) fn next(account: &Account, group: &Group) -> Option<Timestamp> {
    let refresh = group.refreshes.last().filter(|last| last.is_active())?;
    let works = [Status::InProgress, Status::RollbackInProgress].contains(&refresh.status);
    if !works {
        return Some(account.later(account.pace.scheduler));
    }
    let fresh = group.members.iter().filter(|member| {
        member.lifecycle == Lifecycle::InService && !refresh.old.contains(&member.id)
    });
    let warm = fresh.filter_map(|member| member.warm_at(account, refresh.warmup));
    let warm = warm.filter(|at| *at > account.now).min();
    let short = count(&group.members) < group.desired;
    let again = short.then(|| account.later(account.pace.throttle));
    let end = account
        .after(refresh.progressed, PATIENCE)
        .max(account.later(Duration::ZERO));
    [warm, again, Some(end)].into_iter().flatten().min()
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
