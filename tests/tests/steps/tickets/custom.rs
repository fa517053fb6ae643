//! Approvals by script.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_model::status::{ErrorType, Status};
use slipway_steps::{DelegateWork, Progress};

use super::pass;
use crate::common::call;
use crate::world::World;

const STEP: &str = "CustomApproval";

fn spec() -> Value {
    let criteria = |value: &str| {
        json!({"type": "KeyValues", "spec": {"matchAnyCondition": false,
            "conditions": [{"key": "state", "operator": "equals", "value": value}]}})
    };
    json!({
        "shell": "Bash", "source": {"type": "Inline", "spec": {"script": "s=open"}}, "onDelegate": true,
        "outputVariables": [{"name": "state", "type": "String", "value": "s"}], "environmentVariables": [],
        "delegateSelectors": ["linux"], "scriptTimeout": "2m", "retryInterval": "30s",
        "approvalCriteria": criteria("approved"), "rejectionCriteria": criteria("rejected"),
    })
}

async fn asks(world: &World, spec: &Value) -> DelegateWork {
    match call(world, STEP, spec, None).await {
        Ok(Progress::Delegate(work)) => work,
        other => panic!("no delegate is asked: {other:?}"),
    }
}

fn says(state: &str) -> Option<Value> {
    Some(json!({"status": "SUCCESS", "exitCode": 0, "outputs": {"state": state}}))
}

#[tokio::test]
async fn a_script_is_run_again_until_it_approves() {
    let world = World::new().await;
    let spec = spec();
    let work = asks(&world, &spec).await;
    assert_eq!((work.turn, work.selectors), (0, vec!["linux".to_owned()]));
    assert_eq!(work.payload["timeoutSeconds"], 120);
    let open = call(&world, STEP, &spec, says("open"))
        .await
        .expect("a wait");
    assert_eq!(
        open,
        Progress::Hold {
            time: Duration::from_secs(30),
            status: Status::ApprovalWaiting
        }
    );
    // An answer that is handed over again after a crash counts once.
    let again = call(&world, STEP, &spec, says("open"))
        .await
        .expect("a wait");
    assert!(matches!(again, Progress::Hold { .. }), "{again:?}");
    pass(Duration::from_secs(30)).await;
    assert_eq!(asks(&world, &spec).await.turn, 1);
    assert_eq!(
        asks(&world, &spec).await.turn,
        1,
        "asked again after a crash it is the same work"
    );
    let outputs = json!({"output": {"outputVariables": {"state": "approved"}}});
    let ended = call(&world, STEP, &spec, says("approved"))
        .await
        .expect("an approval");
    assert_eq!(ended, Progress::Done(outputs));
}

#[tokio::test]
async fn a_script_rejects_fails_or_takes_too_long() {
    let mut by_expression = spec();
    by_expression["approvalCriteria"] =
        json!({"type": "Jexl", "spec": {"expression": "<+output.state> == \"fine\""}});
    let table = [
        (
            spec(),
            says("rejected"),
            ErrorType::ApprovalRejection,
            "state is `rejected`",
        ),
        (
            spec(),
            Some(json!({"status": "FAILURE", "exitCode": 3})),
            ErrorType::Unknown,
            "exit code 3",
        ),
        (
            spec(),
            Some(json!({"status": "TIMEOUT"})),
            ErrorType::Timeout,
            "did not end in time",
        ),
        (
            by_expression.clone(),
            Some(json!({"status": "SUCCESS", "outputs": {}})),
            ErrorType::Unknown,
            "output.state",
        ),
    ];
    for (spec, result, error, expected) in table {
        let world = World::new().await;
        asks(&world, &spec).await;
        let failure = call(&world, STEP, &spec, result).await.expect_err("an end");
        assert_eq!(failure.error, error, "{}", failure.message);
        assert!(failure.message.contains(expected), "{}", failure.message);
    }
    let world = World::new().await;
    let ended = call(&world, STEP, &by_expression, says("fine")).await;
    assert!(matches!(ended, Ok(Progress::Done(_))), "{ended:?}");
}

#[tokio::test]
async fn specs_are_checked_before_the_run() {
    let step = slipway_steps::find(STEP).expect("the step");
    let check = |name: &str, value: Value| {
        let mut spec = spec();
        spec[name] = value;
        step.check(&spec).join("; ")
    };
    let nothing =
        json!({"type": "KeyValues", "spec": {"matchAnyCondition": false, "conditions": []}});
    let table = [
        ("rejectionCriteria", nothing.clone(), ""),
        ("scriptTimeout", json!("<+pipeline.variables.t>"), ""),
        ("approvalCriteria", nothing, "at least one condition"),
        ("scriptTimeout", json!("0s"), "scriptTimeout"),
        ("retryInterval", json!("often"), "retryInterval"),
        ("shell", json!("PowerShell"), ""),
        ("shell", json!("Zsh"), "`Zsh` is unknown"),
        (
            "scriptTimeOut",
            json!("1m"),
            "unknown field `scriptTimeOut`",
        ),
    ];
    for (name, value, expected) in table {
        let faults = check(name, value.clone());
        assert_eq!(
            expected.is_empty(),
            faults.is_empty(),
            "{name} {value}: {faults}"
        );
        assert!(faults.contains(expected), "{name} {value}: {faults}");
    }
}
