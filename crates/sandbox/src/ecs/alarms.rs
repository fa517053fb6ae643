//! Alarms of `deploymentConfiguration`: one that is raised while a deployment goes on fails it (Amazon ECS developer guide,
//! "How CloudWatch alarms detect Amazon ECS deployment failures"). What is not AWS's: there is no time after the last task
//! in which alarms are still watched.

use super::deployment::RolloutState;
use super::event;
use super::scheduler::roll_back;
use super::service::{Service, wake};
use crate::account::Account;
use crate::alarm;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Names of alarms, and whether one that is raised rolls the service back.
struct Alarms<'a> {
    names: Vec<&'a str>,
    rollback: bool,
}

/// What `deploymentConfiguration.alarms` says, where it is enabled.
fn read(configuration: Option<&Document>) -> Result<Option<Alarms<'_>>, ApiError> {
    let given = match configuration {
        None => None,
        Some(configuration) => Fields(configuration).object("alarms")?,
    };
    let Some(given) = given.map(Fields) else {
        return Ok(None);
    };
    let names = given.texts("alarmNames")?;
    if given.flag("enable")? != Some(true) {
        return Ok(None);
    }
    if names.is_empty() {
        return Err(ApiError::invalid_parameter(
            "alarmNames must not be empty when alarms are enabled.",
        ));
    }
    Ok(Some(Alarms {
        names,
        rollback: given.flag("rollback")?.unwrap_or(false),
    }))
}

/// Checks what a request says of alarms.
pub(super) fn check(configuration: Option<&Document>) -> Result<(), ApiError> {
    read(configuration).map(drop)
}

/// Fails the deployment in progress when one of its alarms was raised since it began, and rolls back if asked to. What is
/// rolled back to is not watched.
pub(super) fn watch(account: &mut Account, service: &mut Service) {
    let document = service.document.clone();
    let configuration = Fields(&document).object("deploymentConfiguration");
    let Ok(Some(alarms)) = configuration.and_then(read) else {
        return;
    };
    let (now, region) = (account.now, service.region.clone());
    let Some(primary) = service.primary_mut() else {
        return;
    };
    let began = primary.created_at;
    let raised = alarms.names.iter().any(|name| {
        let found = alarm::find(account, &region, name);
        found.is_some_and(|alarm| alarm.is_raised() && alarm.since > began)
    });
    let returns = primary.reason.contains("rolling back to deploymentId");
    if !primary.is_in_progress() || returns || !raised {
        return;
    }
    let reason = "ECS deployment failed: alarm detected.";
    primary.turn(RolloutState::Failed, reason.to_owned(), now);
    let id = primary.id.clone();
    event::push(account, service, &event::alarmed(&id));
    if alarms.rollback {
        roll_back(account, service, "ECS deployment alarm");
    }
}

/// Lets the scheduler look at the services that name an alarm.
pub(crate) fn alarm_changed(account: &mut Account, region: &str, name: &str) {
    let names = |service: &Service| {
        let configuration = Fields(&service.document).object("deploymentConfiguration");
        let alarms = configuration.and_then(read);
        matches!(alarms, Ok(Some(alarms)) if alarms.names.contains(&name))
    };
    let found = account.services.iter();
    let found = found.filter(|(_, service)| service.region == region && names(service));
    let keys: Vec<String> = found.map(|(key, _)| key.clone()).collect();
    for key in keys {
        wake(account, &key);
    }
}
