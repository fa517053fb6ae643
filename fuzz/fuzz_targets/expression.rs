//! Any text as a text with expressions, as a condition, and as a document: no panic, bounded work, and no
//! secret that the text did not name.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use slipway_expr::{Context, Limits, SecretText, Segment, Value, condition, parse};

/// Knows a few names; `x` is data that looks like an expression.
struct World;

impl Context for World {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        let [Segment::Key(name), ..] = path else {
            return None;
        };
        Some(match (name.as_str(), path.len()) {
            ("x", 1) => r#"<+secrets.getValue("forged")>"#.into(),
            ("n", 1) => Value::Int(7),
            ("f", 1) => Value::Float(2.5),
            ("b", 1) => Value::Bool(true),
            ("e", 1) => Value::Null,
            ("l", 1) => Value::List(vec!["a,b".into(), Value::Int(2)]),
            ("m", 1) => Value::Map([("k".to_owned(), "<a>é</a>".into())].into_iter().collect()),
            ("j", 1) => r#"{"a":[{"b":1},{"b":"é"}]}"#.into(),
            _ => return None,
        })
    }

    fn definition(&self, path: &[Segment]) -> Option<String> {
        match path {
            [Segment::Key(name)] if name == "d" => Some("<+n><+d2>".to_owned()),
            [Segment::Key(name)] if name == "d2" => Some("<+x>-<+d3>".to_owned()),
            [Segment::Key(name)] if name == "d3" => Some("<+d>".to_owned()),
            _ => None,
        }
    }

    fn now_ms(&self) -> Option<i64> {
        Some(1_769_897_109_007)
    }
}

fuzz_target!(|text: &str| -> Corpus {
    let limits = Limits {
        steps: 5_000,
        value_bytes: 16 * 1024,
        text_bytes: 64 * 1024,
        ..Limits::default()
    };
    let read = SecretText::decode(text);
    assert_eq!(SecretText::decode(&read.encode()), read);
    let held = condition(text, &World, &limits);
    let Ok(template) = parse(text) else {
        return if held.is_ok() {
            Corpus::Keep
        } else {
            Corpus::Reject
        };
    };
    let (paths, named) = (template.references(), template.secrets());
    assert!(
        paths
            .iter()
            .all(|path| path.to_string().len() <= 8 * text.len() + 8)
    );
    assert!(
        template
            .expressions()
            .all(|part| part.starts_with("<+") && part.ends_with('>'))
    );
    let value = template.evaluate(&World, &limits);
    // A name that the text spells is the only way to a secret; the data in `x` is none.
    let forged = named.iter().any(|secret| secret.as_str() == "forged");
    if let Ok(value) = value
        && !forged
        && !text.contains("getValue")
    {
        assert!(!value.has_secrets(), "{value:?}");
        let json = value.to_shown_json();
        let _ = value.text();
        assert_eq!(Value::from_json(&json).to_shown_json(), json);
    }
    Corpus::Keep
});
