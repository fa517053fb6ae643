//! From a push to a run, with the binary as users have it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use slipway_tests::LocalProcess;

/// More looks than a run of seconds takes: each is a process of its own.
const LOOKS: usize = 2_000;

const ENTITIES: &str = r#"pipeline:
  name: release
  identifier: release
  orgIdentifier: default
  projectIdentifier: default
  variables:
    - {name: commit, type: String, value: <+input>}
  stages:
    - stage:
        name: build
        identifier: build
        type: Custom
        spec:
          execution:
            steps:
              - step:
                  name: told
                  identifier: told
                  type: ShellScript
                  timeout: 1m
                  spec:
                    shell: Bash
                    onDelegate: true
                    source:
                      type: Inline
                      spec: {script: "echo deploying <+pipeline.variables.commit> of <+trigger.payload.ref>"}
---
trigger:
  name: pushed
  identifier: pushed
  orgIdentifier: default
  projectIdentifier: default
  pipelineIdentifier: release
  inputYaml: |
    pipeline:
      identifier: release
      variables:
        - {name: commit, type: String, value: <+trigger.payload.after>}
  source:
    type: Webhook
    spec:
      type: Custom
      spec:
        payloadConditions:
          - {key: <+trigger.payload.ref>, operator: Equals, value: refs/heads/main}
---
trigger:
  name: nightly
  identifier: nightly
  orgIdentifier: default
  projectIdentifier: default
  pipelineIdentifier: release
  inputYaml: "pipeline: {identifier: release, variables: [{name: commit, type: String, value: head}]}"
  source:
    type: Scheduled
    spec:
      type: Cron
      spec: {type: UNIX, expression: "30 2 * * *", timezone: Europe/Berlin}
"#;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn git(folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new("git")
        .args(["-c", "user.name=alex", "-c", "user.email=alex@example.com"])
        .args(["-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("git");
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

/// Rows of a list, as soon as one of them is as wanted.
fn until(local: &LocalProcess, line: &[&str], wanted: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..LOOKS {
        let rows = local.json(line);
        let found = rows
            .as_array()
            .into_iter()
            .flatten()
            .find(|row| wanted(row));
        if let Some(row) = found {
            return row.clone();
        }
    }
    panic!("nothing of {line:?} is as wanted: {}", local.json(line))
}

#[tokio::test]
async fn a_push_to_a_repository_reaches_a_run_through_its_hook() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(&dir.path().join("data"));
    let yaml = dir.path().join("release.yaml");
    std::fs::write(&yaml, ENTITIES).expect("written");
    let applied = local.slipway(&["apply", "-f", yaml.to_str().expect("text")]);
    assert!(applied.status.success(), "{}", text(&applied.stderr));

    let listed = local.json(&["trigger", "list", "--pipeline", "release", "-o", "json"]);
    let of = |id: &str| {
        let mut all = listed.as_array().into_iter().flatten();
        all.find(|row| row["identifier"] == id)
            .expect("listed")
            .clone()
    };
    let url = of("pushed")["webhookUrl"]
        .as_str()
        .expect("a URL")
        .to_owned();
    assert!(of("nightly")["nextExecutionTime"].is_i64(), "{listed}");

    // A repository that tells of each push, as Git itself can.
    let bare = dir.path().join("shop.git");
    std::fs::create_dir(&bare).expect("a folder");
    git(&bare, &["init", "--bare", "."]);
    let hook = bare.join("hooks/post-receive");
    let script = format!(
        "#!/bin/sh\nwhile read before after ref; do\n  printf '{{\"ref\":\"%s\",\"before\":\"%s\",\"after\":\"%s\"}}' \"$ref\" \"$before\" \"$after\" | curl -fsS -X POST -H 'content-type: application/json' --data-binary @- '{url}'\ndone\n"
    );
    std::fs::write(&hook, script).expect("a hook");
    let mut mode = std::fs::metadata(&hook).expect("a hook").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&hook, mode).expect("a mode");
    let work = dir.path().join("work");
    git(dir.path(), &["clone", "shop.git", "work"]);
    std::fs::write(work.join("file"), "1").expect("a file");
    git(&work, &["checkout", "-b", "main"]);
    git(&work, &["add", "."]);
    git(&work, &["commit", "-m", "one"]);
    git(&work, &["push", "origin", "main"]);
    let commit = text(&git(&work, &["rev-parse", "HEAD"]).stdout);

    let line = [
        "trigger",
        "history",
        "pushed",
        "--pipeline",
        "release",
        "-o",
        "json",
    ];
    let row = until(&local, &line, |_| true);
    assert_eq!(row["finalStatus"], "TARGET_EXECUTION_REQUESTED", "{row}");
    let run = row["targetExecutionSummary"]["planExecutionId"]
        .as_str()
        .expect("a run");
    until(&local, &["list", "runs", "-o", "json"], |row| {
        row["planExecutionId"] == run && row["status"] == "Success"
    });
    let logs = text(&local.slipway(&["logs", run]).stdout);
    let wanted = format!("deploying {} of refs/heads/main", commit.trim());
    assert!(logs.contains(&wanted), "{logs}");

    // Another branch starts nothing, and says why.
    git(&work, &["push", "origin", "main:draft"]);
    let row = until(&local, &line, |row| {
        row["finalStatus"] != "TARGET_EXECUTION_REQUESTED"
    });
    assert_eq!(
        row["finalStatus"],
        "NO_MATCHING_TRIGGER_FOR_PAYLOAD_CONDITIONS"
    );
    assert!(
        row["message"]
            .as_str()
            .is_some_and(|why| why.contains("refs/heads/draft")),
        "{row}"
    );
}

