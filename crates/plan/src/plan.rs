//! The plan: what a run will do, decided before it starts.
//!
//! Everything that can be known at the start is a plain value here. What depends on the run (outputs,
//! statuses) stays text with `<+…>` in it, checked to parse, and is evaluated when its node starts.

use std::time::Duration;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use slipway_model::id::{EntityId, NodeId, Scope, StageId};

use crate::{EnvironmentPlan, Iteration, LateArtifact, PinnedArtifact};

/// An immutable plan of one run; stored once, by the digest of its canonical JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of this layout; a reader refuses a newer one.
    pub format: u32,
    /// Where the pipeline lives.
    pub scope: Scope,
    /// `identifier` of the pipeline.
    pub pipeline: EntityId,
    /// `name` of the pipeline.
    pub name: String,
    /// `tags` of the pipeline.
    pub tags: IndexMap<String, String>,
    /// Pipeline variables; values may hold expressions. Secret variables hold a secret reference.
    pub variables: Vec<Variable>,
    /// Variables of the account, organization and project that anything in the plan reads, by how it calls
    /// them: `variable.account.region`; and what it reads of these themselves and of the pipeline: `project.name`
    /// ([`Plan::label`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope_variables: Vec<Variable>,
    /// Files of the file store that expressions anywhere in the plan read, by the path they name, with content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(String, String)>,
    /// What `<+trigger.…>` stands for, where an event started the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Value>,
    /// `notificationRules` of the pipeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<NotificationPlan>,
    /// `flowControl.barriers` of the pipeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub barriers: Vec<BarrierPlan>,
    /// What the pipeline says and this version does nothing about, each with its path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Time limit of the whole run.
    #[serde(with = "seconds")]
    pub timeout: Duration,
    /// Stages that run one group after the other; the stages of one group run side by side.
    pub groups: Vec<Vec<StagePlan>>,
}

impl Plan {
    /// What `project.name`, `org.tags.TEAM`, `pipeline.delegateSelectors` and the like stand for, as far as something in
    /// the plan reads them.
    pub fn label(&self, path: &[&str]) -> Option<Value> {
        crate::resolve::label(&self.scope_variables, path)
    }

    /// What `trigger.branch`, `trigger.payload.ref`, `eventPayload.ref` and the like stand for, where an event started the run.
    pub fn event_fact(&self, path: &[&str]) -> Option<&Value> {
        event_fact(self.trigger.as_ref()?, path)
    }
}

/// A value of what an event tells: `trigger.…` is all of it, `eventPayload.…` its payload. Names of headers are looked
/// for in any case, as HTTP has them.
pub fn event_fact<'e>(event: &'e Value, path: &[&str]) -> Option<&'e Value> {
    let (start, rest) = match path {
        ["trigger", rest @ ..] => (event, rest),
        ["eventPayload", rest @ ..] => (event.get("payload")?, rest),
        _ => return None,
    };
    match rest {
        ["header", name, below @ ..] => {
            let header = start.get("header")?.as_object()?.iter();
            let mut named = header.filter(|(known, _)| known.eq_ignore_ascii_case(name));
            below
                .iter()
                .try_fold(named.next()?.1, |value, key| value.get(*key))
        }
        path => path.iter().try_fold(start, |value, key| value.get(*key)),
    }
}

/// One entry of `notificationRules`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotificationPlan {
    /// `name` in YAML.
    pub name: String,
    /// Whether it tells anybody.
    pub enabled: bool,
    /// What it tells of.
    pub events: Vec<EventPlan>,
    /// `notificationMethod` as written, `{type, spec}`, with secrets as references.
    pub method: Option<Value>,
    /// `template` as written: the link to a notification template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Value>,
    /// What the template says, its inputs filled in; without one the standard message is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessagePlan>,
    /// Why the standard message is sent all the same, where a template is linked that cannot word one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// The body of a notification template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessagePlan {
    /// `JSON`, `YAML`, `STRING` or `HTML`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text, with its expressions.
    pub content: String,
}

/// One entry of `pipelineEvents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventPlan {
    /// `PipelineFailed`, for instance.
    #[serde(rename = "type")]
    pub kind: String,
    /// Identifiers of the stages that count; all, where none are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<String>,
    /// Identifiers of the steps that count; all, where none are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
}

/// A place where lanes wait for one another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarrierPlan {
    /// `identifier`.
    pub identifier: EntityId,
    /// `name`.
    pub name: String,
}

