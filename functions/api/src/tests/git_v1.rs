//! Entities in Git by v1 requests, as the Terraform provider sends them, and what is taken over from Git.

use serde_json::{Value, json};

use super::git::{FILE, PIPELINE, Repository, SET};
use super::{Api, SCOPE};

const PROJECT: &str = "/v1/orgs/default/projects/default";
const TEMPLATE: &str = "template:\n  name: t\n  identifier: t\n  versionLabel: v1\n  type: Step\n  orgIdentifier: default\n  projectIdentifier: default\n  spec:\n    type: Wait\n    spec:\n      duration: 1s\n";
const STAGE: &str = "template:\n  name: t\n  identifier: t\n  versionLabel: v3\n  type: Stage\n  orgIdentifier: default\n  projectIdentifier: default\n  spec:\n    type: Custom\n    spec:\n      execution:\n        steps:\n          - step:\n              name: w\n              identifier: w\n              type: Wait\n              spec:\n                duration: 1s\n";

fn details(more: &Value) -> Value {
    let mut details = json!({"store_type": "REMOTE", "connector_ref": "code", "branch_name": "main", "file_path": FILE});
    if let (Some(details), Some(more)) = (details.as_object_mut(), more.as_object()) {
        details.extend(more.clone());
    }
    details
}

fn pipeline(yaml: &str, git: &Value) -> Value {
    json!({"identifier": "p", "name": "p", "tags": {}, "pipeline_yaml": yaml, "git_details": git})
}

impl Api {
    async fn read(&self, path: &str) -> Value {
        let answer = self.get(&format!("{PROJECT}/{path}")).await;
        assert_eq!(answer.status.as_u16(), 200, "{path}: {}", answer.text);
        answer.json()
    }

    async fn sent(&self, method: &str, path: &str, body: &Value, status: u16) -> Value {
        let path = format!("{PROJECT}/{path}");
        let body = body.to_string();
        let answer = self.call(method, &path, "application/json", &body).await;
        assert_eq!(answer.status.as_u16(), status, "{path}: {}", answer.text);
        answer.json()
    }
}

#[tokio::test]
async fn a_pipeline_is_saved_to_git_and_read_at_a_branch() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    let new = pipeline(PIPELINE, &details(&json!({"commit_message": "Hello"})));
    let made = api.sent("POST", "pipelines", &new, 201).await;
    assert_eq!(made["identifier"], "p");
    assert_eq!(repository.show("main", FILE), PIPELINE);
    let shown = api.read("pipelines/p").await;
    let git = &shown["git_details"];
    assert_eq!(shown["pipeline_yaml"], PIPELINE);
    assert_eq!(
        (&git["branch_name"], &git["file_path"], &git["commit_id"]),
        (
            &json!("main"),
            &json!(FILE),
            &json!(repository.head("main"))
        )
    );
    assert_eq!(
        (&git["drift"], &git["connector_ref"]),
        (&json!(false), &json!("code"))
    );

    // What somebody else writes is read, and not overwritten by who has not read it.
    let theirs = PIPELINE.replace("1s", "5s");
    repository.commit("main", FILE, &theirs);
    let read = api.read("pipelines/p").await;
    assert_eq!(read["pipeline_yaml"], theirs);
    assert_eq!(read["git_details"]["drift"], true);
    let mine = PIPELINE.replace("1s", "9s");
    let seen = |object: &Value| pipeline(&mine, &details(&json!({"last_object_id": object})));
    let stale = seen(&git["object_id"]);
    let refused = api.sent("PUT", "pipelines/p", &stale, 409).await;
    assert_eq!(refused["code"], "OPTIMISTIC_LOCKING_EXCEPTION", "{refused}");
    assert_eq!(repository.show("main", FILE), theirs);
    let fresh = seen(&read["git_details"]["object_id"]);
    api.sent("PUT", "pipelines/p", &fresh, 200).await;
    assert_eq!(repository.show("main", FILE), mine);

    // A branch that begins at another one.
    let branched = json!({"branch_name": "try", "base_branch": "main"});
    let branched = pipeline(&theirs, &details(&branched));
    api.sent("PUT", "pipelines/p", &branched, 200).await;
    assert_eq!(repository.show("try", FILE), theirs);
    assert_eq!(repository.show("main", FILE), mine);
    let there = api.read("pipelines/p?branch_name=try").await;
    assert_eq!(there["pipeline_yaml"], theirs);
    assert_eq!(api.read("pipelines/p").await["pipeline_yaml"], mine);

    // Broken YAML is shown with what is wrong.
    repository.commit("main", FILE, "pipeline: [");
    let broken = api.read("pipelines/p").await;
    assert_eq!(broken["valid"], false, "{broken}");
    assert_eq!(broken["pipeline_yaml"], "pipeline: [");
    let listed = api.read("pipelines").await;
    assert_eq!(listed[0]["store_type"], "REMOTE");
    assert_eq!(listed[0]["git_details"]["file_path"], FILE);
}

