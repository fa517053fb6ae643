//! State machine definitions: the language, parsed and checked once.
//!
//! Only the JSONata side of the language runs. A state without `QueryLanguage` is JSONPath by the
//! specification; it is accepted as long as it has no field whose meaning needs JSONPath, because then
//! both languages agree, and refused by the name of that field otherwise. JSONPath would come in as
//! another kind of [`Template`] and as another reading of the same fields in `read`.

mod check;
mod fields;
mod parts;
mod read;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::Value;

use crate::template::Template;

pub(crate) use read::read;

/// Longest definition (API reference, `CreateStateMachine`).
pub(crate) const LONGEST_DEFINITION: usize = 1_048_576;

/// A definition that is refused: the code, text and place of AWS's diagnostics.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}{}", at(.path))]
pub(crate) struct DefinitionError {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// JSON pointer into the definition; empty where there is no place.
    pub(crate) path: String,
}

fn at(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!(" at {path}")
    }
}

/// A checked definition. Machine 0 is the outer one; the others are branches of `Parallel` and the
/// processors of `Map`, numbered in the order of the text.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) machines: Vec<Machine>,
    /// Longest execution, in seconds.
    pub(crate) timeout_seconds: Option<i64>,
}

/// States with a start.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) start_at: String,
    pub(crate) states: HashMap<String, State>,
}

/// One state.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) kind: Kind,
    /// `None` ends the machine.
    pub(crate) next: Option<String>,
    pub(crate) assign: Option<Template>,
    pub(crate) output: Option<Template>,
    pub(crate) retry: Vec<Retrier>,
    pub(crate) catch: Vec<Catcher>,
}

/// What a state does.
#[derive(Debug)]
pub(crate) enum Kind {
    Pass,
    Task(Task),
    Choice(Vec<ChoiceRule>),
    Wait(WaitFor),
    Succeed,
    Fail {
        error: Option<Template>,
        cause: Option<Template>,
    },
    /// The machines of the branches.
    Parallel {
        arguments: Option<Template>,
        branches: Vec<usize>,
    },
    Map(MapState),
}

/// How long a `Wait` waits.
#[derive(Debug)]
pub(crate) enum WaitFor {
    Seconds(Template),
    Timestamp(Template),
}

/// One rule of a `Choice`.
#[derive(Debug)]
pub(crate) struct ChoiceRule {
    pub(crate) condition: Template,
    pub(crate) next: String,
    pub(crate) output: Option<Template>,
    pub(crate) assign: Option<Template>,
}

/// An inline `Map`.
#[derive(Debug)]
pub(crate) struct MapState {
    pub(crate) items: Option<Template>,
    pub(crate) selector: Option<Template>,
    pub(crate) max_concurrency: Option<Template>,
    pub(crate) processor: usize,
}

/// A `Task`.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) resource: Resource,
    pub(crate) arguments: Option<Template>,
    pub(crate) timeout: Option<Template>,
    pub(crate) heartbeat: Option<Template>,
}

/// The integrations that this engine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// A function's own ARN: the payload is the state's input.
    Function(String),
    Invoke {
        wait_for_token: bool,
    },
    StartExecution(StartMode),
    /// An activity's ARN.
    Activity(String),
}

/// Whether `startExecution` waits for the child, and how its output is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartMode {
    /// Request and response.
    Start,
    /// `.sync`: input and output as text.
    Sync,
    /// `.sync:2`: input and output as JSON.
    Sync2,
    WaitForToken,
}

impl Resource {
    /// `resourceType` and `resource` of the service integration's events.
    pub(crate) fn names(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Invoke {
                wait_for_token: false,
            } => Some(("lambda", "invoke")),
            Self::Invoke {
                wait_for_token: true,
            } => Some(("lambda", "invoke.waitForTaskToken")),
            Self::StartExecution(StartMode::Start) => Some(("states", "startExecution")),
            Self::StartExecution(StartMode::Sync) => Some(("states", "startExecution.sync")),
            Self::StartExecution(StartMode::Sync2) => Some(("states", "startExecution.sync:2")),
            Self::StartExecution(StartMode::WaitForToken) => {
                Some(("states", "startExecution.waitForTaskToken"))
            }
            Self::Function(_) | Self::Activity(_) => None,
        }
    }

    /// Whether the task ends by its token.
    pub(crate) fn waits_for_token(&self) -> bool {
        matches!(
            self,
            Self::Invoke {
                wait_for_token: true
            } | Self::StartExecution(StartMode::WaitForToken)
                | Self::Activity(_)
        )
    }
}

/// One entry of `Retry`.
#[derive(Debug)]
pub(crate) struct Retrier {
    pub(crate) errors: Vec<String>,
    pub(crate) interval_seconds: u64,
    pub(crate) max_attempts: u32,
    pub(crate) backoff_rate: f64,
    pub(crate) max_delay_seconds: Option<u64>,
    pub(crate) full_jitter: bool,
}

/// One entry of `Catch`.
#[derive(Debug)]
pub(crate) struct Catcher {
    pub(crate) errors: Vec<String>,
    pub(crate) next: String,
    pub(crate) output: Option<Template>,
    pub(crate) assign: Option<Template>,
}

impl Definition {
    /// A state by machine and name. Definitions are checked, so that only a journal that does not fit
    /// its definition gives `None`.
    pub(crate) fn state(&self, machine: usize, name: &str) -> Option<&State> {
        self.machines.get(machine)?.states.get(name)
    }
}

/// Parses the text of a definition, within its limits.
pub(crate) fn parse(text: &str) -> Result<Definition, DefinitionError> {
    if text.len() > LONGEST_DEFINITION {
        return Err(DefinitionError {
            code: "SCHEMA_VALIDATION_FAILED",
            message: format!("Definition is longer than {LONGEST_DEFINITION} bytes"),
            path: String::new(),
        });
    }
    let value: Value = serde_json::from_str(text).map_err(|error| DefinitionError {
        code: "INVALID_JSON_DESCRIPTION",
        message: error.to_string(),
        path: String::new(),
    })?;
    read(&value)
}
