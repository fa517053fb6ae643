//! CloudFormation's YAML as JSON: `!Ref x` is `{"Ref": x}`, `!GetAtt x` is `{"Fn::GetAtt": x}`.

use saphyr_parser::{Event, Parser, Tag};
use serde_json::{Map, Value};

/// A node that is being read: its tag, and what it holds so far.
enum Open {
    List(Option<String>, Vec<Value>),
    Object(Option<String>, Map<String, Value>, Option<String>),
}

pub fn read(text: &str) -> Value {
    let mut stack: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text).keep_tags(true) {
        let (event, place) = event.expect("YAML");
        let done = match event {
            Event::Scalar(text, _, _, tag) => tagged(name(tag.as_deref()), Value::from(&*text)),
            Event::SequenceStart(_, tag) => {
                stack.push(Open::List(name(tag.as_deref()), Vec::new()));
                continue;
            }
            Event::MappingStart(_, tag) => {
                stack.push(Open::Object(name(tag.as_deref()), Map::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match stack.pop().expect("an open node") {
                Open::List(tag, items) => tagged(tag, Value::Array(items)),
                Open::Object(tag, map, _) => tagged(tag, Value::Object(map)),
            },
            _ => continue,
        };
        match stack.last_mut() {
            None => return done,
            Some(Open::List(_, items)) => items.push(done),
            Some(Open::Object(_, map, key)) => match key.take() {
                None => *key = Some(done.as_str().expect("a key").to_owned()),
                Some(key) => {
                    let twice = map.insert(key, done);
                    assert!(twice.is_none(), "a key is there twice, near {place:?}");
                }
            },
        }
    }
    panic!("the text holds no document")
}

fn name(tag: Option<&Tag>) -> Option<String> {
    let tag = tag.filter(|tag| tag.handle == "!")?;
    Some(if tag.suffix == "Ref" {
        "Ref".to_owned()
    } else {
        format!("Fn::{}", tag.suffix)
    })
}

fn tagged(tag: Option<String>, value: Value) -> Value {
    match tag {
        Some(tag) => serde_json::json!({ tag: value }),
        None => value,
    }
}
