//! Instance refreshes: started, followed, cancelled.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::group::{self, Group, Standing};
use super::site::{Ask, Site};
use super::steady::Steady;
use super::template::Version;
use super::wrong;
use crate::context::StepContext;

/// A refresh as AWS shows it.
#[derive(Clone, Debug)]
pub(super) struct Shown(Value);

impl Shown {
    pub(super) fn id(&self) -> &str {
        self.0["InstanceRefreshId"].as_str().unwrap_or_default()
    }

    fn status(&self) -> &str {
        self.0["Status"].as_str().unwrap_or_default()
    }

    /// Whether it blocks another one.
    pub(super) fn is_active(&self) -> bool {
        [
            "Pending",
            "InProgress",
            "Cancelling",
            "RollbackInProgress",
            "Baking",
        ]
        .contains(&self.status())
    }

    pub(super) fn is_successful(&self) -> bool {
        self.status() == "Successful"
    }

    /// What became of it, for people.
    pub(super) fn told(&self) -> String {
        match self.is_active() {
            true => format!("instance refresh {} is {}", self.id(), self.status()),
            false => format!("instance refresh {} ended as {}", self.id(), self.status()),
        }
    }

    fn percentage(&self) -> &str {
        self.0["PercentageComplete"].as_str().unwrap_or("0")
    }

    fn reason(&self) -> &str {
        self.0["StatusReason"].as_str().unwrap_or_default()
    }
}

/// The refreshes of a group, newest first: all that AWS gives at once, or the one of this id.
async fn list(site: &Site, name: &str, id: Option<&str>) -> Result<Vec<Shown>, Failure> {
    let doing = format!("look at the instance refreshes of Auto Scaling group {name}");
    let mut request = json!({"AutoScalingGroupName": name});
    if let Some(id) = id {
        request["InstanceRefreshIds"] = json!([id]);
    }
    let answer = site
        .scaling("DescribeInstanceRefreshes", &request, &doing)
        .await?;
    let found = answer["InstanceRefreshes"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    Ok(found.into_iter().map(Shown).collect())
}

/// The newest refresh of a group.
pub(super) async fn newest(site: &Site, name: &str) -> Result<Option<Shown>, Failure> {
    Ok(list(site, name, None).await?.into_iter().next())
}

/// The command that ends the refresh of a group.
pub(super) fn cancelling(group: &str) -> String {
    format!("aws autoscaling cancel-instance-refresh --auto-scaling-group-name {group}")
}

/// How instances are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Preferences {
    pub(super) min: i64,
    pub(super) max: i64,
    pub(super) warmup: Option<i64>,
    pub(super) skip_matching: bool,
}

/// A refresh that a step started. Written down before and after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Refresh {
    /// The newest one when this was about to be started; `Some("")` for none.
    before: Option<String>,
    pub(super) id: Option<String>,
    told: Option<(String, String)>,
    looks: u64,
    steady: Steady,
    /// Whether instances that fail do not end the wait: on the way back those of the failed version go on failing.
    #[serde(default)]
    pub(super) patient: bool,
}

impl Refresh {
    /// Notes what there is before the start; to be saved then.
    pub(super) async fn about_to(&mut self, site: &Site, name: &str) -> Result<(), Failure> {
        if self.before.is_none() {
            let newest = newest(site, name).await?;
            self.before = Some(newest.map(|one| one.id().to_owned()).unwrap_or_default());
        }
        Ok(())
    }

    /// Whether a refresh is this one, or may be: the answer to its start may have been lost.
    pub(super) fn may_be(&self, id: &str) -> bool {
        match &self.id {
            Some(own) => own == id,
            None => self.before.as_deref().is_some_and(|before| before != id),
        }
    }

    /// Whether the start was about to happen in a call before.
    pub(super) fn is_about_to(&self) -> bool {
        self.before.is_some() && self.id.is_none()
    }

