//! The graph of a run (`executionGraph` of the v2 detail): the tree that the clients draw and follow.
//!
//! `children` holds the first of a sequence, `nextIds` what comes after; a parallel block has all of its
//! branches as children. Clients decode strictly: numbers are numbers, `failureInfo` is an object or
//! null, and log keys and units are lists of strings.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use slipway_engine::interrupts;
use slipway_engine::lane::worst;
use slipway_expr::secret::SecretText;
use slipway_model::id::{NodeId, StageId};
use slipway_model::status::Status;
use slipway_plan::{GroupPlan, Node, Plan, StagePlan, StepPlan};
use slipway_store::record::{NodeRecord, RunRecord, StageSummary, UnitRecord};

use super::node::{LogPlace, id, log_places, run_key, unit_key};
use super::summary::{failure_info, stages};
use super::waits::Waits;
use crate::wire;

/// Unique id of a stage in the graph.
pub(crate) fn stage_uuid(stage: &StageId) -> String {
    format!("stages.{stage}")
}

/// What several things come to: the worst of the ended, or that something still goes on. Where what they are part of is
/// `over`, nothing goes on, and what has not begun never will.
pub(crate) fn together(statuses: impl IntoIterator<Item = Status>, over: bool) -> Status {
    let all: Vec<Status> = statuses.into_iter().collect();
    if all.iter().all(|status| *status == Status::NotStarted) {
        return Status::NotStarted;
    }
    let begun = |status: &Status| *status != Status::NotStarted;
    if !over && all.iter().any(|status| !status.is_final()) {
        return Status::Running;
    }
    worst(all.into_iter().filter(begun))
}

/// Builds one graph.
pub(crate) struct Builder<'a> {
    run: &'a RunRecord,
    plan: Option<&'a Plan>,
    records: HashMap<&'a NodeId, &'a NodeRecord>,
    logs: HashMap<NodeId, String>,
    waits: Waits,
    interrupts: HashMap<NodeId, Vec<Value>>,
    /// Runs of other pipelines, by the attempt of a step that started them.
    children: HashMap<(NodeId, u32), RunRecord>,
    nodes: Map<String, Value>,
    edges: Map<String, Value>,
    /// Whether the stage that is being drawn has ended, its rollback included.
    over: bool,
}

impl<'a> Builder<'a> {
    /// A builder for a run, its plan once it has one, and the nodes that have begun.
    pub(crate) fn new(
        run: &'a RunRecord,
        plan: Option<&'a Plan>,
        records: &'a [NodeRecord],
    ) -> Self {
        let mut newest: HashMap<&NodeId, &NodeRecord> = HashMap::new();
        for record in records {
            let known = newest.entry(&record.id).or_insert(record);
            if record.attempt > known.attempt {
                *known = record;
            }
        }
        let base = run_key(run);
        let places = plan.map(log_places).unwrap_or_default();
        let logs = places
            .into_iter()
            .map(|LogPlace { node, path, .. }| (node, format!("{base}/{path}")))
            .collect();
        let mut said: HashMap<NodeId, Vec<Value>> = HashMap::new();
        for one in interrupts::of_run(run, records) {
            let shown = interrupt(&one);
            said.entry(one.node).or_default().push(shown);
        }
        Self {
            run,
            plan,
            interrupts: said,
            records: newest,
            logs,
            waits: Waits::new(),
            children: HashMap::new(),
            nodes: Map::new(),
            edges: Map::new(),
            over: false,
        }
    }

    /// With what nodes wait for.
    pub(crate) fn with_waits(mut self, waits: Waits) -> Self {
        self.waits = waits;
        self
    }

    /// With the runs of other pipelines that steps have started.
    pub(crate) fn with_children(mut self, runs: Vec<RunRecord>) -> Self {
        let started = runs.into_iter().filter_map(|run| {
            let step = run.parent.as_ref()?;
            Some(((step.node.clone(), step.attempt), run))
        });
        self.children = started.collect();
        self
    }

