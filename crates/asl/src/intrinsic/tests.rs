//! Calls and what they give, as tables.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Call;

fn evaluate(call: &str, input: &Value) -> Result<Value, String> {
    let call = Call::parse(call).ok_or_else(|| "not a call".to_owned())?;
    call.evaluate(|query| query.of_input(input).ok_or("no value".to_owned()))?
}

#[test]
fn values() {
    let input = json!({"l": [1, 2, 2, 3], "o": {"a": 1, "b": []}, "s": "x", "n": 1.5});
    let cases = [
        ("States.Array()", json!([])),
        (
            "States.Array(1, 'a', $.s, null)",
            json!([1, "a", "x", null]),
        ),
        ("States.ArrayPartition($.l, 3)", json!([[1, 2, 2], [3]])),
        ("States.ArrayContains($.l, 3)", json!(true)),
        ("States.ArrayContains($.l, '3')", json!(false)),
        ("States.ArrayRange(1, 9, 4)", json!([1, 5, 9])),
        ("States.ArrayRange(3, 0, -2)", json!([3, 1])),
        ("States.ArrayGetItem($.l, 3)", json!(3)),
        ("States.ArrayLength($.l)", json!(4)),
        ("States.ArrayUnique($.l)", json!([1, 2, 3])),
        (
            "States.Base64Encode('Data to encode')",
            json!("RGF0YSB0byBlbmNvZGU="),
        ),
        (
            "States.Base64Decode('RGF0YSB0byBlbmNvZGU=')",
            json!("Data to encode"),
        ),
        (
            "States.Hash('input data', 'SHA-1')",
            json!("aaff4a450a104cd177d28d18d74485e8cae074b7"),
        ),
        (
            "States.JsonMerge($.o, $.o, false)",
            json!({"a": 1, "b": []}),
        ),
        ("States.StringToJson('{\"a\":[1]}')", json!({"a": [1]})),
        ("States.StringToJson('  ')", json!(null)),
        ("States.JsonToString($.o)", json!("{\"a\":1,\"b\":[]}")),
        ("States.MathAdd(1.5, -2.5)", json!(0)),
        ("States.MathRandom(4, 5)", json!(4)),
        ("States.StringSplit('a.b+c', '.+')", json!(["a", "b", "c"])),
        ("States.StringSplit(',,', ',')", json!([])),
        (
            "States.Format('{} is {}', $.s, $.o)",
            json!("x is {a=1, b=[]}"),
        ),
        (
            "States.Format('\\{\\} \\'{}\\' \\\\', $.n)",
            json!("{} '1.5' \\"),
        ),
        (
            "States.Format('{}', States.ArrayLength(States.StringSplit('a,b', ',')))",
            json!("2"),
        ),
        ("States.Format($.s)", json!("x")),
    ];
    for (call, expected) in cases {
        assert_eq!(evaluate(call, &input), Ok(expected), "{call}");
    }
}

#[test]
fn failures() {
    let input = json!({"l": [1]});
    let cases = [
        (
            "States.ArrayGetItem($.l, 9)",
            "The index 9 is out of range for length 1",
        ),
        (
            "States.Format('{}')",
            "Number of arguments do not match the occurrences of {}",
        ),
        (
            "States.Format('', 1)",
            "Number of arguments do not match the occurrences of {}",
        ),
        (
            "States.ArrayRange(0, 5000, 1)",
            "The array must not have more than 1000 items",
        ),
        ("States.ArrayRange(0, 1, 0)", "The increment must not be 0"),
        (
            "States.JsonMerge($, $, true)",
            "Deep merging is not supported: the third argument must be false",
        ),
        (
            "States.MathRandom(5, 5)",
            "The start must be smaller than the end",
        ),
        (
            "States.ArrayLength('a')",
            "Expected an array, but was: \"a\"",
        ),
        (
            "States.Hash('a', 'CRC')",
            "'CRC' is not one of MD5, SHA-1, SHA-256, SHA-384 and SHA-512",
        ),
        ("States.ArrayLength($.nope)", "no value"),
    ];
    for (call, expected) in cases {
        assert_eq!(evaluate(call, &input), Err(expected.to_owned()), "{call}");
    }
}

#[test]
fn texts_that_are_no_calls() {
    let texts = [
        "States.Format('a \\\" b')",
        "States.Format('a",
        "States.Nope()",
        "States.UUID(1)",
        "States.Hash('a')",
        "States.Array(1",
        "States.Array(1))",
        "States.Array(a)",
        "States.Array('a' 'b')",
        "Format('a')",
    ];
    for text in texts {
        assert_eq!(Call::parse(text), None, "{text}");
    }
    let deep = format!("{}1{}", "States.Array(".repeat(11), ")".repeat(11));
    assert_eq!(Call::parse(&deep), None);
    let hostile = "States.Array(".repeat(2_000);
    assert_eq!(Call::parse(&hostile), None);
}

proptest! {
    #[test]
    fn no_text_panics(text in "States\\.(Format|Array|StringSplit|MathAdd|ArrayRange)\\([\\PC'{}\\\\,$.()]{0,30}\\)") {
        let _ = evaluate(&text, &json!({"a": [1, 2]}));
    }
}
