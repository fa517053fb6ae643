//! What expressions can read of a run: its plan, and what its nodes wrote down. Pure.
//!
//! Paths are those of Harness's documentation (FEATURES 11). What is not known is undefined, which makes
//! an expression an error and never an empty text. Texts of the plan are definitions: they may hold
//! expressions. What a run brought forth (outputs) is data.

mod entity;
mod exported;
mod node;
mod standing;
mod strategy;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value as Json;
use slipway_expr::{Context, SecretRef, Segment, Value};
use slipway_model::id::NodeId;
use slipway_model::status::Status;
use slipway_plan::{Iteration, Plan, StagePlan, Variable, is_of_turn};
use slipway_store::record::{NodeRecord, RunRecord};

use crate::link;
use crate::user_group::email;
use standing::Counted;

/// The names that an expression can use at one place of a run.
#[derive(Clone, Copy)]
pub struct RunContext<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The run, with its stages.
    pub run: &'a RunRecord,
    /// Its nodes, as far as they were loaded and have begun.
    pub nodes: &'a BTreeMap<NodeId, NodeRecord>,
    /// The stage where the expression stands.
    pub stage: Option<&'a StagePlan>,
    /// The node where it stands.
    pub node: Option<&'a NodeId>,
}

/// What a path leads to.
enum Found {
    /// A text of the plan, which may hold expressions.
    Text(String),
    /// Data.
    Value(Value),
}

impl Context for RunContext<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        match self.find(path)? {
            Found::Text(text) => Some(Value::String(text)),
            Found::Value(value) => Some(value),
        }
    }

    fn definition(&self, path: &[Segment]) -> Option<String> {
        match self.find(path)? {
            Found::Text(text) => Some(text),
            Found::Value(_) => None,
        }
    }

    /// When the node began, or else its stage or the run: a repeated invocation gets the same answer.
    fn now_ms(&self) -> Option<i64> {
        let node = self.node.and_then(|id| self.nodes.get(id));
        let stage = self.stage.and_then(|stage| {
            let mut stages = self.run.stages.iter();
            stages.find(|known| known.id == stage.id)?.started_ms
        });
        let began = node.map(|node| node.started_ms).or(stage);
        Some(began.unwrap_or(self.run.started_ms))
    }

    fn call(&self, functor: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        if let ("exportedVariables.getValue", [Value::String(path)]) = (functor, arguments) {
            return Some(self.exported(path));
        }
        let (space, method) = functor.split_once('.')?;
        let content = match (space, arguments) {
            ("configFile", [Value::String(id)]) => self.config_file(id),
            ("fileStore", [Value::String(path)]) => self.stored_file(path),
            _ => return None,
        };
        match method {
            "getAsString" => Some(content.map(Value::from)),
            "getAsBase64" => Some(content.map(|text| BASE64.encode(text).into())),
            _ => None,
        }
    }
}

