//! Stages that run another pipeline (developer.harness.io, *Pipeline chaining in Harness*; schema
//! `v0/pipeline/stages/custom/pipeline-stage-node.yaml`).

mod targets;

use std::collections::HashSet;

use serde_json::{Value, json};
use slipway_model::graft::Graft;
use slipway_model::id::{EntityId, NodeId, OrgId, ProjectId, Scope};
use slipway_model::inputs::{self, Unfilled};
use slipway_model::{Code, Diagnostic, Kind, Parsed, Ref, Severity, Tree, entity};

use super::known::Known;
use super::lookup::Referred;
use super::unplanned::REMOTE;
use super::{Resolver, texts};
use crate::chosen::flatten;
use crate::{CHAINED, Found, Node, Reference, StagePlan, StepPlan};

/// Identifier of the step that runs the other pipeline, the only one of its stage.
const STEP: &str = "pipeline";

impl Resolver<'_> {
    /// Refuses what a chained pipeline cannot be given.
    pub(super) fn check_chained(&mut self, spec: Ref<'_>) {
        self.look_over(spec, "a pipeline stage", REMOTE);
        if let Some(value) = spec.get("pipelineInputs") {
            let advice = "; put what the pipeline asks for into `inputs`";
            self.unsupported(value, "`pipelineInputs` of a pipeline stage", advice);
        }
    }

    /// The one step of a stage that runs another pipeline. That pipeline is planned when the step begins: its
    /// inputs may read what ran before.
    pub(super) fn chained(&mut self, spec: Ref<'_>, plan: &mut StagePlan, known: &mut Known<'_>) {
        let Some(scope) = self.child_scope(spec, known) else {
            return;
        };
        let Some(named) = spec.get("pipeline") else {
            return;
        };
        let found = self.entity(Kind::Pipeline, named, &scope, None, known);
        let Some(found) = found else { return };
        let itself = found.scope == *self.request.scope
            && found.entity.head.identifier == self.request.pipeline.head.identifier;
        if itself || chains(&found.entity) {
            let child = &found.entity.head.identifier;
            let message = match itself {
                true => format!("the pipeline `{child}` cannot run itself as one of its stages"),
                false => format!(
                    "the pipeline `{child}` runs other pipelines itself, and cannot be run as a stage: only one level of chaining is possible"
                ),
            };
            self.fault(Code::BadValue, named, message);
            return;
        }
        self.check_inputs(spec, named, &found);
        let outputs = self.child_outputs(spec.get("outputs"));
        let inputs = spec.get("inputs").map_or(Value::Null, Ref::to_json);
        let step = StepPlan {
            id: NodeId::new(format!("stages.{}.spec.{STEP}", plan.id)),
            identifier: EntityId::new(STEP),
            name: plan.name.clone(),
            step_type: CHAINED.to_owned(),
            spec: json!({
                "org": scope.org,
                "project": scope.project,
                "pipeline": found.entity.head.identifier,
                "inputs": inputs,
                "inputSetReferences": texts(spec.get("inputSetReferences")),
                "outputs": outputs,
            }),
            when: None,
            failure_strategies: Vec::new(),
            delegate_selectors: Vec::new(),
            connector: None,
            manifests: Vec::new(),
            timeout: plan.timeout,
            iteration: None,
        };
        plan.steps = vec![Node::Step(step)];
    }

    /// Notes what the other pipeline asks for and is not given, and what it is given and does not take. What is still an
    /// expression is looked at when the stage begins.
    fn check_inputs(&mut self, spec: Ref<'_>, named: Ref<'_>, child: &Referred) {
        let own = spec.get("inputs");
        let listed = spec.get("inputSetReferences");
        let sets = texts(listed);
        if own.is_some_and(|own| !own.is_map()) || sets.iter().any(|set| set.contains("<+")) {
            return;
        }
        let (pipeline, at) = (&child.entity, own.unwrap_or(named));
        let id = &pipeline.head.identifier;
        let find = |name: &EntityId| {
            let reference = Reference {
                scope: child.scope.clone(),
                kind: Kind::InputSet.key(),
                parent: Some(id.clone()),
                id: name.clone(),
            };
            match self.find(&reference)? {
                Found::Entity(set) => Some((*set).clone()),
                Found::Many(_) | Found::File(_) | Found::Files(_) => None,
            }
        };
        let sets: Vec<EntityId> = sets.into_iter().map(EntityId::new).collect();
        let documents = match inputs::of_sets(&sets, id, &find) {
            Ok(documents) => documents,
            Err(faults) => {
                let at = listed.unwrap_or(named);
                return faults.iter().for_each(|fault| self.of_child(id, fault, at));
            }
        };
        let key = Kind::Pipeline.key();
        let given = documents.iter().filter_map(|set| set.root().get(key));
        let given: Vec<Ref<'_>> = given.chain(own).collect();
        let found = match inputs::fill_noting(pipeline.body(), &given, key, Unfilled::Note) {
            Ok((filled, missing)) => {
                let ill = entity::from_tree(below(key, filled.root())).err();
                let of_targets = self.target_faults(filled.root(), &child.scope);
                let more = ill.into_iter().flatten().chain(of_targets);
                let mut found = missing;
                found.extend(more.filter(|one| one.severity == Severity::Error));
                found
            }
            Err(faults) => faults,
        };
        found.iter().for_each(|fault| self.of_child(id, fault, at));
    }

    /// Notes a fault of what another pipeline is given: at the value that is wrong, or at `at`.
    fn of_child(&mut self, child: &EntityId, fault: &Diagnostic, at: Ref<'_>) {
        let told = match fault.code {
            Code::MissingInput => {
                let message = format!(
                    "the pipeline `{child}` is not given all that it asks for: {} ({})",
                    fault.message, fault.path
                );
                Diagnostic::at(Code::MissingField, at, message)
            }
            Code::NotFound => {
                let message = format!("of the pipeline `{child}`, {}", fault.message);
                Diagnostic::at(Code::NotFound, at, message)
            }
            code => Diagnostic {
                code: match code {
                    Code::BadInput => Code::BadValue,
                    other => other,
                },
                message: format!("an input of the pipeline `{child}`: {}", fault.message),
                ..fault.clone()
            },
        };
        self.faults.push(match &fault.expected {
            Some(expected) => told.expected(expected),
            None => told,
        });
    }

    fn child_scope(&mut self, spec: Ref<'_>, known: &Known<'_>) -> Option<Scope> {
        let org = self.text(spec.get("org")?, known)?;
        let project = self.text(spec.get("project")?, known)?;
        let account = self.request.scope.account.clone();
        Some(Scope::project(
            account,
            OrgId::new(org),
            ProjectId::new(project),
        ))
    }

    /// `outputs`: name and value, an expression that the pipeline evaluates when it has ended.
    fn child_outputs(&mut self, list: Option<Ref<'_>>) -> Vec<Value> {
        let mut names = HashSet::new();
        let mut out = Vec::new();
        for output in list.into_iter().flat_map(Ref::items) {
            let (Some(name), Some(value)) = (output.get_text("name"), output.get("value")) else {
                let message = "an output of a pipeline stage has a `name` and a `value`";
                self.fault(Code::MissingField, output, message);
                continue;
            };
            if !names.insert(name) {
                let message = format!("a second output has the name `{name}`");
                self.fault(Code::Duplicate, output, message);
                continue;
            }
            out.push(json!({"name": name, "value": value.to_json()}));
        }
        out
    }
}

/// A document with `body` below one root key.
fn below(key: &str, body: Ref<'_>) -> Tree {
    let mut graft = Graft::default();
    let inner = graft.copy(body);
    let pair = graft.pair(body, key, body.place(), inner);
    let map = graft.map(body, vec![pair]);
    graft.finish(map)
}

/// Whether a pipeline, as it is written, has a stage that runs another one.
fn chains(pipeline: &Parsed) -> bool {
    let mut stages = Vec::new();
    if let Some(list) = pipeline.body().get("stages") {
        flatten(list, &mut stages);
    }
    stages
        .iter()
        .any(|stage| stage.get_text("type") == Some(CHAINED))
}
