//! Containers of a task, and what their images make of the task.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::task::Task;
use super::task_definition::ContainerSpec;
use crate::account::Account;
use crate::image::{self, ImageBehaviour};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Container {
    pub(crate) spec: ContainerSpec,
    pub(crate) arn: String,
    pub(crate) digest: String,
    /// Set once the container has been started.
    pub(crate) runtime_id: Option<String>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) reason: Option<String>,
}

/// What will become of a task, decided when its images are pulled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub(crate) enum Fate {
    #[default]
    Runs,
    PullFails {
        container: usize,
    },
    Exits {
        container: usize,
        code: i32,
    },
    ExitsLater {
        container: usize,
        code: i32,
    },
    Unhealthy,
}

/// The fate of a task: the worst of any of its containers. A container that is not essential does not end its task by
/// ending.
pub(crate) fn fate(account: &Account, task: &Task) -> Fate {
    let containers = task.containers.iter().enumerate();
    let fates = containers.map(|(container, one)| {
        let (behaviour, code) = account.behaviour(&one.spec.image);
        match behaviour {
            ImageBehaviour::PullFails => (5, Fate::PullFails { container }),
            ImageBehaviour::Exits if one.spec.essential => (4, Fate::Exits { container, code }),
            ImageBehaviour::Unhealthy if one.spec.essential => (3, Fate::Unhealthy),
            ImageBehaviour::ExitsLater if one.spec.essential => {
                (2, Fate::ExitsLater { container, code })
            }
            ImageBehaviour::Runs if one.spec.essential && is_job(task, one) => {
                (1, Fate::Exits { container, code: 0 })
            }
            _ => (0, Fate::Runs),
        }
    });
    fates
        .max_by_key(|(weight, _)| *weight)
        .map_or(Fate::Runs, |(_, fate)| fate)
}

/// Whether a container has one thing to do, and ends when it has done it: no service keeps its task, and what started it said
/// which command it runs.
fn is_job(task: &Task, container: &Container) -> bool {
    let overrides = task.overrides.get("containerOverrides");
    let mut overrides = overrides.and_then(Value::as_array).into_iter().flatten();
    let overridden = overrides.any(|one| {
        let commands = one["command"].as_array();
        one["name"] == container.spec.name && commands.is_some_and(|words| !words.is_empty())
    });
    task.owner.is_none() && (container.spec.has_command || overridden)
}

/// What AWS says when the image of `container` does not exist (Fargate platform 1.4).
pub(crate) fn pull_error(container: &Container) -> String {
    let reference = image::reference(&container.spec.image);
    format!(
        "CannotPullContainerError: pull image manifest has been retried 1 time(s): \
         failed to resolve ref {reference}: {reference}: not found"
    )
}

impl Container {
    /// As `DescribeTasks` shows it.
    pub(crate) fn view(&self, task_arn: &str, status: &str, health: &str, net: Value) -> Value {
        let mut view = json!({
            "containerArn": self.arn,
            "taskArn": task_arn,
            "name": self.spec.name,
            "image": self.spec.image,
            "lastStatus": status,
            "networkBindings": [],
            "networkInterfaces": net,
            "healthStatus": if self.spec.has_health_check { health } else { "UNKNOWN" },
            "cpu": "0",
        });
        if let Some(id) = &self.runtime_id {
            view["runtimeId"] = json!(id);
            view["imageDigest"] = json!(self.digest);
        }
        if let Some(code) = self.exit_code {
            view["exitCode"] = json!(code);
        }
        if let Some(reason) = &self.reason {
            view["reason"] = json!(reason);
        }
        view
    }
}
