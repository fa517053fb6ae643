//! What expressions can know before a run begins.

use std::time::Duration;

use serde_json::Value as Json;
use slipway_expr::{Context, Limits, Segment, Value};
use slipway_model::id::Scope;
use slipway_model::{Parsed, Ref};

use crate::chosen::flatten;
use crate::facts::{Facts, names};
use crate::{
    Chosen, EnvironmentPlan, InfrastructurePlan, Iteration, ServicePlan, Variable, event_fact,
    in_turns, is_of_turn,
};

/// Names that are settled while a stage is planned.
pub(super) struct Known<'a> {
    scope: &'a Scope,
    pipeline: &'a Parsed,
    pub(super) pipeline_variables: Vec<Variable>,
    pub(super) pipeline_timeout: Duration,
    pub(super) stage_variables: Vec<Variable>,
    pub(super) service: Option<ServicePlan>,
    pub(super) environment: Option<EnvironmentPlan>,
    pub(super) infrastructure: Option<InfrastructurePlan>,
    /// Whether the stage's service says `disableArtifactValidation`.
    pub(super) unchecked_artifacts: bool,
    /// Turns of the loops around, the outermost first; that of the stage is the first where the stage loops.
    pub(super) turns: Vec<Iteration>,
    pub(super) stage_turn: Option<Iteration>,
    /// Variables of the scopes, by how they are called.
    pub(super) scope_variables: Vec<Variable>,
    /// Files that expressions read, path and content.
    pub(super) files: Vec<(String, String)>,
    /// Values for what stages that do not run would say.
    pub(super) chosen: Option<&'a Chosen>,
    /// What the event that starts the run tells.
    pub(super) trigger: Option<&'a Json>,
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
            infrastructure: None,
            unchecked_artifacts: false,
            turns: Vec::new(),
            stage_turn: None,
            scope_variables: Vec::new(),
            files: Vec::new(),
            chosen: None,
            trigger: None,
        }
    }

    /// Forgets what belongs to a stage.
    pub(super) fn enter_stage(&mut self, turn: Option<&Iteration>) {
        self.stage_variables = Vec::new();
        self.service = None;
        self.environment = None;
        self.infrastructure = None;
        self.unchecked_artifacts = false;
        self.turns = turn.cloned().into_iter().collect();
        self.stage_turn = turn.cloned();
    }

    /// Notes the delegate selectors of the pipeline, where an expression reads them.
    pub(super) fn tell_selectors(&mut self, selectors: &[String]) {
        let mut all = self.scope_variables.iter_mut();
        if let Some(told) = all.find(|known| known.name == "pipeline.delegateSelectors") {
            told.value = selectors.into();
        }
    }

    /// What the account, organization, project or pipeline is called, as far as an expression reads it.
    fn label(&self, path: &[&str]) -> Option<Json> {
        label(&self.scope_variables, path)
    }

    /// A stage of the pipeline as it is written.
    pub(super) fn stage(&self, name: &str) -> Option<Ref<'a>> {
        let mut all = Vec::new();
        if let Some(list) = self.pipeline.body().get("stages") {
            flatten(list, &mut all);
        }
        all.into_iter()
            .find(|stage| stage.get_text("identifier") == Some(name))
    }

    /// The text with its expressions replaced, or why they cannot be yet.
    pub(super) fn evaluate(&self, text: &str) -> Result<String, String> {
        text_of(self.value(text)?)
    }

    /// What a text stands for, or why that cannot be told yet.
    pub(super) fn value(&self, text: &str) -> Result<Value, String> {
        evaluate(text, self)
    }
}

/// What `project.name`, `org.tags.TEAM` and the like stand for, out of what was looked up for a plan.
pub(crate) fn label(labels: &[Variable], path: &[&str]) -> Option<Json> {
    let (of, field) = (path.first()?, path.get(1)?);
    let called = format!("{of}.{field}");
    let found = &labels.iter().find(|label| label.name == called)?.value;
    match path.get(2..).unwrap_or_default() {
        [] => Some(found.clone()),
        // A tag may hold dots.
        rest => found.get(rest.join(".")).cloned(),
    }
}

fn object<'t>(fields: impl Iterator<Item = (&'t String, &'t String)>) -> Json {
    let fields = fields.map(|(key, value)| (key.clone(), Json::from(value.as_str())));
    Json::Object(fields.collect())
}

