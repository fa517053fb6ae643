//! Follows a service until it is steady, and tells early and with evidence when it will not be.

use std::time::Duration;

use aws_sdk_ecs::types::{Deployment, DeploymentRolloutState, DesiredStatus, Service, Task};
use serde::{Deserialize, Serialize};
use slipway_model::status::{ErrorType, Failure};

use super::service::{Standing, describe, primary};
use super::site::Site;
use super::task_definition::short;
use crate::aws::error::{Doing, failure};
use crate::context::StepContext;

/// Most stopped tasks whose reasons are told in one step.
const MOST_TOLD: usize = 50;

/// Most reasons in a failure's message.
const MOST_REASONS: usize = 3;

/// Longest time between two looks.
const LONGEST_PAUSE: u64 = 10;

/// What is remembered between two looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Watch {
    looks: u64,
    /// Newest event that was told or that is older than the deployment.
    event: Option<(String, i64)>,
    /// Running and desired tasks when they were told last.
    counted: Option<(i32, i32)>,
    waiting_told: bool,
    #[serde(default)]
    steady_told: bool,
    /// Failed tasks of the deployment when they were looked at last.
    failed: i32,
    /// Stopped tasks that were told.
    told: Vec<String>,
    /// Why tasks stopped, newest last.
    reasons: Vec<String>,
}

/// What is waited for.
#[derive(Clone, Debug)]
pub(super) struct Goal<'a> {
    pub(super) service: &'a str,
    /// Task definition that must run.
    pub(super) task_definition: &'a str,
    /// Deployment that was started; `None` when it is not known.
    pub(super) deployment: Option<&'a str>,
    pub(super) unit: &'static str,
}

/// What a look saw.
pub(super) enum Seen {
    Steady,
    Moving,
}

impl Watch {
    /// Events up to the newest of `service` are older than what follows.
    pub(super) fn after(service: &Service) -> Self {
        let event = service.events().first().and_then(mark);
        Self {
            event,
            ..Self::default()
        }
    }

    /// When to look again: 1 to 10 seconds, growing.
    pub(super) fn pause(&self) -> Duration {
        Duration::from_secs((1 + self.looks / 3).min(LONGEST_PAUSE))
    }