/// `type` of a stage that runs another pipeline, and of the one step that it has in a plan.
pub const CHAINED: &str = "Pipeline";

/// Type of the step that asks for variables of its stage when the stage begins; plans have it, no document names it.
pub const STAGE_INPUTS: &str = "StageInputs";

/// Type of the step that asks registries for what only the run can name, when the stage begins; plans have it, no document
/// names it.
pub const PIN_ARTIFACTS: &str = "PinArtifacts";

/// One stage of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StagePlan {
    /// Unique in the plan.
    pub id: StageId,
    /// `identifier` in YAML.
    pub identifier: EntityId,
    /// `name` in YAML.
    pub name: String,
    /// `type` in YAML: `Deployment`, `Custom`, …
    pub stage_type: String,
    /// `deploymentType` of a Deployment stage, `ECS` for instance.
    pub deployment_type: Option<String>,
    /// `description` of the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `tags` of the stage.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub tags: IndexMap<String, String>,
    /// Stage variables.
    pub variables: Vec<Variable>,
    /// Condition; `None` is Harness's default (run when nothing failed before).
    pub when: Option<When>,
    /// `failureStrategies` of the stage.
    pub failure_strategies: Vec<FailureStrategy>,
    /// Delegate selectors of the stage; those of the pipeline where it has none.
    pub delegate_selectors: Vec<String>,
    /// Time limit of the stage.
    #[serde(with = "seconds")]
    pub timeout: Duration,
    /// The service, for Deployment stages.
    pub service: Option<ServicePlan>,
    /// The environment, for Deployment stages.
    pub environment: Option<EnvironmentPlan>,
    /// The infrastructure, for Deployment stages.
    pub infrastructure: Option<InfrastructurePlan>,
    /// `execution.steps`.
    pub steps: Vec<Node>,
    /// `execution.rollbackSteps`.
    pub rollback_steps: Vec<Node>,
    /// Which turn of its looping strategy it is, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<Iteration>,
    /// Where it loops over what the run brings forth: the loop. When its group is about to begin, [`Plan::unrolled`] has
    /// its turns in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<RunLoop>,
    /// Where somebody must start it (`runMode` Manual): how long that may take, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within: Option<u64>,
}

/// A variable of a pipeline, stage or service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    /// `name` in YAML.
    pub name: String,
    /// `String`, `Number` or `Secret`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value, possibly with expressions; for `Secret` the reference of the secret.
    pub value: Value,
}

/// A resolved service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServicePlan {
    /// The reference as the pipeline wrote it.
    pub reference: String,
    /// `identifier`.
    pub identifier: EntityId,
    /// `name`.
    pub name: String,
    /// `serviceDefinition.type`, `ECS` for instance.
    pub deployment_type: String,
    /// `description`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `tags`.
    pub tags: IndexMap<String, String>,
    /// Service variables after overrides.
    pub variables: Vec<Variable>,
    /// Manifests after overrides, in order.
    pub manifests: Vec<ManifestPlan>,
    /// Primary artifact, with its source.
    pub artifact: Option<ArtifactPlan>,
    /// Further artifacts, `artifacts.sidecars`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sidecars: Vec<ArtifactPlan>,
    /// Configuration files after overrides, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_files: Vec<ConfigFilePlan>,
    /// Everything else of `serviceDefinition.spec`, as written (for instance `ecsTaskDefinitionArn`).
    pub spec: Value,
}

/// A manifest with its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManifestPlan {
    /// `identifier`.
    pub identifier: EntityId,
    /// `type`, `EcsTaskDefinition` for instance.
    #[serde(rename = "type")]
    pub kind: String,
    /// The store as written: `{type, spec}`; content of `Inline` stores is in `spec.content`.
    pub store: Value,
    /// Path and text.
    pub files: Vec<(String, String)>,
    /// The commit that they were read at, of Git stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Everything else of `spec`, as written (`valuesPaths`, `configOverridePath`, …).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
}

/// A configuration file of a service with its content or with where to get it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigFilePlan {
    /// `identifier`.
    pub identifier: EntityId,
    /// The store as written: `{type, spec}`. Secret files stay references in it.
    pub store: Value,
    /// Path and text; none of secret files.
    pub files: Vec<(String, String)>,
    /// The commit that they were read at, of Git stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A resolved artifact source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArtifactPlan {
    /// `identifier` of the source.
    pub identifier: String,
    /// `type` of the source: `DockerRegistry`, `Ecr`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// `spec` of the source, as written.
    pub spec: Value,
    /// What `<+artifact.image>` is, possibly with expressions.
    pub image: Option<String>,
    /// What `<+artifact.tag>` is, possibly with expressions.
    pub tag: Option<String>,
    /// What the registry said when the run was planned; the image, tag and spec above say the same. `None` where it
    /// was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Box<PinnedArtifact>>,
    /// What the registry is asked when the stage begins, where only the run can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<Box<LateArtifact>>,
}

