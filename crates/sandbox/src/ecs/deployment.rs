//! Deployments of a service, and the circuit breaker that fails them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::fields::{Document, Fields};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum DeploymentStatus {
    Primary,
    Active,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum RolloutState {
    InProgress,
    Completed,
    Failed,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Deployment {
    pub(crate) id: String,
    pub(crate) status: DeploymentStatus,
    /// ARN of the task definition.
    pub(crate) task_definition: String,
    /// What else belongs to a deployment: launch type, network, load balancers and so on, as the service
    /// had them when the deployment began.
    pub(crate) settings: Document,
    pub(crate) failed_tasks: u32,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) rollout: RolloutState,
    pub(crate) reason: String,
}

impl Deployment {
    pub(crate) fn is_primary(&self) -> bool {
        self.status == DeploymentStatus::Primary
    }

    pub(crate) fn is_in_progress(&self) -> bool {
        self.rollout == RolloutState::InProgress
    }

    pub(crate) fn turn(&mut self, rollout: RolloutState, reason: String, now: Timestamp) {
        self.rollout = rollout;
        self.reason = reason;
        self.updated_at = now;
    }
}

/// The members of `deploymentConfiguration` that the scheduler acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeploymentConfiguration {
    pub(crate) minimum_healthy_percent: i64,
    pub(crate) maximum_percent: i64,
    pub(crate) breaker: Option<CircuitBreaker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CircuitBreaker {
    pub(crate) rollback: bool,
    /// Whether a healthy task sets the count of failures back.
    pub(crate) resets: bool,
    threshold: Threshold,
}

/// `ThresholdConfiguration` (Amazon ECS API reference).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threshold {
    /// A percentage of the desired count, at least 3 and at most 200.
    BoundedPercent(i64),
    UnboundedPercent(i64),
    Count(i64),
}

impl CircuitBreaker {
    /// Failed tasks that fail a deployment.
    pub(crate) fn threshold(&self, desired: i64) -> i64 {
        let of = |percent: i64| percent_up(desired, percent);
        match self.threshold {
            Threshold::BoundedPercent(percent) => of(percent).clamp(3, 200),
            Threshold::UnboundedPercent(percent) => of(percent).max(1),
            Threshold::Count(count) => count.max(1),
        }
    }
}

impl DeploymentConfiguration {
    /// Reads and checks `deploymentConfiguration`; absent means 100 % and 200 % without a breaker.
    pub(crate) fn read(document: Option<&Document>) -> Result<Self, ApiError> {
        let empty = Document::new();
        let fields = Fields(document.unwrap_or(&empty));
        let invalid = |message: &str| Err(ApiError::invalid_parameter(message));
        if let Some(strategy) = fields.text("strategy")?
            && strategy != "ROLLING"
        {
            return Err(ApiError::unsupported(format!(
                "The sandbox account does not implement the deployment strategy {strategy}."
            )));
        }
        let minimum = fields.integer("minimumHealthyPercent")?.unwrap_or(100);
        let maximum = fields.integer("maximumPercent")?.unwrap_or(200);
        if !(0..=100).contains(&minimum) {
            return invalid("minimumHealthyPercent must be between 0 and 100.");
        }
        if !(100..=200).contains(&maximum) {
            return invalid("maximumPercent must be between 100 and 200.");
        }
        if minimum == 100 && maximum == 100 {
            return invalid(
                "Both maximumPercent and minimumHealthyPercent cannot be 100 as this will block deployments.",
            );
        }
        Ok(Self {
            minimum_healthy_percent: minimum,
            maximum_percent: maximum,
            breaker: breaker(fields.object("deploymentCircuitBreaker")?)?,
        })
    }

    /// Healthy tasks that a deployment must leave: rounded up.
    pub(crate) fn minimum(&self, desired: i64) -> i64 {
        percent_up(desired, self.minimum_healthy_percent)
    }

    /// Tasks that a deployment may have: rounded down.
    pub(crate) fn maximum(&self, desired: i64) -> i64 {
        desired * self.maximum_percent / 100
    }
}

fn breaker(document: Option<&Document>) -> Result<Option<CircuitBreaker>, ApiError> {
    let Some(document) = document else {
        return Ok(None);
    };
    let fields = Fields(document);
    if fields.flag("enable")? != Some(true) {
        return Ok(None);
    }
    let threshold = match fields.object("thresholdConfiguration")? {
        None => Threshold::BoundedPercent(50),
        Some(configuration) => {
            let configuration = Fields(configuration);
            let value = configuration.integer("value")?.unwrap_or(50);
            let value = value.clamp(0, 1_000_000);
            match configuration.text("type")? {
                Some("COUNT") => Threshold::Count(value),
                Some("UNBOUNDED_PERCENT") => Threshold::UnboundedPercent(value),
                _ => Threshold::BoundedPercent(value),
            }
        }
    };
    Ok(Some(CircuitBreaker {
        rollback: fields.flag("rollback")?.unwrap_or(false),
        resets: fields.flag("resetOnHealthyTask")?.unwrap_or(true),
        threshold,
    }))
}

fn percent_up(desired: i64, percent: i64) -> i64 {
    (desired * percent + 99) / 100
}
