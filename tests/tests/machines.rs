//! The rules of `statemachines/README.md`, held against the files: a machine that breaks one would only
//! be noticed when a run stalls.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};
use slipway_engine::directive::{ChildLane, Directive};
use slipway_engine::error_name::ErrorName;
use slipway_engine::name::{self, Lane};
use slipway_model::id::{NodeId, RunId, StageId};

const MACHINES: &[&str] = &["pipeline", "stage", "lane", "notify", "errand"];

/// Errors of the services that the machines call (AWS documentation, *Handling errors in Step Functions*
/// and *Optimized integrations*), beside `States.*` and our own. `Runtime.ExitError` is the `errorType` that Lambda answers
/// where the process of a function has exited (recorded in floci-io/floci#3314).
const SERVICE_ERRORS: &[&str] = &[
    "Lambda.AWSLambdaException",
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.SdkClientException",
    "Lambda.ServiceException",
    "Lambda.TooManyRequestsException",
    "Lambda.Unknown",
    "Runtime.ExitError",
    "Sandbox.Timedout",
    "StepFunctions.ExecutionLimitExceededException",
    "StepFunctions.SdkClientException",
    "StepFunctions.ThrottlingException",
];

const STATES_ERRORS: &[&str] = &["States.ALL", "States.HeartbeatTimeout", "States.Timeout"];

