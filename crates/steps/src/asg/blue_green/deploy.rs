//! `AsgBlueGreenDeploy`: the new version in the group that does not serve, behind the stage target group.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::before::Before;
use super::super::group::{self, Group, Standing};
use super::super::health::{Health, Targets};
use super::super::hooks::Hooks;
use super::super::instances::{self, By, Change, Counted};
use super::super::manifest::Documents;
use super::super::refresh::{Preferences, Refresh};
use super::super::scaling::{Scaling, set_metrics};
use super::super::site::Site;
use super::super::spec::{Sizes, check_instances, sizes};
use super::super::steady::{Goal, Stay, Steady};
use super::super::template::{self, Version};
use super::super::{DEPLOY, FETCH, PREPARE, base, invalid, refresh, scaling_loss, told, wrong};
use super::others;
use super::route::{self, Routes};
use super::sides::Sides;
use super::{BLUE, COLOUR, GREEN};
use crate::context::StepContext;
use crate::deployment::Replaced;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::deployment::spec::{self, Kind};
use crate::step::{Progress, Step, Undo};

/// Fields of the spec.
const FIELDS: &[(&str, Kind)] = &[
    ("asgName", Kind::Text),
    ("instances", Kind::Other),
    ("loadBalancer", Kind::Text),
    ("loadBalancers", Kind::Other),
    ("prodListener", Kind::Text),
    ("prodListenerRuleArn", Kind::Text),
    ("stageListener", Kind::Text),
    ("stageListenerRuleArn", Kind::Text),
    ("useAlreadyRunningInstances", Kind::Flag),
];

/// Nothing is served from where this is used: all instances go at once.
const ALL_AT_ONCE: Preferences = Preferences {
    min: 0,
    max: 100,
    warmup: None,
    skip_matching: true,
};

/// The step.
pub struct BlueGreenDeploy;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Read manifests and write down how things are.
    #[default]
    Prepare,
    /// Make a version of the launch template.
    Template,
    /// End a refresh that an earlier attempt left.
    Clear,
    /// Create or update the group.
    Change,
    /// Start the refresh of a group that was there.
    Refresh,
    /// Wait until it has succeeded.
    Follow,
    /// Wait until the instances are healthy.
    Settle,
    /// Wait until their targets are.
    Target,
    /// Set what scales the group.
    Scale,
    /// Note what runs.
    Note,
}

/// Progress of the step; the other steps of the strategy read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) phase: Phase,
    documents: Option<String>,
    pub(super) sides: Option<Sides>,
    sizes: Option<Sizes>,
    image: Option<String>,
    pub(super) version: Option<Version>,
    /// Fields that the update set.
    pub(super) sent: Vec<String>,
    refresh: Refresh,
    steady: Steady,
    health: Health,
}

impl State {
    /// What there is to go on with or to undo, if something may have been changed.
    pub(super) fn changed(self) -> Option<(Sides, Self)> {
        if self.phase < Phase::Template {
            return None;
        }
        Some((self.sides.clone()?, self))
    }

    /// The same once the new version may serve.
    pub(super) fn deployed(self) -> Option<(Sides, Self)> {
        match self.phase {
            Phase::Note => self.changed(),
            _ => None,
        }
    }
}

#[async_trait]
impl Step for BlueGreenDeploy {
    fn step_type(&self) -> &'static str {
        "AsgBlueGreenDeploy"
    }

    fn units(&self) -> &'static [&'static str] {
        &[FETCH, PREPARE, DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let mut faults = spec::check(spec, FIELDS);
        faults.extend(check_instances(spec));
        faults.extend(route::check(spec));
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Step("AsgBlueGreenRollback")
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
        let reasons = state.refresh.evidence().or_else(|| state.steady.evidence());
        if let Some(reasons) = reasons {
            cx.warn(DEPLOY, reasons);
        }
        if state.phase >= Phase::Change {
            cx.warn(
                DEPLOY,
                "The new version serves nothing; it stays until a rollback step takes it back",
            );
        }
        Ok(())
    }
}

