//! A single state run by itself: what `TestState` asks for and learns.

use serde_json::{Map, Value};

use super::Run;

/// What stands for the work of a state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mock {
    Result(Value),
    Failure {
        error: Option<String>,
        cause: Option<String>,
    },
}

/// A state that runs by itself. It ends the run as soon as it is left.
#[derive(Debug, Default)]
pub(crate) struct Trial {
    /// Takes the place of the context object.
    pub(crate) context: Option<Value>,
    pub(crate) mock: Option<Mock>,
    /// Retries that the retriers have behind them.
    pub(crate) retries: u32,
    /// Iterations of a `Map` that failed.
    pub(crate) failures: Option<usize>,
    /// An object in the place of the one whose items a `Map` would read.
    pub(crate) items: Option<String>,
    /// `inspectionData`.
    pub(crate) notes: Map<String, Value>,
    /// `errorDetails` of it.
    pub(crate) error_details: Map<String, Value>,
    /// Output and next state.
    pub(crate) left: Option<(Value, Option<String>)>,
    pub(crate) caught: bool,
    pub(crate) retried: bool,
    pub(crate) failure: Option<(Option<String>, Option<String>)>,
    /// The variables that the state saw, and then those that it left.
    pub(crate) variables: Map<String, Value>,
}

impl Trial {
    pub(super) fn leave(
        &mut self,
        output: Value,
        next: Option<&str>,
        variables: &Map<String, Value>,
    ) {
        self.variables.clone_from(variables);
        self.left = Some((output, next.map(str::to_owned)));
    }

    pub(super) fn caught_by(&mut self, catcher: usize) {
        self.caught = true;
        self.error_details
            .insert("catchIndex".to_owned(), catcher.into());
    }

    /// A retrier took the failure; `delay_ms` if it has attempts left.
    pub(super) fn retried_by(&mut self, retrier: usize, delay_ms: Option<i64>) {
        self.error_details
            .insert("retryIndex".to_owned(), retrier.into());
        if let Some(delay_ms) = delay_ms {
            self.retried = true;
            self.error_details.insert(
                "retryBackoffIntervalSeconds".to_owned(),
                (delay_ms / 1000).into(),
            );
        }
    }
}

impl Run {
    /// Lets a fresh run begin at another state than its machine does, with variables.
    pub(crate) fn begin_at(&mut self, state: &str, variables: Map<String, Value>) {
        for branch in self.branches.values_mut() {
            state.clone_into(&mut branch.state);
            branch.variables.clone_from(&variables);
        }
        if let Some(trial) = &mut self.trial {
            trial.variables = variables;
        }
    }

    /// The variables of the outer scope, as the state left them.
    pub(crate) fn variables(&self) -> Map<String, Value> {
        self.trial
            .as_ref()
            .map(|trial| trial.variables.clone())
            .unwrap_or_default()
    }

    /// Takes what the run has asked for, and forgets what it would write.
    pub(crate) fn take_effects(&mut self) -> Vec<super::Effect> {
        std::mem::take(&mut self.step).effects
    }

    /// Keeps a value for `inspectionData`, if somebody will look.
    pub(super) fn note(&mut self, name: &str, value: &Value) {
        if let Some(trial) = &mut self.trial {
            trial.notes.insert(name.to_owned(), value.clone());
        }
    }

    /// What stands for the work of the state, if something does.
    pub(super) fn mock(&self) -> Option<Mock> {
        self.trial.as_ref().and_then(|trial| trial.mock.clone())
    }
}
