//! `EcsBlueGreenTrafficShift`: moves requests between target groups by weight.
//!
//! `Inherit` moves them from what serves to what `EcsBlueGreenCreateService` deployed; at 100 the new version is
//! what serves. `Standalone` sets another rule, and touches neither services nor tags. Neither gives more requests to a target
//! group without healthy targets; a weight of 0 lets the load balancer check them first.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::site::Site;
use super::super::told;
use super::balancer::{self, Rule};
use super::forward::Forward;
use super::made::Made;
use super::routes::Route;
use super::serving::{check_groups, check_new, created, note, serve};
use super::spec::{Shift, check_shift};
use super::{Patience, wrong};
use crate::context::StepContext;
use crate::deployment::invalid;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::step::{Progress, Step, Undo};

/// The command unit.
const SHIFT: &str = "Shift Traffic";

/// The step.
pub struct TrafficShift;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Look at the rule and at what is to get requests.
    #[default]
    Look,
    /// Set the weights.
    Set,
    /// Say which service serves.
    Tags,
    /// Note what serves.
    Note,
}

/// Progress of the step; the rollback steps read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) phase: Phase,
    standalone: bool,
    /// The rule as it was just before.
    pub(super) before: Option<Route>,
    /// What it is to forward to.
    pub(super) wanted: Option<Forward>,
    #[serde(default)]
    patience: Patience,
}

impl State {
    /// Whether the rule of `EcsBlueGreenCreateService` was meant.
    pub(super) fn inherits(&self) -> bool {
        !self.standalone
    }
}

#[async_trait]
impl Step for TrafficShift {
    fn step_type(&self) -> &'static str {
        "EcsBlueGreenTrafficShift"
    }

    fn units(&self) -> &'static [&'static str] {
        &[SHIFT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check_shift(spec)
    }

    /// Of `Standalone`, `StandAloneTrafficShiftRollback` is the undoing.
    fn undo(&self) -> Undo {
        Undo::Step("EcsBlueGreenRollback")
    }

    fn undone_by(&self) -> Vec<&'static str> {
        vec!["EcsBlueGreenRollback", "StandAloneTrafficShiftRollback"]
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(SHIFT);
        let result = match Shifting::resume(cx).await {
            Ok(shifting) => walk(shifting, cx).await,
            Err(failure) => Err(failure),
        };
        told(cx, self.units(), result)
    }
}

/// One call's worth of the step.
struct Shifting {
    site: Site,
    shift: Shift,
    /// What was deployed; `None` where the shift stands alone.
    made: Option<Made>,
    state: State,
    /// The rule, when this call has looked at it.
    rule: Option<Rule>,
}

#[async_trait]
impl Phases for Shifting {
    type State = State;

    fn state(&self) -> &State {
        &self.state
    }

    async fn turn(&mut self, cx: &mut StepContext<'_>) -> Result<Turn, Failure> {
        Ok(match self.state.phase {
            Phase::Look => self.look(cx).await?.into(),
            Phase::Set => self.set(cx).await?.into(),
            Phase::Tags => self.tags(cx).await?.into(),
            Phase::Note => Turn::Done(self.note(cx).await?),
        })
    }
}