/// Refuses to replace the instances of a group that gets requests of production by a rule that no step moves.
async fn check_others(cx: &mut StepContext<'_>, site: &Site, sides: &Sides) -> Result<(), Failure> {
    let works = |before: &Before| before.group.sizes().desired > 0;
    if sides.old.is_none() || !sides.new_before.as_ref().is_some_and(works) {
        return Ok(());
    }
    let groups: Vec<&str> = sides
        .routes
        .iter()
        .map(|one| one.stage_group.as_str())
        .collect();
    let name = &sides.new;
    for other in others::find(site, &sides.routes).await? {
        if !groups.iter().any(|group| other.reaches(group)) {
            continue;
        }
        let sends = other.sends();
        if !other.of_testers {
            return Err(invalid(format!(
                "all instances of Auto Scaling group {name} in {site} would be replaced at once, and it serves: {sends}, its \
                 target group, and no step moves them. Let that rule forward to where the version is that serves, or to \
                 target groups of its own."
            )));
        }
        let warning =
            format!("All instances of Asg {name} are replaced now, and {sends}, its target group");
        cx.warn_of_run(PREPARE, &warning).await?;
    }
    Ok(())
}

struct Deployment {
    site: Site,
    state: State,
    documents: Documents,
    resumed: bool,
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
            Phase::Template => self.template(cx).await?.into(),
            Phase::Clear => self.clear(cx).await?.into(),
            Phase::Change => self.change(cx).await?.into(),
            Phase::Refresh => self.refresh(cx).await?.into(),
            Phase::Follow => self.follow(cx).await?.into(),
            Phase::Settle => self.settle(cx).await?.into(),
            Phase::Target => self.target(cx).await?.into(),
            Phase::Scale => self.scale(cx).await?.into(),
            Phase::Note => Turn::Done(self.note(cx).await?),
        })
    }
}

impl Deployment {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let mut state: State = cx.saved()?;
        let mut documents = Documents::once(cx, &mut state.documents).await?;
        // The deployment decides where requests come from.
        for field in ["TargetGroupARNs", "TrafficSources", "LoadBalancerNames"] {
            if let Some(fields) = documents.configuration.as_object_mut() {
                fields.shift_remove(field);
            }
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

    fn sides(&self) -> Result<&Sides, Failure> {
        let sides = self.state.sides.as_ref();
        sides.ok_or_else(|| wrong("The step has no rollback data to go on with.".to_owned()))
    }

    fn version(&self) -> Result<&Version, Failure> {
        let version = self.state.version.as_ref();
        version.ok_or_else(|| {
            wrong("The step has no launch template version to go on with.".to_owned())
        })
    }

    fn desired(&self) -> i64 {
        self.state.sizes.map_or(0, |sizes| sizes.desired)
    }

    async fn prepare(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(PREPARE);
        let earlier: Option<State> = cx.saved_by_first_attempt()?;
        let sides = match earlier.and_then(|state| state.sides) {
            // What an earlier attempt of this step found is what was there before this run changed anything.
            Some(sides) => Sides {
                template: template::look(&self.site, &sides.new).await?,
                ..sides
            },
            None => {
                let mut routes = Vec::new();
                for entry in route::entries(cx.spec()) {
                    routes.push(Routes::find(cx, &self.site, entry).await?);
                }
                let mut sides = Sides::look(cx, &self.site, &self.documents.group, routes).await?;
                if let Some(before) = &mut sides.new_before {
                    let configuration = &self.documents.configuration;
                    before.look_at_hooks(&self.site, configuration).await?;
                }
                check_others(cx, &self.site, &sides).await?;
                if let Some(old) = &sides.old {
                    let groups = (old, sides.new.as_str());
                    scaling_loss::warn(cx, &self.site, groups, &self.documents).await?;
                }
                sides
            }
        };
        let running = sides.old.as_ref().map(|old| &old.group);
        self.state.sizes = Some(sizes(cx.spec(), &self.documents.configuration, running)?);
        self.state.image = match &self.documents.image {
            Some(wanted) => Some(wanted.find(cx, &self.site).await?),
            None => None,
        };
        self.state.sides = Some(sides);
        self.state.phase = Phase::Template;
        cx.info(PREPARE, "Prepared rollback data");
        cx.unit_ended(PREPARE, true);
        Ok(None)
    }

    async fn template(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(DEPLOY);
        if self.sides()?.new_before.is_none() {
            base::adopt(cx, &self.site, &mut self.documents).await?;
        }
        let look = self.sides()?.template.clone();
        let from = (&self.documents, self.state.image.as_deref());
        let made = template::make(cx, &self.site, &look, from, DEPLOY).await?;
        self.state.version = Some(made);
        self.state.phase = match self.sides()?.new_before {
            Some(_) => Phase::Clear,
            None => Phase::Change,
        };
        Ok(None)
    }

    async fn clear(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let name = self.sides()?.new.clone();
        let pause = refresh::clear(cx, (&self.site, &name), true, DEPLOY).await?;
        if pause.is_none() {
            self.state.phase = Phase::Change;
        }
        Ok(pause)
    }

    async fn change(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let sides = self.sides()?.clone();
        let (name, version) = (sides.new.as_str(), self.version()?.clone());
        let sizes = self
            .state
            .sizes
            .ok_or_else(|| wrong("The step has no sizes.".to_owned()))?;
        let found = match group::describe(&self.site, name).await? {
            Standing::There(found) => found,
            Standing::Absent if sides.new_before.is_none() => {
                self.create(cx, &sides, (sizes, &version)).await?;
                self.state.phase = Phase::Settle;
                return Ok(None);
            }
            Standing::Absent | Standing::Leaving => return Err(self.drifted(name, "was deleted")),
        };
        let created_by_us = found.uses(&version);
        if sides.new_before.is_none() && !created_by_us && cx.attempt() == 0 {
            return Err(self.drifted(name, "was created"));
        }
        if !(self.resumed && created_by_us) {
            self.update(cx, &found, (sizes, &version)).await?;
        }
        // What is created is complete; only an update leaves something to be done.
        group::set_target_groups(&self.site, &found, &sides.new_groups(), true).await?;
        let tag = tag(name, self.colour(&sides));
        group::put_tags(&self.site, name, &[tag]).await?;
        self.state.phase = match sides.new_before {
            None if cx.attempt() == 0 => Phase::Settle,
            _ => {
                self.state.refresh.about_to(&self.site, name).await?;
                Phase::Refresh
            }
        };
        Ok(None)
    }

    fn colour(&self, sides: &Sides) -> &'static str {
        match sides.old {
            Some(_) => GREEN,
            None => BLUE,
        }
    }

