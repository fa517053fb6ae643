//! `CreateService`.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::cluster::{self, Cluster, is_name};
use super::deployment::{Deployment, DeploymentConfiguration, DeploymentStatus, RolloutState};
use super::service::{self, Service, ServiceStatus};
use super::task_definition::{TaskDefinition, find_runnable};
use super::{alarms, capacity, launch, load_balancing, service_view, tag, values};
use crate::account::Account;
use crate::caller::Caller;
use crate::discovery;
use crate::error::ApiError;
use crate::fields::{Document, Fields, default_to, omit, pick};

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
    let (task_definition, settings) = check(account, caller, &cluster, request)?;
    let daemon = is_daemon(request.0);
    let desired = match desired_count(request)? {
        Some(_) if daemon => return Err(no_desired_count()),
        None if daemon => 0,
        Some(desired) => desired,
        None => {
            return Err(ApiError::invalid_parameter(
                "Desired count can not be null for REPLICA services.",
            ));
        }
    };
    let mut document = omit(request.0, &[&PLACED[..], &OF_DEPLOYMENT[..]].concat());
    if daemon {
        daemon_defaults(&mut document);
    }
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
        document,
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
    cluster: &Cluster,
    request: Fields<'_>,
) -> Result<(String, Document), ApiError> {
    values::check_one(request, "", "schedulingStrategy", &["REPLICA", "DAEMON"])?;
    check_words(request)?;
    check_controller(request)?;
    capacity::check(account, cluster, request)?;
    DeploymentConfiguration::read(request.object("deploymentConfiguration")?)?;
    alarms::check(request.object("deploymentConfiguration")?)?;
    let name = request.required_text("taskDefinition")?;
    let definition = find_runnable(account, &caller.region, name)?;
    let mut settings = pick(request.0, &OF_DEPLOYMENT);
    capacity::default_strategy(cluster, &mut settings);
    if is_daemon(request.0) {
        check_daemon(request, &settings)?;
    }
    launch::check(definition, &settings)?;
    launch::check_placement(request, &launch::launch_type(&settings))?;
    check_together(definition, request.0, &settings, "created")?;
    load_balancing::check_ports(definition, Fields(&settings))?;
    load_balancing::check_groups(account, definition, Fields(&settings))?;
    let registries = (Fields(&settings), definition.is_awsvpc());
    discovery::check(account, &caller.region, registries)?;
    Ok((definition.arn.clone(), settings))
}

/// Members whose words AWS knows all of.
pub(super) fn check_words(request: Fields<'_>) -> Result<(), ApiError> {
    let sources = ["TASK_DEFINITION", "SERVICE", "NONE"];
    values::check_one(request, "", "propagateTags", &sources)?;
    let switch = ["ENABLED", "DISABLED"];
    values::check_one(request, "", "availabilityZoneRebalancing", &switch)
}

/// Whether a service runs one task on every container instance.
pub(super) fn is_daemon(document: &Document) -> bool {
    document.get("schedulingStrategy").and_then(Value::as_str) == Some("DAEMON")
}

pub(super) fn no_desired_count() -> ApiError {
    ApiError::invalid_parameter(
        "The daemon scheduling strategy does not support a desired count for services. Remove the desired count value and \
         try again",
    )
}

/// What one task on every instance goes without (ECS API reference, `schedulingStrategy`).
fn check_daemon(request: Fields<'_>, settings: &Document) -> Result<(), ApiError> {
    let refuse = |message: &str| Err(ApiError::invalid_parameter(message));
    if launch::providers(settings).next().is_some() {
        return refuse(
            "Specifying a capacity provider strategy is not supported when you create a service using the DAEMON scheduling \
             strategy.",
        );
    }
    if launch::launch_type(settings) == "FARGATE" {
        return refuse("The daemon scheduling strategy does not support the Fargate launch type.");
    }
    if !request.objects("placementStrategy")?.is_empty() {
        return refuse("The daemon scheduling strategy does not support placement strategies.");
    }
    let configuration = request.object("deploymentConfiguration")?.map(Fields);
    let most = configuration.map_or(Ok(None), |one| one.integer("maximumPercent"))?;
    if most.is_some_and(|most| most > 100) {
        return refuse(
            "The daemon scheduling strategy does not support values above 100 for maximumPercent for a deployment \
             configuration.",
        );
    }
    Ok(())
}

/// A daemon's tasks go before their successors come, unless told otherwise.
fn daemon_defaults(document: &mut Document) {
    let configuration = document
        .entry("deploymentConfiguration")
        .or_insert(json!({}));
    if let Some(configuration) = configuration.as_object_mut() {
        default_to(configuration, "maximumPercent", json!(100));
        default_to(configuration, "minimumHealthyPercent", json!(0));
    }
}

/// Members of a service that need one another: `document` and `settings` are what it is to have.
pub(super) fn check_together(
    definition: &TaskDefinition,
    document: &Document,
    settings: &Document,
    done: &str,
) -> Result<(), ApiError> {
    let has = |name: &str| {
        let list = settings.get(name).and_then(Value::as_array);
        list.is_some_and(|list| !list.is_empty())
    };
    let grace = Fields(document).integer("healthCheckGracePeriodSeconds")?;
    let balanced = [
        "loadBalancers",
        "serviceRegistries",
        "vpcLatticeConfigurations",
    ]
    .iter()
    .any(|name| has(name));
    if grace.is_some_and(|grace| grace > 0) && !balanced {
        return Err(ApiError::invalid_parameter(
            "Health check grace period is only valid for services configured to use load balancers",
        ));
    }
    let exec = Fields(document).flag("enableExecuteCommand")? == Some(true);
    if exec && !definition.has_task_role() {
        return Err(ApiError::invalid_parameter(format!(
            "The service couldn't be {done} because a valid taskRoleArn is not being used. Specify a valid task role in \
             your task definition and try again."
        )));
    }
    Ok(())
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
