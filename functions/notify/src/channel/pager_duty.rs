//! `PagerDuty`: an event of its Events API v2. The key of the message makes a repeated one no second alert.

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use slipway_engine::error::HandlerError;

use super::{Payload, Post};
use crate::message::{Message, Severity};
use crate::rule::Rule;

/// Longest `summary`, in characters (*PD-CEF*).
const LONGEST_SUMMARY: usize = 1_024;

pub(super) async fn post(
    rule: &mut Rule<'_>,
    url: &str,
    message: &Message,
) -> Result<Post, HandlerError> {
    let key = rule.address("integrationKey", 0).await?;
    let severity = match message.severity {
        Severity::Info | Severity::Success => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let details: Value = match &message.custom {
        Some(custom) => custom
            .object()
            .unwrap_or_else(|| json!({"Message": custom.text})),
        None => {
            let facts = message.facts.iter();
            let details = facts.map(|(name, value)| (name.to_string(), value.clone().into()));
            Value::Object(details.collect())
        }
    };
    let links = message.link.iter();
    let links: Vec<Value> = links
        .map(|link| json!({"href": link, "text": "Details"}))
        .collect();
    let summary: String = message.headline.chars().take(LONGEST_SUMMARY).collect();
    Ok(Post {
        url: url.to_owned().into(),
        headers: Vec::new(),
        body: Payload::Json(json!({
            "routing_key": key.expose_secret(),
            "event_action": "trigger",
            "dedup_key": message.id,
            "client": "Slipway",
            "links": links,
            "payload": {
                "summary": summary,
                "source": message.run,
                "severity": severity,
                "timestamp": message.at.to_string(),
                "custom_details": details,
            },
        })),
    })
}
