//! `serviceRegistries` of ECS services: which they may name, and the tasks that are instances for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::instance::{Health, Instance};
use super::service::{self, Service};
use crate::account::Account;
use crate::ecs::task::{Health as TaskHealth, Status, Task};
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Where a task is registered while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registration {
    /// Id of the service of Cloud Map.
    service: String,
    /// Port of SRV records.
    port: Option<i64>,
}

/// Checks that the registries of a service exist and are named as their records need it.
pub(crate) fn check(
    account: &Account,
    region: &str,
    (settings, awsvpc): (Fields<'_>, bool),
) -> Result<(), ApiError> {
    let registries = settings.objects("serviceRegistries")?;
    if registries.len() > 1 {
        return Err(ApiError::invalid_parameter(
            "serviceRegistries can have at most 1 items.",
        ));
    }
    for registry in registries {
        let registry = Fields(registry);
        let arn = registry.text("registryArn")?.unwrap_or_default();
        let found = named(account, region, arn)?;
        let port = registry.integer("port")?;
        let container = registry.text("containerName")?;
        let container_port = registry.integer("containerPort")?;
        if port.is_some() && (container.is_some() || container_port.is_some()) {
            return Err(ApiError::invalid_parameter(
                "Specify a value for either 'port' or the 'containerName' and 'containerPort' combination, but not \
                 both. Remove one and retry.",
            ));
        }
        let srv = found.records().contains(&"SRV");
        if port.is_some() && !srv {
            return Err(ApiError::invalid_parameter(
                "A port was provided but is not required by the specified service registry",
            ));
        }
        let by_container = container.is_some() && container_port.is_some();
        if srv && port.is_none() && !by_container {
            return Err(ApiError::invalid_parameter(
                "A port is required by the specified service registry: specify 'port', or 'containerName' and \
                 'containerPort'.",
            ));
        }
        if !awsvpc && !srv && !found.records().is_empty() {
            return Err(ApiError::invalid_parameter(
                "The specified service registry needs SRV records for tasks that do not use the awsvpc network mode.",
            ));
        }
    }
    Ok(())
}

fn named<'a>(account: &'a Account, region: &str, arn: &str) -> Result<&'a Service, ApiError> {
    let prefix = format!("arn:aws:servicediscovery:{region}:{}:service/", account.id);
    if !arn.starts_with("arn:") || !arn.contains(":service/") {
        return Err(ApiError::invalid_parameter(format!(
            "The format of the supplied service registry ARN is invalid: {arn}."
        )));
    }
    let found = arn.strip_prefix(&prefix);
    let found = found.and_then(|id| service::find(account, region, id).ok());
    found.ok_or_else(|| {
        ApiError::invalid_parameter(format!("The service registry {arn} does not exist."))
    })
}

/// Where a task with these settings of its deployment is registered.
pub(crate) fn registrations(settings: &Document) -> Vec<Registration> {
    let list = settings.get("serviceRegistries").and_then(Value::as_array);
    let each = list.into_iter().flatten().filter_map(|registry| {
        let arn = registry.get("registryArn")?.as_str()?;
        let number = |name: &str| registry.get(name).and_then(Value::as_i64);
        Some(Registration {
            service: arn.rsplit('/').next()?.to_owned(),
            port: number("port").or(number("containerPort")),
        })
    });
    each.collect()
}

/// The tasks that are instances of a service: those that run and were not told to stop.
pub(super) fn tasks(account: &Account, service: &Service) -> BTreeMap<String, Instance> {
    let prefix = format!("{}/", service.region);
    let tasks = account.tasks.under(&prefix);
    let tasks = tasks.filter_map(|(_, task)| {
        let mut own = task.registrations.iter();
        let own = own.find(|one| one.service == service.id)?;
        let runs = task.status == Status::Running && !task.is_stopping();
        runs.then(|| (task.id.clone(), instance(service, task, own)))
    });
    tasks.collect()
}

/// What ECS tells of a task (developer guide, "Use service discovery").
fn instance(service: &Service, task: &Task, own: &Registration) -> Instance {
    let mut attributes = BTreeMap::new();
    let mut say = |name: &str, value: String| attributes.insert(name.to_owned(), value);
    if let Some(interface) = &task.interface {
        say("AWS_INSTANCE_IPV4", interface.address.clone());
    }
    if let Some(port) = own.port {
        say("AWS_INSTANCE_PORT", port.to_string());
    }
    say("AVAILABILITY_ZONE", format!("{}a", task.region));
    say("REGION", task.region.clone());
    say("ECS_CLUSTER_NAME", task.cluster.clone());
    say("ECS_TASK_DEFINITION_FAMILY", task.family.clone());
    if let Some(name) = task.group.strip_prefix("service:") {
        say("ECS_SERVICE_NAME", name.to_owned());
    }
    let health = match (service.has_custom_health(), task.health) {
        (false, _) => Health::Unknown,
        (true, TaskHealth::Unhealthy) => Health::Unhealthy,
        (true, _) => Health::Healthy,
    };
    if service.has_custom_health() {
        say("AWS_INIT_HEALTH_STATUS", "HEALTHY".to_owned());
    }
    Instance { attributes, health }
}
