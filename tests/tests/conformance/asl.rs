//! The Amazon States Language engine against what AWS recorded: `../shared/asl`, played and judged by its own
//! `score.py`. What remains is printed with its reason; `docs/asl-conformance.md` tells more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::shared;

/// What a faithful run may need: everything that the engine does by itself or with functions and workers.
const NEEDS: &str = "pure,lambda,callback,activity,nested";

/// The least share of vectors, in percent, that agree at each level of `score.py`.
const LEVELS: [(&str, usize); 3] = [("result", 97), ("history", 95), ("events", 85)];

/// Why vectors remain, by the start of their id.
const REASONS: [(&str, &str); 3] = [
    (
        "callback.start_execution_sync",
        "recorded before redrive: the answer of newer recordings has three members more",
    ),
    (
        "base_scenarios.lambda_",
        "recorded before redrive: the context object of newer recordings has RedriveCount",
    ),
    (
        "sfn_api_logs.deleted_log_group",
        "log groups are CloudWatch's; the engine does not know which exist",
    ),
];

#[test]
fn vectors_of_the_states_language_agree() {
    let verdicts = verdicts();
    let mut remaining: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (level, least) in LEVELS {
        let judged: Vec<_> = verdicts
            .iter()
            .filter_map(|(id, verdict)| Some((id, verdict.get(level)?.as_bool()?)))
            .collect();
        let agreed = judged.iter().filter(|(_, agrees)| *agrees).count();
        println!("{level}: {agreed} of {} vectors agree", judged.len());
        for (id, _) in judged.iter().filter(|(_, agrees)| !agrees) {
            let reason = REASONS.iter().find(|(start, _)| id.starts_with(start));
            let reason = reason.map_or("not explained", |(_, reason)| *reason);
            remaining
                .entry(reason)
                .or_default()
                .push(format!("{id} ({level})"));
        }
        assert!(
            agreed * 100 >= judged.len() * least,
            "{agreed} of {} vectors agree at the level {level}, fewer than {least} %",
            judged.len()
        );
    }
    for (reason, vectors) in remaining {
        println!("{reason}: {}", vectors.join(", "));
    }
    let skipped = verdicts
        .values()
        .filter(|v| v.get("skip").is_some())
        .count();
    assert_eq!(skipped, 0, "vectors were skipped");
}

/// Plays the vectors with the engine's player.
fn verdicts() -> Verdicts {
    judge(NEEDS, &shared().join("asl/vectors"), &[], &[runner()])
}

/// The verdict of `score.py` on each vector, by its id.
pub(crate) type Verdicts = serde_json::Map<String, Value>;

/// Has the vectors of a folder played by a command, with these variables in its environment, and judged.
pub(crate) fn judge(
    needs: &str,
    vectors: &Path,
    environment: &[(&str, &str)],
    command: &[PathBuf],
) -> Verdicts {
    let dir = tempfile::tempdir().expect("a folder");
    let verdicts = dir.path().join("verdicts.json");
    let output = Command::new("python3")
        .arg(shared().join("asl/score.py"))
        .args(["--needs", needs, "--json"])
        .arg(&verdicts)
        .arg(vectors)
        .arg("--")
        .args(command)
        .envs(environment.iter().copied())
        .output()
        .expect("python3 runs score.py");
    let text = std::fs::read_to_string(&verdicts).unwrap_or_else(|why| {
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("score.py wrote no verdicts ({why}): {said}")
    });
    let verdicts: Value = serde_json::from_str(&text).expect("verdicts are JSON");
    match verdicts {
        Value::Object(verdicts) if !verdicts.is_empty() => verdicts,
        other => panic!("no verdicts: {other}"),
    }
}

/// The engine's player of vectors; `cargo xtask conformance` builds it.
pub(crate) fn runner() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let target = test.ancestors().nth(2).expect("the build's folder");
    let runner = target.join("examples/vectors");
    assert!(
        runner.is_file(),
        "{} is not there: cargo build -p slipway-asl --example vectors",
        runner.display()
    );
    runner
}
