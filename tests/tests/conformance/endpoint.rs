//! The same vectors through the HTTP endpoint of a `slipway local`, by the example client that lies beside them: it
//! agrees with the engine's own player in every vector that both can play.

use std::path::Path;

use serde_json::Value;
use slipway_tests::LocalProcess;

use crate::asl::{Verdicts, judge, runner};
use crate::shared;

/// What the client brings about by itself: its functions run in the sandbox account. Callbacks want an SQS and activities a
/// worker that is a machine with `aws-sdk:sfn`, neither of which local mode has; the client does not attempt them unasked.
const NEEDS: &str = "pure,nested,lambda";

/// The account of the vectors, and that of local mode.
const ACCOUNTS: (&str, &str) = ("111111111111", "123456789012");

/// The least vectors that the client plays: fewer would mean that it skips what it should play.
const LEAST: usize = 500;

/// Vectors of a kind that the client does not know.
const SKIPPED: &str = "variable_references";

#[test]
fn the_endpoint_of_local_mode_agrees_with_the_player() {
    let dir = tempfile::tempdir().expect("a folder");
    let vectors = dir.path().join("vectors");
    in_the_account_of_local_mode(&vectors);
    let player = judge(NEEDS, &shared().join("asl/vectors"), &[], &[runner()]);
    let endpoint = through_the_endpoint(&dir.path().join("data"), &vectors);

    let (mut wrong, mut skipped) = (Vec::new(), Vec::new());
    for (id, verdict) in &endpoint {
        if verdict.get("skip").is_some() {
            skipped.push(id.as_str());
            continue;
        }
        let same = |level: &&str| verdict.get(*level) == player[id].get(*level);
        if !LEVELS.iter().all(same) {
            wrong.push(format!("{id}: {verdict}; the player: {}", player[id]));
        }
    }
    for level in LEVELS {
        println!(
            "{level}: endpoint {}, player {}",
            count(&endpoint, level),
            count(&player, level)
        );
    }
    println!("not played by the client: {}", skipped.join(", "));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(skipped.iter().all(|id| id.contains(SKIPPED)), "{skipped:?}");
    assert!(endpoint.len() - skipped.len() >= LEAST);
}

const LEVELS: [&str; 4] = ["result", "cause", "history", "events"];

/// How many vectors agree at a level with what AWS recorded, of those that have it.
fn count(verdicts: &Verdicts, level: &str) -> String {
    let judged: Vec<bool> = verdicts
        .values()
        .filter_map(|verdict| verdict.get(level).and_then(Value::as_bool))
        .collect();
    let agreed = judged.iter().filter(|agrees| **agrees).count();
    format!("{agreed} of {}", judged.len())
}

/// Writes the vectors anew: ARNs in them name the account, and each was recorded in an account where no other vector's
/// machines were, while here all of them are played at once.
fn in_the_account_of_local_mode(folder: &Path) {
    std::fs::create_dir(folder).expect("a folder");
    let vectors = std::fs::read_dir(shared().join("asl/vectors")).expect("the vectors");
    for (number, vector) in vectors.enumerate() {
        let path = vector.expect("a vector").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let name = path.file_name().expect("a name");
        let text = text.replace(ACCOUNTS.0, ACCOUNTS.1);
        let text = with_names_of_its_own(text, number);
        std::fs::write(folder.join(name), text).expect("written");
    }
}

/// Numbers the machines that exist before the vector's own request, and the functions of tests of a state, to which the
/// client gives no names of their own.
fn with_names_of_its_own(text: String, number: usize) -> String {
    let vector: Value = serde_json::from_str(&text).expect("a vector is JSON");
    let listed = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut named = listed(&vector["before"]);
    if vector["kind"] == "test-state" {
        named.extend(listed(&vector["resources"]["lambda"]));
    }
    named
        .iter()
        .filter_map(|request| request["name"].as_str())
        .fold(text, |text, name| {
            text.replace(name, &format!("{name}-{number}"))
        })
}

fn through_the_endpoint(data: &Path, vectors: &Path) -> Verdicts {
    let python = std::env::var_os("SLIPWAY_PYTHON_BOTO3").expect(
        "SLIPWAY_PYTHON_BOTO3 names a python3 with boto3; `cargo xtask conformance` sets it",
    );
    let local = LocalProcess::start(data);
    let environment = [("SFN_ENDPOINT", local.url()), ("JOBS", "32")];
    let client = [python.into(), shared().join("asl/adapter_endpoint.py")];
    judge(NEEDS, vectors, &environment, &client)
}
