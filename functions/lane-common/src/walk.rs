//! The loop: ask what comes next, do it, write it down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_engine::abort::FAILURE_STRATEGY;
use slipway_engine::directive::{ChildLane, Directive};
use slipway_engine::end::end_stage;
use slipway_engine::error::{Doing, RunError};
use slipway_engine::error_name::ErrorName;
use slipway_engine::lane::{
    Attempt, LanePlan, Move, Opening, StopReason, UNDECIDED, next, node_id,
};
use slipway_engine::name::{self, Lane, Walk as Nodes};
use slipway_engine::runs::{self, StageOfRun, fact};
use slipway_engine::signal::stopped_by;
use slipway_engine::woken::words;
use slipway_model::id::{NodeId, PrincipalId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::{Node, ParallelPlan, Plan, StagePlan};
use slipway_steps::Step;
use slipway_store::StoreError;
use slipway_store::record::NodeRecord;

use crate::before;
use crate::expressions::NodeExpressions;
use crate::mention::mentions_other_stages;
use crate::record::{Unwritten, Writer, is_container};
use crate::tags::Tags;
use crate::{Deps, Event, HandlerError};

/// How stale the knowledge of an abort may be between two nodes.
const ABORT_SEEN_WITHIN: Duration = Duration::from_secs(1);

/// Longest pause at a time, in seconds: half of the time limit of the lane's machine.
const LONGEST_PAUSE: u64 = 1_500_000;

/// Longest wait that costs no token, in seconds: what is said meanwhile is heard after it. A longer one is a pause, which
/// is as many transitions and one short invocation more.
const LONGEST_SLEEP: u64 = 1;

/// How many executions a lane may go on in, before the numbers of its next beginning.
const PARTS_APART: u32 = 10_000;

/// How often another writer may be met before the invocation gives up.
const MOST_CONFLICTS: u32 = 10;

/// What the failure of a step adds where the question about it was cut short.
const UNANSWERED: &str =
    " Nobody had said what to do about it when the time of its step group, stage or run was up.";

/// A lane in the course of one invocation.
pub(crate) struct Walk<'d> {
    pub(crate) deps: &'d Deps,
    pub(crate) event: Event,
    pub(crate) lane: Lane,
    pub(crate) of_run: StageOfRun,
    /// Newest attempts of the nodes that have begun: of the stage, and of others if expressions read them.
    pub(crate) nodes: BTreeMap<NodeId, NodeRecord>,
    /// All attempts of the stage's nodes, oldest first.
    pub(crate) history: Vec<NodeRecord>,
    pub(crate) facts: slipway_engine::lane::Facts,
    /// What has happened and is not written yet: it goes out together with the start of the next step.
    pub(crate) unwritten: Unwritten,
    /// What expressions added to the run and is not written yet.
    pub(crate) tags: Tags,
    began: Timestamp,
    abort_read: Timestamp,
    conflicts: u32,
    moves: u32,
    /// Whether nothing has begun, run or waited in this invocation: only groups were closed around what had ended before.
    closes_only: bool,
}

impl<'d> Walk<'d> {
    pub(crate) async fn load(deps: &'d Deps, event: Event) -> Result<Self, HandlerError> {
        let lane = runs::lane(&event.lane_id)?;
        let loaded = deps.runs.load_stage_with_nodes(&event.run_id, &lane.stage);
        let (of_run, nodes) = loaded.await?;
        let before = before::load(&deps.runs, &of_run).await?;
        let now = deps.runs.clock.now();
        let mut walk = Self {
            deps,
            event,
            lane,
            of_run,
            nodes: BTreeMap::new(),
            history: Vec::new(),
            facts: slipway_engine::lane::Facts::default(),
            unwritten: Unwritten::default(),
            tags: Tags::reading(before),
            began: now,
            abort_read: now,
            conflicts: 0,
            moves: 0,
            closes_only: true,
        };
        match mentions_other_stages(&walk.of_run.plan, walk.of_run.stage()) {
            true => walk.read_nodes().await?,
            false => walk.take_nodes(nodes),
        }
        Ok(walk)
    }

