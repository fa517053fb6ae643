//! A client of a ticket system: JSON over HTTP, with the login of a connector. It shares the guards of the
//! `Http` step: link-local addresses are refused, time and size are bounded, and no header follows a redirect
//! to another place.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::ConnectorPlan;

use super::UNIT;
use super::stop::Stop;
use super::text::{masked, words};
use crate::context::StepContext;
use crate::http::address;
use crate::http::request::{Answer, Request};
use crate::http::{RETRY_AFTER, retry_after};
use crate::secrets::Secrets;
use crate::variable::selectors;

/// Time for all calls of one look or change, the login among them: the function that makes them has less than two
/// minutes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Most of an answer that is read, in bytes.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// A ticket system behind a connector. Holds a login, and so has no `Debug`.
pub(crate) struct Server {
    /// `Jira` or `ServiceNow`.
    system: &'static str,
    /// The connector's reference, for people.
    connector: String,
    base: Url,
    authorization: SecretString,
    until: Timestamp,
}

/// One call.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    /// Path below the server's address; each part is encoded.
    pub(crate) path: &'a [&'a str],
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// The body; its texts may hold secrets.
    pub(crate) body: Option<Value>,
}

impl<'a> Call<'a> {
    /// A call that reads.
    pub(crate) fn get(path: &'a [&'a str], query: &'a [(&'a str, &'a str)]) -> Self {
        Self {
            method: Method::GET,
            path,
            query,
            body: None,
        }
    }

    /// A call that writes.
    pub(crate) fn with(method: Method, path: &'a [&'a str], body: Value) -> Self {
        Self {
            method,
            path,
            query: &[],
            body: Some(body),
        }
    }
}

impl Server {
    /// The server of the step's connector, whose spec names its address in `url_field`. Secrets are looked up
    /// now and not before.
    ///
    /// # Errors
    /// When the connector says nothing usable, a secret cannot be read, or no token is to be had.
    pub(crate) async fn of(
        cx: &mut StepContext<'_>,
        system: &'static str,
        url_field: &str,
    ) -> Result<Self, Stop> {
        if !selectors(&cx.spec()["delegateSelectors"]).is_empty() && !cx.unit_is_open(UNIT) {
            let told = "delegateSelectors: the server is called by Slipway and not by a delegate";
            cx.warn(UNIT, told);
        }
        cx.unit_started(UNIT);
        let Some(connector) = &cx.step().connector else {
            let step = &cx.step().identifier;
            return Err(Stop::over(format!(
                "The plan holds no {system} connector for step {step}: it was made by an older version. Start the run again."
            )));
        };
        let spec = cx.evaluate(&connector.spec)?;
        let now = cx.clock().now();
        let time = PATIENCE.min(cx.time_left());
        Self::open(
            system,
            url_field,
            (connector, &spec),
            (now, time),
            cx.secrets(),
        )
        .await
    }

    /// The server of a connector, whose spec with expressions resolved comes with it. Its login has so much time from
    /// now on, and all calls together have [`PATIENCE`].
    ///
    /// # Errors
    /// When the connector says nothing usable, a secret cannot be read, or no token is to be had.
    pub(super) async fn open(
        system: &'static str,
        url_field: &str,
        (connector, spec): (&ConnectorPlan, &Value),
        (now, time): (Timestamp, Duration),
        secrets: &mut Secrets<'_>,
    ) -> Result<Self, Stop> {
        let until = now.checked_add(PATIENCE).unwrap_or(Timestamp::MAX);
        let refused = |why: String| refused(connector, &why);
        let url =
            text(&spec[url_field]).ok_or_else(|| refused(format!("it has no {url_field}")))?;
        let url = secrets.reveal_text(&url).await?;
        let base = address::url(url.expose_secret())
            .map_err(|why| refused(format!("{url_field}: {why}")))?;
        let authorization = super::login::authorization(connector, spec, time, secrets).await?;
        secrets.hide(authorization.expose_secret());
        Ok(Self {
            system,
            connector: connector.reference.clone(),
            base,
            authorization,
            until,
        })
    }

    /// An address below the server's, for people.
    pub(crate) fn link(&self, path: &[&str], query: &[(&str, &str)]) -> String {
        self.url(path, query)
            .map_or_else(|_| String::new(), |url| url.to_string())
    }

    /// Calls the server and reads its answer; secrets in it are masked.
    pub(crate) async fn call(
        &self,
        cx: &mut StepContext<'_>,
        call: Call<'_>,
    ) -> Result<Value, Stop> {
        let (now, time) = (cx.clock().now(), cx.time_left());
        self.ask(call, (now, time), cx.secrets()).await
    }

