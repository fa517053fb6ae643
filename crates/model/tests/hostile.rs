//! Hostile documents, each by its id in the list of hostile inputs (Y: definitions), and their neighbours.

use std::fmt::Write as _;
use std::time::Instant;

use slipway_model::{Code, Diagnostic, entity, yaml};

fn refused(text: &str) -> Vec<Diagnostic> {
    let found = entity::parse("f.yaml", text).err().unwrap_or_default();
    assert!(!found.is_empty(), "accepted");
    found
}

fn told(text: &str) -> String {
    let lines: Vec<_> = refused(text).iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A pipeline with one custom stage per block, each block being the lines of its `spec`.
fn pipeline(stages: &[(&str, &str)]) -> String {
    let mut text = "pipeline:\n  identifier: p\n  name: p\n  stages:\n".to_owned();
    for (identifier, spec) in stages {
        let _ = write!(
            text,
            "  - stage:\n      identifier: {identifier}\n      name: s\n      type: Custom\n      spec:\n{spec}        execution:\n          steps: []\n"
        );
    }
    text
}

fn step(spec: &str) -> String {
    format!(
        "pipeline:\n  identifier: p\n  name: p\n  stages:\n  - stage:\n      identifier: s\n      name: s\n      type: Custom\n      spec:\n        \
         execution:\n          steps:\n          - step:\n              identifier: x\n              name: x\n{spec}"
    )
}

#[test]
fn y1_an_alias_bomb_is_refused_at_once() {
    let bomb = |levels: usize, width: usize| {
        let mut text = "service:\n  identifier: s\n  name: s\n  a0: &a0 x\n".to_owned();
        for level in 1..=levels {
            let items = vec![format!("*a{}", level - 1); width].join(", ");
            let _ = writeln!(text, "  a{level}: &a{level} [{items}]");
        }
        text
    };
    let began = Instant::now();
    for (levels, width) in [(9, 9), (2, 300), (60, 2), (5, 10_000)] {
        let fault = &refused(&bomb(levels, width))[0];
        assert_eq!(fault.code, Code::Limit, "{fault}");
        assert!(fault.message.contains("too many nodes"), "{fault}");
    }
    // Fifty milliseconds each in a release build.
    assert!(began.elapsed().as_secs() < 5);
}

#[test]
fn y3_size_is_limited_and_the_limit_is_named() {
    let head = "service:\n  identifier: s\n  name: s\n";
    let over = format!("{head}#{}\n", "x".repeat(yaml::MOST_BYTES));
    let fault = &refused(&over)[0];
    assert_eq!(fault.code, Code::Limit);
    assert!(fault.message.contains("3145728 (3 MiB)"), "{fault}");

    // One scalar of two megabytes, and a million comments, are within the limit and cost no more than their size.
    let long = format!("{head}  description: {}\n", "x".repeat(2 << 20));
    assert_eq!(
        entity::parse("f", &long)
            .unwrap()
            .head
            .description
            .map(|d| d.len()),
        Some(2 << 20)
    );
    let comments = format!("{head}{}", "#\n".repeat(1_000_000));
    assert_eq!(entity::parse("f", &comments).unwrap().head.name, "s");
}

#[test]
fn y5_types_are_those_that_were_written() {
    let tags = [
        "1.10",
        "no",
        "on",
        "0o17",
        "1_000",
        "12:30:45",
        ".inf",
        "1e3",
        "0123",
        "2026-01-01",
    ];
    let lines: String = tags
        .iter()
        .enumerate()
        .map(|(n, tag)| format!("    t{n}: {tag}\n"))
        .collect();
    let service = entity::parse(
        "f",
        &format!("service:\n  identifier: s\n  name: s\n  tags:\n{lines}"),
    )
    .unwrap();
    let read: Vec<_> = service
        .head
        .tags
        .iter()
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(read, tags);

    // Where a number or a boolean is asked for, nothing else becomes one.
    for (field, value) in [
        ("gitOpsEnabled", "yes"),
        ("gitOpsEnabled", "on"),
        ("gitOpsEnabled", "1"),
        ("tags", "[a]"),
    ] {
        let text = format!("service:\n  identifier: s\n  name: s\n  {field}: {value}\n");
        let faults = told(&text);
        assert!(
            faults.starts_with(&format!("f.yaml:4:{}: service.{field}: ", field.len() + 5)),
            "{faults}"
        );
    }
    assert!(
        told("service:\n  identifier: 1a\n  name: s\n")
            .contains("f.yaml:2:15: service.identifier: `1a`")
    );
    // `~` is nothing at all.
    assert!(told("service:\n  identifier: ~\n  name: s\n").contains("`identifier` is missing"));
}

#[test]
fn y6_tags_are_refused() {
    for tag in [
        "!!python/object:os.system",
        "!!binary",
        "!Include /etc/passwd",
        "!!set",
        "!<tag:yaml.org,2002:str>",
    ] {
        let fault = &refused(&format!("service:\n  identifier: s\n  name: {tag} s\n"))[0];
        assert_eq!(fault.code, Code::Tag, "{tag}: {fault}");
        assert_eq!(
            (fault.line, fault.path.as_str()),
            (3, "service.name"),
            "{tag}"
        );
    }
}

#[test]
fn y8_names_that_are_missing_doubled_or_alike_are_refused() {
    let from = |stage: &str| {
        format!("        environment:\n          useFromStage:\n            stage: {stage}\n")
    };
    let cases = [
        (
            "itself",
            vec![("a", from("a"))],
            "the stage `a` is this stage itself",
        ),
        (
            "a cycle",
            vec![("a", from("b")), ("b", from("a"))],
            "the stage `b` stands later",
        ),
        (
            "doubled",
            vec![("a", String::new()), ("a", String::new())],
            "has the same identifier as the one at line 6, column 19",
        ),
        (
            "but for its case",
            vec![("a", String::new()), ("A", String::new())],
            "has the same identifier, but for its case, as the one",
        ),
        (
            "a Cyrillic letter",
            vec![("\u{430}", String::new())],
            "is not accepted here; expected an identifier",
        ),
        (
            "composed and decomposed",
            vec![("e\u{301}", String::new())],
            "is not accepted here; expected an identifier",
        ),
    ];
    for (what, stages, expected) in cases {
        let stages: Vec<_> = stages
            .iter()
            .map(|(id, spec)| (*id, spec.as_str()))
            .collect();
        let faults = told(&pipeline(&stages));
        assert!(faults.contains(expected), "{what}: {faults}");
    }
    // Harness keeps a pipeline that names no stage; planning it is refused.
    let missing = pipeline(&[("deploy", ""), ("b", &from("deplo"))]);
    let warnings = entity::parse("f", &missing).unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        warnings[0].message,
        "the stage `deplo` is not in this pipeline"
    );
    assert_eq!(warnings[0].suggestion.as_deref(), Some("deploy"));

    let earlier = from("a");
    entity::parse("f", &pipeline(&[("a", ""), ("b", &earlier)])).unwrap();
}

