//! What the use cases share: the store, Step Functions, the clock, and what a stage of a run is.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use slipway_clock::Clock;
use slipway_model::id::{LaneId, NodeId, PrincipalId, RunId, StageId};
use slipway_model::status::Status;
use slipway_plan::unroll::RunTurn;
use slipway_plan::{LateAnswers, PIN_ARTIFACTS, Plan, StagePlan};
use slipway_store::Store;
use slipway_store::record::{NodeRecord, RunRecord, StageSummary};

use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::execution_input;
use crate::lane::{Facts, NodeFact, UNDECIDED, is_rollback, later};
use crate::name::{Lane, Walk};
use crate::signal;
use crate::stage_word::{self, Part};

/// What the use cases need of the world.
#[derive(Clone)]
pub struct Runs {
    /// Facts.
    pub store: Store,
    /// Step Functions: starts executions and completes tokens.
    pub workflows: aws_sdk_sfn::Client,
    /// Time.
    pub clock: Clock,
    /// ARN of the state machine `pipeline`.
    pub pipeline_machine: String,
    /// ARN of the state machine `notify`; where there is none, nobody is told of anything.
    pub notify_machine: Option<String>,
    /// ARN of the state machine `errand`; only who asks feeds starts one.
    pub errand_machine: Option<String>,
    /// Base URL of the REST API as people reach it, for links to runs.
    pub url: Option<String>,
}

/// A stage of a run, with the plan and the record of the run.
#[derive(Clone)]
pub struct StageOfRun {
    /// The run.
    pub run: RunRecord,
    /// Its plan.
    pub plan: Arc<Plan>,
    group: usize,
    index: usize,
}

impl Runs {
    /// Loads a run that has been planned: its plan as it is with the loops taken apart that have begun.
    pub async fn load(&self, run: &RunId) -> Result<(RunRecord, Arc<Plan>), RunError> {
        let (record, written) = self.load_written(run).await?;
        self.as_it_is(record, written).await
    }

    /// A run with its plan as it is with the loops taken apart that have begun.
    async fn as_it_is(
        &self,
        mut record: RunRecord,
        written: Arc<Plan>,
    ) -> Result<(RunRecord, Arc<Plan>), RunError> {
        let plan = self.unrolled(&record.id, Arc::clone(&written)).await?;
        if !Arc::ptr_eq(&plan, &written) {
            // Turns in the place of the stages that stood for them.
            let stages = plan.groups.iter().flatten();
            record.stages = stages.map(|own| summary(&record.stages, own)).collect();
        }
        Ok((record, plan))
    }

    /// Loads a run that has been planned: its plan as it was written when the run was accepted.
    pub(crate) async fn load_written(
        &self,
        run: &RunId,
    ) -> Result<(RunRecord, Arc<Plan>), RunError> {
        let record = self.run(run).await?;
        let plan = self.written(&record).await?;
        Ok((record, plan))
    }

    async fn written(&self, record: &RunRecord) -> Result<Arc<Plan>, RunError> {
        let run = &record.id;
        let digest = record.plan.as_deref().ok_or_else(|| {
            RunError::refused(ErrorName::NotFound, format!("run {run} has no plan yet"))
        })?;
        let plan = Box::pin(self.store.get_plan(digest)).await;
        plan.doing(|| format!("read the plan of run {run}"))
    }

