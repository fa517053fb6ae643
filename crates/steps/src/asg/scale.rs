//! `AsgScale`: gives a group another number of instances, without a deployment.
//!
//! A percentage is of the count that the group was to have when the step first looked, also when it is retried. The
//! step takes nothing back: Harness has no rollback for it.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_engine::kept::Kept;
use slipway_model::status::Failure;

use super::group::{self, Group, Standing};
use super::instances::{self, Change};
use super::manifest::group_of;
use super::rolling_deploy;
use super::site::Site;
use super::spec::{check_selection, selected};
use super::steady::{Goal, Stay, Steady};
use super::{told, wrong};
use crate::context::StepContext;
use crate::deployment::spec::{self, Kind};
use crate::deployment::unless_refused;
use crate::step::{Progress, Step, Undo};

/// The command unit.
const SCALE: &str = "Scale";

/// Fields of the spec.
const FIELDS: &[(&str, Kind)] = &[
    ("asgName", Kind::Text),
    ("connectorRef", Kind::Text),
    ("instanceSelection", Kind::Other),
    ("region", Kind::Text),
    ("skipSteadyStateCheck", Kind::Flag),
];

/// The step.
pub struct Scale;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    /// The count before and the count that is asked for, once the group was seen.
    target: Option<(i64, i64)>,
    /// Whether AWS was told.
    told: bool,
    steady: Steady,
}

#[async_trait]
impl Step for Scale {
    fn step_type(&self) -> &'static str {
        "AsgScale"
    }

    fn units(&self) -> &'static [&'static str] {
        &[SCALE]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let mut faults = spec::check(spec, FIELDS);
        faults.extend(check_selection(spec));
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("the count is what was asked for; another AsgScale sets another one")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(SCALE);
        let result = go_on(cx).await;
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let state: State = cx.saved()?;
        let steady = &state.steady;
        for why in [steady.suspended(), steady.held()].into_iter().flatten() {
            cx.warn(SCALE, why);
        }
        if let Some(reasons) = steady.evidence() {
            cx.warn(SCALE, reasons);
        }
        Ok(())
    }
}

async fn go_on(cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
    let mut state: State = cx.saved()?;
    let name = group_of(cx)?;
    let site = Site::of_step(cx).await?;
    if !state.told {
        set(cx, &site, &name, &mut state).await?;
    }
    let Some((before, desired)) = state.target else {
        return Err(wrong(format!(
            "The count of Auto Scaling group {name} was not written down."
        )));
    };
    if spec::flag(cx.spec(), "skipSteadyStateCheck")? {
        cx.info(SCALE, "Skipped Steady State Check");
    } else {
        let goal = Goal {
            group: &name,
            desired,
            version: None,
            only: true,
            stay: Stay::No,
            unit: SCALE,
        };
        let pause = state.steady.look(cx, &site, goal).await?;
        cx.save(&state).await?;
        if let Some(pause) = pause {
            return Ok(Progress::Again(pause));
        }
        recount(cx, &site, &name).await?;
    }
    cx.unit_ended(SCALE, true);
    Ok(Progress::Done(json!({"output": {
        "asg": {"autoScalingGroupName": name},
        "desiredCapacity": desired,
        "previousDesiredCapacity": before,
    }})))
}

/// Gives the group its count, once.
async fn set(
    cx: &mut StepContext<'_>,
    site: &Site,
    name: &str,
    state: &mut State,
) -> Result<(), Failure> {
    let Standing::There(found) = group::describe(site, name).await? else {
        return Err(wrong(format!(
            "Cannot scale Auto Scaling group {name} in {site}: it does not exist or is being deleted; check `asgName` \
             and `region`."
        )));
    };
    let (before, desired) = match state.target {
        Some(target) => target,
        None => aim(cx, &found)?,
    };
    let sizes = found.sizes();
    if !(sizes.min..=sizes.max).contains(&desired) {
        return Err(wrong(format!(
            "Cannot scale Auto Scaling group {name} in {site} to {desired} instances: it has at least {} and at most {}. \
             Deploy it with other bounds, or ask for a number between them.",
            sizes.min, sizes.max
        )));
    }
    if desired != before && !deployed(cx, name)? {
        cx.keeps(Kept {
            holder: format!("Auto Scaling group {name} in {site}"),
            unit: "instances".to_owned(),
            had: before,
            has: desired,
            by: cx.step().step_type.clone(),
        });
    }
    // A later call must not take a percentage of what this one sets.
    state.target = Some((before, desired));
    cx.save(state).await?;
    if sizes.desired == desired {
        cx.info(
            SCALE,
            format!("Asg {name} is to have {desired} instances already"),
        );
    } else {
        cx.info(
            SCALE,
            format!(
                "Scaling Asg {name} from {} to {desired} instances",
                sizes.desired
            ),
        );
        let request = json!({"AutoScalingGroupName": name, "DesiredCapacity": desired, "HonorCooldown": false});
        let doing = format!("scale Auto Scaling group {name}");
        let told = site.scaling("SetDesiredCapacity", &request, &doing).await;
        unless_refused(cx, told, state).await?;
    }
    state.told = true;
    cx.save(state).await
}

/// Whether a rolling deployment of the stage came before: its rollback brings the count back too.
fn deployed(cx: &StepContext<'_>, name: &str) -> Result<bool, Failure> {
    let deployments = cx.saved_by_all::<rolling_deploy::State>("AsgRollingDeploy")?;
    let mut data = deployments
        .iter()
        .filter_map(|state| state.rollback.as_ref());
    Ok(data.any(|data| data.group == name))
}

fn aim(cx: &StepContext<'_>, found: &Group) -> Result<(i64, i64), Failure> {
    let earlier: Option<State> = cx.saved_by_first_attempt()?;
    let earlier = earlier.and_then(|state| state.target);
    let before = earlier.map_or(found.sizes().desired, |(before, _)| before);
    Ok((before, selected(cx.spec(), before)?))
}

/// Counts the instances anew where the group is one that this stage's service deployed.
async fn recount(cx: &mut StepContext<'_>, site: &Site, name: &str) -> Result<(), Failure> {
    let noted = instances::noted(cx).await?;
    let groups = noted.as_ref().map(instances::groups).unwrap_or_default();
    let mine: Vec<_> = groups
        .into_iter()
        .filter(|group| group.name == name)
        .collect();
    let here = noted.is_some_and(|noted| noted.target["region"] == site.aws.region.as_str());
    if here && !mine.is_empty() {
        instances::note(cx, site, (&mine, &[]), Change::Beside).await?;
    }
    Ok(())
}
