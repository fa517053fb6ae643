//! `AsgCanaryDeploy`: a few instances of the new version, in a group of their own beside the one that is deployed:
//! `<asgName>__Canary`.
//!
//! Its instances must stay healthy until the group's `HealthCheckGracePeriod` is over and 10 seconds longer, within the
//! step's timeout: before that AWS calls every instance healthy.
//!
//! The group is tagged, so that whoever deletes it knows that it is a canary.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::group::{self, Group, Standing};
use super::instances::{self, By, Change, Counted};
use super::manifest::Documents;
use super::removal::Removal;
use super::site::Site;
use super::spec::{Sizes, check_selection, selected};
use super::steady::{Goal, Stay, Steady};
use super::template::{self, Look, Version};
use super::{DEPLOY, FETCH, PREPARE, base, name, told, wrong};
use crate::context::StepContext;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::deployment::spec::{self, Kind, count};
use crate::step::{Progress, Step, Undo};

/// What follows the group's name.
const SUFFIX: &str = "__Canary";
/// Tag of a canary; its value is the name of the group that it is a canary of.
pub(super) const MARK: &str = "slipway-canary-of";

/// Fields of the spec.
const FIELDS: &[(&str, Kind)] = &[("asgName", Kind::Text), ("instanceSelection", Kind::Other)];

/// The step.
pub struct CanaryDeploy;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Phase {
    /// Read manifests and look what is there.
    #[default]
    Prepare,
    /// Take away what an earlier run left.
    Clear,
    /// Look at the launch template.
    Look,
    /// Make a version of it.
    Template,
    /// Create the group.
    Create,
    /// Wait until its instances are healthy.
    Settle,
    /// Note what runs.
    Note,
}

/// Progress of the step; `AsgCanaryDelete` reads it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    phase: Phase,
    documents: Option<String>,
    count: i64,
    image: Option<String>,
    template: Option<Look>,
    version: Option<Version>,
    removal: Removal,
    steady: Steady,
    /// Name of the canary's group.
    canary: Option<String>,
}

impl State {
    /// Name of the group, and the version that it uses, if they may have been made.
    pub(super) fn made(self) -> Option<(String, Option<Version>)> {
        (self.phase >= Phase::Template).then_some((self.canary?, self.version))
    }
}

#[async_trait]
impl Step for CanaryDeploy {
    fn step_type(&self) -> &'static str {
        "AsgCanaryDeploy"
    }

    fn units(&self) -> &'static [&'static str] {
        &[FETCH, PREPARE, DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let mut faults = spec::check(spec, FIELDS);
        faults.extend(check_selection(spec));
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Step("AsgCanaryDelete")
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
        if let Some(reasons) = state.steady.evidence() {
            cx.warn(DEPLOY, reasons);
        }
        if state.phase >= Phase::Create {
            cx.warn(
                DEPLOY,
                "The canary stays until AsgCanaryDelete or the next canary deletes it",
            );
            if let (Some(name), true) = (&state.canary, cx.stays_as_it_is()) {
                let site = Site::of_stage(cx).await?;
                return Err(wrong(told_left(&site, name)));
            }
        }
        Ok(())
    }
}

struct Canary {
    site: Site,
    state: State,
    documents: Documents,
    name: String,
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
            Phase::Look => self.look(cx).await?.into(),
            Phase::Template => self.template(cx).await?.into(),
            Phase::Create => self.create(cx).await?.into(),
            Phase::Settle => self.settle(cx).await?.into(),
            Phase::Note => Turn::Done(self.note(cx).await?),
        })
    }
}

