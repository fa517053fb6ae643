//! Scripts in a real bash, and a worker between a small service and a small activity.

use std::process::Command;
use std::time::{Duration, Instant};

use slipway_clock::Clock;
use slipway_plan::ArtifactVersion;
use slipway_steps::shell::artifacts::Listing;
use slipway_steps::shell::task::{Outcome, Output, Shell, Status};
use slipway_store::record::LogLine;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::claim::TaskFolder;
use super::mask::Secrets;
use super::script::{self, Script};

const LONG: Duration = Duration::from_secs(60);

fn script(text: &str) -> Script {
    let output = |name: &str, secret| Output {
        name: name.to_owned(),
        variable: name.to_lowercase(),
        secret,
    };
    Script {
        shell: Shell::Bash,
        text: text.to_owned(),
        environment: vec![("GIVEN".to_owned(), "a $(id) 'b'\n\"c\"".to_owned())],
        outputs: vec![output("A", false), output("B", true), output("C", false)],
        working_directory: None,
        timeout: LONG,
        grace: Duration::from_millis(300),
        log_limit: 1024 * 1024,
        artifacts: None,
    }
}

/// Runs a script; its outcome (`None` if cancelled) and the lines of its log.
async fn run(script: Script, cancel: CancellationToken) -> (Option<Outcome>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let task = TaskFolder::create(folder.path().join("task")).expect("a folder");
    let (sender, mut receiver) = mpsc::channel::<LogLine>(16);
    let secrets = Secrets::new(["hunter2"]);
    let clock = Clock::system();
    let collect = async {
        let mut lines = Vec::new();
        while let Some(line) = receiver.recv().await {
            lines.push(format!("{} {}", line.level, line.out.trim_end()));
        }
        lines
    };
    let work = async {
        let outcome = script::run(&script, &task, &secrets, &clock, &sender, &cancel).await;
        drop(sender);
        outcome.expect("bash starts")
    };
    tokio::join!(work, collect)
}

async fn outcome(text: &str) -> (Outcome, Vec<String>) {
    let (outcome, lines) = run(script(text), CancellationToken::new()).await;
    (outcome.expect("not cancelled"), lines)
}

#[tokio::test]
async fn variables_are_reported_however_a_script_ends_well() {
    let endings = [
        "",
        "exit 0",
        "exit",
        "trap 'echo mine' EXIT; exit 0",
        "(exit 7); true",
        "set -euo pipefail; f() { return 0; }; f",
        "return 0",
        "exec >/dev/null 2>&1",
    ];
    for ending in endings {
        let text = format!("a=$'two\\nlines'; export b=x; unset c\n{ending}\n");
        let (outcome, lines) = outcome(&text).await;
        assert_eq!(outcome.status, Status::Success, "{ending}: {lines:?}");
        assert_eq!(outcome.outputs["A"], "two\nlines", "{ending}");
        assert_eq!(outcome.secret_outputs, ["B"], "{ending}");
        assert!(!outcome.outputs.contains_key("C"), "{ending}");
    }
}

#[tokio::test]
async fn what_holds_a_secret_is_a_secret_whatever_its_type() {
    let (outcome, _) = outcome("a=pre-hunter2; b=x; c=plain").await;
    assert_eq!(outcome.secret_outputs, ["A", "B"]);
    assert_eq!(outcome.outputs["C"], "plain");
}

/// A script that is asked for the last of its versions.
fn lists(text: &str) -> Script {
    let attributes = [("url".to_owned(), "url".to_owned())];
    Script {
        artifacts: Some(Listing {
            source: 1,
            array: "$.items".to_owned(),
            version: "version".to_owned(),
            attributes: attributes.into(),
            wanted: ArtifactVersion::Last,
            every: false,
        }),
        ..script(text)
    }
}

#[tokio::test]
async fn a_script_lists_artifacts_in_the_file_that_it_is_given() {
    let list =
        r#"{"items": [{"version": "1.9"}, {"version": "1.10", "url": "https://x/?key=hunter2"}]}"#;
    for ending in ["", "exit 0", "cd /", "unset HARNESS_ARTIFACT_RESULT_PATH"] {
        let text = format!("echo '{list}' > $HARNESS_ARTIFACT_RESULT_PATH; {ending}");
        let (outcome, lines) = run(lists(&text), CancellationToken::new()).await;
        let outcome = outcome.expect("not cancelled");
        assert_eq!(
            outcome.status,
            Status::Success,
            "{lines:?} {:?}",
            outcome.message
        );
        let chosen = outcome.artifact.expect("an artifact");
        assert_eq!((chosen.source, &*chosen.found.version), (1, "1.10"));
        assert_eq!(
            chosen.found.metadata["url"],
            "https://x/?key=**************"
        );
    }
    let (outcome, _) = outcome("[[ -z ${HARNESS_ARTIFACT_RESULT_PATH+set} ]]").await;
    assert_eq!((outcome.status, outcome.artifact), (Status::Success, None));
}

