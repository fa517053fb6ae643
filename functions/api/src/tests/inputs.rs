//! Inputs that a step asks for when it begins.

use serde_json::json;
use slipway_model::status::Status;

use super::execution::node;
use super::{Api, SCOPE};

const ASK: &str = "stages.deploy.spec.execution.steps.ask";

const PIPELINE: &str = "pipeline:
  identifier: asks
  name: Asks
  orgIdentifier: default
  projectIdentifier: default
  stages:
    - stage:
        identifier: deploy
        name: Deploy
        type: Custom
        spec:
          execution:
            steps:
              - step:
                  identifier: ask
                  name: Ask
                  type: Wait
                  timeout: 1h
                  spec:
                    duration: <+input>.default(1m).allowedValues(1m,2m).executionInput()
";

#[tokio::test(start_paused = true)]
async fn inputs_are_shown_checked_and_given_once() {
    let api = Api::new().await;
    let files = json!({"files": [{"file": "asks.yaml", "yaml": PIPELINE}]});
    api.post(&format!("/slipway/api/apply?{SCOPE}"), &files)
        .await
        .data();
    let path = format!("/pipeline/api/pipeline/execute/asks?{SCOPE}");
    let started = api.post(&path, &json!({})).await.data();
    let run = started["planExecution"]["uuid"].as_str().expect("a run");
    let record = node(run, ASK, "Wait", Status::InputWaiting);
    api.store.start_node(&record).await.expect("a node");

    let path = format!("/slipway/api/runs/{run}/inputs/ask?{SCOPE}");
    let shown = api.get(&path).await.data();
    assert_eq!(
        shown,
        json!({"node": ASK, "inputs": [{"field": "duration", "default": "1m",
            "allowedValues": ["1m", "2m"], "regex": null}]})
    );
    let wrong = json!({"inputs": {"duration": "3m"}});
    let (status, _, message) = api.post(&path, &wrong).await.refusal();
    assert!(
        status == 400 && message.contains("must be one of 1m, 2m"),
        "{message}"
    );
    let (status, ..) = api.post(&path, &json!({"inputs": 1})).await.refusal();
    assert_eq!(status, 400);
    let given = json!({"inputs": {"duration": "2m"}});
    assert_eq!(api.post(&path, &given).await.data(), json!({"node": ASK}));
    let (status, ..) = api.post(&path, &given).await.refusal();
    assert_eq!(status, 409, "the first answer counts");
    let said = &api
        .store
        .get_run(&record.run)
        .await
        .expect("the run")
        .signals;
    assert_eq!(said[0].says, r#"{"duration":"2m"}"#);
}

/// What a stage or step group asks for is asked by a step that nobody has written: they are named themselves.
#[tokio::test(start_paused = true)]
async fn inputs_of_a_stage_and_of_a_group_are_given_by_their_names() {
    let api = Api::new().await;
    let variable = |name: &str, kind: &str| {
        format!("variables: [{{name: {name}, type: {kind}, value: <+input>.executionInput()}}]")
    };
    let yaml = format!(
        "pipeline: {{identifier: asks, name: Asks, orgIdentifier: default, projectIdentifier: default, stages: [
          {{stage: {{identifier: deploy, name: Deploy, type: Custom, {}, spec: {{execution: {{steps: [
            {{stepGroup: {{identifier: probes, name: Probes, {}, steps: [
              {{step: {{identifier: w, name: W, type: Wait, spec: {{duration: 1s}}}}}}]}}}}]}}}}}}}}]}}",
        variable("zone", "String"),
        variable("port", "Number"),
    );
    let files = json!({"files": [{"file": "asks.yaml", "yaml": yaml}]});
    api.post(&format!("/slipway/api/apply?{SCOPE}"), &files)
        .await
        .data();
    let path = format!("/pipeline/api/pipeline/execute/asks?{SCOPE}");
    let started = api.post(&path, &json!({})).await.data();
    let run = started["planExecution"]["uuid"].as_str().expect("a run");
    let of_stage = "stages.deploy.spec.execution.steps.__inputs";
    let of_group = "stages.deploy.spec.execution.steps.probes.steps.__inputs";
    for node_id in [of_stage, of_group] {
        let record = node(run, node_id, "StageInputs", Status::InputWaiting);
        api.store.start_node(&record).await.expect("a node");
    }
    let path = |name: &str| format!("/slipway/api/runs/{run}/inputs/{name}?{SCOPE}");
    let shown = api.get(&path("deploy")).await.data();
    assert_eq!(
        (&shown["node"], &shown["inputs"][0]["field"]),
        (&json!(of_stage), &json!("variables.zone"))
    );
    let give = async |name: &str, field: &str, value: &str| {
        let inputs = json!({"inputs": {field: value}});
        api.post(&path(name), &inputs).await
    };
    let given = give("deploy", "variables.zone", "eu").await;
    assert_eq!(given.data(), json!({"node": of_stage}));
    let (status, _, message) = give("probes", "variables.port", "http").await.refusal();
    assert!(
        status == 400 && message.contains("`variables.port` must be a number"),
        "{message}"
    );
    let given = give("probes", "variables.port", "0080").await;
    assert_eq!(given.data(), json!({"node": of_group}));
    let (status, ..) = give("nobody", "variables.port", "1").await.refusal();
    assert_eq!(status, 404);
}
