//! `EcsCanaryDeploy`: one task of the new version, as a service of its own (`<serviceName>Canary`) beside the
//! live one, to be looked at before the rolling deployment.
//!
//! The live service is not touched, and the canary gets no application scaling. A canary that an earlier run
//! left is deleted first; a service of that name that no such step created is left alone, and the step fails.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::{ErrorType, Failure};

use super::beside::{self, Beside, Role};
use super::flags::check_flags;
use super::instances::{info, running};
use super::manifest::Documents;
use super::removal::{self, Removal};
use super::service::{Standing, create, create_document, describe, primary};
use super::site::Site;
use super::task_definition::{Intent, Registered, intended, registered, short};
use super::watch::{Goal, Seen, Watch};
use super::{DEPLOY, FETCH, PREPARE, open_unit, told};
use crate::context::StepContext;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::deployment::{token, wrong};
use crate::step::{Progress, Step, Undo};

/// What a canary's name has behind the service's (docs: ecs-canary-deployment, log).
const SUFFIX: &str = "Canary";

/// Longest name of a service (ECS API reference, `CreateService`).
const LONGEST_NAME: usize = 255;

/// The step.
pub struct CanaryDeploy;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Phase {
    /// Read manifests, look at what has the canary's name.
    #[default]
    Prepare,
    /// Delete what an earlier run left.
    Clear,
    /// Register the task definition.
    Register,
    /// Create the service.
    Create,
    /// Wait until it is steady.
    Wait,
    /// Count it.
    Note,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    phase: Phase,
    /// Key of the stored [`Documents`].
    documents: Option<String>,
    intent: Option<Intent>,
    task_definition: Option<Registered>,
    removal: Removal,
    deployment: Option<String>,
    watch: Watch,
}

#[async_trait]
impl Step for CanaryDeploy {
    fn step_type(&self) -> &'static str {
        "EcsCanaryDeploy"
    }

    fn units(&self) -> &'static [&'static str] {
        &[FETCH, PREPARE, DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check_flags(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Step("EcsCanaryDelete")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let result = match Canary::resume(cx).await {
            Ok(canary) => walk(canary, cx).await,
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
        if state.phase < Phase::Create {
            return Ok(());
        }
        let stays = "The canary service stays in ECS until EcsCanaryDelete deletes it";
        cx.warn(unit, stays);
        if !cx.stays_as_it_is() {
            return Ok(());
        }
        let site = Site::of_stage(cx).await?;
        let mut canaries = beside::noted(cx, &site).await?;
        canaries.retain(|one| one.role == Role::Canary && one.run == *cx.run());
        match canaries.first() {
            Some(canary) => Err(wrong(beside::told_left(&site, canary))),
            None => Ok(()),
        }
    }
}

/// One call's worth of the step.
struct Canary {
    site: Site,
    state: State,
    documents: Documents,
    /// `serviceName` of the live service.
    main: String,
    /// Name of the canary.
    name: String,
    /// Whether the phase was begun by an earlier call, which may have been cut off after its effect.
    resumed: bool,
}

#[async_trait]
impl Phases for Canary {
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
            Phase::Create => self.create(cx).await?.into(),
            Phase::Wait => self.wait(cx).await?.into(),
            Phase::Note => Turn::Done(self.note(cx).await?),
        })
    }
}

