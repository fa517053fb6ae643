//! Map runs that are redriven with their execution, and limits that change while they run.

use std::time::Duration;

use serde_json::{Value, json};

use super::redrive::{called, redrive, redriven, task};
use super::service::Service;

/// A distributed map over the input.
fn each(item: Value, express: bool, more: Value) -> Value {
    let kind = if express { "EXPRESS" } else { "STANDARD" };
    let mut map = json!({"Type": "Map", "Label": "many", "End": true, "ItemProcessor": {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": kind},
        "StartAt": "I", "States": {"I": item}}});
    for (key, value) in more.as_object().expect("an object") {
        map[key] = value.clone();
    }
    json!({"A": map})
}

async fn map_run(service: &Service, execution: &str) -> Value {
    let listed = service
        .call("ListMapRuns", json!({"executionArn": execution}))
        .await;
    let listed = listed.expect("listed");
    let arns = listed["mapRuns"].as_array().expect("a list");
    assert_eq!(arns.len(), 1, "{listed}");
    let request = json!({"mapRunArn": arns[0]["mapRunArn"]});
    service
        .call("DescribeMapRun", request)
        .await
        .expect("described")
}

/// Name and status of the children, by name.
async fn children(service: &Service, map_run: &Value, filter: Option<&str>) -> Vec<Value> {
    let request = json!({"mapRunArn": map_run["mapRunArn"], "statusFilter": filter});
    let listed = service
        .call("ListExecutions", request)
        .await
        .expect("listed");
    let mut listed = listed["executions"].as_array().expect("a list").clone();
    listed.sort_by_key(|child| child["name"].as_str().map(str::to_owned));
    listed
}

async fn seconds(service: &Service, count: u64) {
    service.clock.sleep(Duration::from_secs(count)).await;
}

