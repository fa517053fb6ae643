//! Answers: XML becomes documents.

use std::fmt;

use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Map, Value};

/// Deepest nesting of an answer.
const DEEPEST: usize = 64;
/// Most nodes of an answer.
const MOST_NODES: u32 = 2_000_000;

/// An answer that is no XML.
#[derive(Debug)]
pub(super) struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer is not XML: {}", self.0)
    }
}

impl std::error::Error for Unreadable {}

/// The members of an answer: what is below its `…Result` element, or below its root where there is none (EC2).
pub(super) fn read(body: &[u8]) -> Result<Value, Unreadable> {
    let text = std::str::from_utf8(body).map_err(|error| Unreadable(error.to_string()))?;
    let options = ParsingOptions {
        nodes_limit: MOST_NODES,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| Unreadable(error.to_string()))?;
    let root = document.root_element();
    let mut below = root.children().filter(Node::is_element);
    let result = below.find(|node| node.tag_name().name().ends_with("Result"));
    match value(result.unwrap_or(root), 0) {
        Value::Null => Ok(Value::Object(Map::new())),
        members => Ok(members),
    }
}

/// Elements of `member` or `item` are lists, others with elements in them mappings, and the rest texts. Something
/// empty may be an empty text, list or mapping: it is `Null`.
fn value(node: Node<'_, '_>, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    let mut below = node.children().filter(Node::is_element).peekable();
    let Some(first) = below.peek() else {
        let text = node.text().unwrap_or_default();
        return match text.is_empty() {
            true => Value::Null,
            false => Value::from(text),
        };
    };
    if ["member", "item"].contains(&first.tag_name().name()) {
        return below.map(|item| value(item, depth + 1)).collect();
    }
    let mut members = Map::new();
    for member in below {
        let name = member.tag_name().name().to_owned();
        members.insert(name, value(member, depth + 1));
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_mappings_and_texts() {
        for (xml, expected) in [
            (
                "<R xmlns=\"http://a\"><DoResult><L><member><A>1</A></member><member><A/></member></L>\
                 <N>&lt;&amp;</N></DoResult><ResponseMetadata/></R>",
                json!({"L": [{"A": "1"}, {"A": null}], "N": "<&"}),
            ),
            (
                "<R><requestId>r</requestId><imagesSet><item><imageId>ami-1</imageId></item></imagesSet></R>",
                json!({"requestId": "r", "imagesSet": [{"imageId": "ami-1"}]}),
            ),
            ("<R><DoResult/></R>", json!({})),
        ] {
            assert_eq!(read(xml.as_bytes()).expect("XML"), expected, "{xml}");
        }
        for bad in [
            &b"<R>"[..],
            b"\xff",
            b"",
            b"<!DOCTYPE a [<!ENTITY b \"c\">]><R>&b;</R>",
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
        let deep = "<a>".repeat(1_000) + &"</a>".repeat(1_000);
        assert!(read(deep.as_bytes()).is_ok());
    }
}
