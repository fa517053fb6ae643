//! Scripts that print too much, or what nobody may see.

use std::path::Path;

use slipway_tests::LocalProcess;

use crate::{accept, code, errors, outcome, pipeline, run, script};

const SECRET: &str = "correct-horse-battery-staple";

/// Every file below a folder that holds the text.
fn holding(dir: &Path, text: &[u8], into: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            holding(&path, text, into);
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(text.len()).any(|part| part == text)
        {
            into.push(path.display().to_string());
        }
    }
}

#[test]
fn a_gigabyte_of_output_is_cut_and_the_step_ends_by_its_own_exit_code() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(&dir.path().join("data"));
    // Long lines: the pipe is the bound, not the number of lines.
    let steps = script(
        "loud",
        "head -c 1073741824 /dev/zero | tr '\\0' 'x' | fold -w 4000\necho end",
    );
    accept(&local, dir.path(), "p.yaml", &pipeline("loud", "", &steps));
    let output = run(&local, "loud", &[]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    let run = outcome(&output)["run"]
        .as_str()
        .expect("a run id")
        .to_owned();
    let logs = local.slipway(&["logs", &run]);
    assert!(
        logs.stdout.len() < 64 << 20,
        "{} bytes of log",
        logs.stdout.len()
    );
    let tail = &logs.stdout[logs.stdout.len().saturating_sub(2_000)..];
    let tail = String::from_utf8_lossy(tail);
    assert!(
        tail.contains("longer than"),
        "the log does not say that it was cut: {tail}"
    );
}

#[test]
fn a_secret_that_a_script_prints_is_masked_everywhere() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let local = LocalProcess::start(&data);
    let secret = format!(
        "secret:\n  type: SecretText\n  name: pw\n  identifier: pw\n  orgIdentifier: default\n  \
         projectIdentifier: default\n  spec:\n    secretManagerIdentifier: harnessSecretManager\n    \
         valueType: Inline\n    value: {SECRET}\n"
    );
    accept(&local, dir.path(), "secret.yaml", &secret);
    std::fs::remove_file(dir.path().join("secret.yaml")).expect("removed");
    let text = "pw='<+secrets.getValue(\"pw\")>'\necho \"plain $pw\"\n\
                printf 'base64 '; printf %s \"$pw\" | base64\necho \"$pw\" >&2\nfalse";
    accept(
        &local,
        dir.path(),
        "p.yaml",
        &pipeline("tells", "", &script("tell", text)),
    );
    let output = run(&local, "tells", &[]);
    assert_eq!(code(&output), 1, "{}", errors(&output));
    let run = outcome(&output)["run"]
        .as_str()
        .expect("a run id")
        .to_owned();
    let logs = local.slipway(&["logs", &run]);
    let logs = String::from_utf8_lossy(&logs.stdout).into_owned();
    assert!(logs.contains("plain ") && logs.contains('*'), "{logs}");
    let shown = [
        errors(&output),
        logs,
        local.json(&["get", "run", &run, "-o", "json"]).to_string(),
    ];
    for text in shown {
        assert!(!text.contains(SECRET), "{text}");
    }
    local.kill();
    let mut found = Vec::new();
    holding(&data, SECRET.as_bytes(), &mut found);
    found.retain(|path| !path.contains("/secrets"));
    assert!(found.is_empty(), "the secret stands in {found:?}");
}
