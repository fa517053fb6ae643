//! Follows a group until its instances are healthy, and tells early and with evidence when they will not be: AWS goes
//! on replacing instances without an end.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::group::{self, Standing};
use super::site::Site;
use super::template::Version;
use super::wrong;
use crate::context::StepContext;

/// Longest time between two looks, seconds; Harness looks every 20 seconds.
const LONGEST_PAUSE: u64 = 20;
/// Activities are asked for at each third look.
const LOOKS_PER_ASKING: u64 = 3;
/// How long instances must stay healthy, milliseconds.
const STABLE_MS: i64 = 10_000;
/// Most reasons in a failure's message.
const MOST_REASONS: usize = 3;

/// What is remembered between two looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Steady {
    looks: u64,
    /// When the first look was, epoch milliseconds.
    since_ms: Option<i64>,
    /// Healthy and desired instances when they were told last.
    counted: Option<(usize, i64)>,
    /// When the group had its instances, and has had them since; epoch milliseconds.
    #[serde(default)]
    reached_ms: Option<i64>,
    /// Activities that failed since.
    failed: Vec<String>,
    /// Why, newest last.
    reasons: Vec<String>,
}

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal<'a> {
    pub(super) group: &'a str,
    /// Instances that must be healthy.
    pub(super) desired: i64,
    /// What they must have been started from, where that matters.
    pub(super) version: Option<&'a Version>,
    /// Whether others must be gone.
    pub(super) only: bool,
    /// Whether they must stay healthy for a while: without a refresh, which has its warm-up, nothing else would see
    /// instances that die just after their start.
    pub(super) stable: bool,
    pub(super) unit: &'static str,
}

impl Steady {
    /// When to look again: 1 to 20 seconds, growing.
    pub(super) fn pause(&self) -> Duration {
        Duration::from_secs((1 + self.looks / 2).min(LONGEST_PAUSE))
    }

    /// Why instances failed so far.
    pub(super) fn evidence(&self) -> Option<String> {
        let newest = self.reasons.len().saturating_sub(MOST_REASONS);
        let reasons = self.reasons.get(newest..).unwrap_or_default();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Looks once; how long to wait for the next look, or `None` when the group is as it is to be.
    pub(super) async fn look(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        goal: Goal<'_>,
    ) -> Result<Option<Duration>, Failure> {
        let (name, unit) = (goal.group, goal.unit);
        if self.looks == 0 {
            cx.info(
                unit,
                format!("Waiting for Asg {name} to reach steady state"),
            );
        }
        self.begin(cx);
        let group = match group::describe(site, name).await? {
            Standing::There(group) => group,
            Standing::Absent | Standing::Leaving => {
                return Err(wrong(format!(
                    "Auto Scaling group {name} in {site} was deleted by somebody or something else while its \
                     instances were waited for."
                )));
            }
        };
        let healthy = group.serving(goal.version);
        let all = group.members().iter().filter(|one| one.counts()).count();
        let now = (healthy, goal.desired);
        if self.counted != Some(now) {
            cx.info(
                unit,
                format!("{healthy}/{} instances are healthy", goal.desired),
            );
            self.counted = Some(now);
        }
        let many = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let enough = many(healthy) >= goal.desired;
        if enough && (!goal.only || (many(all) == goal.desired && healthy == all)) {
            let now = cx.clock().now_ms();
            let reached = *self.reached_ms.get_or_insert(now);
            if !goal.stable || now - reached >= STABLE_MS {
                return Ok(None);
            }
            return Ok(Some(Duration::from_millis(STABLE_MS.unsigned_abs())));
        }
        self.reached_ms = None;
        self.ask(cx, site, (name, goal.desired), unit).await?;
        Ok(Some(self.pause()))
    }

    fn begin(&mut self, cx: &StepContext<'_>) {
        self.looks += 1;
        self.since_ms.get_or_insert(cx.clock().now_ms());
    }

    /// Counts a look of somebody else who wants the evidence.
    pub(super) async fn look_beside(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        goal: (&str, i64),
        unit: &'static str,
    ) -> Result<(), Failure> {
        self.begin(cx);
        self.ask(cx, site, goal, unit).await
    }

    /// Tells which activities failed since, and fails when they are too many.
    async fn ask(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        (name, desired): (&str, i64),
        unit: &'static str,
    ) -> Result<(), Failure> {
        if !self.looks.is_multiple_of(LOOKS_PER_ASKING) {
            return Ok(());
        }
        let doing = format!("look at the activities of Auto Scaling group {name}");
        let request = json!({"AutoScalingGroupName": name});
        let answer = site
            .scaling("DescribeScalingActivities", &request, &doing)
            .await?;
        let activities = answer["Activities"].as_array().cloned().unwrap_or_default();
        for activity in activities.iter().rev() {
            let id = activity["ActivityId"].as_str().unwrap_or_default();
            if self.failed.iter().any(|known| known == id) || !self.is_since(activity) {
                continue;
            }
            if let Some(why) = failed(activity) {
                cx.warn(unit, &why);
                self.failed.push(id.to_owned());
                if self.reasons.last() != Some(&why) {
                    self.reasons.push(why);
                }
            }
        }
        let threshold = (desired / 2 + desired % 2).clamp(3, 50);
        let count = i64::try_from(self.failed.len()).unwrap_or(i64::MAX);
        if count < threshold {
            return Ok(());
        }
        Err(wrong(format!(
            "Auto Scaling group {name} in {site} does not get {desired} healthy instances: {count} of its activities \
             failed since it was changed, and AWS would go on trying without an end. {}",
            self.evidence().unwrap_or_default()
        )))
    }

    fn is_since(&self, activity: &Value) -> bool {
        let at = activity["StartTime"].as_str();
        let at: Option<Timestamp> = at.and_then(|at| at.parse().ok());
        // AWS tells whole seconds.
        at.is_some_and(|at| {
            self.since_ms
                .is_none_or(|since| at.as_millisecond() >= since - 1_000)
        })
    }
}

/// Why an activity failed, or ended an instance that failed.
fn failed(activity: &Value) -> Option<String> {
    let text = |field: &str| activity[field].as_str().unwrap_or_default();
    if ["Failed", "Cancelled"].contains(&text("StatusCode")) {
        return Some(format!(
            "{}: {}",
            text("Description"),
            text("StatusMessage")
        ));
    }
    let sick =
        text("Description").starts_with("Terminating") && text("Cause").contains("health check");
    sick.then(|| format!("{}: {}", text("Description"), text("Cause")))
}
