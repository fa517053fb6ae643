//! What an ECS service definition must say to be deployed blue-green.

use serde_json::Value;
use slipway_model::status::Failure;

use super::super::manifest::{Documents, TaskDefinition};
use super::super::site::Site;
use super::balancer;
use super::routes::Routes;
use crate::deployment::invalid;

/// Longest name of a service (ECS API reference, `CreateService`).
const LONGEST_NAME: usize = 255;

/// Characters of `__1`.
const SUFFIX: usize = 3;

/// Refuses what cannot be deployed blue-green, before anything is changed.
pub(super) async fn check(
    site: &Site,
    documents: &Documents,
    routes: &Routes,
) -> Result<(), Failure> {
    let definition = &documents.service;
    let name = documents.service_name()?;
    if name.chars().count() + SUFFIX > LONGEST_NAME {
        return Err(refused(format!(
            "with `__1` or `__2` behind it, its name has more than the {LONGEST_NAME} characters that ECS allows; \
             shorten `serviceName`"
        )));
    }
    if definition["schedulingStrategy"] == "DAEMON" {
        return Err(refused(
            "a service with `schedulingStrategy: DAEMON` has no number of tasks that could be scaled down; use \
             EcsRollingDeploy"
                .to_owned(),
        ));
    }
    let configuration = &definition["deploymentConfiguration"];
    let strategy = configuration["strategy"].as_str();
    if let Some(strategy) = strategy.filter(|strategy| *strategy != "ROLLING") {
        return Err(refused(format!(
            "its `deploymentConfiguration.strategy` is {strategy}, with which ECS itself changes listener rules; \
             take it out, or use EcsRollingDeploy"
        )));
    }
    let controller = definition["deploymentController"]["type"].as_str();
    if let Some(controller) = controller.filter(|controller| *controller != "ECS") {
        return Err(refused(format!(
            "its `deploymentController` is {controller}, which deploys by itself; take it out"
        )));
    }
    let (container, port) = balanced(definition, routes)?;
    if let TaskDefinition::Document(task) = &documents.task_definition {
        check_ports(task, (container, port))?;
        check_target_port(site, task, &routes.stage_group).await?;
    }
    Ok(())
}

/// The one container and port that `loadBalancers` puts into the stage target group.
fn balanced<'d>(definition: &'d Value, routes: &Routes) -> Result<(&'d str, i64), Failure> {
    let list = definition["loadBalancers"].as_array();
    let [balancer] = list.map(Vec::as_slice).unwrap_or_default() else {
        return Err(refused(format!(
            "`loadBalancers` must have exactly one entry, with `targetGroupArn: <+targetGroupArn>`, and it has {}",
            list.map_or(0, Vec::len)
        )));
    };
    let group = balancer["targetGroupArn"].as_str().unwrap_or_default();
    if group != routes.stage_group {
        return Err(refused(format!(
            "`loadBalancers` names target group {group:?} and not that of the stage listener rule, {}; write \
             `targetGroupArn: <+targetGroupArn>`",
            routes.stage_group
        )));
    }
    if !balancer["advancedConfiguration"].is_null() {
        return Err(refused(
            "`loadBalancers` has an `advancedConfiguration`, with which ECS itself changes listener rules; take it \
             out"
                .to_owned(),
        ));
    }
    let container = balancer["containerName"].as_str();
    match (container, balancer["containerPort"].as_i64()) {
        (Some(container), Some(port)) => Ok((container, port)),
        _ => Err(refused(
            "`loadBalancers` must say `containerName` and `containerPort`".to_owned(),
        )),
    }
}

fn containers(task: &Value) -> impl Iterator<Item = &Value> {
    task["containerDefinitions"]
        .as_array()
        .into_iter()
        .flatten()
}

fn mappings(container: &Value) -> impl Iterator<Item = &Value> {
    container["portMappings"].as_array().into_iter().flatten()
}

/// ECS would refuse it too, but later.
fn check_ports(task: &Value, (name, port): (&str, i64)) -> Result<(), Failure> {
    let container = containers(task).find(|one| one["name"] == name);
    let container = container.ok_or_else(|| {
        refused(format!(
            "`loadBalancers` names container {name}, which the task definition does not have"
        ))
    })?;
    let mapped = mappings(container).any(|one| one["containerPort"].as_i64() == Some(port));
    match mapped {
        true => Ok(()),
        false => Err(refused(format!(
            "`loadBalancers` names port {port} of container {name}, which has no `portMappings` entry for it in the \
             task definition"
        ))),
    }
}

/// Harness asks for target groups with a port that containers have, too.
async fn check_target_port(site: &Site, task: &Value, group: &str) -> Result<(), Failure> {
    let Some(port) = balancer::port(site, group).await? else {
        return Ok(());
    };
    let port = i64::from(port);
    let fits = |one: &Value| {
        let is = |name: &str| one[name].as_i64() == Some(port);
        is("containerPort") || is("hostPort")
    };
    if containers(task).flat_map(mappings).any(fits) {
        return Ok(());
    }
    Err(invalid(format!(
        "No container definition has port mapping that matches the target port: {port} for target group: {group}. \
         Give the target groups and the containers of the task definition the same port."
    )))
}

fn refused(why: String) -> Failure {
    invalid(format!(
        "the EcsServiceDefinition cannot be deployed blue-green: {why}."
    ))
}

/// The number of tasks of the new version. `running` is that of the old one where it is to be taken.
pub(super) fn desired(definition: &Value, running: Option<i64>) -> Result<i64, Failure> {
    let wanted = running
        .filter(|running| *running > 0)
        .or_else(|| definition["desiredCount"].as_i64());
    match wanted {
        Some(count) if count > 0 => Ok(count),
        Some(_) => Err(refused(
            "`desiredCount` is 0, and a version without tasks would answer no request; use EcsScale to stop a \
             service"
                .to_owned(),
        )),
        None => Err(refused("it has no `desiredCount`".to_owned())),
    }
}
