//! Templates: versions, the stable one, and pipelines that use them.

use serde_json::json;

use super::{Api, SCOPE};

fn step(version: &str, seconds: u32) -> String {
    format!(
        "# waits\ntemplate:\n  name: pause\n  identifier: pause\n  versionLabel: {version}\n  type: Step\n  orgIdentifier: default\n  projectIdentifier: default\n  spec:\n    type: Wait\n    timeout: <+input>\n    spec:\n      duration: {seconds}s\n"
    )
}

const USER: &str = "pipeline:\n  name: use\n  identifier: use\n  orgIdentifier: default\n  projectIdentifier: default\n  stages:\n    - stage:\n        name: one\n        identifier: one\n        type: Custom\n        spec:\n          execution:\n            steps:\n              - step:\n                  name: w\n                  identifier: w\n                  template:\n                    templateRef: pause\n                    templateInputs:\n                      type: Wait\n                      timeout: 1m\n";

#[tokio::test(start_paused = true)]
async fn templates_in_ng_form() {
    let api = Api::new().await;
    let path = |rest: &str| format!("/template/api/templates{rest}?{SCOPE}");
    let yaml = async |method: &str, path: &str, yaml: &str| {
        api.call(method, path, "application/yaml", yaml).await
    };
    let made = yaml("POST", &path(""), &step("v1", 1)).await.data();
    assert_eq!(
        (&made["stableTemplate"], &made["versionLabel"]),
        (&json!(true), &json!("v1"))
    );
    assert_eq!(made["templateResponseDTO"]["identifier"], "pause");
    let second = yaml("POST", &path(""), &step("v2", 2)).await.data();
    assert_eq!(second["stableTemplate"], false);
    let twice = yaml("POST", &path(""), &step("v2", 2)).await.refusal();
    assert_eq!(twice.1, "DUPLICATE_FIELD");

    let stable = api.get(&path("/pause")).await.data();
    assert_eq!(
        (&stable["yaml"], &stable["childType"]),
        (&json!(step("v1", 1)), &json!("Wait"))
    );
    let named = api
        .get(&format!("{}&versionLabel=v2", path("/pause")))
        .await
        .data();
    assert_eq!(
        (&named["yaml"], &named["templateScope"]),
        (&json!(step("v2", 2)), &json!("project"))
    );
    for (kind, expected) in [("Stable", 1), ("LastUpdated", 1), ("All", 2)] {
        let listed = format!("{}&templateListType={kind}", path("/list"));
        let body = json!({"filterType": "Template", "templateEntityTypes": ["Step"]});
        assert_eq!(
            api.post(&listed, &body).await.data()["totalElements"],
            expected,
            "{kind}"
        );
    }
    let other = json!({"filterType": "Template", "templateEntityTypes": ["Stage"]});
    assert_eq!(
        api.post(&path("/list"), &other).await.data()["totalElements"],
        0
    );

    let moved = api
        .put(&path("/updateStableTemplate/pause/v2"), &json!({}))
        .await
        .data();
    assert_eq!(moved, json!("v2"));
    assert_eq!(api.get(&path("/pause")).await.data()["versionLabel"], "v2");
    let update = yaml("PUT", &path("/update/pause/v1"), &step("v1", 3))
        .await
        .data();
    assert_eq!(
        (&update["stableTemplate"], &update["yaml"]),
        (&json!(false), &json!(step("v1", 3)))
    );
    let slip = yaml("PUT", &path("/update/pause/v1"), &step("v2", 3))
        .await
        .refusal();
    assert!(slip.2.contains("versionLabel"), "{}", slip.2);
    let typed = step("v3", 1)
        .replace("type: Step", "type: StepGroup")
        .replace(
            "    type: Wait\n    timeout: <+input>\n    spec:\n      duration: 1s\n",
            "    steps: []\n",
        );
    assert!(
        yaml("POST", &path(""), &typed)
            .await
            .refusal()
            .2
            .contains("type")
    );

    let held = api.delete(&path("/pause/v2")).await.refusal();
    assert!(held.2.contains("stable"), "{}", held.2);
    assert_eq!(api.delete(&path("/pause/v1")).await.data(), json!(true));
    assert_eq!(api.delete(&path("/pause/v2")).await.data(), json!(true));
    assert_eq!(api.get(&path("/pause")).await.refusal().0, 404);
}

