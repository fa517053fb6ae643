//! Entities in Git: kept in a repository of this machine, and refused wherever they cannot be.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Api, SCOPE};

pub(super) const PIPELINE: &str = "pipeline:\n  name: p\n  identifier: p\n  orgIdentifier: default\n  projectIdentifier: default\n  stages:\n    - stage:\n        name: s\n        identifier: s\n        type: Custom\n        spec:\n          execution:\n            steps:\n              - step:\n                  name: w\n                  identifier: w\n                  type: Wait\n                  spec:\n                    duration: 1s\n";
pub(super) const SET: &str = "inputSet:\n  name: i\n  identifier: i\n  orgIdentifier: default\n  projectIdentifier: default\n  pipeline:\n    identifier: p\n";

pub(super) const FILE: &str = ".harness/p.yaml";

/// Runs git in a folder; the person's own settings do not matter.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A bare repository with one commit, and a copy in which somebody else works.
pub(super) struct Repository {
    bare: tempfile::TempDir,
    work: tempfile::TempDir,
}

impl Repository {
    pub(super) fn new() -> Self {
        let folder = || tempfile::tempdir().expect("a folder");
        let made = Self {
            bare: folder(),
            work: folder(),
        };
        git(made.bare.path(), &["init", "-q", "--bare"]);
        git(
            made.work.path(),
            &["clone", "-q", &made.bare.path().display().to_string(), "."],
        );
        git(made.work.path(), &["checkout", "-q", "-B", "main"]);
        made.commit("main", "README", "shop");
        made
    }

    /// Somebody else commits a file to a branch; the commit.
    pub(super) fn commit(&self, branch: &str, file: &str, text: &str) -> String {
        let work = self.work.path();
        if !self.bare.path().join("refs/heads/main").exists() {
            git(work, &["commit", "-q", "--allow-empty", "-m", "first"]);
            git(work, &["push", "-q", "origin", "main"]);
        }
        git(work, &["fetch", "-q", "origin"]);
        let known = Command::new("git")
            .current_dir(work)
            .args(["rev-parse", "-q", "--verify", &format!("origin/{branch}")])
            .output()
            .expect("git runs");
        let from = if known.status.success() {
            branch
        } else {
            "main"
        };
        git(
            work,
            &["checkout", "-q", "-B", branch, &format!("origin/{from}")],
        );
        let path = work.join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
        git(work, &["add", "."]);
        git(work, &["commit", "-qm", "theirs"]);
        git(work, &["push", "-q", "origin", branch]);
        self.head(branch)
    }

    pub(super) fn head(&self, branch: &str) -> String {
        git(self.bare.path(), &["rev-parse", branch])
    }

    pub(super) fn show(&self, branch: &str, file: &str) -> String {
        git(self.bare.path(), &["show", &format!("{branch}:{file}")]) + "\n"
    }
}

impl Api {
    /// One with a connector `code` to a repository.
    pub(super) async fn with_repository(repository: &Repository) -> Self {
        let api = Self::new().await;
        let url = format!("file://{}", repository.bare.path().display());
        let connector = format!(
            "connector:\n  name: code\n  identifier: code\n  orgIdentifier: default\n  projectIdentifier: default\n  type: Git\n  spec:\n    url: {url}\n    type: Http\n    connectionType: Repo\n    spec: {{}}\n"
        );
        let files = json!({"files": [{"file": "code.yaml", "yaml": connector}]});
        let rows = api
            .post(&format!("/slipway/api/apply?{SCOPE}"), &files)
            .await
            .data();
        assert_eq!(rows[0]["result"], "created", "{rows}");
        api
    }

    async fn send_yaml(&self, method: &str, path: &str, yaml: &str) -> super::Answer {
        self.call(method, path, "application/yaml", yaml).await
    }

    /// Creates the pipeline in Git.
    async fn create_remote(&self) -> Value {
        let path = format!(
            "/pipeline/api/pipelines/v2?{SCOPE}&storeType=REMOTE&connectorRef=code&branch=main&filePath={FILE}&commitMsg=Hello"
        );
        self.send_yaml("POST", &path, PIPELINE).await.data()
    }

    async fn pipeline(&self, more: &str) -> Value {
        self.get(&format!("/pipeline/api/pipelines/p?{SCOPE}{more}"))
            .await
            .data()
    }