    /// The whole graph.
    pub(crate) fn whole(mut self) -> Value {
        let groups = stages(self.run, self.plan);
        let chain: Vec<String> = groups
            .iter()
            .enumerate()
            .map(|(index, group)| self.stage_group(index, group))
            .collect();
        self.chain(&chain);
        let ended = (self.run.started_ms, self.run.ended_ms);
        let mut root = self.section("pipeline", "PIPELINE_SECTION", self.run.status, ended);
        root["name"] = self.run.name.as_str().into();
        root["logBaseKey"] = run_key(self.run).into();
        root["failureInfo"] = failure_info(self.run.failure.as_ref());
        self.add("pipeline", root, &["stages".to_owned()]);
        let section = self.section("stages", "STAGES_STEP", self.run.status, ended);
        let first: Vec<String> = chain.into_iter().take(1).collect();
        self.add("stages", section, &first);
        self.finish("pipeline")
    }

    /// The graph of one stage, which is its root.
    pub(crate) fn of_stage(mut self, stage: &StageSummary) -> Value {
        let root = self.stage(stage);
        self.finish(&root)
    }

    fn finish(self, root: &str) -> Value {
        json!({
            "rootNodeId": root,
            "representationStrategy": "camelCase",
            "nodeMap": self.nodes,
            "nodeAdjacencyListMap": self.edges,
        })
    }

    fn add(&mut self, uuid: &str, mut node: Value, children: &[String]) {
        if let Some(waits) = self.waits.get(uuid) {
            node["waitsFor"] = json!(waits);
        }
        if let Some(said) = self.interrupts.get(&NodeId::new(uuid)) {
            node["interruptHistories"] = json!(said);
        }
        self.nodes.insert(uuid.to_owned(), node);
        let edges = self.edges.entry(uuid.to_owned());
        let edges = edges.or_insert_with(|| json!({"children": [], "nextIds": []}));
        edges["children"] = json!(children);
    }

    /// Each follows the one before it.
    fn chain(&mut self, uuids: &[String]) {
        for pair in uuids.windows(2) {
            let edges = self.edges.entry(pair[0].clone());
            let edges = edges.or_insert_with(|| json!({"children": [], "nextIds": []}));
            edges["nextIds"] = json!([pair[1]]);
        }
    }

    fn stage_group(&mut self, index: usize, group: &[StageSummary]) -> String {
        if let [stage] = group {
            return self.stage(stage);
        }
        let children: Vec<String> = group.iter().map(|stage| self.stage(stage)).collect();
        let uuid = format!("stages.parallel{index}");
        let statuses = group.iter().map(|stage| stage.status);
        let status = together(statuses, self.run.status.is_final());
        let node = blank(
            &uuid,
            &format!("parallel{index}"),
            "pipeline.stages",
            "NG_FORK",
            status,
        );
        self.add(&uuid, node, &children);
        uuid
    }

    fn stage(&mut self, summary: &StageSummary) -> String {
        let uuid = stage_uuid(&summary.id);
        let step_type = match summary.stage_type.as_str() {
            "Deployment" => "DEPLOYMENT_STAGE_STEP",
            "Approval" => "APPROVAL_STAGE",
            "Pipeline" => "PIPELINE_STAGE",
            _ => "CUSTOM_STAGE",
        };
        let fqn = format!("pipeline.stages.{}", summary.id);
        let mut node = blank(&uuid, summary.id.as_str(), &fqn, step_type, summary.status);
        let undo = summary.undo.as_ref();
        self.over = summary.status.is_final() && undo.is_none_or(|undo| undo.status.is_final());
        node["name"] = summary.name.as_str().into();
        node["startTs"] = summary.started_ms.into();
        node["endTs"] = summary.ended_ms.into();
        node["failureInfo"] = failure_info(summary.failure.as_ref());
        let plan = self.plan.and_then(|plan| {
            plan.groups
                .iter()
                .flatten()
                .find(|stage| stage.id == summary.id)
        });
        let children: Vec<String> = plan
            .map(|stage| self.execution(stage, summary))
            .into_iter()
            .collect();
        self.add(&uuid, node, &children);
        uuid
    }