impl RunContext<'_> {
    fn find(&self, path: &[Segment]) -> Option<Found> {
        // Positions lead into values, which the evaluator follows by itself.
        let keys: Vec<&str> = path.iter().map(Segment::key).collect::<Option<_>>()?;
        let chosen = self.run.chosen.as_ref();
        if let Some(given) = chosen.and_then(|chosen| chosen.value(&keys)) {
            return text(given);
        }
        let (first, rest) = keys.split_first()?;
        match *first {
            "account" | "org" | "project" => self.place(&keys),
            "pipeline" => self.pipeline(rest),
            "stages" => self.stage_by_id(rest),
            "matrix" | "repeat" | "strategy" => self.in_loop(&keys),
            "variable" => self.scope_variable(&keys),
            "trigger" | "eventPayload" => value(Value::from_json(self.plan.event_fact(&keys)?)),
            "stage" => self.in_stage(self.stage?, rest),
            "execution" => self.execution(self.stage?, rest),
            "approval" => self.approvals(rest),
            "steps" | "step" | "stepGroup" => self.nearby(first, rest),
            "spec" => self.nearby("step", &keys),
            _ => self.entity(self.stage?, first, rest),
        }
    }

    /// The content of a configuration file of the stage's service.
    fn config_file(&self, id: &str) -> Result<&str, String> {
        let service = self.stage.and_then(|stage| stage.service.as_ref());
        let mut files = service.iter().flat_map(|service| &service.config_files);
        let file = files.find(|file| file.identifier.as_str() == id);
        let file = file.ok_or_else(|| format!("the service has no config file `{id}`"))?;
        let content = file.files.first();
        content.map(|(_, text)| text.as_str()).ok_or_else(|| {
            format!("the content of the config file `{id}` is not known: it is a secret file")
        })
    }

    /// The content of a file of the file store, read when the run was planned.
    fn stored_file(&self, path: &str) -> Result<&str, String> {
        let found = self.plan.files.iter().find(|(known, _)| known == path);
        found.map(|(_, text)| text.as_str()).ok_or_else(|| {
            format!("the file `{path}` does not exist in the file store, or its path was not known when the run began")
        })
    }

    fn pipeline(&self, path: &[&str]) -> Option<Found> {
        let run = self.run;
        match path {
            ["identifier"] => text(self.plan.pipeline.as_str()),
            ["name"] => text(&self.plan.name),
            ["executionId"] => text(run.id.as_str()),
            ["resumedExecutionId"] => text(run.root().as_str()),
            ["selectedStages"] => {
                let stages = self.plan.groups.iter().flatten();
                let ids = match &run.chosen {
                    Some(chosen) => chosen.stages.iter().map(|id| id.as_str().into()).collect(),
                    None => stages
                        .map(|stage| stage.identifier.as_str().into())
                        .collect(),
                };
                value(Value::List(ids))
            }
            ["sequenceId"] => value(i64::try_from(run.sequence).ok()?),
            ["startTs"] => value(run.started_ms),
            ["triggerType"] => text(&run.trigger_type),
            ["triggeredBy", "name" | "identifier"] => text(run.starter()),
            // Null where nobody of Slipway's did (Harness's documentation of expressions).
            ["triggeredBy", "email"] => match run.person() {
                Some(person) => text(&email(person)),
                None => value(Value::Null),
            },
            ["executionUrl"] | ["execution", "url" | "Url"] => value(self.link(None)?),
            // Pipelines are kept here, whatever they were imported from (docs platform/git-experience).
            ["storeType"] => text("INLINE"),
            ["executionMode"] => text(self.execution_mode()),
            ["status"] => text(status_name(run.status)),
            [word @ ("currentStatus" | "liveStatus")] => {
                text(status_name(self.pipeline_standing(Counted::of(word)?)))
            }
            ["tags", rest @ ..] => tags(&self.plan.tags, rest),
            ["delegateSelectors"] => {
                let found = self.plan.label(&["pipeline", "delegateSelectors"])?;
                value(Value::from_json(&found))
            }
            ["variables", name @ ..] => variable(&self.plan.variables, name),
            ["stages", rest @ ..] => self.stage_by_id(rest),
            _ => None,
        }
    }

    /// Where people read the run, or one stage of it.
    fn link(&self, stage: Option<&StagePlan>) -> Option<String> {
        let of_run = link::of_run(self.run.url.as_deref()?, self.run);
        Some(match stage {
            Some(stage) => format!("{of_run}&stageNodeId={}", stage.id),
            None => of_run,
        })
    }

    /// `pipeline.executionMode` (docs platform/variables-and-expressions/harness-variables).
    fn execution_mode(&self) -> &'static str {
        let mut stages = self.run.stages.iter();
        let known = stages.find(|known| self.stage.is_some_and(|stage| stage.id == known.id));
        match known.and_then(|known| known.undo.as_ref()) {
            _ if self.run.undoes().is_some() => "POST_EXECUTION_ROLLBACK",
            Some(_) => "PIPELINE_ROLLBACK",
            None => "NORMAL",
        }
    }

    fn stage_by_id(&self, path: &[&str]) -> Option<Found> {
        let (id, rest) = path.split_first()?;
        let mut stages = self.plan.groups.iter().flatten();
        match stages.find(|stage| stage.id.as_str() == *id) {
            Some(stage) => self.in_stage(stage, rest),
            None => self.in_stage_loop(id, rest),
        }
    }

    fn in_stage(&self, stage: &StagePlan, path: &[&str]) -> Option<Found> {
        match path {
            ["identifier"] => text(stage.identifier.as_str()),
            ["name"] => text(&stage.name),
            ["type"] => text(&stage.stage_type),
            ["description"] => text(stage.description.as_deref()?),
            ["executionUrl"] => value(self.link(Some(stage))?),
            ["tags", rest @ ..] => tags(&stage.tags, rest),
            ["identifierPostFix"] => value(
                stage
                    .iteration
                    .as_ref()
                    .map_or(String::new(), Iteration::postfix),
            ),
            ["status"] => {
                let summary = self.run.stages.iter().find(|known| known.id == stage.id)?;
                text(status_name(summary.status))
            }
            [word @ ("currentStatus" | "liveStatus")] => {
                text(status_name(self.stage_standing(stage, Counted::of(word)?)?))
            }
            ["variables", name @ ..] => variable(&stage.variables, name),
            ["delegateSelectors"] => {
                value(Value::from_json(&stage.delegate_selectors.clone().into()))
            }
            ["output" | "outputs", name @ ..] | ["spec", "outputs", name @ ..] => {
                self.child_output(stage, name)
            }
            ["execution" | "spec", "execution", rest @ ..] => self.execution(stage, rest),
            ["spec", first, rest @ ..] => self.entity(stage, first, rest),
            path if is_of_turn(path) => {
                value(Value::from_json(&stage.iteration.as_ref()?.told(path)?))
            }
            _ => None,
        }
    }

    /// The account, organization or project.
    fn place(&self, path: &[&str]) -> Option<Found> {
        let scope = &self.plan.scope;
        match path {
            ["account", "identifier"] => value(scope.account.as_str()),
            ["org", "identifier"] => value(scope.org.as_ref()?.as_str()),
            ["project", "identifier"] => value(scope.project.as_ref()?.as_str()),
            _ => value(Value::from_json(&self.plan.label(path)?)),
        }
    }

    fn scope_variable(&self, path: &[&str]) -> Option<Found> {
        let name = path.join(".");
        let found = self.plan.scope_variables.iter();
        let found = found.into_iter().find(|variable| variable.name == name)?;
        json(&found.value, &[])
    }
}

