//! Services: what they are, and how they hear of their tasks.

use std::collections::{BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::deployment::{Deployment, DeploymentConfiguration};
use super::event::{self, Event};
use super::placement::Unplaced;
use super::task::{Owner, Task};
use crate::account::{Account, Wake};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Doublings of the throttle's delay after which it is at its longest in any pace.
const MOST_DOUBLINGS: u32 = 20;
/// Delays in a row after which a service says that it cannot start tasks.
const TOLD_AFTER: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum ServiceStatus {
    Active,
    Draining,
    Inactive,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Service {
    pub(crate) region: String,
    /// Name of the cluster.
    pub(crate) cluster: String,
    pub(crate) name: String,
    pub(crate) arn: String,
    pub(crate) cluster_arn: String,
    pub(crate) status: ServiceStatus,
    pub(crate) desired: i64,
    /// What new deployments take over: see [`Deployment::settings`].
    pub(crate) settings: Document,
    /// The other members of the request, as they came.
    pub(crate) document: Document,
    /// PRIMARY first, then from new to old.
    pub(crate) deployments: Vec<Deployment>,
    /// Where an automatic rollback goes back to.
    pub(crate) last_completed: Option<Deployment>,
    /// Newest first.
    pub(crate) events: VecDeque<Event>,
    /// Keys of the tasks that have not stopped.
    pub(crate) live: BTreeSet<String>,
    /// When the scheduler looks at the service next.
    pub(crate) due: Option<Timestamp>,
    /// No task starts before.
    pub(crate) throttled_until: Option<Timestamp>,
    /// Delays in a row, each twice as long as the one before.
    pub(crate) throttles: u32,
    /// Whether the steady state was announced and nothing has changed since.
    pub(crate) steady: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) created_by: String,
    pub(crate) tags: Document,
    /// Digest of the request that created the service, client token included.
    pub(crate) request_digest: String,
}

/// News of a task for its service.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    /// RUNNING, and not known to be healthy yet.
    Started,
    Healthy,
    /// Found unhealthy while RUNNING.
    Unhealthy,
    /// Ended by itself before it was healthy.
    Exited,
    /// Never got to RUNNING, with the reason.
    FailedToStart(String),
    /// Anything else that the scheduler should look at.
    Changed,
}

impl Service {
    pub(crate) fn key(&self) -> String {
        format!("{}/{}/{}", self.region, self.cluster, self.name)
    }

    pub(crate) fn is_active(&self) -> bool {
        self.status == ServiceStatus::Active
    }

    pub(crate) fn is_inactive(&self) -> bool {
        self.status == ServiceStatus::Inactive
    }

    pub(crate) fn primary(&self) -> Option<&Deployment> {
        self.deployments.iter().find(|one| one.is_primary())
    }

    pub(crate) fn primary_mut(&mut self) -> Option<&mut Deployment> {
        self.deployments.iter_mut().find(|one| one.is_primary())
    }

    /// What `deploymentConfiguration` says; it was checked when it came in.
    pub(crate) fn configuration(&self) -> Result<DeploymentConfiguration, ApiError> {
        DeploymentConfiguration::read(Fields(&self.document).object("deploymentConfiguration")?)
    }

    /// ARNs and container ports of the target groups.
    pub(crate) fn target_groups(&self) -> Vec<(String, i64)> {
        let list = self.settings.get("loadBalancers").and_then(Value::as_array);
        let each = list.into_iter().flatten().filter_map(|one| {
            let arn = one.get("targetGroupArn").and_then(Value::as_str)?;
            let port = one.get("containerPort").and_then(Value::as_i64);
            Some((arn.to_owned(), port.unwrap_or(0)))
        });
        each.collect()
    }

    /// Whether something outside must let go of a task before it stops.
    pub(crate) fn drains(&self) -> bool {
        ["loadBalancers", "serviceRegistries"].iter().any(|name| {
            let list = self.settings.get(*name).and_then(Value::as_array);
            list.is_some_and(|list| !list.is_empty())
        })
    }

    /// Lets tasks start at once again.
    pub(crate) fn unthrottle(&mut self) {
        self.throttled_until = None;
        self.throttles = 0;
    }
}

/// Sees to it that the scheduler looks at the service soon.
pub(crate) fn wake(account: &mut Account, key: &str) {
    let due = account.later(account.pace.scheduler);
    wake_at(account, key, due);
}

/// Sees to it that the scheduler looks at the service at `at` at the latest.
pub(crate) fn wake_at(account: &mut Account, key: &str, at: Timestamp) {
    let Some(service) = account.services.get_mut(key) else {
        return;
    };
    let due = service.due.map_or(at, |due| due.min(at));
    service.due = Some(due);
    account.schedule(due, Wake::Service(key.to_owned()));
}

