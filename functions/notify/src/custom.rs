//! Messages that a notification template words (developer.harness.io, *Custom Notification templates for Pipeline
//! Notifications*).

use serde::{Deserialize, Serialize};
use slipway_expr::{Context, Limits, Piece, SecretText, evaluate_json, parse};
use slipway_plan::MessagePlan;

/// What stands for a secret: a message is read by people, and kept by those who deliver it.
const HIDDEN: &str = "******";

/// A message as its template words it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Custom {
    /// `JSON`, `YAML`, `STRING` or `HTML`.
    pub(crate) kind: String,
    /// Its text, with the expressions filled in.
    pub(crate) text: String,
}

impl Custom {
    /// Fills a template in. What cannot be resolved is an empty text, as the documentation says.
    pub(crate) fn of(message: &MessagePlan, cx: &dyn Context) -> Self {
        Self {
            kind: message.kind.clone(),
            text: filled(&message.content, cx),
        }
    }

    /// The text as JSON, where it is an object of the type JSON.
    pub(crate) fn object(&self) -> Option<serde_json::Value> {
        let value: serde_json::Value = serde_json::from_str(&self.text).ok()?;
        (self.kind == "JSON" && value.is_object()).then_some(value)
    }

    /// Its media type.
    pub(crate) fn media_type(&self) -> &'static str {
        match self.kind.as_str() {
            "JSON" => "application/json",
            "YAML" => "application/yaml",
            "HTML" => "text/html; charset=utf-8",
            _ => "text/plain; charset=utf-8",
        }
    }
}

fn filled(content: &str, cx: &dyn Context) -> String {
    let Ok(template) = parse(content) else {
        return content.to_owned();
    };
    let mut out = String::with_capacity(content.len());
    let mut rest = content;
    for expression in template.expressions() {
        let Some((before, after)) = rest.split_once(expression) else {
            continue;
        };
        out.push_str(before);
        out.push_str(&value(expression, cx));
        rest = after;
    }
    out.push_str(rest);
    out
}

fn value(expression: &str, cx: &dyn Context) -> String {
    let written = serde_json::Value::from(expression);
    let text = match evaluate_json(&written, cx, &Limits::default()) {
        Ok((serde_json::Value::String(text), _)) => text,
        Ok((serde_json::Value::Null, _)) | Err(_) => String::new(),
        Ok((other, _)) => other.to_string(),
    };
    let pieces = SecretText::decode(&text);
    let shown = pieces.pieces().iter().map(|piece| match piece {
        Piece::Plain(text) => text.as_str(),
        Piece::Secret(_) => HIDDEN,
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use slipway_expr::{Context, Segment, Value};
    use slipway_plan::MessagePlan;

    use super::Custom;

    struct Names;

    impl Context for Names {
        fn lookup(&self, path: &[Segment]) -> Option<Value> {
            let keys: Vec<&str> = path.iter().map(Segment::key).collect::<Option<_>>()?;
            match keys.as_slice() {
                ["pipeline", "name"] => Some("Release".into()),
                ["pipeline", "sequenceId"] => Some(Value::Int(7)),
                _ => None,
            }
        }
    }

    fn of(kind: &str, content: &str) -> Custom {
        let message = MessagePlan {
            kind: kind.to_owned(),
            content: content.to_owned(),
        };
        Custom::of(&message, &Names)
    }

    #[test]
    fn what_is_unknown_is_empty_and_secrets_are_hidden() {
        let table = [
            ("<+pipeline.name> #<+pipeline.sequenceId>", "Release #7"),
            ("<+stage.name>|<+pipeline.name>|", "|Release|"),
            ("not closed: <+pipeline.name", "not closed: <+pipeline.name"),
            ("key <+secrets.getValue(\"x\")>", "key ******"),
            ("nothing", "nothing"),
        ];
        for (content, expected) in table {
            assert_eq!(of("STRING", content).text, expected, "{content}");
        }
    }

    #[test]
    fn only_objects_of_json_are_sent_as_they_are() {
        assert!(
            of("JSON", "{\"a\": \"<+pipeline.name>\"}")
                .object()
                .is_some()
        );
        assert_eq!(of("JSON", "[1]").object(), None);
        assert_eq!(of("JSON", "{").object(), None);
        assert_eq!(of("STRING", "{}").object(), None);
    }
}
