//! `CreateService`.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::cluster::{self, is_name};
use super::deployment::{Deployment, DeploymentConfiguration, DeploymentStatus, RolloutState};
use super::run_task::{check_capacity, check_launch};
use super::service::{self, Service, ServiceStatus};
use super::task_definition::find_runnable;
use super::{load_balancing, service_view, tag};
use crate::account::Account;
use crate::caller::Caller;
use crate::discovery;
use crate::error::ApiError;
use crate::fields::{Document, Fields, omit, pick};

/// Members that belong to a deployment: a change to one of them makes a new deployment.
pub(super) const OF_DEPLOYMENT: [&str; 9] = [
    "launchType",
    "capacityProviderStrategy",
    "platformVersion",
    "networkConfiguration",
    "loadBalancers",
    "serviceRegistries",
    "serviceConnectConfiguration",
    "volumeConfigurations",
    "vpcLatticeConfigurations",
];
/// Members that have a place of their own in [`Service`].
const PLACED: [&str; 6] = [
    "cluster",
    "serviceName",
    "taskDefinition",
    "desiredCount",
    "clientToken",
    "tags",
];
/// Most tasks of a service (ECS service quotas).
const MOST_TASKS: i64 = 5_000;

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let cluster = cluster::find(account, caller, request)?.clone();
    let name = request.required_text("serviceName")?;
    if !is_name(name) {
        return Err(ApiError::invalid_parameter(
            "Invalid service name: up to 255 letters, numbers, hyphens and underscores are allowed.",
        ));
    }
    let key = format!("{}/{}/{name}", caller.region, cluster.name);
    let digest = digest(request)?;
    match account.services.get(&key) {
        Some(found) if found.is_active() && found.request_digest == digest => {
            let view = service_view::view(account, found, true);
            return Ok(json!({"service": view}));
        }
        Some(found) if found.is_active() => {
            return Err(ApiError::invalid_parameter(
                "Creation of service was not idempotent.",
            ));
        }
        Some(found) if !found.is_inactive() => {
            return Err(ApiError::invalid_parameter(
                "Unable to Start a service that is still Draining.",
            ));
        }
        _ => {}
    }
    let (task_definition, settings) = check(account, caller, request)?;
    let desired = desired_count(request)?.ok_or_else(|| {
        ApiError::invalid_parameter("Desired count can not be null for REPLICA services.")
    })?;
    let mut service = Service {
        region: caller.region.clone(),
        cluster: cluster.name.clone(),
        arn: format!(
            "arn:aws:ecs:{}:{}:service/{}/{name}",
            caller.region, account.id, cluster.name
        ),
        name: name.to_owned(),
        cluster_arn: cluster.arn,
        status: ServiceStatus::Active,
        desired,
        document: omit(request.0, &[&PLACED[..], &OF_DEPLOYMENT[..]].concat()),
        settings,
        deployments: Vec::new(),
        last_completed: None,
        events: VecDeque::new(),
        live: BTreeSet::new(),
        due: None,
        throttled_until: None,
        throttles: 0,
        steady: false,
        created_at: account.now,
        created_by: caller.arn.clone(),
        tags: tag::read(request)?,
        request_digest: digest,
    };
    deploy(account, &mut service, task_definition);
    account.services.put(key.clone(), service);
    service::wake(account, &key);
    let created = account.services.get(&key);
    Ok(json!({"service": created.map(|row| service_view::view(account, row, true))}))
}

/// Checks what does not depend on an existing service; gives the task definition's ARN and what belongs
/// to the deployment.
fn check(
    account: &Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<(String, Document), ApiError> {
    if let Some(strategy) = request.text("schedulingStrategy")?
        && strategy != "REPLICA"
    {
        return Err(ApiError::unsupported(format!(
            "The sandbox account does not implement the scheduling strategy {strategy}."
        )));
    }
    check_controller(request)?;
    check_capacity(request)?;
    DeploymentConfiguration::read(request.object("deploymentConfiguration")?)?;
    let name = request.required_text("taskDefinition")?;
    let definition = find_runnable(account, &caller.region, name)?;
    let settings = pick(request.0, &OF_DEPLOYMENT);
    check_launch(definition, &settings)?;
    load_balancing::check_ports(definition, Fields(&settings))?;
    load_balancing::check_groups(account, definition, Fields(&settings))?;
    let registries = (Fields(&settings), definition.is_awsvpc());
    discovery::check(account, &caller.region, registries)?;
    Ok((definition.arn.clone(), settings))
}

/// Only the rolling update of ECS itself is here.
pub(super) fn check_controller(request: Fields<'_>) -> Result<(), ApiError> {
    let Some(controller) = request.object("deploymentController")? else {
        return Ok(());
    };
    match Fields(controller).text("type")? {
        None | Some("ECS") => Ok(()),
        Some(other) => Err(ApiError::unsupported(format!(
            "The sandbox account does not implement the deployment controller {other}."
        ))),
    }
}

pub(super) fn desired_count(request: Fields<'_>) -> Result<Option<i64>, ApiError> {
    match request.integer("desiredCount")? {
        Some(count) if !(0..=MOST_TASKS).contains(&count) => Err(ApiError::invalid_parameter(
            format!("desiredCount must be between 0 and {MOST_TASKS}."),
        )),
        other => Ok(other),
    }
}

/// Begins a new PRIMARY deployment; the one before becomes ACTIVE.
pub(super) fn deploy(account: &mut Account, service: &mut Service, task_definition: String) {
    for deployment in &mut service.deployments {
        deployment.status = DeploymentStatus::Active;
    }
    let id = format!("ecs-svc/{}", account.draw_digits());
    let deployment = Deployment {
        status: DeploymentStatus::Primary,
        task_definition,
        settings: service.settings.clone(),
        failed_tasks: 0,
        created_at: account.now,
        updated_at: account.now,
        rollout: RolloutState::InProgress,
        reason: format!("ECS deployment {id} in progress."),
        id,
    };
    service.deployments.insert(0, deployment);
    service.unthrottle();
    service.steady = false;
}

/// Identity of a request for the rule that repeating a creation is no error.
pub(super) fn digest(request: Fields<'_>) -> Result<String, ApiError> {
    let token = request.text("clientToken")?;
    if token.is_some_and(|token| token.len() > 64 || !token.bytes().all(|b| b.is_ascii_graphic())) {
        return Err(ApiError::invalid_parameter("Invalid client token."));
    }
    // Members in order of their names: clients do not promise an order.
    let mut members: Vec<(&String, &Value)> = request.0.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    let text = members
        .iter()
        .map(|(name, value)| format!("{name}={value};"))
        .collect::<String>();
    let digest = Sha256::digest(text);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}
