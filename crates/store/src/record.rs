//! What the tables hold, as Rust types. Each is one item unless its doc says otherwise.

mod intake;
mod person;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::id::{AccountId, EntityId, LaneId, NodeId, PrincipalId, RunId, Scope, StageId};
use slipway_model::status::{Failure, Status};
use slipway_plan::Chosen;

pub use intake::{
    ErrandRecord, EventRecord, FeedRecord, FirstEvent, HookRecord, HookResult, InRef, NewestRecord,
    OutcomeRecord, RefRecord,
};
pub use person::{PersonRecord, Removal};

/// A stored entity: the user's YAML verbatim, and what lists and look-ups need of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntityRecord {
    /// Where it lives.
    pub scope: Scope,
    /// Root key of its YAML: `pipeline`, `service`, `environment`, `infrastructureDefinition`,
    /// `connector`, `secret`, `organization`, `project`, ….
    pub kind: String,
    /// Owner inside the scope where identifiers are unique only below it: the environment of an
    /// infrastructure; otherwise `None`.
    pub parent: Option<EntityId>,
    /// `identifier`.
    pub id: EntityId,
    /// `name`.
    pub name: String,
    /// `description`.
    pub description: Option<String>,
    /// `tags`.
    #[serde(default)]
    pub tags: Vec<(String, String)>,
    /// `type` of the entity where it has one (connector, environment, infrastructure, service).
    pub entity_type: Option<String>,
    /// The text as the user gave it. Stored apart, compressed, when it is large.
    pub yaml: String,
    /// Grows by one with each change; updates are conditional on it.
    pub version: u64,
    /// Epoch milliseconds.
    pub created_ms: i64,
    /// Epoch milliseconds.
    pub updated_ms: i64,
    /// What the last test of its connection said; of connectors only. It is stored beside the entity and ends with this
    /// version of it: what was changed is untested.
    #[serde(skip)]
    pub connection: Option<ConnectionRecord>,
    /// Where its YAML is kept, where that is Git; `yaml` is then what was read or saved last of its branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitPlace>,
    /// Who saved it last; of triggers only, which start runs in that person's name. `None` of what an earlier version
    /// saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_by: Option<PrincipalId>,
}

/// A file in a Git repository, and what was read of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitPlace {
    /// `connectorRef`: the connector that says how to get there.
    pub connector: String,
    /// `repoName`: which repository, where the connector is for several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// `filePath`.
    pub path: String,
    /// The branch; the default branch for `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Id of the file's object in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

/// What the last test of a connector's connection said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionRecord {
    /// When it was tested, epoch milliseconds.
    pub tested_ms: i64,
    /// When a test last succeeded, epoch milliseconds.
    #[serde(default)]
    pub connected_ms: Option<i64>,
    /// Why it failed; `None` where it succeeded.
    #[serde(default)]
    pub failure: Option<Failure>,
}

/// One run of a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Also the name of the Step Functions execution.
    pub id: RunId,
    /// Where the pipeline lives.
    pub scope: Scope,
    /// The pipeline.
    pub pipeline: EntityId,
    /// Its name when the run began.
    pub name: String,
    /// Harness's `runSequence`: 1, 2, … per pipeline.
    pub sequence: u64,
    /// Where it stands.
    pub status: Status,
    /// Who or what started it: `MANUAL`, `WEBHOOK_CUSTOM`, ….
    pub trigger_type: String,
    /// Who started it.
    pub triggered_by: PrincipalId,
    /// Epoch milliseconds.
    pub started_ms: i64,
    /// Epoch milliseconds, once ended.
    pub ended_ms: Option<i64>,
    /// Digest of the pipeline YAML with inputs merged (a blob).
    pub yaml: String,
    /// Digest of the runtime inputs as given (a blob), if any.
    pub inputs: Option<String>,
    /// Digest of the plan (a blob), once planned.
    pub plan: Option<String>,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// A person asked for it to stop: who, and when (epoch milliseconds).
    pub abort: Option<(PrincipalId, i64)>,
    /// Tags of the pipeline at the start.
    #[serde(default)]
    pub tags: Vec<(String, String)>,
    /// Stages, by id, in the order of the plan, with their status.
    #[serde(default)]
    pub stages: Vec<StageSummary>,
    /// The step of another run that waits for this one, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRecord>,
    /// The trigger and the event that started it, where no person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<TriggerRecord>,
    /// What people said about it while it ran, oldest first. Each is an item of its own.
    #[serde(skip)]
    pub signals: Vec<SignalRecord>,
    /// The stages that were chosen, where not all of them run.
    #[serde(default)]
    pub chosen: Option<Chosen>,
    /// The earlier run that it repeats or rolls back, where it does.
    #[serde(default)]
    pub origin: Option<Origin>,
    /// What people wrote about it, changed while it runs and after it.
    #[serde(skip)]
    pub notes: String,
    /// Base URL of the REST API when it was accepted, for links to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What its pipeline was read from, where that is kept in Git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitPlace>,
}

