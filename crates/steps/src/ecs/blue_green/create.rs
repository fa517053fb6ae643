//! `EcsBlueGreenCreateService`: the new version as a service of its own in the stage target group, where it gets
//! no requests yet.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::beside;
use super::super::instances::{info, running};
use super::super::manifest::Documents;
use super::super::removal::Removal;
use super::super::scaling::Scaling;
use super::super::site::Site;
use super::super::task_definition::{Intent, Registered, registered, short};
use super::super::watch::{Goal, Seen as Looked, Watch};
use super::super::{DEPLOY, FETCH, PREPARE, open_unit, told};
use super::routes::Routes;
use super::spec::{Create, check_create};
use super::{Handover, Patience, tag, wrong};
use crate::context::StepContext;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::step::{Progress, Step, Undo};

/// The step.
pub struct CreateService;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Look at rules and services, and write down how to undo.
    #[default]
    Prepare,
    /// Delete what was in the stage target group.
    Clear,
    /// Register the task definition.
    Register,
    /// Create or update the service.
    Change,
    /// Wait until it is steady.
    Wait,
    /// Wait until the load balancer finds its targets healthy.
    Healthy,
    /// Put scaling on.
    Scale,
    /// Tag it, and count it.
    Tag,
    /// Nothing.
    Done,
}

/// Progress of the step; the other blue-green steps read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) routes: Option<Routes>,
    pub(super) documents: Option<String>,
    pub(super) handover: Option<Handover>,
    /// Services that this attempt deletes first.
    pub(super) clear: Vec<String>,
    /// Whether this attempt updates the service that has the name already.
    pub(super) update: bool,
    /// Whether what serves is not tagged so.
    pub(super) mistagged: bool,
    /// Tasks of the new version.
    pub(super) desired: i64,
    pub(super) intent: Option<Intent>,
    /// Id of the updated service's primary deployment when this attempt began.
    pub(super) primary_before: Option<String>,
    pub(super) task_definition: Option<Registered>,
    pub(super) sent: Vec<String>,
    pub(super) removal: Removal,
    pub(super) deployment: Option<String>,
    /// ARN of the new service.
    pub(super) arn: Option<String>,
    pub(super) scale_in_swap: bool,
    pub(super) watch: Watch,
    #[serde(default)]
    pub(super) patience: Patience,
}

#[async_trait]
impl Step for CreateService {
    fn step_type(&self) -> &'static str {
        "EcsBlueGreenCreateService"
    }

    fn units(&self) -> &'static [&'static str] {
        &[FETCH, PREPARE, DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check_create(spec)
    }

    fn undo(&self) -> Undo {
        Undo::Step("EcsBlueGreenRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let result = match Creation::resume(cx).await {
            Ok(creation) => walk(creation, cx).await,
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
                "The new service stays in ECS, without requests, until EcsBlueGreenRollback or the next deployment",
            );
        }
        Ok(())
    }
}

/// One call's worth of the step.
pub(super) struct Creation {
    pub(super) site: Site,
    pub(super) spec: Create,
    pub(super) state: State,
    pub(super) routes: Routes,
    pub(super) documents: Documents,
    /// Whether the phase was begun by an earlier call, which may have been cut off after its effect.
    pub(super) resumed: bool,
}

#[async_trait]
impl Phases for Creation {
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
            Phase::Clear => self.clear(cx).await?.into(),
            Phase::Register => self.register(cx).await?.into(),
            Phase::Change => self.change(cx).await?.into(),
            Phase::Wait => self.wait(cx).await?.into(),
            Phase::Healthy => self.healthy(cx).await?.into(),
            Phase::Scale => self.scale(cx).await?.into(),
            Phase::Tag => self.tag(cx).await?.into(),
            Phase::Done => Turn::Done(self.ended(cx).await?),
        })
    }
}

