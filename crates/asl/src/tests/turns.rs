//! A burst of starts: all are accepted, some begin at once, the rest in their order, and nothing that goes on waits for them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::service::{Functions, Service, clock};

/// Calls `function` with the input, then waits for a token for a day.
fn states(function: &str) -> Value {
    json!({
        "Call": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Next": "Ask",
            "Arguments": {"FunctionName": function, "Payload": {"of": "{% $states.input %}"}},
            "Output": "{% $states.input %}"},
        "Ask": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken", "End": true,
            "TimeoutSeconds": 86400, "Arguments": {"FunctionName": "token",
                "Payload": {"asks": "{% $states.input %}", "token": "{% $states.context.Task.Token %}"}}},
    })
}

/// What functions were called with in the member `of` or `asks`, in order.
fn calls(service: &Service, member: &str) -> Vec<i64> {
    let calls = service.functions.calls.lock().expect("calls");
    let named = calls.iter().filter_map(|(_, payload)| payload.get(member));
    named.filter_map(Value::as_i64).collect()
}

fn token_of(service: &Service, of: i64) -> Value {
    let calls = service.functions.calls.lock().expect("calls");
    let mut asked = calls.iter().rev();
    let found = asked.find(|(_, payload)| payload["asks"] == of);
    found.expect("it has asked").1["token"].clone()
}

async fn start_all(service: &Service, machine: &str, which: std::ops::Range<i64>) -> Vec<String> {
    let mut started = Vec::new();
    for n in which {
        started.push(service.start(machine, &format!("run-{n}"), json!(n)).await);
    }
    started
}

async fn seconds(service: &Service, count: u64) {
    service.clock.sleep(Duration::from_secs(count)).await;
}

struct Place {
    _folder: tempfile::TempDir,
    path: std::path::PathBuf,
    clock: slipway_clock::Clock,
    functions: Arc<Functions>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal.db");
        Self {
            _folder: folder,
            path,
            clock: clock(),
            functions: Arc::default(),
        }
    }

    fn open(&self, at_once: usize) -> Service {
        Service::bounded(&self.path, &self.clock, &self.functions, Some(at_once))
    }
}

#[tokio::test(start_paused = true)]
async fn all_are_accepted_and_begin_in_order() {
    let service = Place::new().open(2);
    let slow = service.machine("slow", "Call", states("slow")).await;
    start_all(&service, &slow, 100..102).await;
    let machine = service.machine("m", "Call", states("echo")).await;
    let started = start_all(&service, &machine, 0..20).await;
    assert_eq!(service.engine.counters().waiting, 20);
    // What waits is open, and nothing happened to it.
    let last = &started[19];
    assert_eq!(service.describe(last).await["status"], "RUNNING");
    assert_eq!(service.trace(last).await, "1<0 ExecutionStarted input=19");
    seconds(&service, 1).await;
    let in_order: Vec<i64> = [100, 101].into_iter().chain(0..20).collect();
    assert_eq!(calls(&service, "of"), in_order);
    assert_eq!(service.engine.counters().waiting, 0);
    // The same start again is the same execution.
    start_all(&service, &machine, 0..20).await;
    seconds(&service, 1).await;
    assert_eq!(calls(&service, "of"), in_order);
    let trace = service.trace(last).await;
    assert!(trace.contains("3<2 TaskScheduled"), "{trace}");
}

#[tokio::test(start_paused = true)]
async fn one_that_begins_at_once_begins_as_it_is_accepted() {
    let service = Place::new().open(1);
    let machine = service.machine("m", "Call", states("slow")).await;
    let commits = service.engine.counters().commits;
    let started = start_all(&service, &machine, 0..1).await;
    assert_eq!(service.engine.counters().commits, commits + 1);
    let trace = service.trace(&started[0]).await;
    assert!(trace.contains("TaskScheduled"), "{trace}");
}

