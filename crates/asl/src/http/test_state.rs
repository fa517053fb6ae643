//! `TestState`: the request, read; the work is in [`crate::test_state`].

use serde_json::Value;

use super::request::Members;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::run::Mock;
use crate::test_state::{self, Request, Validation};

/// Runs one state and says what became of its input.
pub(super) async fn test(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let request = read(members)?;
    let level = members.text("inspectionLevel")?.unwrap_or("INFO");
    if !["INFO", "DEBUG", "TRACE"].contains(&level) {
        return Err(ApiError::validation(format!(
            "1 validation error detected: Value '{level}' at 'inspectionLevel' failed to satisfy constraint: Member must satisfy enum value set: [INFO, DEBUG, TRACE]"
        )));
    }
    // What it calls may take long, and nothing of it is written down.
    let tested = test_state::run(engine, request);
    let tested = engine.0.stop.run_until_cancelled(tested).await;
    let mut answer = tested.unwrap_or_else(|| Err(ApiError::shutting_down()))?;
    if level == "INFO"
        && let Some(answer) = answer.as_object_mut()
    {
        answer.remove("inspectionData");
    }
    Ok(answer)
}

fn read(members: &Members) -> Result<Request, ApiError> {
    let configuration = members.get("stateConfiguration");
    let setting = |name: &str| configuration.and_then(|settings| settings.get(name));
    let number = |name: &str| setting(name).and_then(Value::as_u64);
    let text = |name: &str| setting(name).and_then(Value::as_str).map(str::to_owned);
    Ok(Request {
        definition: members.required("definition")?.to_owned(),
        state: members.text("stateName")?.map(str::to_owned),
        role: members.text("roleArn")?.unwrap_or_default().to_owned(),
        input: json(members.text("input")?.unwrap_or("{}"), "input")?,
        variables: match members.text("variables")? {
            None => serde_json::Map::new(),
            Some(text) => match json(text, "variables")? {
                Value::Object(variables) => variables,
                _ => return Err(ApiError::validation("'variables' must be a JSON object")),
            },
        },
        context: members
            .text("context")?
            .map(|text| json(text, "context"))
            .transpose()?,
        mock: mock(members)?,
        validation: validation(members)?,
        retries: number("retrierRetryCount"),
        failures: number("mapIterationFailureCount"),
        items: text("mapItemReaderData"),
        culprit: text("errorCausedByState"),
    })
}

fn json(text: &str, what: &str) -> Result<Value, ApiError> {
    serde_json::from_str(text).map_err(|error| {
        ApiError::new(
            "InvalidExecutionInput",
            format!("Invalid State Machine Execution Input: '{what}' is not JSON: {error}"),
        )
    })
}

fn mock(members: &Members) -> Result<Option<Mock>, ApiError> {
    let Some(mock) = members.get("mock") else {
        return Ok(None);
    };
    if members.flag("revealSecrets", false) {
        return Err(ApiError::validation(
            "TestState does not support RevealSecrets when a mock is specified.",
        ));
    }
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    match (mock.get("result"), mock.get("errorOutput")) {
        (Some(result), None) => {
            let result = result.as_str().unwrap_or_default();
            let result = serde_json::from_str(result).map_err(|error| {
                ApiError::validation(format!("Mocked result must be valid JSON: {error}"))
            })?;
            Ok(Some(Mock::Result(result)))
        }
        (None, Some(failure)) => Ok(Some(Mock::Failure {
            error: text(failure.get("error")),
            cause: text(failure.get("cause")),
        })),
        _ => Err(ApiError::validation(
            "A test mock should have only one of the following fields: [result, errorOutput].",
        )),
    }
}

fn validation(members: &Members) -> Result<Validation, ApiError> {
    let mode = members
        .get("mock")
        .and_then(|mock| mock.get("fieldValidationMode"));
    match mode.and_then(Value::as_str) {
        None | Some("STRICT") => Ok(Validation::Strict),
        Some("PRESENT") => Ok(Validation::Present),
        Some("NONE") => Ok(Validation::Nothing),
        Some(other) => Err(ApiError::validation(format!(
            "1 validation error detected: Value '{other}' at 'mock.fieldValidationMode' failed to satisfy constraint: Member must satisfy enum value set: [PRESENT, STRICT, NONE]"
        ))),
    }
}