    async fn create(
        &mut self,
        cx: &mut StepContext<'_>,
        sides: &Sides,
        (sizes, version): (Sizes, &Version),
    ) -> Result<(), Failure> {
        base::adopt(cx, &self.site, &mut self.documents).await?;
        let name = sides.new.as_str();
        let mut document =
            group::create_document(&self.documents.configuration, name, sizes, version);
        document["TargetGroupARNs"] = json!(sides.new_groups());
        let colour = json!({"Key": COLOUR, "Value": self.colour(sides), "PropagateAtLaunch": true});
        match document["Tags"].as_array_mut() {
            Some(tags) => {
                tags.retain(|tag| tag["Key"] != COLOUR);
                tags.push(colour);
            }
            None => document["Tags"] = json!([colour]),
        }
        let document = cx.secrets().reveal(document).await?;
        cx.info(DEPLOY, format!("Creating Asg {name}"));
        let doing = format!("create Auto Scaling group {name}");
        self.site
            .scaling("CreateAutoScalingGroup", &document, &doing)
            .await?;
        cx.info(DEPLOY, format!("Created Asg {name}"));
        Ok(())
    }

    async fn update(
        &mut self,
        cx: &mut StepContext<'_>,
        found: &Group,
        (sizes, version): (Sizes, &Version),
    ) -> Result<(), Failure> {
        let name = found.name();
        let document = group::update_document(&self.documents.configuration, name, sizes, version);
        let fields = document.as_object().into_iter().flatten();
        self.state.sent = fields.map(|(field, _)| field.clone()).collect();
        cx.save(&self.state).await?;
        // Before the instances that they are to hold.
        if let Some(hooks) = Hooks::of(&self.documents.configuration) {
            hooks.replace(cx, (&self.site, name), DEPLOY).await?;
        }
        let document = cx.secrets().reveal(document).await?;
        cx.info(DEPLOY, format!("Updating Asg {name}"));
        let doing = format!("update Auto Scaling group {name}");
        self.site
            .scaling("UpdateAutoScalingGroup", &document, &doing)
            .await?;
        cx.info(DEPLOY, format!("Updated Asg {name} successfully"));
        Ok(())
    }

