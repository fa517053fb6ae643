//! Takes failed runs up again at the stage that failed (FEATURES 22; docs platform/pipelines/failure-handling/
//! resume-pipeline-deployments): a new run of the pipeline as it is now, that takes over what the stages before
//! did.

mod choice;

use std::collections::BTreeSet;
use std::sync::Arc;

use slipway_model::id::{EntityId, PrincipalId, RunId, StageId};
use slipway_plan::Plan;
use slipway_store::StoreError;
use slipway_store::record::{Again, Origin, RunRecord, StageSummary};

use crate::copy::copy_summaries;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::gather::{AsBefore, SourceReader};
use crate::rerun::branch_of;
use crate::runs::{Runs, turns_in, unrolled_by};
use crate::start::{Fired, StartRun, StepTypes, launch, prepare, record};

/// A run that failed is to go on.
#[derive(Clone, Debug)]
pub struct RetryRun {
    /// The run.
    pub run: RunId,
    /// The pipeline that it is said to be of.
    pub pipeline: EntityId,
    /// Stages to go on from, as the pipeline or the plan calls them: one, or some of a parallel block. None for
    /// those that failed.
    pub stages: Vec<String>,
    /// Whether stages beside them that succeeded run again too.
    pub all: bool,
    /// Runtime inputs; those of the run where none are given.
    pub inputs_yaml: Option<String>,
    /// Who asks.
    pub principal: PrincipalId,
    /// What people are told about it.
    pub notes: String,
}

/// Where a run can be taken up again.
#[derive(Clone, Debug, PartialEq)]
pub struct Resumable {
    /// Groups of stages, up to the first that failed; each can be retried from.
    pub groups: Vec<Vec<StageSummary>>,
    /// Why it cannot be, where there are no groups.
    pub refusal: Option<String>,
}

/// Where a run can be taken up again, or why it cannot be.
///
/// # Errors
/// When the store cannot be read.
pub async fn resumable(runs: &Runs, run: &RunRecord) -> Result<Resumable, RunError> {
    let refused = |why| Resumable {
        groups: Vec::new(),
        refusal: Some(why),
    };
    if let Err(why) = choice::may_retry(run, runs.clock.now_ms()) {
        return Ok(refused(why));
    }
    if let Some(newer) = newer(runs, run).await? {
        return Ok(refused(retried_by(&run.id, &newer)));
    }
    let (_, plan) = runs.load(&run.id).await?;
    Ok(match choice::groups(&plan, &run.stages) {
        Ok(groups) => Resumable {
            groups,
            refusal: None,
        },
        Err(why) => refused(why),
    })
}

/// A run, the runs that it is a retry of, and its own retries; oldest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn history(runs: &Runs, run: &RunRecord) -> Result<Vec<RunRecord>, RunError> {
    let root = run.root();
    let chain = runs.store.list_retries(root).await;
    let mut found = Vec::new();
    for id in chain.doing(|| format!("list the retries of run {root}"))? {
        let record = runs.store.find_run(&id).await;
        found.extend(record.doing(|| format!("read run {id}"))?);
    }
    Ok(found)
}

/// The newest retry of the chain that a run belongs to, where it is another run.
async fn newer(runs: &Runs, run: &RunRecord) -> Result<Option<RunId>, RunError> {
    let root = run.root();
    let chain = runs.store.list_retries(root).await;
    let chain = chain.doing(|| format!("list the retries of run {root}"))?;
    Ok(chain.into_iter().next_back().filter(|last| *last != run.id))
}