#[tokio::test(start_paused = true)]
async fn children_that_failed_go_on_and_the_others_are_left_alone() {
    for express in [false, true] {
        let service = Service::new();
        // Fails until the third call, but for those that are called otherwise.
        let mut item = task("flaky");
        item["Arguments"]["FunctionName"] = json!("{% $states.input.call %}");
        let machine = service
            .machine("m", "A", each(item, express, json!({"MaxConcurrency": 1})))
            .await;
        let input =
            json!([{"call": "echo", "n": 1}, {"call": "flaky", "n": 2}, {"call": "echo", "n": 3}]);
        let execution = service.start(&machine, "run", input).await;
        let end = service.finish(&execution).await;
        assert_eq!(
            end["error"], "States.ExceedToleratedFailureThreshold",
            "{end}"
        );
        seconds(&service, 1).await;
        let run = map_run(&service, &execution).await;
        let failed = children(&service, &run, Some("FAILED")).await;
        let child = failed[0]["executionArn"]
            .as_str()
            .expect("an ARN")
            .to_owned();
        let described = service.describe(&child).await;
        assert_eq!(described["redriveStatus"], "REDRIVABLE_BY_MAP_RUN");
        let refused = redrive(&service, &child)
            .await
            .expect_err("by its map run only");
        assert!(refused.starts_with("ExecutionNotRedrivable"), "{refused}");

        redriven(&service, &execution).await;
        let end = redriven(&service, &execution).await;
        let output = r#"[{"call":"echo","n":1},{"attempts":3},{"call":"echo","n":3}]"#;
        assert_eq!(end["output"], output, "express: {express}");
        assert_eq!(called(&service, "flaky").len(), 3);
        assert_eq!(called(&service, "echo").len(), 2);
        let run = map_run(&service, &execution).await;
        assert_eq!(
            (&run["status"], &run["redriveCount"]),
            (&json!("SUCCEEDED"), &json!(2))
        );
        assert!(run["redriveDate"].is_number());
        assert_eq!(run["executionCounts"]["succeeded"], 3);
        let all = children(&service, &run, None).await;
        assert_eq!(all.len(), 3);
        let child = service.describe(&child).await;
        // An express child is started anew under its name.
        let count = if express { 0 } else { 2 };
        assert_eq!(
            (&child["status"], &child["redriveCount"]),
            (&json!("SUCCEEDED"), &json!(count))
        );
        let history = service
            .trace(child["executionArn"].as_str().expect("an ARN"))
            .await;
        assert_eq!(history.matches("ExecutionRedriven").count(), count);
        assert_eq!(history.matches("ExecutionStarted").count(), 1);
        let trace = service.trace(&execution).await;
        let told: Vec<&str> = trace
            .lines()
            .filter(|line| line.contains("Map") || line.contains("Execution"))
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        assert_eq!(
            told,
            [
                "ExecutionStarted",
                "MapStateEntered",
                "MapStateStarted",
                "MapRunStarted",
                "MapRunFailed",
                "MapStateFailed",
                "ExecutionFailed",
                "ExecutionRedriven",
                "MapRunRedriven",
                "MapRunFailed",
                "MapStateFailed",
                "ExecutionFailed",
                "ExecutionRedriven",
                "MapRunRedriven",
                "MapRunSucceeded",
                "MapStateSucceeded",
                "MapStateExited",
                "ExecutionSucceeded",
            ]
        );
        assert!(trace.contains("redriveCount=2"), "{trace}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_map_run_goes_on_with_the_children_it_had_and_had_not() {
    let service = Service::new();
    let wait = json!({"Type": "Wait", "Seconds": 10, "End": true});
    let states = each(wait, false, json!({"MaxConcurrency": 2}));
    let machine = service.machine("m", "A", states).await;
    let execution = service.start(&machine, "run", json!([1, 2, 3, 4, 5])).await;
    seconds(&service, 15).await;
    let stop = json!({"executionArn": execution});
    service.call("StopExecution", stop).await.expect("stopped");
    // At once: its children are still being stopped.
    redrive(&service, &execution).await.expect("redriven");
    seconds(&service, 1).await;
    let run = map_run(&service, &execution).await;
    let counts = |run: &Value| {
        let names = [
            "succeeded",
            "running",
            "pending",
            "pendingRedrive",
            "failed",
            "aborted",
            "total",
        ];
        names.map(|name| run["executionCounts"][name].as_u64().unwrap_or(99))
    };
    assert_eq!(
        (&run["status"], counts(&run)),
        (&json!("RUNNING"), [2, 2, 1, 0, 0, 0, 5])
    );
    let end = service.finish(&execution).await;
    assert_eq!(end["output"], "[1,2,3,4,5]");
    let run = map_run(&service, &execution).await;
    let all = children(&service, &run, None).await;
    let redrives: Vec<_> = all.iter().map(|child| &child["redriveCount"]).collect();
    assert_eq!(redrives, [0, 0, 1, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn children_whose_turn_has_not_come_are_pending() {
    let service = Service::new();
    let item = json!({"Type": "Wait", "Seconds": 10, "End": true});
    let states = each(item, false, json!({}));
    let machine = service.machine("m", "A", states).await;
    let execution = service.start(&machine, "run", json!([1, 2, 3])).await;
    seconds(&service, 1).await;
    let stop = json!({"executionArn": execution});
    service.call("StopExecution", stop).await.expect("stopped");
    seconds(&service, 1).await;
    let arn = map_run(&service, &execution).await["mapRunArn"].clone();
    // One at a time from now on.
    redrive(&service, &execution).await.expect("redriven");
    let limit = json!({"mapRunArn": arn, "maxConcurrency": 1});
    service.call("UpdateMapRun", limit).await.expect("updated");
    service
        .call("StopExecution", json!({"executionArn": execution}))
        .await
        .expect("stopped");
    seconds(&service, 1).await;
    redrive(&service, &execution).await.expect("redriven");
    seconds(&service, 1).await;
    let run = map_run(&service, &execution).await;
    assert_eq!(
        (&run["maxConcurrency"], &run["executionCounts"]["running"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(run["executionCounts"]["pendingRedrive"], 2);
    let pending = children(&service, &run, Some("PENDING_REDRIVE")).await;
    assert_eq!(pending.len(), 2, "{pending:?}");
    assert!(
        pending
            .iter()
            .all(|child| child["status"] == "PENDING_REDRIVE")
    );
    let end = service.finish(&execution).await;
    assert_eq!(end["output"], "[1,2,3]");
    let run = map_run(&service, &execution).await;
    assert_eq!(run["executionCounts"]["pendingRedrive"], 0);
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_read_is_read_again_and_what_could_not_be_used_starts_anew() {
    let service = Service::new();
    let pass = || json!({"Type": "Pass", "End": true});
    let reader = json!({"ItemReader": {"Resource": "arn:aws:states:::s3:getObject",
        "ReaderConfig": {"InputType": "JSON"}, "Arguments": {"Bucket": "in", "Key": "late.json"}}});
    let machine = service
        .machine("reads", "A", each(pass(), false, reader))
        .await;
    let execution = service.start(&machine, "run", json!({})).await;
    assert_eq!(
        service.finish(&execution).await["error"],
        "States.ItemReaderFailed"
    );
    service.put("in", "late.json", "[4]");
    assert_eq!(redriven(&service, &execution).await["output"], "[4]");
    assert_eq!(map_run(&service, &execution).await["redriveCount"], 1);

    // The selector has no value before the first redrive.
    let selector = json!({"ItemSelector": {"at": "{% $states.context.Execution.RedriveTime %}"}});
    let machine = service
        .machine("selects", "A", each(pass(), false, selector))
        .await;
    let execution = service.start(&machine, "run", json!([1])).await;
    assert_eq!(
        service.finish(&execution).await["error"],
        "States.QueryEvaluationError"
    );
    assert_eq!(redriven(&service, &execution).await["status"], "SUCCEEDED");
    let listed = service
        .call("ListMapRuns", json!({"executionArn": execution}))
        .await;
    let runs = listed.expect("listed")["mapRuns"]
        .as_array()
        .expect("a list")
        .clone();
    assert_eq!(runs.len(), 2, "a new map run");
    assert!(!service.trace(&execution).await.contains("MapRunRedriven"));
}

#[tokio::test(start_paused = true)]
async fn limits_change_while_a_map_run_runs() {
    let service = Service::new();
    let wait = json!({"Type": "Wait", "Seconds": 100, "End": true});
    let states = each(
        wait,
        false,
        json!({"MaxConcurrency": 1, "ToleratedFailureCount": 3}),
    );
    let machine = service.machine("m", "A", states).await;
    let execution = service.start(&machine, "run", json!([1, 2, 3, 4])).await;
    seconds(&service, 1).await;
    let run = map_run(&service, &execution).await;
    let update = async |more: Value| {
        let mut request = json!({"mapRunArn": run["mapRunArn"]});
        for (name, value) in more.as_object().expect("an object") {
            request[name] = value.clone();
        }
        service.call("UpdateMapRun", request).await
    };
    assert_eq!(run["executionCounts"]["running"], 1);
    assert_eq!(update(json!({"maxConcurrency": 3})).await, Ok(json!({})));
    seconds(&service, 1).await;
    let more = map_run(&service, &execution).await;
    assert_eq!(
        (&more["maxConcurrency"], &more["executionCounts"]["running"]),
        (&json!(3), &json!(3))
    );
    // Fewer at once: those that run go on, and no other begins.
    update(json!({"maxConcurrency": 2, "toleratedFailurePercentage": 60.5}))
        .await
        .expect("updated");
    let child = children(&service, &run, Some("RUNNING")).await[0]["executionArn"].clone();
    service
        .call("StopExecution", json!({"executionArn": child}))
        .await
        .expect("stopped");
    seconds(&service, 1).await;
    let fewer = map_run(&service, &execution).await;
    assert_eq!(
        (
            &fewer["executionCounts"]["running"],
            &fewer["executionCounts"]["failed"]
        ),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        (
            &fewer["toleratedFailureCount"],
            &fewer["toleratedFailurePercentage"]
        ),
        (&json!(3), &json!(60.5))
    );

    for (bad, error) in [
        (json!({"maxConcurrency": -1}), "ValidationException"),
        (json!({"toleratedFailureCount": "1"}), "ValidationException"),
        (
            json!({"toleratedFailurePercentage": 100.5}),
            "ValidationException",
        ),
        (json!({"mapRunArn": "arn:aws:s3:::b"}), "InvalidArn"),
        (
            json!({"mapRunArn": "arn:aws:states:us-east-1:000000000000:mapRun:m/many:none"}),
            "ResourceNotFound",
        ),
    ] {
        let refused = update(bad.clone()).await.expect_err("refused");
        assert!(refused.starts_with(error), "{bad}: {refused}");
    }
    // One has failed: less is tolerated now.
    update(json!({"toleratedFailureCount": 0, "toleratedFailurePercentage": 0}))
        .await
        .expect("updated");
    let end = service.finish(&execution).await;
    assert_eq!(end["error"], "States.ExceedToleratedFailureThreshold");
    let refused = update(json!({"maxConcurrency": 1}))
        .await
        .expect_err("it has ended");
    assert!(refused.starts_with("ValidationException"), "{refused}");
}

/// What a map run was told outlives the process.
#[tokio::test(start_paused = true)]
async fn changed_limits_outlive_the_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.db");
    let clock = super::service::clock();
    let functions = std::sync::Arc::new(super::service::Functions::default());
    let service = Service::on_disk(&path, &clock, &functions);
    let wait = json!({"Type": "Wait", "Seconds": 100, "End": true});
    let states = each(wait, false, json!({"MaxConcurrency": 1}));
    let machine = service.machine("m", "A", states).await;
    let execution = service.start(&machine, "run", json!([1, 2, 3])).await;
    seconds(&service, 1).await;
    let run = map_run(&service, &execution).await;
    let request = json!({"mapRunArn": run["mapRunArn"], "maxConcurrency": 3});
    service
        .call("UpdateMapRun", request)
        .await
        .expect("updated");
    service.engine.clone().shutdown().await;
    drop(service);
    let service = Service::on_disk(&path, &clock, &functions);
    service.engine.resume();
    seconds(&service, 1).await;
    let run = map_run(&service, &execution).await;
    assert_eq!(
        (&run["maxConcurrency"], &run["executionCounts"]["running"]),
        (&json!(3), &json!(3))
    );
    service.engine.shutdown().await;
}
