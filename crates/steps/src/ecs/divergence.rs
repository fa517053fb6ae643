//! Tells where the account and Slipway's records disagree about what runs: somebody else deployed, a deployment ended
//! half way, or the records were restored from a backup that is older than the account (case F21). Nothing is refused for
//! it: what serves is what a rollback brings back.

use slipway_model::id::RunId;
use slipway_model::status::Failure;

use super::rollback::Before;
use super::site::Site;
use super::task_definition::short;
use crate::context::{StepContext, store_failure};

/// What is noted as deployed in a service.
pub(super) struct Noted {
    /// ARN of the task definition.
    pub(super) runs: String,
    run: RunId,
}

/// What is noted of a service; `None` where Slipway has not deployed it.
///
/// # Errors
/// When the store cannot be reached.
pub(super) async fn noted(
    cx: &StepContext<'_>,
    site: &Site,
    name: &str,
) -> Result<Option<Noted>, Failure> {
    let stage = cx.stage();
    let (Some(service), Some(environment), Some(infrastructure)) =
        (&stage.service, &stage.environment, &stage.infrastructure)
    else {
        return Ok(None);
    };
    let place = (
        &service.identifier,
        &environment.identifier,
        &infrastructure.identifier,
    );
    let noted = cx.store().find_deployed(&cx.plan().scope, place).await;
    let noted = noted.map_err(|error| store_failure("read what was deployed", &error))?;
    // A record of another service, cluster or region is about another place.
    let noted = noted.filter(|noted| {
        noted.target["serviceName"] == name
            && noted.target["cluster"] == site.cluster
            && noted.target["region"] == site.aws.region
    });
    Ok(noted.and_then(|noted| {
        let runs = noted.target["taskDefinitionArn"].as_str();
        let runs = runs.filter(|runs| !runs.is_empty())?.to_owned();
        Some(Noted {
            runs,
            run: noted.run,
        })
    }))
}

/// Warns of it in the run where a service runs another task definition than the records say, and where what it was told
/// last is not what serves.
///
/// # Errors
/// When the store cannot be reached.
pub(super) async fn tell(
    cx: &mut StepContext<'_>,
    site: &Site,
    (name, before): (&str, &Before),
    noted: Option<&Noted>,
    unit: &'static str,
) -> Result<(), Failure> {
    let runs = before.task_definition();
    let other = noted.filter(|noted| noted.runs != runs && !runs.is_empty());
    let warning = match (&before.passed_over, other) {
        (Some(passed_over), other) => {
            let records = match (noted, other) {
                (Some(noted), None) => format!(", as Slipway's records say (run {})", noted.run),
                (_, Some(other)) => format!(
                    "; Slipway's records say {} (run {})",
                    short(&other.runs),
                    other.run
                ),
                (None, None) => String::new(),
            };
            format!(
                "Service {name} in {site} was told to run {}, which has not come up ({}): {} serves, with {} tasks\
                 {records}. The deployment goes on; a rollback brings back {}.",
                passed_over.short(),
                passed_over.came,
                short(runs),
                passed_over.serving,
                short(runs)
            )
        }
        (None, Some(other)) => format!(
            "Service {name} in {site} runs {}, and Slipway's records say {} (run {}): somebody else deployed, a \
             deployment ended half way, or the records were restored from an older backup. The deployment goes on; a \
             rollback brings back what runs now.",
            short(runs),
            short(&other.runs),
            other.run
        ),
        (None, None) => return Ok(()),
    };
    cx.warn_of_run(unit, &warning).await
}
