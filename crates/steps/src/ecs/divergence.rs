//! Tells where the account and Slipway's records disagree about what runs: somebody else deployed, a deployment ended
//! half way, or the records were restored from a backup that is older than the account (case F21). Nothing is refused for
//! it: what is in the account is what a rollback brings back.

use serde_json::Value;

use super::site::Site;
use super::task_definition::short;
use crate::context::{StepContext, store_failure};
use slipway_model::status::Failure;

/// Warns of it in the run where a service runs another task definition than the records say.
///
/// # Errors
/// When the store cannot be reached.
pub(super) async fn tell(
    cx: &mut StepContext<'_>,
    site: &Site,
    (name, found): (&str, &Value),
    unit: &'static str,
) -> Result<(), Failure> {
    let stage = cx.stage();
    let (Some(service), Some(environment), Some(infrastructure)) =
        (&stage.service, &stage.environment, &stage.infrastructure)
    else {
        return Ok(());
    };
    let place = (
        &service.identifier,
        &environment.identifier,
        &infrastructure.identifier,
    );
    let noted = cx.store().find_deployed(&cx.plan().scope, place).await;
    let noted = noted.map_err(|error| store_failure("read what was deployed", &error))?;
    let Some(noted) = noted else {
        return Ok(());
    };
    // A record of another service, cluster or region is about another place.
    let here = noted.target["serviceName"] == name
        && noted.target["cluster"] == site.cluster
        && noted.target["region"] == site.aws.region;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (expected, runs) = (
        text(&noted.target["taskDefinitionArn"]),
        text(&found["taskDefinition"]),
    );
    if !here || expected.is_empty() || runs.is_empty() || expected == runs {
        return Ok(());
    }
    let warning = format!(
        "Service {name} in {site} runs {}, and Slipway's records say {} (run {}): somebody else deployed, a deployment \
         ended half way, or the records were restored from an older backup. The deployment goes on; a rollback brings \
         back what runs now.",
        short(&runs),
        short(&expected),
        noted.run
    );
    cx.warn_of_run(unit, &warning).await
}
