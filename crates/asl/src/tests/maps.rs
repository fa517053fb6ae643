//! Distributed maps: children that are executions, items from S3, results to S3, failures that are tolerated.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::service::Service;

fn distributed(states: Value, more: Value) -> Value {
    let mut map = json!({"Type": "Map", "Label": "many", "End": true, "ItemProcessor": {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "I", "States": states}});
    for (key, value) in more.as_object().expect("an object") {
        map[key] = value.clone();
    }
    json!({"A": map})
}

async fn end(service: &Service, states: Value, input: Value) -> Value {
    let machine = service.jsonpath_machine("m", "A", states).await;
    let execution = service.start(&machine, "run", input).await;
    service.finish(&execution).await
}

#[tokio::test(start_paused = true)]
async fn children_are_executions_under_their_map_run() {
    let service = Service::new();
    let wait = json!({"I": {"Type": "Wait", "SecondsPath": "$", "Next": "J"}, "J": {"Type": "Pass", "End": true}});
    let machine = service
        .jsonpath_machine("m", "A", distributed(wait, json!({"MaxConcurrency": 2})))
        .await;
    let execution = service.start(&machine, "run", json!([10, 20, 30])).await;
    let end = service.finish(&execution).await;
    assert_eq!(end["output"], "[10,20,30]");
    let runs = service
        .call("ListMapRuns", json!({"executionArn": execution}))
        .await
        .expect("listed");
    let arn = runs["mapRuns"][0]["mapRunArn"].as_str().expect("an ARN");
    assert!(
        arn.starts_with("arn:aws:states:us-east-1:000000000000:mapRun:m/many:"),
        "{arn}"
    );
    let run = service
        .call("DescribeMapRun", json!({"mapRunArn": arn}))
        .await
        .expect("described");
    assert_eq!(run["status"], "SUCCEEDED");
    assert_eq!(run["executionCounts"]["succeeded"], 3);
    let children = service
        .call("ListExecutions", json!({"mapRunArn": arn}))
        .await
        .expect("listed");
    assert_eq!(children["executions"].as_array().map(Vec::len), Some(3));
    // Two at once: the third starts when the first ends, after ten seconds.
    let took = end["stopDate"].as_f64().unwrap_or(0.0) - end["startDate"].as_f64().unwrap_or(0.0);
    assert!((40.0..41.0).contains(&took), "{took}");
    assert_snapshot!(service.trace(&execution).await.replace(arn, "RUN"), @r#"
    1<0 ExecutionStarted input=[10,20,30]
    2<0 MapStateEntered name=A input=[10,20,30]
    3<2 MapStateStarted length=3
    4<3 MapRunStarted mapRunArn=RUN
    5<4 MapRunSucceeded +40s
    6<5 MapStateSucceeded +40s
    7<5 MapStateExited +40s name=A output=[10,20,30]
    8<7 ExecutionSucceeded +40s output=[10,20,30]
    "#);
}

#[tokio::test(start_paused = true)]
async fn failures_are_tolerated_up_to_the_threshold() {
    let service = Service::new();
    let choose = || {
        json!({
        "I": {"Type": "Choice", "Choices": [{"Variable": "$", "NumericGreaterThan": 2, "Next": "F"}], "Default": "J"},
        "F": {"Type": "Fail", "Error": "Big"}, "J": {"Type": "Succeed"}})
    };
    let cases = [
        (
            json!({}),
            json!([1, 2, 3]),
            "FAILED",
            json!("States.ExceedToleratedFailureThreshold"),
        ),
        (
            json!({"ToleratedFailureCount": 1}),
            json!([1, 2, 3]),
            "SUCCEEDED",
            json!("[1,2]"),
        ),
        (
            json!({"ToleratedFailurePercentage": 50}),
            json!([1, 3]),
            "SUCCEEDED",
            json!("[1]"),
        ),
        (
            json!({"ToleratedFailurePercentage": 49}),
            json!([1, 3]),
            "FAILED",
            json!("States.ExceedToleratedFailureThreshold"),
        ),
        // A threshold of 0 is none where the other one is set.
        (
            json!({"ToleratedFailureCount": 0, "ToleratedFailurePercentage": 50}),
            json!([1, 3]),
            "SUCCEEDED",
            json!("[1]"),
        ),
        (
            json!({"ToleratedFailureCount": 1, "ToleratedFailurePercentage": 0}),
            json!([1, 3]),
            "SUCCEEDED",
            json!("[1]"),
        ),
        (
            json!({"ToleratedFailureCount": 0, "ToleratedFailurePercentage": 0}),
            json!([1, 3]),
            "FAILED",
            json!("States.ExceedToleratedFailureThreshold"),
        ),
        (json!({}), json!([]), "SUCCEEDED", json!("[]")),
    ];
    for (i, (more, input, status, expected)) in cases.into_iter().enumerate() {
        let machine = service
            .jsonpath_machine(&format!("m{i}"), "A", distributed(choose(), more.clone()))
            .await;
        let execution = service.start(&machine, "run", input).await;
        let end = service.finish(&execution).await;
        let found = if status == "FAILED" {
            &end["error"]
        } else {
            &end["output"]
        };
        assert_eq!(
            (&end["status"], found),
            (&json!(status), &expected),
            "{more}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn items_come_from_s3_in_batches_and_results_go_there() {
    let service = Service::new();
    service.put("in", "items.csv", "id,name\n1,a\n2,b\n3,c\n");
    let states = distributed(
        json!({"I": {"Type": "Pass", "Parameters": {"n.$": "States.ArrayLength($.Items)"}, "End": true}}),
        json!({
            "ItemReader": {"Resource": "arn:aws:states:::s3:getObject",
                "Parameters": {"Bucket": "in", "Key.$": "$.key"},
                "ReaderConfig": {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"}},
            "ItemBatcher": {"MaxItemsPerBatch": 2},
            "ResultWriter": {"Resource": "arn:aws:states:::s3:putObject",
                "Parameters": {"Bucket": "out", "Prefix": "runs"}},
        }),
    );
    let end = end(&service, states.clone(), json!({"key": "items.csv"})).await;
    let output: Value =
        serde_json::from_str(end["output"].as_str().expect("an output")).expect("JSON");
    let manifest = output["ResultWriterDetails"]["Key"]
        .as_str()
        .expect("a key");
    let manifest: Value = serde_json::from_str(&service.get("out", manifest)).expect("JSON");
    let key = manifest["ResultFiles"]["SUCCEEDED"][0]["Key"]
        .as_str()
        .expect("a key");
    let results: Value = serde_json::from_str(&service.get("out", key)).expect("JSON");
    let outputs: Vec<_> = results
        .as_array()
        .expect("an array")
        .iter()
        .map(|r| &r["Output"])
        .collect();
    assert_eq!(outputs, ["{\"n\":2}", "{\"n\":1}"]);

    let machine = service.jsonpath_machine("gone", "A", states).await;
    let execution = service.start(&machine, "run", json!({"key": "gone"})).await;
    let end = service.finish(&execution).await;
    assert_eq!(end["error"], "States.ItemReaderFailed");
}

/// A distributed map runs over the pairs of an object, wherever it comes from; an inline one refuses it, as AWS does.
#[tokio::test(start_paused = true)]
async fn the_pairs_of_an_object() {
    let service = Service::new();
    service.put("in", "nested.json", r#"{"a":{"z":1,"b":[2]}}"#);
    service.put("in", "whole.json", r#"{"z":1}"#);
    let pass = || json!({"I": {"Type": "Pass", "End": true}});
    let selector = json!({"k.$": "$$.Map.Item.Key", "v.$": "$$.Map.Item.Value", "i.$": "$$.Map.Item.Index",
        "s.$": "$$.Map.Item.Source"});
    let reader = |key: &str, more: Value| {
        json!({"Resource": "arn:aws:states:::s3:getObject", "Parameters": {"Bucket": "in", "Key": key},
            "ReaderConfig": more})
    };
    let nested = json!({"InputType": "JSON", "ItemsPointer": "/a"});
    let most = json!({"InputType": "JSON", "ItemsPointer": "/a", "MaxItems": 1});
    let cases = [
        (
            json!({}),
            json!([{"Key": "z", "Value": 1}, {"Key": "b", "Value": [2]}]),
        ),
        (
            json!({"ItemsPath": "$.b"}),
            json!([{"Key": "c", "Value": null}]),
        ),
        (
            json!({"ItemSelector": selector}),
            json!([{"k": "z", "v": 1, "i": 0, "s": "STATE_DATA"}, {"k": "b", "v": [2], "i": 1, "s": "STATE_DATA"}]),
        ),
        (
            json!({"ItemBatcher": {"MaxItemsPerBatch": 2}}),
            json!([{"Items": [{"Key": "z", "Value": 1}, {"Key": "b", "Value": [2]}]}]),
        ),
        (
            json!({"ItemReader": reader("nested.json", nested), "ItemSelector": selector}),
            json!([{"k": "z", "v": 1, "i": 0, "s": "S3://in/nested.json"}, {"k": "b", "v": [2], "i": 1, "s": "S3://in/nested.json"}]),
        ),
        (
            json!({"ItemReader": reader("nested.json", most)}),
            json!([{"Key": "z", "Value": 1}]),
        ),
        (
            json!({"ItemReader": reader("whole.json", json!({"InputType": "JSON"}))}),
            json!([
                "States.ItemReaderFailed",
                "Attempting to map over non-iterable node."
            ]),
        ),
    ];
    let mut machines = Vec::new();
    for (more, expected) in cases {
        let input = match more.get("ItemsPath") {
            Some(_) => json!({"b": {"c": null}}),
            None => json!({"z": 1, "b": [2]}),
        };
        machines.push((distributed(pass(), more), input, expected));
    }
    let no_array = json!([
        "States.Runtime",
        "Reference path \"$\" must point to array."
    ]);
    let mut inline = distributed(pass(), json!({}));
    inline["A"]["ItemProcessor"]["ProcessorConfig"] = json!({"Mode": "INLINE"});
    inline["A"]
        .as_object_mut()
        .expect("a state")
        .remove("Label");
    machines.push((inline, json!({"z": 1}), no_array.clone()));
    machines.push((distributed(pass(), json!({})), json!("text"), no_array));
    machines.push((distributed(pass(), json!({})), json!({}), json!([])));
    for (at, (states, input, expected)) in machines.into_iter().enumerate() {
        let name = format!("m{at}");
        let machine = service.jsonpath_machine(&name, "A", states.clone()).await;
        let execution = service.start(&machine, "run", input).await;
        let end = service.finish(&execution).await;
        let found = match end["output"].as_str() {
            Some(output) => serde_json::from_str(output).expect("JSON"),
            None => json!([end["error"], end["cause"]]),
        };
        assert_eq!(found, expected, "{states}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_pairs_of_an_object_in_jsonata_and_their_results() {
    let service = Service::new();
    let selector = json!({"name": "{% $states.context.Map.Item.Key %}", "size": "{% $states.context.Map.Item.Value %}"});
    let states = json!({"A": {"Type": "Map", "Label": "many", "End": true, "Items": {"x": 1, "y": "{% 1 + 1 %}"},
        "ItemSelector": selector,
        "ItemProcessor": {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
            "StartAt": "I", "States": {"I": {"Type": "Pass", "End": true}}},
        "ResultWriter": {"Resource": "arn:aws:states:::s3:putObject", "Arguments": {"Bucket": "out", "Prefix": "runs"}}}});
    let machine = service.machine("m", "A", states).await;
    let execution = service.start(&machine, "run", json!({})).await;
    let end = service.finish(&execution).await;
    let output: Value =
        serde_json::from_str(end["output"].as_str().expect("an output")).expect("JSON");
    let manifest = output["ResultWriterDetails"]["Key"]
        .as_str()
        .expect("a key");
    let results = manifest.replace("manifest.json", "SUCCEEDED_0.json");
    let results: Value = serde_json::from_str(&service.get("out", &results)).expect("JSON");
    let results = results.as_array().expect("an array").iter();
    let outputs: Vec<&str> = results
        .filter_map(|result| result["Output"].as_str())
        .collect();
    assert_eq!(
        outputs,
        [r#"{"name":"x","size":1}"#, r#"{"name":"y","size":2}"#]
    );
    let trace = service.trace(&execution).await;
    assert!(trace.contains("3<2 MapStateStarted length=2"), "{trace}");
}

#[tokio::test(start_paused = true)]
async fn stopping_the_parent_stops_the_children() {
    let service = Service::new();
    let states = distributed(
        json!({"I": {"Type": "Wait", "Seconds": 1000, "End": true}}),
        json!({}),
    );
    let machine = service.jsonpath_machine("m", "A", states).await;
    let execution = service.start(&machine, "run", json!([1, 2])).await;
    service.clock.sleep(std::time::Duration::from_secs(1)).await;
    let runs = service
        .call("ListMapRuns", json!({"executionArn": execution}))
        .await
        .expect("listed");
    service
        .call("StopExecution", json!({"executionArn": execution}))
        .await
        .expect("stopped");
    service.clock.sleep(std::time::Duration::from_secs(1)).await;
    let request = json!({"mapRunArn": runs["mapRuns"][0]["mapRunArn"], "statusFilter": "ABORTED"});
    let children = service
        .call("ListExecutions", request)
        .await
        .expect("listed");
    assert_eq!(children["executions"].as_array().map(Vec::len), Some(2));
}

#[tokio::test(start_paused = true)]
async fn limits_from_paths() {
    let service = Service::new();
    let mut found = String::new();
    let cases = [
        ("MaxConcurrencyPath", json!("2")),
        ("MaxConcurrencyPath", json!(-1)),
        ("MaxConcurrencyPath", json!({"a": 1})),
        ("ToleratedFailureCountPath", json!(-1)),
        ("ToleratedFailureCountPath", json!("x")),
        ("ToleratedFailurePercentagePath", json!(101)),
        ("ToleratedFailurePercentagePath", json!([1])),
    ];
    for (at, (field, value)) in cases.into_iter().enumerate() {
        let states = json!({"A": {"Type": "Map", "ItemsPath": "$.l", field: "$.n", "End": true,
            "ItemProcessor": {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": true}}}}});
        let machine = service
            .jsonpath_machine(&format!("m{at}"), "A", states)
            .await;
        let input = json!({"l": [], "n": value});
        let execution = service.start(&machine, "run", input).await;
        let end = service.finish(&execution).await;
        let trace = service.trace(&execution).await;
        let events: Vec<&str> = trace
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        found.push_str(&format!("{} {}\n", events.join(" "), end["cause"]));
    }
    assert_snapshot!(found, @r#"
    ExecutionStarted MapStateEntered MapStateStarted MapStateSucceeded MapStateExited ExecutionSucceeded null
    ExecutionStarted MapStateEntered ExecutionFailed "Expected non-negative integer for MaxConcurrency, got '-1' instead."
    ExecutionStarted MapStateEntered ExecutionFailed "The MaxConcurrencyPath field refers to value \"{\"a\":1}\" which is not a valid integer: $.n"
    ExecutionStarted MapStateEntered MapStateStarted ExecutionFailed "ToleratedFailureCount cannot be negative."
    ExecutionStarted MapStateEntered MapStateStarted ExecutionFailed "The ToleratedFailureCountPath field refers to value \"x\" which is not a valid integer: $.n"
    ExecutionStarted MapStateEntered MapStateStarted ExecutionFailed "ToleratedFailurePercentage must be between 0 and 100."
    ExecutionStarted MapStateEntered MapStateStarted ExecutionFailed "The ToleratedFailurePercentagePath field refers to value \"[1]\" which is not a valid float: $.n"
    "#);
}

/// However an execution ends, its map run ends with it.
#[tokio::test(start_paused = true)]
async fn a_map_run_ends_with_what_waits_for_it() {
    let many = || {
        let wait = json!({"I": {"Type": "Wait", "Seconds": 60, "End": true}});
        distributed(wait, json!({"MaxConcurrency": 2}))
    };
    let beside = json!({"A": {"Type": "Parallel", "End": true, "Branches": [
        {"StartAt": "A", "States": many()},
        {"StartAt": "W", "States": {
            "W": {"Type": "Wait", "Seconds": 5, "Next": "F"}, "F": {"Type": "Fail", "Error": "Big"}}},
    ]}});
    for (states, stops, expected) in [
        (many(), true, "ABORTED"),
        (many(), false, "SUCCEEDED"),
        (beside, false, "FAILED"),
    ] {
        let service = Service::new();
        let machine = service.jsonpath_machine("m", "A", states).await;
        let execution = service.start(&machine, "run", json!([1, 2, 3, 4, 5])).await;
        service.clock.sleep(Duration::from_secs(1)).await;
        let listed = service
            .call("ListMapRuns", json!({"executionArn": execution}))
            .await;
        let arn = listed.expect("listed")["mapRuns"][0]["mapRunArn"].clone();
        let described = async || {
            let described = service
                .call("DescribeMapRun", json!({"mapRunArn": arn}))
                .await;
            described.expect("described")
        };
        let told = |run: &Value| {
            let counts = &run["itemCounts"];
            let names = ["pending", "running", "succeeded", "aborted", "total"];
            names.map(|name| counts[name].as_u64().unwrap_or(99))
        };
        let run = described().await;
        assert_eq!(run["status"], "RUNNING");
        assert_eq!(told(&run), [3, 2, 0, 0, 5]);
        assert!(run.get("stopDate").is_none());
        if stops {
            let stopped = service
                .call("StopExecution", json!({"executionArn": execution}))
                .await;
            stopped.expect("stopped");
        }
        assert_eq!(service.finish(&execution).await["status"], expected);
        let run = described().await;
        assert!(run["stopDate"].is_number(), "{run}");
        let (status, counts) = match expected {
            "SUCCEEDED" => ("SUCCEEDED", [0, 0, 5, 0, 5]),
            _ => ("ABORTED", [0, 0, 0, 5, 5]),
        };
        assert_eq!((run["status"].as_str(), told(&run)), (Some(status), counts));
    }
}