    /// The steps of a stage, and its rollback steps once one of them has begun; these alone where the run does
    /// nothing else.
    fn execution(&mut self, stage: &StagePlan, summary: &StageSummary) -> String {
        let uuid = format!("stages.{}.spec.execution", stage.id);
        let rollback = format!("{uuid}.rollbackSteps");
        if self.run.undoes().is_some() {
            let groups = self.groups_rolled_back(&stage.steps);
            let chain: Vec<String> = groups
                .into_iter()
                .map(|group| self.group_rollback(group))
                .collect();
            self.rollback(stage, summary, &rollback, summary.status, chain);
            return rollback;
        }
        let chain = self.sequence(&stage.steps);
        let times = (summary.started_ms, summary.ended_ms);
        let node = self.part(&uuid, "Execution", summary.status, times);
        self.add(&uuid, node, &chain.into_iter().take(1).collect::<Vec<_>>());
        if self.has_begun(&stage.rollback_steps) {
            let status = self.together(&stage.rollback_steps);
            self.rollback(stage, summary, &rollback, status, Vec::new());
            self.chain(&[uuid.clone(), rollback]);
        }
        uuid
    }

    /// The rollback steps of a stage, behind what `before` names.
    fn rollback(
        &mut self,
        stage: &StagePlan,
        summary: &StageSummary,
        uuid: &str,
        status: Status,
        before: Vec<String>,
    ) {
        let mut chain = before;
        chain.extend(self.sequence(&stage.rollback_steps));
        self.chain(&chain);
        let times = (summary.started_ms, summary.ended_ms);
        let node = self.part(uuid, "Rollback", status, times);
        self.add(uuid, node, &chain.into_iter().take(1).collect::<Vec<_>>());
    }

    /// The rollback steps of a step group.
    fn group_rollback(&mut self, group: &GroupPlan) -> String {
        let uuid = format!("{}.rollbackSteps", group.id);
        let chain = self.sequence(&group.rollback_steps);
        let status = self.together(&group.rollback_steps);
        let records = group
            .rollback_steps
            .iter()
            .filter_map(|node| self.records.get(id(node)));
        let (mut started, mut ended) = (None::<i64>, None);
        for record in records {
            started = Some(started.map_or(record.started_ms, |first| first.min(record.started_ms)));
            ended = ended.max(record.ended_ms);
        }
        let times = (started, ended.filter(|_| status.is_final()));
        let mut node = self.part(&uuid, "Rollback", status, times);
        node["name"] = format!("Rollback of {}", group.name).into();
        self.add(&uuid, node, &chain.into_iter().take(1).collect::<Vec<_>>());
        uuid
    }

