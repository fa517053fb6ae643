//! `slipway export`, `import` and `start`, by the binary as users have it: what one local mode has goes to another, and a
//! stage that waits for somebody is started there.

use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;
use slipway_tests::{LocalProcess, checkout};

/// Longest that a run takes to the next thing that the test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A pipeline whose stage somebody must start.
const MANUAL: &str = "pipeline:
  name: by hand
  identifier: by_hand
  orgIdentifier: default
  projectIdentifier: default
  stages:
    - stage:
        name: go
        identifier: go
        type: Custom
        runMode:
          type: Manual
          timeout: 1d
        spec:
          execution:
            steps:
              - step:
                  name: now
                  identifier: now
                  type: Wait
                  timeout: 1m
                  spec:
                    duration: 1s
";

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What was exported, without the times and versions of its records.
fn said(export: &Value) -> Vec<Value> {
    let records = export["records"].as_array().into_iter().flatten().cloned();
    let timeless = records.map(|mut record| {
        let fields = record.as_object_mut().expect("a record");
        for name in ["created_ms", "updated_ms", "version"] {
            fields.remove(name);
        }
        record
    });
    timeless.collect()
}

/// Waits until a run has this status.
async fn until(local: &LocalProcess, run: &str, status: &str) {
    let begun = Instant::now();
    loop {
        let found = local.json(&["get", "run", run, "-o", "json"]);
        if found["status"] == status {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{found}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[tokio::test]
async fn what_was_exported_is_imported_and_a_stage_of_it_is_started_by_hand() {
    let dir = tempfile::tempdir().expect("a folder");
    let first = LocalProcess::start(&dir.path().join("first"));
    let manual = dir.path().join("manual.yaml");
    std::fs::write(&manual, MANUAL).expect("written");
    for applied in [checkout("templates/ecs-rolling"), manual] {
        first.json(&["apply", "-f", path(&applied), "-o", "json"]);
    }
    let exported = first.json(&["export"]);
    let file = dir.path().join("all.json");
    std::fs::write(&file, exported.to_string()).expect("written");

    let second = LocalProcess::start(&dir.path().join("second"));
    let imported = second.slipway(&["import", path(&file)]);
    assert_eq!(imported.status.code(), Some(0), "{}", told(&imported));
    assert!(
        told(&imported).starts_with("imported "),
        "{}",
        told(&imported)
    );
    assert_eq!(said(&second.json(&["export"])), said(&exported));

    std::fs::write(&file, r#"{"format":99,"records":[]}"#).expect("written");
    let newer = second.slipway(&["import", path(&file)]);
    assert_eq!(newer.status.code(), Some(1));
    assert!(told(&newer).contains("a newer one"), "{}", told(&newer));

    let started = second.json(&["run", "by_hand", "-o", "json"]);
    let run = started["run"].as_str().expect("a run id");
    until(&second, run, "InputWaiting").await;
    let nobody = second.slipway(&["start", run, "other"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(told(&nobody).contains("they are go"), "{}", told(&nobody));
    let begun = second.slipway(&["start", run, "go"]);
    assert_eq!(begun.status.code(), Some(0), "{}", told(&begun));
    until(&second, run, "Success").await;
}
