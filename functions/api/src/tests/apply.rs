//! Folders of YAML become entities.

use serde_json::{Value, json};

use super::{Api, SCOPE};

fn rows(data: &Value) -> Vec<(String, String, String)> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("-").to_owned();
    data.as_array()
        .into_iter()
        .flatten()
        .map(|row| {
            (
                text(row, "kind"),
                text(row, "identifier"),
                text(row, "result"),
            )
        })
        .collect()
}

fn row(kind: &str, id: &str, result: &str) -> (String, String, String) {
    (kind.to_owned(), id.to_owned(), result.to_owned())
}

#[tokio::test(start_paused = true)]
async fn what_others_refer_to_comes_first_and_twice_is_once() {
    let api = Api::new().await;
    let expected = |result: &str| {
        vec![
            row("connector", "aws", result),
            row("connector", "docker_hub", result),
            row("service", "shop", result),
            row("environment", "production", result),
            row("infrastructureDefinition", "shop_cluster", result),
            row("pipeline", "deploy_shop", result),
        ]
    };
    assert_eq!(rows(&api.apply_golden().await), expected("created"));
    assert_eq!(rows(&api.apply_golden().await), expected("unchanged"));
}

#[tokio::test(start_paused = true)]
async fn a_refused_document_is_told_with_its_line_and_does_not_stop_the_others() {
    let api = Api::new().await;
    let yaml = "# two services\nservice:\n  name: a\n  identifier: a\n---\nservice:\n  name: b\n  identifer: b\n---\ntrigger:\n  name: t\n  identifier: t\n";
    let body = json!({"files": [{"file": "services.yaml", "yaml": yaml}]});
    let data = api
        .post(&format!("/slipway/api/apply?{SCOPE}"), &body)
        .await
        .data();
    let mut found = rows(&data);
    found.sort();
    assert_eq!(
        found,
        [
            row("service", "-", "refused"),
            row("service", "a", "created"),
            row("trigger", "t", "refused")
        ]
    );
    let errors: Vec<&Value> = data
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|row| row["errors"].as_array().into_iter().flatten())
        .collect();
    let typo = errors
        .iter()
        .find(|e| e["path"] == "service.identifer")
        .expect("the slip");
    assert_eq!(typo["line"], 8);
    let rendered = typo["rendered"].as_str().expect("text");
    assert!(
        rendered.contains("services.yaml:8:3") && rendered.contains("identifier"),
        "{rendered}"
    );
    assert!(errors.iter().any(|e| {
        e["message"]
            .as_str()
            .is_some_and(|m| m.contains("orgIdentifier"))
    }));
}

#[tokio::test(start_paused = true)]
async fn documents_go_where_they_say_they_belong() {
    let api = Api::new().await;
    let yaml = "project:\n  name: p\n  identifier: p\n  orgIdentifier: o\n---\norganization:\n  name: o\n  identifier: o\n---\nservice:\n  name: s\n  identifier: s\n  orgIdentifier: o\n  projectIdentifier: p\n---\nservice:\n  name: lost\n  identifier: lost\n  orgIdentifier: nowhere\n  projectIdentifier: p\n";
    let body = json!({"files": [{"file": "all.yaml", "yaml": yaml}]});
    let data = api
        .post(&format!("/slipway/api/apply?{SCOPE}"), &body)
        .await
        .data();
    assert_eq!(
        rows(&data),
        [
            row("organization", "o", "created"),
            row("project", "p", "created"),
            row("service", "s", "created"),
            row("service", "lost", "refused"),
        ]
    );
    let read = api
        .get("/ng/api/servicesV2/s?orgIdentifier=o&projectIdentifier=p")
        .await
        .data();
    assert_eq!(
        read["service"]["yaml"],
        "service:\n  name: s\n  identifier: s\n  orgIdentifier: o\n  projectIdentifier: p\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_without_files_is_refused() {
    let api = Api::new().await;
    assert_eq!(
        api.post("/slipway/api/apply", &json!({})).await.refusal().0,
        400
    );
    let body = json!({"files": [{"file": "a.yaml"}]});
    assert_eq!(api.post("/slipway/api/apply", &body).await.refusal().0, 400);
    let empty = json!({"files": [{"file": "a.yaml", "yaml": ""}]});
    let data = api
        .post(&format!("/slipway/api/apply?{SCOPE}"), &empty)
        .await
        .data();
    assert_eq!(data[0]["result"], "refused");
}
