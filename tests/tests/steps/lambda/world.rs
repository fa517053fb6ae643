//! A function in the account of [`World`], whose packages are in S3.

use aws_sdk_lambda::primitives::Blob;
use serde_json::{Value, json};
use slipway_plan::ArtifactPlan;
use slipway_store::embedded::in_process;

use crate::raw::{answer, post};
use crate::world::{World, credentials, manifest};

/// The bucket of the packages.
pub(crate) const BUCKET: &str = "packages";

/// A package: what a function of it does is no concern of anybody here.
pub(crate) fn package(number: u32) -> Vec<u8> {
    format!("PK\x03\x04package {number}").into_bytes()
}

/// The definition of the function `shop`.
pub(crate) fn definition() -> Value {
    json!({
        "functionName": "shop",
        "runtime": "nodejs22.x",
        "handler": "index.handler",
        "role": "arn:aws:iam::123456789012:role/shop",
        "timeout": 5,
        "environment": {"variables": {"PASSWORD": "<+secrets.getValue(\"account.password\")>"}},
    })
}

/// The definition of an alias.
pub(crate) fn alias(name: &str) -> Value {
    json!({"name": name, "description": "what customers call"})
}

/// An image of a repository of the account.
pub(crate) fn image(tag: &str) -> String {
    format!("123456789012.dkr.ecr.eu-west-1.amazonaws.com/shop:{tag}")
}

/// The manifest of that image.
fn image_manifest(tag: &str) -> String {
    json!({"schemaVersion": 2, "tag": tag}).to_string()
}

impl World {
    /// A client of Lambda that no tap is on.
    pub(crate) fn lambda(&self) -> aws_sdk_lambda::Client {
        let config = aws_sdk_lambda::Config::builder()
            .behavior_version(aws_sdk_lambda::config::BehaviorVersion::latest())
            .region(aws_sdk_lambda::config::Region::new("eu-west-1"))
            .credentials_provider(credentials())
            .endpoint_url("http://sandbox.localhost")
            .http_client(in_process(self.sandbox.router()))
            .build();
        aws_sdk_lambda::Client::from_conf(config)
    }

    /// Puts a package to `key` of the bucket.
    pub(crate) async fn put_package(&self, key: &str, content: Vec<u8>) {
        let s3 = self.embedded.s3();
        // The store is shared with other worlds of a test.
        let _there = s3.create_bucket().bucket(BUCKET).send().await;
        let put = s3.put_object().bucket(BUCKET).key(key);
        put.body(content.into()).send().await.expect("an object");
    }

    /// The stage's service deploys a function with this definition and these aliases from now on.
    pub(crate) fn deploys_function(&mut self, definition: &Value, aliases: &[Value]) {
        self.manifests = vec![manifest("AwsLambdaFunctionDefinition", definition)];
        for alias in aliases {
            let mut manifest = manifest("AwsLambdaFunctionAliasDefinition", alias);
            manifest.identifier =
                slipway_model::id::EntityId::new(format!("alias{}", self.manifests.len()));
            self.manifests.push(manifest);
        }
    }

    /// Its artifact is this object from now on.
    pub(crate) fn deploys_object(&mut self, key: &str) {
        self.artifact = Some(ArtifactPlan {
            identifier: "primary".to_owned(),
            kind: "AmazonS3".to_owned(),
            spec: json!({"connectorRef": "account.aws", "bucketName": BUCKET, "region": "eu-west-1", "filePath": key}),
            image: None,
            tag: None,
            pinned: None,
            late: None,
        });
    }

    /// It deploys `shop` with a numbered package and the alias `live` from now on. The timeout is another with each.
    pub(crate) async fn deploys_package(&mut self, number: u32) {
        let key = format!("shop-{number}.zip");
        self.put_package(&key, package(number)).await;
        let mut definition = definition();
        definition["timeout"] = json!(4 + number);
        self.deploys_function(&definition, &[alias("live")]);
        self.deploys_object(&key);
    }

    /// It deploys `shop` from an image of the account's registry from now on.
    pub(crate) async fn deploys_image(&mut self, tag: &str, aliases: &[Value]) {
        self.push_image(tag).await;
        let mut definition = definition();
        for name in ["runtime", "handler"] {
            definition
                .as_object_mut()
                .expect("a mapping")
                .shift_remove(name);
        }
        self.deploys_function(&definition, aliases);
        self.artifact = Some(ArtifactPlan {
            identifier: "primary".to_owned(),
            kind: "Ecr".to_owned(),
            spec: json!({"imagePath": "shop", "region": "eu-west-1", "tag": tag}),
            image: Some(image(tag)),
            tag: Some(tag.to_owned()),
            pinned: None,
            late: None,
        });
    }