#[tokio::test]
async fn input_sets_and_templates_are_saved_to_git() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    let inline = pipeline(PIPELINE, &json!({"store_type": "INLINE"}));
    api.sent("POST", "pipelines", &inline, 201).await;
    assert_eq!(api.read("pipelines/p").await["git_details"], Value::Null);

    let file = json!({"file_path": "sets/i.yaml"});
    let set = json!({"input_set_yaml": SET, "identifier": "i", "name": "i", "git_details": details(&file)});
    let made = api.sent("POST", "input-sets?pipeline=p", &set, 201).await;
    assert_eq!(made["git_details"]["file_path"], "sets/i.yaml");
    assert_eq!(repository.show("main", "sets/i.yaml"), SET);
    let renamed = SET.replace("name: i", "name: other");
    repository.commit("main", "sets/i.yaml", &renamed);
    let read = api.read("input-sets/i?pipeline=p").await;
    assert_eq!(read["input_set_yaml"], renamed);
    let object = &read["git_details"]["object_id"];
    let git = details(&json!({"file_path": "sets/i.yaml", "last_object_id": object}));
    let back = json!({"input_set_yaml": SET, "git_details": git});
    api.sent("PUT", "input-sets/i?pipeline=p", &back, 200).await;
    assert_eq!(repository.show("main", "sets/i.yaml"), SET);

    let file = json!({"file_path": "t.yaml"});
    let template =
        json!({"template_yaml": TEMPLATE, "is_stable": true, "git_details": details(&file)});
    let made = api.sent("POST", "templates", &template, 201).await;
    assert_eq!(made["store_type"], "REMOTE", "{made}");
    let changed = TEMPLATE.replace("1s", "33s");
    repository.commit("main", "t.yaml", &changed);
    let read = api.read("templates/t").await;
    assert_eq!(read["template"]["yaml"], changed);
    assert_eq!(read["template"]["git_details"]["drift"], true);
}

#[tokio::test]
async fn what_is_in_git_already_is_taken_over() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    for (file, text) in [
        (FILE, PIPELINE),
        ("i.yaml", SET),
        ("t1.yaml", TEMPLATE),
        ("t2.yaml", &TEMPLATE.replace("v1", "v2")),
        ("stage.yaml", STAGE),
    ] {
        repository.commit("main", file, text);
    }
    let from =
        |file: &str| json!({"connector_ref": "code", "branch_name": "main", "file_path": file});
    let of = |file: &str| json!({"git_import_info": from(file)});
    let named = api
        .sent("POST", "pipelines/other/import", &of(FILE), 400)
        .await;
    let why = named["message"].as_str().unwrap_or_default();
    assert!(why.contains("the YAML says `p`"), "{named}");
    let nothing = api
        .sent("POST", "pipelines/p/import", &json!({}), 400)
        .await;
    assert!(
        nothing["message"]
            .to_string()
            .contains("git_import_info.file_path"),
        "{nothing}"
    );
    let made = api.sent("POST", "pipelines/p/import", &of(FILE), 200).await;
    assert_eq!(made["identifier"], "p");
    let set = "input-sets/i/import?pipeline=p";
    let made = api.sent("POST", set, &of("i.yaml"), 200).await;
    assert_eq!(made["input_set_identifier"], "i");

    // Of a template each version is taken over by itself; the first one is the stable one.
    let version = |file: &str, label: &str| json!({"git_import_details": from(file), "template_import_request": {"template_version": label}});
    let import = "templates/t/import";
    let wrong = api
        .sent("POST", import, &version("t1.yaml", "v9"), 400)
        .await;
    assert!(
        wrong["message"].to_string().contains("versionLabel"),
        "{wrong}"
    );
    let made = api
        .sent("POST", import, &version("t1.yaml", "v1"), 200)
        .await;
    assert_eq!(made["identifier"], "t");
    let path =
        format!("/template/api/templates/import/t?{SCOPE}&connectorRef=code&branch=main&filePath=");
    let second = json!({"templateVersion": "v2"});
    let second = api.post(&format!("{path}t2.yaml"), &second).await.data();
    assert_eq!(second["templateVersion"], "v2");
    let stage = api.post(&format!("{path}stage.yaml"), &json!({})).await;
    assert!(
        stage.refusal().2.contains("is of type Step"),
        "{}",
        stage.text
    );
    let stable = api.read("templates/t").await;
    assert_eq!(stable["template"]["version_label"], "v1");
    let other = api.read("templates/t/versions/v2").await;
    assert_eq!(other["template"]["git_details"]["file_path"], "t2.yaml");

    // A file that was moved is said anew.
    repository.commit("main", "moved/p.yaml", PIPELINE);
    let moved = json!({"file_path": "moved/p.yaml"});
    let placed = api
        .sent("PUT", "pipelines/p/git-metadata", &moved, 200)
        .await;
    assert_eq!(placed["entity_identifier"], "p");
    let shown = api.read("pipelines/p").await;
    assert_eq!(shown["git_details"]["file_path"], "moved/p.yaml");
    repository.commit("main", "moved/i.yaml", SET);
    let moved = json!({"file_path": "moved/i.yaml"});
    let set = "input-sets/i/git-metadata?pipeline=p";
    assert_eq!(
        api.sent("PUT", set, &moved, 200).await["entity_identifier"],
        "i"
    );
    let gone = json!({"file_path": "nowhere.yaml"});
    let refused = api
        .sent("PUT", "pipelines/p/git-metadata", &gone, 400)
        .await;
    assert!(
        refused["message"].to_string().contains("nowhere.yaml"),
        "{refused}"
    );
}

