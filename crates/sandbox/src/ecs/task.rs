//! Tasks and their life: PROVISIONING → PENDING → ACTIVATING → RUNNING → DEACTIVATING → STOPPING →
//! DEPROVISIONING → STOPPED ("Amazon ECS task lifecycle", developer guide).
//!
//! Tasks without a network interface of their own skip PROVISIONING, ACTIVATING, DEACTIVATING and
//! DEPROVISIONING. A stopped task stays visible for about an hour.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::container::{Container, Fate, fate, pull_error};
use super::service::{self, Notice};
use crate::account::{Account, Wake};
use crate::discovery::Registration;
use crate::elb::{self, TaskTarget};
use crate::fields::Document;

/// `lastStatus`, in the order of a task's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Status {
    Provisioning,
    Pending,
    Activating,
    Running,
    Deactivating,
    Stopping,
    Deprovisioning,
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Health {
    Unknown,
    Healthy,
    Unhealthy,
}

/// `stopCode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StopCode {
    TaskFailedToStart,
    EssentialContainerExited,
    UserInitiated,
    ServiceSchedulerInitiated,
    TerminationNotice,
}

/// The service and deployment that a task belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// Key of the service.
    pub(crate) service: String,
    /// Id of the deployment.
    pub(crate) deployment: String,
}

/// An elastic network interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Interface {
    pub(crate) attachment: String,
    pub(crate) subnet: String,
    pub(crate) eni: String,
    pub(crate) mac: String,
    pub(crate) address: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) region: String,
    /// Name of the cluster.
    pub(crate) cluster: String,
    pub(crate) id: String,
    pub(crate) arn: String,
    pub(crate) owner: Option<Owner>,
    /// ARN of the task definition.
    pub(crate) task_definition: String,
    pub(crate) family: String,
    pub(crate) cpu: Option<String>,
    pub(crate) memory: Option<String>,
    pub(crate) launch_type: String,
    pub(crate) platform_version: Option<String>,
    /// Id of the EC2 instance that it is on; none on Fargate.
    #[serde(default)]
    pub(crate) host: Option<String>,
    pub(crate) interface: Option<Interface>,
    /// Whether load balancers or service registries must let go of the task before it stops.
    pub(crate) drains: bool,
    /// Where load balancers send its requests while it runs.
    #[serde(default)]
    pub(crate) targets: Vec<TaskTarget>,
    /// Services of Cloud Map that it is an instance of while it runs.
    #[serde(default)]
    pub(crate) registrations: Vec<Registration>,
    pub(crate) group: String,
    pub(crate) started_by: Option<String>,
    pub(crate) overrides: Document,
    pub(crate) tags: Document,
    pub(crate) exec: bool,
    /// `clientToken` of the request that started it, and the identity of that request.
    #[serde(default)]
    pub(crate) request: Option<(String, String)>,
    pub(crate) containers: Vec<Container>,
    pub(crate) fate: Fate,
    pub(crate) status: Status,
    pub(crate) health: Health,
    pub(crate) stop: Option<(StopCode, String)>,
    /// When the next thing happens to the task by itself.
    pub(crate) due: Option<Timestamp>,
    /// Counts changes, as the `version` of task events.
    pub(crate) version: u64,
    pub(crate) created_at: Timestamp,
    pub(crate) connectivity_at: Option<Timestamp>,
    pub(crate) pull_started_at: Option<Timestamp>,
    pub(crate) pull_stopped_at: Option<Timestamp>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) stopping_at: Option<Timestamp>,
    pub(crate) execution_stopped_at: Option<Timestamp>,
    pub(crate) stopped_at: Option<Timestamp>,
}

