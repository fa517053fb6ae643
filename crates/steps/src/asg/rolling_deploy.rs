//! `AsgRollingDeploy`: a new version of a group's launch template, its old instances replaced by an instance refresh.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::before::Before;
use super::group::{self, Group, Standing};
use super::hooks::Hooks;
use super::instances::{self, By, Change, Counted};
use super::manifest::Documents;
use super::refresh::{self, Preferences, Refresh};
use super::scaling::{Scaling, set_metrics};
use super::site::Site;
use super::spec::{Sizes, check_instances};
use super::steady::{Goal, Stay, Steady};
use super::template::{self, Look, Version};
use super::{DEPLOY, FETCH, PREPARE, base, invalid, told, wrong};
use crate::context::StepContext;
use crate::deployment::Replaced;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::deployment::spec::{self, Kind, text};
use crate::step::{Progress, Step, Undo};

/// Words of `handleInProgressInstanceRefresh`. Harness's schema takes any text and its documentation none.
pub(super) const IN_PROGRESS: &[&str] = &["Fail", "Cancel", "Wait"];

/// Fields of the spec.
const FIELDS: &[(&str, Kind)] = &[
    ("asgName", Kind::Text),
    ("instances", Kind::Other),
    ("instanceWarmup", Kind::Count),
    ("minimumHealthyPercentage", Kind::Count),
    ("maximumHealthyPercentage", Kind::Count),
    ("skipMatching", Kind::Flag),
    ("skipInstanceTermination", Kind::Flag),
    ("useAlreadyRunningInstances", Kind::Flag),
    ("handleInProgressInstanceRefresh", Kind::Choice(IN_PROGRESS)),
];

/// Healthy percentages where the step says nothing (Harness's ASG tutorial).
const HEALTHY: (i64, i64) = (90, 110);

/// The step.
pub struct RollingDeploy;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Read manifests and write down how to undo.
    #[default]
    Prepare,
    /// End or wait for a refresh that is in progress.
    Clear,
    /// Make a version of the launch template.
    Template,
    /// Create or update the group.
    Change,
    /// Wait until its instances are healthy.
    Settle,
    /// Set what scales it.
    Scale,
    /// Start the refresh.
    Refresh,
    /// Wait until it has succeeded.
    Follow,
    /// Note what runs.
    Note,
}

/// Rollback data of a rolling deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RollbackData {
    pub(super) group: String,
    /// The group as it was; `None` when this is the first deployment.
    pub(super) before: Option<Before>,
    /// The launch template as it was.
    pub(super) template: Look,
    /// Who had deployed what was there, where that is known.
    pub(super) replaced: Option<Replaced>,
}

/// Progress of the step; the rollback step reads it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// Key of the stored [`Documents`].
    documents: Option<String>,
    pub(super) rollback: Option<RollbackData>,
    pub(super) sizes: Option<Sizes>,
    pub(super) image: Option<String>,
    pub(super) version: Option<Version>,
    /// Whether what serves is told only when no refresh is in progress any more.
    #[serde(default)]
    pub(super) looks_again: bool,
    /// Fields that the update set.
    pub(super) sent: Vec<String>,
    steady: Steady,
    pub(super) refresh: Refresh,
}

#[async_trait]
impl Step for RollingDeploy {
    fn step_type(&self) -> &'static str {
        "AsgRollingDeploy"
    }

    fn units(&self) -> &'static [&'static str] {
        &[FETCH, PREPARE, DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let mut faults = spec::check(spec, FIELDS);
        faults.extend(check_instances(spec));
        if faults.is_empty()
            && let Err(failure) = healthy(spec)
        {
            faults.extend(
                failure
                    .message
                    .strip_prefix("Invalid request: ")
                    .map(str::to_owned),
            );
        }
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Step("AsgRollingRollback")
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
                "AWS goes on with what it was told until a rollback step or another deployment ends it",
            );
        }
        match goes_on(cx, &state) {
            Some(left) => {
                cx.warn(DEPLOY, &left);
                Err(wrong(left))
            }
            None => Ok(()),
        }
    }
}

