//! `EcsRollingDeploy`: a new task definition for a service, its old tasks replaced by AWS within the
//! service's healthy percentages.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_engine::owed::Missing;
use slipway_model::status::Failure;

use super::flags::{FLAGS, Spec, check_flags};
use super::foreign::Digests;
use super::instances::Change;
use super::manifest::Documents;
use super::rollback::{Before, RollbackData};
use super::scaling::Scaling;
use super::scaling_loss::{self, Succession};
use super::service::{Described, Standing, describe, primary};
use super::site::Site;
use super::task_definition::{Intent, Registered, intended, registered, short};
use super::watch::{Goal, Seen, Watch};
use super::{DEPLOY, FETCH, PREPARE, beside, divergence, instances, open_unit, served, told};
use crate::context::StepContext;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::deployment::{Replaced, wrong};
use crate::step::{Progress, Step, Undo};

/// The step.
pub struct RollingDeploy;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Read manifests and write down how to undo.
    #[default]
    Prepare,
    /// Register the task definition.
    Register,
    /// Create or update the service.
    Change,
    /// Wait until it is steady.
    Wait,
    /// Put scaling on.
    Scale,
    /// Note what runs.
    Note,
}

/// Progress of the step; the rollback step reads it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// Key of the stored [`Documents`].
    documents: Option<String>,
    pub(super) rollback: Option<RollbackData>,
    intent: Option<Intent>,
    /// Id of the primary deployment when this attempt began.
    pub(super) primary_before: Option<String>,
    pub(super) task_definition: Option<Registered>,
    /// Fields that the update set.
    pub(super) sent: Vec<String>,
    /// What AWS answered to the change; `None` until the answer came.
    #[serde(default)]
    pub(super) put: Option<Digests>,
    pub(super) deployment: Option<String>,
    watch: Watch,
}

#[async_trait]
impl Step for RollingDeploy {
    fn step_type(&self) -> &'static str {
        "EcsRollingDeploy"
    }

    fn units(&self) -> &'static [&'static str] {
        &[FETCH, PREPARE, DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check_flags(spec, &FLAGS)
    }

    fn undo(&self) -> Undo {
        Undo::Step("EcsRollingRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let result = match Deployment::resume(cx).await {
            Ok(deployment) => walk(deployment, cx).await,
            Err(failure) => Err(failure),
        };
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let state: State = cx.saved()?;
        let unit = open_unit(cx, self.units());
        if let Some(reasons) = state.watch.evidence() {
            cx.warn(unit, format!("Tasks stopped because: {reasons}"));
        }
        if state.phase >= Phase::Change {
            cx.warn(
                unit,
                "The deployment goes on in ECS until a rollback step or another deployment ends it",
            );
        }
        match without_scaling(cx, &state).await? {
            Some(left) => {
                cx.warn(unit, &left);
                Err(wrong(left))
            }
            None => Ok(()),
        }
    }
}

/// What a deployment that nobody rolls back took off its service and has not put on: it does so when it is steady.
async fn without_scaling(
    cx: &mut StepContext<'_>,
    state: &State,
) -> Result<Option<String>, Failure> {
    let under_way = (Phase::Change..=Phase::Scale).contains(&state.phase);
    let data = state.rollback.as_ref().filter(|_| under_way);
    let taken = data.and_then(|data| Some((&data.service, data.before.as_ref()?)));
    let Some((name, before)) = taken.filter(|_| cx.stays_as_it_is()) else {
        return Ok(None);
    };
    let Some(scaling) = before.scaling.as_ref().filter(|one| !one.is_empty()) else {
        return Ok(None);
    };
    let site = Site::of_stage(cx).await?;
    let is = match Scaling::describe(&site, name).await {
        Ok(now) if scaling.is_part_of(&now) => return Ok(None),
        Ok(_) => "is",
        // Its own failure would hide what matters here.
        Err(_) => "may be",
    };
    Ok(Some(told_missing(&site, (name, is), before, state)))
}

