//! What a deployment takes the place of.

use serde::{Deserialize, Serialize};
use slipway_model::id::RunId;
use slipway_model::status::Failure;
use slipway_store::record::ReplacedRecord;

use crate::context::{StepContext, store_failure};

/// The deployment that another one replaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Replaced {
    /// The run that had deployed it.
    pub(crate) run: RunId,
    /// Its artifact.
    pub(crate) artifact: Option<String>,
    /// What that one had replaced.
    pub(crate) before: Option<ReplacedRecord>,
}

impl Replaced {
    /// What is noted as deployed where the stage deploys to.
    pub(crate) async fn read(cx: &StepContext<'_>) -> Result<Option<Self>, Failure> {
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
        let found = cx.store().find_deployed(&cx.plan().scope, place).await;
        let found = found.map_err(|error| store_failure("read what was deployed", &error))?;
        Ok(found.map(|deployed| Self {
            run: deployed.deployer().clone(),
            artifact: deployed.artifact,
            before: deployed.before,
        }))
    }
}

impl Replaced {
    /// What stands in the record of the deployment that replaces it, as far as it is known.
    pub(crate) fn record(known: Option<&Self>) -> ReplacedRecord {
        let known = known.map(|replaced| ReplacedRecord {
            run: Some(replaced.run.clone()),
            artifact: replaced.artifact.clone(),
        });
        known.unwrap_or_default()
    }
}
