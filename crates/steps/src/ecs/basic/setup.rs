//! `EcsServiceSetup`: a new version of the service, without tasks yet. The version before the one that works now goes, as
//! older groups do in `AsgSetup`: a rollback leads to the one that works now.

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_ecs::types::Service;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::beside::{self, Beside, Role};
use super::super::cluster;
use super::super::manifest::Documents;
use super::super::removal::{self, Removal};
use super::super::scaling::Scaling;
use super::super::scaling_loss::{self, Succession};
use super::super::service::{
    Described, Standing, create, create_document, describe, update, update_document,
};
use super::super::site::Site;
use super::super::task_definition::{Intent, Registered, intended, registered, short};
use super::super::{DEPLOY, FETCH, PREPARE, divergence, served, told};
use super::versions::{self, Version};
use super::{Handover, Old, SetUp, wrong};
use crate::context::StepContext;
use crate::deployment::Replaced;
use crate::deployment::invalid;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::deployment::spec::{self, Kind};
use crate::deployment::token;
use crate::step::{Progress, Step, Undo};

/// Longest name of a service (ECS API reference, `CreateService`).
const LONGEST_NAME: usize = 255;

/// Words of `resizeStrategy`; the first is Harness's default.
const STRATEGIES: &[&str] = &["ResizeNewFirst", "DownsizeOldFirst"];

/// Fields of the spec.
const FIELDS: &[(&str, Kind)] = &[
    ("resizeStrategy", Kind::Choice(STRATEGIES)),
    ("sameAsAlreadyRunningInstances", Kind::Flag),
];

/// The step.
pub struct ServiceSetup;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Phase {
    /// Read manifests and write down how things are.
    #[default]
    Prepare,
    /// Delete the version that nobody goes back to any more.
    Clear,
    /// Register the task definition.
    Register,
    /// Create the service.
    Create,
    /// Nothing.
    Done,
}

/// Progress of the step; the other steps of the strategy read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    phase: Phase,
    documents: Option<String>,
    handover: Option<Handover>,
    intent: Option<Intent>,
    task_definition: Option<Registered>,
    /// What was replaced by what works now, without tasks.
    #[serde(default)]
    unused: Vec<Beside>,
    #[serde(default)]
    removal: Removal,
}

impl State {
    /// What there is to go on with or to undo, if the service may have been created.
    pub(super) fn created(self) -> Option<SetUp> {
        if self.phase < Phase::Create {
            return None;
        }
        Some(SetUp {
            handover: self.handover?,
            task_definition: self.task_definition?,
            documents: self.documents?,
        })
    }
}

#[async_trait]
impl Step for ServiceSetup {
    fn step_type(&self) -> &'static str {
        "EcsServiceSetup"
    }

    fn units(&self) -> &'static [&'static str] {
        &[FETCH, PREPARE, DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        spec::check(spec, FIELDS)
    }

    fn undo(&self) -> Undo {
        Undo::Step("EcsBasicRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let result = match Setup::resume(cx).await {
            Ok(setup) => walk(setup, cx).await,
            Err(failure) => Err(failure),
        };
        told(cx, self.units(), result)
    }
}

/// One call's worth of the step.
struct Setup {
    site: Site,
    state: State,
    documents: Documents,
    /// Whether the phase was begun by an earlier call, which may have been cut off after its effect.
    resumed: bool,
}

#[async_trait]
impl Phases for Setup {
    type State = State;

    fn state(&self) -> &State {
        &self.state
    }

    fn saved(&mut self) {
        self.resumed = false;
    }

    async fn turn(&mut self, cx: &mut StepContext<'_>) -> Result<Turn, Failure> {
        Ok(match self.state.phase {
            Phase::Prepare => self.prepare(cx).await.map(|()| Turn::On)?,
            Phase::Clear => self.clear(cx).await?.into(),
            Phase::Register => self.register(cx).await.map(|()| Turn::On)?,
            Phase::Create => self.create(cx).await?.into(),
            Phase::Done => Turn::Done(self.ended(cx)),
        })
    }
}

