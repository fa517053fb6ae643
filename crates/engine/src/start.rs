//! The use case that accepts a run: plan it, record it, start its execution.

use serde_json::Value;
use slipway_model::entity;
use slipway_model::id::{EntityId, PrincipalId, RunId, Scope};
use slipway_model::inputs::Unfilled;
use slipway_model::status::Status;
use slipway_model::{Diagnostic, Parsed, Severity, Tree, emit, inputs, yaml};
use slipway_plan::{CHAINED, Chosen, Plan, Request, Snapshot, resolve, wanted};
use slipway_store::record::{
    EntityRecord, GitPlace, Origin, ParentRecord, RunRecord, TriggerRecord,
};
use slipway_store::{Sequence, StillNewest, StoreError};

use crate::check;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::freeze;
use crate::gather::{SourceReader, gathered};
use crate::notes;
use crate::remote;
use crate::runs::{Runs, not_started};
use crate::stage::each_step;
use crate::tags;
use crate::unstarted::{catch_up, fall_behind, start_execution};

/// Trigger type of a run that a person starts.
pub(crate) const MANUAL: &str = "MANUAL";

/// What is to be run.
#[derive(Clone, Debug)]
pub struct StartRun {
    /// Where the pipeline lives.
    pub scope: Scope,
    /// The pipeline.
    pub pipeline: EntityId,
    /// The branch that the pipeline and its input sets are read from, where they are kept in Git; that of the pipeline
    /// itself for `None`.
    pub branch: Option<String>,
    /// Runtime inputs: YAML with the root `pipeline`, as Harness takes it.
    pub inputs_yaml: Option<String>,
    /// Who asks.
    pub principal: PrincipalId,
    /// `MANUAL`, ….
    pub trigger: String,
    /// The stages that run; all of them for `None`.
    pub chosen: Option<Chosen>,
    /// The run that it repeats, where it does.
    pub origin: Option<Origin>,
    /// What people are told about it; see [`crate::notes`].
    pub notes: String,
    /// The step of another run that it is a part of.
    pub parent: Option<Parent>,
    /// The event that starts it, where no person does.
    pub fired: Option<Fired>,
}

/// What an event gives to the run that it starts, and to those that repeat it.
#[derive(Clone, Debug)]
pub struct Fired {
    /// Id of the new run, made of the event and the trigger, so that one event starts one run; `None` for a run that
    /// repeats one.
    pub run: Option<RunId>,
    /// The trigger and the event; `None` for a run that repeats one.
    pub by: Option<TriggerRecord>,
    /// What `<+trigger.…>` stands for.
    pub facts: Value,
    /// The run starts only while this holds, so that nothing older starts behind something newer.
    pub turn: Option<StillNewest>,
}

/// The step that a run is a part of, and the id that it gave to the run.
#[derive(Clone, Debug)]
pub struct Parent {
    /// The step.
    pub step: ParentRecord,
    /// Id of the new run: the step finds it again by it after a crash.
    pub run: RunId,
}

/// The steps that this version runs; the engine does not know them.
#[derive(Clone, Copy)]
pub struct StepTypes {
    /// Whether steps of a type run.
    pub runnable: fn(&str) -> bool,
    /// Faults of the spec of a step of a type.
    pub faults: fn(&str, &Value) -> Vec<String>,
}

/// Plans and records a run and starts its execution. The record is written first: once it is there, the run
/// will run, even if starting fails now ([`crate::unstarted::start_accepted`]).
///
/// Fails with all faults of the pipeline at once, and `NotFound` if there is no such pipeline.
pub async fn start_run(
    runs: &Runs,
    request: StartRun,
    steps: &StepTypes,
    sources: &dyn SourceReader,
) -> Result<RunRecord, RunError> {
    let pipeline = pipeline(runs, &request, sources).await?;
    start_read(runs, request, &pipeline, steps, sources).await
}

/// As [`start_run`], of a pipeline that was read just now.
pub async fn start_read(
    runs: &Runs,
    request: StartRun,
    pipeline: &EntityRecord,
    steps: &StepTypes,
    sources: &dyn SourceReader,
) -> Result<RunRecord, RunError> {
    let prepared = prepare_read(runs, &request, pipeline, steps, sources).await?;
    if request.trigger != MANUAL && request.parent.is_none() {
        freeze::check_start(runs, &prepared.plan, &request).await?;
    }
    let accepted = record(runs, request, &prepared).await?;
    launch(runs, accepted).await
}

/// A pipeline as it would run now.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What it would do.
    pub plan: Plan,
    /// Its YAML with the inputs filled in.
    pub yaml: String,
    /// What it was read from, where it is kept in Git.
    pub git: Option<GitPlace>,
}

