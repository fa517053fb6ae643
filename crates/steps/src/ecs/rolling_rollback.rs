//! `EcsRollingRollback`: brings a service back to how `EcsRollingDeploy` found it, unless somebody else changed it since.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::flags::check_flags;
use super::foreign::Ours;
use super::instances::Change;
use super::removal::{self, Removal};
use super::rollback::{Before, RollbackData};
use super::rolling_deploy::{Phase as Deployed, State as DeployState};
use super::scaling::{Scaling, detach};
use super::service::{Described, Standing, describe, primary, update};
use super::site::Site;
use super::task_definition::short;
use super::watch::{Goal, Seen, Watch};
use super::{ROLLBACK, instances};
use crate::context::StepContext;
use crate::deployment::{Touched, wrong};
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
    /// Services of the stage that are rolled back.
    #[serde(default)]
    done: Vec<String>,
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
        let Some(touched) = touched(cx)? else {
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
        if let Some(reasons) = state.watch.evidence() {
            cx.warn(ROLLBACK, format!("Tasks stopped because: {reasons}"));
        }
        let unended = "The rollback did not end: look at the service and its tasks";
        cx.error(ROLLBACK, unended);
        let Some(touched) = touched(cx)? else {
            return Ok(());
        };
        let Some((data, undoing)) = Undoing::begin(cx, &touched.states).await? else {
            return Ok(());
        };
        let failure = left(
            wrong(format!("{unended}.")),
            &data,
            &undoing.site.to_string(),
        );
        Err(undoing.scale_again(cx, &data, failure).await)
    }
}

/// The next service that a deployment of the stage may have changed.
fn touched(cx: &StepContext<'_>) -> Result<Option<Touched<DeployState>>, Failure> {
    let done = cx.saved::<State>()?.done;
    let attempts = cx.saved_by_all::<DeployState>("EcsRollingDeploy")?;
    // An attempt that came again may have ended before it changed anything; one before it did not.
    let service = |state: &DeployState| {
        let changed = state.phase >= Deployed::Change;
        let data = state.rollback.as_ref().filter(|_| changed)?;
        Some(data.service.clone())
    };
    Ok(Touched::next(attempts, service, &done))
}

/// Brings one service back.
async fn undo(cx: &mut StepContext<'_>, attempts: &[DeployState]) -> Result<Progress, Failure> {
    let Some((data, mut undoing)) = Undoing::begin(cx, attempts).await? else {
        return Ok(Progress::Done(json!({})));
    };
    let result = match &data.before {
        None => undoing.remove(cx, &data.service).await,
        Some(before) => undoing.restore(cx, &data, before).await,
    };
    let Err(failure) = result else {
        return result;
    };
    let failure = left(failure, &data, &undoing.site.to_string());
    if cx.is_put_off(&failure) {
        return Err(failure);
    }
    let failure = undoing.scale_again(cx, &data, failure).await;
    cx.error(ROLLBACK, &failure.message);
    Err(failure)
}

/// A failed rollback says what a person must look at.
fn left(failure: Failure, data: &RollbackData, place: &str) -> Failure {
    let service = &data.service;
    let may_be = match &data.before {
        None => format!("service {service} in {place}, created by this run, may still exist"),
        Some(before) => format!(
            "service {service} in {place} may not be back on {} with {} tasks",
            short(before.task_definition()),
            before.desired()
        ),
    };
    Failure {
        left_behind: failure.left_behind.or(Some(may_be)),
        ..failure
    }
}

/// What became of the scaling of a service that is not brought back.
enum Scaled {
    On,
    /// It was not put on, and why.
    Not(String),
}

struct Undoing {
    site: Site,
    ours: Ours,
    /// Fields that the deployments set.
    sent: Vec<String>,
    state: State,
}

impl Undoing {
    /// What there is to undo of the deployments of one service: back to what the first of them found.
    async fn begin(
        cx: &mut StepContext<'_>,
        attempts: &[DeployState],
    ) -> Result<Option<(RollbackData, Self)>, Failure> {
        let Some(data) = attempts.iter().find_map(|state| state.rollback.clone()) else {
            return Ok(None);
        };
        let site = Site::of_stage(cx)
            .await
            .map_err(|failure| left(failure, &data, "its stage"))?;
        let sent = attempts.iter().flat_map(|state| state.sent.iter().cloned());
        let undoing = Self {
            site,
            ours: Ours::of(&data, attempts),
            sent: sent.collect(),
            state: cx.saved()?,
        };
        Ok(Some((data, undoing)))
    }