impl RunRecord {
    /// The user who started it; `None` where a trigger did.
    pub fn person(&self) -> Option<&PrincipalId> {
        let is_person = !self.triggered_by.as_str().starts_with(OF_TRIGGER);
        is_person.then_some(&self.triggered_by)
    }

    /// Who or what started it, for people to read: where a trigger did, whom its event names.
    pub fn starter(&self) -> &str {
        match (&self.trigger, self.person()) {
            (Some(by), None) if !by.by.is_empty() => &by.by,
            _ => self.triggered_by.as_str(),
        }
    }

    /// The run that did the work of a stage: an earlier one where its result was taken over.
    pub fn doer(&self, stage: &StageId) -> &RunId {
        let mut kept = self.origin.iter().flat_map(|origin| &origin.kept);
        let found = kept.find(|(known, _)| known == stage);
        found.map_or(&self.id, |(_, run)| run)
    }

    /// The run whose rollback steps of a stage are the ones that this run shows: itself, where it rolls another
    /// one back.
    pub fn undoer(&self, stage: &StageId) -> &RunId {
        match self.undoes() {
            Some(_) => &self.id,
            None => self.doer(stage),
        }
    }

    /// What it rolls back, where it does nothing else (post-deployment rollback).
    pub fn undoes(&self) -> Option<&Origin> {
        let origin = self.origin.as_ref();
        origin.filter(|origin| origin.how == Again::Rollback)
    }

    /// The first run of its chain of retries; itself where it is none.
    pub fn root(&self) -> &RunId {
        match &self.origin {
            Some(origin) if origin.how == Again::Retry => &origin.root,
            _ => &self.id,
        }
    }
}

/// The earlier run that a run repeats or rolls back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// That run.
    pub run: RunId,
    /// In which way.
    pub how: Again,
    /// The first run of the chain of retries.
    pub root: RunId,
    /// When that one began, in epoch milliseconds.
    pub root_started_ms: i64,
    /// Stages that it was taken up again at, or that are rolled back.
    #[serde(default)]
    pub stages: Vec<StageId>,
    /// Stages whose results were taken over, each with the run that did its work.
    #[serde(default)]
    pub kept: Vec<(StageId, RunId)>,
}

/// In which way a run repeats another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Again {
    /// From the beginning.
    Rerun,
    /// From a stage on; what came before is taken over.
    Retry,
    /// It undoes what the other did: everything is taken over, and rollback steps run.
    Rollback,
}

/// The step of another run that a run is a part of (pipeline chaining).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentRecord {
    /// The other run.
    pub run: RunId,
    /// Its step.
    pub node: NodeId,
    /// Which attempt of it.
    pub attempt: u32,
}

/// The trigger that started a run, and for what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriggerRecord {
    /// `identifier` of the trigger, which is one of the run's pipeline.
    pub trigger: EntityId,
    /// Its name then.
    pub name: String,
    /// Id of the event.
    pub event: String,
    /// `Webhook`, `Scheduled`, …: the type of the trigger's source.
    pub source: String,
    /// What lists of runs show of the event: `branch`, `commitSha`, `prNumber`, ….
    #[serde(default)]
    pub about: BTreeMap<String, String>,
    /// Who did what the event tells, as its sender says, or the trigger's name: nobody of Slipway's, whatever it is.
    #[serde(default)]
    pub by: String,
}

/// What identities of triggers begin with; no user's does.
pub const OF_TRIGGER: &str = "trigger:";

impl TriggerRecord {
    /// Who starts the runs of a trigger. What a sender says of people must not make it one of them.
    pub fn principal(trigger: &EntityId) -> PrincipalId {
        PrincipalId::new(format!("{OF_TRIGGER}{trigger}"))
    }
}

