//! Failure strategies: which action answers a failure.
//!
//! The nearest level with a strategy for the error decides: step, then step groups from the inside out,
//! then stage. On one level a strategy that names the error comes before one for `AllErrors`; among equals
//! the first. (developer.harness.io, *Define failure strategies for stages and steps*.)

use std::time::Duration;

use serde_json::Value;
use slipway_model::status::{ErrorType, Status};
use slipway_plan::FailureStrategy;

/// What is done about a failed step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Count the failure as none, and go on.
    Ignore,
    /// Pretend success, and go on.
    MarkAsSuccess,
    /// Leave it failed; what follows runs by its conditions.
    MarkAsFailure,
    /// Stop here and run the stage's rollback steps.
    StageRollback,
    /// Stop the whole run without rolling back.
    Abort,
    /// Run the step again, and fall back on another action when that did not help.
    Retry(Retry),
}

/// The `Retry` action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How many more attempts.
    pub count: u32,
    /// Waits before the attempts; the last one repeats.
    pub intervals: Vec<Duration>,
    /// What to do when all attempts failed.
    pub then: Box<Action>,
}

/// Longest accepted `retryCount`: more is a mistake, and each attempt is a record.
const MOST_RETRIES: u64 = 100;

impl Retry {
    /// The wait before attempt number `attempt` (1 is the first retry).
    pub fn wait_before(&self, attempt: u32) -> Duration {
        let index = attempt.saturating_sub(1) as usize;
        let interval = self.intervals.get(index).or(self.intervals.last());
        interval.copied().unwrap_or(Duration::ZERO)
    }
}

/// What a failure comes to, for the attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Another attempt follows after this time.
    Again(Duration),
    /// It is over.
    Over {
        /// Status to record.
        status: Status,
        /// What comes after it in its lane does not run.
        halts: bool,
        /// The stage's rollback steps shall run.
        rolls_back: bool,
    },
}

/// Decides about the failure of attempt `attempt` (0 is the first). `failed` is the status of the failure
/// itself, `Failed` or `Expired` for instance; `levels` are ordered from the nearest outwards.
pub fn judge(
    levels: &[&[FailureStrategy]],
    error: ErrorType,
    failed: Status,
    attempt: u32,
) -> Verdict {
    let action = match resolve(levels, error) {
        Action::Retry(retry) if attempt < retry.count => {
            return Verdict::Again(retry.wait_before(attempt + 1));
        }
        Action::Retry(retry) => *retry.then,
        other => other,
    };
    let (status, halts, rolls_back) = match action {
        Action::Ignore => (Status::IgnoreFailed, false, false),
        Action::MarkAsSuccess => (Status::Success, false, false),
        // `resolve` gives no Retry inside a Retry; a second one would not help.
        Action::MarkAsFailure | Action::Retry(_) => (failed, false, false),
        Action::StageRollback => (failed, true, true),
        Action::Abort => (Status::Aborted, true, false),
    };
    Verdict::Over {
        status,
        halts,
        rolls_back,
    }
}

/// The action for `error`. With no strategy that matches, the step is left failed.
pub fn resolve(levels: &[&[FailureStrategy]], error: ErrorType) -> Action {
    let name = format!("{error:?}");
    let found = levels.iter().find_map(|level| {
        let named = |wanted: &str| level.iter().find(|s| s.errors.iter().any(|e| e == wanted));
        named(&name).or_else(|| named("AllErrors"))
    });
    found
        .and_then(|strategy| parse(&strategy.action, &strategy.spec).ok())
        .unwrap_or(Action::MarkAsFailure)
}

/// Reads an action; the error says what is wrong with it, for the checks before a run starts.
pub fn parse(action: &str, spec: &Value) -> Result<Action, String> {
    match action {
        "Ignore" => Ok(Action::Ignore),
        "MarkAsSuccess" => Ok(Action::MarkAsSuccess),
        "MarkAsFailure" => Ok(Action::MarkAsFailure),
        "StageRollback" => Ok(Action::StageRollback),
        "Abort" => Ok(Action::Abort),
        "Retry" => parse_retry(spec).map(Action::Retry),
        "RetryStepGroup"
        | "StepGroupRollback"
        | "PipelineRollback"
        | "ManualIntervention"
        | "ProceedWithDefaultValues" => Err(format!(
            "the failure strategy action `{action}` comes with a later version; use StageRollback, \
             Ignore, MarkAsSuccess, MarkAsFailure, Abort or Retry"
        )),
        other => Err(format!("`{other}` is not an action of a failure strategy")),
    }
}

fn parse_retry(spec: &Value) -> Result<Retry, String> {
    if !matches!(spec.get("condition"), None | Some(Value::Null)) {
        return Err("`condition` of the Retry action comes with a later version".to_owned());
    }
    let count = whole_number(spec.get("retryCount"))
        .filter(|count| (1..=MOST_RETRIES).contains(count))
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
    let then = parse_last_resort(spec)?;
    Ok(Retry {
        count,
        intervals,
        then: Box::new(then),
    })
}

fn parse_last_resort(spec: &Value) -> Result<Action, String> {
    let Some(action) = spec.pointer("/onRetryFailure/action") else {
        return Ok(Action::MarkAsFailure);
    };
    let kind = action.get("type").and_then(Value::as_str).unwrap_or("");
    match parse(kind, action.get("spec").unwrap_or(&Value::Null))? {
        Action::Retry(_) => Err("`onRetryFailure` cannot be Retry again".to_owned()),
        other => Ok(other),
    }
}

fn whole_number(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Reads `1h 30m`, `10s`, `2d`: numbers with the units `w d h m s`, added up.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut total: u64 = 0;
    let mut parts = 0;
    for part in text.split_whitespace() {
        let unit = part.chars().next_back()?;
        let seconds: u64 = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        let number: u64 = part.strip_suffix(unit)?.parse().ok()?;
        total = total.checked_add(number.checked_mul(seconds)?)?;
        parts += 1;
    }
    (parts > 0).then(|| Duration::from_secs(total))
}