    /// A plan with those of its loops taken apart that go over what the run brings forth and have begun, and with the
    /// artifacts that were looked up meanwhile.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn unrolled(&self, run: &RunId, plan: Arc<Plan>) -> Result<Arc<Plan>, RunError> {
        if !grows(&plan) {
            return Ok(plan);
        }
        let nodes = self.nodes(run, None).await?;
        Ok(unrolled_by(plan, &nodes))
    }

    /// Loads a stage of a run that has been planned.
    pub async fn load_stage(&self, run: &RunId, stage: &StageId) -> Result<StageOfRun, RunError> {
        let (run, plan) = self.load(run).await?;
        StageOfRun::of(run, plan, stage)
    }

    /// Loads a stage of a run that has been planned, with all attempts of its nodes, oldest start first. They are no
    /// older than what was said about the run.
    ///
    /// # Errors
    /// When the store cannot be read, or the run has no such stage.
    pub async fn load_stage_with_nodes(
        &self,
        run: &RunId,
        stage: &StageId,
    ) -> Result<(StageOfRun, Vec<NodeRecord>), RunError> {
        let read = Box::pin(self.store.get_run_with_nodes(run, stage)).await;
        let (record, mut nodes) = read.doing(|| format!("read run {run}"))?;
        let written = self.written(&record).await?;
        let grows = grows(&written);
        let (record, plan) = self.as_it_is(record, written).await?;
        if grows {
            // The plan was made whole by nodes that are newer than these.
            let newer = Box::pin(self.store.list_nodes(run, Some(stage))).await;
            nodes = newer.doing(|| format!("read the steps of run {run}"))?;
        }
        Ok((StageOfRun::of(record, plan, stage)?, nodes))
    }

    pub(crate) async fn run(&self, run: &RunId) -> Result<RunRecord, RunError> {
        // On the heap, as what is read below: nearly everything awaits these, and each would have room for them on the stack.
        let record = Box::pin(self.store.get_run(run)).await;
        record.doing(|| format!("read run {run}"))
    }

    /// The nodes of a run, or of one stage of it, that have begun, in their newest attempt.
    pub async fn nodes(
        &self,
        run: &RunId,
        stage: Option<&StageId>,
    ) -> Result<BTreeMap<NodeId, NodeRecord>, RunError> {
        let records = Box::pin(self.store.list_nodes(run, stage)).await;
        let records = records.doing(|| format!("read the steps of run {run}"))?;
        Ok(newest(records))
    }

    pub(crate) async fn put_stage(
        &self,
        run: &RunId,
        summary: &StageSummary,
    ) -> Result<(), RunError> {
        let put = self.store.put_stage(run, summary).await;
        put.doing(|| format!("record stage {} of run {run}", summary.id))
    }

    /// Starts an execution of a machine. One of this name that was started before is as good.
    pub(crate) async fn start_named(
        &self,
        machine: &str,
        name: &str,
        input: &impl Serialize,
    ) -> Result<(), RunError> {
        let input = serde_json::to_string(input).map_err(|error| {
            let message = format!("cannot write what the execution {name} is given: {error}");
            RunError::refused(ErrorName::Internal, message)
        })?;
        let start = self.workflows.start_execution().state_machine_arn(machine);
        match Box::pin(start.name(name).input(input).send()).await {
            Ok(_) => Ok(()),
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(|e| e.is_execution_already_exists()) =>
            {
                Ok(())
            }
            Err(error) => Err(error).doing(|| format!("start the execution {name}")),
        }
    }
}

/// Whether what the run brings forth becomes part of the plan.
fn grows(plan: &Plan) -> bool {
    plan.has_run_loops() || plan.has_late_artifacts()
}

/// Field of a block's recorded spec that holds the turns of its loop.
const TURNS: &str = "turns";

/// What is recorded as the spec of a block whose loop is taken apart.
pub fn spec_of_turns(turns: &[RunTurn]) -> serde_json::Value {
    serde_json::json!({ TURNS: turns })
}

/// A plan with those of its loops taken apart that go over what the run brings forth, and with the artifacts that were
/// looked up in the run, as the newest attempts of the run's nodes say.
pub fn unrolled_by(plan: Arc<Plan>, nodes: &BTreeMap<NodeId, NodeRecord>) -> Arc<Plan> {
    let mut plan = match plan.has_run_loops() {
        true => Arc::new(plan.unrolled(&|id| turns_in(nodes, id))),
        false => plan,
    };
    if plan.has_late_artifacts() {
        let answers_of = |id: &NodeId| nodes.get(id).and_then(answers);
        Arc::make_mut(&mut plan).pin_late(&answers_of);
    }
    plan
}

