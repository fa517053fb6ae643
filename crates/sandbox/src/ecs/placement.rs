//! Container instances, and which of them a task is placed on. An EC2 instance is one of the cluster that its user data
//! names (`ECS_CLUSTER`) while it runs. There is memory and CPU for every task; ports of the host there are once each.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::capacity;
use super::launch::{launch_type, providers};
use super::service;
use super::task::{self, Status, Task};
use super::task_definition::TaskDefinition;
use crate::account::Account;
use crate::ec2::instance::{Instance, State};
use crate::fields::Document;

/// Why a task was placed nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unplaced {
    NoInstances {
        /// Whether a capacity provider was to have some.
        of_provider: bool,
    },
    /// Every instance has something that is in the way; this one is as good as any.
    Occupied {
        /// Id of the container instance.
        closest: String,
        port: bool,
    },
}

impl Unplaced {
    /// As `RunTask` says it.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::NoInstances { of_provider } => {
                let what = if *of_provider {
                    "capacity provider"
                } else {
                    "cluster"
                };
                format!("No Container Instances were found in your {what}.")
            }
            Self::Occupied { port: true, .. } => "RESOURCE:PORTS".to_owned(),
            Self::Occupied { .. } => "MemberOf placement constraint unsatisfied.".to_owned(),
        }
    }

    /// As a failure of `RunTask` says it.
    pub(super) fn failure(&self, account: &Account, wanted: Wanted<'_>) -> Value {
        let arn = match self {
            Self::NoInstances { .. } => None,
            Self::Occupied { closest, .. } => Some(format!(
                "arn:aws:ecs:{}:{}:container-instance/{}/{closest}",
                wanted.region, account.id, wanted.cluster
            )),
        };
        json!({"arn": arn, "reason": self.reason()})
    }

    /// As an event of a service says it ("Viewing Amazon ECS service event messages", developer guide).
    pub(super) fn event(&self) -> String {
        let why = match self {
            Self::NoInstances { .. } => format!("Reason: {}", self.reason()),
            Self::Occupied { closest, port } => {
                let what = match port {
                    true => "is already using a port required by your task.",
                    false => {
                        "encountered error \"DistinctInstance placement constraint unsatisfied.\"."
                    }
                };
                format!("The closest matching (container-instance {closest}) {what}")
            }
        };
        format!(
            "was unable to place a task because no container instance met all of its requirements. {why} For more \
             information, see the Troubleshooting section of the Amazon ECS Developer Guide."
        )
    }
}

/// Id of the container instance that an EC2 instance is.
pub(super) fn id(instance: &str) -> String {
    let digest = Sha256::digest(format!("container-instance/{instance}"));
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    hex[..32].to_owned()
}

pub(super) fn arn(account: &Account, region: &str, cluster: &str, instance: &str) -> String {
    format!(
        "arn:aws:ecs:{region}:{}:container-instance/{cluster}/{}",
        account.id,
        id(instance)
    )
}

/// The container instances of a cluster.
pub(super) fn of_cluster<'a>(
    account: &'a Account,
    region: &str,
    cluster: &str,
) -> Vec<&'a Instance> {
    let all = account.instances();
    let own = all.filter(|row| {
        row.region == region
            && row.state == State::Running
            && row.cluster.as_deref() == Some(cluster)
    });
    own.collect()
}

/// Tasks on an instance that have not stopped.
pub(super) fn on<'a>(account: &'a Account, prefix: &str, instance: &str) -> Vec<&'a Task> {
    let tasks = account.tasks.under(prefix).map(|(_, task)| task);
    let own = tasks.filter(|task| task.host.as_deref() == Some(instance));
    own.filter(|task| task.status < Status::Stopped).collect()
}

/// What is to be placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) region: &'a str,
    pub(super) cluster: &'a str,
    pub(super) definition: &'a TaskDefinition,
    pub(super) settings: &'a Document,
    /// `group` of the task.
    pub(super) group: &'a str,
    /// Whether no instance has two tasks of the group.
    pub(super) apart: bool,
}