#[tokio::test(start_paused = true)]
async fn who_takes_long_keeps_nobody_from_beginning_for_long() {
    let service = Place::new().open(2);
    let machine = service.machine("m", "Call", states("slow")).await;
    start_all(&service, &machine, 0..7).await;
    assert_eq!(service.engine.counters().waiting, 5);
    // Each of their calls takes ten seconds.
    seconds(&service, 1).await;
    assert_eq!(calls(&service, "of"), (0..7).collect::<Vec<_>>());
    assert_eq!(service.engine.counters().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_does_not_wait_behind_what_begins() {
    let service = Place::new().open(1);
    let quick = service.machine("quick", "Call", states("echo")).await;
    let slow = service.machine("slow", "Call", states("slow")).await;
    let inner = service.machine("inner", "Call", states("echo")).await;
    let outer = json!({"Wait": {"Type": "Wait", "Seconds": 5, "Next": "Child"},
        "Child": {"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync:2", "End": true,
            "Arguments": {"StateMachineArn": inner, "Input": 200}}});
    let outer = service.machine("outer", "Wait", outer).await;
    let asks = start_all(&service, &quick, 100..101).await;
    service.start(&outer, "outer", json!({})).await;
    seconds(&service, 4).await;
    assert_eq!(calls(&service, "asks"), [100]);

    start_all(&service, &slow, 0..60).await;
    let answer = json!({"taskToken": token_of(&service, 100), "output": "\"yes\""});
    service.call("SendTaskSuccess", answer).await.expect("told");
    seconds(&service, 1).await;
    // A quarter of a second each: most still wait. The answer and the timer of the others did not.
    let waiting = service.engine.counters().waiting;
    assert!((50..60).contains(&waiting), "{waiting} wait");
    assert_eq!(service.describe(&asks[0]).await["status"], "SUCCEEDED");
    assert_eq!(calls(&service, "asks"), [100, 200]);
}

#[tokio::test(start_paused = true)]
async fn who_is_stopped_in_the_line_keeps_no_place() {
    let service = Place::new().open(1);
    let machine = service.machine("m", "Call", states("slow")).await;
    let started = start_all(&service, &machine, 0..3).await;
    let stop = json!({"executionArn": started[1]});
    service.call("StopExecution", stop).await.expect("stopped");
    assert_eq!(service.describe(&started[1]).await["status"], "ABORTED");
    seconds(&service, 1).await;
    assert!(calls(&service, "of").contains(&2));
    assert_eq!(service.engine.counters().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn who_goes_away_before_the_answer_has_started_it_all_the_same() {
    // Once it begins as it is accepted, once it stands in line.
    for at_once in [2, 1] {
        let service = Place::new().open(at_once);
        let machine = service.machine("m", "Call", states("slow")).await;
        start_all(&service, &machine, 0..1).await;
        let start = json!({"stateMachineArn": machine, "name": "run-1", "input": "1"});
        let held = service.engine.0.journal.hold().await;
        let impatient = service.call("StartExecution", start.clone());
        let answer = tokio::time::timeout(Duration::from_millis(10), impatient).await;
        assert!(answer.is_err(), "{answer:?}");
        drop(held);
        // Somebody else's commit takes with it what was to be written.
        start_all(&service, &machine, 2..3).await;
        seconds(&service, 1).await;
        assert_eq!(calls(&service, "of"), [0, 1, 2], "{at_once} at once");
        assert_eq!(service.engine.counters().waiting, 0);
        // Whoever asks again gets the same.
        let again = service.call("StartExecution", start).await;
        assert!(again.is_ok(), "{again:?}");
        assert_eq!(service.engine.counters().open, 3);
        service.engine.clone().shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_line_outlives_the_process() {
    let place = Place::new();
    let service = place.open(1);
    let machine = service.machine("m", "Call", states("slow")).await;
    let started = start_all(&service, &machine, 0..5).await;
    assert_eq!(service.engine.counters().waiting, 4);
    service.engine.clone().shutdown().await;
    drop(service);
    assert_eq!(calls(&place.open(1), "of").len(), 1);

    let service = place.open(1);
    service.engine.resume();
    // A new start goes behind them.
    let late = service.start(&machine, "late", json!(5)).await;
    seconds(&service, 30).await;
    // The first was under way, and is called again.
    assert_eq!(calls(&service, "of"), [0, 0, 1, 2, 3, 4, 5]);
    assert_eq!(calls(&service, "asks"), [0, 1, 2, 3, 4, 5]);
    for execution in started.iter().chain([&late]) {
        assert_eq!(service.describe(execution).await["status"], "RUNNING");
    }
}

#[tokio::test(start_paused = true)]
async fn death_after_any_commit_loses_nothing_that_was_accepted() {
    for commits in 0..25 {
        let place = Place::new();
        let mut service = place.open(1);
        let machine = service.machine("m", "Call", states("slow")).await;
        let left = &service.engine.0.journal.commits_left;
        left.store(commits, std::sync::atomic::Ordering::Relaxed);
        let mut accepted = Vec::new();
        for n in 0..4 {
            let name = format!("run-{n}");
            let start = json!({"stateMachineArn": machine, "name": name, "input": n.to_string()});
            if service.call("StartExecution", start).await.is_ok() {
                accepted.push(n);
            }
        }
        seconds(&service, 60).await;
        service.engine.clone().shutdown().await;
        drop(service);
        service = place.open(1);
        service.engine.resume();
        seconds(&service, 60).await;
        let mut asked = calls(&service, "asks");
        // One that was asked before its commit is asked again.
        asked.sort_unstable();
        asked.dedup();
        assert_eq!(asked, accepted, "after {commits} commits");
        service.engine.shutdown().await;
    }
}
