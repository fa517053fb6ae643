//! How long things take in the account.

use std::time::Duration;

/// Durations of what happens in the account by itself. Zero counts as one millisecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// PROVISIONING: placing a task and attaching its network interface. Also of load balancers.
    pub provision: Duration,
    /// PENDING: pulling the images. Some tasks take up to half as long again.
    pub pull: Duration,
    /// ACTIVATING: from the images being there to RUNNING.
    pub start: Duration,
    /// From RUNNING to the end of a container whose image dies at start.
    pub exit: Duration,
    /// From RUNNING until a task counts as healthy (or is found unhealthy), and from the registration of a
    /// target to the end of its initial health checks.
    pub health: Duration,
    /// From healthy to the end of a container whose image dies later.
    pub exit_later: Duration,
    /// DEACTIVATING: draining connections, for a task that no target group lets go of.
    pub drain: Duration,
    /// Longest that a target drains, whatever `deregistration_delay.timeout_seconds` of its target group
    /// says; its task is DEACTIVATING for as long. AWS: an hour, 5 minutes without a word.
    pub drain_max: Duration,
    /// STOPPING: from the stop signal to the end of the containers. Some tasks take up to half as long
    /// again.
    pub stop: Duration,
    /// DEPROVISIONING: detaching the network interface.
    pub deprovision: Duration,
    /// How long the service scheduler takes to react to a change.
    pub scheduler: Duration,
    /// First delay of the scheduler after tasks that failed to start; doubles with every further failure.
    pub throttle: Duration,
    /// Longest such delay. AWS: 27 minutes ("Amazon ECS service throttle logic", developer guide).
    pub throttle_max: Duration,
    /// How long a Lambda function is Pending after its creation, InProgress after a change, and a version of it
    /// Pending. A function of an image takes twice as long.
    pub function: Duration,
    /// How long stopped tasks, inactive services and inactive clusters stay visible. AWS: about an hour.
    pub keep_stopped: Duration,
}

impl Pace {
    /// Seconds, like Fargate in a quiet account.
    pub fn realistic() -> Self {
        Self {
            provision: Duration::from_secs(8),
            pull: Duration::from_secs(10),
            start: Duration::from_secs(4),
            exit: Duration::from_secs(3),
            health: Duration::from_secs(15),
            exit_later: Duration::from_secs(120),
            drain: Duration::from_secs(5),
            drain_max: Duration::from_secs(3600),
            stop: Duration::from_secs(10),
            deprovision: Duration::from_secs(8),
            scheduler: Duration::from_secs(5),
            throttle: Duration::from_secs(10),
            throttle_max: Duration::from_secs(27 * 60),
            function: Duration::from_secs(4),
            keep_stopped: Duration::from_secs(3600),
        }
    }

    /// Tenths of a second, for demonstrations and tests against real time.
    pub fn brisk() -> Self {
        Self {
            provision: Duration::from_millis(100),
            pull: Duration::from_millis(200),
            start: Duration::from_millis(100),
            exit: Duration::from_millis(100),
            health: Duration::from_millis(300),
            exit_later: Duration::from_secs(3),
            drain: Duration::from_millis(100),
            drain_max: Duration::from_millis(500),
            stop: Duration::from_millis(200),
            deprovision: Duration::from_millis(100),
            scheduler: Duration::from_millis(100),
            throttle: Duration::from_millis(200),
            throttle_max: Duration::from_secs(20),
            function: Duration::from_millis(200),
            keep_stopped: Duration::from_secs(3600),
        }
    }
}
