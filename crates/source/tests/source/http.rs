//! Repositories of other hosts.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use slipway_engine::gather::SourceReader;

use crate::host::Host;
use crate::support::{
    TOKEN, anonymous, branch, commit, connector, git, one, repository, shown, source, wanted, write,
};

const LIMIT: Duration = Duration::from_secs(20);

/// `jo:t0p-s3cret-token`, as a browser would send it.
const BASIC: &str = "Basic am86dDBwLXMzY3JldC10b2tlbg==";

fn login(user: &str) -> Value {
    json!({"type": "UsernameToken", "spec": {"username": user, "tokenRef": "account.token"}})
}

#[tokio::test]
async fn one_commit_is_fetched_with_the_connectors_login() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, second] = repository(folder.path());
    let host = Host::start(folder.path().to_owned(), Some(BASIC.to_owned())).await;
    let code = connector(&host.url("/acme/shop"), login("jo"));
    let source = source(false, LIMIT);
    for (version, text, id) in [
        (branch("main"), "family: two", &second),
        (branch("release/2"), "family: two", &second),
        (commit("v1"), "family: one", &first),
        (commit(&first), "family: one", &first),
    ] {
        let found = one(&source, wanted(&code, version, &["ecs/task.yaml"])).await;
        let found = found.expect("a file");
        assert_eq!(shown(&found), format!("ecs/task.yaml={text}"));
        assert_eq!(found.commit.as_ref(), Some(id));
    }
    // Several manifests of one version are one fetch.
    let before = host.posts();
    let two = ["ecs/task.yaml", "ecs/more"].map(|path| wanted(&code, branch("main"), &[path]));
    let found = source.fetch_files(&two).await;
    assert!(found.iter().all(Result::is_ok), "{found:?}");
    assert_eq!(host.posts() - before, 2, "a list of branches and one pack");
    // What was read is not fetched again while its branch stands; its host still says who may see it.
    let before = host.posts();
    let found = source.fetch_files(&two).await;
    assert!(found.iter().all(Result::is_ok), "{found:?}");
    assert_eq!(host.posts() - before, 1, "a list of branches");
    git(folder.path(), &["commit", "-qam", "third"]);
    let newer = one(&source, wanted(&code, branch("main"), &["ecs/task.yaml"])).await;
    assert_eq!(
        shown(&newer.expect("a file")),
        "ecs/task.yaml=family: dirty"
    );
}

#[tokio::test]
async fn a_host_that_does_not_give_it_is_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let open = Host::start(folder.path().to_owned(), None).await;
    let closed = Host::start(folder.path().to_owned(), Some(BASIC.to_owned())).await;
    let missing = "c0ffee12".repeat(5);
    let table = [
        (
            closed.url("/acme/shop"),
            anonymous(),
            branch("main"),
            "the host asks for a login, and the connector has none",
        ),
        (
            closed.url("/acme/shop"),
            login("eve"),
            branch("main"),
            "the host does not accept the connector's login",
        ),
        (
            open.url("/acme/shop"),
            login("jo"),
            branch("mian"),
            "there is no branch `mian`",
        ),
        (
            open.url("/acme/shop"),
            login("jo"),
            branch("mian"),
            "the nearest that exist: `main`, `release/2`",
        ),
        (
            open.url("/acme/shop"),
            login("jo"),
            commit("v7"),
            "the nearest that exist: `v1`",
        ),
        (
            open.url("/acme/shop"),
            login("jo"),
            commit(&missing),
            "it has no such commit",
        ),
        (
            open.url("/acme/dns-403-credential"),
            login("jo"),
            branch("main"),
            "there is no such repository",
        ),
        (
            open.url("/forbidden"),
            login("jo"),
            branch("main"),
            "the connector's login may not read it",
        ),
        (
            open.url("/page"),
            login("jo"),
            branch("main"),
            "cannot fetch from the repository",
        ),
        (
            "http://no-such-host.invalid/x".to_owned(),
            login("jo"),
            branch("main"),
            "its host is not known",
        ),
        (
            // Leads here, and is no name of this machine alone.
            closed.url("/acme/shop").replace("127.0.0.1", "0.0.0.0"),
            login("jo"),
            branch("main"),
            "a login is not sent over http: give the connector an https address",
        ),
        (
            "http://127.0.0.1:1/x".to_owned(),
            login("jo"),
            branch("main"),
            "check the connector's `url` and the network",
        ),
        (
            open.url("/acme/shop"),
            json!({"type": "UsernameToken", "spec": {"tokenRef": "gone"}}),
            branch("main"),
            "there is no secret gone",
        ),
        (
            open.url("/acme/shop"),
            json!({"type": "GithubApp", "spec": {}}),
            branch("main"),
            "it has no `applicationId`",
        ),
    ];
    let source = source(false, LIMIT);
    for (url, login, version, expected) in table {
        let code = connector(&url, login);
        let found = one(&source, wanted(&code, version, &["ecs"])).await;
        let why = found.expect_err(expected);
        assert!(why.contains(expected), "{url}: {why}");
        assert!(!why.contains(TOKEN) && !why.contains("am86"), "{why}");
    }
}

#[tokio::test]
async fn a_host_that_never_answers_and_one_that_never_ends_are_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Host::start(folder.path().to_owned(), None).await;
    let source = source(false, Duration::from_millis(500));
    for path in ["/silent", "/endless"] {
        let began = Instant::now();
        let code = connector(&host.url(path), anonymous());
        let found = one(&source, wanted(&code, branch("main"), &["a"])).await;
        let why = found.expect_err(path);
        assert!(began.elapsed() < Duration::from_secs(10), "{path}: {why}");
        assert!(!why.is_empty(), "{path}");
    }
}

#[tokio::test]
async fn a_huge_object_and_a_link_do_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    git(path, &["init", "-q"]);
    // Zeros are small in a pack and large in memory.
    write(path, "bomb.yaml", vec![0; 96 << 20]);
    write(path, "small.yaml", "a: 1");
    std::os::unix::fs::symlink("/etc/passwd", path.join("passwd")).expect("a link");
    git(path, &["add", "."]);
    git(path, &["commit", "-qm", "bomb"]);
    let host = Host::start(path.to_owned(), None).await;
    let code = connector(&host.url("/acme/shop"), anonymous());
    let source = source(false, LIMIT);
    let found = one(&source, wanted(&code, branch("main"), &["small.yaml"])).await;
    let why = found.expect_err("a refusal");
    assert!(why.contains("an object of more than 64 MB"), "{why}");
    git(path, &["rm", "-q", "--cached", "bomb.yaml"]);
    git(path, &["commit", "-qm", "no bomb"]);
    for (file, expected) in [
        ("bomb.yaml", "the nearest that exist: `small.yaml`"),
        ("passwd", "symbolic link"),
        ("../../etc/passwd", "there is no file or folder"),
    ] {
        let found = one(&source, wanted(&code, branch("main"), &[file])).await;
        let why = found.expect_err(file);
        assert!(why.contains(expected), "{file}: {why}");
    }
    assert_eq!(left_behind(), Vec::<String>::new());
}

/// Temporary repositories of this process that were not removed.
fn left_behind() -> Vec<String> {
    let all = std::fs::read_dir(std::env::temp_dir()).expect("the folder for temporary files");
    let folders = all.flatten().map(|entry| entry.path());
    folders
        .filter(|path| fetched(path))
        .map(|path| path.display().to_string())
        .collect()
}

fn fetched(path: &Path) -> bool {
    path.join("refs/slipway").is_dir()
}
