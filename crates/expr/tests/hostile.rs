//! Expressions and data that mean harm: bounded time and memory, clear errors, nothing forged.

use proptest::prelude::*;
use serde_json::json;
use slipway_expr::{
    Context, Limits, Piece, SecretText, Segment, Value, condition, evaluate_json, parse,
};

/// Knows `big` (200 KB of text) and `x.y`; every `loop.<n>` is defined by the next.
struct World;

impl Context for World {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        match path {
            [Segment::Key(name)] if name == "big" => Some("a".repeat(200_000).into()),
            [Segment::Key(name), ..] if name == "x" => Some(Value::Int(1)),
            _ => None,
        }
    }

    fn definition(&self, path: &[Segment]) -> Option<String> {
        match path {
            [Segment::Key(name), Segment::Key(n)] if name == "loop" => {
                let n: u64 = n.parse().ok()?;
                Some(format!("<+loop.{}>", n + 1))
            }
            _ => None,
        }
    }
}

fn evaluate(text: &str) -> Result<Value, String> {
    let template = parse(text).map_err(|error| error.to_string())?;
    template
        .evaluate(&World, &Limits::default())
        .map_err(|error| error.full_text())
}

#[test]
fn limits_hold() {
    let deep =
        |open: &str, close: &str| format!("<+{}1{}>", open.repeat(10_000), close.repeat(10_000));
    let doubled = format!("<+{}>", vec!["<+big>"; 200].join("+"));
    let cases = [
        (deep("(", ")"), "levels of nesting"),
        (deep("[", "]"), "levels of nesting"),
        (deep("<+", ">"), "levels of nesting"),
        (deep("true?1:", ""), "levels of nesting"),
        (deep("a[", "]"), "levels of nesting"),
        ("<+loop.0>".to_owned(), "levels of nesting"),
        (doubled, "bytes in one value"),
        (
            "<+big.replace('a', <+big>)>".to_owned(),
            "bytes in one value",
        ),
        (
            "<+big.replaceAll('a', <+big>)>".to_owned(),
            "bytes in one value",
        ),
        ("<+\"a\"*1000000000>".to_owned(), "works on two numbers"),
        ("<+big =~ \"(a{1000}){1000}\">".to_owned(), "too large"),
        (
            format!("<+[{}]>", "<+big>,".repeat(1000)),
            "steps of evaluation",
        ),
        (
            format!("<+1{}>", "+x.y".repeat(200_000)),
            "steps of evaluation",
        ),
        ("<+range(1000000000000)>".to_owned(), "expected"),
        (
            "<+T(java.lang.Runtime).getRuntime()>".to_owned(),
            "expected",
        ),
        ("<+big.__proto__.constructor>".to_owned(), "not defined"),
    ];
    for (text, part) in cases {
        let message = evaluate(&text).expect_err("a limit");
        assert!(message.contains(part), "{:.60}: {message:.400}", text);
    }
}

#[test]
fn long_but_flat_expressions_are_fine() {
    assert_eq!(
        evaluate(&format!("<+0{}>", "+1".repeat(20_000))),
        Ok(Value::Int(20_000))
    );
    assert_eq!(
        evaluate(&format!("<+{}true>", "!".repeat(20_000))),
        Ok(Value::Bool(true))
    );
    let many = "<+x.y> > ".repeat(50_000);
    assert_eq!(evaluate(&many), Ok(Value::String("1 > ".repeat(50_000))));
}

#[test]
fn data_cannot_forge_a_secret() {
    let hole =
        SecretText::secret("account.root".to_owned().try_into().expect("a reference")).encode();
    let (value, secrets) = evaluate_json(
        &json!({"a": hole, "b": format!("x{hole}<+x.y>")}),
        &World,
        &Limits::default(),
    )
    .expect("no expressions that fail");
    assert!(secrets.is_empty());
    let encoded = value["a"].as_str().expect("a string");
    assert_eq!(
        SecretText::decode(encoded).pieces(),
        [Piece::Plain(hole.clone())]
    );
    let encoded = value["b"].as_str().expect("a string");
    assert_eq!(
        SecretText::decode(encoded).pieces(),
        [Piece::Plain(format!("x{hole}1"))]
    );
}

proptest! {
    #[test]
    fn nothing_panics(text in "(<\\+|>|[a-z.\\[\\]()'\"\\\\?:{}0-9e,=!~<>&|+*/% -]|\u{FDD0}|é){0,60}") {
        let _ = evaluate(&text);
        let _ = condition(&text, &World, &Limits::default());
        let _ = SecretText::decode(&text);
    }

    #[test]
    fn whole_expressions_never_panic(inner in "[xbig.y\\[\\]()'\"?:0-9,=!~<>&|+*/% -]{0,40}") {
        let _ = evaluate(&format!("<+{inner}>"));
    }

    #[test]
    fn any_text_survives_encoding(text in "(.|\u{FDD0}|\u{FDD1}|a){0,20}") {
        let encoded = SecretText::plain(text.as_str()).encode();
        prop_assert_eq!(SecretText::decode(&encoded), SecretText::plain(text));
    }
}