impl Creation {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let spec = Create::read(cx.spec())?;
        let mut state: State = cx.saved()?;
        cx.unit_started(FETCH);
        let site = Site::of_stage(cx).await?;
        let routes = match state.routes.clone() {
            Some(routes) => routes,
            None => Routes::find(&site, &spec).await?,
        };
        let names = [(
            "targetGroupArn",
            slipway_expr::Value::from_json(&json!(routes.stage_group)),
        )];
        let documents = Documents::once_with(cx, &mut state.documents, &names).await?;
        state.routes = Some(routes.clone());
        state.scale_in_swap = spec.scale_in_swap;
        let resumed = state.phase != Phase::Prepare;
        Ok(Self {
            site,
            spec,
            state,
            routes,
            documents,
            resumed,
        })
    }

    pub(super) fn made(&self) -> Result<&Handover, Failure> {
        let handover = self.state.handover.as_ref();
        handover.ok_or_else(|| wrong("The rollback data of this step were not written.".to_owned()))
    }

    async fn register(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let source = &self.documents.task_definition;
        let from = (self.state.intent.as_ref(), self.resumed);
        let registered = registered(cx, &self.site, source, from, DEPLOY).await?;
        self.state.task_definition = Some(registered);
        self.state.phase = Phase::Change;
        Ok(None)
    }

    pub(super) fn task_definition(&self) -> &str {
        let registered = self.state.task_definition.as_ref();
        registered.map_or("", |registered| &registered.arn)
    }

    async fn wait(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (name, arn) = (self.made()?.new.clone(), self.task_definition().to_owned());
        let deployment = self.state.deployment.clone();
        let goal = Goal {
            service: &name,
            task_definition: &arn,
            deployment: deployment.as_deref(),
            unit: DEPLOY,
        };
        Ok(match self.state.watch.look(cx, &self.site, &goal).await? {
            Looked::Moving => Some(self.state.watch.pause()),
            Looked::Steady => {
                self.state.phase = Phase::Healthy;
                None
            }
        })
    }

    /// What ECS calls steady may still fail the checks of the load balancer.
    async fn healthy(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let routes = &self.routes;
        let others = self.made()?.blue.as_ref().filter(|_| routes.is_shared());
        let wanted = self.state.desired + others.map_or(0, |blue| blue.running);
        let targets = (routes.stage_group.as_str(), wanted);
        let patience = &mut self.state.patience;
        let pause = patience.look(cx, &self.site, targets, DEPLOY).await?;
        self.state.phase = match pause {
            // Unhealthy tasks are replaced by ECS, which counts them and may give up.
            Some(_) => Phase::Wait,
            None => Phase::Scale,
        };
        Ok(pause)
    }

    async fn scale(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let name = self.made()?.new.clone();
        cx.info(
            DEPLOY,
            format!(
                "Target Group with Arn: {} is associated with Stage Service {name}",
                self.routes.stage_group
            ),
        );
        let blue = self.made()?.blue.as_ref().map(|blue| &blue.scaling);
        let scaling =
            Scaling::of_manifests(&self.site, &name, &self.documents).with_actions_of(blue);
        match self.spec.scale_in_swap && !scaling.is_empty() {
            true => cx.info(DEPLOY, "Application scaling is attached in the swap step"),
            false => scaling.attach(cx, &self.site, DEPLOY).await?,
        }
        self.state.phase = Phase::Tag;
        Ok(None)
    }

    async fn tag(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let name = self.made()?.new.clone();
        let arn = self.state.arn.clone().unwrap_or_default();
        tag::set(cx, &self.site, (&name, &arn), tag::GREEN, DEPLOY).await?;
        beside::recount(cx, &self.site).await?;
        self.state.phase = Phase::Done;
        Ok(None)
    }

    async fn ended(&self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let (site, name) = (&self.site, &self.made()?.new);
        let tasks = running(site, name).await?;
        let instances: Vec<Value> = tasks.iter().map(|task| info(site, name, task)).collect();
        cx.info(
            DEPLOY,
            format!(
                "Stage Service {name} runs {} tasks of {}",
                instances.len(),
                short(self.task_definition())
            ),
        );
        cx.unit_ended(DEPLOY, true);
        let outcome = json!({"serverInstanceInfoList": instances});
        Ok(json!({
            "output": {
                "serviceName": name,
                "taskDefinitionArn": self.task_definition(),
                "targetGroupArn": self.routes.stage_group,
                "prodTargetGroupArn": self.routes.prod_group,
                "deploymentInfoOutcome": outcome,
            },
            "deploymentInfoOutcome": outcome,
        }))
    }
}
