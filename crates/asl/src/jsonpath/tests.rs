//! Paths and what they give, as tables.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{JsonPath, NoValue, ReferencePath};

fn document() -> Value {
    json!({
        "store": {
            "book": [
                {"title": "A", "price": 8, "tags": ["x", "y"]},
                {"title": "B", "price": 12.5},
                {"title": "C", "price": 30, "isbn": "1"},
            ],
            "delivery-partner": "UQS",
        },
        "max": 10,
        "Test\\\"\"Name\"": "escaped",
    })
}

#[test]
fn values() {
    let cases = [
        ("$.max", json!(10)),
        ("$['max']", json!(10)),
        ("$[\"max\"]", json!(10)),
        ("$.store.delivery-partner", json!("UQS")),
        ("$['Test\\\"\"Name\"']", json!("escaped")),
        ("$.store.book[0].title", json!("A")),
        ("$.store.book[-1].title", json!("C")),
        ("$.store.book[0:2].title", json!(["A", "B"])),
        ("$.store.book[1:].title", json!(["B", "C"])),
        ("$.store.book[-2:].title", json!(["B", "C"])),
        ("$.store.book[0,2].title", json!(["A", "C"])),
        ("$.store.book[*].price", json!([8, 12.5, 30])),
        ("$..title", json!(["A", "B", "C"])),
        ("$..tags[0]", json!(["x"])),
        ("$.store.book[?(@.price < 10)].title", json!(["A"])),
        ("$.store.book[?(@.price > $.max)].title", json!(["B", "C"])),
        ("$.store.book[?(@.isbn)].title", json!(["C"])),
        ("$.store.book[?(!@.isbn)].title", json!(["A", "B"])),
        (
            "$.store.book[?(@.title == 'A' || @.price == 30.0)].price",
            json!([8, 30]),
        ),
        (
            "$.store.book[?(@.price > 8 && (@.title != \"C\"))].title",
            json!(["B"]),
        ),
        (
            "$.store.book[?(@.title =~ /[ab]/i)].title",
            json!(["A", "B"]),
        ),
        (
            "$.store.book[?(@.title in ['B','C'])].price",
            json!([12.5, 30]),
        ),
        ("$.store.book[?(@.tags contains 'x')].title", json!(["A"])),
        ("$.store.book[?(@.price == 0)]", json!([])),
        ("$.store.book.length()", json!(3)),
        ("$.store.book[*].price.max()", json!(30.0)),
        (
            "$.store.book[0]['title','price']",
            json!({"title": "A", "price": 8}),
        ),
        ("$..nothing", json!([])),
        ("$.store.book[*].nothing", json!([])),
        ("$.max[*]", json!([])),
    ];
    for (path, expected) in cases {
        let parsed = JsonPath::parse(path).unwrap_or_else(|| panic!("{path} is a path"));
        assert_eq!(parsed.select(&document()), Ok(expected), "{path}");
    }
}

#[test]
fn what_is_missing_is_an_error_of_definite_paths() {
    let cases = [
        ("$.nothing", "No results for path: $['nothing']"),
        ("$.nothing.deeper", "Missing property in path $['nothing']"),
        ("$.nothing[*]", "Missing property in path $['nothing']"),
        (
            "$.max.deeper",
            "Expected to find an object with property ['deeper'] in path $['max'] but found: 10",
        ),
        (
            "$.store.book[3]",
            "No results for path: $['store']['book'][3]",
        ),
        (
            "$.max[0]",
            "Filter: [0] can only be applied to arrays. Current context is: 10",
        ),
        (
            "$.max[?(@.a)]",
            "Filter: [?] can not be applied to primitives. Current context is: 10",
        ),
    ];
    for (path, why) in cases {
        let parsed = JsonPath::parse(path).unwrap_or_else(|| panic!("{path} is a path"));
        let expected = Err(NoValue::Missing(why.to_owned()));
        assert_eq!(parsed.select(&document()), expected, "{path}");
    }
}

#[test]
fn texts_that_are_no_paths() {
    let texts = [
        "",
        "a",
        "$.",
        "$..",
        "$[",
        "$[]",
        "$['a'",
        "$[?(@.a ==)]",
        "$.a b",
        "$x",
        "$.a.nope()",
        "$.length().a",
        "$[?(@.a == [1,2)]",
    ];
    for text in texts {
        assert_eq!(JsonPath::parse(text), None, "{text}");
    }
}

#[test]
fn error_texts_show_the_path_in_brackets() {
    let path = JsonPath::parse("$.a['b'][0][*]").expect("a path");
    assert_eq!(path.canonical(), "$['a']['b'][0][*]");
}

#[test]
fn a_result_is_written_where_a_reference_path_says() {
    let cases = [
        ("$", json!({"a": 1}), Some(json!("new"))),
        ("$.b", json!({"a": 1}), Some(json!({"a": 1, "b": "new"}))),
        ("$.b.c", json!({}), Some(json!({"b": {"c": "new"}}))),
        ("$.a", json!({"a": {"x": 1}}), Some(json!({"a": "new"}))),
        ("$.l[1]", json!({"l": [0]}), Some(json!({"l": [0, "new"]}))),
        ("$.a.b", json!({"a": 1}), None),
        ("$.a", json!([1]), None),
    ];
    for (path, document, expected) in cases {
        let parsed = ReferencePath::parse(path).expect("a reference path");
        assert_eq!(parsed.write(document, json!("new")), expected, "{path}");
    }
    assert_eq!(ReferencePath::parse("$.a[*]"), None);
    assert_eq!(ReferencePath::parse("$.a[99999999999]"), None);
}

#[test]
fn a_hostile_path_ends() {
    let wide = Value::Array(vec![json!([[], [], [], []]); 50]);
    let path = format!("${}", "..*".repeat(40));
    let parsed = JsonPath::parse(&path).expect("a path");
    // Each `..*` multiplies what is visited; the bound stops it.
    assert!(matches!(
        parsed.select(&wide),
        Ok(_) | Err(NoValue::TooMany)
    ));
    assert_eq!(
        JsonPath::parse(&format!("$[?{}]", "(".repeat(10_000))),
        None
    );
    assert_eq!(
        JsonPath::parse(&format!("$[?({})]", "!".repeat(10_000))),
        None
    );
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\$[\\PC.\\[\\]()?@'\":*,0-9a-z=<>!&|/-]{0,40}") {
        if let Some(path) = JsonPath::parse(&text) {
            let _ = path.select(&document());
            let _ = path.canonical();
        }
        if let Some(path) = ReferencePath::parse(&text) {
            let _ = path.write(document(), Value::Null);
        }
    }
}
