//! A service is given another number of tasks, without a deployment, and followed until it has them.
//!
//! ECS counts the failed tasks of a deployment only while it is in progress. So tasks that fail here are looked
//! for one by one, and the step ends where ECS's circuit breaker would end a deployment.

use std::time::Duration;

use aws_sdk_ecs::types::{Task, TaskStopCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use slipway_model::status::{ErrorType, Failure};

use super::service::{Described, update};
use super::site::Site;
use super::task_definition::short;
use super::watch::{Goal, Seen, Watch, reason, stopped};
use crate::context::StepContext;

/// Stopped tasks are asked for at each third look.
const LOOKS_PER_ASKING: u32 = 3;

/// Most reasons in a failure's message.
const MOST_REASONS: usize = 3;

/// What is remembered between two looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Resize {
    /// What AWS was told, once it was.
    told: Option<Told>,
    watch: Watch,
    looks: u32,
    /// Tasks that failed since.
    failed: Vec<String>,
    /// Why they did, newest last.
    reasons: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Told {
    desired: i64,
    /// What the service runs; it stays.
    runs: String,
    /// When it was, epoch milliseconds.
    at_ms: i64,
}

impl Resize {
    /// Whether AWS was told.
    pub(super) fn told(&self) -> bool {
        self.told.is_some()
    }

    /// Why tasks stopped meanwhile.
    pub(super) fn evidence(&self) -> Option<String> {
        let newest = self.reasons.len().saturating_sub(MOST_REASONS);
        let reasons = self.reasons.get(newest..).unwrap_or_default();
        let own = (!reasons.is_empty()).then(|| reasons.join("; "));
        own.or_else(|| self.watch.evidence())
    }

    /// Tells AWS, unless the service is to have this count already, from a call that was cut off for instance.
    pub(super) async fn tell(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        (name, found): (&str, &Described),
        desired: i64,
        unit: &'static str,
    ) -> Result<(), Failure> {
        let before = i64::from(found.service.desired_count());
        let at_ms = cx.clock().now_ms();
        if before == desired {
            let already = format!("Service {name} is to have {desired} tasks already");
            cx.info(unit, already);
        } else {
            let change = format!("Scaling Service {name} from {before} to {desired} tasks");
            cx.info(unit, change);
            let document = json!({
                "cluster": site.cluster, "service": name, "desiredCount": desired,
            });
            update(site, &document).await?;
        }
        let runs = found.service.task_definition().unwrap_or_default();
        *self = Self {
            told: Some(Told {
                desired,
                runs: runs.to_owned(),
                at_ms,
            }),
            watch: Watch::after(&found.service),
            ..Self::default()
        };
        Ok(())
    }

    /// Looks once; how long to wait for the next look, or `None` when the service has its tasks.
    pub(super) async fn look(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        name: &str,
        unit: &'static str,
    ) -> Result<Option<Duration>, Failure> {
        let Some(told) = self.told.clone() else {
            return Ok(None);
        };
        let goal = Goal {
            service: name,
            task_definition: &told.runs,
            deployment: None,
            unit,
        };
        if let Seen::Steady = self.watch.look(cx, site, &goal).await? {
            return Ok(None);
        }
        self.looks += 1;
        if self.looks.is_multiple_of(LOOKS_PER_ASKING) {
            self.tell_failed(cx, (site, name), &told, unit).await?;
        }
        Ok(Some(self.watch.pause()))
    }

    /// Tells which tasks failed since, and fails when they are too many.
    async fn tell_failed(
        &mut self,
        cx: &mut StepContext<'_>,
        (site, name): (&Site, &str),
        told: &Told,
        unit: &'static str,
    ) -> Result<(), Failure> {
        for task in stopped(site, name).await? {
            let arn = task.task_arn().unwrap_or_default();
            if !has_failed(&task, told.at_ms) || self.failed.iter().any(|known| known == arn) {
                continue;
            }
            let why = reason(&task);
            cx.warn(unit, format!("Task {} stopped: {why}", short(arn)));
            self.failed.push(arn.to_owned());
            if self.reasons.last() != Some(&why) {
                self.reasons.push(why);
            }
        }
        // The threshold of ECS's circuit breaker: half of the tasks, at least 3 and at most 200.
        let threshold = (told.desired / 2 + told.desired % 2).clamp(3, 200);
        let failed = self.failed.len();
        if i64::try_from(failed).unwrap_or(i64::MAX) < threshold {
            return Ok(());
        }
        let reasons = self.evidence().unwrap_or_default();
        Err(Failure {
            error: ErrorType::Unknown,
            message: format!(
                "Service {name} in {site} does not get its {} tasks of {}: {failed} tasks failed since it was \
                 scaled, and AWS would go on trying without an end. Tasks stopped because: {}.",
                told.desired,
                short(&told.runs),
                reasons.trim_end_matches('.')
            ),
            left_behind: None,
        })
    }
}

/// Whether a task that was started since has failed, other than by being scaled in.
fn has_failed(task: &Task, since_ms: i64) -> bool {
    let created = task.created_at().and_then(|at| at.to_millis().ok());
    let unhealthy = || {
        task.stopped_reason()
            .is_some_and(|why| why.contains("failed"))
    };
    created.is_some_and(|at| at >= since_ms)
        && match task.stop_code() {
            Some(TaskStopCode::TaskFailedToStart | TaskStopCode::EssentialContainerExited) => true,
            Some(TaskStopCode::ServiceSchedulerInitiated) => unhealthy(),
            _ => false,
        }
}
