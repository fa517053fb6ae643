//! `Datadog`: an event of its Events API v1, at the URL that the rule names (`…/api/v1/events`).

use serde_json::json;
use slipway_engine::error::HandlerError;

use super::{Payload, Post};
use crate::message::{Message, Severity};
use crate::rule::Rule;

pub(super) async fn post(rule: &mut Rule<'_>, message: &Message) -> Result<Post, HandlerError> {
    let alert = match message.severity {
        Severity::Info => "info",
        Severity::Success => "success",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let mut headers = rule.headers().await?;
    headers.retain(|(name, _)| !name.trim().eq_ignore_ascii_case("dd-api-key"));
    headers.push(("dd-api-key".to_owned(), rule.address("apiKey", 0).await?));
    Ok(Post {
        url: rule.address("url", 0).await?,
        headers,
        body: Payload::Json(json!({
            "title": message.headline,
            "text": message.text(),
            "alert_type": alert,
            "aggregation_key": message.run,
            "date_happened": message.at.as_second(),
            "tags": ["source:slipway"],
        })),
    })
}