    /// What a run was read from.
    async fn run(&self, more: &str) -> Value {
        let path = format!("/pipeline/api/pipeline/execute/p?{SCOPE}{more}");
        let started = self.send_yaml("POST", &path, "").await.data();
        let id = started["planExecution"]["uuid"]
            .as_str()
            .expect("an id")
            .to_owned();
        let shown = self
            .get(&format!(
                "/pipeline/api/pipelines/execution/v2/{id}?{SCOPE}"
            ))
            .await
            .data();
        shown["pipelineExecutionSummary"].clone()
    }
}

#[tokio::test]
async fn a_pipeline_is_saved_to_git_and_run_as_git_has_it() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    let made = api.create_remote().await;
    assert_eq!(repository.show("main", FILE), PIPELINE);
    assert_eq!(
        git(
            repository.bare.path(),
            &["log", "-1", "--format=%s", "main"]
        ),
        "Hello"
    );
    assert_eq!(made["gitDetails"]["commitId"], repository.head("main"));

    let shown = api.pipeline("").await;
    assert_eq!(
        (shown["storeType"].as_str(), shown["connectorRef"].as_str()),
        (Some("REMOTE"), Some("code"))
    );
    let details = &shown["gitDetails"];
    assert_eq!(
        (details["branch"].as_str(), details["filePath"].as_str()),
        (Some("main"), Some(FILE))
    );
    assert_eq!(
        details["objectId"],
        git(
            repository.bare.path(),
            &["rev-parse", &format!("main:{FILE}")]
        )
    );
    assert_eq!(details["drift"], false);

    // Somebody else changes it: drift is shown, and a run does what Git says, at one commit.
    let theirs = repository.commit(
        "main",
        FILE,
        &PIPELINE.replace("duration: 1s", "duration: 7s"),
    );
    let shown = api.pipeline("").await;
    assert!(
        shown["yamlPipeline"]
            .as_str()
            .is_some_and(|yaml| yaml.contains("7s")),
        "{shown}"
    );
    assert_eq!(shown["gitDetails"]["drift"], true);
    assert_ne!(shown["gitDetails"]["lastReadCommitId"], theirs);
    let kept = api.pipeline("&loadFromCache=true").await;
    assert!(
        kept["yamlPipeline"]
            .as_str()
            .is_some_and(|yaml| yaml.contains("1s")),
        "{kept}"
    );
    let run = api.run("").await;
    assert_eq!(
        (
            run["gitDetails"]["commitId"].as_str(),
            run["gitDetails"]["branch"].as_str()
        ),
        (Some(theirs.as_str()), Some("main"))
    );
    assert_eq!(
        api.pipeline("").await["gitDetails"]["drift"],
        false,
        "it was read by the run"
    );

    // Another branch.
    let feature = repository.commit(
        "feature/x",
        FILE,
        &PIPELINE.replace("duration: 1s", "duration: 9s"),
    );
    let run = api.run("&branch=feature/x").await;
    assert_eq!(
        (
            run["gitDetails"]["commitId"].as_str(),
            run["gitDetails"]["branch"].as_str()
        ),
        (Some(feature.as_str()), Some("feature/x"))
    );
    let shown = api.pipeline("&branch=feature/x").await;
    assert!(
        shown["yamlPipeline"]
            .as_str()
            .is_some_and(|yaml| yaml.contains("9s")),
        "{shown}"
    );
    assert_eq!(
        shown["gitDetails"]["drift"], false,
        "another branch is no drift"
    );
    let plan = format!("/slipway/api/plan/p?{SCOPE}&branch=feature/x");
    assert!(
        api.send_yaml("POST", &plan, "").await.data()["text"]
            .as_str()
            .is_some_and(|text| text.contains("9s"))
    );
    let back = api
        .pipeline("&branch=gone&loadFromFallbackBranch=true")
        .await;
    assert_eq!(back["gitDetails"]["branch"], "main");
    let listed = api
        .post(&format!("/pipeline/api/pipelines/list?{SCOPE}"), &json!({}))
        .await
        .data();
    assert_eq!(listed["content"][0]["storeType"], "REMOTE");
}

