//! The methods of rules: one form of the message each, sent over HTTP or as a mail.

mod datadog;
mod pager_duty;
mod slack;
mod teams;
mod webhook;

use std::time::Duration;

use reqwest::Method;
use secrecy::SecretString;
use serde_json::Value;
use slipway_engine::error::HandlerError;
use slipway_steps::http::request::Request;

use crate::message::Message;
use crate::rule::{Rule, later, refused};
use crate::{Deps, mail};

/// Longest that a receiver may take for its answer. Below the limit of the function.
const PATIENCE: Duration = Duration::from_secs(20);

/// Most of an answer that is repeated, in characters.
const LONGEST_ANSWER: usize = 200;

/// A message as one request. Holds secrets, and so has no `Debug`.
struct Post {
    url: SecretString,
    headers: Vec<(String, SecretString)>,
    body: Payload,
}

/// What a request carries.
enum Payload {
    Json(Value),
    /// A text, and its media type where the rule's headers name none.
    Text(String, &'static str),
}

/// Sends a message as the rule says.
pub(crate) async fn send(
    deps: &Deps,
    rule: &mut Rule<'_>,
    receiver: usize,
    message: &Message,
) -> Result<(), HandlerError> {
    let post = match rule.method() {
        "Slack" => slack::post(rule, message).await?,
        "MsTeams" => teams::post(rule, receiver, message).await?,
        "Webhook" => webhook::post(rule, message).await?,
        "PagerDuty" => pager_duty::post(rule, &deps.pager_duty, message).await?,
        "Datadog" => datadog::post(rule, message).await?,
        "Email" => return mail::send(deps, rule, message).await,
        other => return Err(refused(format!("the method `{other}` is unknown"))),
    };
    post.send().await
}

impl Post {
    async fn send(self) -> Result<(), HandlerError> {
        let mut headers = self.headers;
        let typed = headers
            .iter()
            .any(|(name, _)| name.trim().eq_ignore_ascii_case("content-type"));
        let (body, media_type) = match self.body {
            Payload::Json(body) => (body.to_string(), "application/json"),
            Payload::Text(text, media_type) => (text, media_type),
        };
        if !typed {
            headers.push(("content-type".to_owned(), media_type.into()));
        }
        let body = SecretString::from(body);
        let request =
            Request::new(Method::POST, &self.url, headers, Some(body)).map_err(refused)?;
        let sent = request.send(PATIENCE).await;
        let answer = sent.map_err(|failure| later(failure.message))?;
        if (200..300).contains(&answer.code) {
            return Ok(());
        }
        let said: String = answer.body.chars().take(LONGEST_ANSWER).collect();
        let message = format!(
            "the receiver answered HTTP {}: {}",
            answer.code,
            said.trim()
        );
        match answer.code {
            408 | 425 | 429 | 500.. => Err(later(message)),
            _ => Err(refused(message)),
        }
    }
}