/// Plans the pipeline anew and starts a run that takes over what stages did that are not to run again. Its record says
/// what that is; their nodes are the first thing that the run itself writes ([`crate::plan_run`]).
///
/// # Errors
/// `Conflict` when the run cannot be retried: it has not failed, is too old, was retried before, or its pipeline
/// has other stages by now. `InvalidRequest` for stages that it cannot go on from. As [`crate::start::start_run`].
pub async fn retry_run(
    runs: &Runs,
    request: RetryRun,
    steps: &StepTypes,
    sources: &dyn SourceReader,
) -> Result<RunRecord, RunError> {
    let old = runs.run(&request.run).await?;
    check_run(runs, &old, &request).await?;
    let (_, old_plan) = runs.load_written(&old.id).await?;
    let nodes = runs.nodes(&old.id, None).await?;
    let mut start = StartRun {
        scope: old.scope.clone(),
        pipeline: old.pipeline.clone(),
        branch: branch_of(&old),
        inputs_yaml: inputs(runs, &old, request.inputs_yaml).await?,
        principal: request.principal,
        trigger: "MANUAL".to_owned(),
        chosen: old.chosen.clone(),
        origin: None,
        notes: request.notes,
        parent: None,
        fired: old_plan.trigger.clone().map(|facts| Fired {
            run: None,
            by: None,
            facts,
            turn: None,
        }),
    };
    // What was deployed once is deployed again, wherever its tag has moved since.
    let as_deployed = unrolled_by(Arc::clone(&old_plan), &nodes);
    let sources = AsBefore {
        inner: sources,
        plan: &as_deployed,
    };
    let prepared = prepare(runs, &start, steps, &sources).await?;
    let plan = &prepared.plan;
    choice::same_stages(&old.id, &old_plan, plan).map_err(conflict)?;
    // What it loops over was brought forth by stages that are taken over.
    let plan_taken = plan.unrolled(&|id| turns_in(&nodes, id));
    let old_plan = unrolled_by(old_plan, &nodes);
    let taken = taken(&old, (&old_plan, &plan_taken), &request.stages, request.all)?;
    let kept: BTreeSet<StageId> = taken.kept.iter().cloned().collect();
    let doer = |stage: StageId| (old.doer(&stage).clone(), stage);
    start.origin = Some(Origin {
        run: old.id.clone(),
        how: Again::Retry,
        root: old.root().clone(),
        root_started_ms: root_started_ms(&old),
        stages: taken.again,
        kept: taken
            .kept
            .into_iter()
            .map(doer)
            .map(|(run, stage)| (stage, run))
            .collect(),
    });
    let mut accepted = record(runs, start, &prepared).await?;
    let run = &mut accepted.run;
    copy_summaries(&mut run.stages, &old.stages, &kept);
    match launch(runs, accepted).await {
        Err(RunError::Store {
            source: StoreError::AlreadyExists { .. },
            ..
        }) => Err(conflict(format!(
            "run {} was retried by somebody else just now: retry that run",
            old.id
        ))),
        other => other,
    }
}

async fn check_run(runs: &Runs, old: &RunRecord, request: &RetryRun) -> Result<(), RunError> {
    if old.pipeline != request.pipeline {
        let message = format!(
            "run {} is a run of pipeline {}, not of {}",
            old.id, old.pipeline, request.pipeline
        );
        return Err(RunError::refused(ErrorName::InvalidRequest, message));
    }
    choice::may_retry(old, runs.clock.now_ms()).map_err(conflict)?;
    match newer(runs, old).await? {
        Some(newer) => Err(conflict(retried_by(&old.id, &newer))),
        None => Ok(()),
    }
}

fn taken(
    old: &RunRecord,
    (before, now): (&Plan, &Plan),
    stages: &[String],
    all: bool,
) -> Result<choice::Taken, RunError> {
    let failed: Vec<String>;
    let wanted = match stages {
        [] => {
            let groups = choice::groups(before, &old.stages).map_err(conflict)?;
            let last = groups.last().into_iter().flatten();
            let bad = last.filter(|stage| !choice::stands(stage));
            failed = bad.map(|stage| stage.id.to_string()).collect();
            &failed
        }
        stages => stages,
    };
    let taken = choice::taken(&old.id, now, &old.stages, wanted, all);
    taken.map_err(|message| RunError::refused(ErrorName::InvalidRequest, message))
}

/// The inputs that are given, or else those that an earlier run had.
pub(crate) async fn inputs(
    runs: &Runs,
    old: &RunRecord,
    given: Option<String>,
) -> Result<Option<String>, RunError> {
    let Some(digest) = old.inputs.as_deref().filter(|_| given.is_none()) else {
        return Ok(given);
    };
    let blob = runs.store.get_blob(digest).await;
    let blob = blob.doing(|| format!("read the inputs of run {}", old.id))?;
    let text = String::from_utf8(blob).map_err(|_| {
        let message = format!("the inputs of run {} are not text", old.id);
        RunError::refused(ErrorName::StoreUnreadable, message)
    })?;
    Ok(Some(text))
}

/// When the first run of the chain of retries began, in epoch milliseconds.
pub(crate) fn root_started_ms(run: &RunRecord) -> i64 {
    match &run.origin {
        Some(origin) if origin.how == Again::Retry => origin.root_started_ms,
        _ => run.started_ms,
    }
}

fn retried_by(run: &RunId, newer: &RunId) -> String {
    format!("run {run} was retried before: retry its newest retry, run {newer}")
}

fn conflict(message: String) -> RunError {
    RunError::refused(ErrorName::Conflict, message)
}