impl Shifting {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let shift = Shift::read(cx.spec())?;
        let mut state: State = cx.saved()?;
        let made = match shift {
            Shift::Inherit(_) => {
                let made = created(cx)?;
                if !made.handover.routes.is_shift() {
                    return Err(invalid(
                        "EcsBlueGreenCreateService was not told `isTrafficShift: true`, and there is no rule with \
                         two target groups to inherit. Use EcsBlueGreenSwapTargetGroups, or set `isTrafficShift`."
                            .to_owned(),
                    ));
                }
                Some(made)
            }
            Shift::Standalone { .. } => {
                state.standalone = true;
                None
            }
        };
        Ok(Self {
            site: Site::of_stage(cx).await?,
            shift,
            made,
            state,
            rule: None,
        })
    }

    async fn look(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (rule, wanted) = match (&self.shift, &self.made) {
            (Shift::Inherit(weight), Some(made)) => {
                let routes = &made.handover.routes;
                let rule = self.inherited(made).await?;
                let patience = (&mut self.state.patience, SHIFT);
                if *weight > 0
                    && let Some(pause) = check_new(cx, &self.site, made, patience).await?
                {
                    return Ok(Some(pause));
                }
                if *weight < 100 && made.handover.blue.is_none() {
                    cx.warn(
                        SHIFT,
                        format!(
                            "No service serves in {}: its share of the requests is not answered",
                            routes.prod_group
                        ),
                    );
                }
                let shares = [
                    (routes.stage_group.as_str(), *weight),
                    (routes.prod_group.as_str(), 100 - *weight),
                ];
                (rule, Forward::of(shares))
            }
            (Shift::Standalone { groups, .. }, _) => {
                let rule = self.standalone(cx).await?;
                let shares = groups
                    .iter()
                    .map(|(group, weight)| (group.as_str(), *weight));
                let wanted = Forward::of(shares);
                let patience = (&mut self.state.patience, SHIFT);
                if let Some(pause) =
                    check_groups(cx, &self.site, (&rule, &wanted), patience).await?
                {
                    return Ok(Some(pause));
                }
                (rule, wanted)
            }
            (Shift::Inherit(_), None) => {
                return Err(wrong("There is nothing to inherit.".to_owned()));
            }
        };
        let first: Option<State> = cx.saved_by_first_attempt()?;
        let before = first.and_then(|state| state.before);
        self.state.before = Some(before.unwrap_or_else(|| Route::from(&rule)));
        self.state.wanted = Some(wanted.sticky_as(&rule.forward));
        self.rule = Some(rule);
        self.state.phase = Phase::Set;
        Ok(None)
    }

    /// The rule of `EcsBlueGreenCreateService`, with the two target groups that it had then.
    async fn inherited(&self, made: &Made) -> Result<Rule, Failure> {
        let routes = &made.handover.routes;
        let rule = self.rule_at(&routes.prod).await?;
        if routes.knows(&rule.forward) {
            return Ok(rule);
        }
        Err(wrong(format!(
            "Listener rule {} forwards to {}, and it forwarded to {} when EcsBlueGreenCreateService looked: somebody \
             or something else changed it. Nothing is shifted. Run the pipeline again.",
            rule.place.rule, rule.forward, routes.prod.forward
        )))
    }

    async fn rule_at(&self, route: &Route) -> Result<Rule, Failure> {
        let rules = balancer::rules(&self.site, &[&route.place]).await?;
        let rule = rules.into_iter().next();
        rule.ok_or_else(|| wrong(format!("Listener rule {} is gone.", route.place.rule)))
    }

    /// The rule that the spec names, which must be another one than those of the deployment.
    async fn standalone(&self, cx: &StepContext<'_>) -> Result<Rule, Failure> {
        let Shift::Standalone {
            balancer, place, ..
        } = &self.shift
        else {
            return Err(wrong("The shift does not stand alone.".to_owned()));
        };
        if let Some(made) = Made::read(cx)? {
            let original = made.handover.routes.original();
            if original
                .iter()
                .any(|(route, _)| route.place.rule == place.rule)
            {
                return Err(invalid(format!(
                    "listener rule {} is the one of EcsBlueGreenCreateService: its requests are moved with \
                     `type: Inherit`, so that they are moved back by EcsBlueGreenRollback. Name another rule.",
                    place.rule
                )));
            }
        }
        let (_, rules) = balancer::find(&self.site, balancer, &[place]).await?;
        let rule = rules.into_iter().next();
        rule.ok_or_else(|| wrong(format!("Listener rule {} is gone.", place.rule)))
    }

    async fn set(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (Some(before), Some(wanted)) = (&self.state.before, &self.state.wanted) else {
            return Err(wrong("The rule was not written down.".to_owned()));
        };
        let rule = match self.rule.take() {
            Some(rule) => rule,
            None => self.rule_at(before).await?,
        };
        let name = &rule.place.rule;
        if rule.forward.same_shares(wanted) {
            cx.info(
                SHIFT,
                format!("Listener rule {name} forwards to {wanted} already"),
            );
        } else {
            cx.info(
                SHIFT,
                format!("Modifying listener rule {name} to forward to {wanted}"),
            );
            balancer::point(&self.site, &rule, wanted).await?;
            cx.info(SHIFT, "Successfully updated the rule");
        }
        self.state.phase = match self.shift {
            Shift::Inherit(100) => Phase::Tags,
            _ => Phase::Note,
        };
        Ok(None)
    }

    async fn tags(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        if let Some(made) = &self.made {
            serve(cx, &self.site, made, SHIFT).await?;
        }
        self.state.phase = Phase::Note;
        Ok(None)
    }

    async fn note(&self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let outputs = match (&self.shift, &self.made) {
            (Shift::Inherit(100), Some(made)) => note(cx, &self.site, made).await?,
            (_, Some(made)) => json!({"output": {"serviceName": made.handover.new}}),
            (_, None) => json!({}),
        };
        cx.unit_ended(SHIFT, true);
        Ok(outputs)
    }
}
