//! Rolls back what a run deployed, after it (docs continuous-delivery/manage-deployments/rollback-deployments): a
//! new run that takes over all that the other one did, and runs the rollback steps of its stages, those of the last
//! stage first, with the plan of that run.

mod choice;
mod target;

use std::collections::{BTreeMap, BTreeSet};

use slipway_model::id::{PrincipalId, RunId, StageId};
use slipway_model::status::Status;
use slipway_plan::Plan;
use slipway_store::StoreError;
use slipway_store::record::{Again, NodeRecord, Origin, RunRecord, StageSummary};

use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::lane::Facts;
use crate::name::undo_id;
use crate::notes;
use crate::runs::{Runs, fact, not_started};
use crate::start::{Accepted, MANUAL, announce, number};

pub(crate) use target::taken_by;
pub use target::{Deployed, Place, deployed_at, find_place};

/// What a run deployed is to be rolled back.
#[derive(Clone, Debug)]
pub struct UndoRun {
    /// The run.
    pub run: RunId,
    /// Which of its stages.
    pub stages: Which,
    /// Who asks.
    pub principal: PrincipalId,
    /// What people are told about it.
    pub notes: String,
}

/// Which stages of a run are rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// All that can be.
    All,
    /// These, as the pipeline or the plan calls them.
    Named(Vec<String>),
    /// Those that deployed to a place.
    At(Place),
}

/// What rolling a run back would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// It would roll these stages back, in the order of the plan.
    Allowed(Vec<StageId>),
    /// A run did that, or does.
    Done(RunId),
    /// It cannot be, and this is why.
    Refused(String),
}

/// What is known of a run that is to be rolled back.
struct Known {
    run: RunRecord,
    plan: std::sync::Arc<Plan>,
    nodes: BTreeMap<slipway_model::id::NodeId, NodeRecord>,
    /// The runs that rolled its stages back, or tried.
    undos: BTreeMap<StageId, RunRecord>,
}

/// Whether a run can be rolled back, and what of it.
///
/// # Errors
/// `InvalidRequest` for stages that it does not have, `NotFound` without the run, and when the store cannot be read.
pub async fn outlook(runs: &Runs, run: &RunId, stages: &Which) -> Result<Outlook, RunError> {
    let known = known(runs, run).await?;
    weigh(runs, &known, stages).await
}

/// Starts the run that rolls another one back. Asking again answers with the same run, as long as that one did not
/// fail; one that failed is followed by another, for the stages that are left.
///
/// # Errors
/// `Conflict` when the run cannot be rolled back: it did not succeed, is too old, has nothing to roll back, or
/// something else was deployed there since. As [`outlook`].
pub async fn undo_run(runs: &Runs, request: UndoRun) -> Result<RunRecord, RunError> {
    notes::check(&request.notes)?;
    let known = known(runs, &request.run).await?;
    let stages = match weigh(runs, &known, &request.stages).await? {
        Outlook::Allowed(stages) => stages,
        Outlook::Done(run) => return runs.run(&run).await,
        Outlook::Refused(why) => return Err(RunError::refused(ErrorName::Conflict, why)),
    };
    let earlier: BTreeMap<StageId, RunId> = stages
        .iter()
        .filter_map(|stage| Some((stage.clone(), known.undos.get(stage)?.id.clone())))
        .collect();
    let Accepted {
        run: record,
        behind,
        turn: _,
    } = record(runs, &known, request, stages, &earlier).await?;
    match runs.store.create_undo(&record, &earlier).await {
        Ok(()) => {}
        Err(StoreError::AlreadyExists { .. }) => return who_was_faster(runs, &record).await,
        Err(error) => Err(error).doing(|| format!("record run {}", record.id))?,
    }
    announce(runs, &record, behind).await;
    Ok(record)
}

async fn known(runs: &Runs, run: &RunId) -> Result<Known, RunError> {
    let run = runs.run(run).await?;
    if run.plan.is_none() {
        let message = format!("run {} was never planned: it deployed nothing", run.id);
        return Err(RunError::refused(ErrorName::Conflict, message));
    }
    let (run, plan) = runs.load(&run.id).await?;
    let nodes = runs.nodes(&run.id, None).await?;
    let claimed = runs.store.list_undos(&run.id).await;
    let mut undos = BTreeMap::new();
    for (stage, undo) in claimed.doing(|| format!("list the rollbacks of run {}", run.id))? {
        undos.insert(stage, runs.run(&undo).await?);
    }
    Ok(Known {
        run,
        plan,
        nodes,
        undos,
    })
}

