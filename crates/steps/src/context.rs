//! All that a step can touch while it runs.

pub(crate) mod patience;
mod saved;
mod word;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_clock::Clock;
use slipway_engine::error::RunError;
use slipway_engine::error_name::ErrorName;
use slipway_engine::gather::SourceReader;
use slipway_engine::kept::{KEPT, Kept};
use slipway_engine::owed::{Missing, OWED, Owed};
use slipway_engine::runs::Runs;
use slipway_engine::undone::UNDONE_BY;
use slipway_model::id::{NodeId, RunId};
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::{ConnectorPlan, Plan, StagePlan, StepPlan};
use slipway_store::record::{
    DeployedRecord, InstanceRecord, NodeRecord, RunRecord, SignalRecord, UnitRecord,
};
use slipway_store::{Store, StoreError};

use crate::aws::{AwsTarget, AwsTargets, limits_retries, takes_session};
use crate::log::LogBuffer;
use crate::names::Names;
use crate::outage;
use crate::secrets::{SecretSource, Secrets};
use patience::Busy;

/// What lives as long as the function and serves every step.
#[derive(Clone)]
pub struct StepServices {
    /// Facts of runs.
    pub store: Store,
    /// Time.
    pub clock: Clock,
    /// Accounts that are deployed to.
    pub aws: AwsTargets,
    /// Values of secrets.
    pub secrets: Arc<dyn SecretSource>,
    /// What starts runs.
    pub starts: Starts,
}

/// What a step needs that starts runs of other pipelines.
#[derive(Clone)]
pub struct Starts {
    /// Store, Step Functions, and the machine of runs.
    pub runs: Runs,
    /// Files that pipelines refer to.
    pub sources: Arc<dyn SourceReader>,
}

/// Expressions of a node, evaluated against the plan and the facts of its run.
pub trait Expressions: Send + Sync {
    /// `value` with every `<+…>` in its texts replaced; secrets become the holes of
    /// [`slipway_expr::secret`]. Fails naming the expression that cannot be resolved.
    fn evaluate(&self, value: &Value) -> Result<Value, Failure>;

    /// What the expressions of the node can read, for steps that add names of their own to it.
    fn context(&self) -> &dyn slipway_expr::Context;
}

/// What the lane loop knows of the step that it is about to call.
pub struct StepInput<'a> {
    /// The run.
    pub run: &'a RunId,
    /// Its plan.
    pub plan: &'a Plan,
    /// The stage.
    pub stage: &'a StagePlan,
    /// The step.
    pub step: &'a StepPlan,
    /// 0 for the first attempt.
    pub attempt: u32,
    /// `spec` of the step with its expressions resolved; secrets are holes.
    pub spec: &'a Value,
    /// `progress` of the node's record, as stored.
    pub progress: Value,
    /// When the step began, epoch milliseconds.
    pub started_ms: i64,
    /// The nodes of the stage that were started so far, oldest first, with earlier attempts of this step:
    /// a rollback step finds there what to undo, and a repeated step what was there before it.
    pub earlier: &'a [NodeRecord],
    /// What was said about the run, as it was read when the lane was woken: what is said later wakes it again.
    pub said: &'a [SignalRecord],
    /// When the time of the step was up, in epoch milliseconds, where it is called after that: to hear what was said in
    /// time. `said` has nothing that is later.
    pub late_since_ms: Option<i64>,
    /// Whether the run, or its stage, is aborted: nothing is rolled back then.
    pub aborted: bool,
    /// Result of the delegate's work that the step asked for, if it did.
    pub delegate_result: Option<Value>,
    /// Evaluates expressions in documents that the step reads itself (manifests).
    pub expressions: &'a dyn Expressions,
}

