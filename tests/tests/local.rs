//! The binary as users have it: apply, run, look, abort; exit codes; what is refused.

use std::process::Output;

use aws_credential_types::Credentials;
use slipway_tests::{LocalProcess, SandboxProcess, binary, checkout};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// A local mode with the golden pipeline and its cluster.
async fn shop(dir: &std::path::Path) -> LocalProcess {
    let local = LocalProcess::start(dir);
    local
        .ecs()
        .create_cluster()
        .cluster_name("shop")
        .send()
        .await
        .expect("a cluster");
    let templates = checkout("templates/ecs-rolling");
    let applied = local.slipway(&["apply", "-f", templates.to_str().expect("text")]);
    assert_eq!(code(&applied), 0, "{}", text(&applied.stderr));
    local
}

#[tokio::test]
async fn a_version_is_deployed_and_a_broken_one_rolled_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path()).await;

    let good = local.slipway(&[
        "run",
        "deploy_shop",
        "--input",
        "tag=1.0",
        "--follow",
        "-o",
        "json",
    ]);
    assert_eq!(code(&good), 0, "{}", text(&good.stderr));
    let bad = local.slipway(&[
        "run",
        "deploy_shop",
        "--input",
        "tag=missing",
        "--follow",
        "-o",
        "json",
    ]);
    assert_eq!(code(&bad), 1, "{}", text(&bad.stderr));
    assert!(
        text(&bad.stderr).contains("CannotPullContainerError"),
        "{}",
        text(&bad.stderr)
    );

    let instances = local.json(&["list", "instance", "-o", "json"]);
    let images: Vec<&str> = instances
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| {
            row.pointer("/info/containers/0/image")
                .and_then(|i| i.as_str())
        })
        .collect();
    assert_eq!(images.len(), 3, "{instances}");
    assert!(
        images.iter().all(|image| image.ends_with(":1.0")),
        "{images:?}"
    );

    let run: serde_json::Value = serde_json::from_slice(&bad.stdout).expect("JSON");
    let logs = local.slipway(&["logs", run["run"].as_str().expect("a run id")]);
    let logs = text(&logs.stdout);
    assert!(logs.contains("deploying"), "{logs}");
    assert!(logs.contains("# AWS Event:"), "{logs}");
}

#[tokio::test]
async fn a_deployment_is_rolled_back_after_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path()).await;
    let deploy = |tag: &str| {
        let input = format!("tag={tag}");
        let line = [
            "run",
            "deploy_shop",
            "--input",
            &input,
            "--follow",
            "-o",
            "json",
        ];
        let run = local.slipway(&line);
        assert_eq!(code(&run), 0, "{}", text(&run.stderr));
        let row: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
        row["run"].as_str().expect("a run").to_owned()
    };
    let service = [
        "rollback",
        "--service",
        "shop",
        "--environment",
        "production",
    ];
    let first = deploy("1.0");
    let refused = local.slipway(&["rollback", &first]);
    assert_eq!(code(&refused), 1);
    let why = text(&refused.stderr);
    assert!(
        why.contains("there is no earlier version to go back to"),
        "{why}"
    );
    let second = deploy("2.0");
    let refused = local.slipway(&["rollback", &first]);
    let why = text(&refused.stderr);
    assert!(why.contains("only the newest deployment"), "{why}");

    let undone = local.slipway(&["rollback", &second, "--follow", "-o", "json"]);
    assert_eq!(code(&undone), 0, "{}", text(&undone.stderr));
    let shown = text(&undone.stderr);
    assert!(shown.contains("rollback Success"), "{shown}");
    assert!(!shown.contains("rollout"), "{shown}");
    // Who asks once more is told how it ended, and starts nothing.
    let again = local.slipway(&["rollback", &second, "-o", "json"]);
    assert_eq!(code(&again), 0, "{}", text(&again.stderr));
    let ended: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(ended["status"], "Success");
    assert_eq!(again.stdout, undone.stdout);
    let runs = local.slipway(&["list", "instances", "-o", "json"]);
    let runs = text(&runs.stdout);
    assert!(
        runs.contains("shop:1.0") && !runs.contains("shop:2.0"),
        "{runs}"
    );
    // Not once more before something is deployed; then by the name of the service.
    let refused = local.slipway(&service);
    assert_eq!(code(&refused), 1);
    let why = text(&refused.stderr);
    assert!(
        why.contains("deploy something before the next rollback"),
        "{why}"
    );
    deploy("3.0");
    let mut line = service.to_vec();
    line.push("--follow");
    let undone = local.slipway(&line);
    assert_eq!(code(&undone), 0, "{}", text(&undone.stderr));
}

