//! `EcsBasicRollback`: the old version gets its tasks back, then the new one goes. What somebody else deployed meanwhile
//! stays.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::flags::check_flags;
use super::super::instances::{self, Change};
use super::super::removal::{self, Removal};
use super::super::resize::Resize;
use super::super::service::{Described, Standing, describe, update};
use super::super::site::Site;
use super::super::task_definition::short;
use super::super::{ROLLBACK, beside, foreign, told};
use super::{Old, SetUp, set_up, wrong};
use crate::context::StepContext;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::deployment::unended;
use crate::step::{Progress, Step, Undo};

/// The step.
pub struct BasicRollback;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// The old service gets its tasks back.
    #[default]
    Old,
    /// The new service goes.
    New,
    /// The old service is scaled again, and counted.
    Scale,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    phase: Phase,
    resize: Resize,
    removal: Removal,
}

#[async_trait]
impl Step for BasicRollback {
    fn step_type(&self) -> &'static str {
        "EcsBasicRollback"
    }

    fn units(&self) -> &'static [&'static str] {
        &[ROLLBACK]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check_flags(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it is itself the undoing of EcsServiceSetup and EcsUpgradeContainer")
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
        if let Some(reasons) = state.resize.evidence() {
            cx.warn(ROLLBACK, format!("Tasks stopped because: {reasons}"));
        }
        match set_up(cx)? {
            Some(set_up) => Err(unended(cx, "both services and their tasks", left(&set_up))),
            None => Ok(()),
        }
    }
}

/// What a person must look at when the rollback fails.
fn left(set_up: &SetUp) -> String {
    let handover = &set_up.handover;
    let new = format!(
        "service {}, created by this run, may still exist",
        handover.new
    );
    match &handover.old {
        None => new,
        Some(old) => format!(
            "{new}; service {} may not have its {} tasks of {} back",
            old.name,
            old.desired,
            short(&old.task_definition)
        ),
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
            (Phase::Old, Some(old)) => self.restore(cx, old).await?.into(),
            (Phase::Old, None) => {
                self.state.phase = Phase::New;
                Turn::On
            }
            (Phase::New, _) => self.remove(cx).await?.into(),
            (Phase::Scale, old) => Turn::Done(self.ended(cx, old.as_ref()).await?),
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

    async fn restore(
        &mut self,
        cx: &mut StepContext<'_>,
        old: &Old,
    ) -> Result<Option<Duration>, Failure> {
        let (site, name) = (&self.site, old.name.as_str());
        if !self.state.resize.told() {
            let Standing::Active(mut found) = describe(site, name).await? else {
                return Err(wrong(format!(
                    "Service {name} in {site} cannot get its tasks back: it no longer exists, somebody or \
                     something else deleted it. Service {} keeps what it has.",
                    self.set_up.handover.new
                )));
            };
            if let Some(told) = &old.passed_over
                && found.service.task_definition() == Some(told.as_str())
            {
                let back = &old.task_definition;
                let document = json!({
                    "cluster": site.cluster, "service": name, "taskDefinition": back,
                });
                let told = format!("Updating Service {name} back to task definition {back}");
                cx.info(ROLLBACK, told);
                *found = update(site, &document).await?;
            }
            foreign::check(
                site,
                (name, &*found),
                (&[old.task_definition.as_str()], old.desired),
            )?;
            let resize = &mut self.state.resize;
            resize
                .tell(cx, site, (name, &*found), old.desired, ROLLBACK)
                .await?;
            cx.save(&self.state).await?;
        }
        let pause = self
            .state
            .resize
            .look(cx, &self.site, name, ROLLBACK)
            .await?;
        if pause.is_none() {
            self.state.phase = Phase::New;
        }
        Ok(pause)
    }

    async fn remove(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (site, name) = (&self.site, self.set_up.handover.new.as_str());
        let created = self.set_up.task_definition.arn.as_str();
        let ours = |found: &Described| match found.service.task_definition() {
            Some(runs) if short(runs) == short(created) => Ok(()),
            runs => Err(foreign::created((site, name), runs, Some(created))),
        };
        let removal = &mut self.state.removal;
        if !removal.go_on(cx, (site, name), ROLLBACK, ours).await? {
            return Ok(Some(removal::PAUSE));
        }
        self.state.phase = Phase::Scale;
        Ok(None)
    }

    /// Scaling comes back last, so that it does not work against the rollback.
    async fn ended(
        &mut self,
        cx: &mut StepContext<'_>,
        old: Option<&Old>,
    ) -> Result<Value, Failure> {
        let (site, new) = (&self.site, self.set_up.handover.new.as_str());
        let (name, arn) = match old {
            None => (new, ""),
            Some(old) => {
                old.scaling.attach(cx, site, ROLLBACK).await?;
                (old.name.as_str(), old.task_definition.as_str())
            }
        };
        beside::set_before(cx, (site, name), None).await?;
        let change = match old {
            None => Change::Removed,
            Some(_) => Change::Restored(self.set_up.handover.replaced.clone()),
        };
        instances::note(cx, site, (name, arn), change).await?;
        let told = match old {
            None => format!("Service {new} deleted: rolled back cleanly"),
            Some(_) => format!("Service {name} has its tasks back: rolled back cleanly"),
        };
        cx.info(ROLLBACK, told);
        cx.unit_ended(ROLLBACK, true);
        Ok(json!({"output": {"serviceName": name}}))
    }
}