impl ArtifactPlan {
    /// `sha256:…` of an image, the id of a machine image, the version of an object: what the registry told.
    pub fn digest(&self) -> Option<&str> {
        self.pinned.as_ref()?.found.digest.as_deref()
    }

    /// The image by its tag, as Harness writes it, also where it is deployed by its digest.
    fn tagged_image(&self) -> Option<String> {
        let image = self.image.as_deref()?;
        let digest = self.digest().map(|digest| format!("@{digest}"));
        let repository = digest.and_then(|digest| image.strip_suffix(&digest));
        Some(match (repository, &self.tag) {
            (Some(repository), Some(tag)) => format!("{repository}:{tag}"),
            _ => image.to_owned(),
        })
    }

    /// What `<+artifact.metadata>` is. `SHAV2` is the digest of an image's manifest of schema 2 (docs
    /// continuous-delivery/x-platform-cd-features/services/artifact-sources, Docker digests); nobody keeps schema 1.
    pub fn metadata(&self) -> Value {
        let found = self.pinned.iter().flat_map(|pinned| &pinned.found.metadata);
        let mut all: Map<String, Value> = found
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect();
        if let Some(digest) = self.digest().filter(|digest| digest.contains(':')) {
            for name in ["SHA", "SHAV2"] {
                all.insert(name.to_owned(), digest.into());
            }
        }
        for (name, value) in [("image", self.tagged_image()), ("tag", self.tag.clone())] {
            if let Some(value) = value {
                // A script may tell attributes of these names.
                all.entry(name).or_insert_with(|| value.into());
            }
        }
        Value::Object(all)
    }
}

/// A resolved infrastructure definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InfrastructurePlan {
    /// `identifier`.
    pub identifier: EntityId,
    /// `name`.
    pub name: String,
    /// `type`, `ECS` for instance.
    #[serde(rename = "type")]
    pub kind: String,
    /// `tags`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub tags: IndexMap<String, String>,
    /// Whether several deployments of one service may run at once.
    pub allow_simultaneous_deployments: bool,
    /// `spec` with inputs filled in, possibly with expressions (`region`, `cluster`, …).
    pub spec: Value,
    /// The connector that `spec.connectorRef` names, for cloud infrastructures.
    pub connector: Option<ConnectorPlan>,
    /// Its `name`: `<+infra.connector.name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connector_name: Option<String>,
}

/// A resolved connector: references to secrets, never secrets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConnectorPlan {
    /// The reference as written.
    pub reference: String,
    /// `type`, `Aws` for instance.
    #[serde(rename = "type")]
    pub kind: String,
    /// `spec` as written.
    pub spec: Value,
}

impl Plan {
    /// The step of this id, wherever in the plan it is.
    pub fn step(&self, id: &NodeId) -> Option<&StepPlan> {
        let stages = self.groups.iter().flatten();
        let mut sections = stages.flat_map(|stage| [&stage.steps, &stage.rollback_steps]);
        sections.find_map(|nodes| find_step(nodes, id))
    }
}

fn find_step<'p>(nodes: &'p [Node], id: &NodeId) -> Option<&'p StepPlan> {
    nodes.iter().find_map(|node| match node {
        Node::Step(step) => (step.id == *id).then_some(step),
        Node::Group(group) => {
            find_step(&group.nodes, id).or_else(|| find_step(&group.rollback_steps, id))
        }
        Node::Parallel(parallel) => find_step(&parallel.branches, id),
    })
}

