//! `EcsBlueGreenRollback`: what served before serves again, with its tasks, rules, tags and scaling.
//!
//! The old service gets its tasks back first and the requests then, so that there is no moment in which nothing
//! answers them. The new service is scaled down after that; when it is the first deployment, it goes.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::beside;
use super::super::flags::check_flags;
use super::super::foreign;
use super::super::instances::{self, Change};
use super::super::removal::Removal;
use super::super::resize::Resize;
use super::super::scaling::Scaling;
use super::super::service::{Described, Standing, describe, update};
use super::super::site::Site;
use super::super::task_definition::short;
use super::super::{ROLLBACK, told};
use super::balancer::{self, Place};
use super::create::Phase as Creating;
use super::forward::Forward;
use super::made::{Made, Moved};
use super::{Blue, Patience, tag, wrong};
use crate::context::StepContext;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::step::{Progress, Step, Undo};

/// The step.
pub struct Rollback;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// The old service gets its tasks back.
    #[default]
    Tasks,
    /// Its targets are healthy.
    Healthy,
    /// It gets the requests.
    Rules,
    /// It is tagged as what serves.
    Tags,
    /// The new service goes, or goes back to how it was.
    New,
    /// The old service is scaled again.
    Scale,
    /// What is there is noted.
    Note,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) phase: Phase,
    resize: Resize,
    pub(super) removal: Removal,
    #[serde(default)]
    patience: Patience,
    /// Whether it was looked whether a rule names the old target group.
    #[serde(default)]
    looked: bool,
    /// The stage rule, where somebody changed it, in words.
    #[serde(default)]
    foreign: Option<String>,
}

#[async_trait]
impl Step for Rollback {
    fn step_type(&self) -> &'static str {
        "EcsBlueGreenRollback"
    }

    fn units(&self) -> &'static [&'static str] {
        &[ROLLBACK]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check_flags(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it is itself the undoing of the blue-green steps")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(ROLLBACK);
        let made = Made::read(cx)?.filter(|made| made.phase > Creating::Prepare);
        let Some(made) = made else {
            cx.info(
                ROLLBACK,
                "Nothing to roll back: the deployment ended before its first change",
            );
            return Ok(Progress::Done(json!({})));
        };
        let left = left(&made);
        let result = match Undoing::resume(cx, made).await {
            Ok(undoing) => walk(undoing, cx).await,
            Err(failure) => Err(failure),
        };
        let result = result.map_err(|failure| Failure {
            left_behind: failure.left_behind.clone().or(Some(left)),
            ..failure
        });
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let state: State = cx.saved()?;
        if let Some(reasons) = state.resize.evidence() {
            cx.warn(ROLLBACK, format!("Tasks stopped because: {reasons}"));
        }
        let at = match state.phase {
            Phase::Tasks | Phase::Healthy => {
                "the old service did not get its healthy tasks back, and no rule was changed"
            }
            _ => "look at both services, their tasks and the listener rules",
        };
        cx.error(ROLLBACK, format!("The rollback did not end: {at}"));
        match Made::read(cx)? {
            Some(made) => Err(wrong(format!("{}.", left(&made)))),
            None => Ok(()),
        }
    }
}

/// What a person must look at when the rollback fails.
fn left(made: &Made) -> String {
    let handover = &made.handover;
    let rule = &handover.routes.prod.place.rule;
    let new = format!(
        "service {}, deployed by this run, may still have tasks; listener rule {rule} may not forward to {}",
        handover.new, handover.routes.prod.forward
    );
    match &handover.blue {
        None => new,
        Some(blue) => format!(
            "{new}; service {} may not have its {} tasks of {} back",
            blue.name,
            blue.desired,
            short(&blue.task_definition)
        ),
    }
}

/// A service that was told to run something that never came up is told to run what served, so that its tasks are of that.
/// Repeating it changes nothing.
async fn with_what_served(
    cx: &mut StepContext<'_>,
    site: &Site,
    blue: &Blue,
    found: Described,
) -> Result<Described, Failure> {
    let name = blue.name.as_str();
    let runs = found.service.task_definition();
    let Some(before) = blue
        .serves
        .as_ref()
        .filter(|before| runs != Some(before.task_definition()))
    else {
        return Ok(found);
    };
    let (served, desired) = (short(before.task_definition()), blue.desired);
    cx.info(
        ROLLBACK,
        format!(
            "Updating Service {name} back to {served}, which served, with {desired} tasks: {} had not come up",
            short(runs.unwrap_or_default())
        ),
    );
    let mut document = before.restore_document(site, name, &[]);
    document["desiredCount"] = json!(desired);
    update(site, &document).await
}