/// Field of the outputs of a step that looked artifacts up, with what it was answered.
const PINNED: &str = "pinned";

/// The outputs of a step that looked artifacts up.
pub fn outputs_of_answers(answers: &LateAnswers) -> serde_json::Value {
    serde_json::json!({ PINNED: answers })
}

/// What a step that looked artifacts up was answered, where it has ended well.
pub fn answers(node: &NodeRecord) -> Option<LateAnswers> {
    let asked = node.node_type == PIN_ARTIFACTS && node.status == Status::Success;
    let answers = node.outputs.get(PINNED).filter(|_| asked)?;
    LateAnswers::deserialize(answers).ok()
}

/// The turns of the loop of a block or a stage, where they are recorded among `nodes`.
pub fn turns_in(nodes: &BTreeMap<NodeId, NodeRecord>, id: &NodeId) -> Option<Vec<RunTurn>> {
    let turns = nodes.get(id)?.spec.get(TURNS)?;
    Vec::<RunTurn>::deserialize(turns).ok()
}

/// The newest attempt of each node.
pub fn newest(records: Vec<NodeRecord>) -> BTreeMap<NodeId, NodeRecord> {
    let mut nodes: BTreeMap<NodeId, NodeRecord> = BTreeMap::new();
    for record in records {
        match nodes.get(&record.id) {
            Some(known) if known.attempt > record.attempt => {}
            _ => {
                nodes.insert(record.id.clone(), record);
            }
        }
    }
    nodes
}

impl StageOfRun {
    /// A stage of a run, found in its plan.
    fn of(run: RunRecord, plan: Arc<Plan>, stage: &StageId) -> Result<Self, RunError> {
        let place = plan.groups.iter().enumerate().find_map(|(group, stages)| {
            let index = stages.iter().position(|known| known.id == *stage)?;
            Some((group, index))
        });
        let Some((group, index)) = place else {
            let message = format!("run {} has no stage {stage}", run.id);
            return Err(RunError::refused(ErrorName::NotFound, message));
        };
        Ok(Self {
            run,
            plan,
            group,
            index,
        })
    }

    /// The stage as planned.
    pub fn stage(&self) -> &StagePlan {
        &self.plan.groups[self.group][self.index]
    }

    /// What is recorded of the stage.
    pub fn summary(&self) -> StageSummary {
        summary(&self.run.stages, self.stage())
    }

    /// The stages of earlier groups. One that never began, or never ended, because its machine broke,
    /// counts as failed.
    pub fn earlier(&self) -> Vec<StageSummary> {
        let stages = self.plan.groups[..self.group].iter().flatten();
        let of = |stage: &StagePlan| {
            let mut summary = summary(&self.run.stages, stage);
            if !summary.status.is_final() {
                summary.status = Status::Errored;
            }
            summary
        };
        stages.map(of).collect()
    }

    /// Whether the stage is a turn of a loop that waited for its time while another turn failed. Such turns are given up
    /// (`onFailure: SkipQueued`) whatever the condition of the stage says; turns of other loops wait for nothing.
    pub fn is_given_up(&self) -> bool {
        let stage = self.stage();
        let looped = stage.iteration.as_ref().map(|turn| &turn.of);
        let looped = looped.or_else(|| stage.each.as_ref().map(|each| &each.of));
        let Some(of) = looped else {
            return false;
        };
        let earlier = self.earlier();
        let before = self.plan.groups[..self.group].iter().flatten();
        let mut before = before
            .zip(&earlier)
            .filter(|(stage, _)| stage.iteration.as_ref().is_some_and(|turn| turn.of == *of));
        before.any(|(_, summary)| !summary.status.is_good())
    }

