//! Artifacts that are looked up in their registries before a run begins, in a real `slipway local`: its sandbox's ECR, and
//! a registry of this machine.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::{Path as UrlPath, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use slipway_tests::{LocalProcess, checkout};

const HOST: &str = "123456789012.dkr.ecr.us-east-1.amazonaws.com";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn well(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// A local mode with golden pipelines whose service takes its artifact from somewhere else.
struct Shop {
    local: LocalProcess,
    dir: tempfile::TempDir,
}

impl Shop {
    async fn open(folders: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let local = LocalProcess::start(&dir.path().join("data"));
        let shop = Self { local, dir };
        let ecs = shop.local.ecs();
        let cluster = ecs.create_cluster().cluster_name("shop").send().await;
        cluster.expect("a cluster");
        for folder in folders {
            shop.apply(&checkout("templates").join(folder));
        }
        shop
    }

    fn apply(&self, path: &Path) {
        let applied = self
            .local
            .slipway(&["apply", "-f", path.to_str().expect("text")]);
        assert!(
            applied.status.success(),
            "{}{}",
            text(&applied.stdout),
            text(&applied.stderr)
        );
    }

    fn apply_text(&self, name: &str, yaml: &str) {
        let path = self.dir.path().join(name);
        std::fs::write(&path, yaml).expect("a file");
        self.apply(&path);
    }

    /// Gives the golden service of a folder this artifact source.
    fn takes(&self, folder: &str, source: &str) {
        let golden = checkout("templates").join(folder).join("service.yaml");
        let golden = std::fs::read_to_string(golden).expect("the service");
        let (head, rest) = golden.split_once("          sources:\n").expect("sources");
        assert!(!rest.contains("manifests"), "{rest}");
        let (start, _) = head
            .split_once("          primaryArtifactRef:")
            .expect("a reference");
        let sources = format!(
            "          primaryArtifactRef: image\n          sources:\n            - {source}\n"
        );
        // Fargate pulls images of ECR with this role.
        let family = "                    family: shop\n";
        let role = format!(
            "{family}                    executionRoleArn: arn:aws:iam::123456789012:role/ecsTaskExecutionRole\n"
        );
        let start = start.replace(family, &role);
        self.apply_text("service.yaml", &format!("{start}{sources}"));
    }

    fn run(&self, pipeline: &str, input: &str) -> Output {
        self.local
            .slipway(&["run", pipeline, "--input", input, "--follow", "-o", "json"])
    }

    /// One operation of the sandbox's ECR.
    async fn ecr(&self, operation: &str, body: Value) -> Value {
        let target = format!("AmazonEC2ContainerRegistry_V20150921.{operation}");
        let signed = "AWS4-HMAC-SHA256 Credential=AKIATEST/20260101/us-east-1/ecr/aws4_request, SignedHeaders=host, Signature=0";
        let request = reqwest::Client::new()
            .post(self.local.url())
            .header("x-amz-target", target);
        let request = request
            .header("authorization", signed)
            .body(body.to_string());
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let body = answer.text().await.expect("a body");
        assert!(status.is_success(), "{operation}: {body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// Pushes an image to `shop/web`; its digest.
    async fn push(&self, number: u32, tag: &str) -> String {
        let manifest = format!("{{\"schemaVersion\": 2, \"number\": {number}}}");
        let body =
            json!({"repositoryName": "shop/web", "imageManifest": manifest, "imageTag": tag});
        let put = self.ecr("PutImage", body).await;
        put["image"]["imageId"]["imageDigest"]
            .as_str()
            .expect("a digest")
            .to_owned()
    }

    /// The images of the revisions of `shop`, the oldest first.
    async fn images(&self) -> Vec<String> {
        let ecs = self.local.ecs();
        let listed = ecs
            .list_task_definitions()
            .family_prefix("shop")
            .send()
            .await
            .expect("revisions");
        let mut images = Vec::new();
        for arn in listed.task_definition_arns() {
            let found = ecs
                .describe_task_definition()
                .task_definition(arn)
                .send()
                .await
                .expect("one");
            let found = found.task_definition.expect("a revision");
            let image = found.container_definitions()[0].image();
            images.push(image.unwrap_or_default().to_owned());
        }
        images
    }

    fn runs(&self) -> usize {
        let runs = self.local.json(&["list", "run", "-o", "json"]);
        runs.as_array().map_or(0, Vec::len)
    }
}

fn run_id(output: &Output) -> String {
    let row: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    row["run"].as_str().expect("a run").to_owned()
}

fn ecr(version: &str) -> String {
    format!(
        "{{identifier: image, type: Ecr, spec: {{connectorRef: aws, region: us-east-1, imagePath: shop/web, {version}}}}}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tag_means_when_a_run_is_planned_is_what_is_deployed_and_deployed_again() {
    let shop = Shop::open(&["ecs-rolling"]).await;
    shop.takes("ecs-rolling", &ecr("tag: <+pipeline.variables.tag>"));
    // There is no such repository yet, and so no task starts.
    let early = shop.run("deploy_shop", "tag=v1");
    let why = text(&early.stdout) + &text(&early.stderr);
    assert!(why.contains("CannotPullContainerError"), "{why}");
    shop.ecr("CreateRepository", json!({"repositoryName": "shop/web"}))
        .await;
    let v1 = shop.push(1, "v1").await;
    well(&shop.run("deploy_shop", "tag=v1"));
    assert_eq!(
        shop.images().await,
        [
            format!("{HOST}/shop/web:v1"),
            format!("{HOST}/shop/web@{v1}")
        ]
    );

    let runs = shop.runs();
    let missing = shop.run("deploy_shop", "tag=v9");
    assert!(!missing.status.success());
    let why = text(&missing.stderr);
    for part in [
        "the artifact `image` cannot be had",
        "imageTag:'v9'",
        "shop/web in us-east-1",
        "push the image first",
    ] {
        assert!(why.contains(part), "{why}");
    }
    assert_eq!(shop.runs(), runs, "nothing was started");

    // A version that does not work; its tag moves to one that does, and the retry still means what was planned.
    let bad = shop.push(2, "exits").await;
    let failed = shop.run("deploy_shop", "tag=exits");
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    let id = run_id(&failed);
    let moved = shop.push(3, "exits").await;
    assert_ne!(bad, moved);
    let again = shop
        .local
        .slipway(&["retry", &id, "--follow", "-o", "json"]);
    assert_ne!(run_id(&again), id);
    let images = shop.images().await;
    assert!(
        images.contains(&format!("{HOST}/shop/web@{bad}")),
        "{images:?}"
    );
    assert!(
        !images.contains(&format!("{HOST}/shop/web@{moved}")),
        "{images:?}"
    );

    // All that there are, page by page.
    let listed = |more: &[&str]| {
        let all = ["artifact", "list", "shop", "-o", "json"];
        let all: Vec<&str> = all.iter().chain(more).copied().collect();
        let rows = shop.local.json(&all);
        let rows = rows.as_array().cloned().unwrap_or_default();
        let pair = |row: &Value| (row["version"].clone(), row["digest"].clone());
        rows.iter().map(pair).collect::<Vec<_>>()
    };
    let newest = (json!("exits"), json!(moved));
    let oldest = (json!("v1"), json!(v1));
    assert_eq!(listed(&[]), [newest.clone(), oldest.clone()]);
    assert_eq!(listed(&["--limit", "1"]), [newest]);
    assert_eq!(listed(&["--limit", "1", "--page", "1"]), [oldest]);
    let none = shop
        .local
        .slipway(&["artifact", "list", "shop", "--artifact", "log"]);
    assert!(
        text(&none.stderr).contains("it has image"),
        "{}",
        text(&none.stderr)
    );

    // The last by name of those that fit.
    for (number, tag) in [(4, "r1"), (5, "r3"), (6, "r2"), (7, "s9")] {
        shop.push(number, tag).await;
    }
    shop.takes("ecs-rolling", &ecr("tagRegex: 'r\\d'"));
    well(&shop.run("deploy_shop", "tag=unused"));
    let last = shop.push(5, "again").await;
    assert_eq!(
        shop.images().await.last(),
        Some(&format!("{HOST}/shop/web@{last}"))
    );
}

/// The golden pipeline after a stage that chooses the tag.
fn choosing() -> String {
    let golden = checkout("templates/ecs-rolling/pipeline.yaml");
    let golden = std::fs::read_to_string(golden).expect("the pipeline");
    let golden = golden.replacen(
        "identifier: deploy_shop",
        "identifier: choose_and_deploy",
        1,
    );
    let (head, rest) = golden.split_once("  stages:\n").expect("stages");
    let first = r#"    - stage:
        name: choose
        identifier: choose
        type: Custom
        spec:
          execution:
            steps:
              - step:
                  name: pick
                  identifier: pick
                  type: ShellScript
                  timeout: 1m
                  spec:
                    shell: Bash
                    onDelegate: true
                    source: {type: Inline, spec: {script: 'TAG="<+pipeline.variables.tag>"'}}
                    environmentVariables: []
                    outputVariables: [{name: TAG, type: String, value: TAG}]
"#;
    format!("{head}  stages:\n{first}{rest}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_that_an_earlier_stage_chooses_is_looked_up_when_the_stage_begins() {
    let shop = Shop::open(&["ecs-rolling"]).await;
    let tag = "<+pipeline.stages.choose.spec.execution.steps.pick.output.outputVariables.TAG>";
    shop.takes("ecs-rolling", &ecr(&format!("tag: {tag}")));
    shop.apply_text("pipeline.yaml", &choosing());
    shop.ecr("CreateRepository", json!({"repositoryName": "shop/web"}))
        .await;
    let v1 = shop.push(1, "v1").await;
    well(&shop.run("choose_and_deploy", "tag=v1"));
    assert_eq!(shop.images().await, [format!("{HOST}/shop/web@{v1}")]);

    // What is not there fails the stage, and changes nothing.
    let missing = shop.run("choose_and_deploy", "tag=v9");
    assert_eq!(missing.status.code(), Some(1), "{}", text(&missing.stderr));
    let told = format!("{}{}", text(&missing.stdout), text(&missing.stderr));
    for part in ["The artifact `image` cannot be had", "imageTag:'v9'"] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(shop.images().await.len(), 1);

    // A retry means what the run that it retries meant, wherever the tag has moved.
    let bad = shop.push(2, "exits").await;
    let failed = shop.run("choose_and_deploy", "tag=exits");
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    let moved = shop.push(3, "exits").await;
    let id = run_id(&failed);
    let again = shop
        .local
        .slipway(&["retry", &id, "--follow", "-o", "json"]);
    assert_ne!(run_id(&again), id);
    let images = shop.images().await;
    let image = |digest: &str| format!("{HOST}/shop/web@{digest}");
    assert!(images.contains(&image(&bad)), "{images:?}");
    assert!(!images.contains(&image(&moved)), "{images:?}");
    // A new run means what the tag means now, which works no better.
    let rerun = shop.run("choose_and_deploy", "tag=exits");
    assert_eq!(rerun.status.code(), Some(1), "{}", text(&rerun.stderr));
    assert_eq!(shop.images().await.last(), Some(&image(&moved)));
}

/// A source whose versions a script lists.
fn listed(timeout: &str, script: &str) -> String {
    let fetch = json!({
        "artifactsArrayPath": "$.items",
        "versionPath": "image",
        "spec": {"shell": "Bash", "source": {"type": "Inline", "spec": {"script": script}}},
    });
    let spec = json!({
        "versionRegex": ".*:<+pipeline.variables.tag>.*",
        "timeout": timeout,
        "inputs": [{"name": "NAME", "type": "String", "value": "<+service.identifier>"}],
        "scripts": {"fetchAllArtifacts": fetch},
    });
    json!({"identifier": "image", "type": "CustomArtifact", "spec": spec}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_on_a_delegate_tells_the_image_that_is_deployed() {
    let shop = Shop::open(&["ecs-rolling"]).await;
    let script = r#"for tag in 1.9 1.10 2.0; do echo "{\"image\": \"index.docker.io/library/$NAME:$tag\"}"; done \
  | paste -sd, | sed 's/.*/{"items": [&]}/' > $HARNESS_ARTIFACT_RESULT_PATH"#;
    shop.takes("ecs-rolling", &listed("1m", script));
    well(&shop.run("deploy_shop", "tag=1"));
    let image = "index.docker.io/library/shop:1.10".to_owned();
    assert_eq!(shop.images().await, [image]);

    for (timeout, script, tag, expected) in [
        (
            "1m",
            script,
            "3",
            "its script lists 3 artifacts, and none of them has a version that matches",
        ),
        ("1m", "exit 3", "1", "its script ended with exit code 3"),
        (
            "1m",
            "true",
            "1",
            "wrote no file where $HARNESS_ARTIFACT_RESULT_PATH says",
        ),
        (
            "2s",
            "sleep 60",
            "1",
            "raise the `timeout` of the artifact source",
        ),
    ] {
        shop.takes("ecs-rolling", &listed(timeout, script));
        let failed = shop.run("deploy_shop", &format!("tag={tag}"));
        assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
        let told = format!("{}{}", text(&failed.stdout), text(&failed.stderr));
        assert!(told.contains(expected), "{script}: {told}");
    }
    assert_eq!(shop.images().await.len(), 1, "nothing else was deployed");
    let listed = shop.local.slipway(&["artifact", "list", "shop"]);
    let told = text(&listed.stderr);
    assert!(told.contains("scripts run in runs only"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_is_made_of_the_image_that_was_planned() {
    let shop = Shop::open(&["ecs-rolling", "lambda"]).await;
    shop.ecr("CreateRepository", json!({"repositoryName": "shop/web"}))
        .await;
    let digest = shop.push(1, "v1").await;
    let golden =
        std::fs::read_to_string(checkout("templates/lambda/service.yaml")).expect("the service");
    let (head, _) = golden.split_once("      artifacts:\n").expect("artifacts");
    let head: String = head
        .lines()
        .filter(|line| !line.contains("runtime:") && !line.contains("handler:"))
        .map(|line| format!("{line}\n"))
        .collect();
    let source = ecr("tag: <+pipeline.variables.version>");
    let artifacts = format!(
        "      artifacts: {{primary: {{primaryArtifactRef: image, sources: [{source}]}}}}\n"
    );
    shop.apply_text("service.yaml", &format!("{head}{artifacts}"));
    well(&shop.run("deploy_checkout", "version=v1"));
    let config = aws_sdk_lambda::Config::builder()
        .behavior_version_latest()
        .endpoint_url(shop.local.url())
        .region(aws_sdk_lambda::config::Region::new("us-east-1"))
        .credentials_provider(aws_credential_types::Credentials::for_tests());
    let lambda = aws_sdk_lambda::Client::from_conf(config.build());
    let function = lambda
        .get_function()
        .function_name("checkout")
        .send()
        .await
        .expect("the function");
    let uri = function.code.and_then(|code| code.image_uri);
    assert_eq!(uri, Some(format!("{HOST}/shop/web@{digest}")));
    let missing = shop.run("deploy_checkout", "version=v2");
    assert!(
        text(&missing.stderr).contains("imageTag:'v2'"),
        "{}",
        text(&missing.stderr)
    );
}

/// A registry that can go down.
async fn registry() -> (String, Arc<AtomicBool>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let down = Arc::new(AtomicBool::new(false));
    let app = Router::new()
        .route("/v2/library/shop/manifests/{tag}", get(manifest))
        .with_state(Arc::clone(&down));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, down)
}

async fn manifest(State(down): State<Arc<AtomicBool>>, UrlPath(tag): UrlPath<String>) -> Response {
    if down.load(Ordering::SeqCst) {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let digest = match tag.as_str() {
        "v1" => "11".repeat(32),
        "v2" => "22".repeat(32),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    [("docker-content-digest", format!("sha256:{digest}"))].into_response()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_of_this_machine_is_asked_and_keeps_the_run_from_starting_when_it_is_down() {
    let shop = Shop::open(&["ecs-rolling"]).await;
    let (address, down) = registry().await;
    let golden = std::fs::read_to_string(checkout("templates/ecs-rolling/connectors.yaml"))
        .expect("connectors");
    let connectors = golden.replace(
        "https://index.docker.io/v2/",
        &format!("http://{address}/v2/"),
    );
    assert_ne!(connectors, golden);
    shop.apply_text("connectors.yaml", &connectors);
    well(&shop.run("deploy_shop", "tag=v1"));
    let expected = format!("{address}/library/shop@sha256:{}", "11".repeat(32));
    assert_eq!(shop.images().await, [expected]);

    down.store(true, Ordering::SeqCst);
    let runs = shop.runs();
    let refused = shop.run("deploy_shop", "tag=v2");
    let why = text(&refused.stderr);
    let told = format!(
        "the registry http://{address}, asked for library/shop with the connector docker_hub: it has an error of its own (502)"
    );
    assert!(why.contains(&told), "{why}");
    assert_eq!(
        (shop.runs(), shop.images().await.len()),
        (runs, 1),
        "nothing was started"
    );
}
