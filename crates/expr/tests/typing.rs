//! The typing facts that people get wrong, as a table: what is a number, what is a string, what equals
//! what, and what is an error instead of a guess.

mod world;

use serde_json::json;
use world::World;

fn world() -> World {
    World::new(&json!({
        "pipeline": {"sequenceId": 16, "name": "ship", "startTs": 1_700_000_000_000_u64,
            "variables": {"flag": "true", "upper": "TRUE", "yes": "yes", "tag": "1.10", "count": "3",
                "empty": "", "nothing": null}},
        "service": {"gitOpsEnabled": false},
        "list": ["a", "b"], "numbers": [1, 2], "none": [], "map": {"k": "v"},
    }))
}

#[test]
fn numbers_and_strings_are_joined_only_when_asked_for() {
    world().check(&[
        // In a text every value takes its text form.
        ("/tmp/spe/<+pipeline.sequenceId>", r#""/tmp/spe/16""#),
        ("<+pipeline.sequenceId>", "16"),
        ("<+pipeline.sequenceId.toString()>", r#""16""#),
        // `+` adds numbers and joins strings; it does not guess.
        ("<+pipeline.sequenceId + 1>", "17"),
        (
            r#"<+"build-" + <+pipeline.sequenceId>>"#,
            "! write `.toString()`",
        ),
        (
            r#"<+<+pipeline.sequenceId> + "-build">"#,
            "! write `.toString()`",
        ),
        (
            r#"<+"build-" + <+pipeline.sequenceId>.toString()>"#,
            r#""build-16""#,
        ),
        (
            r#"<+"build-" + pipeline.sequenceId.toString()>"#,
            r#""build-16""#,
        ),
        (
            "<+<+pipeline.name>.concat(<+pipeline.sequenceId>)>",
            r#""ship16""#,
        ),
        (
            "<+<+pipeline.variables.count> + 1>",
            "! write `.toString()`",
        ),
        ("<+<+pipeline.variables.count> * 2>", "6"),
        ("<+<+pipeline.variables.count> - 1>", "2"),
        (r#"<+"1" + "2">"#, r#""12""#),
        ("<+7 / 2>", "3"),
        ("<+7 / 2.0>", "3.5"),
        ("<+7 % 0>", "! division by zero"),
        (
            "<+pipeline.sequenceId.length()>",
            "! a number has no length()",
        ),
        ("<+pipeline.startTs + 1>", "1700000000001"),
    ]);
}

#[test]
fn equality_says_what_people_mean_and_nothing_more() {
    world().check(&[
        ("<+<+pipeline.sequenceId> == 16>", "true"),
        (r#"<+<+pipeline.sequenceId> == "16">"#, "true"),
        (r#"<+<+pipeline.sequenceId> == "16.0">"#, "true"),
        (r#"<+<+pipeline.sequenceId> == "sixteen">"#, "false"),
        // A string and a boolean: only `true` and `false` are booleans, in any case.
        ("<+<+pipeline.variables.flag> == true>", "true"),
        ("<+<+pipeline.variables.flag> == false>", "false"),
        (r#"<+<+pipeline.variables.flag> == "true">"#, "true"),
        ("<+<+pipeline.variables.upper> == true>", "true"),
        (r#"<+<+pipeline.variables.upper> == "true">"#, "false"),
        ("<+<+pipeline.variables.yes> == true>", "false"),
        ("<+<+pipeline.variables.yes> == false>", "false"),
        (r#"<+<+service.gitOpsEnabled> == "false">"#, "true"),
        ("<+!<+pipeline.variables.flag>>", "false"),
        ("<+!<+pipeline.variables.yes>>", "! works on true or false"),
        ("<+true == 1>", "false"),
        // Two strings are compared as strings, whatever they look like.
        (r#"<+<+pipeline.variables.tag> == "1.1">"#, "false"),
        ("<+<+pipeline.variables.tag> == 1.1>", "true"),
        (r#"<+<+pipeline.name> == "Ship">"#, "false"),
        (r#"<+<+pipeline.name>.equalsIgnoreCase("Ship")>"#, "true"),
        (r#"<+<+list> == ["a", "b"]>"#, "true"),
        (r#"<+<+map> == {"k": "v"}>"#, "true"),
        (r#"<+<+list> == "a">"#, "false"),
    ]);
}

#[test]
fn undefined_is_an_error_and_null_is_a_value() {
    world().check(&[
        (
            "<+pipeline.variables.test>",
            "! `pipeline.variables.test` is not defined",
        ),
        ("x<+pipeline.variables.test>y", "! is not defined"),
        (
            r#"<+<+pipeline.variables.test> == "a">"#,
            "! is not defined",
        ),
        ("<+<+pipeline.variables.test>.length()>", "! is not defined"),
        (
            r#"<+<+pipeline.variables.test>?"a":"b">"#,
            "! is not defined",
        ),
        ("<+map.x-auth>", "! `map.x` is not defined"),
        (
            "<+list.5 - nope>",
            "! a name with a hyphen is written as in `headers",
        ),
        ("<+list.5>", "! is not defined"),
        ("<+list[5]>", "! is not defined"),
        ("<+list.get(5)>", "! is not defined"),
        ("<+<+list>.get(5)>", "! the list has 2 items"),
        ("<+pipeline.variables.nothing>", "null"),
        (
            "<+pipeline.variables.nothing.length()>",
            "! null has no length()",
        ),
        // Asking whether it is there is no error.
        ("<+<+pipeline.variables.test> == null>", "true"),
        ("<+<+pipeline.variables.test> != null>", "false"),
        ("<+null == <+pipeline.variables.test>>", "true"),
        ("<+<+pipeline.variables.nothing> == null>", "true"),
        (r#"<+<+pipeline.variables.empty> == null>"#, "false"),
        // `null` in quotes is a string.
        (r#"<+<+pipeline.variables.nothing> == "null">"#, "false"),
        ("<+empty(pipeline.variables.test)>", "true"),
        ("<+empty pipeline.variables.test>", "true"),
        ("<+empty(<+pipeline.variables.empty>)>", "true"),
        ("<+empty(<+none>)>", "true"),
        ("<+empty(<+pipeline.sequenceId>)>", "false"),
        (r#"<+<+pipeline.variables.test>?:"d">"#, r#""d""#),
        (r#"<+<+pipeline.variables.empty>?:"d">"#, r#""d""#),
        (r#"<+<+pipeline.variables.empty>??"d">"#, r#""""#),
        (r#"<+<+pipeline.variables.test>??"d">"#, r#""d""#),
        ("<+pipeline?.missing>", "null"),
        ("<+pipeline.variables?.tag>", r#""1.10""#),
    ]);
}

#[test]
fn ordering_is_for_numbers() {
    world().check(&[
        (r#"<+"a" < "b">"#, "! `<` works on two numbers"),
        (r#"<+"1.10" > "1.9">"#, "! `>` works on two numbers"),
        (
            r#"<+<+pipeline.variables.count> >= "2">"#,
            "! `>=` works on two numbers",
        ),
        ("<+<+pipeline.variables.count> >= 2>", "true"),
        ("<+<+pipeline.variables.tag> < 1.2>", "true"),
        ("<+<+pipeline.name> > 2>", "! works on two numbers"),
        ("<+(true > false)>", "! works on two numbers"),
        (
            "<+(pipeline.variables.nothing < 1)>",
            "! works on two numbers",
        ),
        ("<+(list > 1)>", "! works on two numbers"),
        (r#"<+"a".compareTo("b")>"#, "-1"),
    ]);
}

#[test]
fn lists_and_patterns() {
    world().check(&[
        (
            r#"<+<+pipeline.name> =~ ["<+pipeline.name>","All"]>"#,
            "true",
        ),
        (r#"<+"c" =~ <+list>>"#, "false"),
        (r#"<+"c" !~ <+list>>"#, "true"),
        (r#"<+"1" =~ <+numbers>>"#, "true"),
        (r#"<+"k" =~ <+map>>"#, "true"),
        // A pattern matches the whole text.
        (r#"<+<+pipeline.name> =~ "sh">"#, "false"),
        (r#"<+<+pipeline.name> =~ "sh.*">"#, "true"),
        (r#"<+<+pipeline.name> =~ "ship">"#, "true"),
        (r#"<+<+pipeline.variables.tag> =~ "1\\.10">"#, "true"),
        (r#"<+<+pipeline.name> =~ "x)|(ship">"#, "! not well formed"),
        ("<+size(<+list>)>", "2"),
        ("<+<+list>.size()>", "2"),
        (r#"<+<+list>.contains("a")>"#, "true"),
        ("<+<+list>.contains(1)>", "false"),
        (r#"<+<+numbers>.contains("1")>"#, "true"),
        ("hosts=<+list>", r#""hosts=[\"a\",\"b\"]""#),
        (r#"<+<+list> + ["c"]>"#, r#"["a","b","c"]"#),
    ]);
}

#[test]
fn blank_space_and_the_closing_angle() {
    world().check(&[
        (
            r#"<+<+pipeline.variables.tag> == "1.10"?"pass":"fail">"#,
            r#""pass""#,
        ),
        (
            r#"<+ <+pipeline.variables.tag> == "1.10" ? "pass" : "fail" >"#,
            r#""pass""#,
        ),
        ("<+ pipeline.name >", r#""ship""#),
        ("<+(1 > 2)>", "false"),
        ("<+pipeline.sequenceId > 3>", "true"),
        ("<+pipeline.sequenceId>3", r#""163""#),
        ("<+<+pipeline.sequenceId>>3>", r#""163>""#),
    ]);
}
