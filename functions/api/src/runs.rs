//! The engine's use cases as requests need them.

use slipway_engine::abort::abort_run;
use slipway_engine::error::RunError;
use slipway_engine::error_name::ErrorName;
use slipway_engine::start::{StartRun, prepare, start_run};
use slipway_steps::registry::STEP_TYPES;
use slipway_store::record::{EntityRecord, RunRecord};

use crate::Deps;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};

/// Starts a run of a pipeline with runtime inputs.
pub(crate) async fn start(
    deps: &Deps,
    caller: &Caller,
    pipeline: &EntityRecord,
    inputs: Option<String>,
) -> ApiResult<RunRecord> {
    Ok(start_run(&deps.runs, request(caller, pipeline, inputs), &STEP_TYPES).await?)
}

/// The plan that a run would have if it were started now, as text.
pub(crate) async fn plan(
    deps: &Deps,
    caller: &Caller,
    pipeline: &EntityRecord,
    inputs: Option<String>,
) -> ApiResult<String> {
    let request = request(caller, pipeline, inputs);
    let (plan, _) = prepare(&deps.runs, &request, &STEP_TYPES).await?;
    Ok(slipway_plan::text(&plan))
}

fn request(caller: &Caller, pipeline: &EntityRecord, inputs_yaml: Option<String>) -> StartRun {
    StartRun {
        scope: pipeline.scope.clone(),
        pipeline: pipeline.id.clone(),
        inputs_yaml,
        principal: caller.principal.clone(),
        trigger: "MANUAL".to_owned(),
    }
}

/// Notes that a run shall stop. One that ended in the meantime needs nothing more.
pub(crate) async fn abort(deps: &Deps, caller: &Caller, run: &RunRecord) -> ApiResult<()> {
    match abort_run(&deps.runs, &run.id, &caller.principal).await {
        Err(error) if error.name() == ErrorName::Conflict => Ok(()),
        other => Ok(other?),
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        if error.name().rest_code() == "SERVICE_UNAVAILABLE" {
            tracing::warn!(error = %error.full_text(), "a use case failed");
        }
        Self::new(error.name(), error.to_string())
    }
}