#[tokio::test]
async fn a_delivery_is_tried_and_sent_by_hand() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(&dir.path().join("data"));
    let yaml = dir.path().join("release.yaml");
    std::fs::write(&yaml, ENTITIES).expect("written");
    let applied = local.slipway(&["apply", "-f", yaml.to_str().expect("text")]);
    assert!(applied.status.success(), "{}", text(&applied.stderr));
    let payload = dir.path().join("payload.json");
    let write = |branch: &str| {
        let body = serde_json::json!({"ref": format!("refs/heads/{branch}"), "after": "c0ffee"});
        std::fs::write(&payload, body.to_string()).expect("written");
    };
    let file = payload.to_str().expect("text");
    let test = [
        "trigger",
        "test",
        "pushed",
        "--pipeline",
        "release",
        "-f",
        file,
        "-o",
        "json",
    ];

    write("draft");
    let tried = local.slipway(&test);
    assert_eq!(tried.status.code(), Some(1), "{}", text(&tried.stderr));
    let rows: Value = serde_json::from_slice(&tried.stdout).expect("JSON");
    assert_eq!(rows[0]["fires"], false);
    write("main");
    let tried = local.slipway(&test);
    assert_eq!(tried.status.code(), Some(0), "{}", text(&tried.stderr));
    let rows: Value = serde_json::from_slice(&tried.stdout).expect("JSON");
    assert!(
        rows[0]["inputYaml"]
            .as_str()
            .is_some_and(|inputs| inputs.contains("c0ffee")),
        "{rows}"
    );
    // Nothing was started by trying.
    assert_eq!(
        local.json(&["list", "runs", "-o", "json"]),
        serde_json::json!([])
    );

    let fired = local.slipway(&[
        "trigger",
        "fire",
        "pushed",
        "--pipeline",
        "release",
        "-f",
        file,
    ]);
    assert!(fired.status.success(), "{}", text(&fired.stderr));
    let fired: serde_json::Value = serde_json::from_slice(&fired.stdout).expect("JSON");
    let event = fired[0]["eventId"].as_str().expect("an event").to_owned();
    let history = [
        "trigger",
        "history",
        "pushed",
        "--pipeline",
        "release",
        "-o",
        "json",
    ];
    let row = until(&local, &history, |row| row["eventCorrelationId"] == event);
    assert!(
        row["targetExecutionSummary"]["planExecutionId"].is_string(),
        "{row}"
    );
    let fired = local.slipway(&["trigger", "fire", "nightly", "--pipeline", "release"]);
    assert!(fired.status.success(), "{}", text(&fired.stderr));
    let history = [
        "trigger",
        "history",
        "nightly",
        "--pipeline",
        "release",
        "-o",
        "json",
    ];
    until(&local, &history, |row| {
        row["finalStatus"] == "TARGET_EXECUTION_REQUESTED"
    });
}

