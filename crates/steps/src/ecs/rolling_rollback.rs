//! `EcsRollingRollback`: brings a service back to how `EcsRollingDeploy` found it.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::{ErrorType, Failure};

use super::flags::check_flags;
use super::instances::Change;
use super::removal::{self, Removal};
use super::rollback::{Before, RollbackData};
use super::rolling_deploy::{Phase as Deployed, State as DeployState};
use super::scaling::detach;
use super::service::{Described, Standing, describe, primary, update};
use super::site::Site;
use super::task_definition::short;
use super::watch::{Goal, Seen, Watch};
use super::{ROLLBACK, instances};
use crate::context::StepContext;
use crate::step::{Progress, Step, Undo};

/// The step.
pub struct RollingRollback;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    #[default]
    Change,
    Wait,
    Scale,
    Note,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    phase: Phase,
    deployment: Option<String>,
    watch: Watch,
    #[serde(default)]
    removal: Removal,
}

#[async_trait]
impl Step for RollingRollback {
    fn step_type(&self) -> &'static str {
        "EcsRollingRollback"
    }

    fn units(&self) -> &'static [&'static str] {
        &[ROLLBACK]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check_flags(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it is itself the undoing of EcsRollingDeploy")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(ROLLBACK);
        let attempts = cx.saved_by_all::<DeployState>("EcsRollingDeploy")?;
        // An attempt that came again may have ended before it changed anything; one before it did not.
        let Some((data, deployed)) = attempts.into_iter().rev().find_map(changed) else {
            cx.info(
                ROLLBACK,
                "Nothing to roll back: the deployment ended before its first change",
            );
            return Ok(Progress::Done(json!({})));
        };
        let site = Site::of_stage(cx)
            .await
            .map_err(|failure| left(failure, &data, "its stage"))?;
        let place = site.to_string();
        let undoing = Undoing {
            site,
            deployed,
            state: cx.saved()?,
        };
        let result = match &data.before {
            None => undoing.remove(cx, &data.service).await,
            Some(before) => undoing.restore(cx, &data, before).await,
        };
        result.map_err(|failure| {
            let failure = left(failure, &data, &place);
            cx.error(ROLLBACK, &failure.message);
            failure
        })
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let state: State = cx.saved()?;
        if let Some(reasons) = state.watch.evidence() {
            cx.warn(ROLLBACK, format!("Tasks stopped because: {reasons}"));
        }
        cx.error(
            ROLLBACK,
            "The rollback did not end: look at the service and its tasks",
        );
        Ok(())
    }
}

/// The rollback data of a deployment that may have changed its service.
fn changed(state: DeployState) -> Option<(RollbackData, DeployState)> {
    if state.phase < Deployed::Change {
        return None;
    }
    let data = state.rollback.clone()?;
    Some((data, state))
}

/// A failed rollback says what a person must look at.
fn left(failure: Failure, data: &RollbackData, place: &str) -> Failure {
    let service = &data.service;
    let left_behind = match &data.before {
        None => format!("service {service} in {place}, created by this run, may still exist"),
        Some(before) => {
            let scaling = before.scaling.as_ref();
            let scaling = scaling.filter(|scaling| !scaling.is_empty());
            let scaling = scaling.map(|scaling| {
                format!(
                    ", and may be without its scalable target{}",
                    scaling.told_policies()
                )
            });
            format!(
                "service {service} in {place} may not be back on {} with {} tasks{}",
                short(before.task_definition()),
                before.desired(),
                scaling.unwrap_or_default()
            )
        }
    };
    Failure {
        left_behind: Some(left_behind),
        ..failure
    }
}

struct Undoing {
    site: Site,
    deployed: DeployState,
    state: State,
}

