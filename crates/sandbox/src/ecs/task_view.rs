//! Tasks as the wire shows them.

use serde_json::{Value, json};

use super::cluster::split_resource;
use super::task::{Health, Interface, Status, Task};
use super::{cluster, placement, tag};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, epoch};

/// Most tasks of one `DescribeTasks`.
const MOST: usize = 100;

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let cluster = cluster::find(account, caller, request)?;
    let (region, cluster) = (cluster.region.clone(), cluster.name.clone());
    let names = request.texts("tasks")?;
    if names.is_empty() {
        return Err(ApiError::invalid_parameter("Tasks cannot be empty."));
    }
    if names.len() > MOST {
        return Err(ApiError::invalid_parameter(format!(
            "Tasks can have at most {MOST} items."
        )));
    }
    let tags = request.texts("include")?.contains(&"TAGS");
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for name in names {
        let (_, id) = split_resource(name, "task");
        match account.tasks.get(&format!("{region}/{cluster}/{id}")) {
            Some(task) => found.push(view(account, task, tags)),
            None => failures.push(json!({
                "arn": format!("arn:aws:ecs:{region}:{}:task/{cluster}/{id}", account.id),
                "reason": "MISSING",
            })),
        }
    }
    Ok(json!({"tasks": found, "failures": failures}))
}

pub(super) fn view(account: &Account, task: &Task, tags: bool) -> Value {
    let mut view = Document::new();
    let mut set = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    set("taskArn", json!(task.arn));
    let cluster_arn = format!(
        "arn:aws:ecs:{}:{}:cluster/{}",
        task.region, account.id, task.cluster
    );
    set("clusterArn", json!(cluster_arn));
    set("taskDefinitionArn", json!(task.task_definition));
    set("lastStatus", json!(task.status));
    let desired = if task.is_stopping() {
        "STOPPED"
    } else {
        "RUNNING"
    };
    set("desiredStatus", json!(desired));
    set("launchType", json!(task.launch_type));
    set("group", json!(task.group));
    set("healthStatus", json!(shown_health(task)));
    set("version", json!(task.version));
    set("overrides", overrides(task));
    set("attributes", json!([]));
    set("inferenceAccelerators", json!([]));
    set("enableExecuteCommand", json!(task.exec));
    let interfaces = task.interface.as_ref();
    set(
        "attachments",
        interfaces.map_or(json!([]), |eni| json!([attachment(task, eni)])),
    );
    set("containers", containers(task));
    let host = task.host.as_deref();
    let zone = host.and_then(|host| Some(account.instance(host)?.zone.clone()));
    let zone = zone.unwrap_or_else(|| format!("{}a", task.region));
    set("availabilityZone", json!(zone));
    if let Some(host) = host {
        let arn = placement::arn(account, &task.region, &task.cluster, host);
        set("containerInstanceArn", json!(arn));
    }
    set(
        "tags",
        if tags {
            tag::view(&task.tags)
        } else {
            json!([])
        },
    );
    for (name, value) in optional(task) {
        if let Some(value) = value {
            set(name, value);
        }
    }
    Value::Object(view)
}

/// Members that a task has only from some point of its life on, or only on Fargate.
fn optional(task: &Task) -> [(&'static str, Option<Value>); 16] {
    [
        ("startedBy", task.started_by.as_ref().map(|by| json!(by))),
        ("cpu", task.cpu.as_ref().map(|cpu| json!(cpu))),
        ("memory", task.memory.as_ref().map(|memory| json!(memory))),
        (
            "connectivity",
            task.connectivity_at.map(|_| json!("CONNECTED")),
        ),
        ("connectivityAt", task.connectivity_at.map(epoch)),
        ("createdAt", Some(epoch(task.created_at))),
        ("pullStartedAt", task.pull_started_at.map(epoch)),
        ("pullStoppedAt", task.pull_stopped_at.map(epoch)),
        ("startedAt", task.started_at.map(epoch)),
        ("stoppingAt", task.stopping_at.map(epoch)),
        ("executionStoppedAt", task.execution_stopped_at.map(epoch)),
        ("stoppedAt", task.stopped_at.map(epoch)),
        ("stopCode", task.stop.as_ref().map(|(code, _)| json!(code))),
        (
            "stoppedReason",
            task.stop.as_ref().map(|(_, reason)| json!(reason)),
        ),
        (
            "platformVersion",
            task.platform_version.as_ref().map(|version| json!(version)),
        ),
        (
            "platformFamily",
            task.platform_version.as_ref().map(|_| json!("Linux")),
        ),
    ]
}

/// Without health checks of its own AWS knows nothing of a task's health.
fn shown_health(task: &Task) -> Health {
    if task.containers.iter().any(|one| one.spec.has_health_check) {
        task.health
    } else {
        Health::Unknown
    }
}

fn overrides(task: &Task) -> Value {
    let mut overrides = task.overrides.clone();
    let names = task
        .containers
        .iter()
        .map(|one| json!({"name": one.spec.name}));
    crate::fields::default_to(&mut overrides, "containerOverrides", names.collect());
    crate::fields::default_to(&mut overrides, "inferenceAcceleratorOverrides", json!([]));
    Value::Object(overrides)
}

fn containers(task: &Task) -> Value {
    let status = match task.status {
        Status::Provisioning | Status::Pending | Status::Activating => "PENDING",
        Status::Running | Status::Deactivating | Status::Stopping => "RUNNING",
        Status::Deprovisioning | Status::Stopped => "STOPPED",
    };
    let health = match task.health {
        Health::Unknown => "UNKNOWN",
        Health::Healthy => "HEALTHY",
        Health::Unhealthy => "UNHEALTHY",
    };
    let net = task
        .interface
        .as_ref()
        .filter(|_| task.connectivity_at.is_some());
    let net = net.map_or(
        json!([]),
        |eni| json!([{"attachmentId": eni.attachment, "privateIpv4Address": eni.address}]),
    );
    let all = task.containers.iter();
    all.map(|one| one.view(&task.arn, status, health, net.clone()))
        .collect()
}

fn attachment(task: &Task, eni: &Interface) -> Value {
    let status = match task.status {
        Status::Provisioning => "ATTACHING",
        Status::Deprovisioning => "DETACHING",
        Status::Stopped => "DELETED",
        _ => "ATTACHED",
    };
    let mut details = vec![json!({"name": "subnetId", "value": eni.subnet})];
    if task.status != Status::Provisioning {
        details.extend([
            json!({"name": "networkInterfaceId", "value": eni.eni}),
            json!({"name": "macAddress", "value": eni.mac}),
            json!({"name": "privateIPv4Address", "value": eni.address}),
        ]);
    }
    json!({
        "id": eni.attachment,
        "type": "ElasticNetworkInterface",
        "status": status,
        "details": details,
    })
}