    /// First deployment: what was created goes.
    async fn remove(&mut self, cx: &mut StepContext<'_>, name: &str) -> Result<Progress, Failure> {
        let (site, ours) = (&self.site, &self.ours);
        let check = |described: &Described| ours.check(site, name, &described.json);
        if self
            .state
            .removal
            .go_on(cx, (site, name), ROLLBACK, check)
            .await?
        {
            instances::note(cx, &self.site, (name, ""), Change::Removed).await?;
            let done = match self.state.removal.was_there() {
                true => format!("Service {name} deleted: rolled back cleanly"),
                false => format!("Service {name} does not exist: nothing is left"),
            };
            cx.info(ROLLBACK, done);
            cx.unit_ended(ROLLBACK, true);
            return Ok(Progress::Done(json!({"output": {"serviceName": name}})));
        }
        cx.save(&self.state).await?;
        Ok(Progress::Again(removal::PAUSE))
    }

    /// Later deployment: the service goes back to what was written down.
    async fn restore(
        &mut self,
        cx: &mut StepContext<'_>,
        data: &RollbackData,
        before: &Before,
    ) -> Result<Progress, Failure> {
        let name = data.service.as_str();
        loop {
            let pause = match self.state.phase {
                Phase::Change => self.change(cx, name, before).await?,
                Phase::Wait => self.wait(cx, name, before).await?,
                Phase::Scale => self.scale(cx, name, before).await?,
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
        self.ours.check(&self.site, name, &described.json)?;
        self.state.watch = Watch::after(&described.service);
        if before.scaling.is_some() {
            detach(cx, &self.site, name, ROLLBACK).await?;
        }
        let document = before.restore_document(&self.site, name, &self.sent);
        cx.info(
            ROLLBACK,
            format!(
                "Updating Service {name} back to task definition {} with {} tasks",
                before.task_definition(),
                before.desired()
            ),
        );
        let service = update(&self.site, &document).await?.service;
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
        name: &str,
        before: &Before,
    ) -> Result<Option<std::time::Duration>, Failure> {
        if let Some(scaling) = &before.scaling {
            scaling.attach(cx, &self.site, ROLLBACK).await?;
        }
        if let Some(holder) = before.owed_by(&self.site, name) {
            cx.owes(holder, None);
        }
        self.state.phase = Phase::Note;
        Ok(None)
    }

    /// What the deployment took off goes on again also where the service cannot be brought back: it would stay without
    /// it. The failure says so where it does not.
    async fn scale_again(
        &self,
        cx: &mut StepContext<'_>,
        data: &RollbackData,
        failure: Failure,
    ) -> Failure {
        let scaling = data
            .before
            .as_ref()
            .and_then(|before| before.scaling.as_ref());
        let Some(scaling) = scaling.filter(|scaling| !scaling.is_empty()) else {
            return failure;
        };
        let why = match self.attach(cx, &data.service, scaling).await {
            Ok(Scaled::On) => return failure,
            Ok(Scaled::Not(why)) => why,
            Err(why) => why.message,
        };
        let left = failure.left_behind.unwrap_or_default();
        let without = scaling.told();
        Failure {
            left_behind: Some(format!("{left}, and may be without {without}: {why}")),
            ..failure
        }
    }

    /// Puts scaling on, unless somebody else put other on, or it would change how many tasks they want.
    async fn attach(
        &self,
        cx: &mut StepContext<'_>,
        name: &str,
        wanted: &Scaling,
    ) -> Result<Scaled, Failure> {
        let Standing::Active(found) = describe(&self.site, name).await? else {
            return Ok(Scaled::Not("it no longer exists".to_owned()));
        };
        let now = Scaling::describe(&self.site, name).await?;
        if now == *wanted {
            return Ok(Scaled::On);
        }
        if !now.is_empty() && !now.is_part_of(wanted) {
            return Ok(Scaled::Not("other scaling is on".to_owned()));
        }
        let desired = i64::from(found.service.desired_count());
        if !wanted.allows(desired) {
            return Ok(Scaled::Not(format!("it would change its {desired} tasks")));
        }
        wanted.attach(cx, &self.site, ROLLBACK).await?;
        Ok(Scaled::On)
    }
}

fn gone(site: &Site, name: &str) -> Failure {
    wrong(format!(
        "Service {name} in {site} cannot be rolled back: it no longer exists, somebody or something else deleted it."
    ))
}
