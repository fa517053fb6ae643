//! Follows a group until its instances are healthy, and tells early and with evidence when they will not be: AWS goes
//! on replacing instances without an end.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::group::{self, Group, Standing};
use super::hooks::Hooks;
use super::site::Site;
use super::template::Version;
use super::wrong;
use crate::context::StepContext;

/// Longest time between two looks, seconds; Harness looks every 20 seconds.
const LONGEST_PAUSE: u64 = 20;
/// Activities are asked for at each third look.
const LOOKS_PER_ASKING: u64 = 3;
/// How long instances must stay healthy, once AWS judges them, milliseconds.
const STABLE_MS: i64 = 10_000;
/// What a step keeps of its timeout for what it does after a grace period, milliseconds.
const KEPT_MS: i64 = 120_000;
/// How old an activity may be that tells how a group is, milliseconds.
const RECENT_MS: i64 = 3_600_000;
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
    /// The instances that the group has had since it had enough of them, and until when it must have them.
    #[serde(default)]
    reached: Option<Reached>,
    /// Whether it had enough instances once, and lost one of them.
    #[serde(default)]
    lost: bool,
    /// Instances that wait for lifecycle hooks, when they were told last.
    #[serde(default)]
    held: Option<String>,
    /// Why nothing is started or ended, when it was told last.
    #[serde(default)]
    suspended: Option<String>,
    /// Instances that were there before the change: what becomes of them says nothing about what takes their place.
    #[serde(default)]
    older: BTreeSet<String>,
    /// Activities of theirs that failed since.
    #[serde(default)]
    passed_over: Vec<String>,
    /// Activities that failed since.
    failed: Vec<String>,
    /// Why, newest last.
    reasons: Vec<String>,
}

/// A group that has its instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Reached {
    instances: BTreeSet<String>,
    /// Epoch milliseconds.
    until_ms: i64,
}

/// How long instances must stay healthy. A refresh has its warm-up; without one nothing else would see instances that
/// die just after their start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stay {
    /// Not at all.
    No,
    /// A moment: something else is asked for their health afterwards.
    Briefly,
    /// Until AWS has judged them: while `HealthCheckGracePeriod` lasts it calls every instance healthy.
    Judged,
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
    /// How long they must stay so.
    pub(super) stay: Stay,
    pub(super) unit: &'static str,
}

impl Steady {
    /// When to look again: 1 to 20 seconds, growing.
    pub(super) fn pause(&self) -> Duration {
        Duration::from_secs((1 + self.looks / 2).min(LONGEST_PAUSE))
    }

    /// Does not count what becomes of the instances of a group that were started from something else than `version`: those of
    /// a version that fails go on failing until they are replaced.
    pub(super) fn leave_out(&mut self, group: &Group, version: &Version) {
        let members = group.members().into_iter();
        let others = members.filter(|member| !member.runs(version));
        self.older
            .extend(others.map(|member| member.id().to_owned()));
    }

    /// Why instances failed so far.
    pub(super) fn evidence(&self) -> Option<String> {
        let newest = self.reasons.len().saturating_sub(MOST_REASONS);
        let reasons = self.reasons.get(newest..).unwrap_or_default();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Which instances waited for lifecycle hooks when the group was seen last.
    pub(super) fn held(&self) -> Option<&str> {
        self.held.as_deref()
    }

    /// Why the group could not come to its number of instances when it was seen last.
    pub(super) fn suspended(&self) -> Option<&str> {
        self.suspended.as_deref()
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
            if goal.stay == Stay::No {
                return Ok(None);
            }
            return self.stay(cx, site, (&group, goal)).await;
        }
        self.lost |= self.reached.take().is_some();
        self.tell_suspended(cx, &group, (many(all), goal), unit)
            .await?;
        self.tell_held(cx, site, &group, unit).await;
        self.ask(cx, site, (name, goal.desired), unit).await?;
        Ok(Some(self.pause()))
    }

