//! A service whose manifests lie in a Git repository and in a bucket: planned and deployed by the binary.

use std::path::Path;
use std::process::{Command, Output};

use aws_sdk_s3::config::{Credentials, Region};
use aws_sdk_s3::primitives::ByteStream;
use slipway_tests::{LocalProcess, checkout};

/// A part of the golden service: the text of the inline manifest with this identifier.
fn inline(service: &str, identifier: &str) -> String {
    let (_, rest) = service
        .split_once(&format!("identifier: {identifier}\n"))
        .expect("the manifest");
    let (_, rest) = rest.split_once("content: |\n").expect("its content");
    let lines = rest
        .lines()
        .take_while(|line| line.starts_with("                    "));
    lines
        .map(|line| format!("{}\n", line.trim_start_matches("                    ")))
        .collect()
}

/// The golden service with these stores.
fn service(golden: &str, task: &str, service: &str) -> String {
    let (head, rest) = golden.split_once("      manifests:\n").expect("manifests");
    let (_, tail) = rest.split_once("      artifacts:\n").expect("artifacts");
    format!(
        "{head}      manifests:\n        - manifest: {{identifier: task, type: EcsTaskDefinition, spec: {{store: {task}}}}}\n        \
         - manifest: {{identifier: service, type: EcsServiceDefinition, spec: {{store: {service}}}}}\n      artifacts:\n{tail}"
    )
}

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
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    text(&output.stdout).trim().to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeded(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

async fn put_object(local: &LocalProcess, bucket: &str, key: &str, content: String) {
    let config = aws_sdk_s3::Config::builder()
        .behavior_version_latest()
        .endpoint_url(local.url())
        .force_path_style(true)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new(
            "slipway",
            "slipway-local",
            None,
            None,
            "test",
        ))
        .build();
    let s3 = aws_sdk_s3::Client::from_conf(config);
    s3.create_bucket()
        .bucket(bucket)
        .send()
        .await
        .expect("a bucket");
    let put = s3.put_object().bucket(bucket).key(key);
    put.body(ByteStream::from(content.into_bytes()))
        .send()
        .await
        .expect("an object");
}

const CONNECTORS: &str = "connector:
  name: code
  identifier: code
  orgIdentifier: default
  projectIdentifier: default
  type: Git
  spec:
    url: file://FOLDER
    connectionType: Account
    type: Http
    spec: {}
---
connector:
  name: reader
  identifier: reader
  orgIdentifier: default
  projectIdentifier: default
  type: Aws
  spec:
    credential: {type: InheritFromDelegate, region: us-east-1}
";