/// What the lane loop records after a call of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTrace {
    /// For the node's record, as [`StepInput::progress`] wants it back.
    pub progress: Value,
    /// Command units so far.
    pub units: Vec<UnitRecord>,
    /// What expressions may read of it although it failed.
    pub outputs: Value,
    /// Whether the store has this progress already.
    pub stored: bool,
    /// The kind of what it said that others of its run may wait for, where it is not known that they were woken since.
    pub said: Option<String>,
}

/// Progress as it is stored: what the step saved, and its units, so that a wait does not lose them.
#[derive(Default, Serialize, Deserialize)]
struct Saved {
    #[serde(default)]
    state: Value,
    #[serde(default)]
    units: Vec<UnitRecord>,
    #[serde(default)]
    busy: Option<Busy>,
    #[serde(default)]
    kept: Option<Kept>,
    #[serde(default)]
    owed: Option<Owed>,
    #[serde(default, rename = "undoneBy")]
    undone_by: Vec<String>,
}

/// A step's view of its run. Made by the lane loop for one call of `advance` or `stop`.
pub struct StepContext<'a> {
    services: &'a StepServices,
    input: StepInput<'a>,
    secrets: Secrets<'a>,
    state: Value,
    units: Vec<UnitRecord>,
    /// Progress as the store has it.
    stored: Value,
    log: LogBuffer,
    said: Option<String>,
    outputs: Value,
    /// Since when the target does not do what it is asked for.
    busy: Option<Busy>,
    /// What it set and no step takes back.
    kept: Option<Kept>,
    /// What it took off something and puts on again.
    owed: Option<Owed>,
    /// The types of the steps that undo it.
    undone_by: Vec<String>,
    /// Whether a connector says how often calls are repeated.
    limited: bool,
    /// Whether the credentials are those of a session that Slipway takes.
    renewable: bool,
}

impl<'a> StepContext<'a> {
    /// A context for one call.
    pub fn new(services: &'a StepServices, mut input: StepInput<'a>) -> Self {
        let stored = input.progress.take();
        let saved = Saved::deserialize(&stored).unwrap_or_default();
        Self {
            services,
            secrets: Secrets::new(&*services.secrets, &input.plan.scope),
            input,
            state: saved.state,
            units: saved.units,
            stored,
            log: LogBuffer::default(),
            said: None,
            outputs: Value::Null,
            busy: saved.busy,
            kept: saved.kept,
            owed: saved.owed,
            undone_by: saved.undone_by,
            limited: false,
            renewable: false,
        }
    }

    /// Notes which step types undo this step, for the end of a stage that is rolled back: it tells what none of them undid.
    pub(crate) fn is_undone_by(&mut self, types: Vec<&str>) {
        self.undone_by = types.into_iter().map(str::to_owned).collect();
    }

    /// What expressions may read of the step although it fails, `{"exitCode": 137}` for instance: conditions of retries
    /// and later steps ask for it. Secrets must not be in it.
    pub fn fails_with(&mut self, outputs: Value) {
        self.outputs = outputs;
    }

