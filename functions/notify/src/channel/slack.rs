//! `Slack`: an incoming webhook (Slack documentation, *Sending messages using incoming webhooks*).

use serde_json::json;
use slipway_engine::error::HandlerError;

use super::{Payload, Post};
use crate::message::{Message, Severity};
use crate::rule::Rule;

pub(super) async fn post(rule: &mut Rule<'_>, message: &Message) -> Result<Post, HandlerError> {
    if let Some(custom) = &message.custom {
        let body = custom.object();
        return Ok(Post {
            url: rule.address("webhookUrl", 0).await?,
            headers: Vec::new(),
            body: Payload::Json(body.unwrap_or_else(|| json!({"text": custom.text}))),
        });
    }
    let color = match message.severity {
        Severity::Info => "#3a87d1",
        Severity::Success => "#2eb67d",
        Severity::Warning => "#ecb22e",
        Severity::Error => "#e01e5a",
    };
    let headline = escaped(&message.headline);
    let mut lines: Vec<String> = message
        .facts
        .iter()
        .map(|(name, value)| format!("*{name}:* {}", escaped(value)))
        .collect();
    lines.extend(
        message
            .link
            .as_ref()
            .map(|link| format!("<{}|Details>", escaped(link))),
    );
    Ok(Post {
        url: rule.address("webhookUrl", 0).await?,
        headers: Vec::new(),
        body: Payload::Json(json!({
            "text": headline,
            "attachments": [{
                "color": color,
                "fallback": headline,
                "text": lines.join("\n"),
                "mrkdwn_in": ["text"],
                "ts": message.at.as_second(),
            }],
        })),
    })
}

/// The three characters that begin a mention, a link or an entity (*Formatting text*): a name of a user cannot call
/// the whole channel.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    #[test]
    fn nobody_calls_a_channel_by_a_name() {
        assert_eq!(
            super::escaped("<!channel> & co"),
            "&lt;!channel&gt; &amp; co"
        );
    }
}