impl Task {
    pub(crate) fn key(&self) -> String {
        format!("{}/{}/{}", self.region, self.cluster, self.id)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    fn has_interface(&self) -> bool {
        self.interface.is_some()
    }
}

/// Lives through the event that is due for a task.
pub(crate) fn advance(account: &mut Account, key: &str) {
    let stopped = |task: &Task| task.status == Status::Stopped;
    if account.tasks.get(key).is_some_and(stopped) {
        account.forget_task(key);
        return;
    }
    let Some(mut task) = account.tasks.take(key) else {
        return;
    };
    let notice = step(account, &mut task);
    put(account, task, notice);
}

/// Stops a task by request of a person.
pub(crate) fn stop_by_user(account: &mut Account, key: &str, reason: &str) {
    let Some(mut task) = account.tasks.take(key) else {
        return;
    };
    begin_stop(
        account,
        &mut task,
        StopCode::UserInitiated,
        reason.to_owned(),
    );
    put(account, task, Some(Notice::Changed));
}

/// Stops a task by decision of its service's scheduler, which needs no notice of it.
pub(crate) fn stop_by_scheduler(account: &mut Account, key: &str, reason: String) {
    let Some(mut task) = account.tasks.take(key) else {
        return;
    };
    begin_stop(
        account,
        &mut task,
        StopCode::ServiceSchedulerInitiated,
        reason,
    );
    put(account, task, None);
}

/// Ends a task whose instance is gone, at once.
pub(super) fn lose_host(account: &mut Account, key: &str, instance: &str) {
    let Some(mut task) = account.tasks.take(key) else {
        return;
    };
    if task.stop.is_none() {
        let reason = format!("Host EC2 (instance {instance}) terminated.");
        task.stop = Some((StopCode::TerminationNotice, reason));
        task.stopping_at = Some(account.now);
        deregister(account, &task);
    }
    task.execution_stopped_at = task.execution_stopped_at.or(Some(account.now));
    finish(account, &mut task);
    put(account, task, Some(Notice::Changed));
}

/// Puts a changed task back, with its next event and its news for the service.
fn put(account: &mut Account, mut task: Task, notice: Option<Notice>) {
    task.version += 1;
    let key = task.key();
    let owner = task.owner.clone();
    if let Some(due) = task.due {
        account.schedule(due, Wake::Task(key.clone()));
    }
    let stopped = task.status == Status::Stopped;
    account.tasks.put(key.clone(), task);
    if stopped {
        account.task_stopped(&key);
    }
    if let (Some(owner), Some(notice)) = (owner, notice) {
        service::notice(account, &owner, &key, notice);
    }
}

fn step(account: &mut Account, task: &mut Task) -> Option<Notice> {
    task.due = None;
    match task.status {
        Status::Provisioning => {
            task.connectivity_at = Some(account.now);
            begin_pull(account, task);
            None
        }
        Status::Pending => end_pull(account, task),
        Status::Activating => Some(begin_running(account, task)),
        Status::Running => run_on(account, task),
        Status::Deactivating => {
            task.status = Status::Stopping;
            task.due = Some(account.later(spread(task, 2, account.pace.stop)));
            None
        }
        Status::Stopping => {
            end_containers(account, task);
            Some(Notice::Changed)
        }
        Status::Deprovisioning => {
            finish(account, task);
            Some(Notice::Changed)
        }
        Status::Stopped => None,
    }
}

/// First status of a new task.
pub(crate) fn begin(account: &mut Account, mut task: Task) -> String {
    let key = task.key();
    if task.has_interface() {
        task.due = Some(account.later(account.pace.provision));
    } else {
        begin_pull(account, &mut task);
    }
    put(account, task, None);
    key
}

fn begin_pull(account: &Account, task: &mut Task) {
    task.status = Status::Pending;
    task.pull_started_at = Some(account.now);
    task.fate = fate(account, task);
    task.due = Some(account.later(spread(task, 0, account.pace.pull)));
}

/// `duration` and up to half as long again: tasks that begin together do not go in step. Taken from two
/// digits of the task's id, so that it is the same whenever it is asked.
fn spread(task: &Task, from: usize, duration: Duration) -> Duration {
    let digits = task.id.get(from..from + 2).unwrap_or("00");
    let more = u32::from_str_radix(digits, 16).unwrap_or(0);
    duration + duration * more / 512
}

fn end_pull(account: &mut Account, task: &mut Task) -> Option<Notice> {
    task.pull_stopped_at = Some(account.now);
    if let Fate::PullFails { container } = task.fate {
        let reason = task.containers.get(container).map(pull_error);
        let reason = reason.unwrap_or_default();
        if let Some(failed) = task.containers.get_mut(container) {
            failed.reason = Some(reason.clone());
        }
        begin_stop(account, task, StopCode::TaskFailedToStart, reason.clone());
        return Some(Notice::FailedToStart(reason));
    }
    if task.has_interface() {
        task.status = Status::Activating;
        task.due = Some(account.later(account.pace.start));
        return None;
    }
    Some(begin_running(account, task))
}

fn begin_running(account: &mut Account, task: &mut Task) -> Notice {
    task.status = Status::Running;
    task.started_at = Some(account.now);
    for target in &task.targets {
        elb::register_task(account, task, target);
    }
    let own = task.id.clone();
    for container in &mut task.containers {
        let number = account.draw_digits() % 10_000_000_000;
        container.runtime_id = Some(format!("{own}-{number:010}"));
    }
    let next = match task.fate {
        Fate::Exits { .. } => account.pace.exit,
        _ => account.pace.health,
    };
    task.due = Some(account.later(next));
    Notice::Started
}

/// What happens to a RUNNING task by itself.
fn run_on(account: &mut Account, task: &mut Task) -> Option<Notice> {
    match task.fate {
        Fate::Exits { container, code } => Some(exit(account, task, container, code)),
        Fate::ExitsLater { container, code } if task.health == Health::Healthy => {
            Some(exit(account, task, container, code))
        }
        Fate::Unhealthy if service::grace_end(account, task) > account.now => {
            task.due = Some(service::grace_end(account, task));
            None
        }
        Fate::Unhealthy => {
            task.health = Health::Unhealthy;
            Some(Notice::Unhealthy)
        }
        Fate::ExitsLater { .. } => {
            task.health = Health::Healthy;
            task.due = Some(account.later(account.pace.exit_later));
            Some(Notice::Healthy)
        }
        Fate::Runs | Fate::PullFails { .. } => {
            task.health = Health::Healthy;
            Some(Notice::Healthy)
        }
    }
}

fn exit(account: &mut Account, task: &mut Task, container: usize, code: i32) -> Notice {
    if let Some(ended) = task.containers.get_mut(container) {
        ended.exit_code = Some(code);
    }
    task.stop = Some((
        StopCode::EssentialContainerExited,
        "Essential container in task exited".to_owned(),
    ));
    task.stopping_at = Some(account.now);
    deregister(account, task);
    let was_healthy = task.health == Health::Healthy;
    end_containers(account, task);
    if was_healthy {
        Notice::Changed
    } else {
        Notice::Exited
    }
}

/// Begins to stop a task that is not stopping yet.
fn begin_stop(account: &mut Account, task: &mut Task, code: StopCode, reason: String) {
    if task.is_stopping() {
        return;
    }
    task.stop = Some((code, reason));
    task.stopping_at = Some(account.now);
    let draining = deregister(account, task);
    let (status, after): (Status, Duration) = match task.status {
        Status::Running if !draining.is_zero() => (Status::Deactivating, draining),
        Status::Running if task.drains || task.launch_type == "FARGATE" => {
            (Status::Deactivating, account.pace.drain)
        }
        Status::Running | Status::Activating => {
            (Status::Stopping, spread(task, 2, account.pace.stop))
        }
        _ if task.has_interface() => (Status::Deprovisioning, account.pace.deprovision),
        _ => (Status::Stopping, Duration::ZERO),
    };
    task.status = status;
    task.due = Some(account.later(after));
}

/// Takes the task out of its target groups. Gives how long the slowest of them drains.
fn deregister(account: &mut Account, task: &Task) -> Duration {
    let key = task.key();
    let targets = task.targets.iter();
    let delays = targets.filter_map(|target| elb::deregister_task(account, &key, target));
    delays.max().unwrap_or_default()
}

/// The containers have ended; those that were only told to stop did so in order.
fn end_containers(account: &mut Account, task: &mut Task) {
    task.execution_stopped_at = Some(account.now);
    for container in &mut task.containers {
        if container.runtime_id.is_some() && container.exit_code.is_none() {
            container.exit_code = Some(0);
        }
    }
    if task.has_interface() {
        task.status = Status::Deprovisioning;
        task.due = Some(account.later(account.pace.deprovision));
    } else {
        finish(account, task);
    }
}

fn finish(account: &Account, task: &mut Task) {
    task.status = Status::Stopped;
    task.stopped_at = Some(account.now);
    task.due = Some(account.later(account.pace.keep_stopped));
}