#[tokio::test]
async fn a_run_is_aborted_and_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(dir.path());
    let pipeline = dir.path().join("pipeline.yaml");
    let yaml = "pipeline:\n  name: wait\n  identifier: wait\n  orgIdentifier: default\n  \
                projectIdentifier: default\n  stages:\n    - stage:\n        name: wait\n        \
                identifier: wait\n        type: Custom\n        spec:\n          execution:\n            \
                steps:\n              - step:\n                  name: wait\n                  identifier: \
                wait\n                  type: Wait\n                  spec:\n                    duration: 1h\n";
    std::fs::write(&pipeline, yaml).expect("a file");
    let applied = local.slipway(&["apply", "-f", pipeline.to_str().expect("text")]);
    assert_eq!(code(&applied), 0, "{}", text(&applied.stderr));
    let started = local.json(&["run", "wait", "-o", "json"]);
    let run = started["run"].as_str().expect("a run id");
    let aborted = local.slipway(&["abort", run, "--follow"]);
    assert_eq!(code(&aborted), 0, "{}", text(&aborted.stderr));
    let seen = local.json(&["get", "run", run, "-o", "json"]);
    assert_eq!(seen["status"], "Aborted");
}

/// A pipeline with a stage that takes a place in a queue, asks, and rolls back what fails.
const TURNS: &str = "pipeline:
  name: turns
  identifier: turns
  orgIdentifier: default
  projectIdentifier: default
  stages:
    - stage:
        name: deploy
        identifier: deploy
        type: Custom
        spec:
          execution:
            steps:
              - step: {name: turn, identifier: turn, type: Queue, timeout: 1d, spec: {key: shared, scope: Pipeline}}
              - step:
                  name: ask
                  identifier: ask
                  type: HarnessApproval
                  timeout: 1d
                  spec:
                    includePipelineExecutionHistory: true
                    approvers:
                      userGroups: [account._account_all_users]
                      minimumCount: 1
                      disallowPipelineExecutor: false
            rollbackSteps:
              - step: {name: undo, identifier: undo, type: Wait, timeout: 1m, spec: {duration: 1s}}
        failureStrategies:
          - onFailure:
              errors: [UserMarkedFailure]
              action: {type: StageRollback}
";

#[tokio::test]
async fn a_stage_is_stopped_and_shows_whom_it_waits_for() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(dir.path());
    let pipeline = dir.path().join("pipeline.yaml");
    std::fs::write(&pipeline, TURNS).expect("a file");
    let applied = local.slipway(&["apply", "-f", pipeline.to_str().expect("text")]);
    assert_eq!(code(&applied), 0, "{}", text(&applied.stderr));
    let waits = local.slipway(&["run", "turns", "--follow", "--no-wait", "-o", "json"]);
    assert_eq!(code(&waits), 3, "{}", text(&waits.stderr));
    let told: serde_json::Value = serde_json::from_slice(&waits.stdout).expect("JSON");
    let first = told["run"].as_str().expect("a run id").to_owned();
    let started = local.json(&["run", "turns", "-o", "json"]);
    let second = started["run"].as_str().expect("a run id").to_owned();
    let behind = format!("waits for queue `shared`, behind run {first} (turns), to its end");
    let shown = loop {
        let shown = text(
            &local
                .slipway(&["get", "run", &second, "-o", "table"])
                .stdout,
        );
        if shown.contains("ResourceWaiting") {
            break shown;
        }
    };
    assert!(shown.contains(&behind), "{shown}");

    let unknown = local.slipway(&["abort", &second, "--stage", "deploi"]);
    assert_eq!(code(&unknown), 1);
    let why = text(&unknown.stderr);
    assert!(why.contains("has no stage deploi; it has deploy"), "{why}");
    let aborted = local.slipway(&["abort", &second, "--stage", "deploy", "--follow"]);
    assert_eq!(code(&aborted), 0, "{}", text(&aborted.stderr));
    let failed = local.slipway(&["fail", &first, "--stage", "deploy"]);
    assert_eq!(code(&failed), 0, "{}", text(&failed.stderr));
    let seen = loop {
        let seen = local.json(&["get", "run", &first, "-o", "json"]);
        if seen["status"] == "Failed" {
            break seen;
        }
    };
    let why = seen["failureInfo"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("The stage was rolled back cleanly"), "{why}");
}

