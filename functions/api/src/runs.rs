//! The engine's use cases as requests need them.

use std::sync::Arc;

use slipway_engine::abort::abort_run;
use slipway_engine::error::RunError;
use slipway_engine::error_name::ErrorName;
use slipway_engine::form;
use slipway_engine::given::{Given, InGit, given};
use slipway_engine::remote;
use slipway_engine::rerun::{self, Rerun};
use slipway_engine::retry::{RetryRun, retry_run};
use slipway_engine::start::{StartRun, prepare, start_read};
use slipway_model::emit;
use slipway_model::entity::{self as language, Kind, Parsed};
use slipway_model::id::{EntityId, RunId};
use slipway_model::status::Status;
use slipway_plan::{Choice, Chosen, Plan, allows_choice, choices};
use slipway_steps::registry::STEP_TYPES;
use slipway_store::Page;
use slipway_store::record::{EntityRecord, RunRecord};

use crate::Deps;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};

/// Newest runs that are looked at for one with a plan.
const RECENT: usize = 20;

/// What a request gives to a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    /// Input sets and overlays, in order.
    pub(crate) sets: Vec<EntityId>,
    /// `pipeline:` YAML, which wins over the sets.
    pub(crate) own: Option<String>,
    /// The stages that run; all of them for `None`.
    pub(crate) chosen: Option<Chosen>,
    /// What people are told about the run.
    pub(crate) notes: String,
    /// The branch that the pipeline and its input sets are read from, where they are kept in Git.
    pub(crate) branch: Option<String>,
}

impl From<Option<String>> for Inputs {
    fn from(own: Option<String>) -> Self {
        Self {
            own,
            ..Self::default()
        }
    }
}

/// A stored pipeline, read.
pub(crate) fn read(pipeline: &EntityRecord) -> ApiResult<Parsed> {
    let name = match &pipeline.git {
        Some(git) => git.path.as_str(),
        None => Kind::Pipeline.key(),
    };
    language::parse(name, &pipeline.yaml)
        .map_err(|found| ApiError::diagnostics(ErrorName::InvalidRequest, &found))
}

/// What a run of a pipeline asks for, as YAML; `None` when it asks for nothing.
pub(crate) async fn asked(deps: &Deps, pipeline: &EntityRecord) -> ApiResult<Option<String>> {
    let parsed = read(pipeline)?;
    let form = form::form(&deps.runs, &pipeline.scope, &parsed, &STEP_TYPES).await?;
    Ok(form.map(|tree| emit::to_yaml(&tree)))
}

/// A pipeline's YAML with its templates put in; to the letter when it has none.
pub(crate) async fn expanded(deps: &Deps, pipeline: &EntityRecord) -> ApiResult<String> {
    if !pipeline.yaml.contains("templateRef") {
        return Ok(pipeline.yaml.clone());
    }
    let parsed = read(pipeline)?;
    let whole = form::expanded(&deps.runs, &pipeline.scope, &parsed, &STEP_TYPES).await?;
    Ok(emit::to_yaml(&whole.tree))
}

/// The stages of a pipeline that may be chosen; `None` when it does not allow that.
pub(crate) async fn stages(deps: &Deps, pipeline: &EntityRecord) -> ApiResult<Option<Vec<Choice>>> {
    let parsed = read(pipeline)?;
    let whole = form::expanded(&deps.runs, &pipeline.scope, &parsed, &STEP_TYPES).await?;
    Ok(allows_choice(&whole).then(|| choices(&whole)))
}

/// Input sets and own inputs put together, and the pipeline with them filled in.
pub(crate) async fn put_together(
    deps: &Deps,
    pipeline: &EntityRecord,
    inputs: &Inputs,
) -> ApiResult<Given> {
    let parsed = read(pipeline)?;
    let own = inputs.own.as_deref();
    let git = InGit {
        sources: &*deps.sources,
        branch: inputs.branch.as_deref(),
    };
    Ok(given(
        &deps.runs,
        git,
        &pipeline.scope,
        &parsed,
        &inputs.sets,
        own,
        &STEP_TYPES,
    )
    .await?)
}

/// The one document that a run is started with.
async fn document(
    deps: &Deps,
    pipeline: &EntityRecord,
    inputs: &Inputs,
) -> ApiResult<Option<String>> {
    if inputs.sets.is_empty() {
        return Ok(inputs.own.clone());
    }
    let given = put_together(deps, pipeline, inputs).await?;
    Ok(given.inputs.map(|tree| emit::to_yaml(&tree)))
}

