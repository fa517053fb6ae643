//! Runs a pipeline again as an earlier run did: a fresh run of the pipeline as it is now, with the inputs and
//! the chosen stages of that run where no others are given (docs platform/pipelines/re-run-with-no-input-changes).

use slipway_model::entity;
use slipway_model::id::{EntityId, PrincipalId, RunId};
use slipway_model::{Kind, Parsed};
use slipway_plan::Chosen;
use slipway_store::record::{Again, Origin, RunRecord};

use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::form::expanded;
use crate::gather::SourceReader;
use crate::retry::{inputs, root_started_ms};
use crate::runs::Runs;
use crate::start::{Fired, StartRun, StepTypes, start_run};

/// A run is to be repeated.
#[derive(Clone, Debug)]
pub struct Rerun {
    /// The run.
    pub run: RunId,
    /// The pipeline that it is said to be of.
    pub pipeline: EntityId,
    /// Runtime inputs; those of the run where none are given, and where the pipeline says that a rerun cannot
    /// change them (`fixedInputsOnRerun`).
    pub inputs_yaml: Option<String>,
    /// Stages to run; those of the run where none are given.
    pub chosen: Option<Chosen>,
    /// Who asks.
    pub principal: PrincipalId,
    /// What people are told about it.
    pub notes: String,
}

/// Starts a run that repeats another, whatever became of that one.
///
/// # Errors
/// `NotFound` without that run or its pipeline; as [`start_run`].
pub async fn rerun(
    runs: &Runs,
    request: Rerun,
    steps: &StepTypes,
    sources: &dyn SourceReader,
) -> Result<RunRecord, RunError> {
    let old = runs.run(&request.run).await?;
    if old.pipeline != request.pipeline {
        let message = format!(
            "run {} is a run of pipeline {}, not of {}",
            old.id, old.pipeline, request.pipeline
        );
        return Err(RunError::refused(ErrorName::InvalidRequest, message));
    }
    if let Some(origin) = old.undoes() {
        let message = format!(
            "run {} is the rollback of run {}: rerun that one, or run the pipeline",
            old.id, origin.run
        );
        return Err(RunError::refused(ErrorName::Conflict, message));
    }
    let given = match request.inputs_yaml {
        Some(_) if inputs_are_fixed(runs, &old, steps).await? => {
            tracing::info!(run.id = %old.id, "inputs of a rerun left out: the pipeline has fixedInputsOnRerun");
            None
        }
        given => given,
    };
    let start = StartRun {
        scope: old.scope.clone(),
        pipeline: old.pipeline.clone(),
        branch: branch_of(&old),
        inputs_yaml: inputs(runs, &old, given).await?,
        principal: request.principal,
        trigger: "MANUAL".to_owned(),
        chosen: request.chosen.or_else(|| old.chosen.clone()),
        origin: Some(Origin {
            run: old.id.clone(),
            how: Again::Rerun,
            root: old.root().clone(),
            root_started_ms: root_started_ms(&old),
            stages: Vec::new(),
            kept: Vec::new(),
        }),
        notes: request.notes,
        parent: None,
        fired: started_by_event(runs, &old).await?,
    };
    start_run(runs, start, steps, sources).await
}

/// The branch that the pipeline of a run was read from.
pub(crate) fn branch_of(run: &RunRecord) -> Option<String> {
    run.git.as_ref().and_then(|git| git.branch.clone())
}

/// What the event told that started a run: whoever repeats the run reads the same.
pub(crate) async fn started_by_event(
    runs: &Runs,
    old: &RunRecord,
) -> Result<Option<Fired>, RunError> {
    if old.plan.is_none() {
        return Ok(None);
    }
    let (_, plan) = runs.load_written(&old.id).await?;
    Ok(plan.trigger.clone().map(|facts| Fired {
        run: None,
        by: None,
        facts,
        turn: None,
    }))
}

/// Whether the pipeline, as it is now, keeps the inputs of its reruns; one that is made from a template says so
/// there.
async fn inputs_are_fixed(
    runs: &Runs,
    old: &RunRecord,
    steps: &StepTypes,
) -> Result<bool, RunError> {
    let (scope, id) = (&old.scope, &old.pipeline);
    let kind = Kind::Pipeline.key();
    let found = runs.store.find_entity(scope, kind, None, id).await;
    let Some(record) = found.doing(|| format!("read pipeline {id}"))? else {
        return Ok(false);
    };
    let written = entity::parse(id.as_str(), &record.yaml).map_err(RunError::faulty)?;
    let says = |pipeline: &Parsed| pipeline.body().get_text("fixedInputsOnRerun") == Some("true");
    if written.body().get("template").is_none() {
        return Ok(says(&written));
    }
    Ok(says(&expanded(runs, scope, &written, steps).await?))
}
