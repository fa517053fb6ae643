//! `AsgBlueGreenRollback`: requests go back to the version that served, and both groups become what they were.
//!
//! The old group gets its instances back before any request does, and the new one goes when none reaches it.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::before::Before;
use super::super::group::Group;
use super::super::health::{Health, Targets};
use super::super::instances::{self, Change, Counted};
use super::super::refresh::{self, Preferences, Refresh};
use super::super::removal::Removal;
use super::super::rolling_rollback::ours;
use super::super::site::Site;
use super::super::template::{self, Version};
use super::super::{ROLLBACK, told};
use super::deploy::State as Deployed;
use super::sides::Sides;
use crate::context::StepContext;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::deployment::{spec, unended};
use crate::step::{Progress, Step, Undo};

/// The step.
pub struct BlueGreenRollback;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// The old group gets its instances back.
    #[default]
    Old,
    /// Its targets get healthy.
    Healthy,
    /// Requests go back to it.
    Routes,
    /// A refresh of the new group ends.
    Clear,
    /// The new group becomes what it was, or goes.
    New,
    /// Its instances are replaced by those of its old version.
    Refresh,
    /// Until they are.
    Follow,
    /// Note what runs.
    Note,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    phase: Phase,
    health: Health,
    removal: Removal,
    refresh: Refresh,
}

#[async_trait]
impl Step for BlueGreenRollback {
    fn step_type(&self) -> &'static str {
        "AsgBlueGreenRollback"
    }

    fn units(&self) -> &'static [&'static str] {
        &[ROLLBACK]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        spec::check(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Nothing(
            "it is itself the undoing of AsgBlueGreenDeploy, AsgBlueGreenSwapService and AsgShiftTraffic",
        )
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(ROLLBACK);
        let attempts = cx.saved_by_all::<Deployed>("AsgBlueGreenDeploy")?;
        let versions = attempts
            .iter()
            .filter_map(|state| state.version.clone())
            .collect();
        // An attempt that came again may have ended before it changed anything; one before it did not.
        let changed = attempts.into_iter().rev().find_map(Deployed::changed);
        let Some((sides, deployed)) = changed else {
            cx.info(
                ROLLBACK,
                "Nothing to roll back: the deployment ended before its first change",
            );
            return Ok(Progress::Done(json!({})));
        };
        let left = left(&sides);
        let result = match Undoing::resume(cx, sides, (deployed, versions)).await {
            Ok(undoing) => walk(undoing, cx).await,
            Err(failure) => Err(failure),
        };
        let result = result.map_err(|failure| Failure {
            left_behind: failure.left_behind.clone().or(Some(left)),
            ..failure
        });
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let state: State = cx.saved()?;
        if let Some(reasons) = state.refresh.evidence() {
            cx.warn(ROLLBACK, reasons);
        }
        let attempts = cx.saved_by_all::<Deployed>("AsgBlueGreenDeploy")?;
        let changed = attempts.into_iter().rev().find_map(Deployed::changed);
        let Some((sides, _)) = changed else {
            return Ok(());
        };
        let held = state.refresh.held().or_else(|| state.health.held());
        let held = held.map_or_else(String::new, |held| format!("; {held}"));
        let look_at = "the listener rules, both groups and their instances";
        Err(unended(cx, look_at, format!("{}{held}", left(&sides))))
    }
}

/// What a person must look at when the rollback fails.
fn left(sides: &Sides) -> String {
    let new = match &sides.new_before {
        None => format!(
            "Auto Scaling group {}, created by this run, may still exist",
            sides.new
        ),
        Some(before) => format!("there may not be again {}", before.told()),
    };
    match &sides.old {
        None => new,
        Some(old) => format!(
            "requests may not go to {} again, which may not be what it was: {}; {new}",
            old.group.name(),
            old.told()
        ),
    }
}

struct Undoing {
    site: Site,
    sides: Sides,
    deployed: Deployed,
    /// The versions of all attempts.
    versions: Vec<Version>,
    state: State,
    /// Whether a step of this stage may have moved requests.
    moved: bool,
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
        let (old, new) = (self.sides.old.clone(), self.sides.new_before.clone());
        Ok(match (self.state.phase, &old, &new) {
            (Phase::Old, Some(old), _) if self.moved => {
                for routes in &self.sides.routes {
                    routes.check(&self.site).await?;
                }
                // The swap changed how many instances it has, its tags and what scales it, and nothing else.
                old.restore(cx, &self.site, (&[], &[]), ROLLBACK).await?;
                for routes in &self.sides.routes {
                    routes.keep_checked(cx, &self.site, ROLLBACK).await?;
                }
                self.to(Phase::Healthy).into()
            }
            (Phase::Healthy, Some(old), _) => self.healthy(cx, old).await?.into(),
            (Phase::Routes, Some(_), _) => self.routes(cx).await?.into(),
            (Phase::Old | Phase::Healthy | Phase::Routes, _, Some(_)) => {
                self.to(Phase::Clear).into()
            }
            (Phase::Old | Phase::Healthy | Phase::Routes, _, None) => self.to(Phase::New).into(),
            (Phase::Clear, ..) => self.clear(cx).await?.into(),
            (Phase::New, _, Some(before)) => self.restore(cx, before).await?.into(),
            (Phase::New, _, None) => self.remove(cx).await?.into(),
            (Phase::Refresh, ..) => self.refresh(cx).await?.into(),
            (Phase::Follow, ..) => self.follow(cx).await?.into(),
            (Phase::Note, ..) => Turn::Done(self.note(cx).await?),
        })
    }
}