    /// Starts it, unless a call that was cut off did.
    pub(super) async fn start(
        &mut self,
        cx: &mut StepContext<'_>,
        (site, name): (&Site, &str),
        preferences: Preferences,
        (resumed, unit): (bool, &'static str),
    ) -> Result<(), Failure> {
        if resumed
            && let Some(newest) = newest(site, name).await?
            && self.before.as_deref() != Some(newest.id())
        {
            self.id = Some(newest.id().to_owned());
            return Ok(());
        }
        let Preferences {
            min,
            max,
            warmup,
            skip_matching,
        } = preferences;
        let wanted = json!({
            "MinHealthyPercentage": min,
            "MaxHealthyPercentage": max,
            "InstanceWarmup": warmup,
            "SkipMatching": skip_matching,
        });
        cx.info(unit, format!("Starting Instance Refresh for Asg {name}"));
        let request = json!({"AutoScalingGroupName": name, "Preferences": wanted});
        let doing = format!("start an instance refresh of Auto Scaling group {name}");
        let answer = site
            .scaling("StartInstanceRefresh", &request, &doing)
            .await?;
        let id = answer["InstanceRefreshId"].as_str();
        let id = id.ok_or_else(|| wrong(format!("AWS did not name the refresh of {name}.")))?;
        self.id = Some(id.to_owned());
        Ok(())
    }

    /// Looks once; how long to wait for the next look, or `None` when it has succeeded. `hasty` are the instances and
    /// the version that are enough to go on, whatever is still to be terminated.
    pub(super) async fn look(
        &mut self,
        cx: &mut StepContext<'_>,
        (site, name): (&Site, &str),
        (desired, hasty): (i64, Option<&Version>),
        unit: &'static str,
    ) -> Result<Option<Duration>, Failure> {
        let Some(id) = self.id.clone() else {
            return Ok(None);
        };
        if self.looks == 0 {
            let waiting =
                format!("Waiting for Instance Refresh for Asg {name} to reach steady state");
            cx.info(unit, waiting);
        }
        self.looks += 1;
        let found = list(site, name, Some(&id)).await?;
        let Some(found) = found.first() else {
            return Err(wrong(format!(
                "AWS no longer knows instance refresh {id} of Auto Scaling group {name} in {site}."
            )));
        };
        self.tell(cx, found, unit);
        match found.status() {
            "Successful" => {
                let ended = format!("Instance Refresh for Asg {name} ended successfully");
                cx.info(unit, ended);
                return Ok(None);
            }
            _ if found.is_active() => {}
            status => return Err(self.ended_badly((site, name), status, found.reason())),
        }
        let group = match hasty.is_some() || self.looks.is_multiple_of(LOOKS_PER_GROUP) {
            true => group::describe(site, name).await?,
            false => Standing::Absent,
        };
        if let Standing::There(group) = &group {
            self.steady.tell_held(cx, site, group, unit).await;
        }
        if let Some(version) = hasty
            && let Standing::There(group) = &group
            && i64::try_from(group.serving(Some(version))).unwrap_or(i64::MAX) >= desired
        {
            let told = format!(
                "{desired} new instances of Asg {name} are healthy; the termination of the others is not waited for"
            );
            cx.info(unit, told);
            return Ok(None);
        }
        let seen = self
            .steady
            .look_beside(cx, site, (name, desired), unit)
            .await;
        if !self.patient {
            seen?;
        }
        Ok(Some(self.steady.pause()))
    }

    fn ended_badly(&self, (site, name): (&Site, &str), status: &str, reason: &str) -> Failure {
        let reason = match reason {
            "" => "AWS gave no reason",
            reason => reason.trim_end_matches('.'),
        };
        let evidence = self.steady.evidence();
        let evidence = evidence.map(|why| format!(" {why}")).unwrap_or_default();
        let id = self.id.as_deref().unwrap_or_default();
        wrong(format!(
            "Instance refresh {id} of Auto Scaling group {name} in {site} ended as {status}: {reason}.{evidence}"
        ))
    }

    fn tell(&mut self, cx: &mut StepContext<'_>, found: &Shown, unit: &'static str) {
        let now = (found.percentage().to_owned(), found.reason().to_owned());
        if self.told.as_ref() != Some(&now) {
            cx.info(unit, format!("Percentage completed: {}", now.0));
            if !now.1.is_empty() {
                cx.info(unit, &now.1);
            }
            self.told = Some(now);
        }
    }

    /// As [`Steady::leave_out`].
    pub(super) fn leave_out(&mut self, group: &Group, version: &Version) {
        self.steady.leave_out(group, version);
    }

    /// Why instances failed so far.
    pub(super) fn evidence(&self) -> Option<String> {
        self.steady.evidence()
    }

    /// Which instances waited for lifecycle hooks when the group was seen last.
    pub(super) fn held(&self) -> Option<&str> {
        self.steady.held()
    }
}

/// The group itself is looked at, for instances that wait for hooks, at each of so many looks at its refresh.
const LOOKS_PER_GROUP: u64 = 6;

/// Time between two looks at a refresh that is to end.
pub(super) const CLEAR_PAUSE: Duration = Duration::from_secs(3);

/// The most instances that a message names.
const NAMED: usize = 5;

/// Holds that all instances of a group run this version, after AWS said that a refresh was successful: it replaces every
/// instance that runs another one, so those that are left were started by somebody else, or were left out.
///
/// # Errors
/// With the instances that run something else.
pub(super) async fn judge(site: &Site, name: &str, version: &Version) -> Result<(), Failure> {
    let Standing::There(group) = group::describe(site, name).await? else {
        return Err(wrong(format!(
            "Auto Scaling group {name} in {site} was deleted by somebody or something else while its instances were \
             replaced."
        )));
    };
    let mut strays = group.strays(version);
    if strays.is_empty() {
        return Ok(());
    }
    let (all, count) = (group.members().len(), strays.len());
    strays.truncate(NAMED);
    let more = if count > NAMED { ", …" } else { "" };
    Err(wrong(format!(
        "The instance refresh of Auto Scaling group {name} in {site} ended as Successful, and {count} of its {all} \
         instances do not run version {} of launch template {}: {}{more}. Somebody else changed the group meanwhile, or \
         AWS left them out: look at its activity history, and run the pipeline again.",
        version.number,
        version.name,
        strays.join(", ")
    )))
}

/// Cancels the refresh that is active, and waits until it is over: how long to wait, or `None` when there is none.
pub(super) async fn clear(
    cx: &mut StepContext<'_>,
    (site, name): (&Site, &str),
    cancels: bool,
    unit: &'static str,
) -> Result<Option<Duration>, Failure> {
    let Some(active) = newest(site, name).await?.filter(Shown::is_active) else {
        return Ok(None);
    };
    if cancels && active.status() != "Cancelling" {
        let told = format!("Cancelling Instance Refresh {} of Asg {name}", active.id());
        cx.info(unit, told);
        let doing = format!("cancel the instance refresh of Auto Scaling group {name}");
        let request = json!({"AutoScalingGroupName": name});
        let ask = Ask {
            action: "CancelInstanceRefresh",
            request: &request,
            doing: &doing,
        };
        site.scaling_unless(ask, (&["ActiveInstanceRefreshNotFound"], ""))
            .await?;
    }
    Ok(Some(CLEAR_PAUSE))
}
