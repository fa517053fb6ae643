//! How tasks that ran on their own have ended.

use std::collections::BTreeSet;

use aws_sdk_ecs::types::Task;
use serde_json::{Value, json};
use slipway_model::status::{ErrorType, Failure};

use super::site::Site;
use super::task_definition::short;
use super::watch::reason;
use crate::aws::error::{Doing, failure};

/// Most tasks whose ends are told in a failure.
const MOST_TOLD: usize = 3;

/// The tasks as they are now; those that AWS does not know are left out.
pub(super) async fn look(site: &Site, arns: &[String]) -> Result<Vec<Task>, Failure> {
    let doing = format!("look at tasks in {site}");
    let described = site
        .aws
        .ecs
        .describe_tasks()
        .cluster(&site.cluster)
        .set_tasks(Some(arns.to_vec()))
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    Ok(described.tasks.unwrap_or_default())
}

/// Fails unless every essential container of the stopped tasks ended with exit code 0.
pub(super) async fn judge(
    site: &Site,
    task_definition: &str,
    tasks: &[Task],
) -> Result<(), Failure> {
    let doubtful = |task: &&Task| task.containers().is_empty() || !bad(task).is_empty();
    let doubtful: Vec<&Task> = tasks.iter().filter(doubtful).collect();
    if doubtful.is_empty() {
        return Ok(());
    }
    let essential = essential(site, task_definition).await?;
    let failed = |task: &&&Task| {
        task.containers().is_empty() || bad(task).iter().any(|name| essential.contains(*name))
    };
    let failed: Vec<&&Task> = doubtful.iter().filter(failed).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let ends = failed.iter().take(MOST_TOLD).map(|task| {
        let name = short(task.task_arn().unwrap_or_default());
        format!("{name} stopped: {}", reason(task).trim_end_matches('.'))
    });
    Err(Failure {
        error: ErrorType::Unknown,
        message: format!(
            "{} of {} tasks of {} in {site} did not end well. Task {}.",
            failed.len(),
            tasks.len(),
            short(task_definition),
            ends.collect::<Vec<_>>().join("; task ")
        ),
        left_behind: None,
    })
}

/// Containers that did not end with exit code 0.
fn bad(task: &Task) -> Vec<&str> {
    let containers = task.containers().iter();
    containers
        .filter(|container| container.exit_code() != Some(0))
        .map(|container| container.name().unwrap_or_default())
        .collect()
}

/// Names of the containers that a task cannot do without; AWS's default is that each is one.
async fn essential(site: &Site, task_definition: &str) -> Result<BTreeSet<String>, Failure> {
    let doing = format!(
        "look at task definition {} in {site}",
        short(task_definition)
    );
    let described = site
        .aws
        .ecs
        .describe_task_definition()
        .task_definition(task_definition)
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    let definition = described.task_definition();
    let containers = definition.map(|definition| definition.container_definitions());
    let containers = containers.unwrap_or_default();
    Ok(containers
        .iter()
        .filter(|container| container.essential().unwrap_or(true))
        .filter_map(|container| container.name().map(str::to_owned))
        .collect())
}

/// AWS does not know tasks that it started: it forgets stopped ones after about an hour.
pub(super) fn lost(site: &Site, arns: &[String], known: &[Task]) -> Failure {
    let there: BTreeSet<&str> = known.iter().filter_map(Task::task_arn).collect();
    let gone = arns.iter().filter(|arn| !there.contains(arn.as_str()));
    let gone: Vec<&str> = gone.map(|arn| short(arn)).collect();
    Failure {
        error: ErrorType::Unknown,
        message: format!(
            "ECS in {site} no longer knows how these tasks ended: {}. Look into their logs.",
            gone.join(", ")
        ),
        left_behind: None,
    }
}

/// What expressions see of a task that has ended.
pub(super) fn outcome(task: &Task) -> Value {
    let containers = task.containers().iter();
    let containers: Vec<Value> = containers
        .map(|container| json!({"name": container.name(), "exitCode": container.exit_code()}))
        .collect();
    json!({
        "taskArn": task.task_arn(),
        "stoppedReason": task.stopped_reason(),
        "containers": containers,
    })
}