impl Canary {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let mut state: State = cx.saved()?;
        let documents = Documents::once(cx, &mut state.documents).await?;
        let main = documents.service_name()?.to_owned();
        let name = format!("{main}{SUFFIX}");
        check_definition(&documents.service, &name)?;
        let site = Site::of_stage(cx).await?;
        let resumed = state.phase != Phase::Prepare;
        Ok(Self {
            site,
            state,
            documents,
            main,
            name,
            resumed,
        })
    }

    async fn prepare(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(PREPARE);
        let name = &self.name;
        self.state.phase = match describe(&self.site, name).await? {
            Standing::Absent => {
                self.state.intent =
                    intended(cx, &self.site, &self.documents.task_definition).await?;
                Phase::Register
            }
            Standing::Draining => Phase::Clear,
            Standing::Active(found) => {
                let left = beside::noted(cx, &self.site).await?;
                let runs = found.service.task_definition();
                if !left.iter().any(|left| left.is_canary(name, runs)) {
                    return Err(foreign(&self.site, &self.main, name, runs));
                }
                cx.info(
                    PREPARE,
                    format!(
                        "Canary service {name} was left by an earlier run: it is deleted first"
                    ),
                );
                Phase::Clear
            }
        };
        if self.state.phase == Phase::Register {
            self.prepared(cx);
        }
        Ok(None)
    }

    fn prepared(&self, cx: &mut StepContext<'_>) {
        cx.info(
            PREPARE,
            format!("To roll back, the canary service {} is deleted", self.name),
        );
        cx.unit_ended(PREPARE, true);
    }

    async fn clear(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let left = beside::noted(cx, &self.site).await?;
        let (site, main, name) = (&self.site, &self.main, self.name.as_str());
        let ours = |found: &super::service::Described| {
            let runs = found.service.task_definition();
            let known = left.iter().any(|left| left.is_canary(name, runs));
            known
                .then_some(())
                .ok_or_else(|| foreign(site, main, name, runs))
        };
        let gone = self.state.removal.go_on(cx, (site, name), PREPARE, ours);
        if !gone.await? {
            return Ok(Some(removal::PAUSE));
        }
        self.state.intent = intended(cx, &self.site, &self.documents.task_definition).await?;
        self.state.phase = Phase::Register;
        self.prepared(cx);
        Ok(None)
    }

    async fn register(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(DEPLOY);
        let source = &self.documents.task_definition;
        let from = (self.state.intent.as_ref(), self.resumed);
        let registered = registered(cx, &self.site, source, from, DEPLOY).await?;
        self.state.task_definition = Some(registered);
        self.state.phase = Phase::Create;
        Ok(None)
    }

    fn task_definition(&self) -> &str {
        let registered = self.state.task_definition.as_ref();
        registered.map_or("", |registered| &registered.arn)
    }

    async fn create(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (site, name, arn) = (&self.site, &self.name, self.task_definition());
        let ours = Beside {
            service_name: name.clone(),
            task_definition_arn: arn.to_owned(),
            run: cx.run().clone(),
            role: Role::Canary,
        };
        let service = match describe(site, name).await? {
            Standing::Active(found)
                if self.resumed && ours.is_canary(name, found.service.task_definition()) =>
            {
                found.service
            }
            Standing::Active(found) => {
                let runs = found.service.task_definition();
                return Err(foreign(site, &self.main, name, runs));
            }
            Standing::Draining => return Ok(Some(removal::PAUSE)),
            Standing::Absent => {
                // Whoever deletes it later must know that it is ours, also when this call is cut off.
                beside::add(cx, site, &self.main, ours).await?;
                let definition = cx.secrets().reveal(self.documents.service.clone()).await?;
                let mut document = create_document(site, &definition, arn, &token(cx));
                document["serviceName"] = json!(name);
                document["desiredCount"] = json!(1);
                cx.info(
                    DEPLOY,
                    format!(
                        "Creating Service {name} with task definition {arn} and desired count 1"
                    ),
                );
                let service = create(site, &document).await?.service;
                let made = service.service_arn().unwrap_or_default();
                cx.info(DEPLOY, format!("Created Service {name} with Arn {made}"));
                service
            }
        };
        self.state.deployment = primary(&service).and_then(|d| d.id()).map(str::to_owned);
        self.state.phase = Phase::Wait;
        Ok(None)
    }

    async fn wait(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let arn = self.task_definition().to_owned();
        let deployment = self.state.deployment.clone();
        let goal = Goal {
            service: &self.name,
            task_definition: &arn,
            deployment: deployment.as_deref(),
            unit: DEPLOY,
        };
        Ok(match self.state.watch.look(cx, &self.site, &goal).await? {
            Seen::Moving => Some(self.state.watch.pause()),
            Seen::Steady => {
                self.state.phase = Phase::Note;
                None
            }
        })
    }

    async fn note(&mut self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let (site, name) = (&self.site, &self.name);
        beside::recount(cx, site).await?;
        let tasks = running(site, name).await?;
        let instances: Vec<Value> = tasks.iter().map(|task| info(site, name, task)).collect();
        cx.info(
            DEPLOY,
            format!(
                "Canary service {name} runs {} with {} task",
                short(self.task_definition()),
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

impl Beside {
    /// Whether a service of this name that runs this task definition is this canary.
    fn is_canary(&self, name: &str, runs: Option<&str>) -> bool {
        self.role == Role::Canary && self.service_name == name && self.runs(runs)
    }
}

/// What cannot have a canary of one task.
fn check_definition(definition: &Value, name: &str) -> Result<(), Failure> {
    let why = if definition["schedulingStrategy"] == "DAEMON" {
        "a service with `schedulingStrategy: DAEMON` runs a task on every instance, and so would its canary; \
         use EcsRollingDeploy"
            .to_owned()
    } else if name.chars().count() > LONGEST_NAME {
        format!(
            "the canary's name `{name}` has more than the {LONGEST_NAME} characters that ECS allows; shorten \
             `serviceName`"
        )
    } else {
        return Ok(());
    };
    Err(Failure {
        error: ErrorType::Unknown,
        message: format!(
            "Invalid request: the EcsServiceDefinition cannot be deployed as a canary: {why}."
        ),
        left_behind: None,
    })
}

fn foreign(site: &Site, main: &str, name: &str, runs: Option<&str>) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!(
            "Service {name} in {site} has the name that the canary of {main} needs, but no canary step of this \
             service deployed what it runs ({}). It is not touched. If it is a forgotten canary, delete it by \
             hand; if it is a service of its own, rename one of the two.",
            short(runs.unwrap_or("an unknown task definition"))
        ),
        left_behind: None,
    }
}
