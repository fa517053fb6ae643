//! What objects and batches hold, as tables.

use serde_json::json;

use super::batches;
use super::read::parse;
use crate::definition::InputType;

#[test]
fn objects() {
    let csv = |headers: Option<&[&str]>| InputType::Csv {
        headers: headers.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        delimiter: b',',
    };
    let whole = InputType::Json { pointer: None };
    let cases = [
        (whole.clone(), "[1,{\"a\":2}]", Ok(json!([1, {"a": 2}]))),
        (
            InputType::Json {
                pointer: Some("/a/b".to_owned()),
            },
            "{\"a\":{\"b\":[3]}}",
            Ok(json!([3])),
        ),
        (
            InputType::Json {
                pointer: Some("/a".to_owned()),
            },
            "{\"a\":{\"z\":1,\"b\":[3]}}",
            Ok(json!([{"Key": "z", "Value": 1}, {"Key": "b", "Value": [3]}])),
        ),
        (
            InputType::Json {
                pointer: Some("/a".to_owned()),
            },
            "{\"a\":1}",
            Err("Attempting to map over non-iterable node."),
        ),
        (
            whole,
            "{}",
            Err("Attempting to map over non-iterable node."),
        ),
        (
            InputType::JsonLines,
            "1\n\n{\"a\":2}\n",
            Ok(json!([1, {"a": 2}])),
        ),
        (
            csv(None),
            "H1,H2\n1,2,3\n\"a,b\"\n",
            Ok(json!([{"H1": "1", "H2": "2"}, {"H1": "a,b", "H2": ""}])),
        ),
        (csv(Some(&["A"])), "1,2\n", Ok(json!([{"A": "1"}]))),
        (
            csv(Some(&["A", "A"])),
            "1,2\n",
            Err("CSV headers cannot contain duplicates."),
        ),
        (csv(None), "", Ok(json!([]))),
    ];
    for (input, body, expected) in cases {
        let items = parse(&input, body).map(|items| items.inputs().into());
        assert_eq!(items, expected.map_err(str::to_owned), "{input:?} {body}");
    }
}

#[test]
fn batches_hold_what_fits() {
    let items = || vec![json!(1), json!(2), json!("333333")];
    let cases = [
        (
            Some(2),
            None,
            json!([{"Items": [1, 2]}, {"Items": ["333333"]}]),
        ),
        (
            None,
            Some(22),
            json!([{"Items": [1, 2]}, {"Items": ["333333"]}]),
        ),
        (
            None,
            Some(1),
            json!([{"Items": [1]}, {"Items": [2]}, {"Items": ["333333"]}]),
        ),
        (None, None, json!([{"Items": [1, 2, "333333"]}])),
    ];
    for (most, bytes, expected) in cases {
        let made = batches(items(), most, bytes, None);
        assert_eq!(
            serde_json::Value::Array(made),
            expected,
            "{most:?} {bytes:?}"
        );
    }
    let made = batches(vec![json!(1)], Some(1), None, Some(&json!({"b": 1})));
    assert_eq!(made, [json!({"BatchInput": {"b": 1}, "Items": [1]})]);
    assert!(batches(Vec::new(), Some(1), None, None).is_empty());
}

#[test]
fn an_empty_object_is_shown_as_one() {
    let input = InputType::Json {
        pointer: Some("/a".to_owned()),
    };
    for empty in [json!({}), json!([])] {
        let text = json!({"a": empty}).to_string();
        let items = parse(&input, &text).expect("items");
        assert_eq!(items.whole(), empty);
        assert_eq!(items.inputs(), Vec::<serde_json::Value>::new());
    }
}