    /// The run and all of its nodes as they are now, oldest attempts first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn run_so_far(&self) -> Result<(RunRecord, Vec<NodeRecord>), Failure> {
        let run = self.store().get_run(self.run()).await;
        let run = run.map_err(|error| store_failure("read the run", &error))?;
        let nodes = self.store().list_nodes(self.run(), None).await;
        let nodes = nodes.map_err(|error| store_failure("read the steps of the run", &error))?;
        Ok((run, nodes))
    }

    /// What people and steps have said about the run.
    pub fn heard(&self) -> &'a [SignalRecord] {
        self.input.said
    }

    /// What starts runs of other pipelines.
    pub fn starts(&self) -> &'a Starts {
        &self.services.starts
    }

    /// When this attempt of the step began, in epoch milliseconds.
    pub fn started_ms(&self) -> i64 {
        self.input.started_ms
    }

    /// The run.
    pub fn run(&self) -> &'a RunId {
        self.input.run
    }

    /// The plan of the run.
    pub fn plan(&self) -> &'a Plan {
        self.input.plan
    }

    /// The stage that the step belongs to.
    pub fn stage(&self) -> &'a StagePlan {
        self.input.stage
    }

    /// The step as planned.
    pub fn step(&self) -> &'a StepPlan {
        self.input.step
    }

    /// The step's node.
    pub fn node(&self) -> &'a NodeId {
        &self.input.step.id
    }

    /// 0 for the first attempt.
    pub fn attempt(&self) -> u32 {
        self.input.attempt
    }

    /// The step's spec with its expressions resolved; secrets are holes for [`Secrets::reveal`].
    pub fn spec(&self) -> &'a Value {
        self.input.spec
    }

    /// Time and waits shorter than a second. Longer waits are [`crate::Progress::Again`].
    pub fn clock(&self) -> &'a Clock {
        &self.services.clock
    }

    /// The store, for facts that are not the step's own.
    pub fn store(&self) -> &'a Store {
        &self.services.store
    }

    /// When the step's time is up. The lane loop ends it then; a step asks only to shorten a wait.
    pub fn deadline(&self) -> Timestamp {
        let limit = jiff::SignedDuration::try_from(self.input.step.timeout)
            .unwrap_or(jiff::SignedDuration::MAX);
        Timestamp::from_millisecond(self.input.started_ms)
            .and_then(|started| started.checked_add(limit))
            .unwrap_or(Timestamp::MAX)
    }

    /// Whether the step's time is up, or that of what is around it, and it is only asked what it heard before.
    pub fn is_late(&self) -> bool {
        self.input.late_since_ms.is_some()
    }

    /// The time that counts for what ends by the clock: now, or where the step is late, when its time was up.
    pub fn now_in_time(&self) -> Timestamp {
        let up = self.input.late_since_ms.map(Timestamp::from_millisecond);
        let now = self.clock().now();
        up.and_then(Result::ok).map_or(now, |up| up.min(now))
    }

    /// What is left until [`StepContext::deadline`].
    pub fn time_left(&self) -> Duration {
        Duration::try_from(self.deadline().duration_since(self.clock().now())).unwrap_or_default()
    }

    /// Whether what a step that is stopped leaves is left for good: nobody rolls it back.
    pub fn stays_as_it_is(&self) -> bool {
        self.input.aborted || self.input.stage.rollback_steps.is_empty()
    }

    /// Result of the delegate's work, once there is one.
    pub fn delegate_result(&self) -> Option<&Value> {
        self.input.delegate_result.as_ref()
    }

    /// Secrets; everything filled in is masked in this step's log.
    pub fn secrets(&mut self) -> &mut Secrets<'a> {
        &mut self.secrets
    }

    /// `value` with its expressions resolved against the run.
    pub fn evaluate(&self, value: &Value) -> Result<Value, Failure> {
        self.input.expressions.evaluate(value)
    }

    /// The expressions of the run with names of the step's own added (`httpResponseCode`, …), for the
    /// fields that the step resolves itself, see [`crate::Step::own_expressions`].
    pub fn expressions_with<'n>(
        &'n self,
        names: &'n [(&'n str, slipway_expr::Value)],
    ) -> Names<'n> {
        Names::new(self.input.expressions.context(), names)
    }

    /// Notes a count that no step takes back: where the stage is rolled back, its end tells what of it still stands. It is
    /// written with what is saved next.
    pub fn keeps(&mut self, kept: Kept) {
        self.kept = Some(kept);
    }

    /// Takes [`StepContext::keeps`] back: what it was about was refused. It is written with what is saved next.
    pub fn keeps_nothing(&mut self) {
        self.kept = None;
    }

    /// Notes what the step takes off `holder` and puts on again when it ends well or is rolled back: where neither happens, the
    /// end of the stage tells. `None` says that it is on. It is written with what is saved next.
    pub fn owes(&mut self, holder: String, what: Option<Missing>) {
        self.owed = Some(Owed { holder, what });
    }

    /// Keeps `state` for the next call; it is written with what this one comes to. For what no effect depends on.
    pub fn note<T: Serialize>(&mut self, state: &T) -> Result<(), Failure> {
        self.state = serde_json::to_value(state).map_err(|error| Failure {
            error: ErrorType::Unknown,
            message: format!(
                "Cannot write down the progress of {}: {error}.",
                self.node()
            ),
            left_behind: None,
        })?;
        Ok(())
    }

    /// Makes `state` durable, the log before it included. Called before each effect that the state guards.
    pub async fn save<T: Serialize>(&mut self, state: &T) -> Result<(), Failure> {
        self.note(state)?;
        self.flush().await?;
        let progress = self.progress();
        self.services
            .store
            .save_progress(self.run(), self.node(), self.attempt(), &progress)
            .await
            .map_err(|error| store_failure("save the progress of the step", &error))?;
        self.stored = progress;
        Ok(())
    }

    /// Begins a command unit, unless it has begun.
    pub fn unit_started(&mut self, name: &'static str) {
        if self.units.iter().any(|unit| unit.name == name) {
            return;
        }
        self.units.push(UnitRecord {
            name: name.to_owned(),
            status: "RUNNING".to_owned(),
            started_ms: self.clock().now_ms(),
            ended_ms: None,
        });
    }

    /// Ends a command unit, well or not.
    pub fn unit_ended(&mut self, name: &'static str, good: bool) {
        let now = self.clock().now_ms();
        let open = |unit: &&mut UnitRecord| unit.name == name && unit.ended_ms.is_none();
        if let Some(unit) = self.units.iter_mut().find(open) {
            unit.status = if good { "SUCCESS" } else { "FAILURE" }.to_owned();
            unit.ended_ms = Some(now);
        }
    }

    /// Whether a command unit has begun and not ended.
    pub fn unit_is_open(&self, name: &str) -> bool {
        self.units
            .iter()
            .any(|unit| unit.name == name && unit.ended_ms.is_none())
    }

    /// Adds a line to the log of a unit, secrets masked.
    pub fn info(&mut self, unit: &'static str, text: impl AsRef<str>) {
        self.line(unit, "INFO", text.as_ref());
    }

    /// Adds a warning to the log of a unit, secrets masked.
    pub fn warn(&mut self, unit: &'static str, text: impl AsRef<str>) {
        self.line(unit, "WARN", text.as_ref());
    }

    /// Adds an error to the log of a unit, secrets masked.
    pub fn error(&mut self, unit: &'static str, text: impl AsRef<str>) {
        self.line(unit, "ERROR", text.as_ref());
    }

    /// A failure without the secrets that this call filled in: targets repeat what they were sent.
    pub fn masked(&self, failure: Failure) -> Failure {
        Failure {
            error: failure.error,
            message: self.secrets.mask(&failure.message),
            left_behind: failure.left_behind.map(|left| self.secrets.mask(&left)),
        }
    }

    fn line(&mut self, unit: &'static str, level: &str, text: &str) {
        let text = self.secrets.mask(text);
        self.log.push(&self.services.clock, unit, level, &text);
    }

    /// Writes what is in the log so far.
    pub async fn flush(&mut self) -> Result<(), Failure> {
        for (unit, lines) in self.log.take() {
            self.services
                .store
                .append_log(self.run(), self.node(), unit, &lines)
                .await
                .map_err(|error| store_failure("write the log of the step", &error))?;
        }
        Ok(())
    }

    /// Clients of the account and region that the stage's infrastructure names.
    pub async fn aws(&mut self, region: &str) -> Result<AwsTarget, Failure> {
        let stage = self.stage();
        let connector = stage
            .infrastructure
            .as_ref()
            .and_then(|infrastructure| infrastructure.connector.as_ref())
            .ok_or_else(|| Failure {
                error: ErrorType::Unknown,
                message: format!(
                    "Stage {} has no infrastructure with an AWS connector, and step {} needs one.",
                    stage.identifier,
                    self.step().identifier
                ),
                left_behind: None,
            })?;
        self.aws_through(connector, region).await
    }

    /// Clients of the account that a connector leads to.
    pub async fn aws_through(
        &mut self,
        connector: &ConnectorPlan,
        region: &str,
    ) -> Result<AwsTarget, Failure> {
        let evaluated = self.evaluate(&connector.spec)?;
        self.limited |= limits_retries(&evaluated);
        self.renewable |= takes_session(&evaluated);
        let scope = &self.input.plan.scope;
        self.services
            .aws
            .target(connector, &evaluated, scope, region, &mut self.secrets)
            .await
    }

    /// Notes what was deployed and what runs of it now, so that the sweep counts it from now on.
    pub async fn deployed(
        &self,
        deployed: &DeployedRecord,
        instances: &[InstanceRecord],
    ) -> Result<(), Failure> {
        let store = &self.services.store;
        store
            .put_deployed(deployed)
            .await
            .map_err(|error| store_failure("note what was deployed", &error))?;
        store
            .put_instances(deployed, instances)
            .await
            .map_err(|error| store_failure("store the instances", &error))
    }

    /// Ends the call: writes the log and answers with what belongs into the node's record. A unit that
    /// is still open is closed when the step has ended (`ended` tells how).
    pub async fn finish(mut self, ended: Option<bool>) -> Result<StepTrace, Failure> {
        if let Some(good) = ended {
            let now = self.clock().now_ms();
            for unit in self.units.iter_mut().filter(|unit| unit.ended_ms.is_none()) {
                unit.status = if good { "SUCCESS" } else { "FAILURE" }.to_owned();
                unit.ended_ms = Some(now);
            }
        }
        self.flush().await?;
        let progress = self.progress();
        Ok(StepTrace {
            stored: progress == self.stored,
            said: self.said,
            outputs: self.outputs,
            progress,
            units: self.units,
        })
    }

    fn progress(&self) -> Value {
        let parts = (&self.busy, &self.kept, &self.owed);
        if self.state.is_null() && self.units.is_empty() && parts == (&None, &None, &None) {
            return Value::Null;
        }
        let mut progress = serde_json::json!({"state": self.state, "units": self.units});
        if let Some(busy) = &self.busy {
            progress["busy"] = serde_json::json!(busy);
        }
        if let Some(kept) = &self.kept {
            progress[KEPT] = serde_json::json!(kept);
        }
        if let Some(owed) = &self.owed {
            progress[OWED] = serde_json::json!(owed);
        }
        if !self.undone_by.is_empty() && !self.state.is_null() {
            progress[UNDONE_BY] = serde_json::json!(self.undone_by);
        }
        progress
    }
}

/// A store's error as the failure of a step. Where the store does not answer the call is repeated.
pub(crate) fn store_failure(doing: &str, error: &StoreError) -> Failure {
    if matches!(
        error,
        StoreError::Throttled { .. } | StoreError::Unavailable { .. }
    ) {
        outage::met();
    }
    told(doing, error)
}

/// A use case of the engine that did not succeed, as the failure of a step. Where a service does not answer the call is
/// repeated.
pub(crate) fn run_failure(doing: &str, error: &RunError) -> Failure {
    if matches!(
        error.name(),
        ErrorName::StoreUnavailable | ErrorName::WorkflowUnavailable
    ) {
        outage::met();
    }
    Failure {
        error: ErrorType::Unknown,
        message: format!("Cannot {doing}: {}", error.full_text()),
        left_behind: None,
    }
}

/// A store's error, for people.
pub(crate) fn told(doing: &str, error: &dyn std::error::Error) -> Failure {
    let mut message = format!("Cannot {doing}: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    Failure {
        error: ErrorType::Unknown,
        message,
        left_behind: None,
    }
}
