//! `AsgPhasedDeploy`: the new group gets some of the instances, and the old one gives as many up.
//!
//! The new instances must stay healthy until the group's `HealthCheckGracePeriod` is over and 10 seconds longer, within the
//! step's timeout: before that AWS calls every instance healthy.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::group::{self, Standing};
use super::super::health::{Health, Targets};
use super::super::instances::{self, By, Change, Counted};
use super::super::manifest::Documents;
use super::super::scaling::{Scaling, set_metrics};
use super::super::site::Site;
use super::super::spec::{Sizes, check_selection, selected};
use super::super::steady::{Goal, Stay, Steady};
use super::super::{DEPLOY, invalid, told};
use super::{SetUp, set_up};
use crate::context::StepContext;
use crate::deployment::Replaced;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::deployment::spec::{self, Kind};
use crate::step::{Progress, Step, Undo};

/// The step.
pub struct PhasedDeploy;

/// What the step does next. Which of the groups comes first is said by the setup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// Tell the first group its number.
    #[default]
    First,
    /// Wait until it has it.
    FirstSettles,
    /// Tell the second one.
    Second,
    /// Wait until it has it.
    SecondSettles,
    /// Set what scales the new group, once it has taken over whole.
    Scale,
    /// Note what runs.
    Note,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    phase: Phase,
    steady: Steady,
    health: Health,
    /// Whether the instances of the new group are healthy, and their targets are looked at.
    settled: bool,
}