#[tokio::test]
async fn what_git_cannot_give_is_told_and_what_was_accepted_stays() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    api.create_remote().await;
    let run = |more: &str| format!("/pipeline/api/pipeline/execute/p?{SCOPE}{more}");
    let refused = async |more: &str| api.send_yaml("POST", &run(more), "").await.refusal().2;

    let broken = repository.commit(
        "main",
        FILE,
        "pipeline:\n  name: p\n  identifier: p\n  stages: 7\n",
    );
    let why = refused("").await;
    assert!(why.contains(&format!("{FILE} at {broken}:4:")), "{why}");
    let shown = api.pipeline("").await;
    assert_eq!(shown["entityValidityDetails"]["valid"], false);
    assert!(
        shown["entityValidityDetails"]["invalidYaml"]
            .as_str()
            .is_some_and(|yaml| yaml.contains("stages: 7"))
    );
    assert!(
        shown["yamlSchemaErrorWrapper"]["message"]
            .as_str()
            .is_some_and(|why| why.contains(&broken))
    );
    let kept = api.pipeline("&loadFromCache=true").await;
    assert_eq!(kept["yamlPipeline"], PIPELINE);

    repository.commit("main", FILE, &PIPELINE.replace(": p\n", ": q\n"));
    let why = refused("").await;
    assert!(
        why.contains("holds pipeline q, and not pipeline p"),
        "{why}"
    );
    repository.commit(
        "main",
        FILE,
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    );
    assert!(refused("").await.contains("a pointer of Git LFS"));
    repository.commit("main", FILE, &"#".repeat((1 << 20) + 1));
    assert!(refused("").await.contains("an entity at most 1048576"));
    let why = refused("&branch=mian").await;
    assert!(
        why.contains("there is no branch `mian`") && why.contains("nearest that exist: `main`"),
        "{why}"
    );
    assert!(
        refused("&branch=--upload-pack%3Dx")
            .await
            .contains("is no name of a branch")
    );
    git(repository.work.path(), &["rm", "-q", FILE]);
    repository.commit("main", "README", "no pipeline");
    let why = refused("").await;
    assert!(
        why.contains("there is no file or folder .harness/p.yaml"),
        "{why}"
    );
    std::fs::remove_dir_all(repository.bare.path()).expect("it goes");
    assert!(refused("").await.contains("does not exist on this machine"));
    let kept = api.pipeline("&loadFromCache=true").await;
    assert_eq!(kept["yamlPipeline"], PIPELINE);
}

#[tokio::test]
async fn a_change_is_saved_to_a_branch_and_never_over_what_others_wrote() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    let first = api.create_remote().await["gitDetails"].clone();
    let (object, commit) = (
        first["objectId"].as_str().expect("an id"),
        first["commitId"].as_str().expect("an id"),
    );
    let update = |more: &str| format!("/pipeline/api/pipelines/v2/p?{SCOPE}{more}");
    let with = |duration: &str| PIPELINE.replace("duration: 1s", &format!("duration: {duration}"));

    let path = update(&format!(
        "&branch=main&lastObjectId={object}&lastCommitId={commit}&commitMsg=Two"
    ));
    let second = api.send_yaml("PUT", &path, &with("2s")).await.data()["gitDetails"].clone();
    assert_eq!(repository.show("main", FILE), with("2s"));
    assert_eq!(second["commitId"], repository.head("main"));

    // Whoever still has the first version in hand.
    let (code, _, why) = {
        let refused = api.send_yaml("PUT", &path, &with("3s")).await.refusal();
        (refused.0, refused.1, refused.2)
    };
    assert_eq!(code, 409, "{why}");
    assert!(
        why.contains(commit)
            && why.contains(&repository.head("main"))
            && why.contains("nothing was written"),
        "{why}"
    );
    assert_eq!(repository.show("main", FILE), with("2s"));
    let resolved = update(&format!(
        "&lastObjectId={object}&resolvedConflictCommitId={}",
        repository.head("main")
    ));
    api.send_yaml("PUT", &resolved, &with("3s")).await.data();
    assert_eq!(repository.show("main", FILE), with("3s"));

    // A new branch leaves the entity's own alone.
    let fresh = update("&branch=feature/y&isNewBranch=true&baseBranch=main");
    let made = api.send_yaml("PUT", &fresh, &with("4s")).await.data();
    assert_eq!(made["gitDetails"]["branch"], "feature/y");
    assert_eq!(repository.show("feature/y", FILE), with("4s"));
    assert_eq!(api.pipeline("").await["yamlPipeline"], with("3s"));
    let blind = update("&branch=feature/y");
    let why = api.send_yaml("PUT", &blind, &with("5s")).await.refusal().2;
    assert!(why.contains("lastObjectId"), "{why}");

    // `apply` saves where it is kept; a file that others changed since is not overwritten.
    let apply = format!("/slipway/api/apply?{SCOPE}");
    let files = |yaml: String| json!({"files": [{"file": "p.yaml", "yaml": yaml}]});
    let rows = api.post(&apply, &files(with("6s"))).await.data();
    assert_eq!(rows[0]["result"], "updated", "{rows}");
    assert_eq!(repository.show("main", FILE), with("6s"));
    repository.commit("main", FILE, &with("8s"));
    let rows = api.post(&apply, &files(with("7s"))).await.data();
    assert_eq!(rows[0]["result"], "refused", "{rows}");
    assert_eq!(repository.show("main", FILE), with("8s"));

    for path in ["../x.yaml", ".git/config.yaml", "a/.GIT/x.yaml", "x.txt"] {
        let hostile = format!(
            "/pipeline/api/pipelines/v2?{SCOPE}&storeType=REMOTE&connectorRef=code&filePath={path}"
        );
        let why = api
            .send_yaml("POST", &hostile, &PIPELINE.replace(": p\n", ": h\n"))
            .await
            .refusal()
            .2;
        assert!(why.contains("is no path for an entity"), "{path}: {why}");
    }
}

