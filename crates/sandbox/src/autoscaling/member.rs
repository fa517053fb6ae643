//! An instance as its group sees it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::activity::Activity;
use super::group::{Group, Ready};
use super::hook::{self, Transition};
use super::request::seconds;
use super::wait::{self, Next, Wait};
use crate::account::Account;
use crate::ec2::image;
use crate::ec2::instance::{Instance, State};
use crate::elb;
use crate::image::ImageBehaviour;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Lifecycle {
    Pending,
    #[serde(rename = "Pending:Wait")]
    PendingWait,
    InService,
    Terminating,
    #[serde(rename = "Terminating:Wait")]
    TerminatingWait,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) id: String,
    pub(super) zone: String,
    pub(super) kind: String,
    pub(super) template: (String, String, u64),
    pub(super) image: String,
    pub(super) lifecycle: Lifecycle,
    pub(super) healthy: bool,
    pub(super) launched: Timestamp,
    pub(super) in_service: Option<Timestamp>,
    /// When it is known whether it works.
    pub(super) checked: Option<Timestamp>,
    /// When something happens to it by itself.
    pub(super) due: Option<Timestamp>,
    /// The lifecycle hooks that hold it.
    #[serde(default)]
    pub(super) waits: Vec<Wait>,
    /// Whether it stays when the group becomes smaller.
    #[serde(default)]
    pub(super) protected: bool,
    /// Whether no hook holds its termination any more.
    #[serde(default)]
    pub(super) released: bool,
}

impl Member {
    /// Whether it counts for the number of instances.
    pub(super) fn counts(&self) -> bool {
        !matches!(
            self.lifecycle,
            Lifecycle::Terminating | Lifecycle::TerminatingWait
        )
    }

    pub(super) fn serves(&self) -> bool {
        self.lifecycle == Lifecycle::InService && self.healthy
    }

    /// Whether it works, has worked for the time of its warm-up, and its load balancers say so too.
    pub(super) fn is_warm(&self, account: &Account, group: &Group, warmup: i64) -> bool {
        let (Some(since), Some(checked)) = (self.in_service, self.checked) else {
            return false;
        };
        let warm = account.after(since, seconds(account, warmup));
        let behaves = image::behaviour(account, &self.image) != ImageBehaviour::Unhealthy;
        let groups = &group.target_groups;
        let balanced = !group.by_balancer()
            || groups
                .iter()
                .all(|one| elb::instance_is_healthy(account, one, &self.id));
        self.serves() && behaves && checked <= account.now && warm <= account.now && balanced
    }

    /// When [`Self::is_warm`] may change by time alone.
    pub(super) fn warm_at(&self, account: &Account, warmup: i64) -> Option<Timestamp> {
        let since = self.in_service?;
        let warm = account.after(since, seconds(account, warmup));
        Some(warm.max(self.checked?))
    }
}

/// Starts an instance.
pub(super) fn start(account: &mut Account, group: &mut Group, ready: &Ready, cause: &str) {
    if image::behaviour(account, &ready.image) == ImageBehaviour::PullFails {
        let reason = format!(
            "Failed to launch: the image '{}' cannot be started. Launching EC2 instance failed.",
            ready.image
        );
        let failed = Activity::failed(account, "Launching a new EC2 instance", cause, reason);
        group.note(failed);
        return;
    }
    let id = format!("i-{}", account.draw_hex(17));
    let zones = zones(group);
    let zone = zones[group.members.len() % zones.len()].clone();
    let digits = account.draw_digits();
    let template = (
        ready.launch.id.clone(),
        ready.launch.name.clone(),
        ready.number,
    );
    let now = account.now;
    account.put_instance(Instance {
        id: id.clone(),
        region: group.region.clone(),
        image: ready.image.clone(),
        kind: ready.kind.clone(),
        zone: zone.clone(),
        address: format!("10.0.{}.{}", digits % 256, digits / 256 % 254 + 1),
        launched: now,
        state: State::Pending,
        group: group.name.clone(),
        template: template.clone(),
        cluster: ready.cluster.clone(),
    });
    let description = format!("Launching a new EC2 instance: {id}");
    group.note(Activity::done(account, description, cause));
    let pending = account.pace.provision + account.pace.start;
    group.members.push(Member {
        id,
        zone,
        kind: ready.kind.clone(),
        template,
        image: ready.image.clone(),
        lifecycle: Lifecycle::Pending,
        healthy: true,
        launched: now,
        in_service: None,
        checked: None,
        due: Some(account.later(pending)),
        waits: Vec::new(),
        protected: group.protects(),
        released: false,
    });
}

/// Zones of a group, of which there is one at least.
fn zones(group: &Group) -> Vec<String> {
    let told = group.settings.get("AvailabilityZones");
    let told = told.and_then(|zones| zones.as_array());
    let told: Vec<String> = told
        .into_iter()
        .flatten()
        .filter_map(|zone| zone.as_str().map(str::to_owned))
        .collect();
    match told.is_empty() {
        true => vec![format!("{}a", group.region), format!("{}b", group.region)],
        false => told,
    }
}