/// What a person said about a run or a node of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignalRecord {
    /// The run.
    pub run: RunId,
    /// The node; empty for the run as a whole.
    pub node: NodeId,
    /// Which attempt of the node; for the run as a whole the number of the signal, from 0.
    pub attempt: u32,
    /// What it is about: `answer`, `stop`, `pause`, ….
    pub kind: String,
    /// What was said.
    pub says: String,
    /// Who.
    pub who: PrincipalId,
    /// When, in epoch milliseconds.
    pub at_ms: i64,
}

/// What a list of runs shows of a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageSummary {
    /// The stage.
    pub id: StageId,
    /// Its name.
    pub name: String,
    /// Its `type`.
    pub stage_type: String,
    /// Where it stands.
    pub status: Status,
    /// Epoch milliseconds.
    pub started_ms: Option<i64>,
    /// Epoch milliseconds.
    pub ended_ms: Option<i64>,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// Whether its rollback steps ran: a later stage's `pipelineStatus: Failure` does not see it as failed.
    #[serde(default)]
    pub rolled_back: bool,
    /// Whether a failure in it demands that the whole run is rolled back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undoes_run: bool,
    /// Whether its turns run in its place: a stage that loops over what the run brings forth. Runs are read without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_apart: bool,
    /// How rolling it back with the whole run stands, where that was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<UndoRecord>,
}

/// How rolling back a stage that had ended stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UndoRecord {
    /// `NotStarted`, `Running`, or how it ended.
    pub status: Status,
    /// Epoch milliseconds.
    pub started_ms: Option<i64>,
    /// Epoch milliseconds.
    pub ended_ms: Option<i64>,
    /// Why it failed, and what it left behind.
    pub failure: Option<Failure>,
}

/// A node of a run: a stage, step group, parallel block or step, in its newest attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The run.
    pub run: RunId,
    /// Fully qualified name in the plan.
    pub id: NodeId,
    /// The stage it belongs to.
    pub stage: StageId,
    /// The lane that walks it.
    pub lane: LaneId,
    /// 0 for the first attempt.
    pub attempt: u32,
    /// `identifier`.
    pub identifier: EntityId,
    /// `name`.
    pub name: String,
    /// Step type; `STAGE`, `STEP_GROUP` or `PARALLEL` for the others.
    pub node_type: String,
    /// Where it stands.
    pub status: Status,
    /// Epoch milliseconds.
    pub started_ms: i64,
    /// Epoch milliseconds, once ended.
    pub ended_ms: Option<i64>,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// The spec with its expressions resolved; secrets stay references.
    #[serde(default)]
    pub spec: Value,
    /// What expressions may read once it ended (`output`, …).
    #[serde(default)]
    pub outputs: Value,
    /// What the step wrote to find its way after a wait or a crash, rollback data included.
    #[serde(default)]
    pub progress: Value,
    /// Command units, in order.
    #[serde(default)]
    pub units: Vec<UnitRecord>,
    /// Name of the delegate that took its task.
    pub delegate: Option<String>,
    /// When a person was asked about its failure, in epoch milliseconds.
    #[serde(default)]
    pub asked_ms: Option<i64>,
    /// How often the step groups around it had been begun again, all counted, when it began.
    #[serde(default)]
    pub round: u32,
    /// Its first attempt in that round.
    #[serde(default)]
    pub base: u32,
    /// Conditions of its failure strategies' retries that did not hold when it failed: what is decided about the
    /// failure must not change afterwards.
    #[serde(default)]
    pub refused: Vec<String>,
}

/// A command unit of a step: a section of its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitRecord {
    /// `Execute`, `Prepare Rollback Data`, `Deploy`, ….
    pub name: String,
    /// `RUNNING`, `SUCCESS` or `FAILURE`.
    pub status: String,
    /// Epoch milliseconds.
    pub started_ms: i64,
    /// Epoch milliseconds, once ended.
    pub ended_ms: Option<i64>,
}

/// One line of a step's log, in the form of the log service (`API.md` 4.8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// `INFO`, `WARN` or `ERROR`.
    pub level: String,
    /// Text with its line end, secrets masked, at most 60 KiB.
    pub out: String,
    /// RFC 3339 with a fraction.
    pub time: String,
}