    /// Reads what has happened so far.
    pub(crate) async fn read_nodes(&mut self) -> Result<(), HandlerError> {
        let stage = self.of_run.stage();
        let only = (!mentions_other_stages(&self.of_run.plan, stage)).then_some(&self.lane.stage);
        let run = &self.of_run.run.id;
        let records = self.deps.runs.store.list_nodes(run, only).await;
        let records = records.doing(|| format!("read the steps of run {run}"))?;
        self.take_nodes(records);
        Ok(())
    }

    /// Takes what was read of what has happened so far.
    fn take_nodes(&mut self, records: Vec<NodeRecord>) {
        let own = |record: &&NodeRecord| record.stage == self.lane.stage;
        self.history = records.iter().filter(own).cloned().collect();
        self.history
            .sort_by_key(|record| (record.started_ms, record.attempt));
        self.nodes = runs::newest(records);
        let conditions = std::mem::take(&mut self.facts.conditions);
        self.facts = self.of_run.facts(&self.lane, &self.nodes);
        self.facts.conditions = conditions;
        if let Some(Directive::Fork { node, lanes, .. }) = self.event.done() {
            // Of the attempt that was forked: an invocation before this one may have begun the next and died.
            let attempt = lanes.first().map_or(0, |lane| lane.part / PARTS_APART);
            let id = NodeId::new(node.as_str());
            self.facts.joined.insert((id, attempt));
        }
        self.unwritten = Unwritten::default();
    }

    /// Walks until the lane must wait, fork or end; with how much had been said about the run by then.
    pub(crate) async fn go(mut self) -> Result<(Directive, usize), HandlerError> {
        self.tell_untold().await?;
        loop {
            // Asked for again: a loop that is taken apart changes the plan.
            let plan = Arc::clone(&self.of_run.plan);
            let lane = self.lane_of(&plan)?;
            if let Some(directive) = self.turn(&lane).await? {
                let conflicts = self.conflicts;
                self.write().await?;
                if self.conflicts > conflicts {
                    // What another writer wrote may lead somewhere else.
                    continue;
                }
                tracing::info!(
                    run.id = %self.event.run_id,
                    lane.id = %self.event.lane_id,
                    moves = self.moves,
                    duration_ms = self.spent().as_millis(),
                    "lane walked as far as it goes: {directive:?}"
                );
                return Ok((directive, words(&self.of_run.run)));
            }
        }
    }

