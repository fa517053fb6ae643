//! `AsgRollback`: the old group gets its instances back, then the new one goes.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::group::Group;
use super::super::health::{Health, Targets};
use super::super::instances::{self, Change, Counted};
use super::super::removal::Removal;
use super::super::rolling_rollback::ours;
use super::super::site::Site;
use super::super::steady::{Goal, Stay, Steady};
use super::super::template;
use super::super::{ROLLBACK, told, wrong};
use super::{MARK, SetUp, set_up};
use crate::context::StepContext;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::deployment::{spec, unended};
use crate::step::{Progress, Step, Undo};

/// The step.
pub struct Rollback;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// The old group becomes what it was.
    #[default]
    Old,
    /// Until its instances are healthy.
    Settle,
    /// Until their targets are.
    Target,
    /// The new group goes.
    New,
    /// Note what runs.
    Note,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    phase: Phase,
    steady: Steady,
    health: Health,
    removal: Removal,
}

#[async_trait]
impl Step for Rollback {
    fn step_type(&self) -> &'static str {
        "AsgRollback"
    }

    fn units(&self) -> &'static [&'static str] {
        &[ROLLBACK]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        spec::check(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it is itself the undoing of AsgSetup and AsgPhasedDeploy")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(ROLLBACK);
        let Some(set_up) = set_up(cx)? else {
            cx.info(
                ROLLBACK,
                "Nothing to roll back: the deployment ended before its first change",
            );
            return Ok(Progress::Done(json!({})));
        };
        let left = left(&set_up);
        let result = match Undoing::resume(cx, set_up).await {
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
        if let Some(reasons) = state.steady.evidence() {
            cx.warn(ROLLBACK, reasons);
        }
        let Some(set_up) = set_up(cx)? else {
            return Ok(());
        };
        let held = state.steady.held().or_else(|| state.health.held());
        let held = held.map_or_else(String::new, |held| format!("; {held}"));
        let look_at = "both groups and their instances";
        Err(unended(cx, look_at, format!("{}{held}", left(&set_up))))
    }
}

/// What a person must look at when the rollback fails.
fn left(set_up: &SetUp) -> String {
    let new = format!(
        "Auto Scaling group {}, created by this run, may still exist",
        set_up.handover.new
    );
    match &set_up.handover.old {
        None => new,
        Some(old) => format!("{new}; there may not be again {}", old.told()),
    }
}

struct Undoing {
    site: Site,
    set_up: SetUp,
    state: State,
}

#[async_trait]
impl Phases for Undoing {
    type State = State;

    fn state(&self) -> &State {
        &self.state
    }

    async fn turn(&mut self, cx: &mut StepContext<'_>) -> Result<Turn, Failure> {
        let old = self.set_up.handover.old.clone();
        Ok(match (self.state.phase, &old) {
            (Phase::New, _) => self.remove(cx).await?.into(),
            (Phase::Note, _) => Turn::Done(self.note(cx).await?),
            (_, None) => self.to(Phase::New).into(),
            (Phase::Old, Some(old)) => {
                // The deployment changed how many instances it has, and nothing else.
                old.restore(cx, &self.site, (&[], &[]), ROLLBACK).await?;
                self.to(Phase::Settle).into()
            }
            (Phase::Settle, Some(old)) => {
                let goal = Goal {
                    group: old.group.name(),
                    desired: old.group.sizes().desired,
                    version: None,
                    only: false,
                    stay: Stay::No,
                    unit: ROLLBACK,
                };
                match self.state.steady.look(cx, &self.site, goal).await? {
                    None => self.to(Phase::Target).into(),
                    pause => pause.into(),
                }
            }
            (Phase::Target, Some(old)) => {
                let groups = old.group.target_groups();
                let targets = Targets {
                    groups: &groups,
                    unused: true,
                };
                let goal = (&targets, old.group.sizes().desired);
                let place = (&self.site, old.group.name());
                match self.state.health.look(cx, place, goal, ROLLBACK).await? {
                    None => self.to(Phase::New).into(),
                    pause => pause.into(),
                }
            }
        })
    }
}

impl Undoing {
    async fn resume(cx: &mut StepContext<'_>, set_up: SetUp) -> Result<Self, Failure> {
        Ok(Self {
            site: Site::of_stage(cx).await?,
            set_up,
            state: cx.saved()?,
        })
    }

    fn to(&mut self, phase: Phase) -> Option<Duration> {
        self.state.phase = phase;
        None
    }

    async fn remove(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (site, handover) = (&self.site, &self.set_up.handover);
        let versions = &self.set_up.versions;
        let check = |found: &Group| match found.tag(MARK) {
            Some(_) if versions.is_empty() => Ok(()),
            Some(_) => ours(site, found, versions),
            None => Err(wrong(format!(
                "Auto Scaling group {} in {site} is not deleted: it does not have the tag `{MARK}`, so this run did not \
                 create it.",
                found.name()
            ))),
        };
        let place = (site, handover.new.as_str());
        let pause = self.state.removal.go_on(cx, place, ROLLBACK, check).await?;
        if pause.is_some() {
            return Ok(pause);
        }
        if handover.template.id.is_none() {
            template::delete_of(site, &handover.new).await?;
        }
        Ok(self.to(Phase::Note))
    }

    async fn note(&mut self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let handover = &self.set_up.handover;
        let mine: Vec<Counted> = handover
            .old
            .iter()
            .map(|old| old.counted("Phased", true))
            .collect();
        let change = Change::Restored(handover.replaced.clone());
        instances::note(cx, &self.site, (&mine, &[handover.new.as_str()]), change).await?;
        cx.info(ROLLBACK, "Rolled back cleanly");
        cx.unit_ended(ROLLBACK, true);
        let old = handover.old.as_ref().map(|old| old.group.name());
        let named = old.map(|name| json!({"autoScalingGroupName": name}));
        Ok(json!({"output": {"asg": named}}))
    }
}
