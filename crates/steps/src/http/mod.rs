//! `Http`: one HTTP request, and what its answer must be. Source: HttpStepInfo in the pipeline schema.
//!
//! The request is sent by the lane function itself. A request that is not idempotent is noted before it is
//! sent and never sent twice: where the note is there and the answer is not, the step fails and says so.

pub mod address;
pub mod request;

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use slipway_expr::secret::SecretText;
use slipway_model::status::{ErrorType, Failure};

use crate::context::StepContext;
use crate::step::{Progress, Step, Undo};
use crate::variable::{Variable, is_expression, read, selectors, wrong};
use request::{Answer, Request};

/// The one command unit.
const UNIT: &str = "Execute";

/// How often an answer "later" (429 or 503 with `Retry-After`) is followed.
const MAX_RETRIES: u32 = 3;

/// Bounds of the wait that an answer may ask for.
pub(crate) const RETRY_AFTER: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(300));

/// The step.
pub struct Http;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    url: String,
    method: String,
    #[serde(default)]
    headers: Option<Vec<Header>>,
    #[serde(default)]
    request_body: Option<String>,
    #[serde(default)]
    assertion: Option<String>,
    #[serde(default)]
    output_variables: Option<Vec<Variable>>,
    #[serde(default)]
    delegate_selectors: Value,
    #[serde(default)]
    certificate: Value,
    #[serde(default)]
    certificate_key: Value,
    /// What the other fields read by `<+spec.inputVariables.NAME>`, and steps after it by its full name.
    #[serde(default, rename = "inputVariables")]
    _input_variables: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

impl Spec {
    /// Fields that Harness has and this version does nothing with, where they say something.
    fn unsupported(&self) -> Vec<String> {
        let fields = [
            (
                "certificate",
                &self.certificate,
                "requests are sent without a certificate of the client",
            ),
            (
                "certificateKey",
                &self.certificate_key,
                "requests are sent without a certificate of the client",
            ),
        ];
        let says_something = |value: &Value| match value {
            Value::Null => false,
            Value::String(text) => !text.trim().is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        let found = fields.iter().filter(|(_, value, _)| says_something(value));
        found
            .map(|(name, _, advice)| {
                format!("{name}: it is not supported by this version yet; {advice}")
            })
            .collect()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    key: String,
    #[serde(default)]
    value: Option<String>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct State {
    /// The request was about to be sent.
    sent: bool,
    /// Answers "later" so far.
    retries: u32,
    /// When to send it again, epoch milliseconds.
    not_before_ms: Option<i64>,
}

#[async_trait]
impl Step for Http {
    fn step_type(&self) -> &'static str {
        "Http"
    }

    fn units(&self) -> &'static [&'static str] {
        &[UNIT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let spec: Spec = match read(spec) {
            Ok(spec) => spec,
            Err(message) => return vec![message],
        };
        let mut faults = spec.unsupported();
        if !is_expression(&spec.method) && request::method(&spec.method).is_none() {
            faults.push(format!("method: `{}` is unknown", spec.method));
        }
        if !is_expression(&spec.url) {
            faults.extend(
                address::url(&spec.url)
                    .err()
                    .map(|fault| format!("url: {fault}")),
            );
        }
        if let Some(assertion) = spec
            .assertion
            .as_deref()
            .filter(|text| !text.trim().is_empty())
            && let Err(error) = slipway_expr::check_condition(assertion)
        {
            faults.push(format!("assertion: {error}"));
        }
        faults
    }

    fn own_expressions(&self) -> &'static [&'static str] {
        &["assertion", "outputVariables"]
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("what a request changes only its author knows; rollbackSteps may undo it")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let spec: Spec = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        let mut state: State = cx.saved()?;
        if let Some(wait) = state.wait(cx.clock().now()) {
            return Ok(Progress::Again(wait));
        }
        let request = build(&spec, cx).await?;
        cx.unit_started(UNIT);
        if state.sent && !request.is_idempotent() {
            return Err(interrupted(&spec));
        }
        if !selectors(&spec.delegate_selectors).is_empty() {
            cx.warn(
                UNIT,
                "delegateSelectors: the request is sent by Slipway and not by a delegate",
            );
        }
        cx.info(UNIT, format!("{} {}", spec.method, shown(&spec.url)));
        if !request.is_idempotent() {
            state.sent = true;
            cx.save(&state).await?;
        }
        let answer = request.send(cx.time_left()).await?;
        cx.info(UNIT, format!("HTTP {}", answer.code));
        if let Some(wait) = state.later(&request, &answer, cx.clock().now())
            && wait < cx.time_left()
        {
            cx.warn(
                UNIT,
                format!("The server asks to come back in {} s", wait.as_secs()),
            );
            cx.save(&state).await?;
            return Ok(Progress::Again(wait));
        }
        judge(&spec, answer, cx)
    }
}

impl State {
    /// What is left of a wait that the server asked for.
    fn wait(&self, now: Timestamp) -> Option<Duration> {
        let left = self.not_before_ms? - now.as_millisecond();
        u64::try_from(left)
            .ok()
            .filter(|left| *left > 0)
            .map(Duration::from_millis)
    }

