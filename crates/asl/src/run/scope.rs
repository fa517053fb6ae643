//! What expressions of a branch see: input, variables of its scopes, and the context object.

use std::cell::Cell;

use serde_json::{Map, Value, json};

use super::{LONGEST_PAYLOAD, Run};
use crate::definition::{Definition, State};
use crate::history;
use crate::items::STATE_DATA;
use crate::jsonata::{Bindings, QUERY_EVALUATION, QueryError, length};
use crate::query::{Query, Wording};
use crate::record::{Branch, Phase};
use crate::run::Failure;
use crate::template::Template;
use crate::token::Token;

/// What expressions see besides the state's input: `result` and `errorOutput` of `$states`, the token of a
/// task about to be scheduled, and what `$` is in paths.
#[derive(Clone, Copy, Default)]
pub(super) struct Extra<'a> {
    /// `None`: the state's input.
    pub(super) root: Option<&'a Value>,
    pub(super) result: Option<&'a Value>,
    pub(super) error_output: Option<&'a Value>,
    pub(super) token: Option<&'a str>,
    /// What the context object says of the item besides its index and value.
    pub(super) place: Place<'a>,
}

/// Where an item of a `Map` is found.
#[derive(Clone, Copy, Default)]
pub(super) struct Place<'a> {
    /// Its name in an object.
    pub(super) key: Option<&'a str>,
    /// `None`: the state's input.
    pub(super) source: Option<&'a str>,
}

impl<'a> Extra<'a> {
    /// Paths start at `root`.
    pub(super) fn of(root: &'a Value) -> Self {
        Self {
            root: Some(root),
            ..Self::default()
        }
    }

    /// After a result: `$states.result`, and `$` in paths.
    pub(super) fn after(result: Option<&'a Value>) -> Self {
        Self {
            root: result,
            result,
            ..Self::default()
        }
    }

    /// In a catcher.
    pub(super) fn error(error: &'a Value) -> Self {
        Self {
            root: Some(error),
            error_output: Some(error),
            ..Self::default()
        }
    }
}

impl Run {
    /// Evaluates an optional field of the state of branch `id`.
    pub(super) fn evaluate(
        &self,
        id: u32,
        template: Option<&Template>,
        field: &str,
        extra: Extra<'_>,
    ) -> Result<Option<Value>, Failure> {
        let (Some(template), Some(branch)) = (template, self.branches.get(&id)) else {
            return Ok(None);
        };
        let value = self
            .with_bindings(branch, extra, |bindings| template.evaluate(field, bindings))
            .map_err(|error| self.query_failure(branch, error))?;
        if longer_than_allowed(&value) {
            return Err(Failure::too_long(&branch.state));
        }
        Ok(Some(value))
    }

    /// A path or other query of the state of branch `id`, with `$` as `root`.
    pub(super) fn query(
        &self,
        id: u32,
        query: &Query,
        field: &str,
        root: &Value,
    ) -> Result<Value, Failure> {
        let Some(branch) = self.branches.get(&id) else {
            return Ok(Value::Null);
        };
        let extra = Extra::of(root);
        self.with_bindings(branch, extra, |bindings| {
            query.evaluate(field, Wording::Path, bindings)
        })
        .map_err(|error| self.query_failure(branch, error))
    }

