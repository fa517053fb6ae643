//! What expressions can know before a run begins.

use std::time::Duration;

use serde_json::Value as Json;
use slipway_expr::{Context, Limits, Segment, Value};
use slipway_model::Parsed;
use slipway_model::id::Scope;

use crate::{EnvironmentPlan, ServicePlan, Variable};

/// Names that are settled while a stage is planned.
pub(super) struct Known<'a> {
    scope: &'a Scope,
    pipeline: &'a Parsed,
    pub(super) pipeline_variables: Vec<Variable>,
    pub(super) pipeline_timeout: Duration,
    pub(super) stage_variables: Vec<Variable>,
    pub(super) service: Option<ServicePlan>,
    pub(super) environment: Option<EnvironmentPlan>,
}

impl<'a> Known<'a> {
    pub(super) fn new(scope: &'a Scope, pipeline: &'a Parsed, variables: Vec<Variable>) -> Self {
        Self {
            scope,
            pipeline,
            pipeline_variables: variables,
            pipeline_timeout: Duration::ZERO,
            stage_variables: Vec::new(),
            service: None,
            environment: None,
        }
    }

    /// Forgets what belongs to a stage.
    pub(super) fn enter_stage(&mut self, variables: Vec<Variable>) {
        self.stage_variables = variables;
        self.service = None;
        self.environment = None;
    }

    /// The text with its expressions replaced, or why they cannot be yet.
    pub(super) fn evaluate(&self, text: &str) -> Result<String, String> {
        let template = slipway_expr::parse(text).map_err(|error| error.to_string())?;
        let value = template
            .evaluate(self, &Limits::default())
            .map_err(|error| error.full_text())?;
        match value {
            Value::String(text) => Ok(text),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                Ok(value.to_shown_json().to_string())
            }
            other => Err(format!("it is {}, not a text", other.kind())),
        }
    }

    fn find(&self, path: &[&str]) -> Option<Json> {
        let head = &self.pipeline.head;
        match path {
            ["pipeline", "identifier"] => Some(head.identifier.as_str().into()),
            ["pipeline", "name"] => Some(head.name.as_str().into()),
            ["pipeline", "variables", name @ ..] => variable(&self.pipeline_variables, name),
            ["pipeline", "tags", name] => {
                let found = head.tags.iter().find(|(key, _)| key == name);
                found.map(|(_, value)| value.as_str().into())
            }
            ["stage", "variables", name @ ..] => variable(&self.stage_variables, name),
            ["service", "identifier"] => Some(self.service.as_ref()?.identifier.as_str().into()),
            ["service", "name"] => Some(self.service.as_ref()?.name.as_str().into()),
            ["service", "variables", name @ ..] | ["serviceVariables", name @ ..] => {
                variable(&self.service.as_ref()?.variables, name)
            }
            ["env" | "environment", "identifier"] => {
                Some(self.environment.as_ref()?.identifier.as_str().into())
            }
            ["env" | "environment", "name"] => {
                Some(self.environment.as_ref()?.name.as_str().into())
            }
            ["env" | "environment", "type"] => {
                Some(self.environment.as_ref()?.kind.as_str().into())
            }
            ["env" | "environment", "variables", name @ ..] => {
                variable(&self.environment.as_ref()?.variables, name)
            }
            ["account", "identifier"] => Some(self.scope.account.as_str().into()),
            ["org", "identifier"] => Some(self.scope.org.as_ref()?.as_str().into()),
            ["project", "identifier"] => Some(self.scope.project.as_ref()?.as_str().into()),
            _ => None,
        }
    }
}

fn names(path: &[Segment]) -> Option<Vec<&str>> {
    path.iter()
        .map(|segment| match segment {
            Segment::Key(name) => Some(name.as_str()),
            Segment::Index(_) => None,
        })
        .collect()
}

/// A variable by its name, which may hold dots. Secrets are never known.
fn variable(variables: &[Variable], name: &[&str]) -> Option<Json> {
    let name = name.join(".");
    variables
        .iter()
        .find(|variable| variable.name == name && variable.kind != "Secret")
        .map(|variable| variable.value.clone())
}

impl Context for Known<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        match self.find(&names(path)?)? {
            Json::String(_) => None,
            other => Some(Value::from_json(&other)),
        }
    }

    fn definition(&self, path: &[Segment]) -> Option<String> {
        match self.find(&names(path)?)? {
            Json::String(text) => Some(text),
            _ => None,
        }
    }
}
