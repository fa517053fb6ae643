//! `TestState`: one state, run by itself, with its data flow laid open.
//!
//! The state runs by the same rules as in an execution; only its work may be given by a mock, and its
//! leaving ends the run. Nothing is written down.

mod mock;
mod shapes;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::definition::{self, Definition, Kind, MachineType, State};
use crate::effect::Invocation;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::http::invalid_definition;
use crate::record::{Execution, Phase, Redrives, Status};
use crate::run::{Effect, Mock, Run, Trial};

/// The name of a state that has none.
const LONE_STATE: &str = "StateName";
/// Members of `inspectionData` that are not JSON text.
const PLAIN: [&str; 4] = [
    "maxConcurrency",
    "toleratedFailureCount",
    "toleratedFailurePercentage",
    "errorDetails",
];

/// A request, read.
pub(crate) struct Request {
    pub(crate) definition: String,
    /// The state of a whole definition; `None` if the definition is one state.
    pub(crate) state: Option<String>,
    pub(crate) role: String,
    pub(crate) input: Value,
    pub(crate) variables: Map<String, Value>,
    pub(crate) context: Option<Value>,
    pub(crate) mock: Option<Mock>,
    pub(crate) validation: Validation,
    pub(crate) retries: Option<u64>,
    pub(crate) failures: Option<u64>,
    /// `mapItemReaderData`.
    pub(crate) items: Option<String>,
    /// `errorCausedByState`.
    pub(crate) culprit: Option<String>,
}

/// How a mocked result is compared with what the service would answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validation {
    Strict,
    Present,
    Nothing,
}

/// Runs the state; gives the answer of the API with `inspectionData`.
pub(crate) async fn run(engine: &Engine, request: Request) -> Result<Value, ApiError> {
    let (definition, machine, name) = find(&request)?;
    let Some(state) = definition.state(machine, &name) else {
        return Err(ApiError::validation(format!("State not found: '{name}'")));
    };
    mock::check(&request, &definition, state)?;
    let is_choice_or_end = matches!(state.kind, Kind::Succeed | Kind::Fail { .. });
    let mut run = start(engine, &request, definition, machine, &name);
    drive(engine, &mut run).await?;
    Ok(answer(&run, request.input, is_choice_or_end))
}

/// The definition and the place of the state in it.
fn find(request: &Request) -> Result<(Arc<Definition>, usize, String), ApiError> {
    let Some(name) = &request.state else {
        let definition = definition::parse_state(&request.definition, LONE_STATE);
        let definition = definition.map_err(|errors| invalid_definition(&errors))?;
        return Ok((Arc::new(definition), 0, LONE_STATE.to_owned()));
    };
    let definition = definition::parse(&request.definition, MachineType::Standard)
        .map_err(|errors| invalid_definition(&errors))?;
    let machine = definition
        .machines
        .iter()
        .position(|machine| machine.states.contains_key(name));
    match machine {
        Some(machine) => Ok((Arc::new(definition), machine, name.clone())),
        None => Err(ApiError::validation(format!("State not found: '{name}'"))),
    }
}

fn start(
    engine: &Engine,
    request: &Request,
    definition: Arc<Definition>,
    machine: usize,
    state: &str,
) -> Run {
    let inner = &engine.0;
    let fresh = || uuid::Uuid::new_v4().to_string();
    let (machine_name, name) = (fresh(), fresh());
    let execution = Execution {
        arn: inner.home.express(&machine_name, &name),
        name,
        machine: inner.home.machine(&machine_name),
        machine_name,
        role: request.role.clone(),
        revision: String::new(),
        input: request.input.to_string(),
        status: Status::Running,
        start_ms: inner.clock.now_ms(),
        stop_ms: None,
        output: None,
        error: None,
        cause: None,
        parent: None,
        trace: None,
        express: true,
        processor: Some(machine),
        map_run: None,
        redrives: Redrives::default(),
    };
    let trial = Trial {
        context: request.context.clone(),
        mock: request.mock.clone(),
        retries: request
            .retries
            .and_then(|count| u32::try_from(count).ok())
            .unwrap_or(0),
        failures: request
            .failures
            .and_then(|count| usize::try_from(count).ok()),
        items: request.items.clone(),
        ..Trial::default()
    };
    let now = inner.clock.now();
    let mut run = Run::start(0, execution, definition, request.input.clone(), now);
    run.try_state(state, request.variables.clone(), trial);
    run
}

/// Lets the state run to its end, carrying out what it asks for.
async fn drive(engine: &Engine, run: &mut Run) -> Result<(), ApiError> {
    let inner = &engine.0;
    loop {
        let now = inner.clock.now();
        run.advance(now, inner.as_ref());
        if !run.is_open() || matches!(run.phase(0), Some(Phase::Backoff { .. })) {
            return Ok(());
        }
        let now = || inner.clock.now();
        match run.take_effects().into_iter().next() {
            Some(Effect::Invoke {
                branch,
                attempt,
                name,
                payload,
                settings,
            }) => {
                let invocation = Invocation {
                    machine: run.execution.machine.clone(),
                    function: name,
                    payload,
                    settings,
                };
                let result = inner.lambda.carry_out(invocation).await;
                run.invoked(now(), branch, attempt, result);
            }
            Some(Effect::Call {
                branch,
                attempt,
                call,
                submitted,
            }) => {
                let result = match submitted {
                    None => inner.services.call(&call).await,
                    Some(submitted) => inner.services.finish(&call, &submitted).await,
                };
                run.called(now(), branch, attempt, result);
            }
            _ => {
                return Err(ApiError::validation(
                    "The state waits for somebody else: give a mock of its result",
                ));
            }
        }
    }
}

fn answer(run: &Run, input: Value, is_end: bool) -> Value {
    let Some(trial) = &run.trial else {
        return json!({});
    };
    let mut answer = json!({});
    let status = match &trial.left {
        Some((output, next)) => {
            answer["output"] = output.to_string().into();
            if let Some(next) = next {
                answer["nextState"] = next.as_str().into();
            }
            if trial.caught {
                "CAUGHT_ERROR"
            } else {
                "SUCCEEDED"
            }
        }
        None if trial.retried => "RETRIABLE",
        None => "FAILED",
    };
    answer["status"] = status.into();
    if let (true, Some((error, cause))) = (status != "SUCCEEDED", &trial.failure) {
        for (name, text) in [("error", error), ("cause", cause)] {
            if let Some(text) = text {
                answer[name] = text.as_str().into();
            }
        }
    }
    let mut notes = trial.notes.clone();
    notes.insert("input".to_owned(), input);
    let variables = run.variables();
    if !variables.is_empty() && !is_end {
        notes.insert("variables".to_owned(), Value::Object(variables));
    }
    if !trial.error_details.is_empty() {
        let details = Value::Object(trial.error_details.clone());
        notes.insert("errorDetails".to_owned(), details);
    }
    for (name, value) in &mut notes {
        if !PLAIN.contains(&name.as_str()) {
            *value = value.to_string().into();
        }
    }
    answer["inspectionData"] = Value::Object(notes);
    answer
}

impl Run {
    /// Makes this fresh run one of a single state.
    fn try_state(&mut self, state: &str, variables: Map<String, Value>, trial: Trial) {
        self.trial = Some(Box::new(trial));
        self.begin_at(state, variables);
    }
}

/// Whether a state can be tested without a mock.
fn needs_mock(state: &State) -> bool {
    matches!(state.kind, Kind::Map(_) | Kind::Parallel { .. })
}
