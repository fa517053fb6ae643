//! What a plan alone knows: the values of expressions that do not depend on the run.

use serde_json::{Map, Value as Json};
use slipway_expr::{Context, Limits, Segment, Value};

use crate::facts::Facts;
use crate::{ArtifactPlan, Iteration, Plan, StagePlan, Variable, in_turns, is_of_turn};

/// A place in a plan, as expressions see it.
pub(crate) struct View<'p> {
    plan: &'p Plan,
    stage: Option<&'p StagePlan>,
    /// Turns of the loops around, the outermost first.
    pub(crate) turns: Vec<&'p Iteration>,
}

impl<'p> View<'p> {
    pub(crate) fn of(plan: &'p Plan) -> Self {
        Self {
            plan,
            stage: None,
            turns: Vec::new(),
        }
    }

    pub(crate) fn enter(&mut self, stage: &'p StagePlan) {
        self.stage = Some(stage);
        self.turns = stage.iteration.iter().collect();
    }

    /// A document with every text evaluated whose expressions are all known; the others stay as they are.
    pub(crate) fn resolved(&self, value: &Json) -> Json {
        match value {
            Json::String(text) if text.contains("<+") => {
                let template = slipway_expr::parse(text).ok();
                let found = template.and_then(|t| t.evaluate(self, &Limits::default()).ok());
                found.map_or_else(|| value.clone(), |found| found.to_shown_json())
            }
            Json::Array(items) => items.iter().map(|item| self.resolved(item)).collect(),
            Json::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, value)| (key.clone(), self.resolved(value)));
                Json::Object(fields.collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    fn in_stage(&self, stage: &StagePlan, path: &[&str]) -> Option<Json> {
        let service = stage.service.as_ref();
        let environment = stage.environment.as_ref();
        let infrastructure = stage.infrastructure.as_ref();
        match path {
            ["stage", "identifier"] => Some(stage.identifier.as_str().into()),
            ["stage", "name"] => Some(stage.name.as_str().into()),
            ["stage", "variables", name @ ..] => variable(&stage.variables, &name.join(".")),
            ["serviceVariables", name @ ..] | ["service", "variables", name @ ..] => {
                variable(&service?.variables, &name.join("."))
            }
            ["service", "identifier"] => Some(service?.identifier.as_str().into()),
            ["service", "name"] => Some(service?.name.as_str().into()),
            ["env" | "environment", "variables", name @ ..] => {
                variable(&environment?.variables, &name.join("."))
            }
            ["env" | "environment", "identifier"] => Some(environment?.identifier.as_str().into()),
            ["env" | "environment", "name"] => Some(environment?.name.as_str().into()),
            ["env" | "environment", "type"] => Some(environment?.kind.as_str().into()),
            ["infra" | "infrastructure", "name"] => Some(infrastructure?.name.as_str().into()),
            ["infra" | "infrastructure", "infraIdentifier" | "identifier"] => {
                Some(infrastructure?.identifier.as_str().into())
            }
            ["infra" | "infrastructure", rest @ ..] => below(&infrastructure?.spec, rest),
            ["artifact", rest @ ..] | ["artifacts", "primary", rest @ ..] => {
                artifact(service?.artifact.as_ref()?, rest)
            }
            ["artifacts", "sidecars", id, rest @ ..] => {
                let mut sidecars = service?.sidecars.iter();
                artifact(sidecars.find(|sidecar| sidecar.identifier == *id)?, rest)
            }
            _ => None,
        }
    }
}

fn artifact(artifact: &ArtifactPlan, path: &[&str]) -> Option<Json> {
    match path {
        ["image"] => Some(artifact.image.as_deref()?.into()),
        ["tag" | "version"] => Some(artifact.tag.as_deref()?.into()),
        ["metadata", rest @ ..] => below(&artifact.metadata(), rest),
        // Harness has `amiId` and the like both ways.
        rest => below(&artifact.spec, rest).or_else(|| below(&artifact.metadata(), rest)),
    }
}

fn below(document: &Json, path: &[&str]) -> Option<Json> {
    let found = path
        .iter()
        .try_fold(document, |value, key| value.get(key))?;
    Some(found.clone())
}

/// A variable by its name. Secrets are never shown.
fn variable(variables: &[Variable], name: &str) -> Option<Json> {
    let mut all = variables.iter();
    let found = all.find(|variable| variable.name == name && variable.kind != "Secret")?;
    Some(found.value.clone())
}

impl Context for View<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        self.data(path)
    }

    fn definition(&self, path: &[Segment]) -> Option<String> {
        self.text(path)
    }
}

impl Facts for View<'_> {
    fn find(&self, path: &[&str]) -> Option<Json> {
        let plan = self.plan;
        match path {
            ["pipeline", "identifier"] => Some(plan.pipeline.as_str().into()),
            ["pipeline", "name"] => Some(plan.name.as_str().into()),
            ["pipeline", "variables", name @ ..] => variable(&plan.variables, &name.join(".")),
            ["trigger" | "eventPayload", ..] => plan.event_fact(path).cloned(),
            ["variable", ..] => variable(&plan.scope_variables, &path.join(".")),
            ["matrix" | "repeat" | "strategy", ..] => in_turns(self.turns.iter().copied(), path),
            ["stage", rest @ ..] if is_of_turn(rest) => self.stage?.iteration.as_ref()?.told(rest),
            _ => self.in_stage(self.stage?, path),
        }
    }
}
