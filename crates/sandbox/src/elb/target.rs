//! Targets of target groups, and their health over time: initial → healthy or unhealthy, draining on the way
//! out; unused while no load balancer forwards to the group.
//!
//! A target that is an ECS task is healthy if the task is, and one that is an instance if the instance is. Any other
//! answers its checks.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::request::{bounded, missing, validation};
use super::target_group::{self, TargetGroup};
use super::{traffic, usage};
use crate::account::{Account, Wake};
use crate::caller::Caller;
use crate::ecs::container::Fate;
use crate::ecs::service::{self, Notice};
use crate::ecs::task::{Status, Task};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::{autoscaling, ec2};

/// Most targets of a target group (ELB quotas).
const MOST: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Unused,
    Initial,
    Healthy,
    Unhealthy,
    Draining,
}

/// The ECS task behind a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskBehind {
    key: String,
    pub(super) arn: String,
    pub(super) task_definition: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    /// ARN of the target group.
    pub(super) group: String,
    /// Address, instance id or ARN.
    pub(super) id: String,
    /// 0 for functions.
    pub(super) port: i64,
    pub(super) zone: Option<String>,
    pub(super) state: State,
    pub(super) task: Option<TaskBehind>,
    /// When its state changes by itself.
    pub(super) due: Option<Timestamp>,
}

impl Target {
    fn new(group: &str, id: &str, port: i64) -> Self {
        Self {
            group: group.to_owned(),
            id: id.to_owned(),
            port,
            zone: None,
            state: State::Unused,
            task: None,
            due: None,
        }
    }

    fn key(&self) -> String {
        key(&self.group, &self.id, self.port)
    }
}

fn key(group: &str, id: &str, port: i64) -> String {
    format!("{group}|{id}|{port:05}")
}

/// Keys of the targets of a group.
pub(super) fn keys(account: &Account, group: &str) -> Vec<String> {
    let own = account.elb.targets.under(&format!("{group}|"));
    own.map(|(key, _)| key.to_owned()).collect()
}

/// One place where an ECS task takes requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskTarget {
    /// ARN of the target group.
    pub(crate) group: String,
    /// Address of the task, or id of its instance.
    pub(crate) id: String,
    pub(crate) port: i64,
}

impl TaskTarget {
    fn key(&self) -> String {
        key(&self.group, &self.id, self.port)
    }
}

/// Registers a task that began to run; false when the target group is not there any more.
pub(crate) fn register_task(account: &mut Account, task: &Task, place: &TaskTarget) -> bool {
    if account.elb.target_groups.get(&place.group).is_none() {
        return false;
    }
    let mut target = Target::new(&place.group, &place.id, place.port);
    target.task = Some(TaskBehind {
        key: task.key(),
        arn: task.arn.clone(),
        task_definition: task.task_definition.clone(),
    });
    add(account, target);
    true
}

/// Lets go of a task. Gives how long its target drains; nothing when it is not registered.
pub(crate) fn deregister_task(
    account: &mut Account,
    task: &str,
    place: &TaskTarget,
) -> Option<Duration> {
    let key = place.key();
    let found = account.elb.targets.get(&key)?;
    let own = found.task.as_ref().is_some_and(|behind| behind.key == task);
    own.then(|| release(account, &key))
}

/// Whether the load balancer found the task healthy.
pub(crate) fn is_healthy(account: &Account, task: &str, place: &TaskTarget) -> bool {
    let found = account.elb.targets.get(&place.key());
    found.is_some_and(|target| {
        let own = target
            .task
            .as_ref()
            .is_some_and(|behind| behind.key == task);
        own && target.state == State::Healthy
    })
}

/// Registers an instance of an Auto Scaling group, unless it is there; false when the target group is not there any more.
pub(crate) fn register_instance(account: &mut Account, group: &str, id: &str) -> bool {
    let Some(found) = account.elb.target_groups.get(group) else {
        return false;
    };
    let target = Target::new(group, id, found.port.unwrap_or(0));
    let known = account.elb.targets.get(&target.key());
    if known.is_none_or(|known| known.state == State::Draining) {
        add(account, target);
    }
    true
}

/// Lets go of an instance. Gives how long its target drains.
pub(crate) fn deregister_instance(account: &mut Account, group: &str, id: &str) -> Duration {
    let keys = keys_of(account, group, id);
    let drains = keys.iter().map(|key| release(account, key));
    drains.max().unwrap_or_default()
}

/// Whether the load balancer found an instance healthy, or has no use for it.
pub(crate) fn instance_is_healthy(account: &Account, group: &str, id: &str) -> bool {
    let keys = keys_of(account, group, id);
    let states = keys.iter().filter_map(|key| account.elb.targets.get(key));
    let mut states = states.map(|target| target.state).peekable();
    states.peek().is_some() && states.all(|state| [State::Healthy, State::Unused].contains(&state))
}

fn keys_of(account: &Account, group: &str, id: &str) -> Vec<String> {
    let own = account.elb.targets.under(&format!("{group}|{id}|"));
    own.map(|(key, _)| key.to_owned()).collect()
}

/// Adds a target, or begins anew with one that is there.
fn add(account: &mut Account, target: Target) {
    let used = usage::load_balancer_of(account, &target.group).is_some();
    let key = target.key();
    let group = target.group.clone();
    account.elb.targets.put(key.clone(), target);
    turn(
        account,
        &key,
        if used { State::Initial } else { State::Unused },
    );
    traffic::note_group(account, &group);
}