/// A call of AWS, as its SDKs make it.
fn aws(local: &LocalProcess, service: &str, target: &str, body: &Value) -> Value {
    let signed = format!(
        "authorization: AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=0"
    );
    let output = Command::new("curl")
        .args([
            "-sS",
            "-X",
            "POST",
            "-H",
            &signed,
            "-H",
            "content-type: application/x-amz-json-1.1",
        ])
        .args([
            "-H",
            &format!("x-amz-target: {target}"),
            "--data-binary",
            &body.to_string(),
            local.url(),
        ])
        .output()
        .expect("curl");
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

const ON_AWS: &str = r#"connector:
  name: account
  identifier: account
  orgIdentifier: default
  projectIdentifier: default
  type: Aws
  spec:
    credential: {type: InheritFromDelegate}
    executeOnDelegate: false
---
trigger:
  name: images
  identifier: images
  orgIdentifier: default
  projectIdentifier: default
  pipelineIdentifier: release
  inputYaml: "pipeline: {identifier: release, variables: [{name: commit, type: String, value: <+trigger.artifact.build>}]}"
  source:
    type: Artifact
    # So long that nothing is seen in this test but what events tell.
    pollInterval: 1h
    spec:
      type: Ecr
      spec: {connectorRef: account, region: us-east-1, imagePath: shop, tag: <+trigger.artifact.build>}
---
trigger:
  name: codecommit
  identifier: codecommit
  orgIdentifier: default
  projectIdentifier: default
  pipelineIdentifier: release
  inputYaml: "pipeline: {identifier: release, variables: [{name: commit, type: String, value: <+trigger.commitSha>}]}"
  source:
    type: Webhook
    spec:
      type: AwsCodeCommit
      spec: {type: Push, spec: {repoName: shop, payloadConditions: [{key: targetBranch, operator: Equals, value: main}]}}
"#;

#[tokio::test]
async fn an_image_that_is_pushed_and_an_event_on_the_bus_reach_runs_at_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(&dir.path().join("data"));
    let ecr = |operation: &str, body: &Value| {
        let target = format!("AmazonEC2ContainerRegistry_V20150921.{operation}");
        aws(&local, "ecr", &target, body)
    };
    let push = |tag: &str| {
        let manifest = serde_json::json!({"schemaVersion": 2, "annotations": {"tag": tag}});
        let pushed = ecr(
            "PutImage",
            &serde_json::json!({"repositoryName": "shop", "imageManifest": manifest.to_string(), "imageTag": tag}),
        );
        assert_eq!(pushed["image"]["imageId"]["imageTag"], tag, "{pushed}");
    };
    ecr(
        "CreateRepository",
        &serde_json::json!({"repositoryName": "shop"}),
    );
    push("1.0");
    let yaml = dir.path().join("release.yaml");
    std::fs::write(&yaml, format!("{ENTITIES}---\n{ON_AWS}")).expect("written");
    let applied = local.slipway(&["apply", "-f", yaml.to_str().expect("text")]);
    assert!(applied.status.success(), "{}", text(&applied.stderr));

    let history = |id: &'static str| {
        [
            "trigger",
            "history",
            id,
            "--pipeline",
            "release",
            "-o",
            "json",
        ]
    };
    // The first image that is told is what was there; of the second a run is started.
    push("2.0");
    push("3.0");
    for number in 4.. {
        push(&format!("{number}.0"));
        let rows = local.json(&history("images"));
        if rows.as_array().is_some_and(|rows| !rows.is_empty()) {
            break;
        }
        assert!(number < 200, "nothing was started");
    }
    let row = until(&local, &history("images"), |_| true);
    assert_eq!(row["finalStatus"], "TARGET_EXECUTION_REQUESTED", "{row}");

    let detail = serde_json::json!({
        "event": "referenceUpdated", "referenceType": "branch", "referenceName": "main",
        "referenceFullName": "refs/heads/main", "repositoryName": "shop", "commitId": "c".repeat(40),
        "oldCommitId": "b".repeat(40), "callerUserArn": "arn:aws:iam::123456789012:user/ann",
    });
    let entry = serde_json::json!({"Source": "aws.codecommit", "DetailType": "CodeCommit Repository State Change", "Detail": detail.to_string()});
    let put = aws(
        &local,
        "events",
        "AWSEvents.PutEvents",
        &serde_json::json!({"Entries": [entry, {"Detail": "{"}]}),
    );
    assert_eq!(put["FailedEntryCount"], 1, "{put}");
    let row = until(&local, &history("codecommit"), |_| true);
    assert_eq!(row["finalStatus"], "TARGET_EXECUTION_REQUESTED", "{row}");
}