async fn weigh(runs: &Runs, known: &Known, which: &Which) -> Result<Outlook, RunError> {
    let run = &known.run;
    let wanted = choice::wanted(&run.id, &known.plan, which);
    let wanted = wanted.map_err(|message| RunError::refused(ErrorName::InvalidRequest, message))?;
    if let Err(why) = choice::may_undo(run, runs.clock.now_ms()) {
        let left = match run.status.is_final() {
            true => target::left_beside(runs, run, &known.plan, &wanted).await?,
            false => None,
        };
        let parts = [Some(why), left, choice::split(run, known.nodes.values())];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        return Ok(Outlook::Refused(parts.join(". ")));
    }
    let facts = Facts {
        nodes: known
            .nodes
            .iter()
            .map(|(id, node)| (id.clone(), fact(node)))
            .collect(),
        ..Facts::default()
    };
    let stages = match choice::undoable(run, &wanted, &facts, *which == Which::All) {
        Ok(stages) => stages,
        Err(why) => return Ok(Outlook::Refused(why)),
    };
    let left = match choice::left(&run.id, &stages, &known.undos) {
        choice::Left::Stages(left) => left,
        choice::Left::Nothing(run) => return Ok(Outlook::Done(run)),
        choice::Left::Busy(why) => return Ok(Outlook::Refused(why)),
    };
    let tried: BTreeSet<&RunId> = known.undos.values().map(|undo| &undo.id).collect();
    for stage in &left {
        if let Some(why) = target::refusal(runs, run, &known.plan, stage, &tried).await? {
            return Ok(Outlook::Refused(why));
        }
    }
    Ok(Outlook::Allowed(
        left.iter().map(|stage| stage.id.clone()).collect(),
    ))
}

async fn record(
    runs: &Runs,
    known: &Known,
    request: UndoRun,
    stages: Vec<StageId>,
    earlier: &BTreeMap<StageId, RunId>,
) -> Result<Accepted, RunError> {
    let old = &known.run;
    let of_plan = || known.plan.groups.iter().flatten();
    let doer = |id: &StageId| (id.clone(), old.doer(id).clone());
    let summary = |stage: &StageSummary| StageSummary {
        undo: None,
        undoes_run: false,
        ..stage.clone()
    };
    let done = of_plan().map(|stage| {
        let ended = old.stages.iter().find(|ended| ended.id == stage.id);
        ended.map_or_else(|| not_started(stage), summary)
    });
    // Collected before anything is waited for: closures over references make the future of callers not `Send`.
    let done: Vec<StageSummary> = done.collect();
    let kept: Vec<(StageId, RunId)> = of_plan().map(|stage| doer(&stage.id)).collect();
    let sequence = number(runs, &old.scope, &old.pipeline).await?;
    let run = RunRecord {
        id: undo_id(&old.id, &stages, earlier.values()),
        sequence: sequence.number,
        status: Status::NotStarted,
        trigger_type: MANUAL.to_owned(),
        triggered_by: request.principal,
        started_ms: runs.clock.now_ms(),
        ended_ms: None,
        failure: None,
        abort: None,
        signals: Vec::new(),
        parent: None,
        trigger: None,
        stages: done,
        origin: Some(Origin {
            run: old.id.clone(),
            how: Again::Rollback,
            root: old.id.clone(),
            root_started_ms: old.started_ms,
            stages,
            kept,
        }),
        notes: request.notes,
        ..old.clone()
    };
    let behind = sequence.behind;
    Ok(Accepted {
        run,
        behind,
        turn: None,
    })
}

/// Somebody asked for the same just now, or for something that does not go together with it.
async fn who_was_faster(runs: &Runs, record: &RunRecord) -> Result<RunRecord, RunError> {
    let found = runs.store.find_run(&record.id).await;
    if let Some(same) = found.doing(|| format!("read run {}", record.id))? {
        return Ok(same);
    }
    let of = record.undoes().map_or(&record.id, |origin| &origin.run);
    let message = format!(
        "somebody else has begun to roll stages of run {of} back just now: ask again when that has ended"
    );
    Err(RunError::refused(ErrorName::Conflict, message))
}