/// Ends an instance: its targets drain, then hooks hold it, then it stops.
pub(super) fn end(account: &mut Account, group: &mut Group, id: &str, cause: &str) {
    let Some(at) = group.members.iter().position(|member| member.id == id) else {
        return;
    };
    if !group.members[at].counts() {
        return;
    }
    let groups = group.target_groups.clone();
    let drains = groups
        .iter()
        .map(|one| elb::deregister_instance(account, one, id));
    let drain = drains.max().unwrap_or_default();
    let description = format!("Terminating EC2 instance: {id}");
    group.note(Activity::done(account, description, cause));
    let held = !group.deleting
        && !group.members[at].released
        && !hook::of(account, &group.key(), Transition::Terminating).is_empty();
    let due = match held {
        true => account.later(drain),
        false => account.later(drain + account.pace.stop),
    };
    let member = &mut group.members[at];
    member.lifecycle = Lifecycle::Terminating;
    member.waits.clear();
    member.released = !held;
    member.due = Some(due);
}

/// Lives through what is due for the members of a group.
pub(super) fn live(account: &mut Account, group: &mut Group) {
    let now = account.now;
    let due = |member: &Member| member.due.is_some_and(|due| due <= now);
    let ids: Vec<String> = group
        .members
        .iter()
        .filter(|member| due(member))
        .map(|member| member.id.clone())
        .collect();
    for id in ids {
        step(account, group, &id);
    }
}

fn step(account: &mut Account, group: &mut Group, id: &str) {
    let Some(at) = group.members.iter().position(|member| member.id == id) else {
        return;
    };
    match group.members[at].lifecycle {
        Lifecycle::Terminating => terminate(account, group, at),
        Lifecycle::Pending => {
            account.set_instance(id, State::Running);
            match wait::begin(account, group, Transition::Launching) {
                Some(waits) => hold(&mut group.members[at], Lifecycle::PendingWait, waits),
                None => serve(account, group, at),
            }
        }
        Lifecycle::PendingWait => match wait::next(&mut group.members[at], account.now) {
            Next::Waits(until) => group.members[at].due = Some(until),
            Next::GoesOn => serve(account, group, at),
            Next::Abandoned(why) => {
                let description = format!("Launching a new EC2 instance: {id}");
                let cause = "an instance was started for the group.";
                let failed = Activity::failed(account, &description, cause, why);
                group.note(failed);
                group.members[at].released = true;
                let cause = "a lifecycle action of the instance was abandoned.";
                end(account, group, id, cause);
            }
        },
        Lifecycle::TerminatingWait => match wait::next(&mut group.members[at], account.now) {
            Next::Waits(until) => group.members[at].due = Some(until),
            Next::GoesOn | Next::Abandoned(_) => {
                let stopped = account.later(account.pace.stop);
                let member = &mut group.members[at];
                member.lifecycle = Lifecycle::Terminating;
                member.waits.clear();
                member.released = true;
                member.due = Some(stopped);
            }
        },
        Lifecycle::InService => {
            if image::behaviour(account, &group.members[at].image) != ImageBehaviour::Unhealthy {
                account.set_instance(id, State::ShuttingDown);
            }
            // Nobody finds out while health checks are suspended.
            group.members[at].healthy = !group.runs("HealthCheck");
            group.members[at].due = None;
        }
    }
}

fn hold(member: &mut Member, lifecycle: Lifecycle, (waits, first): (Vec<Wait>, Timestamp)) {
    member.lifecycle = lifecycle;
    member.waits = waits;
    member.due = Some(first);
}

/// An instance whose targets are drained: hooks hold it once, then it is gone.
fn terminate(account: &mut Account, group: &mut Group, at: usize) {
    if !group.members[at].released
        && let Some(waits) = wait::begin(account, group, Transition::Terminating)
    {
        hold(&mut group.members[at], Lifecycle::TerminatingWait, waits);
        return;
    }
    let member = group.members.remove(at);
    account.set_instance(&member.id, State::Terminated);
}

/// An instance comes into service.
fn serve(account: &mut Account, group: &mut Group, at: usize) {
    let id = group.members[at].id.clone();
    let grace = group.number("HealthCheckGracePeriod").unwrap_or(0);
    let checked = account.later(account.pace.health);
    let behaviour = image::behaviour(account, &group.members[at].image);
    let due = match behaviour {
        ImageBehaviour::Exits => Some(account.later(account.pace.exit)),
        ImageBehaviour::ExitsLater => Some(account.later(account.pace.exit_later)),
        ImageBehaviour::Unhealthy => Some(checked.max(account.later(seconds(account, grace)))),
        ImageBehaviour::Runs | ImageBehaviour::PullFails => None,
    };
    let now = account.now;
    let member = &mut group.members[at];
    member.waits.clear();
    member.lifecycle = Lifecycle::InService;
    member.in_service = Some(now);
    member.checked = Some(checked);
    member.due = due;
    if !group.runs("AddToLoadBalancer") {
        return;
    }
    for one in group.target_groups.clone() {
        elb::register_instance(account, &one, &id);
    }
}
