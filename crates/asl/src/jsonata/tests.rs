//! Values and error texts of expressions.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Bindings, Expression};

fn evaluate(source: &str) -> Result<Value, String> {
    let input = json!({"n": 2, "list": [1], "deep": {"name": "x"}, "items": [{"k": 1}, {"k": 2}]});
    let variables = json!({"v": {"w": true}, "half": 0.5});
    let variables = variables.as_object().cloned().unwrap_or_default();
    let bindings = Bindings {
        root: &input,
        input: &input,
        result: None,
        error_output: None,
        context: &|| json!({"State": {"Name": "A"}}),
        variables: &[&variables],
        now: Timestamp::UNIX_EPOCH,
        spent: std::cell::Cell::new(0),
    };
    Expression::parse(source)
        .map_err(|error| format!("parse: {error}"))?
        .evaluate("Output", &bindings)
        .map_err(|error| error.message)
}

#[test]
fn values() {
    let cases = [
        ("$states.input.n + 1", json!(3)),
        ("$states.input.deep.name", json!("x")),
        ("$states.input.list", json!([1])),
        ("$states.input.items.k", json!([1, 2])),
        ("$states.context.State.Name", json!("A")),
        ("$v.w", json!(true)),
        ("$half * 2", json!(1)),
        ("$partition([1,2,3],2)", json!([[1, 2], [3]])),
        ("$range(0,6,3)", json!([0, 3, 6])),
        ("$range(3,1,-1)", json!([3, 2, 1])),
        (
            "$hash('abc','MD5')",
            json!("900150983cd24fb0d6963f7d28e17f72"),
        ),
        ("$length($hash('abc','SHA-1'))", json!(40)),
        ("$length($uuid())", json!(36)),
        ("$parse('{\"a\":[1]}').a", json!([1])),
        ("$random(7) = $random(7)", json!(true)),
        ("$random() < 1", json!(true)),
        ("$now()", json!("1970-01-01T00:00:00.000Z")),
        ("$millis()", json!(0)),
        (
            "$states",
            json!({"input": {"n": 2, "list": [1], "deep": {"name": "x"},
            "items": [{"k": 1}, {"k": 2}]}, "context": {"State": {"Name": "A"}}}),
        ),
    ];
    for (source, expected) in cases {
        assert_eq!(evaluate(source), Ok(expected), "{source}");
    }
}

#[test]
fn failures() {
    let cases = [
        ("$nope", "returned nothing (undefined)."),
        ("$states.input.nope.deeper", "returned nothing (undefined)."),
        ("$states.result", "returned nothing (undefined)."),
        ("$string", "returned a value that is not JSON."),
        ("$nope(1)", "T1006"),
        ("$eval('1')", "$eval is not supported"),
        ("$range(1,100000,1)", "more than 1000 items"),
        ("(", "parse: "),
    ];
    for (source, expected) in cases {
        let error = evaluate(source).expect_err(source);
        assert!(error.contains(expected), "{source}: {error}");
    }
}
