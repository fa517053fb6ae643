//! `AsgSteadyState`: waits until an instance refresh has ended, for rolling deployments that do not wait for the end of
//! old instances (`skipInstanceTermination`).

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::duration;
use slipway_model::status::Failure;

use super::group::{self, Standing};
use super::manifest::group_of;
use super::refresh::{self, Refresh};
use super::rolling_deploy::State as Deployed;
use super::site::Site;
use super::{invalid, told, wrong};
use crate::context::StepContext;
use crate::deployment::spec::{self, Kind, text};
use crate::step::{Progress, Step, Undo};
use crate::variable::is_expression;

/// The command unit.
const WAIT: &str = "Steady State Check";

/// Time between two looks where the step says nothing. Harness's documentation says 30 s in one place and 60 s in
/// another.
const PAUSE: Duration = Duration::from_secs(30);

/// The step.
pub struct SteadyState;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    refresh: Refresh,
}

#[async_trait]
impl Step for SteadyState {
    fn step_type(&self) -> &'static str {
        "AsgSteadyState"
    }

    fn units(&self) -> &'static [&'static str] {
        &[WAIT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let known = [("asgName", Kind::Text), ("pollingInterval", Kind::Text)];
        let mut faults = spec::check(spec, &known);
        let written = spec["pollingInterval"].as_str().is_some_and(is_expression);
        if faults.is_empty() && !written && pause(spec).is_err() {
            faults.push("`pollingInterval` must be a duration like `30s`".to_owned());
        }
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it only waits")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(WAIT);
        let result = go_on(cx).await;
        told(cx, self.units(), result)
    }
}

fn pause(spec: &Value) -> Result<Duration, Failure> {
    let Some(written) = text(spec, "pollingInterval") else {
        return Ok(PAUSE);
    };
    let parsed = duration::parse(&written);
    let parsed = parsed.map_err(|_| invalid("`pollingInterval` must be a duration like `30s`."))?;
    Ok(parsed.max(Duration::from_secs(1)))
}

async fn go_on(cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
    let mut state: State = cx.saved()?;
    let pause = pause(cx.spec())?;
    let deployed = cx.saved_by::<Deployed>("AsgRollingDeploy")?;
    let deployed = deployed
        .and_then(|(_, state)| Some((state.rollback?.group, state.refresh.id?, state.version?)));
    let name = match (text(cx.spec(), "asgName"), &deployed) {
        (Some(name), _) => name,
        (None, Some((name, ..))) => name.clone(),
        (None, None) => group_of(cx)?,
    };
    let site = Site::of_stage(cx).await?;
    let Standing::There(found) = group::describe(&site, &name).await? else {
        return Err(wrong(format!(
            "Auto Scaling group {name} in {site} does not exist or is being deleted; check `asgName`."
        )));
    };
    let own = deployed.filter(|(group, ..)| *group == name);
    if state.refresh.id.is_none() {
        let id = match own.as_ref().map(|(_, id, _)| id.clone()) {
            Some(id) => Some(id),
            None => refresh::newest(&site, &name)
                .await?
                .map(|one| one.id().to_owned()),
        };
        state.refresh.id = Some(id.ok_or_else(|| {
            wrong(format!(
                "Auto Scaling group {name} in {site} has no instance refresh to wait for. This step follows \
                 AsgRollingDeploy; canary and blue-green deployments have none."
            ))
        })?);
    }
    let goal = (found.sizes().desired, None);
    let again = state.refresh.look(cx, (&site, &name), goal, WAIT).await?;
    cx.save(&state).await?;
    if again.is_some() {
        return Ok(Progress::Again(pause));
    }
    if let Some((_, id, version)) = own
        && state.refresh.id.as_ref() == Some(&id)
    {
        refresh::judge(&site, &name, &version).await?;
    }
    cx.unit_ended(WAIT, true);
    Ok(Progress::Done(json!({
        "output": {"asg": {"autoScalingGroupName": name, "instanceRefreshId": state.refresh.id}},
    })))
}