#[test]
fn y10_width_and_length_are_limited_before_anything_is_expanded() {
    let stages: Vec<_> = (0..1_000).map(|n| format!("s{n}")).collect();
    let stages: Vec<_> = stages.iter().map(|id| (id.as_str(), "")).collect();
    assert!(told(&pipeline(&stages)).contains("1000 stages; a pipeline has at most 256"));

    let many = |count: usize, before: &str, indent: &str| {
        let mut text =
            step("              type: Wait\n              spec:\n                duration: 10s\n");
        text.push_str(before);
        for n in 0..count {
            let _ = write!(
                text,
                "{indent}- step:\n{indent}    identifier: w{n}\n{indent}    name: w\n{indent}    type: Wait\n{indent}    spec:\n{indent}      duration: 10s\n"
            );
        }
        text
    };
    assert!(
        told(&many(5_000, "", "          ")).contains("5001 steps; a pipeline has at most 5000")
    );
    let wide = many(257, "          - parallel:\n", "            ");
    assert!(told(&wide).contains("257 branches; at most 256 run side by side"));
}

#[test]
fn y11_numbers_and_times_out_of_range_are_refused() {
    let wait = |lines: &str| {
        step(&format!(
            "              type: Wait\n              spec:\n                duration: 10s\n{lines}"
        ))
    };
    let retry = |count: &str| {
        wait(&format!(
            "              failureStrategies:\n              - onFailure:\n                  errors: [AllErrors]\n                  action:\n                    \
             type: Retry\n                    spec:\n                      retryCount: {count}\n                      retryIntervals: [10s]\n"
        ))
    };
    entity::parse("f", &retry("3")).unwrap();
    for count in ["2147483648", "-1", "NaN", ".nan", "1e9", "0x10", "1.5"] {
        let faults = told(&retry(count));
        assert!(faults.contains("retryCount: `"), "{count}: {faults}");
        assert!(
            faults.contains("expected a whole number from 0 to 100"),
            "{count}: {faults}"
        );
    }
    for timeout in [
        "400d",
        "0s",
        "-1m",
        "1e9s",
        "99999999999999999999s",
        "10",
        "m",
    ] {
        let faults = told(&wait(&format!("              timeout: {timeout}\n")));
        assert!(faults.contains(".timeout: `"), "{timeout}: {faults}");
    }
    for looping in [
        "parallelism: -1",
        "repeat:\n                  times: -5",
        "repeat:\n                  times: NaN",
    ] {
        let faults = told(&wait(&format!(
            "              strategy:\n                {looping}\n"
        )));
        assert!(
            faults.contains("is not accepted here"),
            "{looping}: {faults}"
        );
    }
}

#[test]
fn deep_nesting_and_odd_bytes_are_refused_without_a_panic() {
    let mut cases = vec![
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(50_000),
        "a: &a [*a]\n".to_owned(),
        "? [a]\n: b\n".to_owned(),
        "service: &a\n  identifier: *a\n".to_owned(),
        "service:\n  <<: {identifier: s}\n  name: s\n".to_owned(),
        "service:\n  identifier: s\n  identifier: s\n".to_owned(),
        "service:\n\tidentifier: s\n".to_owned(),
        "%YAML 9.9\n---\nservice: {}\n".to_owned(),
        "\u{0}".to_owned(),
        "service: {identifier: \"\\ud800\"}".to_owned(),
        "--- a\n--- b\n".to_owned(),
        String::new(),
    ];
    cases.push(format!("a: {}", "&".repeat(1_000)));
    for text in cases {
        let faults = refused(&text);
        assert!(!faults.is_empty() && !faults[0].message.is_empty());
    }
}

#[test]
fn a_condition_that_does_not_parse_is_noted() {
    let when = |condition: &str| {
        step(&format!(
            "              type: Wait\n              spec:\n                duration: 10s\n              when:\n                stageStatus: Success\n                \
             condition: {condition}\n"
        ))
    };
    for fine in [
        "<+a.b> == \"x\"",
        "<+input>",
        "<+input>.allowedValues(a,b)",
        "<+a> && !<+b>",
        "\"true\"",
    ] {
        assert_eq!(
            entity::parse("f", &when(fine)).unwrap().warnings,
            [],
            "{fine}"
        );
    }
    let parsed = entity::parse("f", &when("<+a.b> ==")).unwrap();
    let warnings: Vec<_> = parsed.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("when.condition: the condition does not parse at its line 1"),
        "{warnings:?}"
    );
}