/// Says that a service `is` without the scaling that a deployment took off it.
fn told_missing(site: &Site, (name, is): (&str, &str), before: &Before, state: &State) -> String {
    let new = state.task_definition.as_ref();
    format!(
        "Service {name} in {site} {is} without {}, which it had with {}, and goes on to {}. Run the pipeline again, which \
         puts on the scaling of its manifests, or put it back with `aws ecs update-service` and `aws application-autoscaling \
         register-scalable-target` and `put-scaling-policy`.",
        before
            .scaling
            .as_ref()
            .map(Scaling::told)
            .unwrap_or_default(),
        short(before.task_definition()),
        new.map_or("the new task definition", |new| short(&new.arn)),
    )
}

/// One call's worth of the deployment.
pub(super) struct Deployment {
    pub(super) site: Site,
    pub(super) spec: Spec,
    pub(super) state: State,
    pub(super) documents: Documents,
    /// Whether the phase was begun by an earlier call, which may have been cut off after its effect.
    pub(super) resumed: bool,
}

#[async_trait]
impl Phases for Deployment {
    type State = State;

    fn state(&self) -> &State {
        &self.state
    }

    fn saved(&mut self) {
        self.resumed = false;
    }

    async fn turn(&mut self, cx: &mut StepContext<'_>) -> Result<Turn, Failure> {
        Ok(match self.state.phase {
            Phase::Prepare => self.prepare(cx).await?.into(),
            Phase::Register => self.register(cx).await?.into(),
            Phase::Change => self.change(cx).await?.into(),
            Phase::Wait => self.wait(cx).await?.into(),
            Phase::Scale => self.scale(cx).await?.into(),
            Phase::Note => Turn::Done(self.note(cx).await?),
        })
    }
}

