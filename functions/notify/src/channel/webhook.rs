//! `Webhook`: Harness's `eventData` as JSON.

use serde_json::json;
use slipway_engine::error::HandlerError;

use super::{Payload, Post};
use crate::message::Message;
use crate::rule::Rule;

/// Headers that describe the body or the connection, which is not the rule's.
const OURS: &[&str] = &[
    "connection",
    "content-encoding",
    "content-length",
    "host",
    "transfer-encoding",
];

/// Tells a receiver that it got the same message before.
const ID: &str = "x-slipway-notification-id";

pub(super) async fn post(rule: &mut Rule<'_>, message: &Message) -> Result<Post, HandlerError> {
    let mut headers = rule.headers().await?;
    headers.retain(|(name, _)| {
        let mut ours = OURS.iter();
        !ours.any(|known| known.eq_ignore_ascii_case(name.trim()))
    });
    headers.push((ID.to_owned(), message.id.clone().into()));
    let body = match &message.custom {
        Some(custom) => Payload::Text(custom.text.clone(), custom.media_type()),
        None => Payload::Json(json!({"eventData": message.data})),
    };
    Ok(Post {
        url: rule.address("webhookUrl", 0).await?,
        headers,
        body,
    })
}