impl Setup {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let mut state: State = cx.saved()?;
        let documents = Documents::once(cx, &mut state.documents).await?;
        if documents.service["schedulingStrategy"] == "DAEMON" {
            return Err(invalid(
                "a service with `schedulingStrategy: DAEMON` has no number of tasks that could be moved; use \
                 EcsRollingDeploy."
                    .to_owned(),
            ));
        }
        let site = Site::of_stage(cx).await?;
        let resumed = state.phase != Phase::Prepare;
        Ok(Self {
            site,
            state,
            documents,
            resumed,
        })
    }

    async fn prepare(&mut self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        cx.unit_started(PREPARE);
        let earlier: Option<State> = cx.saved_by_first_attempt()?;
        // What an earlier attempt found is how things were before this run changed anything.
        let handover = match earlier.and_then(|state| state.handover) {
            Some(handover) => handover,
            None => {
                beside::warn_of_canary(cx, &self.site, PREPARE).await?;
                let handover = self.handover(cx).await?;
                if let Some(Old { name, scaling, .. }) = &handover.old {
                    let (old, new, has) = (name.as_str(), handover.new.as_str(), scaling);
                    let services = Succession { old, new, has };
                    scaling_loss::warn(cx, &self.site, services, &self.documents).await?;
                }
                handover
            }
        };
        self.state.intent = intended(cx, &self.site, &self.documents.task_definition).await?;
        self.state.handover = Some(handover);
        self.state.phase = Phase::Clear;
        cx.info(PREPARE, "Prepared rollback data");
        cx.unit_ended(PREPARE, true);
        Ok(())
    }

    /// Looks at the versions that are there.
    async fn handover(&mut self, cx: &mut StepContext<'_>) -> Result<Handover, Failure> {
        let base = self.documents.service_name()?;
        let versions = versions::list(&self.site, base).await?;
        let newest = versions.last().map_or(0, |version| version.number);
        let new = newest
            .checked_add(1)
            .map(|number| versions::name(base, number))
            .filter(|name| name.chars().count() <= LONGEST_NAME);
        let new = new.ok_or_else(|| {
            invalid(format!(
                "the service {base} cannot get another version: with its number the name has more than \
                 {LONGEST_NAME} characters, or there are no numbers left."
            ))
        })?;
        let old = self.old(cx, base, &versions).await?;
        let mut names = vec![base, new.as_str()];
        names.extend(old.iter().map(|old| old.name.as_str()));
        cluster::check_owner(cx, &self.site, &names).await?;
        let told = match &old {
            None => {
                format!("There is no version of {base} before {new}: this is its first deployment")
            }
            Some(old) => format!(
                "{new} takes over from {}, which runs {} with {}/{} tasks",
                old.name,
                short(&old.task_definition),
                old.running,
                old.desired
            ),
        };
        cx.info(PREPARE, told);
        self.state.unused = self.unused(cx, old.as_ref(), &versions).await?;
        let strategy = spec::choice(cx.spec(), "resizeStrategy", STRATEGIES)?;
        Ok(Handover {
            full: self.full(cx, old.as_ref())?,
            new_first: strategy != STRATEGIES.get(1).copied(),
            new,
            old,
            replaced: Replaced::read(cx).await?,
        })
    }

    /// The count of the new service when it is upgraded whole.
    fn full(&self, cx: &StepContext<'_>, old: Option<&Old>) -> Result<i64, Failure> {
        let same = spec::flag(cx.spec(), "sameAsAlreadyRunningInstances")?;
        let of_manifest = self.documents.service["desiredCount"].as_i64();
        match (old.filter(|old| same && old.running > 0), of_manifest) {
            (Some(old), _) => Ok(old.running),
            (None, Some(count)) => Ok(count),
            (None, None) => Err(invalid(
                "the EcsServiceDefinition manifest has no `desiredCount`, of which EcsUpgradeContainer takes its \
                 percentages."
                    .to_owned(),
            )),
        }
    }

    /// The version that the one before this deployment had replaced. Only what is noted as that is Slipway's: a service
    /// that merely has such a name is somebody's.
    async fn unused(
        &self,
        cx: &StepContext<'_>,
        old: Option<&Old>,
        versions: &[Version],
    ) -> Result<Vec<Beside>, Failure> {
        let mut noted = beside::noted(cx, &self.site).await?;
        noted.retain(|one| {
            let replaced =
                one.role == Role::Before && old.is_some_and(|old| old.name != one.service_name);
            let idle = |version: &Version| {
                version.name() == one.service_name
                    && version.is_idle()
                    && one.runs(version.service.task_definition())
            };
            replaced && versions.iter().any(idle)
        });
        Ok(noted)
    }

    async fn clear(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        while let Some(unused) = self.state.unused.first().cloned() {
            let (site, name) = (&self.site, unused.service_name.as_str());
            let ours = |found: &Described| {
                let service = &found.service;
                let idle = service.desired_count() == 0 && service.running_count() == 0;
                match idle && unused.runs(service.task_definition()) {
                    true => Ok(()),
                    false => Err(wrong(format!(
                        "Service {name} in {site} was changed while it was about to be deleted as unused. It is not \
                         touched. Run the pipeline again."
                    ))),
                }
            };
            let removal = &mut self.state.removal;
            if !removal.go_on(cx, (site, name), PREPARE, ours).await? {
                return Ok(Some(removal::PAUSE));
            }
            beside::forget(cx, site, name).await?;
            self.state.removal = Removal::default();
            self.state.unused.remove(0);
        }
        self.state.phase = Phase::Register;
        Ok(None)
    }

    /// What works now: the newest version with tasks, or the service without a number that an earlier strategy
    /// of the same Slipway service deployed. A version whose tasks never came up, as an aborted deployment leaves it, is
    /// passed over where another one serves.
    async fn old(
        &self,
        cx: &mut StepContext<'_>,
        base: &str,
        versions: &[Version],
    ) -> Result<Option<Old>, Failure> {
        let mut working: Vec<&Version> = versions.iter().filter(|one| one.works()).collect();
        let service = match working.pop() {
            Some(newest) => {
                let instead = self.instead(cx, (base, newest), &working).await?;
                let down = instead.as_ref().map(|_| newest);
                let service = instead.unwrap_or_else(|| newest.service.clone());
                working.retain(|one| Some(one.name()) != service.service_name());
                let warnings = [
                    down.map(|down| passed_over(down, &service)),
                    beside_the_new(&working),
                ];
                let warnings: Vec<String> = warnings.into_iter().flatten().collect();
                if !warnings.is_empty() {
                    cx.warn_of_run(PREPARE, &warnings.join(" ")).await?;
                }
                service
            }
            None => match self.unnumbered(cx, base).await? {
                Some(service) => service,
                None => return Ok(None),
            },
        };
        let name = service.service_name().unwrap_or_default().to_owned();
        let asked = service.task_definition().unwrap_or_default();
        let serving = self.serving(cx, (&name, &service)).await?;
        Ok(Some(Old {
            scaling: Scaling::describe(&self.site, &name).await?,
            name,
            passed_over: serving.as_ref().map(|_| asked.to_owned()),
            task_definition: serving.unwrap_or_else(|| asked.to_owned()),
            desired: i64::from(service.desired_count()),
            running: i64::from(service.running_count()),
        }))
    }

    /// The task definition that a service serves with, where that is not the one that it was told last.
    async fn serving(
        &self,
        cx: &mut StepContext<'_>,
        (name, service): (&str, &Service),
    ) -> Result<Option<String>, Failure> {
        // Only what is noted as deployed is asked for, and only where it matters.
        if served::instead(service, None).is_none() {
            return Ok(None);
        }
        let noted = divergence::noted(cx, &self.site, name).await?;
        let noted = noted.as_ref().map(|noted| noted.runs.as_str());
        let Some((asked, serving)) = served::instead(service, noted) else {
            return Ok(None);
        };
        let (asked, serves) = (asked.task_definition(), serving.task_definition());
        let serves = serves.unwrap_or_default();
        let warning = format!(
            "Service {name} in {} was told to run {}, which has not come up: {} serves, with {} tasks. The new version takes \
             over from it; a rollback brings back {}.",
            self.site,
            short(asked.unwrap_or_default()),
            short(serves),
            serving.running_count(),
            short(serves)
        );
        cx.warn_of_run(PREPARE, &warning).await?;
        Ok(Some(serves.to_owned()))
    }

    /// What serves in the place of the newest version, where that one never came up.
    async fn instead(
        &self,
        cx: &mut StepContext<'_>,
        (base, newest): (&str, &Version),
        others: &[&Version],
    ) -> Result<Option<Service>, Failure> {
        // Only what is noted as deployed is asked for, and only where it matters.
        if !served::is_down(&newest.service, false) {
            return Ok(None);
        }
        let record = beside::record(cx, &self.site).await?;
        let noted = record.is_some_and(|record| record.target["serviceName"] == newest.name());
        if !served::is_down(&newest.service, noted) {
            return Ok(None);
        }
        let serves = |service: &Service| service.running_count() > 0;
        let mut others = others.iter().rev().map(|other| &other.service);
        if let Some(other) = others.find(|other| serves(other)) {
            return Ok(Some(other.clone()));
        }
        Ok(self.unnumbered(cx, base).await?.filter(serves))
    }

    async fn unnumbered(
        &self,
        cx: &mut StepContext<'_>,
        base: &str,
    ) -> Result<Option<Service>, Failure> {
        let Standing::Active(found) = describe(&self.site, base).await? else {
            return Ok(None);
        };
        let record = beside::record(cx, &self.site).await?;
        if record.is_some_and(|record| record.target["serviceName"] == base) {
            return Ok(Some(found.service));
        }
        cx.warn(
            PREPARE,
            format!("Service {base} is no version that this service deployed: it is left alone"),
        );
        Ok(None)
    }

    async fn register(&mut self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        cx.unit_started(DEPLOY);
        let source = &self.documents.task_definition;
        let from = (self.state.intent.as_ref(), self.resumed);
        let registered = registered(cx, &self.site, source, from, DEPLOY).await?;
        self.state.task_definition = Some(registered);
        self.state.phase = Phase::Create;
        Ok(())
    }

    fn name(&self) -> &str {
        self.state.handover.as_ref().map_or("", |to| &to.new)
    }

    fn task_definition(&self) -> &str {
        let registered = self.state.task_definition.as_ref();
        registered.map_or("", |registered| &registered.arn)
    }

    async fn create(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (site, name, arn) = (&self.site, self.name(), self.task_definition());
        match describe(site, name).await? {
            Standing::Draining => return Ok(Some(removal::PAUSE)),
            Standing::Active(found)
                if found.service.task_definition() == Some(arn) && self.resumed => {}
            // An earlier attempt of this step created it, for another revision.
            Standing::Active(found) if cx.attempt() > 0 && found.service.desired_count() == 0 => {
                let definition = cx.secrets().reveal(self.documents.service.clone()).await?;
                let (mut document, _) = update_document(site, &definition, arn);
                document["service"] = json!(name);
                document["desiredCount"] = json!(0);
                update(site, &document).await?;
            }
            Standing::Active(found) => {
                return Err(wrong(format!(
                    "Service {name} in {site} appeared while this step was about to create it; it runs {}. It is \
                     not touched. Run the pipeline again.",
                    short(
                        found
                            .service
                            .task_definition()
                            .unwrap_or("an unknown task definition")
                    )
                )));
            }
            Standing::Absent => {
                let definition = cx.secrets().reveal(self.documents.service.clone()).await?;
                let mut document = create_document(site, &definition, arn, &token(cx));
                document["serviceName"] = json!(name);
                document["desiredCount"] = json!(0);
                cx.info(
                    DEPLOY,
                    format!(
                        "Creating Service {name} with task definition {arn} and desired count 0"
                    ),
                );
                let service = create(site, &document).await?.service;
                let made = service.service_arn().unwrap_or_default();
                cx.info(DEPLOY, format!("Created Service {name} with Arn {made}"));
            }
        }
        self.state.phase = Phase::Done;
        Ok(None)
    }

    fn ended(&self, cx: &mut StepContext<'_>) -> Value {
        cx.unit_ended(DEPLOY, true);
        let old = self.state.handover.as_ref().and_then(|to| to.old.as_ref());
        json!({"output": {
            "serviceName": self.name(),
            "oldServiceName": old.map(|old| &old.name),
            "taskDefinitionArn": self.task_definition(),
        }})
    }
}

/// Versions that have tasks beside the one that is replaced, as a sentence.
fn beside_the_new(others: &[&Version]) -> Option<String> {
    if others.is_empty() {
        return None;
    }
    let names: Vec<_> = others.iter().map(|other| other.name()).collect();
    Some(format!(
        "Earlier versions that have tasks too go on serving beside the new one, and nothing takes them away: {}. Set their \
         desired count to 0, or delete them.",
        names.join(", ")
    ))
}

/// The newest version never came up, and another one serves.
fn passed_over(newest: &Version, serving: &Service) -> String {
    let serves = serving.service_name().unwrap_or_default();
    format!(
        "Service {newest} was deployed last and has not come up ({} of {} tasks run): {serves} serves, with {} tasks. The \
         new version takes over from {serves}, and a rollback brings {serves} back. Nothing takes {newest} away: set its \
         desired count to 0, or delete it.",
        newest.service.running_count(),
        newest.service.desired_count(),
        serving.running_count(),
        newest = newest.name(),
    )
}