#[tokio::test]
async fn what_is_kept_here_moves_into_git_and_out_of_it() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    let new = json!({"identifier": "p", "name": "p", "pipeline_yaml": PIPELINE});
    api.sent("POST", "pipelines", &new, 201).await;
    let new = json!({"identifier": "i", "name": "i", "input_set_yaml": SET});
    api.sent("POST", "input-sets?pipeline=p", &new, 201).await;
    let new = json!({"template_yaml": TEMPLATE, "is_stable": true});
    api.sent("POST", "templates", &new, 201).await;
    let to = |file: &str, kind: &str| {
        json!({
            "git_details": {"connector_ref": "code", "branch_name": "main", "file_path": file, "commit_message": "Moved"},
            "move_config_operation_type": kind,
        })
    };
    let wrong = to(FILE, "SIDEWAYS");
    let wrong = api
        .sent("POST", "pipelines/p/move-config", &wrong, 400)
        .await;
    assert!(
        wrong["message"].to_string().contains("INLINE_TO_REMOTE"),
        "{wrong}"
    );
    let into = to(FILE, "INLINE_TO_REMOTE");
    let moved = api
        .sent("POST", "pipelines/p/move-config", &into, 200)
        .await;
    assert_eq!(moved["pipeline_identifier"], "p");
    let into = to("i.yaml", "INLINE_TO_REMOTE");
    let set = "input-sets/i/move-config?pipeline=p";
    let moved = api.sent("POST", set, &into, 200).await;
    assert_eq!(moved["input_set_identifier"], "i");
    let template = format!(
        "/template/api/templates/move-config/t?{SCOPE}&versionLabel=v1&moveConfigType=INLINE_TO_REMOTE&connectorRef=code&branch=main&filePath=t.yaml"
    );
    api.post(&template, &json!({})).await.data();
    for (file, text) in [(FILE, PIPELINE), ("i.yaml", SET), ("t.yaml", TEMPLATE)] {
        assert_eq!(repository.show("main", file), text);
    }
    // What Git has by then comes back.
    let changed = TEMPLATE.replace("1s", "44s");
    repository.commit("main", "t.yaml", &changed);
    let back = template.replace("INLINE_TO_REMOTE", "REMOTE_TO_INLINE");
    api.post(&back, &json!({})).await.data();
    let read = api.read("templates/t").await;
    assert_eq!(
        (&read["template"]["yaml"], &read["template"]["store_type"]),
        (&json!(changed), &json!("INLINE"))
    );
    let out = json!({"move_config_operation_type": "REMOTE_TO_INLINE"});
    api.sent("POST", "pipelines/p/move-config", &out, 200).await;
    assert_eq!(api.read("pipelines/p").await["store_type"], "INLINE");
    let again = api.sent("POST", "pipelines/p/move-config", &out, 400).await;
    assert!(
        again["message"].to_string().contains("not kept in Git"),
        "{again}"
    );
}