fn text(machine: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../statemachines")
        .join(format!("{machine}.asl.json"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn machine(name: &str) -> Value {
    serde_json::from_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

type Scope = Map<String, Value>;

/// A map of states, its first state, and where it is.
fn scopes(name: &str) -> Vec<(String, String, Scope)> {
    fn collect(place: String, scope: &Value, out: &mut Vec<(String, String, Scope)>) {
        let start = scope["StartAt"].as_str().expect("StartAt").to_owned();
        let states = scope["States"].as_object().expect("States");
        for (name, state) in states {
            if let Some(inner) = state.get("ItemProcessor") {
                collect(format!("{place}.{name}"), inner, out);
            }
        }
        out.push((place, start, states.clone()));
    }
    let mut out = Vec::new();
    collect(name.to_owned(), &machine(name), &mut out);
    out
}

fn states() -> Vec<(String, Value)> {
    let of_scope = |(place, _, states): (String, String, Scope)| {
        states
            .into_iter()
            .map(move |(name, state)| (format!("{place}.{name}"), state))
            .collect::<Vec<_>>()
    };
    MACHINES
        .iter()
        .flat_map(|name| scopes(name))
        .flat_map(of_scope)
        .collect()
}

fn of_type(kind: &str) -> Vec<(String, Value)> {
    let found: Vec<_> = states()
        .into_iter()
        .filter(|(_, state)| state["Type"] == kind)
        .collect();
    assert!(!found.is_empty(), "no state of type {kind}");
    found
}

fn names(value: &Value) -> BTreeSet<&str> {
    let listed = value.as_array().into_iter().flatten();
    let equals = listed.flat_map(|entry| entry["ErrorEquals"].as_array().into_iter().flatten());
    equals.filter_map(Value::as_str).collect()
}

#[test]
fn every_machine_is_jsonata_and_has_a_comment_a_limit_and_one_screen() {
    for name in MACHINES {
        let machine = machine(name);
        assert_eq!(machine["QueryLanguage"], "JSONata", "{name}");
        assert!(machine["Comment"].is_string(), "{name}");
        assert!(machine["TimeoutSeconds"].as_u64() > Some(0), "{name}");
        assert!(text(name).lines().count() <= 300, "{name}");
    }
}

/// AWS documentation, *Step Functions service quotas*: a definition and a payload.
const LARGEST_DEFINITION: usize = 1024 * 1024;
const LARGEST_PAYLOAD: usize = 256 * 1024;

#[test]
fn y13_definitions_and_payloads_stay_small_however_large_the_pipeline() {
    for name in MACHINES {
        let size = text(name).len();
        assert!(size < LARGEST_DEFINITION / 10, "{name} has {size} bytes");
    }
    // Names are cut, ids are not: the longest that a pipeline can have.
    let run = RunId::new("r".repeat(36));
    let (id, most) = ("s".repeat(128), slipway_model::names::MOST_BRANCHES);
    let stage = StageId::new(id.as_str());
    let block = NodeId::new(format!("pipeline.stages.{id}.spec.execution.steps.{id}"));
    let lanes = (0..most).map(|branch| {
        let lane = Lane::branch(&stage, &block, branch);
        ChildLane {
            execution: name::lane_execution(&run, &lane, 0),
            lane_id: lane.id().to_string(),
            part: 0,
        }
    });
    let fork = Directive::Fork {
        node: block.to_string(),
        concurrency: 0,
        lanes: lanes.collect(),
    };
    let size = serde_json::to_vec(&fork).expect("JSON").len();
    assert!(
        size < LARGEST_PAYLOAD,
        "a fork of {most} lanes has {size} bytes"
    );
}

#[test]
fn every_task_has_a_limit_named_retries_with_full_jitter_and_a_last_catch() {
    for (name, state) in of_type("Task") {
        assert!(
            !state["TimeoutSeconds"].is_null(),
            "{name} has no TimeoutSeconds"
        );
        let retries = state["Retry"].as_array().cloned().unwrap_or_default();
        assert!(!retries.is_empty(), "{name} has no Retry");
        for retry in &retries {
            assert_eq!(retry["JitterStrategy"], "FULL", "{name}");
            assert!(retry["MaxDelaySeconds"].is_u64(), "{name}");
            assert!(
                !names(&state["Retry"]).contains("States.ALL"),
                "{name} retries anything"
            );
        }
        let last = state["Catch"].as_array().and_then(|catches| catches.last());
        let last = last.unwrap_or_else(|| panic!("{name} has no Catch"));
        assert_eq!(
            last["ErrorEquals"],
            serde_json::json!(["States.ALL"]),
            "{name}"
        );
        for catch in state["Catch"].as_array().into_iter().flatten() {
            assert!(
                !catch["Output"].is_null(),
                "{name}: a Catch without Output loses the ids"
            );
        }
    }
}

/// What all retries of a retrier take, in seconds: full jitter halves it on average.
fn patience(retry: &Value) -> f64 {
    let number = |field: &str| retry[field].as_f64().expect("a number");
    let (first, rate) = (number("IntervalSeconds"), number("BackoffRate"));
    let most = number("MaxDelaySeconds");
    let attempts = retry["MaxAttempts"].as_u64().expect("a count");
    let delays = std::iter::successors(Some(first), |delay| Some((delay * rate).min(most)));
    delays
        .take(usize::try_from(attempts).expect("a count"))
        .sum::<f64>()
        / 2.0
}

#[test]
fn f10_every_machine_waits_out_ten_minutes_of_throttling_and_ends_outlast_hours() {
    const THROTTLED: [&str; 4] = [
        "Lambda.TooManyRequestsException",
        "StepFunctions.ThrottlingException",
        "StoreUnavailable",
        "WorkflowUnavailable",
    ];
    for (name, state) in of_type("Task") {
        let known = names(&state["Retry"]);
        let handled = THROTTLED.iter().filter(|error| known.contains(*error));
        let resource = state["Resource"].as_str().unwrap_or_default();
        assert!(
            resource.contains("Activity") || handled.count() > 0,
            "{name}"
        );
        for retry in state["Retry"].as_array().into_iter().flatten() {
            let errors = retry["ErrorEquals"].as_array().expect("errors");
            if !errors
                .iter()
                .any(|e| THROTTLED.iter().any(|known| e == known))
            {
                continue;
            }
            // Nobody comes back to record an end that was given up.
            let least = match name.as_str() {
                "stage.End" | "pipeline.Finish" => 6.0 * 3_600.0,
                _ => 720.0,
            };
            let patience = patience(retry);
            assert!(patience > least, "{name} gives up after {patience} s");
        }
    }
}

#[test]
fn every_choice_has_a_default_and_every_callback_a_way_out() {
    for (name, state) in of_type("Choice") {
        assert!(state["Default"].is_string(), "{name}");
    }
    for (name, state) in of_type("Task") {
        let resource = state["Resource"].as_str().unwrap_or_default();
        let timeout_is_caught = names(&state["Catch"])
            .iter()
            .any(|error| matches!(*error, "States.Timeout" | "States.ALL"));
        let timeout_is_retried = names(&state["Retry"]).contains("States.Timeout");
        if resource.ends_with("waitForTaskToken") || resource.contains("Activity") {
            assert!(
                timeout_is_caught && !timeout_is_retried,
                "{name} has no timeout branch"
            );
        }
    }
}

#[test]
fn errors_are_of_the_closed_lists() {
    let own: BTreeSet<&str> = ErrorName::ALL.iter().map(|name| name.as_str()).collect();
    let known: BTreeSet<&str> = own
        .iter()
        .chain(SERVICE_ERRORS)
        .chain(STATES_ERRORS)
        .copied()
        .collect();
    for (name, state) in states() {
        let fail: Vec<&str> = state["Error"].as_str().into_iter().collect();
        for error in names(&state["Retry"])
            .into_iter()
            .chain(names(&state["Catch"]))
            .chain(fail)
        {
            assert!(known.contains(error), "{name} names {error}");
        }
        for error in names(&state["Retry"]) {
            let retried = ErrorName::ALL.iter().find(|known| known.as_str() == error);
            assert!(
                retried.is_none_or(|error| error.is_retried()),
                "{name} retries {error}"
            );
        }
    }
}

#[test]
fn the_table_of_errors_has_a_row_for_each() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
    let table = std::fs::read_to_string(path).expect("docs/errors.md");
    let rows: Vec<String> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            line.split('|')
                .map(str::trim)
                .skip(1)
                .take(4)
                .collect::<Vec<_>>()
                .join(" | ")
        })
        .collect();
    let retried = |name: ErrorName| if name.is_retried() { "yes" } else { "no" };
    assert_eq!(rows.len(), ErrorName::ALL.len());
    for (row, name) in rows.iter().zip(ErrorName::ALL) {
        let start = format!("`{name}` | `{}` | ", name.rest_code());
        assert!(row.starts_with(&start), "{row}, but {start}");
        assert!(row.ends_with(&format!(" | {}", retried(*name))), "{row}");
    }
}

#[test]
fn route_leads_to_the_directives_and_to_nothing_else() {
    let route = &machine("lane")["States"]["Route"];
    let mut targets = vec![route["Default"].as_str().expect("a default")];
    for choice in route["Choices"].as_array().expect("choices") {
        let next = choice["Next"].as_str().expect("a target");
        let condition = format!("{{% $states.input.next.directive = '{next}' %}}");
        assert_eq!(choice["Condition"], Value::String(condition));
        targets.push(next);
    }
    targets.sort_unstable();
    assert_eq!(targets, Directive::NAMES);

    let lane = machine("lane");
    let others = lane["States"].as_object().expect("states").keys();
    let mut others: Vec<&str> = others.map(String::as_str).collect();
    others.retain(|name| !targets.contains(name));
    assert_eq!(others, ["Advance", "Route"]);
}

#[test]
fn every_state_is_reached_and_every_path_ends() {
    for name in MACHINES {
        for (place, start, states) in scopes(name) {
            let mut reached = BTreeSet::new();
            let mut open = vec![start];
            while let Some(next) = open.pop() {
                let state = states
                    .get(&next)
                    .unwrap_or_else(|| panic!("{place}: no {next}"));
                if !reached.insert(next.clone()) {
                    continue;
                }
                let targets = targets(state);
                let ends = state["End"] == true
                    || matches!(state["Type"].as_str(), Some("Succeed" | "Fail"));
                assert!(ends || !targets.is_empty(), "{place}.{next} leads nowhere");
                open.extend(targets);
            }
            let all: BTreeSet<String> = states.keys().cloned().collect();
            assert_eq!(reached, all, "{place}");
        }
    }
}

fn targets(state: &Value) -> Vec<String> {
    let listed = |field: &str| state[field].as_array().cloned().unwrap_or_default();
    let entries = listed("Catch").into_iter().chain(listed("Choices"));
    let mut targets: Vec<Value> = entries.map(|entry| entry["Next"].clone()).collect();
    targets.push(state["Next"].clone());
    targets.push(state["Default"].clone());
    targets
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_endings_of_a_run_are_three() {
    let pipeline = machine("pipeline");
    let states = pipeline["States"].as_object().expect("states");
    let endings = states
        .iter()
        .filter(|(_, s)| matches!(s["Type"].as_str(), Some("Succeed" | "Fail")));
    let mut endings: Vec<&str> = endings.map(|(name, _)| name.as_str()).collect();
    endings.sort_unstable();
    assert_eq!(endings, ["Aborted", "Failed", "Succeeded"]);
}

#[test]
fn expressions_access_fields_and_compare_and_do_nothing_else() {
    for name in MACHINES {
        let mut seen = 0;
        each_text(&machine(name), &mut |text| {
            let Some(expression) = text.strip_prefix("{%").and_then(|t| t.strip_suffix("%}"))
            else {
                assert!(!text.contains("{%"), "{name}: {text}");
                return;
            };
            seen += 1;
            let sides: Vec<&str> = expression.split(" = ").map(str::trim).collect();
            assert!(sides.len() <= 2, "{name}: {text}");
            assert!(is_path(sides[0]), "{name}: {text}");
            for right in &sides[1..] {
                let literal = right.starts_with('\'') && right.ends_with('\'') && right.len() > 2;
                assert!(literal || *right == "true", "{name}: {text}");
            }
        });
        assert!(seen > 0, "{name} has no expression");
    }
}

fn is_path(text: &str) -> bool {
    let Some(path) = text.strip_prefix("$states.") else {
        return false;
    };
    path.split('.')
        .all(|part| !part.is_empty() && part.chars().all(char::is_alphanumeric))
}

fn each_text(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| key.as_str() != "Comment")
            .for_each(|(_, field)| each_text(field, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn nothing_is_named_by_arn_but_integrations() {
    const INTEGRATIONS: &[&str] = &[
        "arn:aws:states:::lambda:invoke",
        "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "arn:aws:states:::states:startExecution.sync:2",
    ];
    for name in MACHINES {
        each_text(&machine(name), &mut |text| {
            assert!(
                !text.contains("arn:") || INTEGRATIONS.contains(&text),
                "{name}: {text}"
            );
        });
    }
}
