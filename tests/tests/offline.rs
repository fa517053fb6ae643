//! Commands that need no server, `validate` and `schema`, and the templates that people start from.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use slipway_tests::{binary, checkout};

fn slipway(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(binary())
        .current_dir(dir)
        .args(arguments)
        .output()
        .expect("slipway runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn what_slipway_ships_is_valid() {
    let templates = checkout("templates");
    let output = slipway(
        Path::new("."),
        &["validate", templates.to_str().expect("text")],
    );
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let report = json(&output);
    assert_eq!(report["errors"], 0);
    assert!(report["files"].as_u64().unwrap_or(0) >= 4, "{report}");
}

#[test]
fn every_fault_of_every_file_is_told_at_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a file");
    write(
        "a.yaml",
        "service:\n  name: a\n  identifer: a\n  serviceDefinition:\n    type: EC2\n",
    );
    write("b.yaml", "pipeline: [\n");
    write(
        "c.yaml",
        "environment:\n  name: c\n  identifier: c\n  type: Production\n",
    );
    let output = slipway(dir.path(), &["validate", "."]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    let places: Vec<(String, u64)> = report["diagnostics"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|d| {
            (
                d["file"].as_str().unwrap_or_default().to_owned(),
                d["line"].as_u64().unwrap_or(0),
            )
        })
        .collect();
    for wanted in [("./a.yaml", 3), ("./a.yaml", 5)] {
        assert!(
            places.contains(&(wanted.0.to_owned(), wanted.1)),
            "{wanted:?} is not in {places:?}"
        );
    }
    assert!(
        places.iter().any(|(file, _)| file == "./b.yaml"),
        "{places:?}"
    );
    assert!(
        places.iter().all(|(file, _)| file != "./c.yaml"),
        "{places:?}"
    );

    let table = slipway(dir.path(), &["validate", ".", "-o", "table"]);
    let text = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(text.contains("did you mean `identifier`?"), "{text}");
    assert!(text.contains("3 files:"), "{text}");

    let sarif = json(&slipway(dir.path(), &["validate", ".", "-o", "sarif"]));
    assert_eq!(sarif["version"], "2.1.0");
    assert!(
        sarif["runs"][0]["results"]
            .as_array()
            .is_some_and(|results| results.len() >= 3),
        "{sarif}"
    );
}

#[test]
fn wrong_calls_end_with_2() {
    let dir = tempfile::tempdir().expect("a folder");
    for arguments in [
        &["validate"][..],
        &["validate", "."],
        &["schema", "pipelin"],
        &["list", "pipeline", "-o", "sarif"],
    ] {
        let output = slipway(dir.path(), arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn the_schema_knows_the_steps() {
    let schema = json(&slipway(Path::new("."), &["schema", "pipeline"]));
    let text = schema.to_string();
    for name in [
        "EcsRollingDeploy",
        "K8sRollingDeploy",
        "HarnessApproval",
        "orgIdentifier",
    ] {
        assert!(text.contains(name), "{name} is missing");
    }
}

/// The `type` of each step in a file, by its indentation.
fn step_types(text: &str) -> Vec<&str> {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = text.lines().collect();
    let steps = lines.iter().enumerate();
    let steps = steps.filter(|(_, line)| line.trim() == "- step:");
    steps
        .filter_map(|(at, step)| {
            let mut fields = lines[at + 1..]
                .iter()
                .take_while(|line| depth(line) > depth(step));
            fields.find_map(|line| {
                let own = depth(line) == depth(step) + 4;
                line.trim().strip_prefix("type: ").filter(|_| own)
            })
        })
        .collect()
}

#[test]
fn every_step_of_the_templates_runs() {
    let mut seen = 0;
    for folder in std::fs::read_dir(checkout("templates")).expect("the templates") {
        let folder = folder.expect("a folder").path();
        for file in std::fs::read_dir(&folder).into_iter().flatten() {
            let file = file.expect("a file").path();
            let text = std::fs::read_to_string(&file).expect("a text");
            for step_type in step_types(&text) {
                let runs = slipway_steps::find(step_type).is_some();
                assert!(runs, "{}: no step {step_type} runs", file.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 40, "{seen} steps were found");
}
