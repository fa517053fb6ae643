//! Service events, in AWS's words ("Viewing Amazon ECS service event messages", developer guide, and
//! outputs of `describe-services` that people published).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::service::Service;
use crate::account::Account;

/// Events that a service shows at most.
const SHOWN: usize = 100;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    pub(crate) message: String,
}

/// Adds `(service <name>) <rest>` as the newest event.
pub(crate) fn push(account: &mut Account, service: &mut Service, rest: &str) {
    let event = Event {
        id: account.draw_uuid(),
        at: account.now,
        message: format!("(service {}) {rest}", service.name),
    };
    service.events.push_front(event);
    service.events.truncate(SHOWN);
}

/// `(task 1) (task 2)` of task keys.
fn tasks(keys: &[String]) -> String {
    let ids = keys.iter().filter_map(|key| key.rsplit('/').next());
    let each: Vec<String> = ids.map(|id| format!("(task {id})")).collect();
    each.join(" ")
}

pub(crate) fn started(keys: &[String]) -> String {
    format!("has started {} tasks: {}.", keys.len(), tasks(keys))
}

pub(crate) fn stopped_running(keys: &[String]) -> String {
    format!("has stopped {} running tasks: {}.", keys.len(), tasks(keys))
}

pub(crate) fn stopped_pending(count: usize) -> String {
    format!("stopped {count} pending tasks.")
}

pub(crate) fn draining(keys: &[String]) -> String {
    format!("has begun draining connections on {} tasks.", keys.len())
}

pub(crate) fn registered(target_group: &str) -> String {
    format!("registered 1 targets in (target-group {target_group})")
}

pub(crate) fn failed_to_register(target_group: &str) -> String {
    format!(
        "failed to register targets in (target-group {target_group}) with (error One or more target \
         groups not found)"
    )
}

pub(crate) fn deregistered(count: usize, target_group: &str) -> String {
    format!("deregistered {count} targets in (target-group {target_group})")
}

pub(crate) fn unhealthy(key: &str, target_group: Option<(&str, i64)>) -> String {
    let task = tasks(&[key.to_owned()]);
    match target_group {
        None => format!("{task} failed container health checks."),
        Some((group, port)) => format!(
            "{task} (port {port}) is unhealthy in (target-group {group}) due to (reason Health checks failed)."
        ),
    }
}

pub(crate) fn unable_to_place(reason: &str) -> String {
    format!("was unable to place a task. Reason: {reason}.")
}

pub(crate) fn failed_to_launch(error: &str) -> String {
    format!("failed to launch a task with (error {error}).")
}

pub(crate) fn completed(deployment: &str) -> String {
    format!("(deployment {deployment}) deployment completed.")
}

pub(crate) fn failed(deployment: &str) -> String {
    format!("(deployment {deployment}) deployment failed: tasks failed to start.")
}

pub(crate) fn alarmed(deployment: &str) -> String {
    format!("(deployment {deployment}) deployment failed: alarm detected.")
}

pub(crate) fn rolling_back(deployment: &str) -> String {
    format!("rolling back to deployment {deployment}.")
}

pub(crate) const STEADY: &str = "has reached a steady state.";
pub(crate) const UNABLE_TO_START: &str = "is unable to consistently start tasks successfully. \
     For more information, see the Troubleshooting section of the Amazon ECS Developer Guide.";
