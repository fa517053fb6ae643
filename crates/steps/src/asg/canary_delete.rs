//! `AsgCanaryDelete`: takes the canary of this stage away, with its launch template. Without one it does nothing.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::canary_deploy::{State as DeployState, ours};
use super::group::Group;
use super::instances::{self, Change};
use super::removal::Removal;
use super::site::Site;
use super::{template, told, wrong};
use crate::context::StepContext;
use crate::deployment::spec;
use crate::step::{Progress, Step, Undo};

/// The command unit.
const DELETE: &str = "Delete";

/// The step.
pub struct CanaryDelete;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    removal: Removal,
}

#[async_trait]
impl Step for CanaryDelete {
    fn step_type(&self) -> &'static str {
        "AsgCanaryDelete"
    }

    fn units(&self) -> &'static [&'static str] {
        &[DELETE]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        spec::check(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it is itself the undoing of AsgCanaryDeploy")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(DELETE);
        let deployed = cx.saved_by::<DeployState>("AsgCanaryDeploy")?;
        let Some((name, version)) = deployed.and_then(|(_, state)| state.made()) else {
            cx.info(DELETE, "There is no canary to delete");
            return Ok(Progress::Done(json!({})));
        };
        let result = delete(cx, &name, version.as_ref()).await;
        let result = result.map_err(|failure| Failure {
            left_behind: Some(left(&name)),
            ..failure
        });
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let deployed = cx.saved_by::<DeployState>("AsgCanaryDeploy")?;
        let Some((name, _)) = deployed.and_then(|(_, state)| state.made()) else {
            return Ok(());
        };
        let unended = "The deletion did not end: look at the group and its instances";
        cx.error(DELETE, unended);
        Err(Failure {
            left_behind: Some(format!("{}.", left(&name))),
            ..wrong(format!("{unended}."))
        })
    }
}

/// What a person must look at when the deletion fails.
fn left(name: &str) -> String {
    format!("canary Auto Scaling group {name} may still exist")
}

async fn delete(
    cx: &mut StepContext<'_>,
    name: &str,
    version: Option<&template::Version>,
) -> Result<Progress, Failure> {
    let site = Site::of_stage(cx).await?;
    let mut state: State = cx.saved()?;
    let check = |found: &Group| ours(&site, found, None);
    let pause = state
        .removal
        .go_on(cx, (&site, name), DELETE, check)
        .await?;
    cx.save(&state).await?;
    if let Some(pause) = pause {
        return Ok(Progress::Again(pause));
    }
    if let Some(version) = version {
        template::delete(&site, version).await?;
    }
    instances::note(cx, &site, (&[], &[name]), Change::Beside).await?;
    cx.info(DELETE, "Deletion Finished Successfully");
    cx.unit_ended(DELETE, true);
    Ok(Progress::Done(json!({
        "output": {"asg": {"autoScalingGroupName": name}},
    })))
}