    /// The group has its instances: how long they must still stay healthy. Others in their place begin anew: AWS replaces
    /// those that fail their checks, and may be so fast that every look finds enough healthy ones.
    async fn stay(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        (group, goal): (&Group, Goal<'_>),
    ) -> Result<Option<Duration>, Failure> {
        let instances = group.serving_ids(goal.version);
        if let Some(reached) = &self.reached
            && !reached.instances.is_subset(&instances)
        {
            self.lost = true;
            self.reached = None;
            let (name, unit) = (goal.group, goal.unit);
            cx.warn(
                unit,
                format!("Instances of Asg {name} that were healthy were replaced: waiting anew"),
            );
            self.ask_now(cx, site, (name, goal.desired), unit).await?;
        }
        let until = match &self.reached {
            Some(reached) => reached.until_ms,
            None => {
                let until_ms = cx.clock().now_ms() + self.stay_ms(cx, group, goal);
                self.reached = Some(Reached {
                    instances,
                    until_ms,
                });
                until_ms
            }
        };
        let left = u64::try_from(until - cx.clock().now_ms()).unwrap_or_default();
        let pause = Duration::from_millis(left).min(Duration::from_secs(LONGEST_PAUSE));
        Ok((left > 0).then_some(pause))
    }

    /// How long instances that are healthy now must stay so, milliseconds; also said in the log.
    fn stay_ms(&self, cx: &mut StepContext<'_>, group: &Group, goal: Goal<'_>) -> i64 {
        let grace = group.number("HealthCheckGracePeriod").max(0);
        if goal.stay != Stay::Judged || grace == 0 {
            return STABLE_MS;
        }
        let whole = grace.saturating_mul(1_000).saturating_add(STABLE_MS);
        let left = i64::try_from(cx.time_left().as_millis()).unwrap_or(i64::MAX);
        let most = left.saturating_sub(KEPT_MS).max(STABLE_MS);
        // Who has lost an instance gets no shorter time: rather the step's timeout ends it.
        if whole <= most || self.lost || !self.failed.is_empty() {
            let told = format!(
                "AWS judges the health of instances of Asg {} after its HealthCheckGracePeriod of {grace} s: they must \
                 stay healthy for {} s",
                goal.group,
                whole / 1_000
            );
            cx.info(goal.unit, told);
            return whole;
        }
        let told = format!(
            "Instances of Asg {} are waited for {} s only: its HealthCheckGracePeriod of {grace} s, before which AWS \
             does not judge their health, is longer than what is left of the step's timeout. Those that fail their \
             checks later are not noticed: give the step a longer `timeout`",
            goal.group,
            most / 1_000
        );
        cx.warn(goal.unit, told);
        most
    }

    /// Tells, in the run too, that the group starts or ends no instances because a process of it is suspended: nothing comes
    /// of waiting until somebody resumes it.
    async fn tell_suspended(
        &mut self,
        cx: &mut StepContext<'_>,
        group: &Group,
        (all, goal): (i64, Goal<'_>),
        unit: &'static str,
    ) -> Result<(), Failure> {
        let (process, what) = match all.cmp(&goal.desired) {
            Ordering::Less => ("Launch", "starts"),
            Ordering::Greater if goal.only => ("Terminate", "ends"),
            Ordering::Equal | Ordering::Greater => ("", ""),
        };
        let told = group.suspended(process).map(|reason| {
            let name = group.name();
            format!(
                "Asg {name} {what} no instances: its process {process} is suspended ({reason}). `aws autoscaling \
                 resume-processes --auto-scaling-group-name {name} --scaling-processes {process}` lets it go on"
            )
        });
        if let Some(told) = told
            .as_ref()
            .filter(|told| self.suspended.as_ref() != Some(told))
        {
            cx.warn_of_run(unit, told).await?;
        }
        self.suspended = told;
        Ok(())
    }

    /// Tells which instances wait for lifecycle hooks: without whoever completes the action, for up to its timeout.
    pub(super) async fn tell_held(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        group: &Group,
        unit: &'static str,
    ) {
        let held = group.held().join(", ");
        if held.is_empty() {
            self.held = None;
            return;
        }
        if self.held.as_ref().is_some_and(|told| told.ends_with(&held)) {
            return;
        }
        let hooks = match Hooks::describe(site, group.name()).await {
            Ok(hooks) => hooks.told(),
            // Who may not look at hooks is still told that there is one.
            Err(_) => String::new(),
        };
        let told = format!(
            "instances of Asg {} wait for a lifecycle hook{hooks}: {held}",
            group.name()
        );
        cx.info(unit, format!("There are {told}"));
        self.held = Some(told);
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

    /// At each third look, tells which activities failed since, and fails when they are too many.
    async fn ask(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        (name, desired): (&str, i64),
        unit: &'static str,
    ) -> Result<(), Failure> {
        match self.looks.is_multiple_of(LOOKS_PER_ASKING) {
            true => self.ask_now(cx, site, (name, desired), unit).await,
            false => Ok(()),
        }
    }

    async fn ask_now(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        (name, desired): (&str, i64),
        unit: &'static str,
    ) -> Result<(), Failure> {
        for activity in activities(site, name).await?.iter().rev() {
            let id = activity["ActivityId"].as_str().unwrap_or_default();
            let mut known = self.failed.iter().chain(&self.passed_over);
            if known.any(|known| known == id) || !self.is_since(activity) {
                continue;
            }
            if let Some(why) = failed(activity) {
                if self.is_of_older(activity) {
                    cx.info(unit, &why);
                    self.passed_over.push(id.to_owned());
                    continue;
                }
                cx.warn(unit, &why);
                self.failed.push(id.to_owned());
                if self.reasons.last() != Some(&why) {
                    self.reasons.push(why);
                }
            }
        }
        let count = i64::try_from(self.failed.len()).unwrap_or(i64::MAX);
        if count < threshold(desired) {
            return Ok(());
        }
        Err(wrong(format!(
            "Auto Scaling group {name} in {site} does not get {desired} healthy instances: {count} of its activities \
             failed since it was changed, and AWS would go on trying without an end. {}",
            self.evidence().unwrap_or_default()
        )))
    }

    fn is_of_older(&self, activity: &Value) -> bool {
        let told = activity["Description"].as_str().unwrap_or_default();
        self.older.iter().any(|instance| told.contains(instance))
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

/// Whether so many activities of a group failed in the last hour that a deployment would be given up, in words.
pub(super) async fn failing(
    cx: &StepContext<'_>,
    site: &Site,
    (name, desired): (&str, i64),
) -> Result<Option<String>, Failure> {
    let since = Steady {
        since_ms: Some(cx.clock().now_ms() - RECENT_MS),
        ..Steady::default()
    };
    let activities = activities(site, name).await?;
    let recent = activities.iter().filter(|one| since.is_since(one));
    // AWS tells the newest first.
    let reasons: Vec<String> = recent.filter_map(failed).collect();
    let many = i64::try_from(reasons.len()).unwrap_or(i64::MAX) >= threshold(desired);
    let last = reasons.first().filter(|_| many);
    Ok(last.map(|last| {
        format!(
            "{} of its activities failed in the last hour, the last one: {last}",
            reasons.len()
        )
    }))
}

/// How many activities must have failed until a group is given up.
fn threshold(desired: i64) -> i64 {
    (desired / 2 + desired % 2).clamp(3, 50)
}

/// The newest activities of a group.
async fn activities(site: &Site, name: &str) -> Result<Vec<Value>, Failure> {
    let doing = format!("look at the activities of Auto Scaling group {name}");
    let request = json!({"AutoScalingGroupName": name});
    let answer = site
        .scaling("DescribeScalingActivities", &request, &doing)
        .await?;
    Ok(answer["Activities"].as_array().cloned().unwrap_or_default())
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
