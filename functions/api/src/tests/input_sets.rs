//! Input sets, overlays, and runs that are given some.

use serde_json::json;

use super::{Api, SCOPE};

const PIPELINE: &str = "# asks for three things\npipeline:\n  name: ask\n  identifier: ask\n  orgIdentifier: default\n  projectIdentifier: default\n  variables:\n    - name: tag\n      type: String\n      value: <+input>\n    - name: size\n      type: String\n      value: <+input>.allowedValues(small,large)\n    - name: where\n      type: String\n      value: <+input>.default(here)\n  stages:\n    - stage:\n        name: one\n        identifier: one\n        type: Custom\n        spec:\n          execution:\n            steps:\n              - step:\n                  name: w\n                  identifier: w\n                  type: Wait\n                  spec:\n                    duration: 1s\n";

/// An input set with a few variables.
fn set(id: &str, variables: &[(&str, &str)]) -> String {
    let mut yaml = format!(
        "inputSet:\n  name: {id}\n  identifier: {id}\n  orgIdentifier: default\n  projectIdentifier: default\n  pipeline:\n    identifier: ask\n    variables:\n"
    );
    for (name, value) in variables {
        yaml += &format!("      - name: {name}\n        type: String\n        value: {value}\n");
    }
    yaml
}

fn overlay(id: &str, sets: &str) -> String {
    format!(
        "overlayInputSet:\n  name: {id}\n  identifier: {id}\n  orgIdentifier: default\n  projectIdentifier: default\n  pipelineIdentifier: ask\n  inputSetReferences: [{sets}]\n"
    )
}

impl Api {
    async fn yaml(&self, method: &str, path: &str, yaml: &str) -> super::Answer {
        self.call(method, path, "application/yaml", yaml).await
    }

    /// A pipeline that asks, and three sets for it: `small`, `v2` and the overlay `both`.
    async fn with_sets(&self) {
        let path = format!("/pipeline/api/pipelines/v2?{SCOPE}");
        self.yaml("POST", &path, PIPELINE).await.data();
        let path = format!("/pipeline/api/inputSets?{SCOPE}&pipelineIdentifier=ask");
        let small = set("small", &[("tag", "v1"), ("size", "small")]);
        for yaml in [small, set("v2", &[("tag", "v2")])] {
            self.yaml("POST", &path, &yaml).await.data();
        }
        let path = format!("/pipeline/api/inputSets/overlay?{SCOPE}&pipelineIdentifier=ask");
        let both = overlay("both", "small, v2");
        self.yaml("POST", &path, &both).await.data();
    }
}

