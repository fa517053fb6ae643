//! Plans with manifests from a bucket and from a folder of the file store.

use aws_sdk_s3::primitives::ByteStream;
use serde_json::{Value, json};

use super::{Answer, Api, SCOPE};

const CONNECTOR: &str = "connector:\n  name: reader\n  identifier: reader\n  orgIdentifier: default\n  projectIdentifier: default\n  type: Aws\n  spec:\n    credential:\n      type: InheritFromDelegate\n      region: us-east-1\n";

/// The golden service with other stores.
fn service(task: &str, service: &str) -> String {
    let golden = include_str!("../../../../templates/ecs-rolling/service.yaml");
    let (head, rest) = golden.split_once("      manifests:\n").expect("manifests");
    let (_, artifacts) = rest.split_once("      artifacts:\n").expect("artifacts");
    let manifest = |id: &str, kind: &str, store: &str| {
        format!(
            "        - manifest: {{identifier: {id}, type: {kind}, spec: {{store: {store}}}}}\n"
        )
    };
    let task = manifest("task", "EcsTaskDefinition", task);
    let service = manifest("service", "EcsServiceDefinition", service);
    format!("{head}      manifests:\n{task}{service}      artifacts:\n{artifacts}")
}

fn bucket(name: &str, paths: &str) -> String {
    format!(
        "{{type: S3, spec: {{connectorRef: reader, region: us-east-1, bucketName: {name}, {paths}}}}}"
    )
}

impl Api {
    /// The golden pipeline whose service has these stores.
    async fn with_stores(&self, task: &str, manifest: &str) {
        self.apply_golden().await;
        let files = json!({"files": [
            {"file": "connector.yaml", "yaml": CONNECTOR},
            {"file": "service.yaml", "yaml": service(task, manifest)},
        ]});
        let rows = self
            .post(&format!("/slipway/api/apply?{SCOPE}"), &files)
            .await
            .data();
        let refused = |row: &&Value| row["result"] == "refused";
        assert_eq!(
            rows.as_array().and_then(|rows| rows.iter().find(refused)),
            None
        );
    }

    async fn planned(&self) -> Answer {
        let inputs = "pipeline:\n  identifier: deploy_shop\n  variables:\n    - name: tag\n      type: String\n      value: \"1.0\"\n";
        let path = format!("/slipway/api/plan/deploy_shop?{SCOPE}");
        self.call("POST", &path, "application/yaml", inputs).await
    }

    async fn put_object(&self, bucket: &str, key: &str, content: Vec<u8>) {
        let s3 = self._embedded.s3();
        // It may be there already.
        let _ = s3.create_bucket().bucket(bucket).send().await;
        let put = s3.put_object().bucket(bucket).key(key);
        put.body(ByteStream::from(content))
            .send()
            .await
            .expect("an object");
    }
}

#[tokio::test(start_paused = true)]
async fn manifests_come_from_a_bucket_and_from_a_folder_of_the_file_store() {
    let api = Api::new().await;
    for (key, text) in [
        ("deploy/ecs/task.yaml", "family: shop"),
        ("deploy/ecs/more/second.yaml", "family: more"),
        ("deploy/ecs-old/task.yaml", "family: old"),
    ] {
        api.put_object("acme-manifests", key, text.into()).await;
    }
    let folder = |id: &str, kind: &str, parent: &str, content: &str| {
        format!(
            "file:\n  identifier: {id}\n  name: {id}\n  type: {kind}\n  parentIdentifier: {parent}\n  content: '{content}'\n"
        )
    };
    let files = [
        folder("ecs", "FOLDER", "Root", ""),
        folder("inner", "FOLDER", "ecs", ""),
        folder("b", "FILE", "inner", "serviceName: b"),
        folder("a", "FILE", "ecs", "serviceName: a"),
        folder("ecs2", "FILE", "Root", "serviceName: other"),
    ];
    let body = json!({"files": [{"file": "files.yaml", "yaml": files.join("---\n")}]});
    let rows = api
        .post(&format!("/slipway/api/apply?{SCOPE}"), &body)
        .await
        .data();
    assert_eq!(rows.as_array().map(Vec::len), Some(5), "{rows}");
    let harness = "{type: Harness, spec: {files: [/ecs]}}";
    api.with_stores(
        &bucket("acme-manifests", "folderPath: /deploy/ecs"),
        harness,
    )
    .await;

    let shown = api.planned().await.data()["text"].to_string();
    let task = "manifest task (EcsTaskDefinition) from S3, 2 files, 24 bytes";
    let service = "manifest service (EcsServiceDefinition) from Harness, 2 files, 28 bytes";
    assert!(shown.contains(task) && shown.contains(service), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_read_say_why() {
    let api = Api::new().await;
    api.put_object("acme-manifests", "ecs/task.yaml", b"family: shop".to_vec())
        .await;
    api.put_object("acme-manifests", "ecs/logo.png", vec![0x89, 0xff])
        .await;
    api.put_object("acme-manifests", "ecs/huge.yaml", vec![b'#'; (8 << 20) + 1])
        .await;
    let table = [
        (
            bucket("acme-manifests", "paths: [ecs/taks.yaml]"),
            "there is no object or folder ecs/taks.yaml in bucket acme-manifests in us-east-1; the nearest that exist: `ecs/task.yaml`",
        ),
        (bucket("no-such-bucket", "paths: [a]"), "no-such-bucket"),
        (
            bucket("slipway", "paths: [blobs]"),
            "holds Slipway's own plans and logs",
        ),
        (
            bucket("acme-manifests", "paths: [ecs/logo.png]"),
            "ecs/logo.png is no text in UTF-8",
        ),
        (
            bucket("acme-manifests", "paths: [ecs/huge.yaml]"),
            "ecs/huge.yaml (8388609 bytes) they have more than 8388608 bytes",
        ),
    ];
    for (store, expected) in table {
        api.with_stores(&store, "{type: Inline, spec: {content: '{}'}}")
            .await;
        let answer = api.planned().await;
        assert_eq!(answer.status, 400, "{store}\n{}", answer.text);
        let found = &answer.text;
        assert!(
            found.contains("the files of manifest `task` cannot be read"),
            "{found}"
        );
        assert!(found.contains(expected), "{store}\n{found}");
    }
}
