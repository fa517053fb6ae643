//! `AsgShiftTraffic`: the new version gets a share of the requests of production.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::site::Site;
use super::super::{invalid, told};
use super::deploy::State as Deployed;
use super::release::release;
use crate::context::StepContext;
use crate::deployment::spec::{self, Kind};
use crate::step::{Progress, Step, Undo};
use crate::variable::is_expression;

/// The command unit.
const SHIFT: &str = "Shift Traffic";

/// The step.
pub struct ShiftTraffic;

#[async_trait]
impl Step for ShiftTraffic {
    fn step_type(&self) -> &'static str {
        "AsgShiftTraffic"
    }

    fn units(&self) -> &'static [&'static str] {
        &[SHIFT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let known = [("weight", Kind::Count), ("downsizeOldAsg", Kind::Flag)];
        let mut faults = spec::check(spec, &known);
        let weight = &spec["weight"];
        if !spec::given(spec, "weight") {
            faults.push("`weight` is missing".to_owned());
        } else if faults.is_empty()
            && !weight.as_str().is_some_and(is_expression)
            && let Err(why) = self::weight(spec)
        {
            faults.extend(
                why.message
                    .strip_prefix("Invalid request: ")
                    .map(|why| why.trim_end_matches('.').to_owned()),
            );
        }
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Step("AsgBlueGreenRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(SHIFT);
        let result = shift(cx).await;
        told(cx, self.units(), result)
    }
}

fn weight(spec: &Value) -> Result<i32, Failure> {
    let weight = spec::count(spec, "weight")?;
    let weight = weight.ok_or_else(|| invalid("`weight` is missing."))?;
    let fits = i32::try_from(weight).ok().filter(|weight| *weight <= 100);
    fits.ok_or_else(|| invalid("`weight` must be from 0 to 100."))
}

async fn shift(cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
    let deployed = cx.saved_by::<Deployed>("AsgBlueGreenDeploy")?;
    let Some((sides, state)) = deployed.and_then(|(_, state)| state.deployed()) else {
        return Err(invalid(
            "there is no traffic to shift: no AsgBlueGreenDeploy step of this stage has succeeded before.",
        ));
    };
    let weight = weight(cx.spec())?;
    if let Some(routes) = sides.routes.iter().find(|routes| routes.stage.is_some()) {
        return Err(invalid(format!(
            "listener rule {} is one of two: traffic shifts within one rule that has both target groups. Leave the \
             stage listener out of AsgBlueGreenDeploy, or use AsgBlueGreenSwapService.",
            routes.prod.told()
        )));
    }
    let site = Site::of_stage(cx).await?;
    // The rollback must know that requests may have moved.
    cx.save(&json!({"moved": true})).await?;
    let downsizes = spec::flag(cx.spec(), "downsizeOldAsg")?;
    if sides.old.is_none() {
        cx.info(
            SHIFT,
            "Nothing to shift: this is the first deployment, which serves already",
        );
    } else {
        for routes in &sides.routes {
            routes.shift(cx, &site, weight, SHIFT).await?;
        }
        if weight == 100 {
            let what = (&sides, state.version.as_ref());
            release(cx, &site, what, downsizes, SHIFT).await?;
        } else if downsizes {
            let why =
                "The old group is not downsized: it still gets requests. Downsize it at weight 100";
            cx.warn(SHIFT, why);
        }
    }
    cx.info(SHIFT, "Traffic Shift Finished Successfully");
    cx.unit_ended(SHIFT, true);
    let (prod, stage) = match (weight, sides.old_name()) {
        (100, old) => (Some(sides.new.as_str()), old),
        (_, Some(old)) => (Some(old), Some(sides.new.as_str())),
        (_, None) => (Some(sides.new.as_str()), None),
    };
    let named = |name: Option<&str>| name.map(|name| json!({"autoScalingGroupName": name}));
    Ok(Progress::Done(json!({
        "output": {"prodAsg": named(prod), "stageAsg": named(stage), "weight": weight},
    })))
}