#[tokio::test(start_paused = true)]
async fn sets_and_overlays_live_their_lives() {
    let api = Api::new().await;
    api.with_sets().await;
    let of = format!("{SCOPE}&pipelineIdentifier=ask");
    let path = |rest: &str| format!("/pipeline/api/inputSets{rest}?{of}");
    let listed = api.get(&path("")).await.data();
    let kinds: Vec<_> = listed["content"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|item| (item["identifier"].as_str(), item["inputSetType"].as_str()))
        .collect();
    assert_eq!(
        kinds,
        [
            (Some("both"), Some("OVERLAY_INPUT_SET")),
            (Some("small"), Some("INPUT_SET")),
            (Some("v2"), Some("INPUT_SET")),
        ]
    );
    let only = api
        .get(&format!("{}&inputSetType=INPUT_SET", path("")))
        .await;
    assert_eq!(only.data()["totalItems"], 2);
    let read = api.get(&path("/small")).await.data();
    assert_eq!(
        read["inputSetYaml"],
        set("small", &[("tag", "v1"), ("size", "small")])
    );
    assert_eq!(
        (&read["outdated"], &read["identifier"]),
        (&json!(false), &json!("small"))
    );
    let read = api.get(&path("/overlay/both")).await.data();
    assert_eq!(read["inputSetReferences"], json!(["small", "v2"]));
    // An overlay is no input set, though both share their identifiers.
    assert_eq!(api.get(&path("/both")).await.refusal().0, 404);
    let twice = api
        .yaml("POST", &path(""), &set("both", &[("tag", "v1")]))
        .await;
    assert_eq!(twice.refusal().1, "DUPLICATE_FIELD");

    let changed = set("v2", &[("tag", "v3")]);
    api.yaml("PUT", &path("/v2"), &changed).await.data();
    assert_eq!(api.get(&path("/v2")).await.data()["inputSetYaml"], changed);
    let other = api.yaml("PUT", &path("/small"), &changed).await.refusal();
    assert!(other.2.contains("identifier"), "{}", other.2);
    assert_eq!(api.delete(&path("/v2")).await.data(), json!(true));
    assert_eq!(api.get(&path("/v2")).await.refusal().0, 404);
    let lost = format!("/pipeline/api/inputSets?{SCOPE}&pipelineIdentifier=nothing");
    let yaml = set("a", &[]).replace("identifier: ask", "identifier: nothing");
    assert_eq!(api.yaml("POST", &lost, &yaml).await.refusal().0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_does_not_fit_any_more_is_outdated() {
    let api = Api::new().await;
    api.with_sets().await;
    let path = format!("/pipeline/api/pipelines/v2/ask?{SCOPE}");
    let changed = PIPELINE.replace("allowedValues(small,large)", "allowedValues(large)");
    api.yaml("PUT", &path, &changed).await.data();
    let path = format!("/pipeline/api/inputSets/small?{SCOPE}&pipelineIdentifier=ask");
    let read = api.get(&path).await.data();
    assert_eq!(read["outdated"], true);
    let why = read["inputSetErrorWrapper"]["message"].as_str();
    assert!(why.is_some_and(|why| why.contains("small")), "{read}");
}

#[tokio::test(start_paused = true)]
async fn sets_are_merged_in_order_and_given_values_win() {
    let api = Api::new().await;
    api.with_sets().await;
    let path = format!("/pipeline/api/inputSets/merge?{SCOPE}&pipelineIdentifier=ask");
    let own = "pipeline:\n  identifier: ask\n  variables:\n    - name: tag\n      type: String\n      value: mine\n";
    for (sets, last, tag) in [
        (json!(["small"]), "", "v1"),
        (json!(["small", "v2"]), "", "v2"),
        (json!(["v2", "small"]), "", "v1"),
        (json!(["both"]), "", "v2"),
        (json!(["both", "small"]), "", "v1"),
        (json!(["both"]), own, "mine"),
    ] {
        let body = json!({"inputSetReferences": sets, "lastYamlToMerge": last,
            "withMergedPipelineYaml": true});
        let merged = api.post(&path, &body).await.data();
        let yaml = merged["pipelineYaml"].as_str().unwrap_or_default();
        assert!(yaml.contains(&format!("value: {tag}\n")), "{sets}: {yaml}");
        assert!(yaml.contains("value: small\n"), "{sets}: {yaml}");
        // What nobody gave is still open.
        assert!(yaml.contains("<+input>.default(here)"), "{sets}: {yaml}");
        let whole = merged["completePipelineYaml"].as_str().unwrap_or_default();
        assert!(
            whole.contains("duration: 1s") && whole.contains(tag),
            "{whole}"
        );
    }
    let unknown = json!({"inputSetReferences": ["small", "no_such", "neither"]});
    let (status, _, message) = api.post(&path, &unknown).await.refusal();
    assert!(
        status == 400 && message.contains("no_such") && message.contains("neither"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_takes_input_sets() {
    let api = Api::new().await;
    api.with_sets().await;
    let list = format!("/pipeline/api/pipeline/execute/ask/inputSetList?{SCOPE}");
    let execute = format!("/pipeline/api/pipeline/execute/ask?{SCOPE}");
    let body = json!({"inputSetReferences": ["both"], "lastYamlToMerge": ""});
    let by_list = api.post(&list, &body).await.data();
    let by_query = format!("{execute}&inputSetIdentifiers=small&inputSetIdentifiers=v2");
    let by_query = api.call("POST", &by_query, "", "").await.data();
    for started in [by_list, by_query] {
        let id = started["planExecution"]["uuid"]
            .as_str()
            .unwrap_or_default();
        let path = format!("/pipeline/api/pipelines/execution/{id}/inputsetV2?{SCOPE}");
        let inputs = api.get(&path).await.data();
        let given = inputs["inputSetYaml"].as_str().unwrap_or_default();
        assert!(given.contains("value: v2\n"), "{given}");
        let resolved = inputs["resolvedYaml"].as_str().unwrap_or_default();
        assert!(resolved.contains("value: here\n"), "{resolved}");
    }
    // The plan takes them too.
    let plan = format!("/slipway/api/plan/ask?{SCOPE}&inputSetIdentifiers=both");
    assert!(api.call("POST", &plan, "", "").await.data()["text"].is_string());
    let (status, _, message) = api
        .call("POST", &format!("{execute}&inputSetIdentifiers=v2"), "", "")
        .await
        .refusal();
    assert!(status == 400 && message.contains("size"), "{message}");
    let (_, _, message) = api
        .post(&list, &json!({"inputSetReferences": ["gone"]}))
        .await
        .refusal();
    assert!(message.contains("gone"), "{message}");
    let stages = json!({"inputSetReferences": [], "stageIdentifiers": ["one"]});
    assert!(
        api.post(&list, &stages)
            .await
            .refusal()
            .2
            .contains("does not allow runs of chosen stages")
    );
}

#[tokio::test(start_paused = true)]
async fn sets_in_v1_form_and_with_their_pipeline() {
    let api = Api::new().await;
    api.with_sets().await;
    let path = "/v1/orgs/default/projects/default/input-sets";
    let yaml = set("third", &[("tag", "v3")]);
    let body = json!({"input_set_yaml": yaml, "identifier": "third", "name": "third", "tags": {},
        "git_details": {"store_type": "INLINE"}});
    let made = api.post(&format!("{path}?pipeline=ask"), &body).await;
    assert_eq!(
        (made.status.as_u16(), made.json()["identifier"].as_str()),
        (201, Some("third"))
    );
    let one = format!("{path}/third?pipeline=ask");
    assert_eq!(api.get(&one).await.json()["input_set_yaml"], yaml);
    assert_eq!(api.put(&one, &body).await.json()["project"], "default");
    assert_eq!(api.delete(&one).await.status.as_u16(), 204);
    assert_eq!(api.get(&one).await.refusal().0, 404);
    // A pipeline takes its sets with it: one that is made later must not find them.
    api.delete(&format!("/pipeline/api/pipelines/ask?{SCOPE}"))
        .await
        .data();
    let path = format!("/pipeline/api/pipelines/v2?{SCOPE}");
    api.yaml("POST", &path, PIPELINE).await.data();
    let listed = format!("/pipeline/api/inputSets?{SCOPE}&pipelineIdentifier=ask");
    assert_eq!(api.get(&listed).await.data()["totalItems"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_compared_with_that_of_the_last_run() {
    let api = Api::new().await;
    api.with_sets().await;
    let plan = format!("/slipway/api/plan/ask?{SCOPE}&inputSetIdentifiers=both&diff=true");
    let (status, _, message) = api.call("POST", &plan, "", "").await.refusal();
    assert!(
        status == 404 && message.contains("has not run"),
        "{message}"
    );
    let execute = format!("/pipeline/api/pipeline/execute/ask?{SCOPE}&inputSetIdentifiers=both");
    let run = api.call("POST", &execute, "", "").await.data()["planExecution"]["uuid"].clone();
    let same = api.call("POST", &plan, "", "").await.data();
    assert_eq!((&same["text"], &same["against"]), (&json!(""), &run));
    let path = format!("/pipeline/api/pipelines/v2/ask?{SCOPE}");
    let changed = PIPELINE.replace("duration: 1s", "duration: 9s");
    api.yaml("PUT", &path, &changed).await.data();
    let other = api.call("POST", &plan, "", "").await.data();
    let text = other["text"].as_str().unwrap_or_default();
    assert!(text.contains("9s") && text.contains("1s"), "{text}");
}
