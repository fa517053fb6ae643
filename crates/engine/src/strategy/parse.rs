//! Actions as YAML writes them.

use std::time::Duration;

use serde_json::Value;
use slipway_model::duration;
use slipway_model::schema::MOST_RETRIES;

use super::{Action, Intervention, Retry};

/// Reads an action; the error says what is wrong with it, for the checks before a run starts.
pub fn parse(action: &str, spec: &Value) -> Result<Action, String> {
    match action {
        "Ignore" => Ok(Action::Ignore),
        "MarkAsSuccess" => Ok(Action::MarkAsSuccess),
        "MarkAsFailure" => Ok(Action::MarkAsFailure),
        "StageRollback" => Ok(Action::StageRollback),
        "StepGroupRollback" => Ok(Action::StepGroupRollback),
        "PipelineRollback" => Ok(Action::PipelineRollback),
        "Abort" => Ok(Action::Abort),
        "Retry" => parse_retry(spec).map(Action::Retry),
        "RetryStepGroup" => parse_retry(spec).map(Action::RetryStepGroup),
        "ManualIntervention" => parse_intervention(spec).map(Action::ManualIntervention),
        "ProceedWithDefaultValues" => Ok(Action::ProceedWithDefaultValues),
        other => Err(format!("`{other}` is not an action of a failure strategy")),
    }
}

/// Reads what a person answered to a failure: one of the actions, where `Retry` is one more attempt.
pub fn answer(action: &str) -> Option<Action> {
    match action {
        "Retry" => Some(Action::Retry(Retry {
            count: u32::MAX,
            intervals: Vec::new(),
            condition: None,
            then: Box::new(Action::MarkAsFailure),
        })),
        "RetryStepGroup" | "ManualIntervention" | "ProceedWithDefaultValues" => None,
        other => parse(other, &Value::Null).ok(),
    }
}

fn parse_retry(spec: &Value) -> Result<Retry, String> {
    let count = whole_number(spec.get("retryCount"))
        .filter(|count| (1..=MOST_RETRIES.unsigned_abs()).contains(count))
        .and_then(|count| u32::try_from(count).ok())
        .ok_or_else(|| format!("`retryCount` must be a number from 1 to {MOST_RETRIES}"))?;
    let intervals = match spec.get("retryIntervals") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().and_then(parse_duration))
            .collect::<Option<Vec<_>>>()
            .ok_or("`retryIntervals` must be durations such as 10s or 1m 30s")?,
        Some(_) => return Err("`retryIntervals` must be a list of durations".to_owned()),
    };
    let condition = parse_condition(spec.get("condition"))?;
    let then = parse_last_resort(spec)?;
    Ok(Retry {
        count,
        intervals,
        condition,
        then: Box::new(then),
    })
}

/// `condition`: an expression that tells whether to try again (RetryFailureSpecConfig in the pipeline schema). `true` and
/// `false` may be written plainly.
fn parse_condition(condition: Option<&Value>) -> Result<Option<String>, String> {
    let text = match condition {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(_) => return Err("`condition` must be an expression".to_owned()),
    };
    if text.is_empty() {
        return Ok(None);
    }
    match slipway_expr::check_condition(&text) {
        Ok(()) => Ok(Some(text)),
        Err(error) => Err(format!("`condition` does not parse: {error}")),
    }
}

fn parse_last_resort(spec: &Value) -> Result<Action, String> {
    let Some(action) = spec.pointer("/onRetryFailure/action") else {
        return Ok(Action::MarkAsFailure);
    };
    match parse_inner(action)? {
        Action::Retry(_) | Action::RetryStepGroup(_) => {
            Err("`onRetryFailure` cannot be Retry again".to_owned())
        }
        other => Ok(other),
    }
}

fn parse_intervention(spec: &Value) -> Result<Intervention, String> {
    let timeout = spec.get("timeout").and_then(Value::as_str);
    let timeout = timeout
        .and_then(parse_duration)
        .ok_or("`timeout` of ManualIntervention must be a duration such as 1d or 2h 30m")?;
    let action = spec
        .pointer("/onTimeout/action")
        .ok_or("ManualIntervention needs `onTimeout.action`: what to do when nobody answers")?;
    match parse_inner(action)? {
        Action::ManualIntervention(_) => {
            Err("`onTimeout` cannot be ManualIntervention again".to_owned())
        }
        other => Ok(Intervention {
            timeout,
            then: Box::new(other),
        }),
    }
}

fn parse_inner(action: &Value) -> Result<Action, String> {
    let kind = action.get("type").and_then(Value::as_str).unwrap_or("");
    parse(kind, action.get("spec").unwrap_or(&Value::Null))
}

fn whole_number(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A time such as `10s` or `1h 30m`.
fn parse_duration(text: &str) -> Option<Duration> {
    duration::parse_from_zero(text).ok()
}