/// The refresh of a deployment that nobody rolls back.
fn goes_on(cx: &StepContext<'_>, state: &State) -> Option<String> {
    let follows = state.phase == Phase::Follow && cx.stays_as_it_is();
    let (data, version) = (state.rollback.as_ref()?, state.version.as_ref()?);
    let id = state.refresh.id.as_ref().filter(|_| follows)?;
    Some(format!(
        "Instance refresh {id} of Auto Scaling group {} goes on by itself, to {}. Run the pipeline again with \
         `handleInProgressInstanceRefresh: Cancel`, or end it with `{}`.",
        data.group,
        version.told(),
        refresh::cancelling(&data.group)
    ))
}

/// The healthy percentages of a refresh, where they are known: AWS allows no more than 100 between them.
pub(super) fn healthy(spec: &Value) -> Result<(i64, i64), Failure> {
    let min = spec::count(spec, "minimumHealthyPercentage").ok().flatten();
    let max = spec::count(spec, "maximumHealthyPercentage").ok().flatten();
    let least = min.unwrap_or_else(|| max.map_or(HEALTHY.0, |max| HEALTHY.0.max(max - 100)));
    let most = max.unwrap_or_else(|| HEALTHY.1.min(least + 100));
    if !(0..=100).contains(&least) || !(100..=200).contains(&most) {
        return Err(invalid(
            "`minimumHealthyPercentage` must be from 0 to 100 and `maximumHealthyPercentage` from 100 to 200",
        ));
    }
    if most - least > 100 {
        return Err(invalid(format!(
            "between `minimumHealthyPercentage` ({least}) and `maximumHealthyPercentage` ({most}) there must be 100 \
             at most"
        )));
    }
    Ok((least, most))
}

/// One call's worth of the deployment.
pub(super) struct Deployment {
    pub(super) site: Site,
    pub(super) state: State,
    pub(super) documents: Documents,
    /// Whether the phase was begun by an earlier call, which may have been cut off after its effect.
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
            Phase::Clear => self.clear(cx).await?.into(),
            Phase::Template => self.template(cx).await?.into(),
            Phase::Change => self.change(cx).await?.into(),
            Phase::Settle => self.settle(cx).await?.into(),
            Phase::Scale => self.scale(cx).await?.into(),
            Phase::Refresh => self.refresh(cx).await?.into(),
            Phase::Follow => self.follow(cx).await?.into(),
            Phase::Note => Turn::Done(self.note(cx).await?),
        })
    }
}