    fn drifted(&self, name: &str, what: &str) -> Failure {
        wrong(format!(
            "Auto Scaling group {name} in {} {what} by somebody or something else while this step was deploying it. \
             Run the pipeline again.",
            self.site
        ))
    }

    async fn refresh(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let name = self.sides()?.new.clone();
        let how = (self.resumed && self.state.refresh.is_about_to(), DEPLOY);
        let place = (&self.site, name.as_str());
        let preferences = Preferences {
            warmup: Some(0),
            ..ALL_AT_ONCE
        };
        self.state
            .refresh
            .start(cx, place, preferences, how)
            .await?;
        self.state.phase = Phase::Follow;
        Ok(None)
    }

    async fn follow(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let name = self.sides()?.new.clone();
        let goal = (self.desired(), None);
        let place = (&self.site, name.as_str());
        let pause = self.state.refresh.look(cx, place, goal, DEPLOY).await?;
        if pause.is_none() {
            self.state.phase = Phase::Settle;
        }
        Ok(pause)
    }

    async fn settle(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (name, version) = (self.sides()?.new.clone(), self.version()?.clone());
        let goal = Goal {
            group: &name,
            desired: self.desired(),
            version: Some(&version),
            only: true,
            stay: Stay::Briefly,
            unit: DEPLOY,
        };
        let pause = self.state.steady.look(cx, &self.site, goal).await?;
        if pause.is_none() {
            self.state.phase = Phase::Target;
        }
        Ok(pause)
    }

    async fn target(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (name, groups) = (self.sides()?.new.clone(), self.sides()?.new_groups());
        let targets = Targets {
            groups: &groups,
            unused: false,
        };
        let goal = (&targets, self.desired());
        let place = (&self.site, name.as_str());
        let pause = self.state.health.look(cx, place, goal, DEPLOY).await?;
        if pause.is_none() {
            self.state.phase = Phase::Scale;
        }
        Ok(pause)
    }

    async fn scale(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let name = self.sides()?.new.clone();
        let place = (&self.site, name.as_str());
        let has = Scaling::describe(place.0, place.1).await?;
        let wanted = Scaling::of_manifests(&self.documents);
        wanted.replace(cx, place, &has, DEPLOY).await?;
        set_metrics(cx, place, &self.documents, DEPLOY).await?;
        self.state.phase = Phase::Note;
        Ok(None)
    }

    async fn note(&mut self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let sides = self.sides()?.clone();
        let by = match sides.old {
            Some(_) => By::this_beside(cx)?,
            None => By::this(cx)?,
        };
        let mine = Counted {
            name: sides.new.clone(),
            version: self.state.version.clone(),
            strategy: "BlueGreen".to_owned(),
            production: sides.old.is_none(),
            by: Some(by),
        };
        let change = match sides.old {
            // Nothing serves another version yet.
            Some(_) => Change::Beside,
            None => Change::Deployed(None),
        };
        let instances = instances::note(cx, &self.site, (&[mine], &[]), change).await?;
        cx.info(DEPLOY, "Deployment Finished Successfully");
        cx.unit_ended(DEPLOY, true);
        let outcome = json!({"serverInstanceInfoList": instances});
        let named = |name: &str| json!({"autoScalingGroupName": name});
        let (prod, stage) = match sides.old_name() {
            Some(old) => (named(old), named(&sides.new)),
            None => (named(&sides.new), Value::Null),
        };
        Ok(json!({
            "output": {
                "asg": named(&sides.new),
                "prodAsg": prod,
                "stageAsg": stage,
                "deploymentInfoOutcome": outcome,
            },
            "deploymentInfoOutcome": outcome,
        }))
    }
}

/// The tag that tells whether a group serves.
pub(super) fn tag(name: &str, colour: &str) -> Value {
    json!({
        "ResourceId": name, "ResourceType": "auto-scaling-group",
        "Key": COLOUR, "Value": colour, "PropagateAtLaunch": true,
    })
}

/// What a deployment replaced.
pub(super) fn replaced(sides: &Sides) -> Change {
    let before = sides.old.as_ref();
    Change::Deployed(before.map(|_| Replaced::record(sides.replaced.as_ref())))
}
