//! Which mocks a state takes, and whether a mocked result is one that the state could have.

use serde_json::Value;

use super::{Request, Validation, needs_mock, shapes};
use crate::definition::{Definition, Kind, Resource, State};
use crate::error::ApiError;
use crate::run::Mock;

/// Refuses what the API refuses, in its order (API reference, `TestState`).
pub(super) fn check(
    request: &Request,
    definition: &Definition,
    state: &State,
) -> Result<(), ApiError> {
    settings_fit(request, definition, state)?;
    let Some(mock) = &request.mock else {
        if request.failures.is_some() {
            return refuse(
                "TestState does not support MapIterationFailureCount when a mock is not specified.",
            );
        }
        if needs_mock(state) {
            return Err(ApiError::new(
                "InvalidDefinition",
                "TestState API does not support Map or Parallel states. Supported state types include: [Task, Wait, Pass, Succeed, Fail, Choice]",
            ));
        }
        return Ok(());
    };
    let Mock::Result(result) = mock else {
        return takes_mock(state);
    };
    takes_mock(state)?;
    match &state.kind {
        Kind::Parallel { branches, .. } => match result.as_array() {
            None => refuse("Mocked result must be an array."),
            Some(items) if items.len() != branches.len() => refuse(
                "Mocked result must contain the same number of items as number of Parallel branches.",
            ),
            Some(_) => Ok(()),
        },
        Kind::Map(map) => {
            let writes = map.distributed.as_ref().is_some_and(|d| d.writer.is_some());
            map_result(request, result, writes)
        }
        Kind::Task(task) if request.validation != Validation::Nothing => {
            service_result(&task.resource, result)
        }
        _ => Ok(()),
    }
}

/// Refuses settings for a `Map` or `Parallel` where there is none, and states that are not in it.
fn settings_fit(request: &Request, definition: &Definition, state: &State) -> Result<(), ApiError> {
    if request.failures.is_some() && !matches!(state.kind, Kind::Map(_)) {
        return refuse("MapIterationFailureCount is only supported for Map states");
    }
    let Some(culprit) = &request.culprit else {
        return Ok(());
    };
    if !needs_mock(state) {
        return refuse("ErrorCausedByState is only supported for Map and Parallel states");
    }
    let is_inside = definition
        .machines
        .iter()
        .any(|machine| machine.states.contains_key(culprit));
    if is_inside {
        return Ok(());
    }
    refuse(&format!(
        "State '{culprit}' is not a state of the tested state"
    ))
}

fn takes_mock(state: &State) -> Result<(), ApiError> {
    if needs_mock(state) || matches!(state.kind, Kind::Task(_)) {
        return Ok(());
    }
    refuse(&format!(
        "State type '{}' is not supported when a mock is specified",
        state.type_name()
    ))
}

fn map_result(request: &Request, result: &Value, writes: bool) -> Result<(), ApiError> {
    match result {
        Value::Object(_) if writes => Ok(()),
        _ if writes => refuse("Mocked result must be a JSON object."),
        Value::Array(items) => {
            let most = u64::try_from(items.len()).unwrap_or(u64::MAX);
            if request.failures.is_some_and(|failures| failures > most) {
                return refuse(
                    "Map iteration failure count must be less than or equal to the number of Map iterations",
                );
            }
            Ok(())
        }
        _ => refuse("Mocked result must be an array."),
    }
}

fn service_result(resource: &Resource, result: &Value) -> Result<(), ApiError> {
    let Some((service, action)) = resource.names() else {
        return Ok(());
    };
    match shapes::check(service, action, result) {
        Ok(()) => Ok(()),
        Err(what) => refuse(&format!("Mock result schema validation error: {what}")),
    }
}

fn refuse(message: &str) -> Result<(), ApiError> {
    Err(ApiError::validation(message))
}
