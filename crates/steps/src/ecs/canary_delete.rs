//! `EcsCanaryDelete`: deletes the canary that `EcsCanaryDeploy` created, in this run or an earlier one.
//!
//! It reads no manifest: what is a canary stands in the record of what was deployed, with the task definition
//! that it was given. So it does nothing where there is none, and never deletes a service that runs something
//! else by now.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::{ErrorType, Failure};

use super::beside::{self, Beside, Role};
use super::flags::check_flags;
use super::removal::{self, Removal};
use super::service::Described;
use super::site::Site;
use super::task_definition::short;
use crate::context::StepContext;
use crate::deployment::wrong;
use crate::step::{Progress, Step, Undo};

/// The command unit.
const DELETE: &str = "Delete";

/// The step.
pub struct CanaryDelete;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    removal: Removal,
    /// Canaries that are gone.
    deleted: Vec<String>,
}

#[async_trait]
impl Step for CanaryDelete {
    fn step_type(&self) -> &'static str {
        "EcsCanaryDelete"
    }

    fn units(&self) -> &'static [&'static str] {
        &[DELETE]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check_flags(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it is itself the undoing of EcsCanaryDeploy")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(DELETE);
        let site = Site::of_stage(cx).await?;
        let mut state: State = cx.saved()?;
        loop {
            let mut canaries = beside::noted(cx, &site).await?;
            canaries.retain(|beside| beside.role == Role::Canary);
            let Some(canary) = canaries.first() else {
                return Ok(Progress::Done(ended(cx, &state)));
            };
            let gone = delete(cx, &site, canary, &mut state).await;
            let gone = gone.map_err(|failure| {
                let failure = left(failure, canary, &site);
                cx.error(DELETE, &failure.message);
                failure
            })?;
            cx.save(&state).await?;
            if !gone {
                return Ok(Progress::Again(removal::PAUSE));
            }
        }
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let site = Site::of_stage(cx).await?;
        let mut canaries = beside::noted(cx, &site).await?;
        canaries.retain(|beside| beside.role == Role::Canary);
        let Some(canary) = canaries.first() else {
            return Ok(());
        };
        let unended = "The deletion did not end: look at the service and its tasks";
        cx.error(DELETE, unended);
        Err(left(wrong(format!("{unended}.")), canary, &site))
    }
}

/// Goes on deleting; `true` when the canary is gone and forgotten.
async fn delete(
    cx: &mut StepContext<'_>,
    site: &Site,
    canary: &Beside,
    state: &mut State,
) -> Result<bool, Failure> {
    let name = canary.service_name.as_str();
    let ours = |found: &Described| match found.service.task_definition() {
        runs if canary.runs(runs) => Ok(()),
        runs => Err(another(site, canary, runs)),
    };
    if !state.removal.go_on(cx, (site, name), DELETE, ours).await? {
        return Ok(false);
    }
    beside::remove(cx, site, name).await?;
    cx.info(
        DELETE,
        match state.removal.was_there() {
            true => format!("Canary service {name} deleted"),
            false => format!("Canary service {name} does not exist: nothing is left"),
        },
    );
    state.deleted.push(name.to_owned());
    state.removal = Removal::default();
    Ok(true)
}

fn ended(cx: &mut StepContext<'_>, state: &State) -> Value {
    if state.deleted.is_empty() {
        cx.info(DELETE, "There is no canary service to delete");
    }
    cx.unit_ended(DELETE, true);
    match state.deleted.last() {
        Some(name) => json!({"output": {"serviceName": name}}),
        None => json!({}),
    }
}

fn another(site: &Site, canary: &Beside, runs: Option<&str>) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!(
            "Service {} in {site} is not deleted: it runs {}, and the canary was deployed with {}. Somebody or \
             something else has taken it over: delete it by hand if nobody needs it.",
            canary.service_name,
            short(runs.unwrap_or("an unknown task definition")),
            short(&canary.task_definition_arn),
        ),
        left_behind: None,
    }
}

/// A failed deletion says what a person must look at.
fn left(failure: Failure, canary: &Beside, site: &Site) -> Failure {
    let left = format!(
        "canary service {} in {site} may still exist",
        canary.service_name
    );
    Failure {
        left_behind: Some(left),
        ..failure
    }
}