    /// Why tasks stopped so far, for a step that ran out of time.
    pub(super) fn evidence(&self) -> Option<String> {
        let newest = self.reasons.len().saturating_sub(MOST_REASONS);
        let reasons = &self.reasons[newest..];
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Looks once: tells new events, stopped tasks and progress, and decides.
    pub(super) async fn look(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        goal: &Goal<'_>,
    ) -> Result<Seen, Failure> {
        self.looks += 1;
        let service = match describe(site, goal.service).await? {
            Standing::Active(described) => described.service,
            Standing::Draining => return Err(vanished(site, goal, "is being deleted")),
            Standing::Absent => return Err(vanished(site, goal, "no longer exists")),
        };
        self.tell_events(cx, &service, goal.unit);
        self.tell_stopped(cx, site, &service, goal).await?;
        if let Some(why) = lost(&service, goal) {
            return Err(self.failed(site, goal, &why));
        }
        self.tell_progress(cx, &service, goal);
        if steady(&service) || is_empty(&service, goal) {
            if !self.steady_told {
                self.steady_told = true;
                let steady = format!("Service {} reached steady state", goal.service);
                cx.info(goal.unit, steady);
            }
            return Ok(Seen::Steady);
        }
        match ours(&service, goal)
            .filter(|_| !has_breaker(&service) && !is_emptied(&service, goal))
            .and_then(hopeless)
        {
            Some(why) => Err(self.failed(site, goal, &why)),
            None => Ok(Seen::Moving),
        }
    }

    fn tell_events(&mut self, cx: &mut StepContext<'_>, service: &Service, unit: &'static str) {
        let known = self.event.clone();
        let newer = service
            .events()
            .iter()
            .take_while(|event| match (&known, mark(event)) {
                (Some((id, at)), Some((this, when))) => this != *id && when >= *at,
                _ => true,
            });
        let newer: Vec<_> = newer.collect();
        for event in newer.iter().rev() {
            let at = event
                .created_at()
                .map(ToString::to_string)
                .unwrap_or_default();
            let message = event.message().unwrap_or_default();
            cx.info(unit, format!("# AWS Event: {at} {message}"));
            if let Some(why) = not_launched(message)
                && self.reasons.last().map(String::as_str) != Some(why)
            {
                self.reasons.push(why.to_owned());
            }
        }
        if let Some(newest) = newer.first().and_then(|event| mark(event)) {
            self.event = Some(newest);
        }
    }

    fn tell_progress(&mut self, cx: &mut StepContext<'_>, service: &Service, goal: &Goal<'_>) {
        let now = (fresh(service), service.desired_count());
        if now.0 < now.1 {
            if self.counted != Some(now) {
                let (running, desired) = now;
                cx.info(
                    goal.unit,
                    format!("Waiting for pending tasks to finish. {running}/{desired} running ..."),
                );
            }
        } else if !self.waiting_told {
            self.waiting_told = true;
            cx.info(
                goal.unit,
                format!("Waiting for Service {} to reach steady state", goal.service),
            );
        }
        self.counted = Some(now);
    }

    /// Tells why tasks of the deployment stopped. Asks AWS only when it has counted new failures.
    async fn tell_stopped(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        service: &Service,
        goal: &Goal<'_>,
    ) -> Result<(), Failure> {
        let ours = ours(service, goal);
        let Some(deployment) = ours.and_then(|d| d.id()).or(goal.deployment) else {
            return Ok(());
        };
        let failed = ours.map_or(self.failed, Deployment::failed_tasks);
        // A deployment that AWS rolled back may be gone already; its tasks still tell why.
        let over = ours.is_none_or(|d| d.rollout_state() == Some(&DeploymentRolloutState::Failed));
        if (failed <= self.failed && !over) || self.told.len() >= MOST_TOLD {
            self.failed = failed;
            return Ok(());
        }
        self.failed = failed;
        for task in stopped(site, goal.service).await? {
            let arn = task.task_arn().unwrap_or_default();
            let known = self.told.iter().any(|told| told == arn);
            if known || task.started_by() != Some(deployment) || self.told.len() >= MOST_TOLD {
                continue;
            }
            let why = reason(&task);
            cx.warn(goal.unit, format!("Task {} stopped: {why}", short(arn)));
            self.told.push(arn.to_owned());
            if self.reasons.last() != Some(&why) {
                self.reasons.push(why);
            }
        }
        Ok(())
    }

    fn failed(&self, site: &Site, goal: &Goal<'_>, why: &str) -> Failure {
        let evidence = self.evidence().map_or_else(
            || " No task of it has stopped yet; the events above tell what AWS tried.".to_owned(),
            |reasons| {
                let reasons = reasons.trim_end_matches('.');
                match self.told.is_empty() {
                    true => format!(" AWS started no task because: {reasons}."),
                    false => format!(" Tasks stopped because: {reasons}."),
                }
            },
        );
        // AWS's reasons end with a full stop or without one.
        let why = why.trim_end_matches('.');
        Failure {
            error: ErrorType::Unknown,
            message: format!(
                "Service {} in {site} does not reach a steady state with {}: {why}.{evidence}",
                goal.service,
                short(goal.task_definition)
            ),
            left_behind: None,
        }
    }
}

/// Why AWS could not even launch a task, by an event of a service ("Viewing Amazon ECS service event messages", developer
/// guide): no stopped task will tell it.
fn not_launched(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once(") ")?;
    let error = rest.strip_prefix("failed to launch a task with (error ");
    let error = error.map(|error| error.trim_end_matches(['.', ')']));
    error.or_else(|| rest.strip_prefix("was unable to place a task because "))
}

fn mark(event: &aws_sdk_ecs::types::ServiceEvent) -> Option<(String, i64)> {
    let at = event
        .created_at()
        .and_then(|at| at.to_millis().ok())
        .unwrap_or_default();
    event.id().map(|id| (id.to_owned(), at))
}

/// The deployment that the step started, or what took its place with the same task definition.
fn ours<'s>(service: &'s Service, goal: &Goal<'_>) -> Option<&'s Deployment> {
    let all = service.deployments();
    all.iter()
        .find(|d| goal.deployment.is_some() && d.id() == goal.deployment)
        .or_else(|| primary(service).filter(|d| d.task_definition() == Some(goal.task_definition)))
}

/// Tasks that run in the deployment that AWS works towards: old ones do not count as progress.
fn fresh(service: &Service) -> i32 {
    primary(service).map_or_else(|| service.running_count(), Deployment::running_count)
}

/// Whether AWS has given up or the service went another way.
fn lost(service: &Service, goal: &Goal<'_>) -> Option<String> {
    if let Some(deployment) = ours(service, goal)
        && deployment.rollout_state() == Some(&DeploymentRolloutState::Failed)
        && !is_emptied(service, goal)
    {
        let why = deployment
            .rollout_state_reason()
            .unwrap_or("AWS gave no reason");
        return Some(format!("the deployment failed: {why}"));
    }
    let running = primary(service)?.task_definition()?;
    (running != goal.task_definition).then(|| {
        format!(
            "it is now deployed with {}: AWS rolled it back, by its circuit breaker or an alarm, or somebody else \
             deployed",
            short(running)
        )
    })
}

/// Whether a service was only told to have no tasks: that those that it had came up or not is no concern of it.
fn is_emptied(service: &Service, goal: &Goal<'_>) -> bool {
    goal.deployment.is_none() && service.desired_count() == 0
}

/// Whether it has none any more.
fn is_empty(service: &Service, goal: &Goal<'_>) -> bool {
    is_emptied(service, goal) && service.running_count() == 0 && service.pending_count() == 0
}

/// Primary deployment complete, no other left, and all tasks running.
fn steady(service: &Service) -> bool {
    let complete = primary(service).is_some_and(|deployment| {
        matches!(
            deployment.rollout_state(),
            None | Some(&DeploymentRolloutState::Completed)
        )
    });
    complete
        && service.deployments().len() == 1
        && service.running_count() == service.desired_count()
        && service.pending_count() == 0
}

/// Whether AWS itself decides when a deployment has failed.
fn has_breaker(service: &Service) -> bool {
    let configuration = service.deployment_configuration();
    configuration
        .and_then(|configuration| configuration.deployment_circuit_breaker())
        .is_some_and(|breaker| breaker.enable())
}

/// ECS retries a task that cannot start for ever, ever slower. Where no circuit breaker is on, the same
/// threshold ends the step: half of the desired tasks, at least 3 and at most 200, failed in a row
/// (Amazon ECS developer guide, deployment circuit breaker).
fn hopeless(deployment: &Deployment) -> Option<String> {
    let threshold = (deployment.desired_count() / 2 + deployment.desired_count() % 2).clamp(3, 200);
    let failed = deployment.failed_tasks();
    (failed >= threshold && deployment.running_count() == 0).then(|| {
        format!(
            "{failed} tasks in a row failed to start, and AWS would go on trying without an end"
        )
    })
}

/// The newest stopped tasks of a service.
pub(super) async fn stopped(site: &Site, service: &str) -> Result<Vec<Task>, Failure> {
    let doing = format!("look at the stopped tasks of service `{service}` in {site}");
    let listed = site
        .aws
        .ecs
        .list_tasks()
        .cluster(&site.cluster)
        .service_name(service)
        .desired_status(DesiredStatus::Stopped)
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    if listed.task_arns().is_empty() {
        return Ok(Vec::new());
    }
    let described = site
        .aws
        .ecs
        .describe_tasks()
        .cluster(&site.cluster)
        .set_tasks(Some(listed.task_arns().to_vec()))
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    Ok(described.tasks.unwrap_or_default())
}

/// `stoppedReason`, and what containers add to it.
pub(super) fn reason(task: &Task) -> String {
    let mut text = task
        .stopped_reason()
        .unwrap_or("AWS gave no reason")
        .to_owned();
    for container in task.containers() {
        let name = container.name().unwrap_or("container");
        if let Some(code) = container.exit_code() {
            text.push_str(&format!(" ({name}: exit code {code})"));
        }
        match container.reason() {
            Some(reason) if !text.contains(reason) => {
                text.push_str(&format!(" ({name}: {reason})"));
            }
            _ => {}
        }
    }
    text
}

fn vanished(site: &Site, goal: &Goal<'_>, what: &str) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!(
            "Service {} in {site} {what} while it was being deployed: somebody or something else deleted \
             it.",
            goal.service
        ),
        left_behind: None,
    }
}
