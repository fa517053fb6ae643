//! Forms: files of the file store and files that are secrets.

use axum::body::Body;
use axum::http::Request;
use secrecy::ExposeSecret as _;
use serde_json::json;
use slipway_model::id::{AccountId, EntityId, OrgId, ProjectId, Scope};

use super::{Answer, Api, SCOPE};

impl Api {
    async fn form(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut body = String::new();
        for (name, value) in fields {
            let file = if *name == "file" {
                "; filename=\"a.txt\""
            } else {
                ""
            };
            body += &format!(
                "--xYz\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n"
            );
        }
        body += "--xYz--\r\n";
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("x-api-key", &self.token)
            .header("content-type", "multipart/form-data; boundary=xYz");
        self.send(request.body(Body::from(body)).expect("a request"))
            .await
    }

    /// What a plan finds at a path.
    async fn content(&self, path: &str) -> Option<String> {
        let id = EntityId::new(path);
        let found = self.store.find_entity(&scope(), "file", None, &id).await;
        found.expect("a store").map(|record| record.yaml)
    }

    async fn file(&self, id: &str, kind: &str, parent: &str, content: &str) -> Answer {
        let fields = [
            ("identifier", id),
            ("name", id),
            ("type", kind),
            ("parentIdentifier", parent),
            ("fileUsage", "MANIFEST_FILE"),
            ("description", ""),
            ("tags", "[{\"key\":\"k\",\"value\":\"v\"}]"),
            ("content", content),
        ];
        let path = format!("/ng/api/file-store?{SCOPE}");
        self.form("POST", &path, &fields).await
    }
}

fn scope() -> Scope {
    Scope::project(
        AccountId::new("acme"),
        OrgId::new("default"),
        ProjectId::new("default"),
    )
}

