//! `EcsScale`: gives any service another number of tasks, without a deployment.
//!
//! A percentage is of the count that the service was to have when the step first looked, also when it is
//! retried. The step takes nothing back: Harness has no rollback for it.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_engine::kept::Kept;
use slipway_model::status::{ErrorType, Failure};

use super::resize::Resize;
use super::service::{Described, Standing, describe};
use super::site::Site;
use super::{beside, rolling_deploy, told};
use crate::context::StepContext;
use crate::deployment::spec::{self, Kind, UNITS};
use crate::deployment::unless_refused;
use crate::step::{Progress, Step, Undo};

/// The command unit.
const SCALE: &str = "Scale";

/// Fields of the spec.
const FIELDS: &[(&str, Kind)] = &[
    ("cluster", Kind::Text),
    ("connectorRef", Kind::Text),
    ("instances", Kind::Count),
    ("instanceUnit", Kind::Choice(UNITS)),
    ("region", Kind::Text),
    ("service", Kind::Text),
    ("skipSteadyStateCheck", Kind::Flag),
];

/// The step.
pub struct Scale;

/// What is to be done, known once the service was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Target {
    /// The count that it was to have before.
    before: i64,
    /// The count that it is to have.
    desired: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    target: Option<Target>,
    resize: Resize,
}

#[async_trait]
impl Step for Scale {
    fn step_type(&self) -> &'static str {
        "EcsScale"
    }

    fn units(&self) -> &'static [&'static str] {
        &[SCALE]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let mut faults = spec::check(spec, FIELDS);
        for name in ["service", "instanceUnit", "instances"] {
            if !spec::given(spec, name) {
                faults.push(format!("`{name}` is missing"));
            }
        }
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("the count is what was asked for; another EcsScale sets another one")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(SCALE);
        let result = go_on(cx).await;
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let state: State = cx.saved()?;
        if let Some(reasons) = state.resize.evidence() {
            cx.warn(SCALE, format!("Tasks stopped because: {reasons}"));
        }
        if let (Some(Target { before, desired }), true) = (state.target, state.resize.told()) {
            cx.warn(
                SCALE,
                format!("The service keeps its desired count of {desired}; it was {before} before"),
            );
        }
        Ok(())
    }
}

async fn go_on(cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
    let name = required(cx.spec(), "service")?;
    let site = Site::of_step(cx).await?;
    let mut state: State = cx.saved()?;
    let target = match state.resize.told() {
        true => state.target.clone(),
        false => Some(set(cx, &site, &name, &mut state).await?),
    };
    let Some(target) = target else {
        return Err(cannot(&site, &name, "its count was not written down"));
    };
    if spec::flag(cx.spec(), "skipSteadyStateCheck")? {
        cx.info(SCALE, "Skipped Steady State Check");
        return Ok(ended(cx, &name, &target));
    }
    let pause = state.resize.look(cx, &site, &name, SCALE).await?;
    cx.save(&state).await?;
    if let Some(pause) = pause {
        return Ok(Progress::Again(pause));
    }
    beside::recount_if_ours(cx, &site, &name).await?;
    Ok(ended(cx, &name, &target))
}

/// Gives the service its count, once.
async fn set(
    cx: &mut StepContext<'_>,
    site: &Site,
    name: &str,
    state: &mut State,
) -> Result<Target, Failure> {
    let found = active(site, name).await?;
    let target = match &state.target {
        Some(target) => target.clone(),
        None => aim(cx, site, name, &found)?,
    };
    if target.desired != target.before && !deployed(cx, name)? {
        cx.keeps(Kept {
            holder: format!("service {name} in {site}"),
            unit: "tasks".to_owned(),
            had: target.before,
            has: target.desired,
            by: cx.step().step_type.clone(),
        });
    }
    // A later call must not take a percentage of what this one sets.
    state.target = Some(target.clone());
    cx.save(state).await?;
    let service = (name, &*found);
    let resize = &mut state.resize;
    let told = resize.tell(cx, site, service, target.desired, SCALE).await;
    unless_refused(cx, told, state).await?;
    cx.save(state).await?;
    Ok(target)
}

/// Whether a rolling deployment of the stage came before: its rollback brings the count back too.
fn deployed(cx: &StepContext<'_>, name: &str) -> Result<bool, Failure> {
    let deployments = cx.saved_by_all::<rolling_deploy::State>("EcsRollingDeploy")?;
    let mut data = deployments
        .iter()
        .filter_map(|state| state.rollback.as_ref());
    Ok(data.any(|data| data.service == name))
}

fn ended(cx: &mut StepContext<'_>, name: &str, target: &Target) -> Progress {
    cx.unit_ended(SCALE, true);
    Progress::Done(json!({"output": {
        "serviceName": name,
        "desiredCount": target.desired,
        "previousDesiredCount": target.before,
    }}))
}

async fn active(site: &Site, name: &str) -> Result<Box<Described>, Failure> {
    let why = match describe(site, name).await? {
        Standing::Active(found) => return Ok(found),
        Standing::Draining => "it is being deleted",
        Standing::Absent => "it does not exist; check `service`, `cluster` and `region`",
    };
    Err(cannot(site, name, why))
}

/// What the step is to set, from the service as its first attempt found it.
fn aim(
    cx: &StepContext<'_>,
    site: &Site,
    name: &str,
    found: &Described,
) -> Result<Target, Failure> {
    if found.json["schedulingStrategy"] == "DAEMON" {
        let why = "its `schedulingStrategy` is DAEMON, and AWS runs one task on every instance";
        return Err(cannot(site, name, why));
    }
    let earlier: Option<State> = cx.saved_by_first_attempt()?;
    let earlier = earlier.and_then(|state| state.target);
    let now = i64::from(found.service.desired_count());
    let before = earlier.map_or(now, |target| target.before);
    let unit = spec::choice(cx.spec(), "instanceUnit", UNITS)?;
    let unit = unit.ok_or_else(|| missing("instanceUnit"))?;
    let instances = spec::count(cx.spec(), "instances")?;
    let instances = instances.ok_or_else(|| missing("instances"))?;
    Ok(Target {
        before,
        desired: spec::tasks(instances, unit, before),
    })
}

fn required(spec: &Value, name: &str) -> Result<String, Failure> {
    spec::text(spec, name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Failure {
    crate::deployment::invalid(format!("`{name}` of EcsScale is missing or empty."))
}

fn cannot(site: &Site, name: &str, why: &str) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!("Cannot scale service {name} in {site}: {why}."),
        left_behind: None,
    }
}
