//! Repositories behind SSH, by a program that stands in for `ssh` and runs what the host would.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use slipway_engine::gather::SourceReader;
use slipway_model::id::{AccountId, Scope};
use slipway_plan::ConnectorPlan;

use crate::support::{KEY, TOKEN, branch, commit, one, repository, shown, source_by, wanted};

const LIMIT: Duration = Duration::from_secs(20);

/// Notes how it was called, refuses as `ssh` does, and runs the host's part.
const STAND_IN: &str = r#"#!/bin/sh
here="${0%/*}"
printf '%s\n' "$@" > "$here/arguments"
env > "$here/environment"
for word in "$@"; do case "$word" in
  IdentityFile=*) key="${word#IdentityFile=}" ;;
esac; done
echo "$key" > "$here/place"
cat "$key" > "$here/key"
stat -c '%a' "$key" > "$here/mode"
stat -c '%a' "${key%/*}" >> "$here/mode"
if [ -n "$SSH_ASKPASS" ]; then "$SSH_ASKPASS" > "$here/phrase"; fi
while [ "$1" != "--" ]; do shift; done
case "$2" in
  unknown.example) echo "Host key verification failed." >&2; exit 255 ;;
  closed.example) echo "git@closed.example: Permission denied (publickey)." >&2; exit 255 ;;
  silent.example) exec sleep 60 ;;
esac
eval "exec git ${3#git-}"
"#;

pub fn stand_in(folder: &Path) -> PathBuf {
    let program = folder.join("ssh");
    std::fs::write(&program, STAND_IN).expect("a program");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("a mode");
    program
}

pub fn connector(url: &str, key: &str) -> ConnectorPlan {
    ConnectorPlan {
        reference: "account.code".to_owned(),
        kind: "Github".to_owned(),
        spec: json!({"url": url, "type": "Repo", "authentication": {"type": "Ssh", "spec": {"sshKeyRef": key}}}),
    }
}

#[tokio::test]
async fn one_commit_is_fetched_with_the_connectors_key() {
    let (folder, tools) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let [first, second] = repository(folder.path());
    let source = source_by(&stand_in(tools.path()), LIMIT);
    let code = connector(
        &format!("ssh://code.example{}", folder.path().display()),
        "account.ssh",
    );
    for (version, text, id) in [
        (branch("main"), "family: two", &second),
        (commit("v1"), "family: one", &first),
        (commit(&first), "family: one", &first),
    ] {
        let found = one(&source, wanted(&code, version, &["ecs/task.yaml"]))
            .await
            .expect("a file");
        assert_eq!(shown(&found), format!("ecs/task.yaml={text}"));
        assert_eq!(found.commit.as_ref(), Some(id));
    }
    let noted = |name: &str| std::fs::read_to_string(tools.path().join(name)).expect("a note");
    let arguments = noted("arguments");
    for expected in [
        "-F\nnone\n",
        "\nStrictHostKeyChecking=yes\n",
        "\nBatchMode=yes\n",
        "\nUserKnownHostsFile=\"/srv/known hosts\"\n",
        "\n-p\n2200\n-l\ndeploy\n--\ncode.example\ngit-upload-pack '/",
    ] {
        assert!(arguments.contains(expected), "{expected}: {arguments}");
    }
    assert_eq!(noted("key").trim(), KEY);
    assert_eq!(noted("mode"), "600\n700\n");
    for secret in [KEY, "bm8gcmVhbCBrZXk", TOKEN] {
        assert!(!arguments.contains(secret) && !noted("environment").contains(secret));
    }
    assert!(
        !Path::new(noted("place").trim()).exists(),
        "the key went with the fetch"
    );

    let missing = one(&source, wanted(&code, branch("mian"), &["ecs"]))
        .await
        .expect_err("no branch");
    assert!(
        missing.contains("the nearest that exist: `main`"),
        "{missing}"
    );

    // A passphrase reaches the program by a file that it asks, too.
    let code = connector(
        &format!("git@code.example:{}", folder.path().display()),
        "account.locked",
    );
    one(&source, wanted(&code, branch("main"), &["ecs"]))
        .await
        .expect("files");
    assert_eq!(noted("phrase"), "open s3same");
    assert!(noted("arguments").contains("\n-l\ngit\n"));
    assert!(!noted("environment").contains("s3same"));

    let scope = Scope::account(AccountId::new("acme"));
    let tested = source.test_connection(&code, &scope).await;
    assert!(matches!(tested, Some(Ok(()))), "{tested:?}");
}

#[tokio::test]
async fn a_host_that_does_not_let_us_in_is_told_apart() {
    let tools = tempfile::tempdir().expect("a folder");
    let source = source_by(&stand_in(tools.path()), LIMIT);
    let table = [
        (
            "git@unknown.example:a/b",
            "account.ssh",
            "put the host's key into the file that SLIPWAY_SSH_KNOWN_HOSTS names",
        ),
        (
            "git@closed.example:a/b",
            "account.ssh",
            "the host does not accept the connector's key",
        ),
        (
            "git@code.example:a/b",
            "account.ssh",
            "there is no such repository",
        ),
        (
            "git@code.example:a/b",
            "account.gone",
            "there is no secret account.gone",
        ),
        (
            "git@-oProxyCommand=x:a/b",
            "account.ssh",
            "no name of a host",
        ),
    ];
    for (url, key, expected) in table {
        let found = one(
            &source,
            wanted(&connector(url, key), branch("main"), &["ecs"]),
        )
        .await;
        let why = found.expect_err(expected);
        assert!(why.contains(expected), "{url}: {why}");
    }
    let absent = source_by(&tools.path().join("absent"), LIMIT);
    let code = connector("git@code.example:a/b", "account.ssh");
    let why = one(&absent, wanted(&code, branch("main"), &["ecs"]))
        .await
        .expect_err("no program");
    assert!(why.contains("install an SSH client"), "{why}");
}

#[tokio::test]
async fn a_host_that_never_answers_is_left_and_its_program_ended() {
    let tools = tempfile::tempdir().expect("a folder");
    let source = source_by(&stand_in(tools.path()), Duration::from_millis(500));
    let began = Instant::now();
    let code = connector("git@silent.example:a/b", "account.ssh");
    let why = one(&source, wanted(&code, branch("main"), &["ecs"]))
        .await
        .expect_err("no answer");
    assert!(began.elapsed() < Duration::from_secs(10), "{why}");
    assert!(why.contains("did not give them within"), "{why}");
}
