//! `AsgBlueGreenSwapService`: requests of production go to the new version, those of stage to the old one.

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

/// The command unit.
const SWAP: &str = "Swap Service";

/// The step.
pub struct BlueGreenSwapService;

#[async_trait]
impl Step for BlueGreenSwapService {
    fn step_type(&self) -> &'static str {
        "AsgBlueGreenSwapService"
    }

    fn units(&self) -> &'static [&'static str] {
        &[SWAP]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        spec::check(spec, &[("downsizeOldAsg", Kind::Flag)])
    }

    fn undo(&self) -> Undo {
        Undo::Step("AsgBlueGreenRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(SWAP);
        let result = swap(cx).await;
        told(cx, self.units(), result)
    }
}

async fn swap(cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
    let deployed = cx.saved_by::<Deployed>("AsgBlueGreenDeploy")?;
    let Some((sides, state)) = deployed.and_then(|(_, state)| state.deployed()) else {
        return Err(invalid(
            "there is nothing to swap: no AsgBlueGreenDeploy step of this stage has succeeded before.",
        ));
    };
    let site = Site::of_stage(cx).await?;
    // The rollback must know that requests may have moved.
    cx.save(&json!({"moved": true})).await?;
    match sides.old_name() {
        None => cx.info(
            SWAP,
            "Nothing to swap: this is the first deployment, which serves already",
        ),
        Some(_) => {
            for routes in &sides.routes {
                routes.shift(cx, &site, 100, SWAP).await?;
            }
            let downsizes = spec::flag(cx.spec(), "downsizeOldAsg")?;
            let what = (&sides, state.version.as_ref());
            release(cx, &site, what, downsizes, SWAP).await?;
        }
    }
    cx.info(SWAP, "Swapped Service Finished Successfully");
    cx.unit_ended(SWAP, true);
    let named = |name: Option<&str>| name.map(|name| json!({"autoScalingGroupName": name}));
    Ok(Progress::Done(json!({
        "output": {
            "prodAsg": named(Some(&sides.new)),
            "stageAsg": named(sides.old_name()),
            "trafficShifted": true,
        },
    })))
}
