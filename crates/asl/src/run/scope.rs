//! What expressions of a branch see: input, variables of its scopes, and the context object.

use serde_json::{Map, Value, json};

use super::{LONGEST_PAYLOAD, Run};
use crate::definition::Definition;
use crate::history;
use crate::jsonata::{Bindings, QueryError};
use crate::record::{Branch, Phase};
use crate::run::Failure;
use crate::template::Template;
use crate::token::Token;

/// `result` and `errorOutput` of `$states`, and the token of a task about to be scheduled.
#[derive(Clone, Copy, Default)]
pub(super) struct Extra<'a> {
    pub(super) result: Option<&'a Value>,
    pub(super) error_output: Option<&'a Value>,
    pub(super) token: Option<&'a str>,
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

    pub(super) fn evaluate_result(
        &self,
        id: u32,
        template: Option<&Template>,
        field: &str,
        result: Option<&Value>,
    ) -> Result<Option<Value>, Failure> {
        let extra = Extra {
            result,
            ..Extra::default()
        };
        self.evaluate(id, template, field, extra)
    }

    pub(super) fn evaluate_error(
        &self,
        id: u32,
        template: Option<&Template>,
        field: &str,
        error: &Value,
    ) -> Result<Option<Value>, Failure> {
        let extra = Extra {
            error_output: Some(error),
            ..Extra::default()
        };
        self.evaluate(id, template, field, extra)
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
            None => QueryError {
                message: format!("The field '{field}' must be of type {expected} but was: {value}"),
                location: Some(field.to_owned()),
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
        Failure::query(error, cause)
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
            result: extra.result,
            error_output: extra.error_output,
            context: &|| self.context(branch, extra.token),
            variables: &scopes,
            now: self.now,
        })
    }

    /// The context object (Developer Guide, "Accessing execution data from the Context object").
    fn context(&self, branch: &Branch, token: Option<&str>) -> Value {
        let execution = &self.execution;
        let input = serde_json::from_str(&execution.input).unwrap_or(Value::Null);
        let mut context = json!({
            "Execution": {
                "Id": execution.arn,
                "Input": input,
                "Name": execution.name,
                "RoleArn": execution.role,
                "StartTime": history::iso(execution.start_ms),
                "RedriveCount": 0,
            },
            "StateMachine": {"Id": execution.machine, "Name": execution.machine_name},
            "State": {
                "EnteredTime": history::iso(branch.entered_ms),
                "Name": branch.state,
                "RetryCount": branch.retries.iter().sum::<u32>(),
            },
        });
        let parts = [
            ("Map", self.map_context(branch)),
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

    /// Index and value of the innermost `Map` around a branch.
    fn map_context(&self, branch: &Branch) -> Option<Value> {
        let mut branch = branch;
        loop {
            let (parent, index) = branch.parent?;
            if let Some(item) = &branch.item {
                return Some(json!({"Item": {"Index": index, "Value": item}}));
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
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            if self.0 > LONGEST_PAYLOAD {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Count(0), value).is_err()
}

/// The members of an object, or none.
pub(super) fn members(value: Option<Value>) -> Option<Map<String, Value>> {
    match value {
        Some(Value::Object(members)) => Some(members),
        _ => None,
    }
}