/// Puts a target into a state, from which time leads on to the next.
pub(super) fn turn(account: &mut Account, key: &str, state: State) {
    let Some(target) = account.elb.targets.get(key) else {
        return;
    };
    let delay = account.elb.target_groups.get(&target.group);
    let delay = delay.map_or(Duration::ZERO, TargetGroup::deregistration_delay);
    let after = match state {
        State::Initial => Some(account.pace.health),
        State::Draining => Some(delay.min(account.pace.drain_max)),
        State::Unused | State::Healthy | State::Unhealthy => None,
    };
    let due = after.map(|after| account.later(after));
    if let Some(target) = account.elb.targets.get_mut(key) {
        target.state = state;
        target.due = due;
    }
    if let Some(due) = due {
        account.schedule(due, Wake::Target(key.to_owned()));
    }
}

/// Lets a target go: it drains if it could have got requests. Gives for how long.
fn release(account: &mut Account, key: &str) -> Duration {
    let Some(target) = account.elb.targets.get(key) else {
        return Duration::ZERO;
    };
    let group = target.group.clone();
    match target.state {
        State::Draining => {}
        State::Unused => {
            account.elb.targets.take(key);
        }
        State::Initial | State::Healthy | State::Unhealthy => {
            turn(account, key, State::Draining);
        }
    }
    traffic::note_group(account, &group);
    let due = account.elb.targets.get(key).and_then(|target| target.due);
    let left = due.map(|due| due.duration_since(account.now));
    left.and_then(|left| Duration::try_from(left).ok())
        .unwrap_or_default()
}

/// Lives through the event that is due for a target.
pub(crate) fn advance(account: &mut Account, key: &str, at: Timestamp) {
    let found = account.elb.targets.get(key);
    let Some(target) = found.filter(|target| target.due == Some(at)).cloned() else {
        return;
    };
    if target.state == State::Draining {
        account.elb.targets.take(key);
        return;
    }
    let state = if answers(account, &target) {
        State::Healthy
    } else {
        State::Unhealthy
    };
    turn(account, key, state);
    traffic::note_group(account, &target.group);
    let Some(task) = target.task else {
        autoscaling::notice(account, &target.id);
        return;
    };
    let owner = account.tasks.get(&task.key);
    if let Some(owner) = owner.and_then(|task| task.owner.clone()) {
        service::notice(account, &owner, &task.key, Notice::Changed);
    }
}

/// Whether a target answers its health checks.
fn answers(account: &Account, target: &Target) -> bool {
    let Some(behind) = &target.task else {
        return ec2::answers(account, &target.id);
    };
    let task = account.tasks.get(&behind.key);
    task.is_some_and(|task| task.status == Status::Running && task.fate != Fate::Unhealthy)
}

/// Forgets the targets of a group that was deleted.
pub(super) fn forget_group(account: &mut Account, group: &str) {
    for key in keys(account, group) {
        account.elb.targets.take(&key);
    }
}

/// Targets that a request names, with the ports that count.
fn named(group: &TargetGroup, request: Fields<'_>) -> Result<Vec<Target>, ApiError> {
    let items = request.objects("Targets")?;
    if items.is_empty() {
        return Err(missing("Targets"));
    }
    let mut targets = Vec::new();
    for item in items {
        let item = Fields(item);
        let id = item.text("Id")?.ok_or_else(|| missing("Id"))?;
        check_id(&group.target_type, id)?;
        let port = bounded(item, "Port", 1, 65_535)?.or(group.port);
        let mut target = Target::new(&group.arn, id, port.unwrap_or(0));
        target.zone = item.text("AvailabilityZone")?.map(str::to_owned);
        targets.push(target);
    }
    Ok(targets)
}

fn check_id(target_type: &str, id: &str) -> Result<(), ApiError> {
    let (fits, what) = match target_type {
        "ip" => (id.parse::<std::net::IpAddr>().is_ok(), "IP address"),
        "instance" => (id.starts_with("i-"), "instance ID"),
        "lambda" => (id.starts_with("arn:aws:lambda:"), "Lambda function ARN"),
        _ => (
            id.contains(":loadbalancer/app/"),
            "ARN of an Application Load Balancer",
        ),
    };
    if fits {
        return Ok(());
    }
    Err(validation(format!("'{id}' is not a valid {what}")))
}

pub(super) fn register(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let group = target_group::find(account, request)?;
    let (arn, targets) = (group.arn.clone(), named(group, request)?);
    let mut known: Vec<String> = keys(account, &arn);
    known.extend(targets.iter().map(Target::key));
    known.sort();
    known.dedup();
    if known.len() > MOST {
        return Err(ApiError::client(
            "TooManyTargets",
            format!("The maximum number of targets of target group '{arn}' ({MOST}) is reached"),
        ));
    }
    for target in targets {
        let found = account.elb.targets.get(&target.key());
        // One that is there and stays goes on as it is.
        if found.is_none_or(|found| found.state == State::Draining) {
            add(account, target);
        }
    }
    Ok(json!({}))
}

/// `DeregisterTargets`; for targets that are not there it succeeds (ELBv2 API reference).
pub(super) fn deregister(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let group = target_group::find(account, request)?;
    for target in named(group, request)? {
        release(account, &target.key());
    }
    Ok(json!({}))
}
