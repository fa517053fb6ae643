//! A value goes in and never comes out.

use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use slipway_model::id::{AccountId, EntityId, OrgId, ProjectId, Scope};

use super::{Api, SCOPE};

const VALUE: &str = "s3cret \u{1f511}\nline";

fn secret(value: &Value) -> Value {
    json!({"secret": {"type": "SecretText", "name": "db pw", "identifier": "db_pw",
        "orgIdentifier": "default", "projectIdentifier": "default", "tags": {},
        "spec": {"type": "SecretTextSpec", "secretManagerIdentifier": "harnessSecretManager",
            "valueType": "Inline", "value": value}}})
}

async fn stored(api: &Api) -> String {
    let scope = Scope::project(
        AccountId::new("acme"),
        OrgId::new("default"),
        ProjectId::new("default"),
    );
    let value = api
        ._embedded
        .secrets()
        .get(&scope, &EntityId::new("db_pw"))
        .await;
    value.expect("a value").expose_secret().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_value_is_kept_exactly_and_never_shown() {
    let api = Api::new().await;
    let path = format!("/ng/api/v2/secrets?{SCOPE}");
    let made = api.post(&path, &secret(&json!(VALUE))).await;
    let one = format!("/ng/api/v2/secrets/db_pw?{SCOPE}");
    let mut read = api.get(&one).await.data();
    assert_eq!(read["secret"]["type"], "SecretText");
    assert_eq!(
        read["secret"]["spec"]["secretManagerIdentifier"],
        "harnessSecretManager"
    );
    assert_eq!(read["secret"]["spec"]["value"], Value::Null);
    assert!(read["updatedAt"].is_i64());
    assert_eq!(stored(&api).await, VALUE);

    // Read, change, write back: the value stays.
    read["secret"]["description"] = "of the database".into();
    let written = api.put(&one, &read).await;
    assert_eq!(written.data()["secret"]["description"], "of the database");
    assert_eq!(stored(&api).await, VALUE);
    let renewed = api.put(&one, &secret(&json!("n3w"))).await;
    assert_eq!(stored(&api).await, "n3w");

    let list = json!({"filterType": "Secret", "secretTypes": ["SecretText"]});
    let listed = api
        .post(&format!("/ng/api/v2/secrets/list/secrets?{SCOPE}"), &list)
        .await;
    assert_eq!(listed.data()["content"][0]["secret"]["identifier"], "db_pw");
    for answer in [made, written, renewed, listed] {
        assert!(
            !answer.text.contains("s3cret") && !answer.text.contains("n3w"),
            "{}",
            answer.text
        );
    }
    assert_eq!(api.delete(&one).await.data(), json!(true));
    assert_eq!(api.get(&one).await.refusal().0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_neither_shows_nor_changes_a_value() {
    let api = Api::new().await;
    let path = format!("/ng/api/v2/secrets?{SCOPE}");
    assert_eq!(
        api.post(&path, &secret(&Value::Null)).await.refusal().0,
        400
    );
    assert_eq!(api.post(&path, &secret(&json!(7))).await.refusal().0, 400);
    assert_eq!(
        api.post(&path, &secret(&json!("x".repeat(65_537))))
            .await
            .refusal()
            .0,
        400
    );
    api.post(&path, &secret(&json!(VALUE))).await.data();
    let again = api.post(&path, &secret(&json!("other-value"))).await;
    assert_eq!(again.refusal().1, "DUPLICATE_FIELD");
    assert!(!again.text.contains("other-value"));
    assert_eq!(stored(&api).await, VALUE);
    let mut file = secret(&json!("other-value"));
    file["secret"]["type"] = "SecretFile".into();
    file["secret"]["identifier"] = "file".into();
    let refused = api.post(&path, &file).await;
    assert_eq!(refused.refusal().0, 400);
    assert!(!refused.text.contains("other-value"));
}

#[tokio::test(start_paused = true)]
async fn applying_a_secret_keeps_its_value_out_of_the_yaml() {
    let api = Api::new().await;
    let yaml = "secret:\n  type: SecretText\n  name: db pw\n  identifier: db_pw\n  orgIdentifier: default\n  projectIdentifier: default\n  spec:\n    secretManagerIdentifier: harnessSecretManager\n    valueType: Inline\n    value: from-yaml-007\n";
    let body = json!({"files": [{"file": "secret.yaml", "yaml": yaml}]});
    let applied = api
        .post(&format!("/slipway/api/apply?{SCOPE}"), &body)
        .await;
    assert_eq!(applied.data()[0]["result"], "created", "{}", applied.text);
    assert_eq!(stored(&api).await, "from-yaml-007");
    let read = api.get(&format!("/ng/api/v2/secrets/db_pw?{SCOPE}")).await;
    assert!(!read.text.contains("from-yaml-007") && !applied.text.contains("from-yaml-007"));
    let scope = Scope::project(
        AccountId::new("acme"),
        OrgId::new("default"),
        ProjectId::new("default"),
    );
    let record = api
        .store
        .get_entity(&scope, "secret", None, &EntityId::new("db_pw"))
        .await;
    assert!(!record.expect("a record").yaml.contains("from-yaml-007"));
}