#[tokio::test]
async fn input_sets_come_from_the_branch_of_the_run() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    let asking = PIPELINE.replace("duration: 1s", "duration: <+input>");
    let path = format!(
        "/pipeline/api/pipelines/v2?{SCOPE}&storeType=REMOTE&connectorRef=code&branch=main"
    );
    api.send_yaml("POST", &path, &asking).await.data();
    let set = |duration: &str| {
        format!(
            "{SET}    stages:\n      - stage:\n          identifier: s\n          type: Custom\n          spec:\n            execution:\n              steps:\n                - step:\n                    identifier: w\n                    type: Wait\n                    spec:\n                      duration: {duration}\n"
        )
    };
    let sets = format!(
        "/pipeline/api/inputSets?{SCOPE}&pipelineIdentifier=p&storeType=REMOTE&connectorRef=code&branch=main&filePath=sets/i.yaml"
    );
    let made = api.send_yaml("POST", &sets, &set("11s")).await.data();
    assert_eq!(made["gitDetails"]["filePath"], "sets/i.yaml");
    repository.commit("feature/z", "sets/i.yaml", &set("22s"));
    for (branch, expected) in [("", "11s"), ("&branch=feature/z", "22s")] {
        let plan = format!("/slipway/api/plan/p?{SCOPE}&inputSetIdentifiers=i{branch}");
        let text = api.send_yaml("POST", &plan, "").await.data()["text"].to_string();
        assert!(text.contains(expected), "{branch}: {text}");
    }
    let shown = format!("/pipeline/api/inputSets/i?{SCOPE}&pipelineIdentifier=p&branch=feature/z");
    let shown = api.get(&shown).await.data();
    assert!(
        shown["inputSetYaml"]
            .as_str()
            .is_some_and(|yaml| yaml.contains("22s")),
        "{shown}"
    );
}

#[tokio::test]
async fn pipelines_are_imported_from_git_and_moved_there_and_back() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    let commit = repository.commit("main", "ci/p.yaml", PIPELINE);
    let import = format!(
        "/pipeline/api/pipelines/import?{SCOPE}&connectorRef=code&branch=main&filePath=ci/p.yaml"
    );
    assert_eq!(
        api.post(&import, &json!({"pipelineName": "p"}))
            .await
            .data()["identifier"],
        "p"
    );
    assert_eq!(api.pipeline("").await["gitDetails"]["commitId"], commit);
    let moved = |kind: &str, more: &str| {
        format!("/pipeline/api/pipelines/move-config/p?{SCOPE}&moveConfigType={kind}{more}")
    };
    api.post(&moved("REMOTE_TO_INLINE", ""), &json!({}))
        .await
        .data();
    let shown = api.pipeline("").await;
    assert_eq!(
        (shown["storeType"].as_str(), shown["yamlPipeline"].as_str()),
        (Some("INLINE"), Some(PIPELINE))
    );
    // What is kept here has no branches.
    let run = format!("/pipeline/api/pipeline/execute/p?{SCOPE}&branch=other");
    assert!(
        api.send_yaml("POST", &run, "")
            .await
            .refusal()
            .2
            .contains("`other`")
    );

    api.post(
        &moved(
            "INLINE_TO_REMOTE",
            "&connectorRef=code&branch=main&filePath=ci/q.yaml",
        ),
        &json!({}),
    )
    .await
    .data();
    assert_eq!(repository.show("main", "ci/q.yaml"), PIPELINE);
    assert_eq!(
        api.pipeline("").await["gitDetails"]["filePath"],
        "ci/q.yaml"
    );
    git(repository.work.path(), &["fetch", "-q", "origin"]);
    repository.commit("main", "cd/p.yaml", PIPELINE);
    let place = format!("/pipeline/api/pipelines/p/update-git-metadata?{SCOPE}&filePath=cd/p.yaml");
    api.put(&place, &json!({})).await.data();
    assert_eq!(
        api.pipeline("").await["gitDetails"]["filePath"],
        "cd/p.yaml"
    );
}

