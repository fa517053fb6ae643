//! `MsTeams`: a workflow that takes webhooks posts an adaptive card (Microsoft's documentation, *Create incoming
//! webhooks with Workflows*). Texts are in blocks that know no Markdown, so no name of a user can be a link.

use serde_json::{Value, json};
use slipway_engine::error::HandlerError;

use super::Post;
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
    let headline = json!({
        "type": "TextRun", "text": message.headline,
        "weight": "bolder", "size": "medium", "color": color,
    });
    let mut body = vec![block(vec![headline])];
    for (name, value) in &message.facts {
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
        body: json!({
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
        }),
    })
}

fn block(runs: Vec<Value>) -> Value {
    json!({"type": "RichTextBlock", "inlines": runs})
}