impl Undoing {
    /// First deployment: what was created goes.
    async fn remove(mut self, cx: &mut StepContext<'_>, name: &str) -> Result<Progress, Failure> {
        let ours = self.deployed.task_definition.as_ref();
        let ours = ours.map(|registered| registered.arn.clone());
        let site = &self.site;
        let check = |described: &Described| match described.service.task_definition() {
            runs if ours.is_some() && runs == ours.as_deref() => Ok(()),
            runs => Err(another(site, name, runs)),
        };
        if self
            .state
            .removal
            .go_on(cx, (site, name), ROLLBACK, check)
            .await?
        {
            instances::note(cx, &self.site, (name, ""), Change::Removed).await?;
            cx.info(
                ROLLBACK,
                format!("Service {name} deleted: rolled back cleanly"),
            );
            cx.unit_ended(ROLLBACK, true);
            return Ok(Progress::Done(json!({"output": {"serviceName": name}})));
        }
        cx.save(&self.state).await?;
        Ok(Progress::Again(removal::PAUSE))
    }

    /// Later deployment: the service goes back to what was written down.
    async fn restore(
        mut self,
        cx: &mut StepContext<'_>,
        data: &RollbackData,
        before: &Before,
    ) -> Result<Progress, Failure> {
        let name = data.service.as_str();
        loop {
            let pause = match self.state.phase {
                Phase::Change => self.change(cx, name, before).await?,
                Phase::Wait => self.wait(cx, name, before).await?,
                Phase::Scale => self.scale(cx, before).await?,
                Phase::Note => {
                    let runs = (name, before.task_definition());
                    let change = Change::Restored(data.replaced.clone());
                    instances::note(cx, &self.site, runs, change).await?;
                    let definition = short(before.task_definition());
                    cx.info(
                        ROLLBACK,
                        format!("Service {name} is back on {definition}: rolled back cleanly"),
                    );
                    cx.unit_ended(ROLLBACK, true);
                    return Ok(Progress::Done(json!({"output": {"serviceName": name}})));
                }
            };
            cx.save(&self.state).await?;
            if let Some(pause) = pause {
                return Ok(Progress::Again(pause));
            }
        }
    }

    /// Repeating it changes nothing: without `forceNewDeployment` the same settings start no deployment.
    async fn change(
        &mut self,
        cx: &mut StepContext<'_>,
        name: &str,
        before: &Before,
    ) -> Result<Option<std::time::Duration>, Failure> {
        let Standing::Active(described) = describe(&self.site, name).await? else {
            return Err(gone(&self.site, name));
        };
        self.state.watch = Watch::after(&described.service);
        if before.scaling.is_some() {
            detach(cx, &self.site, name, ROLLBACK).await?;
        }
        let document = before.restore_document(&self.site, name, &self.deployed.sent);
        cx.info(
            ROLLBACK,
            format!(
                "Updating Service {name} back to task definition {} with {} tasks",
                before.task_definition(),
                before.desired()
            ),
        );
        let service = update(&self.site, &document).await?;
        self.state.deployment = primary(&service).and_then(|d| d.id()).map(str::to_owned);
        self.state.phase = Phase::Wait;
        Ok(None)
    }

    async fn wait(
        &mut self,
        cx: &mut StepContext<'_>,
        name: &str,
        before: &Before,
    ) -> Result<Option<std::time::Duration>, Failure> {
        let deployment = self.state.deployment.clone();
        let goal = Goal {
            service: name,
            task_definition: before.task_definition(),
            deployment: deployment.as_deref(),
            unit: ROLLBACK,
        };
        Ok(match self.state.watch.look(cx, &self.site, &goal).await? {
            Seen::Moving => Some(self.state.watch.pause()),
            Seen::Steady => {
                self.state.phase = Phase::Scale;
                None
            }
        })
    }

    /// Scaling comes back last, so that it does not work against the rollback.
    async fn scale(
        &mut self,
        cx: &mut StepContext<'_>,
        before: &Before,
    ) -> Result<Option<std::time::Duration>, Failure> {
        if let Some(scaling) = &before.scaling {
            scaling.attach(cx, &self.site, ROLLBACK).await?;
        }
        self.state.phase = Phase::Note;
        Ok(None)
    }
}

fn gone(site: &Site, name: &str) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!(
            "Service {name} in {site} cannot be rolled back: it no longer exists, somebody or something \
             else deleted it."
        ),
        left_behind: None,
    }
}

fn another(site: &Site, name: &str, runs: Option<&str>) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!(
            "Service {name} in {site} is not deleted: it runs {}, which this run did not deploy.",
            short(runs.unwrap_or("an unknown task definition"))
        ),
        left_behind: None,
    }
}