#[tokio::test]
async fn templates_are_read_from_git_when_a_pipeline_runs() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    let template = "template:\n  name: t\n  identifier: t\n  versionLabel: v1\n  type: Step\n  orgIdentifier: default\n  projectIdentifier: default\n  spec:\n    type: Wait\n    spec:\n      duration: 1s\n";
    let path = format!(
        "/template/api/templates?{SCOPE}&storeType=REMOTE&connectorRef=code&branch=main&filePath=t.yaml"
    );
    let made = api.send_yaml("POST", &path, template).await.data();
    assert_eq!(made["storeType"], "REMOTE", "{made}");
    let pipeline = PIPELINE.replace("                  type: Wait\n                  spec:\n                    duration: 1s\n", "                  template:\n                    templateRef: t\n                    versionLabel: v1\n");
    api.send_yaml(
        "POST",
        &format!("/pipeline/api/pipelines?{SCOPE}"),
        &pipeline,
    )
    .await
    .data();
    repository.commit("main", "t.yaml", &template.replace("1s", "33s"));
    let plan = format!("/slipway/api/plan/p?{SCOPE}");
    let text = api.send_yaml("POST", &plan, "").await.data()["text"].to_string();
    assert!(text.contains("33s"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_live_in_git_is_refused_and_not_kept_here_instead() {
    let api = Api::new().await;
    let connector = json!({"connector": {"identifier": "c", "name": "c", "orgIdentifier": "default", "projectIdentifier": "default", "type": "Git", "spec": {"url": "https://example.com/c", "type": "Http", "connectionType": "Repo", "spec": {}}}});
    for remote in [
        "storeType=REMOTE&connectorRef=git&repoName=r",
        "branch=main",
    ] {
        let path = format!("/ng/api/connectors?{SCOPE}&{remote}");
        let refused = api.post(&path, &connector).await.refusal();
        assert_eq!((refused.0, refused.1.as_str()), (400, "INVALID_REQUEST"));
        assert!(
            refused.2.contains("in Git") && refused.2.contains("not supported"),
            "{}",
            refused.2
        );
    }
    let overrides = format!("/ng/api/environmentsV2/serviceOverrides?{SCOPE}&storeType=REMOTE");
    let refused = api.post(&overrides, &json!({})).await.refusal();
    assert!(refused.2.contains("not kept in Git"), "{}", refused.2);
    let nowhere = format!("/pipeline/api/pipelines?{SCOPE}&storeType=REMOTE&connectorRef=gone");
    let refused = api
        .call("POST", &nowhere, "application/yaml", PIPELINE)
        .await
        .refusal();
    assert!(
        refused.2.contains("there is no connector gone"),
        "{}",
        refused.2
    );
    let missing = api
        .get(&format!("/pipeline/api/pipelines/p?{SCOPE}"))
        .await
        .refusal();
    assert_eq!(missing.0, 404);

    let v1 = "/v1/orgs/default/projects/default/pipelines";
    let body = |details: Value| json!({"identifier": "q", "name": "q", "pipeline_yaml": PIPELINE.replace(": p\n", ": q\n"), "git_details": details});
    for (details, why) in [
        (
            json!({"store_type": "REMOTE", "branch_name": "main"}),
            "connector",
        ),
        (json!({"branch_name": "main"}), "storeType=REMOTE"),
        (json!({"store_type": "ELSEWHERE"}), "git_details.store_type"),
        (
            json!({"store_type": "REMOTE", "file_path": "../q.yaml"}),
            "git_details.file_path",
        ),
        (
            json!({"last_object_id": "latest"}),
            "git_details.last_object_id",
        ),
    ] {
        let refused = api.post(v1, &body(details)).await.refusal();
        assert!(refused.2.contains(why), "{}", refused.2);
    }
    let made = api.post(v1, &body(json!({"store_type": "INLINE"}))).await;
    assert!(made.status.is_success(), "{}", made.text);
}
