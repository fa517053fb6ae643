//! Which deployment of a service serves. What the service was told last, its PRIMARY deployment, is it in every usual case:
//! it came up, or its tasks are coming. One that was aborted stays PRIMARY whatever becomes of it, and where none of its
//! tasks came up it is the deployment before that serves: what a rollback leads to is that one.

use aws_sdk_ecs::types::{Deployment, DeploymentRolloutState, Service};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::foreign::{Digests, digests};
use super::rollback::keepable;
use super::service::{Described, primary};
use super::task_definition::short;

/// Fields of a service that are those of its PRIMARY deployment, and that another one may have had otherwise.
const FOLLOW: &[&str] = &[
    "capacityProviderStrategy",
    "networkConfiguration",
    "serviceConnectConfiguration",
    "volumeConfigurations",
    "vpcLatticeConfigurations",
];

/// What a service was told last, where that never came up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PassedOver {
    pub(super) task_definition: String,
    /// The settings of the service with it.
    pub(super) settings: Digests,
    /// How far it came, for people.
    pub(super) came: String,
    /// Tasks of what serves.
    pub(super) serving: i32,
}

/// Whether AWS has seen a deployment fail, or it fails since it began: AWS counts failed tasks only until one runs well
/// (`failedTasks`, "Deployment", ECS API reference).
fn fails(deployment: &Deployment) -> bool {
    match deployment.rollout_state() {
        Some(DeploymentRolloutState::Failed) => true,
        Some(DeploymentRolloutState::InProgress) => deployment.failed_tasks() > 0,
        _ => false,
    }
}

/// Whether a deployment is in progress, and none of the tasks that it is to have runs.
fn is_empty(deployment: &Deployment) -> bool {
    deployment.rollout_state() == Some(&DeploymentRolloutState::InProgress)
        && deployment.desired_count() > 0
        && deployment.running_count() == 0
}

/// Whether the tasks of a service do not come up, as far as AWS tells it. `noted` says whether it is noted as deployed:
/// one that worked once and has no task now is not taken for one that never did.
pub(super) fn is_down(service: &Service, noted: bool) -> bool {
    let none = service.desired_count() > 0 && service.running_count() == 0;
    primary(service).is_some_and(fails) || (none && !noted)
}

/// How many tasks of a deployment run, for people.
fn told(deployment: &Deployment) -> String {
    let state = deployment.rollout_state();
    let state = state.map_or("unknown", DeploymentRolloutState::as_str);
    let failed = match deployment.failed_tasks() {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    format!(
        "{state}, {} of {} tasks run{failed}",
        deployment.running_count(),
        deployment.desired_count()
    )
}

/// The deployment that was asked for last and never came up, and the one that serves in its place; `None` in every usual
/// case. `noted` is the task definition that is noted as deployed: that one worked.
pub(super) fn instead<'s>(
    service: &'s Service,
    noted: Option<&str>,
) -> Option<(&'s Deployment, &'s Deployment)> {
    let asked = primary(service)?;
    let known = asked.task_definition() == noted;
    if !fails(asked) && (known || !is_empty(asked)) {
        return None;
    }
    let serves = |one: &&Deployment| {
        one.status() == Some("ACTIVE")
            && one.rollout_state() == Some(&DeploymentRolloutState::Completed)
            && one.running_count() > 0
            && one.task_definition() != asked.task_definition()
    };
    // AWS tells the newest first.
    let found = service.deployments().iter().rev().filter(serves);
    let found = found.max_by_key(|one| (one.task_definition() == noted, one.running_count()))?;
    Some((asked, found))
}

/// How far the PRIMARY deployment of a service came that is on its way and takes the place of another one, for people.
pub(super) fn rolling(service: &Service) -> Option<String> {
    let asked = primary(service)?;
    let works = |one: &&Deployment| one.status() == Some("ACTIVE") && one.running_count() > 0;
    let replaces = service.deployments().iter().any(|one| works(&one));
    let going = asked.rollout_state() == Some(&DeploymentRolloutState::InProgress);
    (going && replaces).then(|| told(asked))
}