#[tokio::test]
async fn manifests_of_a_repository_and_a_bucket_are_planned_and_deployed() {
    let dir = tempfile::tempdir().expect("a folder");
    let repository = dir.path().join("shop");
    let golden = std::fs::read_to_string(checkout("templates/ecs-rolling/service.yaml"));
    let golden = golden.expect("the golden service");
    std::fs::create_dir_all(repository.join("deploy")).expect("a folder");
    git(&repository, &["init", "-q"]);
    let task = inline(&golden, "task")
        .replace("\"256\"", "\"1024\"")
        .replace("\"512\"", "\"2048\"");
    std::fs::write(repository.join("deploy/task.yaml"), task).expect("a file");
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "-qm", "the task"]);
    let commit = git(&repository, &["rev-parse", "HEAD"]);

    let local = LocalProcess::start(&dir.path().join("data"));
    let cluster = local.ecs().create_cluster().cluster_name("shop").send();
    cluster.await.expect("a cluster");
    put_object(
        &local,
        "acme-manifests",
        "ecs/service.yaml",
        inline(&golden, "service"),
    )
    .await;
    let files = dir.path().join("files");
    std::fs::create_dir_all(&files).expect("a folder");
    for name in ["connectors.yaml", "environment.yaml", "pipeline.yaml"] {
        let from = checkout("templates/ecs-rolling").join(name);
        std::fs::copy(from, files.join(name)).expect("a copy");
    }
    let connectors = CONNECTORS.replace("FOLDER", &dir.path().display().to_string());
    std::fs::write(files.join("stores.yaml"), connectors).expect("a file");
    let stores = |branch: &str| {
        service(
            &golden,
            &format!(
                "{{type: Git, spec: {{connectorRef: code, repoName: shop, gitFetchType: Branch, branch: {branch}, paths: [deploy/task.yaml]}}}}"
            ),
            "{type: S3, spec: {connectorRef: reader, region: us-east-1, bucketName: acme-manifests, folderPath: ecs}}",
        )
    };
    let apply = |branch: &str| {
        std::fs::write(files.join("service.yaml"), stores(branch)).expect("a file");
        succeeded(&local.slipway(&["apply", "-f", files.to_str().expect("text")]));
    };

    apply("mian");
    let refused = local.slipway(&["plan", "deploy_shop", "--input", "tag=1.0"]);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(
        why.contains("there is no branch `mian`") && why.contains("`main`"),
        "{why}"
    );

    apply("main");
    let shown = succeeded(&local.slipway(&["plan", "deploy_shop", "--input", "tag=1.0"]));
    assert!(
        shown.contains(&format!("from Git at {commit}, ")),
        "{shown}"
    );
    assert!(
        shown.contains("manifest service (EcsServiceDefinition) from S3, "),
        "{shown}"
    );

    succeeded(&local.slipway(&["run", "deploy_shop", "--input", "tag=1.0", "--follow"]));
    let task = local
        .ecs()
        .describe_task_definition()
        .task_definition("shop")
        .send()
        .await;
    let task = task
        .expect("the task definition")
        .task_definition
        .expect("its body");
    assert_eq!(task.cpu.as_deref(), Some("1024"), "of the repository");
    let service = local
        .ecs()
        .describe_services()
        .cluster("shop")
        .services("shop")
        .send()
        .await;
    let service = service.expect("the service");
    assert_eq!(service.services()[0].desired_count(), 3, "of the bucket");

    // A later commit is another plan; the diff says so.
    std::fs::write(repository.join("deploy/task.yaml"), "family: shop\n").expect("a file");
    git(&repository, &["commit", "-qam", "another"]);
    let diff = local.slipway(&["plan", "deploy_shop", "--input", "tag=1.0", "--diff"]);
    let shown = succeeded(&diff);
    let later = git(&repository, &["rev-parse", "HEAD"]);
    let has = |sign: char, id: &str| {
        shown
            .lines()
            .any(|line| line.starts_with(sign) && line.contains(id))
    };
    assert!(has('-', &commit) && has('+', &later), "{shown}");
}

const PIPELINE: &str = "pipeline:\n  name: p\n  identifier: p\n  orgIdentifier: default\n  projectIdentifier: default\n  stages:\n    - stage:\n        name: s\n        identifier: s\n        type: Custom\n        spec:\n          execution:\n            steps:\n              - step:\n                  name: w\n                  identifier: w\n                  template:\n                    templateRef: t\n                    versionLabel: v1\n";
const TEMPLATE: &str = "template:\n  name: t\n  identifier: t\n  versionLabel: v1\n  type: Step\n  orgIdentifier: default\n  projectIdentifier: default\n  spec:\n    type: Wait\n    spec:\n      duration: 1s\n";

#[test]
fn what_a_repository_has_is_taken_over_and_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let repository = dir.path().join("shop");
    std::fs::create_dir_all(repository.join(".harness")).expect("a folder");
    git(&repository, &["init", "-q"]);
    std::fs::write(repository.join(".harness/p.yaml"), PIPELINE).expect("a file");
    std::fs::write(repository.join("pause.yaml"), TEMPLATE).expect("a file");
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "-qm", "what runs"]);
    let local = LocalProcess::start(&dir.path().join("data"));
    let stores = dir.path().join("stores.yaml");
    let connectors = CONNECTORS.replace("FOLDER", &dir.path().display().to_string());
    std::fs::write(&stores, connectors).expect("a file");
    succeeded(&local.slipway(&["apply", "-f", stores.to_str().expect("text")]));

    let take = |words: &[&str]| {
        let from = [
            "--git-connector",
            "code",
            "--repo",
            "shop",
            "--branch",
            "main",
        ];
        local.slipway(&[&["import-git"], words, &from].concat())
    };
    let refused = take(&["pipeline", "q"]);
    assert_eq!(refused.status.code(), Some(1));
    let why = text(&refused.stderr);
    assert!(why.contains(".harness/q.yaml"), "{why}");
    let taken = take(&[
        "template",
        "t",
        "--git-path",
        "pause.yaml",
        "--version-label",
        "v1",
    ]);
    assert!(succeeded(&taken).contains("pause.yaml"));
    succeeded(&take(&["pipeline", "p"]));
    let again = take(&["pipeline", "p"]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stdout));
    succeeded(&local.slipway(&["run", "p", "--follow"]));
}