/// A run that is about to be accepted.
pub(crate) struct Accepted {
    /// Its record.
    pub(crate) run: RunRecord,
    /// Whether earlier runs of its pipeline wait for their start.
    pub(crate) behind: bool,
    /// As [`Fired::turn`].
    pub(crate) turn: Option<StillNewest>,
}

/// The record of a run that is about to be accepted, with its documents stored.
pub(crate) async fn record(
    runs: &Runs,
    request: StartRun,
    prepared: &Prepared,
) -> Result<Accepted, RunError> {
    let Prepared { plan, yaml, git } = prepared;
    notes::check(&request.notes)?;
    let store = &runs.store;
    let what = || format!("store the plan of pipeline {}", request.pipeline);
    let digest = store.put_plan(plan).await.doing(what)?;
    let yaml = store.put_blob(yaml.as_bytes()).await.doing(what)?;
    let inputs = match &request.inputs_yaml {
        Some(text) => Some(store.put_blob(text.as_bytes()).await.doing(what)?),
        None => None,
    };
    let sequence = number(runs, &request.scope, &request.pipeline).await?;
    let turn = request.fired.as_ref().and_then(|fired| fired.turn.clone());
    let mut run = RunRecord {
        id: own_id(&request).unwrap_or_else(|| RunId::new(uuid::Uuid::now_v7().to_string())),
        scope: request.scope,
        pipeline: request.pipeline,
        name: plan.name.clone(),
        sequence: sequence.number,
        status: Status::NotStarted,
        trigger_type: request.trigger,
        triggered_by: request.principal,
        started_ms: runs.clock.now_ms(),
        ended_ms: None,
        yaml,
        inputs,
        plan: Some(digest),
        failure: None,
        abort: None,
        signals: Vec::new(),
        parent: request.parent.map(|parent| parent.step),
        trigger: request.fired.and_then(|fired| fired.by),
        tags: Vec::new(),
        stages: plan.groups.iter().flatten().map(not_started).collect(),
        chosen: request.chosen,
        origin: request.origin,
        notes: request.notes,
        url: runs.url.clone(),
        git: git.clone(),
    };
    run.tags = tags::of_run(plan, &run);
    let behind = sequence.behind;
    Ok(Accepted { run, behind, turn })
}

/// The id that whoever asks for a run gives to it, to find it again after a crash.
fn own_id(request: &StartRun) -> Option<RunId> {
    let parent = request.parent.as_ref().map(|parent| parent.run.clone());
    parent.or_else(|| request.fired.as_ref()?.run.clone())
}

/// The number of a new run of a pipeline.
pub(crate) async fn number(
    runs: &Runs,
    scope: &Scope,
    pipeline: &EntityId,
) -> Result<Sequence, RunError> {
    let sequence = runs.store.next_sequence(scope, pipeline).await;
    sequence.doing(|| format!("number a run of pipeline {pipeline}"))
}

/// Writes the record of a run and starts its execution, behind those that were accepted before it and wait.
pub(crate) async fn launch(runs: &Runs, accepted: Accepted) -> Result<RunRecord, RunError> {
    let Accepted { run, behind, turn } = accepted;
    match runs.store.create_run_in_turn(&run, turn.as_ref()).await {
        // The step that it is a part of, or the event that starts it, has asked before, and was interrupted.
        Err(StoreError::AlreadyExists { .. }) if run.parent.is_some() || run.trigger.is_some() => {
            let found = runs.store.find_run(&run.id).await;
            let doing = || format!("record run {}", run.id);
            // Without a run, something newer took its turn.
            let overtaken = || StoreError::Conflict {
                what: format!("the turn of run {}", run.id),
            };
            return found
                .and_then(|found| found.ok_or_else(overtaken))
                .doing(doing);
        }
        created => created.doing(|| format!("record run {}", run.id))?,
    }
    announce(runs, &run, behind).await;
    Ok(run)
}

/// Starts the execution of a run that was recorded just now, behind those of its pipeline that wait for theirs. Where
/// that fails, it is started later.
pub(crate) async fn announce(runs: &Runs, run: &RunRecord, behind: bool) {
    tracing::info!(run.id = %run.id, pipeline.id = %run.pipeline, "run accepted");
    let started = match behind {
        true => catch_up(runs, &run.scope).await,
        false => start_execution(runs, &run.id).await.map(drop),
    };
    if let Err(error) = started {
        tracing::warn!(run.id = %run.id, error = %error.full_text(), "run accepted, not started yet");
        fall_behind(runs, run).await;
    }
}

/// A pipeline as it would run now.
///
/// Fails as [`start_run`] does.
pub async fn prepare(
    runs: &Runs,
    request: &StartRun,
    steps: &StepTypes,
    sources: &dyn SourceReader,
) -> Result<Prepared, RunError> {
    let pipeline = pipeline(runs, request, sources).await?;
    prepare_read(runs, request, &pipeline, steps, sources).await
}