/// The pipeline of a request as it is: that of Git where it is kept there. A branch is refused for one that has none.
async fn read_now(
    deps: &Deps,
    pipeline: &EntityRecord,
    inputs: &Inputs,
) -> ApiResult<EntityRecord> {
    let branch = inputs.branch.as_deref();
    if let (Some(branch), None) = (branch, &pipeline.git) {
        let message = format!(
            "`{branch}`: pipeline [{}] is kept here, and not in Git: it has no branches; leave the branch out",
            pipeline.id
        );
        return Err(ApiError::field("branch", message));
    }
    let now = remote::read(&deps.runs, &*deps.sources, pipeline, branch).await?;
    remote::keep(&deps.runs, pipeline, &now).await?;
    Ok(now)
}

/// Starts a run of a pipeline with runtime inputs.
pub(crate) async fn start(
    deps: &Deps,
    caller: &Caller,
    pipeline: &EntityRecord,
    inputs: Inputs,
) -> ApiResult<RunRecord> {
    let pipeline = &read_now(deps, pipeline, &inputs).await?;
    let request = request(deps, caller, pipeline, inputs).await?;
    Ok(start_read(&deps.runs, request, pipeline, &STEP_TYPES, &*deps.sources).await?)
}

/// Starts a run that repeats another one of this pipeline.
pub(crate) async fn rerun(
    deps: &Deps,
    caller: &Caller,
    pipeline: &EntityRecord,
    of: &RunId,
    inputs: Inputs,
) -> ApiResult<RunRecord> {
    let request = Rerun {
        run: of.clone(),
        pipeline: pipeline.id.clone(),
        inputs_yaml: document(deps, pipeline, &inputs).await?,
        chosen: inputs.chosen,
        principal: caller.principal.clone(),
        notes: inputs.notes,
    };
    Ok(rerun::rerun(&deps.runs, request, &STEP_TYPES, &*deps.sources).await?)
}

/// Starts a run that goes on where another one failed.
pub(crate) async fn retry(deps: &Deps, request: RetryRun) -> ApiResult<RunRecord> {
    Ok(retry_run(&deps.runs, request, &STEP_TYPES, &*deps.sources).await?)
}

/// The plan that a run would have if it were started now.
pub(crate) async fn plan(
    deps: &Deps,
    caller: &Caller,
    pipeline: &EntityRecord,
    inputs: Inputs,
) -> ApiResult<Plan> {
    let pipeline = &read_now(deps, pipeline, &inputs).await?;
    let request = request(deps, caller, pipeline, inputs).await?;
    let prepared = prepare(&deps.runs, &request, &STEP_TYPES, &*deps.sources).await?;
    Ok(prepared.plan)
}

/// The newest run of a pipeline that was planned, with its plan.
pub(crate) async fn last_plan(
    deps: &Deps,
    pipeline: &EntityRecord,
) -> ApiResult<Option<(RunId, Arc<Plan>)>> {
    let newest = Page::first(RECENT);
    let runs = deps
        .store
        .list_runs(&pipeline.scope, Some(&pipeline.id), newest);
    for run in runs.await?.items {
        if let Some(digest) = &run.plan {
            // As it was decided: what is compared with it has not begun, so its run-time loops are whole too.
            let plan = deps.store.get_plan(digest).await?;
            return Ok(Some((run.id, plan)));
        }
    }
    Ok(None)
}

async fn request(
    deps: &Deps,
    caller: &Caller,
    pipeline: &EntityRecord,
    inputs: Inputs,
) -> ApiResult<StartRun> {
    Ok(StartRun {
        scope: pipeline.scope.clone(),
        pipeline: pipeline.id.clone(),
        inputs_yaml: document(deps, pipeline, &inputs).await?,
        branch: inputs.branch,
        principal: caller.principal.clone(),
        trigger: "MANUAL".to_owned(),
        parent: None,
        fired: None,
        chosen: inputs.chosen,
        origin: None,
        notes: inputs.notes,
    })
}

/// Notes that a run shall stop. One that was aborted needs nothing more; one that ended otherwise is refused.
pub(crate) async fn abort(deps: &Deps, caller: &Caller, run: &RunRecord) -> ApiResult<()> {
    let Err(error) = abort_run(&deps.runs, &run.id, &caller.principal).await else {
        return Ok(());
    };
    let ended = error.name() == ErrorName::Conflict;
    if ended && deps.store.get_run(&run.id).await?.status == Status::Aborted {
        return Ok(());
    }
    Err(error.into())
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        if error.name().rest_code() == "SERVICE_UNAVAILABLE" {
            tracing::warn!(error = %error.full_text(), "a use case failed");
        }
        // What a store says of itself is made for users: which disk or table to look at.
        let message = match &error {
            RunError::Store { source, .. } => format!("{error}: {source}"),
            RunError::Workflow { .. } => format!(
                "{error}: Step Functions did not do it; look at its quotas, or in local mode whether the disk is full"
            ),
            _ => error.to_string(),
        };
        let found = match &error {
            RunError::Faulty { faults } => faults.as_slice(),
            _ => &[],
        };
        Self::new(error.name(), message).noticed(found)
    }
}