    /// The same, within so much time from now on.
    pub(super) async fn ask(
        &self,
        call: Call<'_>,
        (now, time): (Timestamp, Duration),
        secrets: &mut Secrets<'_>,
    ) -> Result<Value, Stop> {
        let url = self.url(call.path, call.query)?;
        let mut headers = vec![
            ("authorization".to_owned(), self.authorization.clone()),
            ("accept".to_owned(), SecretString::from("application/json")),
        ];
        let body = match call.body {
            Some(body) => {
                headers.push((
                    "content-type".to_owned(),
                    SecretString::from("application/json"),
                ));
                Some(SecretString::from(secrets.reveal(body).await?.to_string()))
            }
            None => None,
        };
        let what = format!("{} /{}", call.method, call.path.join("/"));
        let request = Request::new(call.method, &url.to_string().into(), headers, body)
            .map_err(|why| self.over(&what, &why))?;
        let left = Duration::try_from(self.until.duration_since(now));
        let left = left.unwrap_or_default().min(time);
        if left.is_zero() {
            let seconds = PATIENCE.as_secs();
            let message = format!(
                "{} answers too slowly: {what} was not reached in {seconds} s.",
                self.system
            );
            return Err(Stop::Later {
                failure: failed(ErrorType::Timeout, message),
                after: None,
                untouched: true,
            });
        }
        let answer = request.keeping(MOST_BYTES).send(left).await;
        let answer = answer.map_err(|failure| Stop::Later {
            failure,
            after: None,
            untouched: false,
        })?;
        let read = self.read(&what, answer, now);
        read.map(|value| masked(value, secrets))
    }

    fn url(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Url, Stop> {
        let mut url = self.base.clone();
        url.set_query(None);
        url.set_fragment(None);
        match url.path_segments_mut() {
            Ok(mut segments) => drop(segments.pop_if_empty().extend(path)),
            Err(()) => return Err(Stop::over("The address of the server has no path.")),
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    fn read(&self, what: &str, answer: Answer, now: Timestamp) -> Result<Value, Stop> {
        let Answer {
            code,
            body,
            truncated,
            retry_after: asked,
        } = answer;
        match code {
            200..=299 if truncated => {
                let limit = MOST_BYTES / (1024 * 1024);
                Err(self.over(what, &format!("the answer is longer than {limit} MiB")))
            }
            200..=299 if body.trim().is_empty() => Ok(Value::Null),
            200..=299 => serde_json::from_str(&body).map_err(|_| {
                let message = format!(
                    "{} could not be used: {what}: HTTP {code} with what is no JSON; is the address in connector {} that of {}?",
                    self.system, self.connector, self.system
                );
                Stop::Odd(failed(ErrorType::Unknown, message))
            }),
            300..=399 => Err(Stop::Odd(self.failure(
                ErrorType::Unknown,
                what,
                code,
                &body,
            ))),
            408 | 429 | 500..=599 => Err(Stop::Later {
                failure: self.failure(ErrorType::Connectivity, what, code, &body),
                after: asked.map(|asked| later(&asked, now)),
                untouched: code == 429,
            }),
            401 => Err(Stop::Over(self.failure(
                ErrorType::Authentication,
                what,
                code,
                &body,
            ))),
            403 => Err(Stop::Over(self.failure(
                ErrorType::Authorization,
                what,
                code,
                &body,
            ))),
            404 => Err(Stop::Missing(self.failure(
                ErrorType::Unknown,
                what,
                code,
                &body,
            ))),
            _ => Err(Stop::Over(self.failure(
                ErrorType::Unknown,
                what,
                code,
                &body,
            ))),
        }
    }

    fn over(&self, what: &str, why: &str) -> Stop {
        Stop::over(format!("{} could not be used: {what}: {why}.", self.system))
    }

    fn failure(&self, error: ErrorType, what: &str, code: u16, body: &str) -> Failure {
        let told = told(body);
        let told = if told.is_empty() {
            String::new()
        } else {
            format!(": {told}")
        };
        let advice = match code {
            401 => format!(" Check the login of connector {}.", self.connector),
            403 => format!(" The user of connector {} may not do this.", self.connector),
            300..=399 => format!(
                " The address of connector {} leads elsewhere; give the one that it leads to.",
                self.connector
            ),
            _ => String::new(),
        };
        failed(
            error,
            format!(
                "{} answered {what} with HTTP {code}{told}.{advice}",
                self.system
            ),
        )
    }
}

fn later(asked: &str, now: Timestamp) -> Duration {
    retry_after(asked, now).clamp(RETRY_AFTER.0, RETRY_AFTER.1)
}

/// What a server says went wrong. Jira: `errorMessages` and `errors`; ServiceNow: `error.message` and `.detail`.
fn told(body: &str) -> String {
    let Ok(said) = serde_json::from_str::<Value>(body) else {
        return String::new();
    };
    let mut parts: Vec<String> = Vec::new();
    let messages = said["errorMessages"].as_array().into_iter().flatten();
    parts.extend(messages.filter_map(|message| Some(message.as_str()?.to_owned())));
    let errors = said["errors"].as_object().into_iter().flatten();
    parts.extend(errors.filter_map(|(field, why)| Some(format!("{field}: {}", why.as_str()?))));
    for name in ["message", "detail"] {
        let own = said["error"][name].as_str().or(said[name].as_str());
        parts.extend(own.map(str::to_owned));
    }
    words(parts.join("; ").trim_end_matches('.'))
}

pub(super) fn refused(connector: &ConnectorPlan, why: &str) -> Failure {
    let message = format!("Connector {} cannot be used: {why}.", connector.reference);
    failed(ErrorType::Unknown, message)
}

fn failed(error: ErrorType, message: String) -> Failure {
    Failure {
        error,
        message,
        left_behind: None,
    }
}

/// A text that says something.
pub(super) fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
