//! `AsgRollingRollback`: brings a group back to how `AsgRollingDeploy` found it, unless somebody else changed it since.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::ROLLBACK;
use super::before::Before;
use super::group::Group;
use super::instances::{self, Change};
use super::refresh::{self, Preferences, Refresh, Shown};
use super::removal::Removal;
use super::rolling_deploy::{Phase as Deployed, RollbackData, State as DeployState};
use super::site::Site;
use super::template::{self, Version};
use crate::context::StepContext;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::deployment::spec;
use crate::deployment::{Foreign, Touched, unended};
use crate::step::{Progress, Step, Undo};

/// How instances are replaced on the way back (Harness's ASG tutorial).
const BACK: Preferences = Preferences {
    min: 100,
    max: 200,
    warmup: None,
    skip_matching: true,
};

/// The step.
pub struct RollingRollback;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// End the refresh of the deployment.
    #[default]
    Clear,
    /// Put the group back, or take it away.
    Restore,
    /// Start a refresh that brings the old instances back.
    Refresh,
    /// Wait until it has succeeded.
    Follow,
    /// Note what runs.
    Note,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    phase: Phase,
    refresh: Refresh,
    removal: Removal,
    /// Whether it was said that a refresh is waited for.
    #[serde(default)]
    waits: bool,
    /// Groups of the stage that are rolled back.
    #[serde(default)]
    done: Vec<String>,
}

impl State {
    /// The refresh of the rollback, where it has not ended: AWS tries without an end where instances do not become healthy.
    fn goes_on(&self, group: &str) -> Option<String> {
        let id = self.refresh.id.as_ref();
        let id = id.filter(|_| self.phase == Phase::Follow)?;
        Some(format!(
            "instance refresh {id} goes on by itself, to what was there; `{}` ends it",
            refresh::cancelling(group)
        ))
    }
}

#[async_trait]
impl Step for RollingRollback {
    fn step_type(&self) -> &'static str {
        "AsgRollingRollback"
    }

    fn units(&self) -> &'static [&'static str] {
        &[ROLLBACK]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        spec::check(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it is itself the undoing of AsgRollingDeploy")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(ROLLBACK);
        let done = cx.saved::<State>()?.done;
        let attempts = cx.saved_by_all::<DeployState>("AsgRollingDeploy")?;
        let Some(touched) = Touched::next(attempts, changed, &done) else {
            cx.info(
                ROLLBACK,
                "Nothing to roll back: the deployment ended before its first change",
            );
            return Ok(Progress::Done(json!({})));
        };
        let result = Box::pin(undo(cx, &touched.states)).await;
        touched
            .then(cx, result, |done| State {
                done,
                ..State::default()
            })
            .await
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let state: State = cx.saved()?;
        if let Some(reasons) = state.refresh.evidence() {
            cx.warn(ROLLBACK, reasons);
        }
        let attempts = cx.saved_by_all::<DeployState>("AsgRollingDeploy")?;
        let Some(touched) = Touched::next(attempts, changed, &state.done) else {
            return Ok(());
        };
        let data = touched.states.iter().find_map(|one| one.rollback.as_ref());
        let left = data.map(left).into_iter();
        let held = state.refresh.held().map(str::to_owned);
        let goes_on = data.and_then(|data| state.goes_on(&data.group));
        let left = left.chain(held).chain(goes_on);
        let left: Vec<String> = left.chain(touched.not_come_to()).collect();
        let look_at = "the group and its instances";
        Err(unended(cx, look_at, left.join("; ")))
    }
}

/// What the attempts of a deployment made of a group.
struct Made {
    /// The versions that they let it start instances from, oldest first.
    versions: Vec<Version>,
    /// Fields that they set.
    sent: Vec<String>,
    /// The refreshes that they started, or may have.
    refreshes: Vec<Refresh>,
}

/// The group that a deployment may have changed. An attempt that came again may have ended before it did; one before it
/// did not.
fn changed(state: &DeployState) -> Option<String> {
    let changed = state.phase >= Deployed::Template;
    let data = state.rollback.as_ref().filter(|_| changed)?;
    Some(data.group.clone())
}

/// Brings one group back to what the first of its deployments found.
async fn undo(cx: &mut StepContext<'_>, attempts: &[DeployState]) -> Result<Progress, Failure> {
    let Some(data) = attempts.iter().find_map(|state| state.rollback.clone()) else {
        return Ok(Progress::Done(json!({})));
    };
    let versions = attempts.iter().filter_map(|state| state.version.clone());
    let sent = attempts.iter().flat_map(|state| state.sent.iter().cloned());
    let made = Made {
        versions: versions.collect(),
        sent: sent.collect(),
        refreshes: attempts.iter().map(|state| state.refresh.clone()).collect(),
    };
    let left = left(&data);
    let result = match Undoing::resume(cx, (data, made)).await {
        Ok(undoing) => walk(undoing, cx).await,
        Err(failure) => Err(failure),
    };
    result.map_err(|failure| {
        cx.error(ROLLBACK, &failure.message);
        Failure {
            left_behind: failure.left_behind.or(Some(left)),
            ..failure
        }
    })
}

/// What a person must look at when the rollback fails.
fn left(data: &RollbackData) -> String {
    match &data.before {
        None => format!(
            "Auto Scaling group {}, created by this run, may still exist",
            data.group
        ),
        Some(before) => format!("there may not be again {}", before.told()),
    }
}

struct Undoing {
    site: Site,
    data: RollbackData,
    made: Made,
    state: State,
    resumed: bool,
}

#[async_trait]
impl Phases for Undoing {
    type State = State;

    fn state(&self) -> &State {
        &self.state
    }

