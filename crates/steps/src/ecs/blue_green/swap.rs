//! `EcsBlueGreenSwapTargetGroups`: the new version gets the requests of production, all at once.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::instances;
use super::super::manifest::Documents;
use super::super::scaling::{Scaling, detach};
use super::super::service::{Standing, describe, update};
use super::super::site::Site;
use super::super::told;
use super::balancer::{self, Place, Rule};
use super::made::Made;
use super::others;
use super::serving::{as_it_is, check_new, created, note, serve};
use super::spec::{Swap, check_swap};
use super::{Blue, Patience, wrong};
use crate::aws::other_rules::Other;
use crate::context::StepContext;
use crate::deployment::invalid;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::step::{Progress, Step, Undo};

/// The command unit.
const SWAP: &str = "Swap Target Groups";

/// How long tasks of a service that was scaled down are waited for, milliseconds: AWS tells them to stop within seconds,
/// and what is counted before that is counted until the next sweep. Not so long as they may go on answering: that is said
/// by the deregistration delay of their target group.
const DRAINS_MS: i64 = 30_000;
/// Time between two looks at them.
const DRAIN_PAUSE: Duration = Duration::from_secs(3);

/// The step.
pub struct SwapTargetGroups;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Look whether the new version may get requests.
    #[default]
    Look,
    /// Exchange the target groups of the rules.
    Rules,
    /// Say which service serves.
    Tags,
    /// Move scaling.
    Scale,
    /// Wait as long as told.
    Delay,
    /// Scale the old service down.
    Downsize,
    /// Wait until its tasks do not count any more.
    Drain,
    /// Note what serves.
    Note,
}

/// Progress of the step; the rollback step reads it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// What served, as it was just before.
    pub(super) old: Option<Blue>,
    /// When the old service is scaled down, epoch milliseconds.
    due_ms: Option<i64>,
    /// Until when its tasks are waited for after that, epoch milliseconds.
    #[serde(default)]
    drains_ms: Option<i64>,
    #[serde(default)]
    patience: Patience,
}

#[async_trait]
impl Step for SwapTargetGroups {
    fn step_type(&self) -> &'static str {
        "EcsBlueGreenSwapTargetGroups"
    }

    fn units(&self) -> &'static [&'static str] {
        &[SWAP]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check_swap(spec)
    }

    fn undo(&self) -> Undo {
        Undo::Step("EcsBlueGreenRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(SWAP);
        let result = match Swapping::resume(cx).await {
            Ok(swapping) => walk(swapping, cx).await,
            Err(failure) => Err(failure),
        };
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let state: State = cx.saved()?;
        let left = match state.phase {
            Phase::Look => "No rule was changed: the old version still serves",
            Phase::Rules => "The rules may be changed in part: look at them, or roll back",
            _ => "The new version serves, and the old one may still have its tasks",
        };
        cx.warn(SWAP, left);
        Ok(())
    }
}

/// One call's worth of the step.
struct Swapping {
    site: Site,
    spec: Swap,
    made: Made,
    state: State,
    /// The rules, when this call has looked at them.
    rules: Option<Vec<Rule>>,
}

#[async_trait]
impl Phases for Swapping {
    type State = State;

    fn state(&self) -> &State {
        &self.state
    }

    async fn turn(&mut self, cx: &mut StepContext<'_>) -> Result<Turn, Failure> {
        Ok(match self.state.phase {
            Phase::Look => self.look(cx).await?.into(),
            Phase::Rules => self.exchange(cx).await?.into(),
            Phase::Tags => self.tags(cx).await?.into(),
            Phase::Scale => self.scale(cx).await?.into(),
            Phase::Delay => self.delay(cx).into(),
            Phase::Downsize => self.downsize(cx).await?.into(),
            Phase::Drain => self.drain(cx).await?.into(),
            Phase::Note => Turn::Done(self.note(cx).await?),
        })
    }
}