impl Undoing {
    async fn resume(
        cx: &mut StepContext<'_>,
        sides: Sides,
        (deployed, versions): (Deployed, Vec<Version>),
    ) -> Result<Self, Failure> {
        let mut moved = false;
        for step in ["AsgBlueGreenSwapService", "AsgShiftTraffic"] {
            moved |= cx.saved_by::<Value>(step)?.is_some();
        }
        Ok(Self {
            site: Site::of_stage(cx).await?,
            sides,
            deployed,
            versions,
            state: cx.saved()?,
            moved,
            resumed: true,
        })
    }

    fn to(&mut self, phase: Phase) -> Option<Duration> {
        self.state.phase = phase;
        None
    }

    async fn healthy(
        &mut self,
        cx: &mut StepContext<'_>,
        old: &Before,
    ) -> Result<Option<Duration>, Failure> {
        let groups: Vec<String> = self
            .sides
            .routes
            .iter()
            .map(|one| one.prod_group.clone())
            .collect();
        let targets = Targets {
            groups: &groups,
            unused: false,
        };
        let goal = (&targets, old.group.sizes().desired);
        let place = (&self.site, old.group.name());
        let pause = self.state.health.look(cx, place, goal, ROLLBACK).await?;
        Ok(match pause {
            None => self.to(Phase::Routes),
            pause => pause,
        })
    }

    async fn routes(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        for routes in &self.sides.routes {
            routes.restore(cx, &self.site, ROLLBACK).await?;
        }
        Ok(match self.sides.new_before {
            Some(_) => self.to(Phase::Clear),
            None => self.to(Phase::New),
        })
    }

    async fn clear(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        if let Some(before) = &self.sides.new_before {
            // A refresh of somebody else's version is not ended.
            before.look_again(&self.site, &self.versions).await?;
        }
        let place = (&self.site, self.sides.new.as_str());
        let pause = refresh::clear(cx, place, true, ROLLBACK).await?;
        Ok(match pause {
            None => self.to(Phase::New),
            pause => pause,
        })
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
                (&self.deployed.sent, &self.versions),
                ROLLBACK,
            )
            .await?;
        if before.version.is_none() {
            return Ok(self.to(Phase::Note));
        }
        self.state.refresh.patient = true;
        self.state
            .refresh
            .about_to(&self.site, &self.sides.new)
            .await?;
        Ok(self.to(Phase::Refresh))
    }

    async fn remove(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (site, versions) = (&self.site, &self.versions);
        let check = |found: &Group| ours(site, found, versions);
        let place = (site, self.sides.new.as_str());
        let pause = self.state.removal.go_on(cx, place, ROLLBACK, check).await?;
        if pause.is_some() {
            return Ok(pause);
        }
        if self.sides.template.id.is_none()
            && let Some(version) = versions.last()
        {
            template::delete(site, version).await?;
        }
        Ok(self.to(Phase::Note))
    }

    async fn refresh(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let place = (&self.site, self.sides.new.as_str());
        let how = (self.resumed && self.state.refresh.is_about_to(), ROLLBACK);
        // It serves nothing: all instances go at once.
        let all = Preferences {
            min: 0,
            max: 100,
            warmup: Some(0),
            skip_matching: true,
        };
        self.state.refresh.start(cx, place, all, how).await?;
        Ok(self.to(Phase::Follow))
    }

    async fn follow(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let desired = self
            .sides
            .new_before
            .as_ref()
            .map_or(0, |before| before.group.sizes().desired);
        let place = (&self.site, self.sides.new.as_str());
        let goal = (desired, None);
        let pause = self.state.refresh.look(cx, place, goal, ROLLBACK).await?;
        Ok(match pause {
            None => self.to(Phase::Note),
            pause => pause,
        })
    }

    async fn note(&mut self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let counted = |before: &Before, production| before.counted("BlueGreen", production);
        let sides = &self.sides;
        let mut mine: Vec<Counted> = sides.old.iter().map(|old| counted(old, true)).collect();
        mine.extend(sides.new_before.iter().map(|new| counted(new, false)));
        let gone: &[&str] = match sides.new_before {
            None => &[sides.new.as_str()],
            Some(_) => &[],
        };
        let change = match (self.moved, &sides.old) {
            // Nothing that is noted as deployed was touched.
            (false, Some(_)) => Change::Beside,
            _ => Change::Restored(sides.replaced.clone()),
        };
        instances::note(cx, &self.site, (&mine, gone), change).await?;
        cx.info(ROLLBACK, "Rolled back cleanly");
        cx.unit_ended(ROLLBACK, true);
        let named = |name: Option<&str>| name.map(|name| json!({"autoScalingGroupName": name}));
        let stage = sides.new_before.as_ref().map(|_| sides.new.as_str());
        Ok(json!({
            "output": {"prodAsg": named(sides.old_name()), "stageAsg": named(stage)},
        }))
    }
}