    /// A field that is a whole number; texts of digits count where a path leads to them.
    pub(super) fn whole(
        &self,
        id: u32,
        template: Option<&Template>,
        field: &str,
        root: &Value,
    ) -> Result<Option<u64>, Failure> {
        let Some(template) = template else {
            return Ok(None);
        };
        let value = self.evaluate(id, Some(template), field, Extra::of(root))?;
        let value = value.unwrap_or_default();
        let digits = || match template {
            Template::Query(..) => value.as_str()?.parse().ok(),
            _ => None,
        };
        match value.as_u64().or_else(digits) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong_type(id, template, field, "number", &value)),
        }
    }

    /// A failure of a field whose value has the wrong type.
    pub(super) fn wrong_type(
        &self,
        id: u32,
        template: &Template,
        field: &str,
        expected: &str,
        value: &Value,
    ) -> Failure {
        let error = match template.expression() {
            Some(expression) => expression.wrong_type(field, expected, value),
            None => match template {
                Template::Query(query, _) => QueryError::runtime(format!(
                    "The {field}Path parameter does not reference a value of type {expected}: {} == {value}",
                    query.text()
                )),
                _ => QueryError::query(
                    format!("The field '{field}' must be of type {expected} but was: {value}"),
                    Some(field.to_owned()),
                ),
            },
        };
        self.failed_query(id, error)
    }

    /// A failed evaluation in the state of branch `id`.
    pub(super) fn failed_query(&self, id: u32, error: QueryError) -> Failure {
        match self.branches.get(&id) {
            Some(branch) => self.query_failure(branch, error),
            None => Failure::runtime(error.message),
        }
    }

    #[expect(clippy::unused_self, reason = "reads as a question about this run")]
    fn query_failure(&self, branch: &Branch, error: QueryError) -> Failure {
        let cause = in_state(branch, &error.message);
        if error.error == QUERY_EVALUATION {
            return Failure::query(error, cause);
        }
        Failure::new(error.error, cause).of_field()
    }

    pub(super) fn with_bindings<T>(
        &self,
        branch: &Branch,
        extra: Extra<'_>,
        read: impl FnOnce(&Bindings<'_>) -> T,
    ) -> T {
        let mut scopes = vec![&branch.variables];
        let mut outer = branch.parent;
        while let Some(parent) = outer.and_then(|(id, _)| self.branches.get(&id)) {
            scopes.push(&parent.variables);
            outer = parent.parent;
        }
        read(&Bindings {
            input: &branch.input,
            root: extra.root.unwrap_or(&branch.input),
            result: extra.result,
            error_output: extra.error_output,
            context: &|| self.context(branch, extra.token, extra.place),
            variables: &scopes,
            now: self.now,
            spent: Cell::new(0),
        })
    }

    /// The context object (Developer Guide, "Accessing execution data from the Context object").
    fn context(&self, branch: &Branch, token: Option<&str>, place: Place<'_>) -> Value {
        if let Some(context) = self.trial.as_ref().and_then(|trial| trial.context.clone()) {
            return context;
        }
        let execution = &self.execution;
        let input = serde_json::from_str(&execution.input).unwrap_or(Value::Null);
        let mut context = json!({
            "Execution": {
                "Id": execution.arn,
                "Input": input,
                "Name": execution.name,
                "RoleArn": (!execution.role.is_empty()).then_some(&execution.role),
                "StartTime": history::iso(execution.start_ms),
            },
            "StateMachine": {"Id": execution.machine, "Name": execution.machine_name},
            "State": {
                "EnteredTime": history::iso(branch.entered_ms),
                "Name": self.trial.as_ref().map_or(branch.state.as_str(), |_| "StateName"),
            },
        });
        // An express execution cannot be redriven.
        if !execution.express {
            context["Execution"]["RedriveCount"] = execution.redrives.count.into();
            if let Some(at_ms) = execution.redrives.last_ms {
                context["Execution"]["RedriveTime"] = history::iso(at_ms).into();
            }
        }
        let retries = super::state_of(&self.definition, branch).is_some_and(State::retries);
        if retries {
            context["State"]["RetryCount"] = branch.retries.iter().sum::<u32>().into();
        }
        let parts = [
            ("Map", self.map_context(branch, place)),
            ("Task", token.map(|token| json!({"Token": token}))),
        ];
        if let Some(context) = context.as_object_mut() {
            for (name, part) in parts {
                if let Some(part) = part {
                    context.insert(name.to_owned(), part);
                }
            }
        }
        context
    }

    /// The item of the innermost `Map` around a branch.
    fn map_context(&self, branch: &Branch, place: Place<'_>) -> Option<Value> {
        let mut branch = branch;
        loop {
            let (parent, index) = branch.parent?;
            if let Some(item) = &branch.item {
                let described = history::details([
                    ("Index", Some(index.into())),
                    ("Key", place.key.map(Value::from)),
                    ("Value", Some(item.clone())),
                    ("Source", Some(place.source.unwrap_or(STATE_DATA).into())),
                ]);
                return Some(json!({"Item": described}));
            }
            branch = self.branches.get(&parent)?;
        }
    }

    /// The token of the task that branch `id` is about to schedule, and its secret part.
    pub(super) fn new_token(&self, id: u32, attempt: u64) -> (String, String) {
        let nonce = crate::token::nonce();
        let token = Token {
            execution: self.number,
            branch: id,
            attempt,
            nonce: nonce.clone(),
        };
        (token.text(), nonce)
    }

    /// The definition, apart from the borrow of the run.
    pub(super) fn definition(&self) -> std::sync::Arc<Definition> {
        std::sync::Arc::clone(&self.definition)
    }

    /// Children of a `Parallel` or `Map`, by place.
    pub(super) fn children_of(&self, id: u32) -> Vec<(usize, u32)> {
        let mut children: Vec<(usize, u32)> = self
            .branches
            .iter()
            .filter_map(|(child, branch)| match branch.parent {
                Some((parent, index)) if parent == id => Some((index, *child)),
                _ => None,
            })
            .collect();
        children.sort_unstable();
        children
    }

    pub(super) fn is_done(&self, id: u32) -> bool {
        self.branches
            .get(&id)
            .is_some_and(|branch| matches!(branch.phase, Phase::Done { .. }))
    }
}

/// AWS's sentence about where an error happened.
pub(super) fn in_state(branch: &Branch, message: &str) -> String {
    format!(
        "An error occurred while executing the state '{}' (entered at the event id #{}). {message}",
        branch.state, branch.entered
    )
}

/// Whether a payload is longer than the service allows, without building its text.
pub(super) fn longer_than_allowed(value: &Value) -> bool {
    length(value, LONGEST_PAYLOAD) > LONGEST_PAYLOAD
}

/// The members of an object, or none.
pub(super) fn members(value: Option<Value>) -> Option<Map<String, Value>> {
    match value {
        Some(Value::Object(members)) => Some(members),
        _ => None,
    }
}
