//! Exports of an installation, and their imports into others.

use serde_json::{Value, json};

use super::{Api, SCOPE};

const DOCUMENTS: &str = "organization: {identifier: shops, name: Shops}
---
project: {identifier: web, name: Web, orgIdentifier: shops}
---
secret: {identifier: token, name: token, type: SecretText, orgIdentifier: default, projectIdentifier: default, spec: {secretManagerIdentifier: harnessSecretManager, valueType: Inline, value: hunter2}}
---
variable: {identifier: zone, name: zone, type: String, orgIdentifier: default, projectIdentifier: default, spec: {valueType: FIXED, fixedValue: eu}}
---
file: {identifier: docs, name: docs, type: FOLDER, parentIdentifier: Root}
---
file: {identifier: readme, name: readme.md, type: FILE, parentIdentifier: docs, content: \"# naïve\\n\"}
---
template: {identifier: wait, name: wait, versionLabel: v1, type: Step, orgIdentifier: default, projectIdentifier: default, spec: {type: Wait, spec: {duration: 1s}}}
---
template: {identifier: wait, name: wait, versionLabel: v2, type: Step, orgIdentifier: default, projectIdentifier: default, spec: {type: Wait, spec: {duration: 2s}}}
---
service: {identifier: cart, name: Cart, serviceDefinition: {type: ECS, spec: {}}}
---
environment: {identifier: prod, name: Prod, type: Production}
---
connector: {identifier: aws, name: AWS, type: Aws, spec: {credential: {type: InheritFromDelegate}}}
---
infrastructureDefinition: {identifier: main, name: Main, environmentRef: prod, deploymentType: ECS, type: ECS, spec: {connectorRef: aws, region: us-east-1, cluster: c}}
---
overrides: {type: ENV_SERVICE_OVERRIDE, environmentRef: prod, serviceRef: cart, variables: [{name: level, type: String, value: low}]}
---
pipeline: {identifier: say, name: Say, orgIdentifier: default, projectIdentifier: default, variables: [{name: tag, type: String, value: <+input>}], stages: [{stage: {identifier: a, name: A, type: Custom, spec: {execution: {steps: [{step: {identifier: w, name: W, type: Wait, timeout: 1m, spec: {duration: 1s}}}]}}}}]}
---
inputSet: {identifier: one, name: One, orgIdentifier: default, projectIdentifier: default, pipeline: {identifier: say, variables: [{name: tag, type: String, value: '1'}]}}
";

async fn filled() -> Api {
    let api = Api::new().await;
    let files = json!({"files": [{"file": "all.yaml", "yaml": DOCUMENTS}]});
    let rows = api
        .post(&format!("/slipway/api/apply?{SCOPE}"), &files)
        .await
        .data();
    let refused = rows.as_array().into_iter().flatten();
    let refused: Vec<_> = refused.filter(|row| row["result"] == "refused").collect();
    assert!(refused.is_empty(), "{refused:#?}");
    api
}

async fn export(api: &Api) -> Value {
    api.get(&format!("/slipway/api/export?{SCOPE}"))
        .await
        .data()
}

/// What an export says, but for when it was written.
fn said(export: &Value) -> Vec<Value> {
    let records = export["records"].as_array().cloned().unwrap_or_default();
    let timeless = records.into_iter().map(|mut record| {
        for field in ["created_ms", "updated_ms", "version"] {
            record
                .as_object_mut()
                .and_then(|record| record.remove(field));
        }
        record
    });
    timeless.collect()
}

#[tokio::test(start_paused = true)]
async fn f22_an_export_is_imported_without_loss_and_exported_again_the_same() {
    let first = filled().await;
    let exported = export(&first).await;
    assert!(!exported.to_string().contains("hunter2"));
    assert_eq!(
        exported["secretsWithoutValue"],
        json!(["token in project [default], org [default]"])
    );
    let mut kinds: Vec<_> = said(&exported)
        .iter()
        .filter_map(|record| record["kind"].as_str().map(str::to_owned))
        .collect();
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds.len(), 13, "{kinds:?}");

    let second = Api::new().await;
    let path = format!("/slipway/api/import?{SCOPE}");
    // What every installation begins with.
    let first_there = said(&export(&second).await).len();
    let imported = second.post(&path, &exported).await.data();
    let total = said(&exported).len();
    assert_eq!(imported["imported"], json!(total - first_there));
    assert_eq!(imported["unchanged"], json!(first_there));
    let again = export(&second).await;
    assert_eq!(said(&again), said(&exported));
    let repeated = second.post(&path, &exported).await.data();
    assert_eq!(repeated["imported"], json!(0));

    // It is what it was to whoever uses it: files by their paths, the stable version of a template, a plan.
    let content = second
        .get(&format!("/ng/api/file-store/files/readme/download?{SCOPE}"))
        .await;
    assert_eq!(content.text, "# naïve\n");
    let stable = second
        .get(&format!("/template/api/templates/wait?{SCOPE}"))
        .await
        .data();
    let before = first
        .get(&format!("/template/api/templates/wait?{SCOPE}"))
        .await
        .data();
    assert_eq!(stable["versionLabel"], before["versionLabel"]);
}

#[tokio::test(start_paused = true)]
async fn f22_what_cannot_be_imported_is_listed_and_nothing_is() {
    let exported = export(&filled().await).await;
    let api = Api::new().await;
    let path = format!("/slipway/api/import?{SCOPE}");

    let mut newer = exported.clone();
    newer["format"] = json!(2);
    let (status, code, message) = api.post(&path, &newer).await.refusal();
    assert_eq!(status, 400, "{code}");
    assert!(
        message.contains("format 2, and this version reads 1 only"),
        "{message}"
    );

    // An entity, a kind and a field that only a newer version knows, and one that is there and differs.
    let mine = "service: {identifier: cart, name: Other, serviceDefinition: {type: ECS, spec: {}}}";
    let files = json!({"files": [{"file": "mine.yaml", "yaml": mine}]});
    api.post(&format!("/slipway/api/apply?{SCOPE}"), &files)
        .await
        .data();
    let mut changed = exported.clone();
    let records = changed["records"].as_array_mut().expect("records");
    let at = |records: &[Value], kind: &str| {
        let mut all = records.iter();
        all.position(|record| record["kind"] == kind)
            .expect("a record")
    };
    let (pipeline, environment, connector) = (
        at(records, "pipeline"),
        at(records, "environment"),
        at(records, "connector"),
    );
    records[pipeline]["yaml"] = json!("pipeline: [");
    records[environment]["kind"] = json!("planet");
    records[connector]["mood"] = json!("good");
    let before = export(&api).await;
    let (status, _, message) = api.post(&path, &changed).await.refusal();
    assert_eq!(status, 400);
    for expected in [
        "nothing was imported",
        "pipeline say in project [default], org [default]: ",
        "knows no entities of the kind `planet`",
        "fields that this version does not know: mood",
        "service cart in project [default], org [default]: it is there and says something else",
    ] {
        assert!(message.contains(expected), "{expected}\n{message}");
    }
    assert_eq!(export(&api).await, before);

    let (status, _, message) = api
        .post(&path, &json!({"format": 1, "records": [], "more": 1}))
        .await
        .refusal();
    assert!(
        status == 400 && message.contains("unknown field `more`"),
        "{message}"
    );
}