impl Canary {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let mut state: State = cx.saved()?;
        let documents = Documents::once(cx, &mut state.documents).await?;
        let name = canary_of(&documents.group);
        name::check(&name)?;
        let site = Site::of_stage(cx).await?;
        let resumed = state.phase != Phase::Prepare;
        state.canary = Some(name.clone());
        Ok(Self {
            site,
            state,
            documents,
            name,
            resumed,
        })
    }

    async fn prepare(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(PREPARE);
        let (main, canary) = (self.documents.group.clone(), self.name.clone());
        let found = group::described(&self.site, &[&main, &canary]).await?;
        let of = |name: &str| found.iter().find(|group| group.name() == name);
        let whole = match of(&main) {
            Some(group) => group.sizes().desired,
            None => {
                let configuration = &self.documents.configuration;
                let desired = count(configuration, "DesiredCapacity")?;
                desired.or(count(configuration, "MinSize")?).unwrap_or(1)
            }
        };
        self.state.count = selected(cx.spec(), whole)?;
        self.state.image = match &self.documents.image {
            Some(wanted) => Some(wanted.find(cx, &self.site).await?),
            None => None,
        };
        self.state.phase = match of(&canary) {
            None => Phase::Look,
            Some(found) => {
                self.ours(found)?;
                let told =
                    format!("Canary Asg {canary} was left by an earlier run: it is deleted first");
                cx.info(PREPARE, told);
                Phase::Clear
            }
        };
        cx.info(
            PREPARE,
            format!("To roll back, canary Asg {canary} is deleted"),
        );
        Ok(None)
    }

    fn ours(&self, found: &Group) -> Result<(), Failure> {
        ours(&self.site, found, Some(&self.documents.group))
    }

    async fn clear(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let place = (&self.site, self.name.as_str());
        let (site, main) = (&self.site, self.documents.group.as_str());
        let check = |found: &Group| ours(site, found, Some(main));
        let pause = self.state.removal.go_on(cx, place, PREPARE, check).await?;
        if pause.is_none() {
            self.state.phase = Phase::Look;
        }
        Ok(pause)
    }

    async fn look(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        self.state.template = Some(template::look(&self.site, &self.name).await?);
        self.state.phase = Phase::Template;
        cx.unit_ended(PREPARE, true);
        Ok(None)
    }

    async fn template(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(DEPLOY);
        let Some(look) = self.state.template.clone() else {
            return Err(wrong(
                "The step has not looked at its launch template.".to_owned(),
            ));
        };
        base::adopt(cx, &self.site, &mut self.documents).await?;
        let from = (&self.documents, self.state.image.as_deref());
        let made = template::make(cx, &self.site, &look, from, DEPLOY).await?;
        self.state.version = Some(made);
        self.state.phase = Phase::Create;
        Ok(None)
    }

    async fn create(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let name = self.name.as_str();
        let Some(version) = self.state.version.clone() else {
            return Err(wrong(
                "The step has no launch template version to go on with.".to_owned(),
            ));
        };
        match group::describe(&self.site, name).await? {
            Standing::There(found) if self.resumed && found.uses(&version) => {}
            Standing::There(found) => return Err(foreign(&self.site, &found)),
            Standing::Leaving => return Ok(Some(Duration::from_secs(5))),
            Standing::Absent => {
                base::adopt(cx, &self.site, &mut self.documents).await?;
                let configuration = &self.documents.configuration;
                let number = |field: &str| count(configuration, field).ok().flatten();
                let desired = self.state.count;
                let sizes = Sizes {
                    min: number("MinSize").unwrap_or(0).min(desired),
                    max: number("MaxSize").unwrap_or(desired).max(desired),
                    desired,
                };
                let mut document = group::create_document(configuration, name, sizes, &version);
                mark(&mut document, &self.documents.group);
                let document = cx.secrets().reveal(document).await?;
                cx.info(DEPLOY, format!("Creating Asg {name}"));
                let doing = format!("create canary Auto Scaling group {name}");
                self.site
                    .scaling("CreateAutoScalingGroup", &document, &doing)
                    .await?;
                cx.info(DEPLOY, format!("Created Asg {name}"));
            }
        }
        self.state.phase = Phase::Settle;
        Ok(None)
    }

    async fn settle(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let goal = Goal {
            group: &self.name,
            desired: self.state.count,
            version: self.state.version.as_ref(),
            only: false,
            stay: Stay::Judged,
            unit: DEPLOY,
        };
        let pause = self.state.steady.look(cx, &self.site, goal).await?;
        if pause.is_none() {
            self.state.phase = Phase::Note;
        }
        Ok(pause)
    }

    async fn note(&mut self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let name = self.name.clone();
        let counted = Counted {
            name: name.clone(),
            version: self.state.version.clone(),
            strategy: "Canary".to_owned(),
            production: false,
            by: Some(By::this(cx)?),
        };
        let instances = instances::note(cx, &self.site, (&[counted], &[]), Change::Beside).await?;
        cx.info(DEPLOY, "Deployment Finished Successfully");
        cx.unit_ended(DEPLOY, true);
        let outcome = json!({"serverInstanceInfoList": instances});
        Ok(json!({
            "output": {
                "asg": {"autoScalingGroupName": name},
                "canaryAsg": {"autoScalingGroupName": name},
                "deploymentInfoOutcome": outcome,
            },
            "deploymentInfoOutcome": outcome,
        }))
    }
}