pub(super) struct Undoing {
    pub(super) site: Site,
    pub(super) made: Made,
    moved: Moved,
    pub(super) state: State,
}

#[async_trait]
impl Phases for Undoing {
    type State = State;

    fn state(&self) -> &State {
        &self.state
    }

    async fn turn(&mut self, cx: &mut StepContext<'_>) -> Result<Turn, Failure> {
        Ok(match self.state.phase {
            Phase::Tasks => self.tasks(cx).await?.into(),
            Phase::Healthy => self.healthy(cx).await?.into(),
            Phase::Rules => self.rules(cx).await?.into(),
            Phase::Tags => self.tags(cx).await?.into(),
            Phase::New => self.new_service(cx).await?.into(),
            Phase::Scale => self.scale(cx).await?.into(),
            Phase::Note => Turn::Done(self.note(cx).await?),
        })
    }
}

impl Undoing {
    async fn resume(cx: &mut StepContext<'_>, made: Made) -> Result<Self, Failure> {
        Ok(Self {
            site: Site::of_stage(cx).await?,
            made,
            moved: Moved::read(cx)?,
            state: cx.saved()?,
        })
    }

    /// What served: as it was when its requests were moved, or when the stage began.
    fn blue(&self) -> Option<Blue> {
        let now = self.moved.blue.as_ref();
        now.or(self.made.handover.blue.as_ref()).cloned()
    }

    async fn tasks(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        // Where no request was moved, what serves was not touched, and stays so.
        let moved = self.moved.rules || self.moved.downsized;
        let Some(blue) = self.blue().filter(|_| moved) else {
            self.state.phase = Phase::Healthy;
            return Ok(None);
        };
        let (site, name) = (&self.site, blue.name.as_str());
        if !self.state.resize.told() {
            let Standing::Active(found) = describe(site, name).await? else {
                return Err(wrong(format!(
                    "Service {name} in {site} cannot get its tasks back: it no longer exists, somebody or \
                     something else deleted it. Service {} keeps the requests.",
                    self.made.handover.new
                )));
            };
            foreign::check(site, (name, &*found), (&blue.may_run(), blue.desired))?;
            if !self.moved.downsized {
                self.state.phase = Phase::Healthy;
                return Ok(None);
            }
            let found = with_what_served(cx, site, &blue, *found).await?;
            let resize = &mut self.state.resize;
            resize
                .tell(cx, site, (name, &found), blue.desired, ROLLBACK)
                .await?;
            cx.save(&self.state).await?;
        }
        let pause = self
            .state
            .resize
            .look(cx, &self.site, name, ROLLBACK)
            .await?;
        if pause.is_none() {
            self.state.phase = Phase::Healthy;
        }
        Ok(pause)
    }

    /// Requests go back to targets that answer: to all of them after they were stopped, else to those that are
    /// there.
    async fn healthy(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let blue = self
            .blue()
            .filter(|blue| self.moved.rules && blue.desired > 0);
        if let Some(blue) = blue {
            let wanted = if self.moved.downsized {
                blue.desired
            } else {
                1
            };
            let targets = (self.made.handover.routes.prod_group.as_str(), wanted);
            let patience = &mut self.state.patience;
            let pause = patience.look(cx, &self.site, targets, ROLLBACK).await?;
            if pause.is_some() && !self.cannot_be_checked(cx).await? {
                return Ok(pause);
            }
        }
        self.state.phase = Phase::Rules;
        Ok(None)
    }

    /// Whether the targets of what served are never found healthy, because no rule names their target group: a swap that
    /// was cut between its two changes leaves it like that. Where the stage rule can name it meanwhile, it does.
    async fn cannot_be_checked(&mut self, cx: &mut StepContext<'_>) -> Result<bool, Failure> {
        if self.state.looked || !self.state.patience.is_unchecked() {
            return Ok(false);
        }
        let routes = self.made.handover.routes.clone();
        let (site, group) = (&self.site, routes.prod_group.as_str());
        let prod = balancer::still_forwarding(site, &routes.prod.place).await?;
        let named = prod.is_some_and(|rule| rule.forward.names(group));
        if !named {
            let stage = match &routes.stage {
                Some(stage) => balancer::still_forwarding(site, &stage.place).await?,
                None => None,
            };
            match stage.filter(|rule| routes.knows(&rule.forward)) {
                Some(rule) if rule.forward.names(group) => {}
                Some(rule) => {
                    cx.info(
                        ROLLBACK,
                        format!(
                            "Modifying listener rule {} to forward to {group}, so that its targets are checked",
                            rule.place.rule
                        ),
                    );
                    let old = Forward::to(group).sticky_as(&rule.forward);
                    balancer::point(site, &rule, &old).await?;
                }
                None => {
                    cx.warn(
                        ROLLBACK,
                        format!(
                            "No rule names {group}, and somebody changed the one that could: AWS does not check its \
                             targets before they get requests. They get them without that"
                        ),
                    );
                    self.state.looked = true;
                    return Ok(true);
                }
            }
        }
        self.state.looked = true;
        cx.save(&self.state).await?;
        Ok(false)
    }