    fn saved(&mut self) {
        self.resumed = false;
    }

    async fn turn(&mut self, cx: &mut StepContext<'_>) -> Result<Turn, Failure> {
        Ok(match (self.state.phase, self.data.before.clone()) {
            (Phase::Note, before) => Turn::Done(self.note(cx, before.as_ref()).await?),
            (_, None) => self.remove(cx).await?.into(),
            (Phase::Clear, Some(before)) => self.clear(cx, &before).await?.into(),
            (Phase::Restore, Some(before)) => self.restore(cx, &before).await?.into(),
            (Phase::Refresh, Some(_)) => self.refresh(cx).await?.into(),
            (Phase::Follow, Some(before)) => self.follow(cx, &before).await?.into(),
        })
    }
}

impl Undoing {
    async fn resume(
        cx: &mut StepContext<'_>,
        (data, made): (RollbackData, Made),
    ) -> Result<Self, Failure> {
        Ok(Self {
            site: Site::of_stage(cx).await?,
            data,
            made,
            state: cx.saved()?,
            resumed: true,
        })
    }

    /// First deployment: what was created goes.
    async fn remove(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (site, name) = (&self.site, self.data.group.as_str());
        let versions = &self.made.versions;
        let ours = |found: &Group| ours(site, found, versions);
        let pause = self
            .state
            .removal
            .go_on(cx, (site, name), ROLLBACK, ours)
            .await?;
        if pause.is_some() {
            return Ok(pause);
        }
        if self.data.template.id.is_none()
            && let Some(version) = versions.last()
        {
            template::delete(site, version).await?;
            cx.info(ROLLBACK, format!("Deleted launchTemplate {}", version.name));
        }
        self.state.phase = Phase::Note;
        Ok(None)
    }

    async fn clear(
        &mut self,
        cx: &mut StepContext<'_>,
        before: &Before,
    ) -> Result<Option<Duration>, Failure> {
        // A refresh of somebody else's version is not ended.
        before.look_again(&self.site, &self.made.versions).await?;
        let place = (&self.site, self.data.group.as_str());
        let started = &self.made.refreshes;
        let active = refresh::newest(place.0, place.1).await?;
        if let Some(active) = active.filter(Shown::is_active)
            && !started.iter().any(|refresh| refresh.may_be(active.id()))
        {
            if !self.state.waits {
                let told = format!(
                    "Waiting for the end of Instance Refresh {} of Asg {}: this run did not start it, so it is not \
                     cancelled",
                    active.id(),
                    place.1
                );
                cx.info(ROLLBACK, told);
                self.state.waits = true;
            }
            return Ok(Some(refresh::CLEAR_PAUSE));
        }
        let pause = refresh::clear(cx, place, true, ROLLBACK).await?;
        if pause.is_none() {
            self.state.phase = Phase::Restore;
        }
        Ok(pause)
    }

    async fn restore(
        &mut self,
        cx: &mut StepContext<'_>,
        before: &Before,
    ) -> Result<Option<Duration>, Failure> {
        before
            .restore(
                cx,
                &self.site,
                (&self.made.sent, &self.made.versions),
                ROLLBACK,
            )
            .await?;
        self.state.refresh.patient = true;
        self.state
            .refresh
            .about_to(&self.site, &self.data.group)
            .await?;
        self.state.phase = match before.version {
            Some(_) => Phase::Refresh,
            // Instances of a launch configuration are replaced by nobody.
            None => Phase::Note,
        };
        Ok(None)
    }

    async fn refresh(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let place = (&self.site, self.data.group.as_str());
        let how = (self.resumed && self.state.refresh.is_about_to(), ROLLBACK);
        self.state.refresh.start(cx, place, BACK, how).await?;
        self.state.phase = Phase::Follow;
        Ok(None)
    }

    async fn follow(
        &mut self,
        cx: &mut StepContext<'_>,
        before: &Before,
    ) -> Result<Option<Duration>, Failure> {
        let place = (&self.site, self.data.group.as_str());
        let goal = (before.group.sizes().desired, None);
        let pause = self.state.refresh.look(cx, place, goal, ROLLBACK).await?;
        if pause.is_none() {
            if let Some(version) = &before.version {
                refresh::judge(place.0, place.1, version).await?;
            }
            self.state.phase = Phase::Note;
        }
        Ok(pause)
    }

    async fn note(
        &mut self,
        cx: &mut StepContext<'_>,
        before: Option<&Before>,
    ) -> Result<Value, Failure> {
        let (site, name) = (&self.site, self.data.group.as_str());
        let change = Change::Restored(self.data.replaced.clone());
        let told = match before {
            None => {
                instances::note(cx, site, (&[], &[name]), change).await?;
                format!("Auto Scaling group {name} deleted: rolled back cleanly")
            }
            Some(before) => {
                let counted = before.counted("Rolling", true);
                instances::note(cx, site, (&[counted], &[]), change).await?;
                format!("There is again {}: rolled back cleanly", before.told())
            }
        };
        cx.info(ROLLBACK, told);
        cx.unit_ended(ROLLBACK, true);
        Ok(json!({
            "output": {"asg": {"autoScalingGroupName": name}},
        }))
    }
}

/// Whether a group is the one that this run created, with one of these versions.
pub(super) fn ours(site: &Site, found: &Group, versions: &[Version]) -> Result<(), Failure> {
    if versions.iter().any(|version| found.uses(version)) {
        return Ok(());
    }
    Err(Foreign {
        resource: format!("Auto Scaling group {} in {site}", found.name()),
        found: format!("it starts instances from {}", found.told_template()),
        put: versions.last().map(Version::told),
        before: None,
    }
    .left())
}