/// Takes in the news of a task.
pub(crate) fn notice(account: &mut Account, owner: &Owner, task: &str, notice: Notice) {
    let Some(mut service) = account.services.take(&owner.service) else {
        return;
    };
    let stopped = account
        .tasks
        .get(task)
        .is_none_or(|task| task.stopped_at.is_some());
    if stopped {
        service.live.remove(task);
    }
    let deployment = owner.deployment.as_str();
    match &notice {
        Notice::Started => {
            for group in groups_of(account, task) {
                let message = if account.target_group(&group).is_some() {
                    event::registered(&group)
                } else {
                    event::failed_to_register(&group)
                };
                event::push(account, &mut service, &message);
            }
        }
        Notice::Healthy => count_healthy(&mut service, deployment),
        Notice::Unhealthy => {
            let groups = service.target_groups();
            let group = groups.first().map(|(arn, port)| (arn.as_str(), *port));
            let message = event::unhealthy(task, group);
            event::push(account, &mut service, &message);
            count_failure(&mut service, deployment);
        }
        Notice::Exited => count_failure(&mut service, deployment),
        Notice::FailedToStart(reason) => {
            count_failure(&mut service, deployment);
            event::push(account, &mut service, &event::unable_to_place(reason));
            throttle(account, &mut service, deployment);
        }
        Notice::Changed => {}
    }
    account.services.put(owner.service.clone(), service);
    wake(account, &owner.service);
}

/// Target groups that a task takes requests from.
fn groups_of(account: &Account, task: &str) -> Vec<String> {
    let targets = account.tasks.get(task).map(|task| &task.targets);
    let targets = targets.into_iter().flatten();
    targets.map(|target| target.group.clone()).collect()
}

/// Until when a task that is found unhealthy is let be: `healthCheckGracePeriodSeconds` of its service,
/// which needs a load balancer.
pub(crate) fn grace_end(account: &Account, task: &Task) -> Timestamp {
    let owner = task.owner.as_ref();
    let service = owner.and_then(|owner| account.services.get(&owner.service));
    let seconds = service.and_then(|service| {
        let seconds = service.document.get("healthCheckGracePeriodSeconds");
        seconds.and_then(Value::as_i64)
    });
    let grace = SignedDuration::from_secs(seconds.unwrap_or(0));
    let start = task.started_at.filter(|_| !task.targets.is_empty());
    start
        .and_then(|start| start.checked_add(grace).ok())
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

fn count_failure(service: &mut Service, deployment: &str) {
    let found = service
        .deployments
        .iter_mut()
        .find(|one| one.id == deployment);
    if let Some(deployment) = found
        && deployment.is_in_progress()
    {
        deployment.failed_tasks += 1;
    }
}

/// Takes in that so many tasks of the PRIMARY deployment could not even be launched: each counts as failed
/// (`failedTasks`, "Deployment", ECS API reference).
pub(super) fn cannot_launch(account: &mut Account, service: &mut Service, tasks: i64, why: &str) {
    let Some(deployment) = service.primary().map(|one| one.id.clone()) else {
        return;
    };
    for _ in 0..tasks {
        count_failure(service, &deployment);
    }
    event::push(account, service, &event::failed_to_launch(why));
    throttle(account, service, &deployment);
}

/// Takes in that a task could not be placed. That is no failure of the task: it is tried again after a while, and as soon as
/// an instance comes.
pub(super) fn cannot_place(account: &mut Account, service: &mut Service, why: &Unplaced) {
    event::push(account, service, &why.event());
    service.throttled_until = Some(account.later(account.pace.throttle));
}

fn count_healthy(service: &mut Service, deployment: &str) {
    let resets = match service.configuration() {
        Ok(configuration) => configuration.breaker.is_none_or(|breaker| breaker.resets),
        Err(_) => true,
    };
    let of_primary = service.primary().is_some_and(|one| one.id == deployment);
    if of_primary {
        service.unthrottle();
    }
    let found = service
        .deployments
        .iter_mut()
        .find(|one| one.id == deployment);
    if let Some(deployment) = found.filter(|_| resets) {
        deployment.failed_tasks = 0;
    }
}

/// Tasks that fail together count as one failure for the delay.
fn throttle(account: &mut Account, service: &mut Service, deployment: &str) {
    let of_primary = service.primary().is_some_and(|one| one.id == deployment);
    let in_force = service
        .throttled_until
        .is_some_and(|until| until > account.now);
    if !of_primary || in_force {
        return;
    }
    let doublings = service.throttles.min(MOST_DOUBLINGS);
    let delay = account.pace.throttle.saturating_mul(1 << doublings);
    service.throttled_until = Some(account.later(delay.min(account.pace.throttle_max)));
    service.throttles = service.throttles.saturating_add(1);
    if service.throttles == TOLD_AFTER {
        event::push(account, service, event::UNABLE_TO_START);
    }
}

/// The service that a request names by `service` (name or ARN) in its cluster, active or not.
pub(crate) fn find_key(caller: &Caller, cluster: &str, name_or_arn: &str) -> String {
    let (own_cluster, name) = super::cluster::split_resource(name_or_arn, "service");
    format!(
        "{}/{}/{name}",
        caller.region,
        own_cluster.unwrap_or(cluster)
    )
}