/// An open wait: what completes it, so that an abort or a late fact can find it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitRecord {
    /// The run.
    pub run: RunId,
    /// The node (or the stage's node) that waits.
    pub node: NodeId,
    /// Which attempt of it.
    pub attempt: u32,
    /// `delegate`, `resource`, `approval`, ….
    pub kind: String,
    /// The task token; never shown by the API. `None` for activities, whose worker holds it.
    pub token: Option<String>,
    /// The delegate task that is waited for; `None` for other waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// Work for a delegate, and its result once it has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelegateTaskRecord {
    /// Made by the engine (`task_id` in `slipway_engine::abort`).
    pub id: String,
    /// The project of an errand: work that no run waits for. Its run and node are empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errand_of: Option<Scope>,
    /// The run.
    pub run: RunId,
    /// The node.
    pub node: NodeId,
    /// The attempt.
    pub attempt: u32,
    /// `ShellScript`, ….
    pub task_type: String,
    /// What to do; secrets are references (`secret://…`), resolved when a delegate fetches it.
    #[serde(default)]
    pub payload: Value,
    /// Selectors that the delegate must carry.
    #[serde(default)]
    pub selectors: Vec<String>,
    /// Delegates that asked for it and lack a selector, the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsuitable: Vec<String>,
    /// Delegate that took it.
    pub delegate: Option<String>,
    /// The result, once reported.
    pub result: Option<Value>,
    /// When it was reported, in epoch milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_ms: Option<i64>,
    /// Set when nobody needs it any more; the delegate kills the work.
    #[serde(default)]
    pub cancelled: bool,
}

/// One counted service instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstanceRecord {
    /// Where its service lives.
    pub scope: Scope,
    /// The service.
    pub service: EntityId,
    /// The environment.
    pub environment: EntityId,
    /// The infrastructure.
    pub infrastructure: EntityId,
    /// Unique key of the instance in its target: the task ARN for ECS.
    pub key: String,
    /// What it is made of, by platform (`taskArn`, `taskDefinitionArn`, `startedBy`, …).
    #[serde(default)]
    pub info: Value,
    /// The artifact it runs, as far as it can be told.
    pub artifact: Option<String>,
    /// Run that deployed it, if it came from one.
    pub run: Option<RunId>,
    /// Epoch milliseconds of the sweep that saw it last.
    pub seen_ms: i64,
}

/// What the sweep must count: one per service and infrastructure that was ever deployed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeployedRecord {
    /// Where its service lives.
    pub scope: Scope,
    /// The service.
    pub service: EntityId,
    /// The environment.
    pub environment: EntityId,
    /// The infrastructure.
    pub infrastructure: EntityId,
    /// Deployment type, `ECS` for instance.
    pub deployment_type: String,
    /// Where and how to look (`region`, `cluster`, `serviceName`, the connector plan): no secrets.
    #[serde(default)]
    pub target: Value,
    /// Run that changed it last: by a deployment, or by rolling one back.
    pub run: RunId,
    /// The run whose deployment is there again, where the last change rolled another one back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<RunId>,
    /// Artifact that runs there.
    pub artifact: Option<String>,
    /// What the deployment replaced; `None` where it was the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ReplacedRecord>,
    /// Number of instances at the last sweep, and when it was (epoch milliseconds).
    pub counted: Option<(u32, i64)>,
    /// Why the newest sweep could not count: the number and the instances are of an earlier one.
    #[serde(default)]
    pub uncounted: Option<String>,
}

impl DeployedRecord {
    /// The run whose deployment is there.
    pub fn deployer(&self) -> &RunId {
        self.restores.as_ref().unwrap_or(&self.run)
    }
}

/// What a deployment replaced, as far as it is known: somebody else may have deployed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedRecord {
    /// The run that had deployed it.
    #[serde(default)]
    pub run: Option<RunId>,
    /// Its artifact.
    #[serde(default)]
    pub artifact: Option<String>,
}

/// An API token as it is stored: everything but the token itself, of which only a hash is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// The account that it opens.
    pub account: AccountId,
    /// Who uses it.
    pub principal: PrincipalId,
    /// For people, to name it in lists and logs.
    pub id: String,
    /// For people.
    pub name: String,
    /// What it may be used for: `admin`, `delegate`, `logs`.
    #[serde(default)]
    pub permissions: Vec<String>,
    /// Epoch milliseconds.
    #[serde(default)]
    pub valid_from_ms: i64,
    /// Epoch milliseconds after which it is refused; 0 for never.
    #[serde(default)]
    pub valid_to_ms: i64,
}
