//! Messages that a notification template words (developer.harness.io, *Custom Notification templates for Pipeline
//! Notifications*).

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_expr::{Context, Limits, ParseError, Piece, SecretText, evaluate_json, parse};
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
    /// Fills a template in. What cannot be resolved is an empty text, as the documentation says; in JSON, where no string
    /// stands around it, `null`. In JSON and HTML a value stays a value, whatever it holds.
    ///
    /// # Errors
    /// Why nobody could read what the template says.
    pub(crate) fn of(message: &MessagePlan, cx: &dyn Context) -> Result<Self, String> {
        let text = filled(&message.kind, &message.content, cx)
            .map_err(|error| format!("an expression in its template cannot be read: {error}"))?;
        if message.kind == "JSON" {
            serde_json::from_str::<IgnoredAny>(&text).map_err(|error| {
                format!("its template is no JSON when its expressions are filled in: {error}")
            })?;
        }
        Ok(Self {
            kind: message.kind.clone(),
            text,
        })
    }

    /// The text as JSON, where it is an object of the type JSON.
    pub(crate) fn object(&self) -> Option<Value> {
        let value: Value = serde_json::from_str(&self.text).ok()?;
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

fn filled(kind: &str, content: &str, cx: &dyn Context) -> Result<String, ParseError> {
    let template = parse(content)?;
    let mut out = String::with_capacity(content.len());
    let mut rest = content;
    let mut quoted = Quoted::default();
    for expression in template.expressions() {
        let Some((before, after)) = rest.split_once(expression) else {
            continue;
        };
        out.push_str(before);
        let value = value(expression, cx);
        // Who only may run the pipeline says what its inputs are, and must not say what else is sent, or to whom.
        match kind {
            "JSON" if quoted.after(before) => out.push_str(&inside_of_string(&value)),
            "JSON" => out.push_str(&one_value(&value)),
            "HTML" => out.push_str(&in_html(&value)),
            _ => out.push_str(&value),
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Whether a place of a JSON text is inside of a string.
#[derive(Default)]
struct Quoted {
    inside: bool,
    escaped: bool,
}

impl Quoted {
    /// Goes on over `text`.
    fn after(&mut self, text: &str) -> bool {
        for char in text.chars() {
            match char {
                _ if self.escaped => self.escaped = false,
                '\\' if self.inside => self.escaped = true,
                '"' => self.inside = !self.inside,
                _ => {}
            }
        }
        self.inside
    }
}

/// A text as a JSON string has it between its quotes.
fn inside_of_string(text: &str) -> String {
    let mut string = Value::from(text).to_string();
    string.pop();
    string.drain(..string.len().min(1));
    string
}

/// A text as one JSON value: what it says where that is one, and else a string.
fn one_value(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => value.to_string(),
        Err(_) if text.is_empty() => Value::Null.to_string(),
        Err(_) => Value::from(text).to_string(),
    }
}

/// A text as HTML shows it, in elements and in attributes.
fn in_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

fn value(expression: &str, cx: &dyn Context) -> String {
    let written = Value::from(expression);
    let text = match evaluate_json(&written, cx, &Limits::default()) {
        Ok((Value::String(text), _)) => text,
        Ok((Value::Null, _)) | Err(_) => String::new(),
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
                ["said"] => Some("a \"b\",\n<c> & 'd'".into()),
                ["map"] => Some("{\"e\":1},\"f\":2".into()),
                _ => None,
            }
        }
    }

    fn read(kind: &str, content: &str) -> Result<Custom, String> {
        let message = MessagePlan {
            kind: kind.to_owned(),
            content: content.to_owned(),
        };
        Custom::of(&message, &Names)
    }

    fn of(kind: &str, content: &str) -> Custom {
        read(kind, content).unwrap_or_else(|fault| panic!("{content}: {fault}"))
    }

    #[test]
    fn what_is_unknown_is_empty_and_secrets_are_hidden() {
        let table = [
            ("<+pipeline.name> #<+pipeline.sequenceId>", "Release #7"),
            ("<+stage.name>|<+pipeline.name>|", "|Release|"),
            ("key <+secrets.getValue(\"x\")>", "key ******"),
            ("nothing", "nothing"),
        ];
        for (content, expected) in table {
            assert_eq!(of("STRING", content).text, expected, "{content}");
        }
    }

    #[test]
    fn a_value_stays_the_value_that_it_is_in_the_template() {
        let table = [
            (
                "JSON",
                r#"{"text": "<+pipeline.name>: <+said>"}"#,
                r#"{"text": "Release: a \"b\",\n<c> & 'd'"}"#,
            ),
            (
                "JSON",
                r#"{"n": <+pipeline.sequenceId>, "m": <+map>, "none": <+none>}"#,
                r#"{"n": 7, "m": "{\"e\":1},\"f\":2", "none": null}"#,
            ),
            (
                "HTML",
                "<b title='<+said>'>",
                "<b title='a &quot;b&quot;,\n&lt;c&gt; &amp; &#39;d&#39;'>",
            ),
            ("STRING", "<+said>", "a \"b\",\n<c> & 'd'"),
        ];
        for (kind, content, expected) in table {
            assert_eq!(of(kind, content).text, expected, "{content}");
        }
        let json = of("JSON", r#"{"\\": "<+said>", "map": <+map>}"#);
        let json = json.object().expect("JSON");
        assert_eq!(json["\\"], "a \"b\",\n<c> & 'd'");
        assert_eq!(json["map"], "{\"e\":1},\"f\":2");
    }

    #[test]
    fn only_objects_of_json_are_sent_as_they_are() {
        assert!(
            of("JSON", "{\"a\": \"<+pipeline.name>\"}")
                .object()
                .is_some()
        );
        assert_eq!(of("JSON", "[1]").object(), None);
        assert_eq!(of("STRING", "{}").object(), None);
        assert_eq!(of("JSON", "{\"a\": <+said>}").kind, "JSON");
    }

    #[test]
    fn what_nobody_could_read_says_why_without_its_values() {
        let table = [
            ("STRING", "not closed: <+pipeline.name", "cannot be read"),
            ("JSON", "{", "no JSON"),
            ("JSON", "{\"a\": \"<+said>\"", "no JSON"),
        ];
        for (kind, content, why) in table {
            let fault = read(kind, content).expect_err("no message");
            assert!(fault.contains(why) && !fault.contains("'d'"), "{fault}");
        }
    }
}