#[tokio::test]
async fn a_second_person_gives_the_approval_that_one_may_not_give_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(dir.path());
    let pipeline = dir.path().join("pipeline.yaml");
    let yaml = TURNS.replace("minimumCount: 1", "minimumCount: 2");
    std::fs::write(&pipeline, yaml).expect("a file");
    let applied = local.slipway(&["apply", "-f", pipeline.to_str().expect("text")]);
    assert_eq!(code(&applied), 0, "{}", text(&applied.stderr));
    let waits = local.slipway(&["run", "turns", "--follow", "--no-wait", "-o", "json"]);
    assert_eq!(code(&waits), 3, "{}", text(&waits.stderr));
    let told: serde_json::Value = serde_json::from_slice(&waits.stdout).expect("JSON");
    let run = told["run"].as_str().expect("a run id").to_owned();

    let first = local.slipway(&["approve", &run]);
    assert_eq!(code(&first), 0, "{}", text(&first.stderr));
    let again = local.slipway(&["approve", &run]);
    assert_ne!(code(&again), 0, "one person is not two");
    let made = local.slipway(&["token", "create", "--user", "kim@example.com"]);
    assert_eq!(code(&made), 0, "{}", text(&made.stderr));
    let token = text(&made.stdout).trim().to_owned();
    let second = local.slipway(&["--token", &token, "approve", &run]);
    assert_eq!(code(&second), 0, "{}", text(&second.stderr));
    loop {
        let seen = local.json(&["get", "run", &run, "-o", "json"]);
        match seen["status"].as_str() {
            Some("Success") => break,
            Some("Failed" | "Aborted" | "Errored") => panic!("{seen}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn what_is_wrong_is_refused_with_the_documented_exit_code() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path()).await;
    let missing = local.slipway(&["run", "deploy_shop"]);
    assert_ne!(code(&missing), 0);
    assert!(
        text(&missing.stderr).contains("tag"),
        "{}",
        text(&missing.stderr)
    );

    let nobody = local.slipway(&["--token", "pat.local.nobody.nothing", "list", "pipeline"]);
    assert_eq!(code(&nobody), 4, "{}", text(&nobody.stderr));

    let unknown = local.slipway(&["run", "no_such_pipeline"]);
    assert_eq!(code(&unknown), 1);
    assert!(
        text(&unknown.stderr).contains("no_such_pipeline"),
        "{}",
        text(&unknown.stderr)
    );

    let typo = dir.path().join("typo.yaml");
    std::fs::write(&typo, "service:\n  name: a\n  identifer: a\n").expect("a file");
    let refused = local.slipway(&["apply", "-f", typo.to_str().expect("text")]);
    assert_eq!(code(&refused), 1);
    let why = text(&refused.stderr);
    assert!(
        why.contains("identifer") && why.contains("identifier"),
        "{why}"
    );
    assert!(
        why.contains("typo.yaml:3:3") || why.contains("typo.yaml"),
        "{why}"
    );

    let output = std::process::Command::new(binary())
        .arg("no-such-command")
        .output();
    assert_eq!(code(&output.expect("it runs")), 2);
}

#[test]
fn a_second_process_on_the_same_data_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let _first = LocalProcess::start(dir.path());
    let second = std::process::Command::new(binary())
        .args(["local", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(dir.path())
        .output()
        .expect("it runs");
    assert_eq!(code(&second), 1);
    assert!(
        text(&second.stderr).contains("in use"),
        "{}",
        text(&second.stderr)
    );
}

#[tokio::test]
async fn a_plan_is_shown_compared_and_filled_from_input_sets() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path()).await;
    let sets = dir.path().join("sets.yaml");
    let set = |id: &str, tag: &str| {
        format!(
            "inputSet:\n  name: {id}\n  identifier: {id}\n  orgIdentifier: default\n  projectIdentifier: default\n  \
             pipeline:\n    identifier: deploy_shop\n    variables:\n      - name: tag\n        type: String\n        \
             value: \"{tag}\"\n"
        )
    };
    std::fs::write(&sets, [set("one", "1.0"), set("two", "2.0")].join("---\n")).expect("a file");
    let applied = local.slipway(&["apply", "-f", sets.to_str().expect("text")]);
    assert_eq!(code(&applied), 0, "{}", text(&applied.stderr));

    let nothing = local.slipway(&["plan", "deploy_shop", "--input-set", "one", "--diff"]);
    assert_eq!(code(&nothing), 1, "there is no run to compare with");
    let plan = local.slipway(&["plan", "deploy_shop", "--input-set", "one"]);
    let shown = text(&plan.stdout);
    assert_eq!(code(&plan), 0, "{}", text(&plan.stderr));
    assert!(
        shown.contains("EcsRollingDeploy") && shown.contains("1.0"),
        "{shown}"
    );

    let run = local.slipway(&["run", "deploy_shop", "--input-set", "one", "--follow"]);
    assert_eq!(code(&run), 0, "{}", text(&run.stderr));
    // Of two sets the later one wins, and what is given on the command line wins over both.
    let sets = ["--input-set", "one", "--input-set", "two"];
    for (more, tag) in [(&[][..], "2.0"), (&["--input", "tag=3.0"][..], "3.0")] {
        let arguments: Vec<&str> = ["plan", "deploy_shop", "--diff"]
            .into_iter()
            .chain(sets)
            .chain(more.iter().copied())
            .collect();
        let diff = local.slipway(&arguments);
        let shown = text(&diff.stdout);
        assert_eq!(code(&diff), 0, "{}", text(&diff.stderr));
        let is = |sign: char, tag: &str| {
            shown
                .lines()
                .any(|line| line.starts_with(sign) && line.contains(tag))
        };
        assert!(is('-', "1.0") && is('+', tag), "{shown}");
    }
    let unknown = local.slipway(&["run", "deploy_shop", "--input-set", "three"]);
    assert_eq!(code(&unknown), 1);
    assert!(
        text(&unknown.stderr).contains("three"),
        "{}",
        text(&unknown.stderr)
    );
}

#[tokio::test]
async fn the_sandbox_account_alone_shows_what_exists_and_keeps_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().to_str().expect("a path").to_owned();
    let ecs = |url: &str| {
        let config = aws_sdk_ecs::Config::builder()
            .behavior_version_latest()
            .endpoint_url(url)
            .region(aws_sdk_ecs::config::Region::new("eu-west-1"))
            .credentials_provider(Credentials::for_tests());
        aws_sdk_ecs::Client::from_conf(config.build())
    };
    let sandbox = SandboxProcess::start(&["--folder", &folder]);
    let create = ecs(sandbox.url())
        .create_cluster()
        .cluster_name("shop")
        .send();
    create.await.expect("created");
    drop(sandbox);

    let sandbox = SandboxProcess::start(&["--folder", &folder]);
    let page = reqwest::get(sandbox.url()).await.expect("an answer");
    let policy = page.headers()["content-security-policy"].to_str();
    assert!(policy.is_ok_and(|policy| policy.contains("default-src 'none'")));
    let page = page.text().await.expect("a page");
    assert!(
        page.contains("<h2>cluster (1)</h2>") && page.contains("eu-west-1/shop"),
        "{page}"
    );
    let resources = format!("{}/_sandbox/resources?kind=cluster", sandbox.url());
    let resources: serde_json::Value = reqwest::get(resources)
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(resources[0]["id"], "eu-west-1/shop", "{resources}");
    let found = ecs(sandbox.url())
        .describe_clusters()
        .clusters("shop")
        .send();
    assert_eq!(found.await.expect("an answer").clusters().len(), 1);
}