fn text(text: &str) -> Option<Found> {
    Some(Found::Text(text.to_owned()))
}

fn value(value: impl Into<Value>) -> Option<Found> {
    Some(Found::Value(value.into()))
}

fn tags(tags: &indexmap::IndexMap<String, String>, path: &[&str]) -> Option<Found> {
    if path.is_empty() {
        let map = tags
            .iter()
            .map(|(key, tag)| (key.clone(), tag.as_str().into()));
        return value(Value::Map(map.collect()));
    }
    text(tags.get(&path.join("."))?)
}

/// A variable by its name, which may hold dots.
fn variable(variables: &[Variable], name: &[&str]) -> Option<Found> {
    if name.is_empty() {
        return all(variables);
    }
    let name = name.join(".");
    let variable = variables.iter().find(|variable| variable.name == name)?;
    match &variable.value {
        Json::String(reference) if variable.kind == "Secret" && !reference.contains("<+") => {
            value(SecretRef::new(reference.as_str()).ok()?)
        }
        other => json(other, &[]),
    }
}

/// Every variable by its name, but for secrets.
fn all(variables: &[Variable]) -> Option<Found> {
    let told = variables
        .iter()
        .filter(|variable| variable.kind != "Secret");
    let map = told.map(|variable| (variable.name.clone(), Value::from_json(&variable.value)));
    value(Value::Map(map.collect()))
}

/// A place in a document of the plan; its texts are definitions.
fn json(document: &Json, path: &[&str]) -> Option<Found> {
    let found = path
        .iter()
        .try_fold(document, |value, key| value.get(key))?;
    match found {
        Json::String(definition) => text(definition),
        other => value(Value::from_json(other)),
    }
}

/// A status as expressions compare it (FEATURES 23).
pub fn status_name(status: Status) -> &'static str {
    match status {
        Status::NotStarted => "NOT_STARTED",
        Status::Queued => "QUEUED",
        Status::Running => "RUNNING",
        Status::AsyncWaiting => "ASYNC_WAITING",
        Status::TimedWaiting => "TIMED_WAITING",
        Status::ResourceWaiting => "RESOURCE_WAITING",
        Status::InterventionWaiting => "INTERVENTION_WAITING",
        Status::ApprovalWaiting => "APPROVAL_WAITING",
        Status::InputWaiting => "INPUT_WAITING",
        Status::Paused => "PAUSED",
        Status::Discontinuing => "DISCONTINUING",
        Status::Success => "SUCCEEDED",
        Status::IgnoreFailed => "IGNORE_FAILED",
        Status::Skipped => "SKIPPED",
        Status::Failed => "FAILED",
        Status::Errored => "ERRORED",
        Status::Aborted => "ABORTED",
        Status::AbortedByFreeze => "ABORTED_BY_FREEZE",
        Status::Expired => "EXPIRED",
        Status::ApprovalRejected => "APPROVAL_REJECTED",
    }
}

#[cfg(test)]
mod places_tests;
#[cfg(test)]
mod tests;
