//! How elements stand while they go on.

use std::collections::BTreeMap;

use serde_json::json;
use slipway_expr::{Limits, parse};
use slipway_model::id::NodeId;
use slipway_model::status::Status;
use slipway_store::record::{NodeRecord, StageSummary};

use super::super::RunContext;
use crate::fixture::{group, parallel, plan, record, run, stage, step, turn};
use crate::runs::not_started;

/// What `status`, `currentStatus` and `liveStatus` of the stage, its group and the pipeline are for the step `last` of
/// the stage `work`, where its other steps stand so and `beside`, a stage that is a turn of a loop, stands thus.
fn seen(steps: &[(&str, Status)], beside: Option<Status>) -> String {
    let mut turns = vec![step("t_0"), step("t_1")];
    for (index, node) in turns.iter_mut().enumerate() {
        if let slipway_plan::Node::Step(step) = node {
            step.iteration = Some(turn("t", index, 2, 0));
        }
    }
    let work = stage(
        "work",
        vec![
            step("a"),
            parallel("p", turns),
            group("g", vec![step("b"), step("last")]),
        ],
    );
    let mut other = stage("other_0", vec![step("o")]);
    other.iteration = Some(turn("other", 0, 1, 0));
    let plan = plan(vec![vec![work, other]]);
    let mut run = run(&plan);
    run.status = Status::Running;
    let summary = |index: usize, status| StageSummary {
        status,
        ..not_started(&plan.groups[0][index])
    };
    run.stages = vec![summary(0, Status::Running)];
    run.stages.extend(beside.map(|status| summary(1, status)));
    let mut nodes: BTreeMap<NodeId, NodeRecord> = BTreeMap::new();
    let own = [("g", Status::Running), ("last", Status::Running)];
    for (id, status) in steps.iter().chain(&own) {
        let known = NodeRecord {
            status: *status,
            ..record(id, json!({}))
        };
        nodes.insert(NodeId::new(*id), known);
    }
    let at = NodeId::new("last");
    let context = RunContext {
        plan: &plan,
        run: &run,
        nodes: &nodes,
        stage: plan.groups[0].first(),
        node: Some(&at),
    };
    let of = |name: &str| {
        let words = ["status", "currentStatus", "liveStatus"];
        let words = words.map(|word| {
            let text = format!("<+{name}.{word}>");
            let found = parse(&text).expect("an expression");
            let found = found.evaluate(&context, &Limits::default());
            found.expect("a status").to_shown_json().to_string()
        });
        words.join(" ").replace('"', "")
    };
    format!("{} | {} | {}", of("stage"), of("stepGroup"), of("pipeline"))
}

#[test]
fn what_failed_shows_in_what_goes_on() {
    use Status::{Failed, IgnoreFailed, Running, Skipped, Success};
    // Nothing has gone wrong: the step that asks does not count.
    insta::assert_snapshot!(seen(&[], None), @"RUNNING SUCCEEDED SUCCEEDED | RUNNING SUCCEEDED SUCCEEDED | RUNNING SUCCEEDED SUCCEEDED");
    insta::assert_snapshot!(seen(&[("a", Success), ("b", Skipped)], None), @"RUNNING SUCCEEDED SUCCEEDED | RUNNING SUCCEEDED SUCCEEDED | RUNNING SUCCEEDED SUCCEEDED");
    insta::assert_snapshot!(seen(&[("a", IgnoreFailed)], None), @"RUNNING IGNORE_FAILED IGNORE_FAILED | RUNNING SUCCEEDED SUCCEEDED | RUNNING IGNORE_FAILED IGNORE_FAILED");
    // What failed makes all of it failed, outside of the group not the group.
    insta::assert_snapshot!(seen(&[("a", Failed), ("b", Success)], None), @"RUNNING FAILED FAILED | RUNNING SUCCEEDED SUCCEEDED | RUNNING FAILED FAILED");
    insta::assert_snapshot!(seen(&[("a", Success), ("b", Failed)], None), @"RUNNING FAILED FAILED | RUNNING FAILED FAILED | RUNNING FAILED FAILED");
    // A loop that goes on counts in `liveStatus` only, one that has ended in both.
    let going = [
        ("a", Success),
        ("p", Running),
        ("t_0", Failed),
        ("t_1", Running),
    ];
    insta::assert_snapshot!(seen(&going, None), @"RUNNING SUCCEEDED FAILED | RUNNING SUCCEEDED SUCCEEDED | RUNNING SUCCEEDED FAILED");
    let ended = [
        ("a", Success),
        ("p", Failed),
        ("t_0", Failed),
        ("t_1", Success),
    ];
    insta::assert_snapshot!(seen(&ended, None), @"RUNNING FAILED FAILED | RUNNING SUCCEEDED SUCCEEDED | RUNNING FAILED FAILED");
    // So do stages.
    insta::assert_snapshot!(seen(&[("a", Success)], Some(Running)), @"RUNNING SUCCEEDED SUCCEEDED | RUNNING SUCCEEDED SUCCEEDED | RUNNING SUCCEEDED RUNNING");
    insta::assert_snapshot!(seen(&[("a", Success), ("o", Failed)], Some(Running)), @"RUNNING SUCCEEDED SUCCEEDED | RUNNING SUCCEEDED SUCCEEDED | RUNNING SUCCEEDED FAILED");
    insta::assert_snapshot!(seen(&[("a", Success)], Some(Failed)), @"RUNNING SUCCEEDED SUCCEEDED | RUNNING SUCCEEDED SUCCEEDED | RUNNING FAILED FAILED");
    insta::assert_snapshot!(seen(&[("a", Success), ("b", Running)], None), @"RUNNING RUNNING RUNNING | RUNNING RUNNING RUNNING | RUNNING RUNNING RUNNING");
}