#[test]
fn a_connector_is_tested_before_anything_depends_on_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(&dir.path().join("data"));
    let connector = |id: &str, kind: &str, spec: &str| {
        format!(
            "connector:\n  name: {id}\n  identifier: {id}\n  orgIdentifier: default\n  \
             projectIdentifier: default\n  type: {kind}\n  spec:\n{spec}"
        )
    };
    let keys = "    credential:\n      type: ManualConfig\n      testRegion: eu-west-1\n      spec:\n        \
                accessKey: EXPIRED1\n        secretKeyRef: key\n";
    let secret = "secret:\n  type: SecretText\n  name: key\n  identifier: key\n  orgIdentifier: default\n  \
                  projectIdentifier: default\n  spec:\n    secretManagerIdentifier: harnessSecretManager\n    \
                  valueType: Inline\n    value: hushhush\n";
    let inherits = "    credential:\n      type: InheritFromDelegate\n";
    let docker = "    dockerRegistryUrl: http://127.0.0.1:1/v2/\n    providerType: Other\n    \
                  auth: {type: Anonymous}\n";
    let all = [
        secret.to_owned(),
        connector("good", "Aws", inherits),
        connector("expired", "Aws", keys),
        connector("other", "DockerRegistry", docker),
    ];
    let file = dir.path().join("all.yaml");
    std::fs::write(&file, all.join("---\n")).expect("written");
    let applied = local.slipway(&["apply", "-f", file.to_str().expect("text")]);
    assert_eq!(code(&applied), 0, "{}", text(&applied.stderr));

    let test = |id: &str| {
        let output = local.slipway(&["--output", "json", "connector", "test", id]);
        (code(&output), text(&output.stdout) + &text(&output.stderr))
    };
    let (exit, said) = test("good");
    assert!(exit == 0 && said.contains("SUCCESS"), "{said}");
    let (exit, said) = test("expired");
    assert!(
        exit == 1 && said.contains("RequestExpired") && said.contains("eu-west-1"),
        "{said}"
    );
    assert!(!said.contains("hushhush"), "{said}");
    let (exit, said) = test("other");
    assert!(
        exit == 1
            && said.contains("FAILURE")
            && said.contains("http://127.0.0.1:1: it cannot be reached"),
        "{said}"
    );
    assert_eq!(test("nobody").0, 1);
}