impl Deployment {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let mut state: State = cx.saved()?;
        let documents = Documents::once(cx, &mut state.documents).await?;
        let site = Site::of_stage(cx).await?;
        let resumed = state.phase != Phase::Prepare;
        Ok(Self {
            site,
            state,
            documents,
            resumed,
        })
    }

    pub(super) fn rollback(&self) -> Result<&RollbackData, Failure> {
        let data = self.state.rollback.as_ref();
        data.ok_or_else(|| wrong("The step has no rollback data to go on with.".to_owned()))
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

    fn first(&self) -> bool {
        let data = self.state.rollback.as_ref();
        data.is_none_or(|data| data.before.is_none())
    }

    async fn template(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(DEPLOY);
        if self.first() {
            base::adopt(cx, &self.site, &mut self.documents).await?;
        }
        let look = &self.rollback()?.template;
        let from = (&self.documents, self.state.image.as_deref());
        let made = template::make(cx, &self.site, look, from, DEPLOY).await?;
        self.state.version = Some(made);
        self.state.phase = Phase::Change;
        Ok(None)
    }

    async fn change(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let name = self.documents.group.clone();
        let version = self.version()?.clone();
        let sizes = self
            .state
            .sizes
            .ok_or_else(|| wrong("The step has no sizes.".to_owned()))?;
        let standing = group::describe(&self.site, &name).await?;
        if let Standing::There(found) = &standing {
            self.state.steady.leave_out(found, &version);
            self.state.refresh.leave_out(found, &version);
        }
        match standing {
            Standing::Absent if self.first() => self.create(cx, &name, (sizes, &version)).await?,
            Standing::There(found) if self.resumed && found.uses(&version) => {
                self.after_update(cx, &found).await?;
            }
            Standing::There(found) => {
                if self.first() && cx.attempt() == 0 {
                    return Err(self.drifted(&name, "was created"));
                }
                self.check_drift(cx, &found).await?;
                let document = self.documents.configuration.clone();
                let document = group::update_document(&document, &name, sizes, &version);
                let fields = document.as_object().into_iter().flatten();
                self.state.sent = fields.map(|(field, _)| field.clone()).collect();
                // The rollback must know what was set even when this call is cut off.
                cx.save(&self.state).await?;
                // Before the instances that they are to hold.
                if let Some(hooks) = Hooks::of(&self.documents.configuration) {
                    hooks.replace(cx, (&self.site, &name), DEPLOY).await?;
                }
                let document = cx.secrets().reveal(document).await?;
                cx.info(DEPLOY, format!("Updating Asg {name}"));
                let doing = format!("update Auto Scaling group {name}");
                self.site
                    .scaling("UpdateAutoScalingGroup", &document, &doing)
                    .await?;
                self.after_update(cx, &found).await?;
                cx.info(DEPLOY, format!("Updated Asg {name} successfully"));
            }
            Standing::Absent | Standing::Leaving => return Err(self.drifted(&name, "was deleted")),
        }
        self.state.phase = Phase::Settle;
        Ok(None)
    }

    async fn create(
        &mut self,
        cx: &mut StepContext<'_>,
        name: &str,
        (sizes, version): (Sizes, &Version),
    ) -> Result<(), Failure> {
        base::adopt(cx, &self.site, &mut self.documents).await?;
        let configuration = self.documents.configuration.clone();
        let document = group::create_document(&configuration, name, sizes, version);
        let document = cx.secrets().reveal(document).await?;
        cx.info(DEPLOY, format!("Creating Asg {name}"));
        let doing = format!("create Auto Scaling group {name}");
        self.site
            .scaling("CreateAutoScalingGroup", &document, &doing)
            .await?;
        cx.info(DEPLOY, format!("Created Asg {name}"));
        Ok(())
    }

    /// Tags and target groups, which no update takes.
    async fn after_update(&self, cx: &mut StepContext<'_>, found: &Group) -> Result<(), Failure> {
        let configuration = cx
            .secrets()
            .reveal(self.documents.configuration.clone())
            .await?;
        let has = group::tags_of(&found.0, found.name());
        let mut tags = group::tags_of(&configuration, found.name());
        tags.retain(|tag| !has.iter().any(|has| same_tag(has, tag)));
        group::put_tags(&self.site, found.name(), &tags).await?;
        let wanted = group::texts(&configuration["TargetGroupARNs"]);
        group::set_target_groups(&self.site, found, &wanted, false).await
    }

    /// Refuses a group that another deployment, or a person, has let start its instances from something else since this
    /// step looked at it: the rollback of either would undo the other.
    async fn check_drift(
        &mut self,
        cx: &mut StepContext<'_>,
        found: &Group,
    ) -> Result<(), Failure> {
        let Some(before) = self.rollback()?.before.clone() else {
            return Ok(());
        };
        let attempts = cx.saved_by_all::<State>("AsgRollingDeploy")?;
        let made = attempts.into_iter().filter_map(|state| state.version);
        let made: Vec<Version> = made.chain(self.state.version.clone()).collect();
        if before.is_still(found, &made) {
            return Ok(());
        }
        let what = format!("was pointed to {}", found.told_template());
        let failure = self.drifted(found.name(), &what);
        if cx.attempt() == 0 {
            // Nothing of it is this step's: there is nothing to roll back.
            self.state.phase = Phase::Prepare;
            cx.save(&self.state).await?;
        }
        Err(failure)
    }

    fn drifted(&self, name: &str, what: &str) -> Failure {
        wrong(format!(
            "Auto Scaling group {name} in {} {what} by somebody or something else while this step was deploying it. \
             Run the pipeline again.",
            self.site
        ))
    }

    async fn settle(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let desired = self.desired();
        // The refresh that follows replaces what serves something else: of a group that was created just now, nothing.
        let stay = match self.first() {
            true => Stay::Judged,
            false => Stay::No,
        };
        let goal = Goal {
            group: &self.documents.group,
            desired,
            version: None,
            only: false,
            stay,
            unit: DEPLOY,
        };
        let pause = self.state.steady.look(cx, &self.site, goal).await?;
        if pause.is_none() {
            self.state.phase = Phase::Scale;
        }
        Ok(pause)
    }

    async fn scale(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let place = (&self.site, self.documents.group.as_str());
        let has = Scaling::describe(place.0, place.1).await?;
        let wanted = Scaling::of_manifests(&self.documents);
        wanted.replace(cx, place, &has, DEPLOY).await?;
        set_metrics(cx, place, &self.documents, DEPLOY).await?;
        self.state.refresh.about_to(place.0, place.1).await?;
        self.state.phase = Phase::Refresh;
        Ok(None)
    }

    async fn refresh(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (min, max) = healthy(cx.spec())?;
        let preferences = Preferences {
            min,
            max,
            warmup: spec::count(cx.spec(), "instanceWarmup")?,
            // What was created just now is what it is to be.
            skip_matching: self.first() || spec::flag(cx.spec(), "skipMatching")?,
        };
        let place = (&self.site, self.documents.group.as_str());
        let how = (self.resumed && self.state.refresh.is_about_to(), DEPLOY);
        self.state
            .refresh
            .start(cx, place, preferences, how)
            .await?;
        self.state.phase = Phase::Follow;
        Ok(None)
    }

    async fn follow(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let hasty = spec::flag(cx.spec(), "skipInstanceTermination")?;
        let version = self.version()?.clone();
        let goal = (self.desired(), Some(&version).filter(|_| hasty));
        let place = (&self.site, self.documents.group.as_str());
        let pause = self.state.refresh.look(cx, place, goal, DEPLOY).await?;
        if pause.is_none() {
            if !hasty {
                refresh::judge(place.0, place.1, &version).await?;
            }
            self.state.phase = Phase::Note;
        }
        Ok(pause)
    }

    async fn note(&mut self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let name = self.documents.group.clone();
        let data = self.rollback()?;
        let before = data.before.as_ref();
        let change = Change::Deployed(before.map(|_| Replaced::record(data.replaced.as_ref())));
        let version = self.version()?.clone();
        let counted = Counted {
            name: name.clone(),
            version: Some(version.clone()),
            strategy: "Rolling".to_owned(),
            production: true,
            by: Some(By::this(cx)?),
        };
        let instances = instances::note(cx, &self.site, (&[counted], &[]), change).await?;
        cx.info(DEPLOY, "Rolling Deployment Finished Successfully");
        cx.unit_ended(DEPLOY, true);
        let outcome = json!({"serverInstanceInfoList": instances});
        Ok(json!({
            "output": {
                "asg": {
                    "autoScalingGroupName": name,
                    "launchTemplateVersion": version.number,
                    "instanceRefreshId": self.state.refresh.id,
                },
                "deploymentInfoOutcome": outcome,
            },
            "deploymentInfoOutcome": outcome,
        }))
    }
}

fn same_tag(one: &Value, other: &Value) -> bool {
    let flag = |tag: &Value| {
        text(tag, "PropagateAtLaunch").as_deref() == Some("true")
            || tag["PropagateAtLaunch"] == json!(true)
    };
    one["Key"] == other["Key"] && one["Value"] == other["Value"] && flag(one) == flag(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_keep_the_distance_that_aws_allows() {
        let of = |min: Value, max: Value| {
            let spec = json!({"minimumHealthyPercentage": min, "maximumHealthyPercentage": max});
            healthy(&spec).map_err(|failure| failure.message)
        };
        let none = Value::Null;
        assert_eq!(of(none.clone(), none.clone()), Ok((90, 110)));
        assert_eq!(of(json!(0), none.clone()), Ok((0, 100)));
        assert_eq!(of(none.clone(), json!(200)), Ok((100, 200)));
        assert_eq!(of(json!(100), none), Ok((100, 110)));
        assert!(of(json!(0), json!(150)).is_err());
        assert!(of(json!(101), json!(150)).is_err());
    }
}
