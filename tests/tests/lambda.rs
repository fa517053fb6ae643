//! The golden pipelines of AWS Lambda in a `slipway local`: packages in its S3, functions in its sandbox account.

use std::process::Output;

use aws_credential_types::Credentials;
use serde_json::Value;
use slipway_tests::{LocalProcess, checkout};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn well(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// A local mode with the golden pipelines, and clients of it.
struct Shop {
    local: LocalProcess,
    s3: aws_sdk_s3::Client,
    lambda: aws_sdk_lambda::Client,
}

impl Shop {
    async fn open(dir: &std::path::Path) -> Self {
        let local = LocalProcess::start(dir);
        for folder in ["ecs-rolling", "lambda", "lambda-canary"] {
            let folder = checkout("templates").join(folder);
            well(&local.slipway(&["apply", "-f", folder.to_str().expect("text")]));
        }
        let s3 = aws_sdk_s3::Config::builder()
            .behavior_version_latest()
            .endpoint_url(local.url())
            .force_path_style(true)
            .region(aws_sdk_s3::config::Region::new("us-east-1"))
            .credentials_provider(aws_sdk_s3::config::Credentials::new(
                "slipway",
                "slipway-local",
                None,
                None,
                "test",
            ))
            .build();
        let lambda = aws_sdk_lambda::Config::builder()
            .behavior_version_latest()
            .endpoint_url(local.url())
            .region(aws_sdk_lambda::config::Region::new("us-east-1"))
            .credentials_provider(Credentials::for_tests())
            .build();
        let shop = Self {
            local,
            s3: aws_sdk_s3::Client::from_conf(s3),
            lambda: aws_sdk_lambda::Client::from_conf(lambda),
        };
        shop.s3
            .create_bucket()
            .bucket("shop-packages")
            .send()
            .await
            .expect("a bucket");
        for version in ["v1", "v2", "v3"] {
            shop.put(version, version).await;
        }
        shop
    }

    async fn put(&self, version: &str, content: &str) {
        let put = self
            .s3
            .put_object()
            .bucket("shop-packages")
            .key(format!("checkout/{version}.zip"));
        let body = format!("PK\x03\x04{content}").into_bytes();
        put.body(body.into()).send().await.expect("an object");
    }

    /// Runs a pipeline with a version.
    fn run(&self, pipeline: &str, version: &str) -> Output {
        let input = format!("version={version}");
        let line = ["run", pipeline, "--input", &input, "--follow", "-o", "json"];
        self.local.slipway(&line)
    }

    /// Digest of the code, and where the alias points to.
    async fn live(&self) -> (String, String) {
        let function = self
            .lambda
            .get_function_configuration()
            .function_name("checkout");
        let function = function.send().await.expect("the function");
        let alias = self
            .lambda
            .get_alias()
            .function_name("checkout")
            .name("live")
            .send()
            .await;
        let alias = alias.expect("the alias");
        let sha256 = function.code_sha256().unwrap_or_default().to_owned();
        (
            sha256,
            alias.function_version().unwrap_or_default().to_owned(),
        )
    }

    fn instances(&self) -> Vec<String> {
        let rows = self.local.json(&["list", "instance", "-o", "json"]);
        let version = |row: &Value| {
            row["info"]["version"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        rows.as_array().into_iter().flatten().map(version).collect()
    }
}

fn run_id(output: &Output) -> String {
    let row: Value = serde_json::from_str(&well(output)).expect("JSON");
    row["run"].as_str().expect("a run").to_owned()
}

#[tokio::test]
async fn a_function_is_deployed_rolled_back_and_brought_back_after_its_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let shop = Shop::open(dir.path()).await;
    well(&shop.run("deploy_checkout", "v1"));
    let first = shop.live().await;
    assert_eq!(first.1, "1");
    assert_eq!(shop.instances(), ["1"]);
    let missing = shop.run("deploy_checkout", "v9");
    assert!(!missing.status.success());
    let why = text(&missing.stderr);
    assert!(
        why.contains("there is no object checkout/v9.zip in bucket shop-packages"),
        "{why}"
    );
    assert_eq!(shop.live().await, first);
    let second = run_id(&shop.run("deploy_checkout", "v2"));
    assert_eq!(shop.live().await.1, "2");
    // What was deployed first is no longer where it came from: Lambda has its own copy.
    shop.put("v1", "something else").await;
    well(
        &shop
            .local
            .slipway(&["rollback", &second, "--follow", "-o", "json"]),
    );
    assert_eq!(shop.live().await, first);
    assert_eq!(shop.instances(), ["1"]);
}

#[tokio::test]
async fn a_canary_waits_for_a_person_and_gets_all_of_the_traffic() {
    let dir = tempfile::tempdir().expect("a folder");
    let shop = Shop::open(dir.path()).await;
    well(&shop.run("deploy_checkout", "v1"));
    let line = [
        "run",
        "deploy_checkout_by_canary",
        "--input",
        "version=v2",
        "-o",
        "json",
    ];
    let run = run_id(&shop.local.slipway(&line));
    let shared = loop {
        let alias = shop
            .lambda
            .get_alias()
            .function_name("checkout")
            .name("live")
            .send()
            .await;
        let routing = alias.expect("the alias").routing_config;
        if let Some(weights) = routing.and_then(|routing| routing.additional_version_weights) {
            break weights;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    assert_eq!(shared.get("2"), Some(&0.1));
    let approved = loop {
        let approved = shop.local.slipway(&["approve", &run]);
        if approved.status.success() {
            break approved;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    };
    well(&approved);
    let ended = async {
        while shop.instances() != ["2"] {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    let limit = std::time::Duration::from_secs(60);
    tokio::time::timeout(limit, ended)
        .await
        .expect("the canary is the version");
    assert_eq!(shop.live().await.1, "2");
}
