//! State machine definitions: the language, parsed and checked once.
//!
//! Both query languages become the same structures: fields that hold queries are [`Template`]s, and a
//! state in JSONPath has [`Paths`] besides. `read` reads machines and states, and the other files the
//! parts of states.

mod check;
mod choices;
mod diagnostics;
mod fields;
mod map;
mod paths;
mod queries;
mod read;
mod references;
mod resource;
mod retry;
mod task;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::Value;

use crate::choice::Test;
use crate::template::Template;

pub(crate) use diagnostics::{DefinitionError, all};
pub(crate) use map::{Distributed, InputType, MapState};
pub(crate) use paths::{PathField, Paths, ResultPath};
pub(crate) use resource::{Pattern, Resource, StartMode};
pub(crate) use retry::{Catcher, Retrier};

/// Longest definition (API reference, `CreateStateMachine`).
pub(crate) const LONGEST_DEFINITION: usize = 1_048_576;

/// How a machine runs: what it may contain depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MachineType {
    #[default]
    Standard,
    Express,
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
    /// JSONata's `Output`.
    pub(crate) output: Option<Template>,
    /// How data flows through a state in JSONPath; `None` in JSONata.
    pub(crate) paths: Option<Paths>,
    pub(crate) retry: Vec<Retrier>,
    pub(crate) catch: Vec<Catcher>,
}

/// What a state does.
#[derive(Debug)]
pub(crate) enum Kind {
    Pass {
        /// JSONPath's `Result`: literal, whatever it holds.
        result: Option<Value>,
        /// JSONPath's `Parameters`.
        parameters: Option<Template>,
    },
    Task(Box<Task>),
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
    Map(Box<MapState>),
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
    pub(crate) condition: Condition,
    pub(crate) next: String,
    pub(crate) output: Option<Template>,
    pub(crate) assign: Option<Template>,
}

/// When a rule of a `Choice` applies.
#[derive(Debug)]
pub(crate) enum Condition {
    /// JSONata.
    Expression(Template),
    /// JSONPath.
    Test(Test),
}

/// A `Task`.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) resource: Resource,
    /// `Arguments`, or `Parameters` in JSONPath.
    pub(crate) arguments: Option<Template>,
    pub(crate) timeout: Option<Template>,
    pub(crate) heartbeat: Option<Template>,
    pub(crate) credentials: Option<Template>,
}

impl State {
    /// The value of `Type`.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Pass { .. } => "Pass",
            Kind::Task(_) => "Task",
            Kind::Choice(_) => "Choice",
            Kind::Wait(_) => "Wait",
            Kind::Succeed => "Succeed",
            Kind::Fail { .. } => "Fail",
            Kind::Parallel { .. } => "Parallel",
            Kind::Map(_) => "Map",
        }
    }

    /// Whether the state can be tried again, and so counts its retries.
    pub(crate) fn retries(&self) -> bool {
        matches!(
            self.kind,
            Kind::Task(_) | Kind::Parallel { .. } | Kind::Map(_)
        )
    }
}

impl Definition {
    /// A state by machine and name. Definitions are checked, so that only a journal that does not fit
    /// its definition gives `None`.
    pub(crate) fn state(&self, machine: usize, name: &str) -> Option<&State> {
        self.machines.get(machine)?.states.get(name)
    }

    /// The variables that each state mentions, by the name of the state, both in order.
    pub(crate) fn variable_references(&self) -> serde_json::Map<String, Value> {
        references::of(self)
    }
}

/// Parses the text of a definition, within its limits.
pub(crate) fn parse(text: &str, kind: MachineType) -> Result<Definition, Vec<DefinitionError>> {
    if text.len() > LONGEST_DEFINITION {
        let message = format!("Definition is longer than {LONGEST_DEFINITION} bytes");
        return Err(vec![DefinitionError::schema("", message)]);
    }
    let value = diagnostics::json(text).map_err(|error| vec![error])?;
    read::read(&value, kind, Outer::Machine)
}

/// Parses a definition that was accepted once, perhaps by an engine that demanded less.
pub(crate) fn parse_stored(
    text: &str,
    kind: MachineType,
) -> Result<Definition, Vec<DefinitionError>> {
    let value = diagnostics::json(text).map_err(|error| vec![error])?;
    read::read(&value, kind, Outer::Stored)
}

/// Parses the text of one state, as the only state, called `name`, of a machine. Where it leads does not
/// matter.
pub(crate) fn parse_state(text: &str, name: &str) -> Result<Definition, Vec<DefinitionError>> {
    let state = diagnostics::json(text).map_err(|error| vec![error])?;
    let machine = serde_json::json!({"StartAt": name, "States": {name: state}});
    read::read(&machine, MachineType::Standard, Outer::State)
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outer {
    /// A whole machine.
    Machine,
    /// A machine from the journal: what it lacks without being unreadable is forgiven.
    Stored,
    /// One state, of which the targets are not there.
    State,
}