    /// When the stage is out of time, in epoch milliseconds: its own limit or that of the run.
    pub fn deadline_ms(&self) -> i64 {
        deadline_ms(&self.run, &self.plan, self.stage(), &self.summary())
    }

    /// What the decisions about `lane` may know.
    pub fn facts(&self, lane: &Lane, nodes: &BTreeMap<NodeId, NodeRecord>) -> Facts {
        Facts {
            nodes: nodes
                .iter()
                .map(|(id, node)| (id.clone(), fact(node)))
                .collect(),
            aborted: self.is_aborted(lane),
            deadline_ms: (!self.rolls_back(lane)).then(|| self.deadline_ms()),
            answers: signal::answers(&self.run),
            stopped: signal::stopped(&self.run),
            given: execution_input::given_at(&self.run),
            paused: signal::is_paused(&self.run),
            ..Facts::default()
        }
    }

    /// Whether the run, or the part of its stage that a lane belongs to, is aborted.
    pub fn is_aborted(&self, lane: &Lane) -> bool {
        self.run.abort.is_some() || self.stage_aborted_by(lane).is_some()
    }

    /// Who aborted the stage, as far as a lane of it is concerned: a word about a stage does not stop its rollback with
    /// the run, which is a later thing.
    pub fn stage_aborted_by(&self, lane: &Lane) -> Option<&PrincipalId> {
        let later = self.rolls_back(lane) && self.summary().undo.is_some();
        let part = if later { Part::WithRun } else { Part::Own };
        stage_word::aborted_by(&self.run, &self.stage().id, part)
    }

    /// Whether a lane is part of the rollback, which no limit of the stage cuts short.
    fn rolls_back(&self, lane: &Lane) -> bool {
        match &lane.walk {
            Walk::Steps => false,
            Walk::Rollback => true,
            Walk::Branch { parallel, .. } => is_rollback(self.stage(), parallel),
        }
    }
}

/// When a stage is out of time, in epoch milliseconds: its own limit or that of the run.
pub(crate) fn deadline_ms(
    run: &RunRecord,
    plan: &Plan,
    stage: &StagePlan,
    known: &StageSummary,
) -> i64 {
    let of_run = later(run.started_ms, plan.timeout);
    known
        .started_ms
        .map_or(of_run, |started| later(started, stage.timeout).min(of_run))
}

/// What a decision sees of a node's record.
pub fn fact(record: &NodeRecord) -> NodeFact {
    NodeFact {
        attempt: record.attempt,
        status: record.status,
        started_ms: record.started_ms,
        ended_ms: record.ended_ms,
        failure: record.failure.clone(),
        asked_ms: record.asked_ms,
        round: record.round,
        base: record.base,
        refused: record.refused.clone(),
        undecided: record.progress.get(UNDECIDED).is_some(),
    }
}

/// What `stages` say of a stage; one that they do not know has not begun.
pub(crate) fn summary(stages: &[StageSummary], stage: &StagePlan) -> StageSummary {
    let known = stages.iter().find(|summary| summary.id == stage.id);
    known.cloned().unwrap_or_else(|| not_started(stage))
}

/// The summary of a stage that has not begun.
pub fn not_started(stage: &StagePlan) -> StageSummary {
    StageSummary {
        id: stage.id.clone(),
        name: stage.name.clone(),
        stage_type: stage.stage_type.clone(),
        status: Status::NotStarted,
        started_ms: None,
        ended_ms: None,
        failure: None,
        rolled_back: false,
        undoes_run: false,
        taken_apart: false,
        undo: None,
    }
}

/// Reads a lane id; the lanes of a stage are named by it.
pub fn lane(id: &LaneId) -> Result<Lane, RunError> {
    Lane::parse(id.as_str()).ok_or_else(|| {
        RunError::refused(
            ErrorName::InvalidRequest,
            format!("`{id}` is not the id of a lane"),
        )
    })
}
