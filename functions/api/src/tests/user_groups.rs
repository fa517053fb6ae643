//! User groups: as entities, and as those who approve.

use serde_json::{Value, json};

use super::{Api, SCOPE};

fn leads(users: Value) -> Value {
    json!({
        "identifier": "leads", "name": "Leads", "description": "who decides", "tags": {"a": "b"},
        "accountIdentifier": "acme", "orgIdentifier": "default", "projectIdentifier": "default",
        "users": users, "isSsoLinked": false, "ssoGroupId": null,
        "notificationConfigs": [{"type": "SLACK", "slackWebhookUrl": "https://hooks.example.com/x"}],
    })
}

#[tokio::test(start_paused = true)]
async fn a_group_is_made_read_listed_changed_and_removed() {
    let api = Api::new().await;
    let path = format!("/ng/api/user-groups?{SCOPE}");
    let made = api.post(&path, &leads(json!(["sam"]))).await.data();
    insta::assert_json_snapshot!(made, @r#"
    {
      "name": "Leads",
      "identifier": "leads",
      "orgIdentifier": "default",
      "projectIdentifier": "default",
      "description": "who decides",
      "tags": {
        "a": "b"
      },
      "users": [
        "sam"
      ],
      "notificationConfigs": [
        {
          "type": "SLACK",
          "slackWebhookUrl": "https://hooks.example.com/x"
        }
      ],
      "accountIdentifier": "acme",
      "ssoLinked": false,
      "isSsoLinked": false,
      "linkedSsoId": null,
      "linkedSsoType": null,
      "linkedSsoDisplayName": null,
      "ssoGroupId": null,
      "ssoGroupName": null,
      "externallyManaged": false,
      "harnessManaged": false
    }
    "#);
    assert_eq!(
        api.post(&path, &leads(json!([]))).await.refusal().0,
        400,
        "it is there"
    );
    let one = format!("/ng/api/user-groups/leads?{SCOPE}");
    assert_eq!(api.get(&one).await.data(), made);

    let member = |user: &str| format!("/ng/api/user-groups/leads/member/{user}?{SCOPE}");
    assert_eq!(api.get(&member("SAM")).await.data(), json!(true));
    assert_eq!(api.get(&member("eve")).await.data(), json!(false));
    let with = api.put(&member("eve"), &json!({})).await.data();
    assert_eq!(with["users"], json!(["sam", "eve"]));
    let again = api.put(&member("eve"), &json!({})).await.data();
    assert_eq!(again["users"], json!(["sam", "eve"]));
    let without = api.delete(&member("sam")).await.data();
    assert_eq!(without["users"], json!(["eve"]));
    assert_eq!(without["notificationConfigs"], made["notificationConfigs"]);

    let newer = format!("/ng/api/v2/user-groups?{SCOPE}");
    let changed = api.put(&newer, &leads(json!(["jo@example.com"]))).await;
    let user =
        json!({"uuid": "jo@example.com", "name": "jo@example.com", "email": "jo@example.com"});
    assert_eq!(changed.data()["users"], json!([user]));

    let listed = api.get(&format!("{path}&searchTerm=lea")).await.data();
    assert_eq!(listed["content"][0]["identifier"], "leads");
    let none = api.get(&format!("{path}&searchTerm=nobody")).await.data();
    assert_eq!(none["content"], json!([]));
    assert_eq!(api.delete(&one).await.data()["identifier"], "leads");
    assert_eq!(api.get(&one).await.refusal().0, 404);

    let odd =
        json!({"identifier": "odd", "name": "Odd", "notificationConfigs": [{"type": "PIGEON"}]});
    let (status, _, message) = api.post(&path, &odd).await.refusal();
    assert!(status == 400 && message.contains("EMAIL"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn an_enabled_freeze_is_disabled_before_it_is_edited() {
    let api = Api::new().await;
    let freeze = |status: &str, duration: &str| {
        format!(
            "freeze:\n  name: Night\n  identifier: night\n  orgIdentifier: default\n  projectIdentifier: default\n  \
             status: {status}\n  entityConfigs: [{{name: all, entities: [{{type: Org, filterType: \
             All}}]}}]\n  windows:\n    - timeZone: UTC\n      startTime: 2026-01-01 01:00 AM\n      duration: {duration}\n"
        )
    };
    let all = format!("/ng/api/freeze?{SCOPE}");
    let one = format!("/ng/api/freeze/night?{SCOPE}");
    let yaml = "application/yaml";
    let put = |text: String| {
        let (api, one) = (&api, &one);
        async move { api.call("PUT", one, yaml, &text).await }
    };
    api.call("POST", &all, yaml, &freeze("Disabled", "3h"))
        .await
        .data();
    put(freeze("Disabled", "4h")).await.data();
    put(freeze("Enabled", "5h")).await.data();
    let (status, _, message) = put(freeze("Enabled", "6h")).await.refusal();
    assert!(
        status == 409 && message.contains("disable it"),
        "{status} {message}"
    );
    put(freeze("Enabled", "5h")).await.data();
    let files = json!({"files": [{"file": "night.yaml", "yaml": freeze("Enabled", "6h")}]});
    let applied = api
        .post(&format!("/slipway/api/apply?{SCOPE}"), &files)
        .await;
    assert!(applied.text.contains("disable it"), "{}", applied.text);
    put(freeze("Disabled", "6h")).await.data();
    put(freeze("Disabled", "7h")).await.data();
}
