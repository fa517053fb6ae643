//! Executions that wait for long: nothing of them is in memory, and nothing is lost.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::service::{Functions, Service, clock};

/// A wait of an hour, beside a task that ends by its token.
fn states() -> Value {
    let waits =
        json!({"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 3600, "End": true}}});
    let asks = json!({"StartAt": "T", "States": {"T": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "Arguments": {"FunctionName": "token", "Payload": {"token": "{% $states.context.Task.Token %}"}},
        "TimeoutSeconds": 7200, "Catch": [{"ErrorEquals": ["States.Timeout"], "Output": "late", "Next": "End"}], "Next": "End"},
        "End": {"Type": "Succeed"}}});
    json!({"P": {"Type": "Parallel", "Branches": [waits, asks], "End": true}})
}

/// Executions that are open, and how many of them rest.
fn open(service: &Service) -> (u64, u64) {
    let counters = service.engine.counters();
    (counters.open, counters.resting)
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_long_rests_and_goes_on_when_it_is_due() {
    let service = Service::new();
    let machine = service.machine("long", "P", states()).await;
    let inner = json!({"C": {"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Arguments": {"StateMachineArn": machine, "Input": {}}, "Output": "{% $states.result.Output %}", "End": true}});
    let outer = service.machine("outer", "C", inner).await;
    let execution = service.start(&outer, "run", json!({})).await;
    service.clock.sleep(Duration::from_secs(4)).await;
    assert_eq!(open(&service), (2, 0));
    service.clock.sleep(Duration::from_secs(60)).await;
    assert_eq!(open(&service), (2, 2));
    let end = service.finish(&execution).await;
    // Both branches came to their time: the wait after an hour, the task after two.
    assert_eq!(end["output"], r#"[{},"late"]"#);
    assert_eq!(open(&service), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_token_and_a_stop_wake_what_rests() {
    let service = Service::new();
    let machine = service.machine("long", "P", states()).await;
    let execution = service.start(&machine, "told", json!({})).await;
    service.clock.sleep(Duration::from_secs(100)).await;
    assert_eq!(open(&service), (1, 1));
    let token = service.functions.calls.lock().expect("calls")[0].1["token"].clone();
    let answer = json!({"taskToken": token, "output": "\"told\""});
    service.call("SendTaskSuccess", answer).await.expect("told");
    let end = service.finish(&execution).await;
    assert_eq!(end["output"], r#"[{},"told"]"#);

    let execution = service.start(&machine, "stopped", json!({})).await;
    service.clock.sleep(Duration::from_secs(100)).await;
    assert_eq!(open(&service), (1, 1));
    let stop = json!({"executionArn": execution});
    service.call("StopExecution", stop).await.expect("stopped");
    assert_eq!(service.finish(&execution).await["status"], "ABORTED");
    assert_eq!(open(&service), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_rested_before_a_restart_rests_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.db");
    let (clock, functions) = (clock(), Arc::new(Functions::default()));
    let service = Service::on_disk(&path, &clock, &functions);
    let machine = service.machine("long", "P", states()).await;
    let inner = json!({"C": {"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Arguments": {"StateMachineArn": machine, "Input": {}}, "Output": "{% $states.result.Output %}", "End": true}});
    let outer = service.machine("outer", "C", inner).await;
    let execution = service.start(&outer, "run", json!({})).await;
    // Not long enough to rest before the death.
    service.clock.sleep(Duration::from_secs(2)).await;
    assert_eq!(open(&service), (2, 0));
    service.engine.clone().shutdown().await;
    drop(service);

    let service = Service::on_disk(&path, &clock, &functions);
    service.engine.resume();
    assert_eq!(open(&service), (2, 2));
    let end = service.finish(&execution).await;
    assert_eq!(end["output"], r#"[{},"late"]"#);
    assert_eq!(open(&service), (0, 0));
}