/// A variable by its name, which may hold dots. Secrets are never known.
fn variable(variables: &[Variable], name: &[&str]) -> Option<Json> {
    let name = name.join(".");
    variables
        .iter()
        .find(|variable| variable.name == name && variable.kind != "Secret")
        .map(|variable| variable.value.clone())
}

impl Facts for Known<'_> {
    fn find(&self, path: &[&str]) -> Option<Json> {
        if let Some(value) = self.chosen.and_then(|chosen| chosen.value(path)) {
            return Some(value.into());
        }
        let head = &self.pipeline.head;
        match path {
            ["pipeline", "identifier"] => Some(head.identifier.as_str().into()),
            ["pipeline", "name"] => Some(head.name.as_str().into()),
            ["pipeline", "variables", name @ ..] => variable(&self.pipeline_variables, name),
            ["pipeline", "tags", name] => {
                let found = head.tags.iter().find(|(key, _)| key == name);
                found.map(|(_, value)| value.as_str().into())
            }
            ["pipeline", "tags"] => Some(object(head.tags.iter().map(|(k, v)| (k, v)))),
            ["matrix" | "repeat" | "strategy", ..] => in_turns(self.turns.iter(), path),
            ["stage", rest @ ..] if is_of_turn(rest) => self.stage_turn.as_ref()?.told(rest),
            ["variable", ..] => {
                let name = path.join(".");
                let mut all = self.scope_variables.iter();
                let found = all.find(|known| known.name == name && known.kind != "Secret");
                found.map(|known| known.value.clone())
            }
            ["trigger" | "eventPayload", ..] => event_fact(self.trigger?, path).cloned(),
            ["service", "tags"] => Some(object(self.service.as_ref()?.tags.iter())),
            ["service", "tags", name] => {
                Some(self.service.as_ref()?.tags.get(*name)?.as_str().into())
            }
            ["env" | "environment", "tags"] => Some(object(self.environment.as_ref()?.tags.iter())),
            ["infra", "name"] => Some(self.infrastructure.as_ref()?.name.as_str().into()),
            ["infra", "identifier" | "infraIdentifier"] => {
                Some(self.infrastructure.as_ref()?.identifier.as_str().into())
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
            ["env" | "environment", "envGroupName"] => {
                let group = self.environment.as_ref()?.group.as_ref()?;
                Some(group.name.as_str().into())
            }
            ["env" | "environment", "envGroupRef"] => {
                let group = self.environment.as_ref()?.group.as_ref()?;
                Some(group.reference.as_str().into())
            }
            ["env" | "environment", "variables", name @ ..] => {
                variable(&self.environment.as_ref()?.variables, name)
            }
            ["account", "identifier"] => Some(self.scope.account.as_str().into()),
            ["org", "identifier"] => Some(self.scope.org.as_ref()?.as_str().into()),
            ["project", "identifier"] => Some(self.scope.project.as_ref()?.as_str().into()),
            ["account" | "org" | "project", ..] | ["pipeline", "delegateSelectors"] => {
                self.label(path)
            }
            ["service", "description"] => {
                Some(self.service.as_ref()?.description.as_deref()?.into())
            }
            ["env" | "environment", "description"] => {
                Some(self.environment.as_ref()?.description.as_deref()?.into())
            }
            _ => None,
        }
    }
}

impl Context for Known<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        self.data(path)
    }

    fn definition(&self, path: &[Segment]) -> Option<String> {
        self.text(path)
    }
}

pub(super) fn evaluate(text: &str, context: &dyn Context) -> Result<Value, String> {
    let template = slipway_expr::parse(text).map_err(|error| error.to_string())?;
    template
        .evaluate(context, &Limits::default())
        .map_err(|error| error.full_text())
}

pub(super) fn text_of(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        value @ (Value::Bool(_) | Value::Int(_) | Value::Float(_)) => {
            Ok(value.to_shown_json().to_string())
        }
        other => Err(format!("it is {}, not a text", other.kind())),
    }
}

/// What is known inside of one more turn of a loop.
pub(super) struct Inside<'k> {
    pub(super) known: &'k dyn Context,
    pub(super) turn: &'k Iteration,
}

impl Context for Inside<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        let own = names(path).and_then(|path| in_turns([self.turn].into_iter(), &path));
        own.map(|value| Value::from_json(&value))
            .or_else(|| self.known.lookup(path))
    }

    fn definition(&self, path: &[Segment]) -> Option<String> {
        self.known.definition(path)
    }

    fn call(&self, functor: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        self.known.call(functor, arguments)
    }

    fn now_ms(&self) -> Option<i64> {
        self.known.now_ms()
    }
}
