//! A disk that is full, and data of a newer version.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use slipway_tests::{LocalProcess, binary};

use crate::{accept, apply, code, errors, pipeline, script, wait};

#[test]
fn data_of_a_newer_version_is_left_as_it_is() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let local = LocalProcess::start(&data);
    accept(
        &local,
        dir.path(),
        "kept.yaml",
        &pipeline("kept", "", &wait("w", "1s")),
    );
    local.kill();
    let before = std::fs::read_to_string(data.join("format")).expect("the format");
    std::fs::write(data.join("format"), "4000\n").expect("a newer format");
    let refused = Command::new(binary())
        .args(["local", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&data)
        .output()
        .expect("it runs");
    assert_eq!(code(&refused), 1);
    let why = errors(&refused);
    assert!(why.contains("4000") && why.contains("newer"), "{why}");
    assert_eq!(
        std::fs::read_to_string(data.join("format")).expect("the format"),
        "4000\n"
    );

    std::fs::write(data.join("format"), before).expect("the format as it was");
    let local = LocalProcess::start(&data);
    let kept = local.json(&["get", "pipeline", "kept", "-o", "json"]);
    assert!(kept.to_string().contains("kept"), "{kept}");
}

/// Starts local mode so that no file of it grows beyond `kib` (bash counts in 1,024 bytes): what a full disk does to
/// a process, without a disk of our own.
fn start_cramped(data: &Path, kib: usize) -> (std::process::Child, String) {
    let mut child = Command::new("bash")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"",
            "cramped",
        ])
        .arg(kib.to_string())
        .arg(binary())
        .args(["local", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe"))
        .read_line(&mut line)
        .expect("its first line");
    let url = line
        .trim()
        .strip_prefix("listening on ")
        .unwrap_or_default()
        .to_owned();
    assert!(url.starts_with("http://"), "slipway local said {line:?}");
    (child, url)
}

fn slipway(url: &str, data: &Path, arguments: &[&str]) -> std::process::Output {
    Command::new(binary())
        .args(["--url", url, "--data-dir"])
        .arg(data)
        .args(arguments)
        .env_remove("SLIPWAY_TOKEN")
        .stdin(Stdio::null())
        .output()
        .expect("slipway runs")
}

/// Size of the largest file below a folder, in KiB.
fn largest_kib(dir: &Path) -> usize {
    let mut largest = 0;
    for entry in std::fs::read_dir(dir).expect("a folder").flatten() {
        let path = entry.path();
        let size = if path.is_dir() {
            largest_kib(&path)
        } else {
            usize::try_from(entry.metadata().expect("its size").len() / 1024).expect("a size")
        };
        largest = largest.max(size);
    }
    largest
}

#[test]
fn f16_a_full_disk_refuses_what_is_new_and_loses_nothing_that_was_accepted() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let local = LocalProcess::start(&data);
    accept(
        &local,
        dir.path(),
        "p.yaml",
        &pipeline("pause", "", &wait("w", "20s")),
    );
    accept(
        &local,
        dir.path(),
        "q.yaml",
        &pipeline("say", "", &script("say", "echo kept")),
    );
    local.kill();

    let (mut child, url) = start_cramped(&data, largest_kib(&data) + 300);
    let mut runs = Vec::new();
    let mut entities = Vec::new();
    let mut refusal = String::new();
    for n in 0..400 {
        let started = slipway(
            &url,
            &data,
            &[
                "run",
                if n % 2 == 0 { "pause" } else { "say" },
                "-o",
                "json",
            ],
        );
        if code(&started) != 0 {
            refusal = errors(&started);
            break;
        }
        let started: serde_json::Value = serde_json::from_slice(&started.stdout).expect("JSON");
        runs.push(started["run"].as_str().expect("a run id").to_owned());
        let id = format!("kept_{n}");
        let path = dir.path().join("entity.yaml");
        std::fs::write(&path, pipeline(&id, "", &wait("w", "1s"))).expect("a file");
        let applied = slipway(&url, &data, &["apply", "-f", path.to_str().expect("text")]);
        if code(&applied) != 0 {
            refusal = errors(&applied);
            break;
        }
        entities.push(id);
    }
    assert!(
        refusal.contains("disk"),
        "after {} runs: {refusal:?}",
        runs.len()
    );
    let read = slipway(&url, &data, &["get", "pipeline", "pause", "-o", "json"]);
    assert_eq!(code(&read), 0, "reading goes on: {}", errors(&read));
    child.kill().expect("it can be killed");
    child.wait().expect("it is gone");

    // The disk has room again.
    let local = LocalProcess::start(&data);
    for id in &entities {
        let found = local.slipway(&["get", "pipeline", id, "-o", "json"]);
        assert_eq!(code(&found), 0, "{id} was lost: {}", errors(&found));
    }
    for run in &runs {
        let ended = local.slipway(&["logs", run, "--follow"]);
        assert_eq!(code(&ended), 0, "{}", errors(&ended));
        let seen = local.json(&["get", "run", run, "-o", "json"]);
        assert_eq!(seen["status"], "Success", "run {run}: {seen}");
    }
    let again = apply(
        &local,
        dir.path(),
        "entity.yaml",
        &pipeline("new", "", &wait("w", "1s")),
    );
    assert_eq!(code(&again), 0, "{}", errors(&again));
}