#[tokio::test(start_paused = true)]
async fn templates_in_v1_form_at_every_scope() {
    let api = Api::new().await;
    let bare = |yaml: String| {
        yaml.replace("  orgIdentifier: default\n", "")
            .replace("  projectIdentifier: default\n", "")
    };
    for (scope, name) in [
        ("/v1", "account"),
        ("/v1/orgs/default", "org"),
        ("/pipeline/api/v1/orgs/default/projects/default", "project"),
    ] {
        let path = format!("{scope}/templates");
        for version in ["1", "2"] {
            let body =
                json!({"template_yaml": bare(step(version, 1)), "is_stable": version == "2"});
            let made = api.post(&path, &body).await;
            assert_eq!(made.status.as_u16(), 201, "{}", made.text);
            assert_eq!(made.json()["version_label"], version);
        }
        let stable = api.get(&format!("{path}/pause")).await.json();
        assert_eq!(stable["template"]["version_label"], "2");
        assert_eq!(stable["template"]["scope"], name);
        assert!(
            stable["inputs"]
                .as_str()
                .is_some_and(|i| i.contains("timeout: <+input>"))
        );
        let all = api
            .get(&format!(
                "{path}?identifiers=pause&type=ALL&page=0&limit=10"
            ))
            .await;
        assert_eq!(all.headers["x-total-elements"], "2");
        assert_eq!(all.json()[0]["version_label"], "1");
        let moved = api
            .put(&format!("{path}/pause/versions/1/stable"), &json!({}))
            .await;
        assert_eq!(moved.json(), json!({"stable_version": "1"}));
        let body = json!({"template_yaml": bare(step("2", 5)), "comments": ""});
        let put = api.put(&format!("{path}/pause/versions/2"), &body).await;
        assert_eq!(put.json()["yaml"], bare(step("2", 5)));
        for version in ["2", "1"] {
            let gone = api
                .delete(&format!("{path}/pause/versions/{version}"))
                .await;
            assert_eq!(gone.status.as_u16(), 204, "{}", gone.text);
        }
        assert_eq!(api.get(&format!("{path}/pause")).await.refusal().0, 404);
        let imported = api.post(&format!("{path}/pause/import"), &json!({})).await;
        assert_eq!(imported.refusal().0, 400);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_and_its_template_are_applied_in_any_order() {
    for reversed in [false, true] {
        let api = Api::new().await;
        let mut files = vec![
            json!({"file": "a-pipeline.yaml", "yaml": USER}),
            json!({"file": "b-template.yaml", "yaml": step("v1", 7)}),
            json!({"file": "c-template.yaml", "yaml": step("v2", 9)}),
        ];
        if reversed {
            files.reverse();
        }
        let path = format!("/slipway/api/apply?{SCOPE}");
        let rows = api.post(&path, &json!({ "files": files })).await.data();
        let rows = rows.as_array().cloned().unwrap_or_default();
        assert!(
            rows.iter().all(|row| row["result"] == "created"),
            "{rows:?}"
        );
        assert_eq!(
            rows.last().map(|row| &row["kind"]),
            Some(&json!("pipeline"))
        );
        // The first version that was made is the stable one.
        let stable = if reversed { "9s" } else { "7s" };
        let plan = format!("/slipway/api/plan/use?{SCOPE}");
        let text = api.call("POST", &plan, "", "").await.data();
        let text = text["text"].as_str().unwrap_or_default();
        assert!(text.contains("Wait") && text.contains(stable), "{text}");
        let read = format!("/pipeline/api/pipelines/use?{SCOPE}&getTemplatesResolvedPipeline=true");
        let read = api.get(&read).await.data();
        assert_eq!(read["yamlPipeline"], USER);
        let applied = read["resolvedTemplatesPipelineYaml"]
            .as_str()
            .unwrap_or_default();
        assert!(
            applied.contains(stable) && !applied.contains("templateRef"),
            "{applied}"
        );
        let in_v1 = api
            .get("/v1/orgs/default/projects/default/pipelines/use")
            .await
            .json();
        assert_eq!(in_v1["template_applied_pipeline_yaml"], applied);
        let again = api.post(&path, &json!({ "files": files })).await.data();
        let again = again.as_array().cloned().unwrap_or_default();
        assert!(
            again.iter().all(|row| row["result"] == "unchanged"),
            "{again:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_whose_template_is_gone_can_be_read_and_says_so() {
    let api = Api::new().await;
    let path = format!("/pipeline/api/pipelines/v2?{SCOPE}");
    api.call("POST", &path, "application/yaml", USER)
        .await
        .data();
    let read = format!("/pipeline/api/pipelines/use?{SCOPE}&getTemplatesResolvedPipeline=true");
    let read = api.get(&read).await.data();
    assert_eq!(read["entityValidityDetails"]["valid"], false);
    let why = read["yamlSchemaErrorWrapper"]["message"].as_str();
    assert!(why.is_some_and(|why| why.contains("pause")), "{read}");
    let in_v1 = api
        .get("/v1/orgs/default/projects/default/pipelines/use")
        .await
        .json();
    assert_eq!(
        (&in_v1["valid"], &in_v1["pipeline_yaml"]),
        (&json!(false), &json!(USER))
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_pipeline_gives_its_templates_is_checked_when_it_is_saved() {
    let api = Api::new().await;
    let templates = format!("/template/api/templates?{SCOPE}");
    let pipelines = format!("/pipeline/api/pipelines?{SCOPE}");
    let send = async |method: &str, path: &str, yaml: &str| {
        api.call(method, path, "application/yaml", yaml).await
    };
    let told = |json: serde_json::Value| json["metaData"]["warnings"].to_string();

    // What is not there yet may come later.
    let early = send("POST", &pipelines, USER).await.json();
    assert!(told(early).contains("the template `pause` does not exist in project `default`"));
    let template = step("v1", 1).replace("duration: 1s", "duration: <+input>");
    send("POST", &templates, &template).await.data();
    let path = format!("/pipeline/api/pipelines/use?{SCOPE}");
    let given = "timeout: 1m\n                      spec: {duration: 1s}";
    let fits = USER.replace("timeout: 1m", given);
    let fits = send("PUT", &path, &fits).await.json();
    assert_eq!(fits["metaData"]["warnings"], serde_json::Value::Null);

    let lacks = told(send("PUT", &path, USER).await.json());
    assert!(
        lacks.contains(
            "the template `pause` asks for `spec.duration`, which `templateInputs` does not give"
        ),
        "{lacks}"
    );
    let slip = USER.replace(
        "timeout: 1m",
        "timeout: 1m\n                      tmeout: 1m",
    );
    let slip = send("PUT", &path, &slip).await.refusal();
    assert!(
        slip.2.contains("`tmeout` is no runtime input"),
        "{}",
        slip.2
    );
    let kept = api.get(&path).await.data();
    assert!(!kept.to_string().contains("tmeout"), "{kept}");
}