    async fn rules(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        self.state.phase = Phase::Tags;
        if !self.moved.rules {
            return Ok(None);
        }
        let routes = &self.made.handover.routes;
        let original = routes.original();
        let places: Vec<&Place> = original.iter().map(|(route, _)| &route.place).collect();
        let rules = match balancer::rules(&self.site, &places).await {
            // The rule of production comes back also where the other one cannot.
            Err(failure) if places.len() > 1 => {
                let prod = balancer::rules(&self.site, &places[..1]).await?;
                self.state.foreign = Some(failure.message);
                prod
            }
            rules => rules?,
        };
        for (number, (rule, (_, wanted))) in rules.iter().zip(&original).enumerate() {
            if !routes.knows(&rule.forward) {
                let changed = format!(
                    "Listener rule {} forwards to {}: somebody or something else changed it after this run. It is \
                     not touched",
                    rule.place.rule, rule.forward
                );
                if number > 0 {
                    self.state.foreign = Some(format!("{changed}."));
                    continue;
                }
                return Err(wrong(format!("{changed}, and neither are the services.")));
            }
            if rule.forward.same_shares(wanted) {
                continue;
            }
            cx.info(
                ROLLBACK,
                format!(
                    "Modifying listener rule {} to forward to {wanted} again",
                    rule.place.rule
                ),
            );
            balancer::point(&self.site, rule, wanted).await?;
        }
        Ok(None)
    }

    async fn tags(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        if self.moved.tags {
            if let Some(blue) = self.blue() {
                tag::set(cx, &self.site, (&blue.name, &blue.arn), tag::BLUE, ROLLBACK).await?;
            }
            if let (Some(arn), true) = (&self.made.arn, self.stays()) {
                let new = (self.made.handover.new.as_str(), arn.as_str());
                tag::set(cx, &self.site, new, tag::GREEN, ROLLBACK).await?;
            }
        }
        self.state.phase = Phase::New;
        Ok(None)
    }

    /// Scaling comes back last, so that it does not work against the rollback.
    async fn scale(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let shared = self.made.handover.routes.is_shared();
        if let Some(blue) = self.blue().filter(|_| self.moved.scaling || shared) {
            let scaling: &Scaling = match shared {
                // The swap found it without scaling already.
                true => self
                    .made
                    .handover
                    .blue
                    .as_ref()
                    .map_or(&blue.scaling, |blue| &blue.scaling),
                false => &blue.scaling,
            };
            scaling.attach(cx, &self.site, ROLLBACK).await?;
        }
        self.state.phase = Phase::Note;
        Ok(None)
    }

    async fn note(&self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let (site, handover) = (&self.site, &self.made.handover);
        let (new, blue) = (handover.new.as_str(), self.blue());
        let (name, arn, change) = match &blue {
            None => (new, "", Change::Removed),
            Some(blue) => (
                blue.name.as_str(),
                blue.task_definition.as_str(),
                Change::Restored(handover.replaced.clone()),
            ),
        };
        beside::set_before(cx, (site, name), None).await?;
        beside::forget(cx, site, new).await?;
        instances::note(cx, site, (name, arn), change).await?;
        if let Some(green) = handover.green.as_ref().filter(|green| !green.updated) {
            cx.warn(
                ROLLBACK,
                format!(
                    "Service {} as it was before, without requests, was deleted by the deployment and does not come \
                     back",
                    green.name
                ),
            );
        }
        if let (Some(foreign), Some(stage)) = (&self.state.foreign, &handover.routes.stage) {
            let serves = match &blue {
                None => format!("Service {new} is deleted"),
                Some(blue) => format!("Service {} serves again", blue.name),
            };
            return Err(Failure {
                left_behind: Some(format!(
                    "listener rule {} does not forward to {}",
                    stage.place.rule, stage.forward
                )),
                ..wrong(format!(
                    "{serves}, and one rule is not as it was. {foreign}"
                ))
            });
        }
        let done = match &blue {
            None => format!("Service {new} deleted: rolled back cleanly"),
            Some(blue) => format!("Service {} serves: rolled back cleanly", blue.name),
        };
        cx.info(ROLLBACK, done);
        cx.unit_ended(ROLLBACK, true);
        Ok(json!({"output": {"serviceName": name}}))
    }
}