    /// Puts an image where [`image`] says, unless it is to be missing.
    async fn push_image(&self, tag: &str) {
        let repository = json!({"repositoryName": "shop"});
        let manifest = image_manifest(tag);
        let image = json!({"repositoryName": "shop", "imageManifest": manifest, "imageTag": tag});
        let call = async |operation: &str, body: Value| {
            let target = format!("AmazonEC2ContainerRegistry_V20150921.{operation}");
            let request = post().header("x-amz-target", target);
            answer(self, ("eu-west-1", "ecr"), request, body.to_string()).await
        };
        let known = call("DescribeRepositories", json!({})).await;
        if !known.contains("\"shop\"") {
            call("CreateRepository", repository).await;
        }
        if tag != "missing" {
            call("PutImage", image).await;
        }
    }

    /// What a person sees of each function.
    pub(crate) async fn functions(&self) -> Vec<String> {
        let lambda = self.lambda();
        let listed = lambda.list_functions().send().await.expect("functions");
        let mut seen = Vec::new();
        for function in listed.functions() {
            let name = function.function_name().expect("a name");
            let state = match function.last_update_status().map(|status| status.as_str()) {
                Some("Successful") => function.state().map_or("?", |state| state.as_str()),
                other => other.unwrap_or("?"),
            };
            let versions = lambda
                .list_versions_by_function()
                .function_name(name)
                .send()
                .await;
            let versions = versions.expect("versions").versions.unwrap_or_default();
            let versions: Vec<_> = versions
                .into_iter()
                .filter_map(|one| one.version)
                .skip(1)
                .collect();
            let aliases = lambda.list_aliases().function_name(name).send().await;
            let aliases = aliases.expect("aliases").aliases.unwrap_or_default();
            let mut text = format!(
                "function {name} {} timeout {} {state}, versions {}",
                code(function.code_sha256().unwrap_or_default()),
                function.timeout().unwrap_or_default(),
                versions.join(" "),
            );
            for alias in &aliases {
                let (name, version) = (
                    alias.name().unwrap_or("?"),
                    alias.function_version().unwrap_or("?"),
                );
                text.push_str(&format!(", {name} at {version}"));
                let weights = alias
                    .routing_config()
                    .and_then(|routing| routing.additional_version_weights());
                for (version, weight) in weights.into_iter().flatten() {
                    text.push_str(&format!(" and {weight} at {version}"));
                }
            }
            seen.push(text);
        }
        seen
    }

    /// Somebody else gives the function another package.
    pub(crate) async fn somebody_changes_code(&self) {
        let call = self.lambda().update_function_code().function_name("shop");
        call.zip_file(Blob::new(package(99)))
            .send()
            .await
            .expect("changed");
    }

    /// Somebody else publishes a version with another timeout, and points `live` to it.
    pub(crate) async fn somebody_moves_live(&self) {
        let lambda = self.lambda();
        let change = lambda.update_function_configuration();
        let change = change.function_name("shop").timeout(9);
        change.send().await.expect("changed");
        self.clock.sleep(std::time::Duration::from_secs(60)).await;
        let published = lambda.publish_version().function_name("shop").send().await;
        let version = published.expect("a version").version.expect("a number");
        let moved = lambda.update_alias().function_name("shop").name("live");
        moved.function_version(version).send().await.expect("moved");
    }

    /// Somebody else changes the function, and points `live` to what is not published of it.
    pub(crate) async fn somebody_points_live_to_latest(&self) {
        let lambda = self.lambda();
        let change = lambda.update_function_configuration();
        let change = change.function_name("shop").timeout(9);
        change.send().await.expect("changed");
        self.clock.sleep(std::time::Duration::from_secs(60)).await;
        let moved = lambda.update_alias().function_name("shop").name("live");
        let moved = moved.function_version("$LATEST").send().await;
        moved.expect("moved");
    }

    /// Whether traffic ever reached a version that was not ready for it.
    pub(crate) fn traffic_was_ready(&self) -> bool {
        let seen = self.sandbox.alias_traffic("eu-west-1", "shop");
        seen.expect("an account").iter().all(|span| span.ready)
    }
}

/// A digest as people call what it is of.
fn code(sha256: &str) -> String {
    let known = (1..=99).find(|number| digest(&package(*number)) == sha256);
    let tags = ["1", "2", "3"];
    match (
        known,
        tags.iter()
            .find(|tag| hex(&digest_bytes(image_manifest(tag).as_bytes())) == sha256),
    ) {
        (Some(number), _) => format!("package {number}"),
        (None, Some(tag)) => format!("image {tag}"),
        (None, None) => sha256.to_owned(),
    }
}

fn digest_bytes(bytes: &[u8]) -> Vec<u8> {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(digest_bytes(bytes))
}
