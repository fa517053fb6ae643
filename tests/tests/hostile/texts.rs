//! Texts that are no YAML of Harness, or too much of it.

use std::time::{Duration, Instant};

use slipway_tests::LocalProcess;

use crate::{accept, apply, code, errors, pipeline, wait};

/// No refusal takes longer, also in a debug build on a busy machine.
const BOUND: Duration = Duration::from_secs(30);

/// Memory that may be in use after all of it: a multiple of the largest text (3 MB).
const MEMORY_MIB: u64 = 400;

fn large() -> String {
    let line = "# a comment that only makes the file larger than Harness takes it\n";
    let mut text = pipeline("large", "", &wait("w", "1s"));
    text.push_str(&line.repeat(3_200_000 / line.len()));
    text
}

fn alias_bomb() -> String {
    let mut text = String::from("pipeline:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let before = format!("*a{}, ", n - 1).repeat(10);
        text.push_str(&format!(
            "  a{n}: &a{n} [{}]\n",
            before.trim_end_matches(", ")
        ));
    }
    text
}

fn resident_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .expect("VmHWM");
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number");
    kib / 1024
}

#[test]
fn each_is_refused_with_its_place_and_nothing_accepted_is_lost() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(&dir.path().join("data"));
    accept(
        &local,
        dir.path(),
        "kept.yaml",
        &pipeline("kept", "", &wait("w", "1s")),
    );

    let good = pipeline("kept", "", &wait("w", "1s"));
    // name, text, line of the fault, what the message says
    let cases: [(&str, String, &str, &str); 9] = [
        (
            "not_yaml",
            "pipeline: [unclosed\n  x: {".to_owned(),
            ":2:4",
            "this is not YAML",
        ),
        (
            "binary",
            "\u{0}\u{1}\u{2}pipeline".to_owned(),
            ":1:1",
            "unprintable character",
        ),
        ("large", large(), "", "3145728"),
        (
            "deep",
            format!("pipeline: {}{}", "[".repeat(10_000), "]".repeat(10_000)),
            ":1:",
            "deep",
        ),
        ("deep_block", deep_block(), ":", "deep"),
        ("bomb", alias_bomb(), ":", "alias"),
        (
            "repeated",
            good.replace("  name: kept\n", "  name: kept\n  name: other\n"),
            ":3:3",
            "`name`",
        ),
        (
            "misspelt",
            good.replace("identifier: kept", "identifer: kept"),
            ":3:3",
            "`identifier`",
        ),
        (
            "unknown_kind",
            "pipelin:\n  name: a\n".to_owned(),
            ":1:1",
            "`pipeline`",
        ),
    ];
    for (name, text, place, says) in cases {
        let file = format!("{name}.yaml");
        let began = Instant::now();
        let output = apply(&local, dir.path(), &file, &text);
        let took = began.elapsed();
        let why = errors(&output);
        let shown = &why[..why.len().min(2_000)];
        assert_eq!(code(&output), 1, "{name}: {shown}");
        assert!(
            why.contains(&format!("{file}{place}")),
            "{name} has no place: {shown}"
        );
        assert!(why.contains(says), "{name} does not say `{says}`: {shown}");
        assert!(why.len() < 20_000, "{name}: {} bytes of errors", why.len());
        assert!(took < BOUND, "{name} took {took:?}");
    }
    let kept = local.json(&["get", "pipeline", "kept", "-o", "json"]);
    assert!(kept.to_string().contains("kept"), "{kept}");
    let used = resident_mib(local.pid());
    assert!(used < MEMORY_MIB, "{used} MiB were in use");
}

/// Nested by indentation; 10,000 levels of it are 50 MB, which is refused for its size alone.
fn deep_block() -> String {
    let mut text = String::from("pipeline:\n");
    for depth in 1..2_000 {
        text.push_str(&" ".repeat(depth));
        text.push_str("a:\n");
    }
    text
}
