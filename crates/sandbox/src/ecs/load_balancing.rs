//! How services and load balancers belong together: which target groups a service may name, and where its
//! tasks are registered.

use serde_json::Value;

use super::task::Task;
use super::task_definition::{ContainerSpec, Port, TaskDefinition};
use crate::account::Account;
use crate::elb::{self, TaskTarget};
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Most target groups of a service (Amazon ECS API reference, `CreateService`).
const MOST: usize = 5;
/// Ports that an instance gives to containers that ask for none: from, how many.
const EPHEMERAL: (i64, i64) = (32_768, 28_232);

/// Checks that the task definition has the containers and ports that `loadBalancers` names.
pub(super) fn check_ports(
    definition: &TaskDefinition,
    settings: Fields<'_>,
) -> Result<(), ApiError> {
    let balancers = settings.objects("loadBalancers")?;
    if balancers.len() > MOST {
        return Err(ApiError::invalid_parameter(format!(
            "loadBalancers can have at most {MOST} items."
        )));
    }
    for balancer in balancers {
        let balancer = Fields(balancer);
        let Some(name) = balancer.text("containerName")? else {
            return Err(ApiError::invalid_parameter(
                "A container name must be specified for load balancers.",
            ));
        };
        let container = definition.containers.iter().find(|one| one.name == name);
        let Some(container) = container else {
            return Err(ApiError::invalid_parameter(format!(
                "The container {name} does not exist in the task definition."
            )));
        };
        let Some(port) = balancer.integer("containerPort")? else {
            return Err(ApiError::invalid_parameter(
                "A container port must be specified for load balancers.",
            ));
        };
        if mapping(container, port).is_none() {
            return Err(ApiError::invalid_parameter(format!(
                "The container {name} did not have a container port {port} defined."
            )));
        }
    }
    Ok(())
}

/// Checks that the target groups that `loadBalancers` names exist, are on a load balancer, and take tasks of
/// the definition's network mode.
pub(super) fn check_groups(
    account: &Account,
    definition: &TaskDefinition,
    settings: Fields<'_>,
) -> Result<(), ApiError> {
    for balancer in settings.objects("loadBalancers")? {
        let balancer = Fields(balancer);
        let Some(arn) = balancer.text("targetGroupArn")? else {
            let message = match balancer.text("loadBalancerName")? {
                Some(name) => format!("The load balancer {name} does not exist."),
                None => "A target group ARN or a load balancer name must be specified.".to_owned(),
            };
            return Err(ApiError::invalid_parameter(message));
        };
        let group = account.target_group(arn).ok_or_else(|| {
            // What ECS says of any target group that it cannot look at.
            ApiError::invalid_parameter(
                "Unable to assume role and validate the specified targetGroupArn. Please verify that \
                 the ECS service role being passed has the proper permissions.",
            )
        })?;
        if elb::load_balancer_of(account, arn).is_none() {
            return Err(ApiError::invalid_parameter(format!(
                "The target group with targetGroupArn {arn} does not have an associated load balancer."
            )));
        }
        let wanted = if definition.is_awsvpc() {
            "ip"
        } else {
            "instance"
        };
        if group.target_type != wanted {
            return Err(ApiError::invalid_parameter(format!(
                "The provided target group {arn} has target type {}, which is incompatible with the {} \
                 network mode specified in the task definition.",
                group.target_type, definition.network_mode
            )));
        }
    }
    Ok(())
}

fn mapping(container: &ContainerSpec, port: i64) -> Option<Port> {
    let mut ports = container.ports.iter();
    ports.find(|known| known.container == port).copied()
}

/// Where a task with these settings takes requests.
pub(super) fn targets(settings: &Document, task: &Task) -> Vec<TaskTarget> {
    let list = settings.get("loadBalancers").and_then(Value::as_array);
    let each = list.into_iter().flatten().filter_map(|balancer| {
        let group = balancer.get("targetGroupArn")?.as_str()?;
        let name = balancer.get("containerName")?.as_str()?;
        let port = balancer.get("containerPort")?.as_i64()?;
        let (id, port) = match &task.interface {
            Some(interface) => (interface.address.clone(), port),
            None => on_instance(task, name, port),
        };
        Some(TaskTarget {
            group: group.to_owned(),
            id,
            port,
        })
    });
    each.collect()
}

/// Instance and port of a task without an address of its own. Every task is on an instance of its own.
fn on_instance(task: &Task, container: &str, port: i64) -> (String, i64) {
    let digits = task.id.get(..17).unwrap_or(&task.id);
    let mut containers = task.containers.iter().map(|one| &one.spec);
    let container = containers.find(|one| one.name == container);
    let mapping = container.and_then(|one| mapping(one, port));
    let host = mapping.map_or(0, |mapping| mapping.host);
    let (first, number) = EPHEMERAL;
    let drawn = i64::from_str_radix(digits.get(..8).unwrap_or("0"), 16).unwrap_or(0);
    let host = if host > 0 {
        host
    } else {
        first + drawn % number
    };
    (format!("i-{digits}"), host)
}

/// Whether every load balancer of a task found it healthy.
pub(super) fn is_healthy(account: &Account, task: &Task) -> bool {
    let key = task.key();
    let mut targets = task.targets.iter();
    targets.all(|target| elb::is_healthy(account, &key, target))
}