#[async_trait]
impl Step for PhasedDeploy {
    fn step_type(&self) -> &'static str {
        "AsgPhasedDeploy"
    }

    fn units(&self) -> &'static [&'static str] {
        &[DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let mut faults = spec::check(spec, &[("instanceSelection", Kind::Other)]);
        faults.extend(check_selection(spec));
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Step("AsgRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(DEPLOY);
        let result = match Moving::resume(cx).await {
            Ok(moving) => walk(moving, cx).await,
            Err(failure) => Err(failure),
        };
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let state: State = cx.saved()?;
        if let Some(reasons) = state.steady.evidence() {
            cx.warn(DEPLOY, reasons);
        }
        Ok(())
    }
}

struct Moving {
    site: Site,
    set_up: SetUp,
    state: State,
    /// Instances that the new group is to have.
    count: i64,
}

#[async_trait]
impl Phases for Moving {
    type State = State;

    fn state(&self) -> &State {
        &self.state
    }

    async fn turn(&mut self, cx: &mut StepContext<'_>) -> Result<Turn, Failure> {
        let new_first = self.set_up.handover.new_first;
        Ok(match self.state.phase {
            Phase::First => self.tell(cx, new_first, Phase::FirstSettles).await?.into(),
            Phase::FirstSettles => self.settle(cx, new_first, Phase::Second).await?.into(),
            Phase::Second => self
                .tell(cx, !new_first, Phase::SecondSettles)
                .await?
                .into(),
            Phase::SecondSettles => self.settle(cx, !new_first, Phase::Scale).await?.into(),
            Phase::Scale => self.scale(cx).await?.into(),
            Phase::Note => Turn::Done(self.note(cx).await?),
        })
    }
}

impl Moving {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let Some(set_up) = set_up(cx)?.filter(|set_up| set_up.created) else {
            return Err(invalid(
                "there is no new group to move instances to: no AsgSetup step of this stage has succeeded before.",
            ));
        };
        let full = set_up.handover.full;
        let count = selected(cx.spec(), full.desired)?.min(full.desired);
        Ok(Self {
            site: Site::of_stage(cx).await?,
            set_up,
            state: cx.saved()?,
            count,
        })
    }

    fn is_last(&self) -> bool {
        self.count >= self.set_up.handover.full.desired
    }

    /// Instances that the old group keeps.
    fn kept(&self, before: i64) -> i64 {
        match self.is_last() {
            true => 0,
            false => (before - self.count).max(0),
        }
    }

    async fn tell(
        &mut self,
        cx: &mut StepContext<'_>,
        new: bool,
        then: Phase,
    ) -> Result<Option<Duration>, Failure> {
        let handover = &self.set_up.handover;
        match (new, &handover.old) {
            (true, _) => {
                let full = handover.full;
                let sizes = Sizes {
                    min: full.min.min(self.count),
                    max: full.max,
                    desired: self.count,
                };
                resize(cx, &self.site, &handover.new, sizes).await?;
            }
            (false, Some(old)) => {
                let (name, before) = (old.group.name(), old.group.sizes());
                // It would work against the deployment; the rollback brings it back.
                let has = Scaling::describe(&self.site, name).await?;
                let place = (&self.site, name);
                Scaling::default().replace(cx, place, &has, DEPLOY).await?;
                let kept = self.kept(before.desired);
                let sizes = Sizes {
                    min: before.min.min(kept),
                    max: before.max,
                    desired: kept,
                };
                resize(cx, &self.site, name, sizes).await?;
            }
            (false, None) => {}
        }
        self.state.phase = then;
        self.state.steady = Steady::default();
        self.state.settled = false;
        Ok(None)
    }

    async fn settle(
        &mut self,
        cx: &mut StepContext<'_>,
        new: bool,
        then: Phase,
    ) -> Result<Option<Duration>, Failure> {
        let handover = self.set_up.handover.clone();
        let (name, desired) = match (new, &handover.old) {
            (true, _) => (handover.new.as_str(), self.count),
            (false, Some(old)) => (old.group.name(), self.kept(old.group.sizes().desired)),
            (false, None) => {
                self.state.phase = then;
                return Ok(None);
            }
        };
        if !self.state.settled {
            let goal = Goal {
                group: name,
                desired,
                version: None,
                only: true,
                stay: if new { Stay::Judged } else { Stay::No },
                unit: DEPLOY,
            };
            let pause = self.state.steady.look(cx, &self.site, goal).await?;
            if pause.is_some() {
                return Ok(pause);
            }
            self.state.settled = true;
        }
        if new && !handover.target_groups.is_empty() {
            let targets = Targets {
                groups: &handover.target_groups,
                unused: true,
            };
            let goal = (&targets, desired);
            let pause = self
                .state
                .health
                .look(cx, (&self.site, name), goal, DEPLOY)
                .await?;
            if pause.is_some() {
                return Ok(pause);
            }
        }
        self.state.phase = then;
        Ok(None)
    }

    async fn scale(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        if self.is_last() {
            let name = self.set_up.handover.new.clone();
            let place = (&self.site, name.as_str());
            resize(cx, &self.site, &name, self.set_up.handover.full).await?;
            let documents = Documents::once(cx, &mut self.set_up.documents).await?;
            let has = Scaling::describe(place.0, place.1).await?;
            Scaling::of_manifests(&documents)
                .replace(cx, place, &has, DEPLOY)
                .await?;
            set_metrics(cx, place, &documents, DEPLOY).await?;
        }
        self.state.phase = Phase::Note;
        Ok(None)
    }

    async fn note(&mut self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let handover = &self.set_up.handover;
        let by = match handover.old {
            // A part of the instances, which goes again with its run.
            Some(_) if !self.is_last() => By::this_beside(cx)?,
            _ => By::this(cx)?,
        };
        let mut mine = vec![Counted {
            name: handover.new.clone(),
            version: self.set_up.version.clone(),
            strategy: "Phased".to_owned(),
            production: true,
            by: Some(by),
        }];
        let old = handover.old.iter();
        mine.extend(old.map(|old| old.counted("Phased", !self.is_last())));
        let before = handover.old.as_ref();
        let before = before.map(|_| Replaced::record(handover.replaced.as_ref()));
        let change = match self.is_last() {
            true => Change::Deployed(before),
            false => Change::Beside,
        };
        let instances = instances::note(cx, &self.site, (&mine, &[]), change).await?;
        cx.unit_ended(DEPLOY, true);
        let outcome = json!({"serverInstanceInfoList": instances});
        let named = |name: Option<&str>| name.map(|name| json!({"autoScalingGroupName": name}));
        let old = handover.old.as_ref().map(|old| old.group.name());
        Ok(json!({
            "output": {
                "asg": named(Some(&handover.new)),
                "oldAsg": named(old),
                "deploymentInfoOutcome": outcome,
            },
            "deploymentInfoOutcome": outcome,
        }))
    }
}

async fn resize(
    cx: &mut StepContext<'_>,
    site: &Site,
    name: &str,
    sizes: Sizes,
) -> Result<(), Failure> {
    if let Standing::There(found) = group::describe(site, name).await?
        && found.sizes() == sizes
    {
        return Ok(());
    }
    let Sizes { min, max, desired } = sizes;
    cx.info(
        DEPLOY,
        format!("Resizing Asg {name} to {desired} instances"),
    );
    let request = json!({
        "AutoScalingGroupName": name, "MinSize": min, "MaxSize": max, "DesiredCapacity": desired,
    });
    let doing = format!("resize Auto Scaling group {name}");
    site.scaling("UpdateAutoScalingGroup", &request, &doing)
        .await?;
    Ok(())
}
