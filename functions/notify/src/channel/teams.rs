//! `MsTeams`: a workflow that takes webhooks posts an adaptive card (Microsoft's documentation, *Create incoming
//! webhooks with Workflows*). Texts are in blocks that know no Markdown, so no name of a user can be a link.

use serde_json::{Value, json};
use slipway_engine::error::HandlerError;

use super::{Payload, Post};
use crate::custom::Custom;
use crate::message::{Message, Severity};
use crate::rule::Rule;

pub(super) async fn post(
    rule: &mut Rule<'_>,
    receiver: usize,
    message: &Message,
) -> Result<Post, HandlerError> {
    let color = match message.severity {
        Severity::Info => "accent",
        Severity::Success => "good",
        Severity::Warning => "warning",
        Severity::Error => "attention",
    };
    let custom = message.custom.as_ref();
    if let Some(body) = custom.and_then(Custom::object) {
        return Ok(Post {
            url: rule.address("msTeamKeys", receiver).await?,
            headers: Vec::new(),
            body: Payload::Json(body),
        });
    }
    let headline = json!({
        "type": "TextRun", "text": message.headline,
        "weight": "bolder", "size": "medium", "color": color,
    });
    let mut body = vec![block(vec![headline])];
    let facts = match custom {
        Some(custom) => {
            body.push(block(vec![json!({"type": "TextRun", "text": custom.text})]));
            [].as_slice()
        }
        None => message.facts.as_slice(),
    };
    for (name, value) in facts {
        let name = json!({"type": "TextRun", "text": format!("{name}: "), "weight": "bolder"});
        body.push(block(vec![name, json!({"type": "TextRun", "text": value})]));
    }
    let link = message.link.iter();
    let actions: Vec<Value> = link
        .map(|link| json!({"type": "Action.OpenUrl", "title": "Details", "url": link}))
        .collect();
    Ok(Post {
        url: rule.address("msTeamKeys", receiver).await?,
        headers: Vec::new(),
        body: Payload::Json(json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "fallbackText": message.headline,
                    "body": body,
                    "actions": actions,
                },
            }],
        })),
    })
}

fn block(runs: Vec<Value>) -> Value {
    json!({"type": "RichTextBlock", "inlines": runs})
}