/// What is worth keeping of a service, as it is with what serves, and what it was told last where that is something else.
pub(super) fn kept(described: Described, noted: Option<&str>) -> (Value, Option<PassedOver>) {
    let Described {
        service,
        json: shown,
    } = described;
    let Some((asked, serving)) = instead(&service, noted) else {
        return (keepable(shown), None);
    };
    let passed_over = PassedOver {
        task_definition: asked.task_definition().unwrap_or_default().to_owned(),
        settings: digests(&shown),
        came: told(asked),
        serving: serving.running_count(),
    };
    let deployments = shown["deployments"].as_array();
    let mut deployments = deployments.into_iter().flatten();
    let found = deployments.find(|one| one["id"].as_str() == serving.id());
    let found = found.cloned().unwrap_or_default();
    let mut kept = keepable(shown);
    kept["taskDefinition"] = json!(serving.task_definition());
    if let Some(fields) = kept.as_object_mut() {
        for name in FOLLOW {
            match found.get(*name) {
                Some(value) => fields.insert((*name).to_owned(), value.clone()),
                None => fields.shift_remove(*name),
            };
        }
    }
    (kept, Some(passed_over))
}

impl PassedOver {
    /// What it was, in short.
    pub(super) fn short(&self) -> &str {
        short(&self.task_definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(told: &str) -> Deployment {
        let mut words = told.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (status, runs, state) = (word(), word(), word());
        let mut number = || word().parse().unwrap_or_default();
        Deployment::builder()
            .status(status)
            .task_definition(runs)
            .rollout_state(state.into())
            .running_count(number())
            .desired_count(number())
            .failed_tasks(number())
            .build()
    }

    #[test]
    fn what_never_came_up_is_passed_over_and_nothing_else() {
        let old = "ACTIVE web:1 COMPLETED 2 2 0";
        // The deployments, newest first; what is noted; what serves in the place of what was asked for last.
        let table: [(&[&str], &str, &str); 16] = [
            (&["PRIMARY web:2 COMPLETED 2 2 0"], "web:1", ""),
            (&["PRIMARY web:2 IN_PROGRESS 0 2 9"], "web:1", ""),
            // A deployment of somebody else that goes well.
            (&["PRIMARY web:2 IN_PROGRESS 1 2 0", old], "web:1", ""),
            (&["PRIMARY web:2 COMPLETED 0 2 0", old], "web:1", ""),
            (&["PRIMARY web:2 IN_PROGRESS 0 0 0", old], "web:1", ""),
            (&["PRIMARY web:2 ? 0 2 3", old], "web:1", ""),
            (&["PRIMARY web:2 IN_PROGRESS 0 2 3", old], "web:1", "web:1"),
            (&["PRIMARY web:2 IN_PROGRESS 0 2 0", old], "web:1", "web:1"),
            (&["PRIMARY web:2 IN_PROGRESS 0 2 0", old], "web:7", "web:1"),
            (&["PRIMARY web:2 FAILED 1 2 0", old], "", "web:1"),
            // It worked once: without a sign that it does not now it stays.
            (&["PRIMARY web:2 IN_PROGRESS 0 2 0", old], "web:2", ""),
            (&["PRIMARY web:2 IN_PROGRESS 1 2 1", old], "web:2", "web:1"),
            // The same once more, by `forceNewDeployment`.
            (&["PRIMARY web:1 IN_PROGRESS 0 2 3", old], "", ""),
            // Nothing else serves.
            (
                &["PRIMARY web:2 FAILED 0 2 3", "ACTIVE web:1 COMPLETED 0 0 0"],
                "web:1",
                "",
            ),
            (
                &[
                    "PRIMARY web:3 IN_PROGRESS 0 2 3",
                    "ACTIVE web:2 IN_PROGRESS 1 0 0",
                    old,
                ],
                "",
                "web:1",
            ),
            (
                &[
                    "PRIMARY web:3 FAILED 0 2 3",
                    "ACTIVE web:2 COMPLETED 3 3 0",
                    old,
                ],
                "web:1",
                "web:1",
            ),
        ];
        for (deployments, noted, expected) in table {
            let service = Service::builder();
            let all = deployments.iter().map(|told| deployment(told)).collect();
            let service = service.set_deployments(Some(all)).build();
            let found = instead(&service, Some(noted).filter(|noted| !noted.is_empty()));
            let found = found.and_then(|(_, serving)| serving.task_definition());
            assert_eq!(
                found.unwrap_or_default(),
                expected,
                "{deployments:?}, {noted}"
            );
        }
    }
}
