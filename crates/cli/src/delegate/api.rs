//! The service's REST routes for delegates.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use slipway_clock::Clock;
use slipway_steps::delegate::{ClaimedTask, NAME_HEADER, SELECTORS_HEADER};
use slipway_steps::shell::task::Outcome;
use slipway_store::record::LogLine;

use super::DelegateConfig;
use super::error::{DelegateError, chain};

/// Limit of one request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// First and longest pause between two attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// Attempts to send a batch of log lines before it is given up: a log is not worth holding a task.
const LOG_ATTEMPTS: u32 = 8;

pub(super) struct TaskApi {
    http: reqwest::Client,
    base: String,
    token: SecretString,
    name: String,
    selectors: String,
    clock: Clock,
}

/// What came of a claim.
pub(super) enum Claimed {
    /// Do it.
    Work(Box<ClaimedTask>),
    /// Nothing is to be done any more: it has a result, was cancelled, or is gone.
    Over,
    /// It asks for selectors that this delegate does not carry.
    Unsuitable,
}

impl TaskApi {
    pub(super) fn new(config: &DelegateConfig, http: reqwest::Client, clock: Clock) -> Self {
        Self {
            http,
            base: config.base_url.trim_end_matches('/').to_owned(),
            token: config.token.clone(),
            name: config.name.clone(),
            selectors: config.selectors.join(","),
            clock,
        }
    }

    fn request(&self, method: Method, task: &str, rest: &str) -> RequestBuilder {
        let task: String = task
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                    char::from(byte).to_string()
                }
                other => format!("%{other:02X}"),
            })
            .collect();
        let url = format!("{}/slipway/api/delegate/tasks/{task}{rest}", self.base);
        self.http
            .request(method, url)
            .header("x-api-key", self.token.expose_secret())
            .header(NAME_HEADER, &self.name)
            .header(SELECTORS_HEADER, &self.selectors)
            .timeout(TIMEOUT)
    }

    /// Claims a task. Tries until the service answers; the caller stops it when the task is lost.
    pub(super) async fn claim(&self, task: &str) -> Claimed {
        let mut retry = Retry::new(self, task, u32::MAX);
        loop {
            match self.claim_once(task).await {
                Ok(claimed) => return claimed,
                Err(error) => retry.pause(&error).await,
            };
        }
    }

    async fn claim_once(&self, task: &str) -> Result<Claimed, DelegateError> {
        let doing = "claim a task";
        let response = send(doing, self.request(Method::GET, task, "")).await?;
        if is_over(response.status()) {
            return Ok(Claimed::Over);
        }
        if response.status() == StatusCode::PRECONDITION_FAILED {
            return Ok(Claimed::Unsuitable);
        }
        let task = good(doing, response)?.json().await;
        task.map(|task| Claimed::Work(Box::new(task)))
            .map_err(|source| DelegateError::Service { doing, source })
    }

    /// Posts the result. Tries until the service has it, or has another.
    pub(super) async fn result(&self, task: &str, outcome: &Outcome) {
        let doing = "post the result of a task";
        let mut retry = Retry::new(self, task, u32::MAX);
        loop {
            let request = self.request(Method::POST, task, "/result").json(outcome);
            let posted = match send(doing, request).await {
                Ok(response) if is_over(response.status()) => return,
                Ok(response) => good(doing, response).map(|_| ()),
                Err(error) => Err(error),
            };
            match posted {
                Ok(()) => return,
                Err(error) => retry.pause(&error).await,
            };
        }
    }

    /// Sends log lines, and gives up after a while.
    pub(super) async fn send_lines(&self, task: &str, unit: &str, lines: &[LogLine]) {
        let doing = "send log lines";
        let body = json!({"unit": unit, "lines": lines});
        let mut retry = Retry::new(self, task, LOG_ATTEMPTS);
        loop {
            let request = self.request(Method::POST, task, "/logs").json(&body);
            let sent = match send(doing, request).await {
                Ok(response) if is_over(response.status()) => return,
                Ok(response) => good(doing, response).map(|_| ()),
                Err(error) => Err(error),
            };
            match sent {
                Ok(()) => return,
                Err(error) => {
                    if !retry.pause(&error).await {
                        return;
                    }
                }
            }
        }
    }

    /// Whether nobody needs the task any more; not if that cannot be known.
    pub(super) async fn is_cancelled(&self, task: &str) -> bool {
        let doing = "ask whether a task was cancelled";
        let Ok(response) = send(doing, self.request(Method::GET, task, "/cancelled")).await else {
            return false;
        };
        let Ok(answer) = response.json::<serde_json::Value>().await else {
            return false;
        };
        answer
            .get("cancelled")
            .and_then(serde_json::Value::as_bool)
            .unwrap_or(false)
    }
}

/// Growing pauses between attempts.
struct Retry<'a> {
    clock: &'a Clock,
    task: &'a str,
    attempts_left: u32,
    pause: Duration,
}

impl<'a> Retry<'a> {
    fn new(api: &'a TaskApi, task: &'a str, attempts: u32) -> Self {
        Self {
            clock: &api.clock,
            task,
            attempts_left: attempts,
            pause: PAUSES.0,
        }
    }

    /// Notes the error and waits; answers whether another attempt may be made.
    async fn pause(&mut self, error: &DelegateError) -> bool {
        tracing::warn!(task = self.task, error = %chain(error), "the service is asked again");
        self.attempts_left = self.attempts_left.saturating_sub(1);
        if self.attempts_left > 0 {
            self.clock.sleep(self.pause).await;
            self.pause = (self.pause * 2).min(PAUSES.1);
        }
        self.attempts_left > 0
    }
}

/// Whether the service says that the task needs nothing more: unknown, ended, or cancelled.
fn is_over(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::GONE
    )
}

async fn send(doing: &'static str, request: RequestBuilder) -> Result<Response, DelegateError> {
    request
        .send()
        .await
        .map_err(|source| DelegateError::Service { doing, source })
}

fn good(doing: &'static str, response: Response) -> Result<Response, DelegateError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    Err(DelegateError::Refused {
        doing,
        status: status.as_u16(),
    })
}