    /// How long to wait before the request is sent again, if it may be; noted in the state.
    fn later(&mut self, request: &Request, answer: &Answer, now: Timestamp) -> Option<Duration> {
        let asked = answer.retry_after.as_deref()?;
        let busy = matches!(answer.code, 429 | 503);
        if !busy || !request.is_idempotent() || self.retries == MAX_RETRIES {
            return None;
        }
        let wait = retry_after(asked, now).clamp(RETRY_AFTER.0, RETRY_AFTER.1);
        self.retries += 1;
        let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        self.not_before_ms = Some(now.as_millisecond().saturating_add(wait_ms));
        Some(wait)
    }
}

/// What `Retry-After` asks for: seconds, or a date; nothing understandable is nothing asked.
pub(crate) fn retry_after(asked: &str, now: Timestamp) -> Duration {
    if let Ok(seconds) = asked.trim().parse() {
        return Duration::from_secs(seconds);
    }
    jiff::fmt::rfc2822::parse(asked.trim())
        .ok()
        .and_then(|date| Duration::try_from(date.timestamp().duration_since(now)).ok())
        .unwrap_or_default()
}

async fn build(spec: &Spec, cx: &mut StepContext<'_>) -> Result<Request, Failure> {
    let step = cx.step().identifier.to_string();
    let method = request::method(&spec.method)
        .ok_or_else(|| wrong(&step, &format!("method: `{}` is unknown", spec.method)))?;
    let url = cx.secrets().reveal_text(&spec.url).await?;
    let mut headers = Vec::new();
    for header in spec
        .headers
        .iter()
        .flatten()
        .filter(|header| !header.key.is_empty())
    {
        let value = header.value.as_deref().unwrap_or_default();
        headers.push((header.key.clone(), cx.secrets().reveal_text(value).await?));
    }
    let body = match &spec.request_body {
        Some(body) if !body.is_empty() => Some(cx.secrets().reveal_text(body).await?),
        _ => None,
    };
    Request::new(method, &url, headers, body).map_err(|fault| wrong(&step, &fault))
}

/// A text for people: secrets as the expressions that name them.
fn shown(encoded: &str) -> String {
    SecretText::decode(encoded).to_string()
}

fn interrupted(spec: &Spec) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!(
            "Slipway was interrupted while it sent {} {} and cannot know whether the server got it. It \
             is not sent again; look at the server, then run the step again if it must be.",
            spec.method,
            shown(&spec.url)
        ),
        left_behind: None,
    }
}

/// Outputs and assertion.
fn judge(spec: &Spec, answer: Answer, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
    if answer.truncated {
        let limit = request::BODY_LIMIT / 1024;
        cx.warn(
            UNIT,
            format!("Only the first {limit} KiB of the answer are kept"),
        );
    }
    let body = cx.secrets().mask(&answer.body);
    let names = [
        (
            "httpResponseCode",
            slipway_expr::Value::Int(i64::from(answer.code)),
        ),
        ("httpResponseBody", body.as_str().into()),
        ("httpUrl", SecretText::decode(&spec.url).into()),
        ("httpMethod", spec.method.as_str().into()),
    ];
    let expressions = cx.expressions_with(&names);
    let assertion = spec
        .assertion
        .as_deref()
        .filter(|text| !text.trim().is_empty());
    if let Some(assertion) = assertion
        && !expressions.condition(assertion)?
    {
        cx.fails_with(json!({"output": {
            "httpUrl": spec.url,
            "httpMethod": spec.method,
            "httpResponseCode": answer.code,
            "httpResponseBody": SecretText::plain(body).encode(),
        }}));
        return Err(Failure {
            error: ErrorType::Unknown,
            message: format!(
                "The assertion `{assertion}` does not hold: {} {} answered HTTP {}.",
                spec.method,
                shown(&spec.url),
                answer.code
            ),
            left_behind: None,
        });
    }
    let mut variables = Map::new();
    for variable in spec.output_variables.iter().flatten() {
        variables.insert(
            variable.name.clone(),
            expressions.evaluate(&variable.value)?,
        );
    }
    Ok(Progress::Done(json!({"output": {
        "httpUrl": spec.url,
        "httpMethod": spec.method,
        "httpResponseCode": answer.code,
        "httpResponseBody": SecretText::plain(body).encode(),
        "outputVariables": variables,
    }})))
}

#[cfg(test)]
mod tests;