/// Whether `placementConstraints` keep tasks of one group on instances of their own.
pub(super) fn is_apart(document: &Document) -> bool {
    let constraints = document
        .get("placementConstraints")
        .and_then(Value::as_array);
    let mut constraints = constraints.into_iter().flatten();
    constraints.any(|one| one["type"] == "distinctInstance")
}

/// The EC2 instance that a task goes to, the one with the fewest tasks; none on Fargate.
pub(super) fn choose(account: &Account, wanted: Wanted<'_>) -> Result<Option<String>, Unplaced> {
    if launch_type(wanted.settings) == "FARGATE" {
        return Ok(None);
    }
    let Wanted {
        region, cluster, ..
    } = wanted;
    let groups: Vec<&str> = providers(wanted.settings)
        .filter_map(|name| capacity::group_of(account, region, name))
        .collect();
    let mut hosts = of_cluster(account, region, cluster);
    if !groups.is_empty() {
        hosts.retain(|host| groups.contains(&host.group.as_str()));
    }
    let prefix = format!("{region}/{cluster}/");
    let hosts = hosts
        .into_iter()
        .map(|host| (on(account, &prefix, &host.id), host));
    let mut hosts: Vec<(Vec<&Task>, &Instance)> = hosts.collect();
    hosts.sort_by_key(|(tasks, host)| (tasks.len(), host.id.clone()));
    let Some((_, first)) = hosts.first() else {
        return Err(Unplaced::NoInstances {
            of_provider: !groups.is_empty(),
        });
    };
    let ports = host_ports(wanted.definition);
    let taken = |tasks: &[&Task]| {
        let used = tasks.iter().flat_map(|task| task_ports(account, task));
        used.into_iter().any(|port| ports.contains(&port))
    };
    let same =
        |tasks: &[&Task]| wanted.apart && tasks.iter().any(|task| task.group == wanted.group);
    let free = hosts
        .iter()
        .find(|(tasks, _)| !taken(tasks) && !same(tasks));
    match free {
        Some((_, host)) => Ok(Some(host.id.clone())),
        None => Err(Unplaced::Occupied {
            closest: id(&first.id),
            port: hosts.iter().any(|(tasks, _)| taken(tasks)),
        }),
    }
}

/// Ports of the instance that a task takes for itself. With a network interface of its own it takes none.
fn host_ports(definition: &TaskDefinition) -> Vec<i64> {
    if definition.is_awsvpc() {
        return Vec::new();
    }
    let one_port = definition.network_mode == "host";
    let ports = definition.containers.iter().flat_map(|one| &one.ports);
    let ports = ports.map(|port| if one_port { port.container } else { port.host });
    ports.filter(|port| *port != 0).collect()
}

fn task_ports(account: &Account, task: &Task) -> Vec<i64> {
    let found = super::task_definition::find(account, &task.region, &task.task_definition);
    found.map(host_ports).unwrap_or_default()
}

/// An instance came or went: tasks on one that is gone are gone too, and services of its cluster look again.
pub(crate) fn changed(account: &mut Account, instance: &str) {
    let Some(row) = account.instance(instance) else {
        return;
    };
    let Some(cluster) = row.cluster.clone() else {
        return;
    };
    let (prefix, gone) = (
        format!("{}/{cluster}/", row.region),
        row.state != State::Running,
    );
    if gone {
        let lost = on(account, &prefix, instance).into_iter().map(Task::key);
        let lost: Vec<String> = lost.collect();
        for key in lost {
            task::lose_host(account, &key, instance);
        }
    }
    let services = account.services.under(&prefix);
    let services: Vec<String> = services.map(|(key, _)| key.to_owned()).collect();
    for key in services {
        if let Some(row) = account.services.get_mut(&key)
            && row.throttles == 0
        {
            row.throttled_until = None;
        }
        service::wake(account, &key);
    }
}