#[tokio::test(start_paused = true)]
async fn files_and_folders_live_their_lives() {
    let api = Api::new().await;
    let path = |rest: &str| format!("/ng/api/file-store{rest}?{SCOPE}");
    assert_eq!(
        api.file("charts", "FOLDER", "Root", "").await.data()["path"],
        "/charts"
    );
    let made = api.file("values", "FILE", "charts", "a: 1\n").await.data();
    assert_eq!(
        (&made["path"], &made["tags"][0]["key"]),
        (&json!("/charts/values"), &json!("k"))
    );
    assert_eq!(
        api.file("values", "FILE", "charts", "").await.refusal().1,
        "DUPLICATE_FIELD"
    );
    let content = api.get(&path("/files/values/download")).await;
    assert_eq!(
        (content.status.as_u16(), content.text.as_str()),
        (200, "a: 1\n")
    );
    assert_eq!(content.headers["content-type"], "application/octet-stream");
    // Where a plan looks for the content.
    let stored = api.content("/charts/values").await;
    assert_eq!(stored.as_deref(), Some("a: 1\n"));

    let children = json!({"identifier": "charts", "name": "charts", "type": "FOLDER"});
    let folder = api.post(&path("/folder"), &children).await.data();
    assert_eq!(folder["children"][0]["identifier"], "values");
    let root = json!({"identifier": "Root", "name": "Root", "type": "FOLDER"});
    assert_eq!(
        api.post(&path("/folder"), &root).await.data()["children"][0]["name"],
        "charts"
    );
    assert_eq!(api.get(&path("")).await.data()["totalItems"], 2);

    // A file that moves leaves nothing behind, and keeps its content when none is given.
    let fields = [
        ("name", "v.yaml"),
        ("type", "FILE"),
        ("parentIdentifier", "Root"),
    ];
    let moved = api.form("PUT", &path("/values"), &fields).await.data();
    assert_eq!(moved["path"], "/v.yaml");
    assert_eq!(
        api.get(&path("/files/values/download")).await.text,
        "a: 1\n"
    );
    let old = api.content("/charts/values").await;
    assert_eq!(old, None);
    assert_eq!(api.delete(&path("/values")).await.data(), json!(true));
    assert_eq!(api.get(&path("/values")).await.refusal().0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_folder_goes_with_all_that_is_in_it_and_paths_are_of_one_file() {
    let api = Api::new().await;
    api.file("a", "FOLDER", "Root", "").await.data();
    api.file("b", "FOLDER", "a", "").await.data();
    api.file("c", "FILE", "b", "text").await.data();
    api.file("ab", "FILE", "Root", "stays").await.data();
    let path = |rest: &str| format!("/ng/api/file-store{rest}?{SCOPE}");
    let fields = [
        ("name", "z"),
        ("type", "FOLDER"),
        ("parentIdentifier", "Root"),
    ];
    // A folder moves with all that is in it, but not into itself.
    let inside = [("name", "a"), ("type", "FOLDER"), ("parentIdentifier", "b")];
    let refused = api.form("PUT", &path("/a"), &inside).await.refusal();
    assert!(
        refused.2.contains("inside of the folder [a] itself"),
        "{}",
        refused.2
    );
    api.form("PUT", &path("/a"), &fields).await.data();
    assert_eq!(api.get(&path("/c")).await.data()["path"], "/z/b/c");
    assert_eq!(api.content("/z/b/c").await.as_deref(), Some("text"));
    assert_eq!(api.content("/a/b/c").await, None);
    let back = [
        ("name", "a"),
        ("type", "FOLDER"),
        ("parentIdentifier", "Root"),
    ];
    api.form("PUT", &path("/a"), &back).await.data();
    let same = [
        ("identifier", "other"),
        ("name", "c"),
        ("type", "FILE"),
        ("parentIdentifier", "b"),
    ];
    assert!(
        api.form("POST", &path(""), &same)
            .await
            .refusal()
            .2
            .contains("already stands")
    );
    for (field, value) in [
        ("name", "../x"),
        ("name", ".."),
        ("parentIdentifier", "c"),
        ("identifier", "a/b"),
    ] {
        let mut fields = vec![
            ("identifier", "n"),
            ("name", "n"),
            ("type", "FILE"),
            ("parentIdentifier", "Root"),
        ];
        for given in &mut fields {
            if given.0 == field {
                given.1 = value;
            }
        }
        let (status, _, message) = api.form("POST", &path(""), &fields).await.refusal();
        assert!(
            status == 400 && message.contains(field),
            "{field}: {message}"
        );
    }
    assert_eq!(api.delete(&path("/a")).await.data(), json!(true));
    let left = api.get(&path("")).await.data();
    assert_eq!(
        (&left["totalItems"], &left["content"][0]["identifier"]),
        (&json!(1), &json!("ab"))
    );
    // Elsewhere a form stays refused.
    let elsewhere = api
        .form(
            "POST",
            &format!("/ng/api/servicesV2?{SCOPE}"),
            &[("a", "b")],
        )
        .await;
    assert_eq!(elsewhere.status.as_u16(), 415);
}

#[tokio::test(start_paused = true)]
async fn the_content_of_a_secret_file_goes_in_and_never_comes_out() {
    let api = Api::new().await;
    let spec = json!({"secret": {"type": "SecretFile", "name": "kube", "identifier": "kube",
        "orgIdentifier": "default", "projectIdentifier": "default", "tags": {},
        "spec": {"secretManagerIdentifier": "harnessSecretManager", "content": "leak"}}})
    .to_string();
    let files = format!("/ng/api/v2/secrets/files?{SCOPE}");
    let made = api
        .form(
            "POST",
            &files,
            &[("spec", &spec), ("file", "top\r\nsecret")],
        )
        .await;
    assert!(
        !made.text.contains("secret\"}") && !made.text.contains("leak"),
        "{}",
        made.text
    );
    assert_eq!(made.data()["secret"]["type"], "SecretFile");
    let one = format!("/ng/api/v2/secrets/files/kube?{SCOPE}");
    let renamed = spec.replace("\"name\":\"kube\"", "\"name\":\"Kube\"");
    let put = api.form("PUT", &one, &[("spec", &renamed)]).await.data();
    assert_eq!(put["secret"]["name"], "Kube");
    let kept = api
        ._embedded
        .secrets()
        .get(&scope(), &EntityId::new("kube"))
        .await;
    assert_eq!(kept.expect("a value").expose_secret(), "top\r\nsecret");
    let stored = api
        .store
        .find_entity(&scope(), "secret", None, &EntityId::new("kube"))
        .await;
    let stored = stored.expect("a store").expect("a record").yaml;
    assert!(
        !stored.contains("top") && !stored.contains("leak"),
        "{stored}"
    );
    let empty = api
        .form("POST", &files, &[("spec", &spec.replace("kube", "k2"))])
        .await;
    assert!(empty.refusal().2.contains("file"));
}

#[tokio::test(start_paused = true)]
async fn keys_and_credentials_refer_to_secrets_and_hold_none() {
    let api = Api::new().await;
    let path = format!("/ng/api/v2/secrets?{SCOPE}");
    let ssh = |key: &str| {
        json!({"secret": {"type": "SSHKey", "name": "k", "identifier": "k",
            "orgIdentifier": "default", "projectIdentifier": "default",
            "spec": {"port": 22, "auth": {"type": "SSH", "spec": {"credentialType": "KeyReference",
                "spec": {"userName": "ec2", "key": key, "encryptedPassphrase": null}}}}}})
    };
    let made = api.post(&path, &ssh("account.the_key")).await.data();
    assert_eq!(
        made["secret"]["spec"]["auth"]["spec"]["spec"]["key"],
        "account.the_key"
    );
    let literal = api
        .post(&path, &ssh("-----BEGIN RSA PRIVATE KEY-----"))
        .await;
    assert!(!literal.text.contains("BEGIN"), "{}", literal.text);
    assert!(literal.refusal().2.contains("not a value"));
    let winrm = json!({"secret": {"type": "WinRmCredentials", "name": "w", "identifier": "w",
        "orgIdentifier": "default", "projectIdentifier": "default",
        "spec": {"port": 5986, "auth": {"type": "NTLM", "spec": {"domain": "d", "username": "u",
            "password": "the_password", "useSSL": true}}}}});
    assert_eq!(
        api.post(&path, &winrm).await.data()["secret"]["type"],
        "WinRmCredentials"
    );
    let other = json!({"secret": {"type": "SecretText", "name": "w", "identifier": "w",
        "orgIdentifier": "default", "projectIdentifier": "default",
        "spec": {"valueType": "Inline", "value": "x"}}});
    let changed = api
        .put(&format!("/ng/api/v2/secrets/w?{SCOPE}"), &other)
        .await
        .refusal();
    assert!(changed.2.contains("type"), "{}", changed.2);
}