/// Something that a lane walks over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "node", rename_all = "camelCase")]
pub enum Node {
    /// One step.
    Step(StepPlan),
    /// A step group: its nodes in order.
    Group(GroupPlan),
    /// Branches that run side by side, each a list of nodes.
    Parallel(ParallelPlan),
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepPlan {
    /// Fully qualified name.
    pub id: NodeId,
    /// `identifier`.
    pub identifier: EntityId,
    /// `name`.
    pub name: String,
    /// `type`, `EcsRollingDeploy` for instance.
    #[serde(rename = "type")]
    pub step_type: String,
    /// `spec` with runtime inputs filled in, possibly with expressions.
    pub spec: Value,
    /// Condition.
    pub when: Option<When>,
    /// `failureStrategies` of the step.
    pub failure_strategies: Vec<FailureStrategy>,
    /// Delegate selectors of the step, or of the nearest step group that has any; where there are none, those
    /// of the stage count. `spec.delegateSelectors` goes before all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegate_selectors: Vec<String>,
    /// The connector that `spec.connectorRef` names, of a step that calls a system through it
    /// ([`crate::fit::step_connector`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connector: Option<Box<ConnectorPlan>>,
    /// What the stores in its spec hold ([`crate::fit::step_stores`]); the identifier is the field's name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<ManifestPlan>,
    /// Time limit of the step.
    #[serde(with = "seconds")]
    pub timeout: Duration,
    /// Which turn of its looping strategy it is, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<Iteration>,
}

impl StepPlan {
    /// A step that nobody wrote, which Slipway puts before those of a stage: without a condition and without strategies of
    /// its own.
    pub(crate) fn ahead(
        id: NodeId,
        (identifier, name): (&str, &str),
        (step_type, spec): (&str, Value),
        timeout: Duration,
    ) -> Self {
        Self {
            id,
            identifier: EntityId::new(identifier),
            name: name.to_owned(),
            step_type: step_type.to_owned(),
            spec,
            when: None,
            failure_strategies: Vec::new(),
            delegate_selectors: Vec::new(),
            connector: None,
            manifests: Vec::new(),
            timeout,
            iteration: None,
        }
    }
}

/// A step group of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupPlan {
    /// Fully qualified name.
    pub id: NodeId,
    /// `identifier`.
    pub identifier: EntityId,
    /// `name`.
    pub name: String,
    /// Condition.
    pub when: Option<When>,
    /// `failureStrategies` of the group.
    pub failure_strategies: Vec<FailureStrategy>,
    /// How long its steps may take together, those of its rollback apart.
    #[serde(
        default,
        with = "optional_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub timeout: Option<Duration>,
    /// Variables of the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// The nodes, in order.
    pub nodes: Vec<Node>,
    /// `rollbackSteps` of the group.
    pub rollback_steps: Vec<Node>,
    /// Which turn of its looping strategy it is, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<Iteration>,
}

/// Branches that run side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParallelPlan {
    /// Fully qualified name, made from the place in the YAML.
    pub id: NodeId,
    /// The branches; none of a loop of no turns.
    pub branches: Vec<Node>,
    /// How many of them run at once; 0 is no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub concurrency: u32,
    /// Whether branches that wait for their time are given up when one fails (`onFailure: SkipQueued` of a loop).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skips_queued: bool,
    /// Where the branches are the turns of a loop over what the run brings forth: the loop. Until it begins there is
    /// one branch, the element that loops; then [`Plan::unrolled`] has as many as there are turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<RunLoop>,
}

/// A loop over what the run brings forth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunLoop {
    /// `identifier` of the element that loops.
    pub of: EntityId,
    /// `name` of the element that loops.
    pub name: String,
    /// `strategy` as written.
    pub strategy: Value,
}

impl RunLoop {
    /// Whether turns that wait for their time are given up when one fails.
    pub fn skips_queued(&self) -> bool {
        self.strategy.get("onFailure").and_then(Value::as_str) == Some("SkipQueued")
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// `when` of a stage, group or step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct When {
    /// Which status of what came before lets it run.
    pub status: WhenStatus,
    /// Further condition, an expression.
    pub condition: Option<String>,
}

/// `pipelineStatus` or `stageStatus` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhenStatus {
    /// Nothing failed before.
    Success,
    /// Something failed before.
    Failure,
    /// In any case.
    All,
}

/// One entry of `failureStrategies`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureStrategy {
    /// Error types, `AllErrors` for instance.
    pub errors: Vec<String>,
    /// `type` of the action, `StageRollback` for instance.
    pub action: String,
    /// `spec` of the action, as written.
    pub spec: Value,
}

/// Durations as whole seconds.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u64(d.as_secs())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        u64::deserialize(d).map(Duration::from_secs)
    }
}

mod optional_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
        d.map(|d| d.as_secs()).serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<Duration>, D::Error> {
        let seconds = Option::<u64>::deserialize(d)?;
        Ok(seconds.map(Duration::from_secs))
    }
}