impl Swapping {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let spec = Swap::read(cx.spec())?;
        let made = created(cx)?;
        if made.handover.routes.is_shift() {
            return Err(invalid(
                "EcsBlueGreenCreateService was told `isTrafficShift: true`, and there is no stage listener rule to \
                 swap with. Use EcsBlueGreenTrafficShift, or take out `isTrafficShift`."
                    .to_owned(),
            ));
        }
        Ok(Self {
            site: Site::of_stage(cx).await?,
            spec,
            made,
            state: cx.saved()?,
            rules: None,
        })
    }

    async fn look_at_rules(&self) -> Result<Vec<Rule>, Failure> {
        let original = self.made.handover.routes.original();
        let places: Vec<&Place> = original.iter().map(|(route, _)| &route.place).collect();
        balancer::rules(&self.site, &places).await
    }

    /// Nothing is changed before the new version is seen to be healthy.
    async fn look(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let delay = Duration::from_secs(self.spec.delay);
        if delay >= cx.time_left() {
            return Err(invalid(format!(
                "`downsizeOldServiceDelayInSecs` is {}, and the step must end within {} s: give it a longer \
                 `timeout`.",
                self.spec.delay,
                cx.step().timeout.as_secs()
            )));
        }
        let rules = self.look_at_rules().await?;
        let handover = &self.made.handover;
        let swapped = handover.routes.swapped();
        for (rule, (route, wanted)) in rules.iter().zip(&swapped) {
            let as_before = rule.forward.same_shares(&route.forward);
            if !as_before && !rule.forward.same_shares(wanted) {
                return Err(wrong(format!(
                    "Listener rule {} forwards to {}, and it forwarded to {} when EcsBlueGreenCreateService looked: \
                     somebody or something else changed it. Nothing is swapped. Run the pipeline again.",
                    rule.place.rule, rule.forward, route.forward
                )));
            }
        }
        let patience = (&mut self.state.patience, SWAP);
        if let Some(pause) = check_new(cx, &self.site, &self.made, patience).await? {
            return Ok(Some(pause));
        }
        let first: Option<State> = cx.saved_by_first_attempt()?;
        self.state.old = match (first.and_then(|state| state.old), &handover.blue) {
            (Some(old), _) => Some(old),
            (None, Some(blue)) => Some(as_it_is(cx, &self.site, blue, SWAP).await?),
            (None, None) => None,
        };
        self.rules = Some(rules);
        self.state.phase = Phase::Rules;
        Ok(None)
    }

    async fn exchange(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let rules = match self.rules.take() {
            Some(rules) => rules,
            None => self.look_at_rules().await?,
        };
        // Production first: the target group of a rule that moves away stays in use by the other one.
        let swapped = self.made.handover.routes.swapped();
        let whose = [("Prod", "new"), ("Stage", "old")];
        for ((rule, (_, wanted)), (which, version)) in rules.iter().zip(&swapped).zip(whose) {
            if rule.forward.same_shares(wanted) {
                continue;
            }
            cx.info(
                SWAP,
                format!(
                    "Modifying ELB {which} Listener {} with listener rule {} to Forward requests to Target group \
                     associated with {version} Service, TargetGroup: {wanted}",
                    rule.place.listener, rule.place.rule
                ),
            );
            balancer::point(&self.site, rule, wanted).await?;
            cx.info(SWAP, format!("Successfully updated {which} Listener"));
        }
        self.state.phase = Phase::Tags;
        Ok(None)
    }

    async fn tags(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        serve(cx, &self.site, &self.made, SWAP).await?;
        cx.info(SWAP, "Swapping Successful.");
        self.state.phase = Phase::Scale;
        Ok(None)
    }

    async fn scale(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        if let (true, Some(key)) = (self.made.scale_in_swap, &self.made.documents) {
            let documents = Documents::again(cx, key).await?;
            let new = &self.made.handover.new;
            let old = self.state.old.as_ref().map(|old| &old.scaling);
            let scaling = Scaling::of_manifests(&self.site, new, &documents).with_actions_of(old);
            scaling.attach(cx, &self.site, SWAP).await?;
        }
        if let Some(old) = &self.state.old {
            detach(cx, &self.site, &old.name, SWAP).await?;
        }
        self.state.phase = match (&self.state.old, self.spec.keep_old) {
            (Some(old), false) => {
                self.state.due_ms = self.due(cx);
                if self.spec.delay > 0 {
                    let delay = self.spec.delay;
                    cx.info(
                        SWAP,
                        format!("Service {} is scaled down in {delay} seconds", old.name),
                    );
                }
                Phase::Delay
            }
            (Some(old), true) => {
                let kept = format!("Service {} keeps its tasks", old.name);
                cx.info(SWAP, kept);
                Phase::Note
            }
            (None, _) => Phase::Note,
        };
        Ok(None)
    }

    fn due(&self, cx: &StepContext<'_>) -> Option<i64> {
        let delay = i64::try_from(self.spec.delay).ok()?.checked_mul(1000)?;
        cx.clock().now_ms().checked_add(delay)
    }

    fn delay(&mut self, cx: &StepContext<'_>) -> Option<Duration> {
        let left = self.state.due_ms.unwrap_or(0) - cx.clock().now_ms();
        match u64::try_from(left) {
            Ok(left) if left > 0 => Some(Duration::from_millis(left)),
            _ => {
                self.state.phase = Phase::Downsize;
                None
            }
        }
    }

    async fn downsize(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let Some(old) = self.state.old.clone() else {
            self.state.phase = Phase::Note;
            return Ok(None);
        };
        let routes = &self.made.handover.routes;
        let rules = self.look_at_rules().await?;
        let serves = |rule: &Rule| rule.forward.reaches(&routes.prod_group);
        if !routes.is_shared() && rules.first().is_some_and(serves) {
            return Err(wrong(format!(
                "Service {} is not scaled down: listener rule {} forwards to its target group {} again. Somebody or \
                 something else has moved the requests back.",
                old.name, routes.prod.place.rule, routes.prod_group
            )));
        }
        let others = others::find(cx, &self.site, routes).await?;
        let others: Vec<Other> = others
            .into_iter()
            .filter(|other| other.reaches(&routes.prod_group))
            .collect();
        if !others.is_empty() {
            let warning = format!(
                "Service {} keeps its tasks: listener {} still sends requests to its target group {}, and no step moves \
                 them. Let them forward to {}, where the new version is, and scale the service down.",
                old.name,
                others::told(&others),
                routes.prod_group,
                routes.stage_group
            );
            cx.warn_of_run(SWAP, &warning).await?;
            self.state.phase = Phase::Note;
            return Ok(None);
        }
        match describe(&self.site, &old.name).await? {
            Standing::Active(found) if found.service.desired_count() > 0 => {
                let desired = found.service.desired_count();
                cx.info(
                    SWAP,
                    format!("Scaling Service {} from {desired} to 0 tasks", old.name),
                );
                let document = json!({
                    "cluster": self.site.cluster, "service": old.name, "desiredCount": 0,
                });
                update(&self.site, &document).await?;
                let now = cx.clock().now_ms();
                self.state.drains_ms = Some(now.saturating_add(DRAINS_MS));
            }
            Standing::Active(_) => {}
            Standing::Absent | Standing::Draining => cx.warn(
                SWAP,
                format!(
                    "Service {} is gone already: nothing to scale down",
                    old.name
                ),
            ),
        }
        self.state.phase = Phase::Drain;
        Ok(self.state.drains_ms.and_then(|_| drain_pause(cx)))
    }

    /// What is scaled down is not counted any more once its tasks have been told to stop.
    async fn drain(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let waits = self
            .state
            .drains_ms
            .is_some_and(|due| cx.clock().now_ms() < due);
        if let Some(old) = self.state.old.as_ref().filter(|_| waits)
            && let Some(pause) = drain_pause(cx)
            && !instances::running(&self.site, &old.name).await?.is_empty()
        {
            return Ok(Some(pause));
        }
        self.state.phase = Phase::Note;
        Ok(None)
    }

    async fn note(&self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let outputs = note(cx, &self.site, &self.made).await?;
        cx.unit_ended(SWAP, true);
        Ok(outputs)
    }
}

/// How long to wait for the next look at what is scaled down; `None` where the step's time is nearly up: no deployment
/// fails because of a number that the next sweep puts right.
fn drain_pause(cx: &StepContext<'_>) -> Option<Duration> {
    (cx.time_left() > 2 * DRAIN_PAUSE).then_some(DRAIN_PAUSE)
}
