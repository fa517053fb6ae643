//! `UpdateService` and `DeleteService`.

use serde_json::{Value, json};

use super::cluster;
use super::deployment::DeploymentConfiguration;
use super::service::{self, Service, ServiceStatus, find_key};
use super::service_create::{
    OF_DEPLOYMENT, check_controller, check_together, check_words, deploy, desired_count, is_daemon,
    no_desired_count,
};
use super::task_definition::find_runnable;
use super::{alarms, capacity, launch, load_balancing, service_view};
use crate::account::Account;
use crate::caller::Caller;
use crate::discovery;
use crate::error::ApiError;
use crate::fields::{Document, Fields, omit, pick};

/// Members that an update does not write into the service: they have another place, or stay as the service
/// was created with them.
const NOT_KEPT: [&str; 10] = [
    "cluster",
    "service",
    "taskDefinition",
    "desiredCount",
    "forceNewDeployment",
    "serviceName",
    "schedulingStrategy",
    "role",
    "clientToken",
    "tags",
];

pub(super) fn update(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let key = existing(account, caller, request)?;
    let Some(current) = account.services.get(&key).filter(|row| row.is_active()) else {
        return Err(not_active());
    };
    let change = Change::read(account, caller, current, request)?;
    let Some(mut service) = account.services.take(&key) else {
        return Err(not_active());
    };
    if let Some(desired) = change.desired
        && desired != service.desired
    {
        service.desired = desired;
        service.steady = false;
    }
    // Creating it as it was before is not a repetition any more.
    service.request_digest.clear();
    service.document = change.document;
    service.settings = change.settings;
    if let Some(task_definition) = change.new_deployment {
        deploy(account, &mut service, task_definition);
    }
    account.services.put(key.clone(), service);
    service::wake(account, &key);
    let updated = account.services.get(&key);
    Ok(json!({"service": updated.map(|row| service_view::view(account, row, true))}))
}

/// What an update makes of a service.
struct Change {
    desired: Option<i64>,
    document: Document,
    settings: Document,
    /// Task definition of the deployment that the update begins, if it begins one.
    new_deployment: Option<String>,
}

impl Change {
    fn read(
        account: &Account,
        caller: &Caller,
        current: &Service,
        request: Fields<'_>,
    ) -> Result<Self, ApiError> {
        check_controller(request)?;
        check_words(request)?;
        capacity::check(account, cluster::find(account, caller, request)?, request)?;
        let desired = desired_count(request)?;
        if desired.is_some() && is_daemon(&current.document) {
            return Err(no_desired_count());
        }
        DeploymentConfiguration::read(request.object("deploymentConfiguration")?)?;
        alarms::check(request.object("deploymentConfiguration")?)?;
        let running = current.primary().map(|one| one.task_definition.as_str());
        let name = match request.text("taskDefinition")? {
            Some(name) => Some(name),
            None => running,
        };
        let name = name.ok_or_else(not_active)?;
        // The definition in use may have been deregistered since; the service goes on with it.
        let definition = if Some(name) == running {
            super::task_definition::find(account, &caller.region, name)
                .ok_or_else(|| ApiError::client_exception("TaskDefinition not found."))?
        } else {
            find_runnable(account, &caller.region, name)?
        };
        let mut settings = current.settings.clone();
        let mut given = pick(request.0, &OF_DEPLOYMENT);
        given.remove("launchType");
        if given.contains_key("capacityProviderStrategy") {
            settings.remove("launchType");
        }
        settings.extend(given);
        launch::check(definition, &settings)?;
        load_balancing::check_ports(definition, Fields(&settings))?;
        // A target group that the service has may have lost its load balancer since.
        if request.0.contains_key("loadBalancers") {
            load_balancing::check_groups(account, definition, Fields(&settings))?;
        }
        if request.0.contains_key("serviceRegistries") {
            let registries = (Fields(&settings), definition.is_awsvpc());
            discovery::check(account, &caller.region, registries)?;
        }
        let mut document = current.document.clone();
        let kept: Vec<&str> = [&NOT_KEPT[..], &OF_DEPLOYMENT[..]].concat();
        document.extend(omit(request.0, &kept));
        launch::check_placement(Fields(&document), &launch::launch_type(&settings))?;
        check_together(definition, &document, &settings, "updated")?;
        let is_new = running != Some(definition.arn.as_str())
            || settings != current.settings
            || request.flag("forceNewDeployment")?.unwrap_or(false);
        Ok(Self {
            desired,
            document,
            settings,
            new_deployment: is_new.then(|| definition.arn.clone()),
        })
    }
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let key = existing(account, caller, request)?;
    let force = request.flag("force")?.unwrap_or(false);
    let Some(service) = account.services.get(&key).filter(|row| !row.is_inactive()) else {
        return Err(not_found());
    };
    let daemon = is_daemon(&service.document);
    if service.is_active() && service.desired > 0 && !force && !daemon {
        return Err(ApiError::invalid_parameter(
            "The service cannot be stopped while it is scaled above 0.",
        ));
    }
    if let Some(service) = account.services.get_mut(&key) {
        service.status = ServiceStatus::Draining;
        service.desired = 0;
        service.steady = false;
    }
    service::wake(account, &key);
    let deleted = account.services.get(&key);
    Ok(json!({"service": deleted.map(|row| service_view::view(account, row, true))}))
}

/// Key of the service that a request names, which exists in an active cluster.
fn existing(account: &Account, caller: &Caller, request: Fields<'_>) -> Result<String, ApiError> {
    let cluster = cluster::find(account, caller, request)?;
    let name = request.required_text("service")?;
    let key = find_key(caller, &cluster.name, name);
    match account.services.get(&key) {
        Some(_) => Ok(key),
        None => Err(not_found()),
    }
}

fn not_found() -> ApiError {
    ApiError::client("ServiceNotFoundException", "Service not found.")
}

fn not_active() -> ApiError {
    ApiError::client("ServiceNotActiveException", "Service was not ACTIVE.")
}
