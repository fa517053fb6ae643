//! Scripts: loops and conditions in the conditions of triggers.

mod world;

use serde_json::json;
use slipway_expr::{Limits, condition, parse};
use world::World;

fn world() -> World {
    World::new(&json!({
        "trigger": {"payload": {"commits": [{"message": "a"}, {"message": "go"}], "none": null}},
        "numbers": [[1, 2], [3, 4]], "map": {"a": 1, "b": 5}, "item": "outer",
    }))
}

#[test]
fn scripts_return_what_they_say() {
    let cases = [
        (
            r#"for (item : <+trigger.payload.commits>) { if (item.message == "go") {return true;} }; return false;"#,
            Ok(true),
        ),
        (
            r#"for (item : <+trigger.payload.commits>) { if (item.message == "no") return true; } return false"#,
            Ok(false),
        ),
        ("if (1 > 2) true else false", Ok(false)),
        (
            "if (1 > 2) { return true } else if (2 > 1) { return true } return false",
            Ok(true),
        ),
        (
            "for (row : numbers) { for (n : row) { if (n == 4) { return true; } } } return false;",
            Ok(true),
        ),
        (
            "for (var n : map) { if (n > 4) { return true; } } false",
            Ok(true),
        ),
        (
            "for (n : trigger.payload.none) { return true; } return false",
            Ok(false),
        ),
        ("for (item : [true]) { item } ", Ok(true)),
        (r#"for (item : []) { } ; item == "outer""#, Ok(true)),
        ("1 == 1;", Ok(true)),
        ("true; false", Ok(false)),
        ("return 2 > 1", Ok(true)),
        (
            "for (x : 5) { }",
            Err("`for` works on lists and maps, not on a number"),
        ),
        ("for (x : missing) { }", Err("`missing` is not defined")),
        ("for (x in numbers) { }", Err("`name : items`")),
        ("for (x : numbers) { return true", Err("`;` or `}`")),
        ("while (true) { }", Err("expected")),
        ("x = 1; x", Err("expected")),
        ("if (true)", Err("expected an operand")),
    ];
    for (text, expected) in cases {
        let outcome = condition(text, &world(), &Limits::default());
        match (outcome.map_err(|error| error.full_text()), expected) {
            (Ok(value), Ok(expected)) => assert_eq!(value, expected, "{text}"),
            (Err(error), Err(part)) => assert!(error.contains(part), "{text}: {error}"),
            (outcome, expected) => panic!("{text}: {outcome:?}, not {expected:?}"),
        }
    }
}

#[test]
fn a_script_can_stand_in_a_text() {
    world().check(&[
        (
            "x <+if (2 > 1) { \"yes\" } else { \"no\" }> y",
            r#""x yes y""#,
        ),
        ("<+for (n : numbers) { n }>", "[3,4]"),
        ("<+for (n : [1,2]) { n } ; n>", "! `n` is not defined"),
        ("<+ifs>", "! `ifs` is not defined"),
        ("<+returned>", "! `returned` is not defined"),
    ]);
}

#[test]
fn the_variable_of_a_loop_is_no_reference() {
    let text = "<+for (c : trigger.payload.commits) { c.message == env.name }>";
    let paths: Vec<_> = parse(text)
        .expect("well formed")
        .references()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(paths, ["trigger.payload.commits", "env.name"]);
}