    /// Step groups at any depth whose rollback steps have begun, the last first and inner ones before
    /// those around them: as they are rolled back.
    fn groups_rolled_back<'n>(&self, nodes: &'n [Node]) -> Vec<&'n GroupPlan> {
        let mut groups = Vec::new();
        for node in nodes.iter().rev() {
            match node {
                Node::Step(_) => {}
                Node::Group(group) => {
                    groups.extend(self.groups_rolled_back(&group.nodes));
                    if self.has_begun(&group.rollback_steps) {
                        groups.push(group);
                    }
                }
                Node::Parallel(block) => groups.extend(self.groups_rolled_back(&block.branches)),
            }
        }
        groups
    }

    fn has_begun(&self, nodes: &[Node]) -> bool {
        nodes
            .iter()
            .any(|node| self.status(node) != Status::NotStarted)
    }

    fn status(&self, node: &Node) -> Status {
        if let Some(record) = self.records.get(id(node)) {
            return record.status;
        }
        match node {
            Node::Step(_) => Status::NotStarted,
            Node::Group(group) => self.together(&group.nodes),
            Node::Parallel(block) => self.together(&block.branches),
        }
    }

    fn together(&self, nodes: &[Node]) -> Status {
        together(nodes.iter().map(|node| self.status(node)), self.over)
    }

    fn sequence(&mut self, nodes: &[Node]) -> Vec<String> {
        let chain: Vec<String> = nodes.iter().map(|node| self.node(node)).collect();
        self.chain(&chain);
        chain
    }

    fn node(&mut self, node: &Node) -> String {
        let uuid = id(node).to_string();
        let status = self.status(node);
        let record = self.records.get(id(node)).copied();
        match node {
            Node::Step(step) => {
                let rendered = self.step(step, record);
                self.add(&uuid, rendered, &[]);
            }
            Node::Group(group) => {
                let mut chain = self.sequence(&group.nodes);
                if self.has_begun(&group.rollback_steps) {
                    chain.push(self.group_rollback(group));
                    self.chain(&chain);
                }
                let mut rendered = self.container(&uuid, "STEP_GROUP", status, record);
                rendered["identifier"] = group.identifier.as_str().into();
                rendered["name"] = group.name.as_str().into();
                self.add(
                    &uuid,
                    rendered,
                    &chain.into_iter().take(1).collect::<Vec<_>>(),
                );
            }
            Node::Parallel(block) => {
                // A loop over what the run brings forth, before it begins: one branch, under the id of the loop.
                if let [only] = block.branches.as_slice()
                    && id(only) == &block.id
                {
                    return self.node(only);
                }
                let all: Vec<String> = block.branches.iter().map(|node| self.node(node)).collect();
                let mut rendered = self.container(&uuid, "NG_FORK", status, record);
                if all.is_empty() {
                    // A loop of no turns is called as the element that loops.
                    let own = uuid.rsplit('.').next().unwrap_or(&uuid);
                    rendered["identifier"] = own.into();
                    rendered["name"] = own.into();
                }
                self.add(&uuid, rendered, &all);
            }
        }
        uuid
    }

    fn container(
        &self,
        uuid: &str,
        step_type: &str,
        status: Status,
        record: Option<&NodeRecord>,
    ) -> Value {
        let mut node = blank(
            uuid,
            "parallel",
            &format!("pipeline.{uuid}"),
            step_type,
            status,
        );
        if let Some(record) = record {
            node["startTs"] = record.started_ms.into();
            node["endTs"] = record.ended_ms.into();
            node["failureInfo"] = failure_info(record.failure.as_ref());
        }
        node
    }

    fn step(&self, step: &StepPlan, record: Option<&NodeRecord>) -> Value {
        let uuid = step.id.as_str();
        let status = record.map_or(Status::NotStarted, |record| record.status);
        let fqn = format!("pipeline.{uuid}");
        let mut node = blank(
            uuid,
            step.identifier.as_str(),
            &fqn,
            &step.step_type,
            status,
        );
        node["name"] = step.name.as_str().into();
        let spec = record.map_or(&step.spec, |record| &record.spec);
        node["stepParameters"] = json!({
            "identifier": step.identifier.as_str(),
            "name": step.name,
            "type": step.step_type,
            "timeout": format!("{}s", step.timeout.as_secs()),
            "spec": shown(spec),
        });
        let Some(record) = record else { return node };
        node["startTs"] = record.started_ms.into();
        node["endTs"] = record.ended_ms.into();
        node["failureInfo"] = failure_info(record.failure.as_ref());
        if record.outputs.is_object() {
            node["outcomes"] = shown(&record.outputs);
        }
        node["unitProgresses"] = record.units.iter().map(unit_progress).collect();
        if let Some(base) = self.logs.get(&step.id).filter(|_| !record.units.is_empty()) {
            node["logBaseKey"] = base.as_str().into();
            node["executableResponses"] = json!([{"task": task(record, base)}]);
        }
        if let Some(child) = self.children.get(&(record.id.clone(), record.attempt)) {
            node["stepDetails"] = json!({"childPipelineExecutionDetails": {
                "planExecutionId": child.id.as_str(),
                "orgId": wire::org(&child.scope),
                "projectId": wire::project(&child.scope),
            }});
        }
        if let Some(name) = &record.delegate {
            node["delegateInfoList"] = json!([{
                "id": name, "name": name, "taskId": task_id(record), "taskName": step.name,
            }]);
        }
        node
    }

    fn section(
        &self,
        uuid: &str,
        step_type: &str,
        status: Status,
        (started, ended): (i64, Option<i64>),
    ) -> Value {
        let fqn = if uuid == "pipeline" {
            "pipeline"
        } else {
            "pipeline.stages"
        };
        let mut node = blank(uuid, uuid, fqn, step_type, status);
        node["startTs"] = started.into();
        node["endTs"] = ended.into();
        node
    }

    fn part(
        &self,
        uuid: &str,
        name: &str,
        status: Status,
        (started, ended): (Option<i64>, Option<i64>),
    ) -> Value {
        let identifier = uuid.rsplit('.').next().unwrap_or(uuid);
        let mut node = blank(
            uuid,
            identifier,
            &format!("pipeline.{uuid}"),
            "NG_EXECUTION",
            status,
        );
        node["name"] = name.into();
        node["startTs"] = started.into();
        node["endTs"] = ended.into();
        node
    }
}