    pub(crate) fn lane_of<'p>(&self, plan: &'p Plan) -> Result<LanePlan<'p>, HandlerError> {
        let mut stages = plan.groups.iter().flatten();
        let stage = stages.find(|stage| stage.id == self.lane.stage);
        let lane = stage.and_then(|stage: &StagePlan| LanePlan::of(stage, &self.lane));
        lane.ok_or_else(|| {
            let message = format!("the plan has no lane {}", self.event.lane_id);
            HandlerError::new(ErrorName::NotFound, message)
        })
    }

    /// One move; a directive ends the invocation.
    async fn turn(&mut self, lane: &LanePlan<'_>) -> Result<Option<Directive>, HandlerError> {
        if self.spent() >= self.deps.budget {
            return Ok(Some(Directive::Sleep { seconds: 1 }));
        }
        self.see_abort().await?;
        self.moves += 1;
        let to_do = next(lane, &self.facts, self.now_ms());
        self.closes_only &= matches!(to_do, Move::Close { .. } | Move::Done { .. });
        match to_do {
            Move::Evaluate {
                node,
                attempt,
                condition,
            } => Box::pin(self.evaluate(lane, node, attempt, condition)).await,
            Move::Skip {
                node,
                attempt,
                reason,
                given_up,
            } => Box::pin(self.skip(node, attempt, (&reason, given_up))).await,
            Move::Start { node, attempt } => Box::pin(self.start(node, attempt)).await,
            Move::Unroll {
                parallel,
                attempt,
                unmet,
            } => Box::pin(self.unroll(lane, parallel, attempt, unmet)).await,
            Move::Continue { step, attempt } => Box::pin(self.advance(lane, step, attempt)).await,
            Move::Stop {
                step,
                attempt,
                reason,
            } => Box::pin(self.stop(lane, step, attempt, reason)).await,
            Move::Close {
                node,
                status,
                failure,
            } => Box::pin(self.close(node, status, failure)).await,
            Move::Fork { parallel } => Ok(Some(self.fork(parallel))),
            Move::Wait { until_ms } => Ok(self.wait_until(until_ms).await),
            Move::Hold { until_ms } => Ok(Some(self.hold(until_ms))),
            Move::Settle { node, status } => Box::pin(self.settle(node, status)).await,
            Move::Done { status } => Box::pin(self.done(status)).await.map(Some),
        }
    }

    async fn evaluate(
        &mut self,
        lane: &LanePlan<'_>,
        node: &Node,
        attempt: Attempt,
        condition: &str,
    ) -> Result<Option<Directive>, HandlerError> {
        let id = node_id(node);
        let holds =
            NodeExpressions::new(&self.of_run, &self.nodes, id, &self.tags).condition(condition);
        match holds {
            Ok(holds) => {
                self.facts
                    .conditions
                    .insert((id.clone(), attempt.number), holds);
                Ok(None)
            }
            Err(failure) => {
                let node = Opening::of(node);
                self.fail_undecided(lane, node, attempt, failure).await
            }
        }
    }

    /// A node whose condition cannot be evaluated, or a loop over what cannot, fails as a step that ran: its failure
    /// strategies answer. Its start is written with its end only, so that nobody takes it for something that runs.
    pub(crate) async fn fail_undecided(
        &mut self,
        lane: &LanePlan<'_>,
        node: Opening<'_>,
        attempt: Attempt,
        failure: Failure,
    ) -> Result<Option<Directive>, HandlerError> {
        let (failure, status) = self.stopped_or(node, attempt, failure);
        let writer = self.writer();
        let begun = NodeRecord {
            progress: json!({ UNDECIDED: true }),
            ..writer.begins(node, attempt, Value::Null)
        };
        self.unwritten.starts(begun.clone());
        self.history.push(begun.clone());
        self.know(begun);
        Box::pin(self.fail_node(lane, node.into(), failure, status, None)).await
    }

    /// What an attempt that is not decided fails with: where somebody stopped it before its time, with that.
    fn stopped_or(
        &self,
        node: Opening<'_>,
        attempt: Attempt,
        failure: Failure,
    ) -> (Failure, Status) {
        let id = match node {
            Opening::Step(step) => &step.id,
            Opening::Group(group) => &group.id,
            Opening::Parallel(block) => &block.id,
        };
        let said = self.facts.stopped.get(&(id.clone(), attempt.number));
        let (error, status, what) = match said.map(|said| said.reason) {
            Some(StopReason::MarkedAsFailed) => (
                ErrorType::UserMarkedFailure,
                Status::Failed,
                "marked as failed",
            ),
            Some(StopReason::MarkedForRollback) => (
                ErrorType::UserMarkedFailure,
                Status::Failed,
                "stopped to roll its stage back",
            ),
            Some(StopReason::MadeToExpire) => {
                (ErrorType::Timeout, Status::Expired, "made to expire")
            }
            _ => return (failure, Status::Failed),
        };
        let who = stopped_by(&self.of_run.run, id, attempt.number);
        let by = who.map_or_else(String::new, |who| format!(" by {who}"));
        let stopped = Failure {
            error,
            message: format!("It was {what}{by}. Before that: {}", failure.message),
            left_behind: None,
        };
        (stopped, status)
    }

    async fn start(
        &mut self,
        node: Opening<'_>,
        attempt: Attempt,
    ) -> Result<Option<Directive>, HandlerError> {
        let mut record = self.writer().begins(node, attempt, Value::Null);
        if let Opening::Step(step) = node {
            // What the step says of itself is said of this attempt (`retryCount`).
            self.nodes.insert(record.id.clone(), record.clone());
            // Without a value the step fails at its first turn, where the reason is found again.
            record.spec = self.resolve(step).unwrap_or_default();
            let asks = (self.deps.find)(&step.step_type).is_some_and(Step::only_asks);
            if asks && !record.spec.is_null() {
                return self.note(record, false).await;
            }
        }
        self.begin(record).await
    }

    /// Notes that a node has begun. A step's start is written at once, with all that happened before;
    /// groups, blocks and skipped nodes have no effect and can wait, and so can a step that only asks
    /// ([`Step::only_asks`]).
    pub(crate) async fn begin(
        &mut self,
        record: NodeRecord,
    ) -> Result<Option<Directive>, HandlerError> {
        let step = record.status == Status::Running && !is_container(&record.node_type);
        self.note(record, step).await
    }

    async fn note(
        &mut self,
        record: NodeRecord,
        at_once: bool,
    ) -> Result<Option<Directive>, HandlerError> {
        self.unwritten.starts(record.clone());
        self.history.push(record.clone());
        self.know(record);
        if at_once || self.unwritten.is_full() {
            self.write().await?;
        }
        Ok(None)
    }

    /// Notes that a node has ended; written with the start of the next step, or before the invocation ends.
    pub(crate) async fn end(&mut self, record: NodeRecord) -> Result<(), HandlerError> {
        let same =
            |known: &&mut NodeRecord| known.id == record.id && known.attempt == record.attempt;
        if let Some(known) = self.history.iter_mut().rev().find(same) {
            *known = record.clone();
        }
        self.know(record.clone());
        self.unwritten.ends(record);
        if self.unwritten.is_full() {
            self.write().await?;
        }
        Ok(())
    }

    /// Writes what has happened, all or nothing. Where another writer was faster, what it wrote is read
    /// and counts.
    pub(crate) async fn write(&mut self) -> Result<(), HandlerError> {
        let tags = self.tags.take();
        if !tags.is_empty() {
            let run = &self.of_run.run.id;
            let added = self.deps.runs.store.add_tags(run, &tags).await;
            added.doing(|| format!("add tags to run {run}"))?;
        }
        let unwritten = std::mem::take(&mut self.unwritten);
        match unwritten.write(&self.deps.runs.store).await {
            Ok(()) => Ok(()),
            Err(
                StoreError::AlreadyExists { .. }
                | StoreError::Conflict { .. }
                | StoreError::NotFound { .. },
            ) if self.conflicts < MOST_CONFLICTS => {
                self.conflicts += 1;
                self.read_nodes().await
            }
            Err(source) => Err(RunError::Store {
                doing: format!("record the steps of run {}", self.of_run.run.id),
                source,
            }
            .into()),
        }
    }

    pub(crate) fn know(&mut self, record: NodeRecord) {
        self.facts.nodes.insert(record.id.clone(), fact(&record));
        self.nodes.insert(record.id.clone(), record);
    }

    async fn close(
        &mut self,
        node: &Node,
        status: Status,
        failure: Option<Failure>,
    ) -> Result<Option<Directive>, HandlerError> {
        let Some(open) = self.nodes.get(node_id(node)) else {
            return Ok(None);
        };
        let closed = NodeRecord {
            status,
            failure,
            ended_ms: Some(self.now_ms()),
            ..open.clone()
        };
        self.end(closed).await?;
        Ok(None)
    }

    fn fork(&self, parallel: &ParallelPlan) -> Directive {
        let run = &self.of_run.run.id;
        let again = self.facts.nodes.get(&parallel.id);
        let again = again.map_or(0, |fact| fact.attempt);
        let lanes = (0..parallel.branches.len()).map(|branch| {
            let lane = Lane::branch(&self.lane.stage, &parallel.id, branch);
            ChildLane {
                execution: name::lane_execution(run, &lane, again),
                lane_id: lane.id().to_string(),
                part: again.saturating_mul(PARTS_APART),
            }
        });
        Directive::Fork {
            node: parallel.id.to_string(),
            concurrency: parallel.concurrency,
            lanes: lanes.collect(),
        }
    }

    async fn wait_until(&mut self, until_ms: i64) -> Option<Directive> {
        let left = u64::try_from(until_ms - self.now_ms()).unwrap_or(0);
        self.wait(Duration::from_millis(left)).await
    }

    /// Waits for a person, or until it is too late.
    fn hold(&self, until_ms: i64) -> Directive {
        let left = u64::try_from(until_ms.saturating_sub(self.now_ms())).unwrap_or(0);
        Self::hold_for(Duration::from_millis(left))
    }

    /// Waits for a person, or so long.
    pub(crate) fn hold_for(time: Duration) -> Directive {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let seconds = millis.div_ceil(1_000).clamp(1, LONGEST_PAUSE);
        Directive::Pause { seconds }
    }

    /// Records what became of a node whose failure a person was asked about.
    async fn settle(
        &mut self,
        node: &NodeId,
        status: Status,
    ) -> Result<Option<Directive>, HandlerError> {
        let mut record = NodeRecord {
            status,
            ended_ms: Some(self.now_ms()),
            ..self.record_of(node)?.clone()
        };
        let failure = record
            .failure
            .as_mut()
            .filter(|_| status == Status::Expired);
        if let Some(failure) = failure.filter(|failure| failure.error != ErrorType::Timeout) {
            failure.message.push_str(UNANSWERED);
        }
        let attempt = record.attempt;
        self.tell_failed(node, attempt, status).await;
        self.end(record).await?;
        if status == Status::Aborted && !self.facts.aborted {
            self.abort_by_strategy().await?;
        }
        if !status.is_good() {
            self.tell_barriers(node, attempt).await?;
        }
        Ok(None)
    }

    /// Short waits pass here; longer ones are for the machine.
    pub(crate) async fn wait(&mut self, time: Duration) -> Option<Directive> {
        if time < Duration::from_secs(1) {
            self.deps.runs.clock.sleep(time).await;
            return None;
        }
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        Some(match seconds {
            ..=LONGEST_SLEEP => Directive::Sleep { seconds },
            _ => Directive::Pause { seconds },
        })
    }

    /// The lane of a stage's steps ends the stage itself when all went well, which saves an invocation.
    async fn done(&mut self, status: Status) -> Result<Directive, HandlerError> {
        self.write().await?;
        if status == Status::Aborted && self.may_abort_unheard() {
            self.abort_by_strategy().await?;
        }
        if self.lane.walk == Nodes::Steps && status.is_good() {
            end_stage(&self.deps.runs, &self.of_run, &self.nodes, 0, false).await?;
        }
        Ok(Directive::end(status))
    }

    /// Whether a crash or an outage may have come between the end of a step that aborts the run and the abort, or between
    /// that and those who wait: then the lane finds nothing to do when it comes back but to close groups.
    fn may_abort_unheard(&self) -> bool {
        let by_strategy = |(who, _): &(PrincipalId, i64)| who.as_str() == FAILURE_STRATEGY;
        match &self.of_run.run.abort {
            // A person aborted the stage, and not the run.
            None if self.facts.aborted => false,
            None => true,
            Some(abort) => by_strategy(abort) && self.closes_only,
        }
    }

    async fn see_abort(&mut self) -> Result<(), HandlerError> {
        let now = self.deps.runs.clock.now();
        let age = Duration::try_from(now.duration_since(self.abort_read)).unwrap_or_default();
        if age >= ABORT_SEEN_WITHIN {
            self.read_abort().await?;
        }
        Ok(())
    }

    /// Reads what was said meanwhile: whether the run, its stage or a step of it shall stop.
    pub(crate) async fn read_abort(&mut self) -> Result<(), HandlerError> {
        let run = &self.of_run.run.id;
        let record = self.deps.runs.store.get_run(run).await;
        let record = record.doing(|| format!("read run {run}"))?;
        self.of_run.run = record;
        self.abort_read = self.deps.runs.clock.now();
        let said = self.of_run.facts(&self.lane, &BTreeMap::new());
        self.facts.aborted = said.aborted;
        // All that was said: what counts as heard when the lane goes to wait is what it knows by then.
        self.facts.answers = said.answers;
        self.facts.stopped = said.stopped;
        self.facts.given = said.given;
        self.facts.paused = said.paused;
        Ok(())
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.deps.runs.clock.now_ms()
    }

    fn spent(&self) -> Duration {
        let spent = self.deps.runs.clock.now().duration_since(self.began);
        Duration::try_from(spent).unwrap_or_default()
    }

    pub(crate) fn writer(&self) -> Writer<'_> {
        Writer {
            run: &self.of_run.run.id,
            stage: &self.lane.stage,
            lane: self.event.lane_id.clone(),
            now_ms: self.now_ms(),
        }
    }
}