/// Says that a canary may still be there, and how it goes away.
fn told_left(site: &Site, name: &str) -> String {
    format!(
        "Canary Auto Scaling group {name} in {site} stays: the next AsgCanaryDeploy of this group deletes it, or `{}`.",
        deleting(site, name)
    )
}

/// The command that deletes a canary.
fn deleting(site: &Site, name: &str) -> String {
    format!(
        "aws autoscaling delete-auto-scaling-group --force-delete --region {} --auto-scaling-group-name {name}",
        site.aws.region
    )
}

/// Name of the canary of a group.
pub(super) fn canary_of(group: &str) -> String {
    format!("{group}{SUFFIX}")
}

/// Warns in the run of a canary of a group that an earlier run left, where no step of this stage deletes it.
pub(super) async fn warn_of_left(
    cx: &mut StepContext<'_>,
    site: &Site,
    (main, found): (&str, Option<&Group>),
) -> Result<(), Failure> {
    let Some(found) = found.filter(|found| ours(site, found, Some(main)).is_ok()) else {
        return Ok(());
    };
    // One of this stage may be wanted beside the deployment.
    if found.is_leaving() || cx.saved_by::<State>("AsgCanaryDeploy")?.is_some() {
        return Ok(());
    }
    let warning = format!(
        "Canary Auto Scaling group {} in {site}, with {} instances, was left by an earlier run, and no step of this stage \
         deletes it: an AsgCanaryDeploy before an AsgCanaryDelete does, or `{}`.",
        found.name(),
        found.members().len(),
        deleting(site, found.name())
    );
    cx.warn_of_run(PREPARE, &warning).await
}

/// Adds the tag of a canary.
fn mark(document: &mut Value, main: &str) {
    let tag = json!({"Key": MARK, "Value": main, "PropagateAtLaunch": false});
    match document["Tags"].as_array_mut() {
        Some(tags) => tags.push(tag),
        None => document["Tags"] = json!([tag]),
    }
}

/// Whether a group is a canary, of this group where one is named.
pub(super) fn ours(site: &Site, found: &Group, main: Option<&str>) -> Result<(), Failure> {
    match found.tag(MARK) {
        Some(of) if main.is_none_or(|main| main == of) => Ok(()),
        _ => Err(foreign(site, found)),
    }
}

fn foreign(site: &Site, found: &Group) -> Failure {
    wrong(format!(
        "Auto Scaling group {} in {site} has the name of a canary, but no canary step created it: it does not have the \
         tag `{MARK}`. It is not touched. If it is a forgotten canary, delete it by hand; if it is a group of its own, \
         rename one of the two.",
        found.name()
    ))
}
