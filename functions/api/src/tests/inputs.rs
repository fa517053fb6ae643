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