/// A node that has not begun.
fn blank(uuid: &str, identifier: &str, fqn: &str, step_type: &str, status: Status) -> Value {
    json!({
        "uuid": uuid,
        "setupId": uuid,
        "name": identifier,
        "identifier": identifier,
        "baseFqn": fqn,
        "stepType": step_type,
        "status": status,
        "startTs": null,
        "endTs": null,
        "failureInfo": null,
        "logBaseKey": "",
        "executableResponses": [],
        "unitProgresses": [],
        "delegateInfoList": [],
        "interruptHistories": [],
        "outcomes": {},
        "stepDetails": {},
        "stepParameters": {},
        "skipInfo": null,
        "nodeRunInfo": null,
    })
}

/// `InterruptEffect` of the API reference.
fn interrupt(one: &interrupts::Interrupt) -> Value {
    let issuer = match &one.who {
        Some(who) => json!({"manualIssuer": {
            "identifier": who.as_str(), "userId": who.as_str(), "type": "USER",
        }}),
        None => json!({"adviserIssuer": {}}),
    };
    json!({
        "interruptId": format!("{}.{}.{}", one.node, one.attempt, one.kind),
        "tookEffectAt": one.at_ms,
        "interruptType": one.kind,
        "interruptConfig": {"issuedBy": issuer},
    })
}

fn task_id(record: &NodeRecord) -> String {
    format!("{}.{}.{}", record.run, record.id, record.attempt)
}

fn task(record: &NodeRecord, base: &str) -> Value {
    let keys: Vec<String> = record
        .units
        .iter()
        .map(|unit| unit_key(base, &unit.name))
        .collect();
    let units: Vec<&str> = record.units.iter().map(|unit| unit.name.as_str()).collect();
    json!({
        "taskId": task_id(record),
        "taskName": record.name,
        "taskCategory": "UNKNOWN_CATEGORY",
        "logKeys": keys,
        "units": units,
    })
}

fn unit_progress(unit: &UnitRecord) -> Value {
    json!({
        "unitName": unit.name,
        "status": unit.status,
        "startTime": unit.started_ms.to_string(),
        "endTime": unit.ended_ms.map(|ms| ms.to_string()),
    })
}

/// A stored value with its references to secrets spelt as expressions.
fn shown(value: &Value) -> Value {
    match value {
        Value::String(text) => SecretText::decode(text).to_string().into(),
        Value::Array(items) => items.iter().map(shown).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), shown(value)))
            .collect(),
        other => other.clone(),
    }
}