/// The pipeline that is to be run, as it is stored, or as Git has it.
async fn pipeline(
    runs: &Runs,
    request: &StartRun,
    sources: &dyn SourceReader,
) -> Result<EntityRecord, RunError> {
    let place = (&request.scope, &request.pipeline);
    Box::pin(remote::pipeline(
        runs,
        sources,
        place,
        request.branch.as_deref(),
    ))
    .await
}

/// As [`prepare`], of a pipeline that was read just now.
async fn prepare_read(
    runs: &Runs,
    request: &StartRun,
    record: &EntityRecord,
    steps: &StepTypes,
    sources: &dyn SourceReader,
) -> Result<Prepared, RunError> {
    let id = &request.pipeline;
    let pipeline = entity::parse(&remote::name(record), &record.yaml).map_err(RunError::faulty)?;
    let given = match request
        .inputs_yaml
        .as_deref()
        .filter(|text| !text.trim().is_empty())
    {
        Some(text) => {
            Some(yaml::parse("inputs", text).map_err(|fault| RunError::faulty(vec![*fault]))?)
        }
        None => None,
    };
    let given: Vec<&Tree> = given.iter().collect();
    // Stages that do not run need no inputs; the plan looks at those of the others.
    let unfilled = match request.chosen {
        Some(_) => Unfilled::Keep,
        None => Unfilled::Fault,
    };
    let merged = inputs::merge_with(&pipeline, &given, unfilled).map_err(RunError::faulty)?;
    let plan = plan(runs, request, (&pipeline, &given), steps, sources).await?;
    let mut faults = faults(&plan, steps);
    if request.parent.is_some() && chains(&plan) {
        let message = "it runs other pipelines itself, and only one level of chaining is possible";
        faults.insert(0, message.to_owned());
    }
    if let Some(first) = faults.first() {
        let more = faults.len() - 1;
        let more = if more == 0 {
            String::new()
        } else {
            format!(" (and {more} more)")
        };
        let message = format!("pipeline {id} cannot be run: {first}{more}");
        return Err(RunError::refused(ErrorName::PlanRefused, message));
    }
    Ok(Prepared {
        plan,
        yaml: emit::to_yaml(&merged.tree),
        git: record.git.clone(),
    })
}

/// Fetches what the pipeline refers to, until nothing new appears, and resolves it.
async fn plan(
    runs: &Runs,
    start: &StartRun,
    (pipeline, inputs): (&Parsed, &[&Tree]),
    steps: &StepTypes,
    sources: &dyn SourceReader,
) -> Result<Plan, RunError> {
    let ask = |known: &Snapshot| wanted(&chosen(start, pipeline, inputs, steps, known));
    let snapshot = gathered(runs, Some(sources), ask).await?;
    let request = chosen(start, pipeline, inputs, steps, &snapshot);
    resolve(&request).map_err(RunError::faulty)
}

/// What is to be planned, of the stages that were chosen.
fn chosen<'a>(
    start: &'a StartRun,
    pipeline: &'a Parsed,
    inputs: &'a [&'a Tree],
    steps: &'a StepTypes,
    entities: &'a Snapshot,
) -> Request<'a> {
    Request {
        chosen: start.chosen.as_ref(),
        trigger: start.fired.as_ref().map(|fired| &fired.facts),
        ..request(&start.scope, pipeline, inputs, steps, entities)
    }
}

pub(crate) fn request<'a>(
    scope: &'a Scope,
    pipeline: &'a Parsed,
    inputs: &'a [&'a Tree],
    steps: &'a StepTypes,
    entities: &'a Snapshot,
) -> Request<'a> {
    Request {
        pipeline,
        inputs,
        scope,
        entities,
        runnable: &steps.runnable,
        chosen: None,
        trigger: None,
    }
}

/// Whether a stage of a plan runs another pipeline.
fn chains(plan: &Plan) -> bool {
    let mut stages = plan.groups.iter().flatten();
    stages.any(|stage| stage.stage_type == CHAINED)
}

/// What only the engine and the steps can find fault with.
fn faults(plan: &Plan, steps: &StepTypes) -> Vec<String> {
    let engine = check::check(plan).into_iter();
    let mut faults: Vec<String> = engine
        .map(|fault| format!("{}: {}", fault.place, fault.message))
        .collect();
    for stage in plan.groups.iter().flatten() {
        for nodes in [&stage.steps, &stage.rollback_steps] {
            each_step(nodes, &mut |step| {
                let found = (steps.faults)(&step.step_type, &step.spec);
                faults.extend(found.iter().map(|fault| format!("{}: {fault}", step.id)));
            });
        }
    }
    faults
}

/// Faults of several documents as one text, a line each; what is only a warning among them is told elsewhere.
pub(crate) fn told(faults: &[Diagnostic]) -> String {
    let errors = faults
        .iter()
        .filter(|fault| fault.severity == Severity::Error);
    errors
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}