const KEY: &str = "secret:\n  type: SecretText\n  name: key\n  identifier: key\n  orgIdentifier: default\n  projectIdentifier: default\n  spec:\n    secretManagerIdentifier: harnessSecretManager\n    valueType: Inline\n    value: s3cr3t-value\n";

/// A trigger on what a script reads of a file, with a secret in its environment.
fn on_script(file: &Path, description: &str) -> String {
    let script = format!(
        "test \"$KEY\" = s3cr3t-value || exit 7; cat {} > $HARNESS_ARTIFACT_RESULT_PATH",
        file.display()
    );
    serde_json::json!({"trigger": {
        "name": "scripted",
        "identifier": "scripted",
        "description": description,
        "orgIdentifier": "default",
        "projectIdentifier": "default",
        "pipelineIdentifier": "release",
        "inputYaml": "pipeline: {identifier: release, variables: [{name: commit, type: String, value: <+trigger.artifact.build>}]}",
        "source": {"type": "Artifact", "pollInterval": "30s", "spec": {"type": "CustomArtifact", "spec": {
            "script": script,
            "artifactsArrayPath": "$.items",
            "versionPath": "name",
            "version": "<+trigger.artifact.build>",
            "inputs": [{"name": "KEY", "type": "Secret", "value": "key"}],
        }}},
    }})
    .to_string()
}

/// Starts local mode again, which asks registries at once as it starts, until something is as wanted.
fn restarted<T>(
    mut local: LocalProcess,
    data: &Path,
    wanted: impl Fn(&LocalProcess) -> Option<T>,
) -> (LocalProcess, T) {
    for _ in 0..40 {
        local.kill();
        local = LocalProcess::start(data);
        for _ in 0..20 {
            if let Some(found) = wanted(&local) {
                return (local, found);
            }
        }
    }
    let rows = local.json(&["trigger", "list", "--pipeline", "release", "-o", "json"]);
    panic!("nothing is as wanted: {rows}")
}

#[tokio::test]
async fn a_new_version_that_a_script_on_a_delegate_lists_starts_a_run_however_often_all_is_killed()
{
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let local = LocalProcess::start(&data);
    let apply = |local: &LocalProcess, name: &str, yaml: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, yaml).expect("written");
        let applied = local.slipway(&["apply", "-f", path.to_str().expect("text")]);
        assert!(applied.status.success(), "{}", text(&applied.stderr));
    };
    let versions = dir.path().join("versions.json");
    std::fs::write(&versions, r#"{"items": [{"name": "1.9"}]}"#).expect("written");
    // There is no payload.
    let entities = ENTITIES.replace(" of <+trigger.payload.ref>", "");
    apply(&local, "release.yaml", &entities);
    apply(&local, "key.yaml", KEY);
    apply(&local, "scripted.yaml", &on_script(&versions, "first"));
    let row = |local: &LocalProcess| {
        let rows = local.json(&["trigger", "list", "--pipeline", "release", "-o", "json"]);
        let mut all = rows.as_array().into_iter().flatten();
        all.find(|row| row["identifier"] == "scripted").cloned()
    };
    // What was there before is no news.
    let (local, seen) = restarted(local, &data, |local| {
        let status = row(local)?["triggerStatus"].clone();
        status["pollingSubscriptionStatus"]["lastPollingUpdate"].as_i64()?;
        Some(status["status"].clone())
    });
    assert_eq!(seen, "SUCCESS");
    std::fs::write(
        &versions,
        r#"{"items": [{"name": "1.9"}, {"name": "1.10"}]}"#,
    )
    .expect("written");
    // Saved again, it is asked at once.
    apply(&local, "scripted.yaml", &on_script(&versions, "second"));
    let (local, run) = restarted(local, &data, |local| {
        let rows = local.json(&["list", "runs", "-o", "json"]);
        Some(rows[0]["planExecutionId"].as_str()?.to_owned())
    });
    until(&local, &["list", "runs", "-o", "json"], |row| {
        row["status"] == "Success"
    });
    let log = local.slipway(&["logs", &run]);
    assert!(
        text(&log.stdout).contains("deploying 1.10"),
        "{}",
        text(&log.stdout)
    );
}