impl Deployment {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let spec = Spec::read(cx.spec())?;
        let mut state: State = cx.saved()?;
        let documents = Documents::once(cx, &mut state.documents).await?;
        let site = Site::of_stage(cx).await?;
        let resumed = state.phase != Phase::Prepare;
        Ok(Self {
            site,
            spec,
            state,
            documents,
            resumed,
        })
    }

    pub(super) fn name(&self) -> Result<String, Failure> {
        self.documents.service_name().map(str::to_owned)
    }

    /// Writes down how the service is now, and what the newest task definition is.
    async fn prepare(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(PREPARE);
        let name = self.name()?;
        let earlier: Option<State> = cx.saved_by_first_attempt()?;
        let noted = divergence::noted(cx, &self.site, &name).await?;
        let before = match describe(&self.site, &name).await? {
            Standing::Active(described) => {
                self.state.watch = Watch::after(&described.service);
                self.state.primary_before = primary(&described.service)
                    .and_then(|d| d.id())
                    .map(str::to_owned);
                let noted = noted.as_ref().map(|noted| noted.runs.as_str());
                Some(self.before(cx, *described, (&name, noted)).await?)
            }
            Standing::Absent | Standing::Draining => {
                cx.info(
                    PREPARE,
                    format!("Service {name} does not exist: this is its first deployment"),
                );
                None
            }
        };
        if let (None, Some(before)) = (&earlier, &before) {
            let (site, noted) = (&self.site, noted.as_ref());
            divergence::tell(cx, site, (&name, before), noted, PREPARE).await?;
            if let Some(has) = &before.scaling {
                let (old, new) = (name.as_str(), name.as_str());
                let same = Succession { old, new, has };
                scaling_loss::warn(cx, site, same, &self.documents).await?;
            }
        }
        if earlier.is_none() {
            beside::warn_of_canary(cx, &self.site, PREPARE).await?;
        }
        // What an earlier attempt of this step found is what was there before this run changed anything.
        let rollback = match earlier.and_then(|state| state.rollback) {
            Some(rollback) => rollback,
            None => RollbackData {
                service: name,
                before,
                replaced: Replaced::read(cx).await?,
            },
        };
        self.state.rollback = Some(rollback);
        self.state.intent = intended(cx, &self.site, &self.documents.task_definition).await?;
        self.state.phase = Phase::Register;
        cx.info(PREPARE, "Prepared rollback data");
        cx.unit_ended(PREPARE, true);
        Ok(None)
    }

    async fn before(
        &self,
        cx: &mut StepContext<'_>,
        described: Described,
        (name, noted): (&str, Option<&str>),
    ) -> Result<Before, Failure> {
        let service = &described.service;
        cx.info(
            PREPARE,
            format!(
                "Service {name} runs {} with {}/{} tasks",
                short(service.task_definition().unwrap_or_default()),
                service.running_count(),
                service.desired_count()
            ),
        );
        let scaling = match self.spec.skip_scaling {
            true => None,
            false => Some(Scaling::describe(&self.site, name).await?),
        };
        let running = service.running_count();
        let (service, passed_over) = served::kept(described, noted);
        Ok(Before {
            running,
            service,
            scaling,
            passed_over,
        })
    }

    /// Notes that the service `is` without the scaling that it had, so that the end of the stage tells where this step neither
    /// ends well nor is rolled back; `None` when it is on.
    pub(super) fn owes(&self, cx: &mut StepContext<'_>, is: Option<&str>) {
        let data = self.state.rollback.as_ref();
        let Some((name, before)) =
            data.and_then(|data| Some((&data.service, data.before.as_ref()?)))
        else {
            return;
        };
        if let Some(holder) = before.owed_by(&self.site, name) {
            let missing = is.map(|is| Missing {
                name: before
                    .scaling
                    .as_ref()
                    .map(Scaling::told)
                    .unwrap_or_default(),
                told: told_missing(&self.site, (name, is), before, &self.state),
            });
            cx.owes(holder, missing);
        }
    }

    async fn register(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(DEPLOY);
        let source = &self.documents.task_definition;
        let from = (self.state.intent.as_ref(), self.resumed);
        let registered = registered(cx, &self.site, source, from, DEPLOY).await?;
        self.state.task_definition = Some(registered);
        self.state.phase = Phase::Change;
        Ok(None)
    }

    pub(super) fn task_definition(&self) -> &str {
        self.state
            .task_definition
            .as_ref()
            .map_or("", |registered| &registered.arn)
    }

    pub(super) fn first(&self) -> bool {
        self.state
            .rollback
            .as_ref()
            .is_none_or(|data| data.before.is_none())
    }

    async fn wait(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let name = self.name()?;
        let arn = self.task_definition().to_owned();
        let deployment = self.state.deployment.clone();
        let goal = Goal {
            service: &name,
            task_definition: &arn,
            deployment: deployment.as_deref(),
            unit: DEPLOY,
        };
        Ok(match self.state.watch.look(cx, &self.site, &goal).await? {
            Seen::Moving => Some(self.state.watch.pause()),
            Seen::Steady => {
                self.state.phase = Phase::Scale;
                None
            }
        })
    }

    async fn scale(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let before = self.state.rollback.as_ref();
        let before = before.and_then(|data| data.before.as_ref()?.scaling.as_ref());
        let scaling = Scaling::of_manifests(&self.site, &self.name()?, &self.documents)
            .with_actions_of(before);
        // From here on part of it may be on.
        self.owes(cx, Some("may be"));
        if self.spec.skip_scaling && !scaling.is_empty() {
            cx.info(
                DEPLOY,
                "Skipped application scaling: `skipApplicationScaling` is true",
            );
        } else {
            scaling.attach(cx, &self.site, DEPLOY).await?;
        }
        self.owes(cx, None);
        self.state.phase = Phase::Note;
        Ok(None)
    }

    async fn note(&mut self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let name = self.name()?;
        let rollback = self.state.rollback.as_ref();
        let change = Change::Deployed(rollback.and_then(RollbackData::replaced));
        let instances =
            instances::note(cx, &self.site, (&name, self.task_definition()), change).await?;
        let revision = self
            .state
            .task_definition
            .as_ref()
            .map_or("", Registered::revision);
        cx.info(
            DEPLOY,
            format!(
                "Service {name} runs {} instances of revision {revision}",
                instances.len()
            ),
        );
        cx.unit_ended(DEPLOY, true);
        let outcome = json!({"serverInstanceInfoList": instances});
        Ok(json!({
            "output": {
                "serviceName": name,
                "taskDefinitionArn": self.task_definition(),
                "deploymentInfoOutcome": outcome,
            },
            "deploymentInfoOutcome": outcome,
        }))
    }
}