#[tokio::test]
async fn who_asks_for_all_that_a_script_lists_is_told_all() {
    let list =
        r#"{"items": [{"version": "1.10", "url": "https://x/?key=hunter2"}, {"version": "1.9"}]}"#;
    let mut script = lists(&format!("echo '{list}' > $HARNESS_ARTIFACT_RESULT_PATH"));
    script.artifacts = script.artifacts.map(|listing| Listing {
        every: true,
        ..listing
    });
    let (outcome, _) = run(script, CancellationToken::new()).await;
    let outcome = outcome.expect("not cancelled");
    assert_eq!((outcome.status, outcome.artifact), (Status::Success, None));
    let all = outcome.artifacts.expect("a list");
    let versions: Vec<&str> = all.iter().map(|found| &*found.version).collect();
    assert_eq!(versions, ["1.9", "1.10"]);
    assert_eq!(all[1].metadata["url"], "https://x/?key=**************");
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_told_of() {
    let table = [
        (
            "true",
            "wrote no file where $HARNESS_ARTIFACT_RESULT_PATH says",
        ),
        (
            "mkfifo $HARNESS_ARTIFACT_RESULT_PATH",
            "wrote no file where",
        ),
        ("mkdir $HARNESS_ARTIFACT_RESULT_PATH", "wrote no file where"),
        (
            ": > $HARNESS_ARTIFACT_RESULT_PATH",
            "wrote nothing into the file",
        ),
        ("echo hunter2 > $HARNESS_ARTIFACT_RESULT_PATH", "is no JSON"),
        (
            "truncate -s 11MB $HARNESS_ARTIFACT_RESULT_PATH",
            "at most 10000000 are read: let it ask for fewer",
        ),
    ];
    for (text, expected) in table {
        let (outcome, _) = run(lists(text), CancellationToken::new()).await;
        let outcome = outcome.expect("not cancelled");
        assert_eq!(outcome.status, Status::Failure, "{text}");
        let message = outcome.message.expect("a message");
        assert!(message.contains(expected), "{text}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

/// A program in the place of PowerShell that takes its arguments as PowerShell does, and runs the script, which bash
/// understands, as the wrapper says: the script, then the report.
const PWSH: &str = r#"#!/bin/bash
[[ "$1 $2 $3 $4" == "-NoLogo -NoProfile -NonInteractive -File" && $5 == */wrapper.ps1 ]] || exit 64
grep -q 'Get-Variable -Name' "$5" || exit 65
script=$6 outputs=$7; shift 7
trap 'for name; do [[ -n ${!name+set} ]] && printf "%s\0%s\0" "$name" "${!name}"; done >"$outputs"' EXIT
. "$script" || exit
"#;

fn powershell(text: &str, folder: &std::path::Path) -> Script {
    use std::os::unix::fs::PermissionsExt;
    let program = folder.join("pwsh");
    std::fs::write(&program, PWSH).expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let mut script = script(text);
    let path = format!("{}:/usr/bin:/bin", folder.display());
    script.environment.push(("PATH".to_owned(), path));
    script.shell = Shell::PowerShell;
    script
}

#[tokio::test]
async fn a_script_for_powershell_is_run_by_pwsh() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = powershell("echo \"given $GIVEN\"; a=1; b=hunter2", folder.path());
    let (outcome, lines) = run(whole, CancellationToken::new()).await;
    let outcome = outcome.expect("not cancelled");
    assert_eq!(outcome.status, Status::Success, "{lines:?}");
    assert_eq!(
        (&*outcome.outputs["A"], &*outcome.outputs["B"]),
        ("1", "hunter2")
    );
    assert!(lines[0].starts_with("INFO given a $(id)"), "{lines:?}");

    let fails = powershell("exit 7", folder.path());
    let (outcome, _) = run(fails, CancellationToken::new()).await;
    assert_eq!(outcome.expect("not cancelled").exit_code, Some(7));

    let mut hangs = powershell("sleep 4712 & sleep 4712", folder.path());
    hangs.timeout = Duration::from_millis(500);
    let began = Instant::now();
    let (outcome, _) = run(hangs, CancellationToken::new()).await;
    assert_eq!(outcome.expect("not cancelled").status, Status::Timeout);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_delegate_without_powershell_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut script = powershell("exit 0", folder.path());
    std::fs::remove_file(folder.path().join("pwsh")).expect("removed");
    script.environment.retain(|(name, _)| name != "PATH");
    script
        .environment
        .push(("PATH".to_owned(), folder.path().display().to_string()));
    let (outcome, _) = run(script, CancellationToken::new()).await;
    let outcome = outcome.expect("not cancelled");
    assert_eq!((outcome.status, outcome.exit_code), (Status::Failure, None));
    let message = outcome.message.expect("a message");
    assert!(
        message.contains("has no `pwsh` (PowerShell 7) in its PATH"),
        "{message}"
    );
}

#[tokio::test]
async fn a_script_fails_with_its_exit_code() {
    for (text, code) in [
        ("exit 3", 3),
        ("set -e; false; echo no", 1),
        ("no_such_command", 127),
    ] {
        let (outcome, lines) = outcome(text).await;
        assert_eq!(
            (outcome.status, outcome.exit_code),
            (Status::Failure, Some(code)),
            "{lines:?}"
        );
        assert!(outcome.outputs.is_empty());
    }
    let (outcome, _) = outcome("kill -SEGV $$").await;
    assert!(outcome.message.expect("a message").contains("signal 11"));
}

#[tokio::test]
async fn a_script_sees_what_it_was_given_and_nothing_else() {
    let (_, lines) = outcome(
        "printf '%s\\n' \"$GIVEN\"; env | cut -d= -f1 | sort | tr '\\n' ' '; echo >&2 hunter2; read x || echo eof",
    )
    .await;
    let (errors, output): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| line.starts_with("ERROR"));
    assert_eq!(errors, ["ERROR **************"]);
    assert_eq!(output[..2], ["INFO a $(id) 'b'", "INFO \"c\""]);
    let names: Vec<_> = output[2]
        .split_whitespace()
        .filter(|name| *name != "INFO")
        .collect();
    let known = [
        "\"c\"", "GIVEN", "HOME", "OLDPWD", "PATH", "PWD", "SHLVL", "TMPDIR", "_", "eof",
    ];
    assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
}

/// Processes whose command line holds `marker`.
fn alive(marker: &str) -> usize {
    let list = Command::new("ps")
        .args(["-eo", "args"])
        .output()
        .expect("ps");
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    text.lines().filter(|line| line.contains(marker)).count()
}

async fn until_dead(marker: &str) {
    let start = Instant::now();
    while alive(marker) > 0 {
        assert!(start.elapsed() < LONG, "{marker} lives on");
        Clock::system().sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_script_that_takes_too_long_is_ended_with_all_its_children() {
    let deaf = "trap '' TERM; sleep 4711.1 & sleep 4711.1; sleep 4711.1";
    for text in ["sleep 4711.1 & sleep 4711.1", deaf] {
        let late = Script {
            timeout: Duration::from_millis(300),
            ..script(text)
        };
        let (outcome, _) = run(late, CancellationToken::new()).await;
        assert_eq!(
            outcome.map(|outcome| outcome.status),
            Some(Status::Timeout),
            "{text}"
        );
        until_dead("sleep 4711.1").await;
    }
}

#[tokio::test]
async fn a_cancelled_script_ends_and_background_work_does_not_outlive_a_script() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (outcome, _) = run(script("sleep 4711.2"), cancel).await;
    assert_eq!(outcome, None);
    let (outcome, _) = run(script("sleep 4711.2 & echo done"), CancellationToken::new()).await;
    assert_eq!(outcome.map(|outcome| outcome.status), Some(Status::Success));
    let (outcome, _) = run(script("true & wait; echo done"), CancellationToken::new()).await;
    assert_eq!(outcome.map(|outcome| outcome.status), Some(Status::Success));
    until_dead("sleep 4711.2").await;
}

#[tokio::test]
async fn a_flood_of_output_ends_in_a_line_that_says_so() {
    let (outcome, lines) = outcome("head -c 100000000 /dev/zero | tr '\\0' 'x'; a=end").await;
    assert_eq!(outcome.outputs["A"], "end");
    assert!(lines.iter().map(String::len).sum::<usize>() < 1_200_000);
    assert!(lines.last().expect("lines").contains("longer than 1 MiB"));
}

/// The end of the pipe is all that the death of a delegate leaves behind, so this is what SIGKILL looks
/// like from the script's side.
#[tokio::test]
async fn a_script_dies_with_its_delegate() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("w.sh"), include_str!("wrapper.sh")).expect("the wrapper");
    std::fs::write(
        path("s.sh"),
        "trap '' TERM HUP INT; sleep 4711.3 & sleep 4711.3",
    )
    .expect("a script");
    let hold = "exec 8> >(exec setsid bash \"$0\" \"$1\" \"$2\"); exec sleep 4711.4";
    let mut delegate = Command::new("bash")
        .args(["-c", hold])
        .args([path("w.sh"), path("s.sh"), path("outputs")])
        .spawn()
        .expect("bash");
    let start = Instant::now();
    while alive("sleep 4711.3") < 2 {
        assert!(start.elapsed() < LONG);
        Clock::system().sleep(Duration::from_millis(20)).await;
    }
    delegate.kill().expect("SIGKILL");
    delegate.wait().expect("its end");
    until_dead("sleep 4711.3").await;
}