const OVERRIDES: &str = "overrides:
  type: ENV_SERVICE_OVERRIDE
  orgIdentifier: default
  projectIdentifier: default
  environmentRef: production
  serviceRef: shop
  variables:
    - {name: count, type: String, value: \"4\"}
";

#[tokio::test]
async fn a_service_and_its_environment_are_deployed_as_git_has_them() {
    let dir = tempfile::tempdir().expect("a folder");
    let (bare, work) = (dir.path().join("shop"), dir.path().join("work"));
    std::fs::create_dir_all(&bare).expect("a folder");
    git(&bare, &["init", "-q", "--bare"]);
    git(dir.path(), &["clone", "-q", "shop", "work"]);
    git(&work, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&work, &["push", "-q", "origin", "HEAD:main"]);
    let local = LocalProcess::start(&dir.path().join("data"));
    let cluster = local.ecs().create_cluster().cluster_name("shop").send();
    cluster.await.expect("a cluster");
    let stores = dir.path().join("stores.yaml");
    let connectors = CONNECTORS.replace("FOLDER", &dir.path().display().to_string());
    std::fs::write(&stores, connectors).expect("a file");
    succeeded(&local.slipway(&["apply", "-f", stores.to_str().expect("text")]));
    let golden = checkout("templates/ecs-rolling");
    let golden = golden.to_str().expect("text");
    let into = [
        "--git-connector",
        "code",
        "--repo",
        "shop",
        "--branch",
        "main",
    ];
    succeeded(&local.slipway(&[&["apply", "-f", golden], &into[..]].concat()));
    let overrides = dir.path().join("overrides.yaml");
    std::fs::write(&overrides, OVERRIDES).expect("a file");
    let overrides = overrides.to_str().expect("text");
    succeeded(&local.slipway(&[&["apply", "-f", overrides], &into[..]].concat()));
    git(&work, &["pull", "-q", "origin", "main"]);
    let run = ["run", "deploy_shop", "--input", "tag=1.0", "--follow"];
    succeeded(&local.slipway(&run));

    // Somebody commits that overrides say how large the service is, and that the environment's cluster is another one.
    let change = |file: &str, from: &str, to: &str| {
        let file = work.join(".harness").join(file);
        let text = std::fs::read_to_string(&file).expect("a file");
        assert!(text.contains(from), "{text}");
        std::fs::write(file, text.replace(from, to)).expect("a file");
    };
    let count = "desiredCount: <+serviceVariables.count>";
    change("services/shop.yaml", "desiredCount: 3", count);
    change("overrides/production_shop.yaml", "\"4\"", "\"2\"");
    change(
        "infrastructures/production_shop_cluster.yaml",
        "cluster: shop",
        "cluster: other",
    );
    git(&work, &["commit", "-qam", "elsewhere"]);
    git(&work, &["push", "-q", "origin", "HEAD:main"]);
    let cluster = local.ecs().create_cluster().cluster_name("other").send();
    cluster.await.expect("a cluster");
    succeeded(&local.slipway(&run));
    for (cluster, expected) in [("shop", 3), ("other", 2)] {
        let found = local.ecs().describe_services().cluster(cluster);
        let found = found.services("shop").send().await.expect("the service");
        assert_eq!(found.services()[0].desired_count(), expected, "{cluster}");
    }

    // What is here is not taken over from there a second time.
    for (kind, id) in [("service", "shop"), ("overrides", "production_shop")] {
        let again = ["import-git", kind, id];
        let refused = local.slipway(&[&again, &into[..]].concat());
        assert_eq!(refused.status.code(), Some(1), "{kind}");
        let told = text(&refused.stderr);
        assert!(told.contains("already exists"), "{kind}: {told}");
    }
}
