//! What ran, by its place: in loops, after them, and in rollback steps.

use std::collections::BTreeMap;

use serde_json::json;
use slipway_expr::{Limits, parse};
use slipway_model::id::NodeId;
use slipway_plan::{Node, Plan};

use super::RunContext;
use crate::fixture::{group, parallel, plan, record, run, stage, step, turn};

/// A step or group as a turn of a loop.
fn in_turn(mut node: Node, of: &str, index: usize) -> Node {
    let own = Some(turn(of, index, 2, 0));
    match &mut node {
        Node::Step(step) => step.iteration = own,
        Node::Group(group) => group.iteration = own,
        Node::Parallel(_) => {}
    }
    node
}

/// A step that has an identifier beside its id.
fn called(id: &str, identifier: &str) -> Node {
    let mut node = step(id);
    if let Node::Step(step) = &mut node {
        step.identifier = slipway_model::id::EntityId::new(identifier);
    }
    node
}

/// A stage with a step that loops, a group that loops around one that loops, and rollback steps in both places.
fn a_plan() -> Plan {
    let ship = (0..2).map(|at| in_turn(step(&format!("ship_{at}")), "ship", at));
    let probes = (0..2).map(|outer| {
        let inner = (0..2).map(|at| {
            let check = called(&format!("g{outer}.check{at}"), &format!("check_{at}"));
            in_turn(check, "check", at)
        });
        let nodes = vec![
            called(&format!("g{outer}.prepare"), "prepare"),
            parallel(&format!("g{outer}.check"), inner.collect()),
        ];
        let mut probe = in_turn(group(&format!("probe_{outer}"), nodes), "probe", outer);
        if let Node::Group(group) = &mut probe {
            group.rollback_steps = vec![called(&format!("g{outer}.forget"), "forget")];
        }
        probe
    });
    let mut shop = stage(
        "shop",
        vec![
            parallel("ship", ship.collect()),
            parallel("probe", probes.collect()),
            step("ask"),
        ],
    );
    shop.rollback_steps = vec![group("undo", vec![step("restore"), step("tell")])];
    let mut after = stage("after", vec![step("report")]);
    after.rollback_steps = vec![step("regret")];
    plan(vec![vec![shop], vec![after]])
}

/// What a text is for a node of a stage; every step says its own id.
fn evaluate(text: &str, at: (usize, &str)) -> String {
    let plan = a_plan();
    let run = run(&plan);
    let ids = [
        "ship_0",
        "ship_1",
        "ship",
        "probe",
        "probe_0",
        "probe_1",
        "g0.prepare",
        "g0.check0",
        "g0.check1",
        "g0.forget",
        "g1.prepare",
        "g1.check0",
        "g1.check1",
        "g1.forget",
        "ask",
        "undo",
        "restore",
        "tell",
        "report",
        "regret",
    ];
    let nodes: BTreeMap<_, _> = ids
        .iter()
        .map(|id| {
            let outputs = json!({"output": {"outputVariables": {"id": id}}, "issue": {"Customer Name": "ACME"}});
            let mut node = record(id, outputs);
            node.spec = json!({
                "headers": [{"key": "x-auth", "value": "t"}, {"key": "a.b", "value": "dots"}],
                "inputVariables": [
                    {"name": "who", "type": "String", "value": "sam"},
                    {"name": "key", "type": "Secret", "value": "account.key"},
                ],
            });
            (NodeId::new(*id), node)
        })
        .collect();
    let node = NodeId::new(at.1);
    let context = RunContext {
        plan: &plan,
        run: &run,
        nodes: &nodes,
        stage: plan.groups[at.0].first(),
        node: Some(&node),
    };
    let found = parse(text).unwrap().evaluate(&context, &Limits::default());
    match found {
        Ok(value) => value.to_shown_json().to_string().replace('"', ""),
        Err(error) => format!("error: {}", error.reason),
    }
}

#[test]
fn steps_are_found_after_loops_and_in_rollbacks() {
    let from = |place: (usize, &str), table: &[(&str, &str)]| {
        for (path, expected) in table {
            let text = format!("<+{path}.output.outputVariables.id>");
            assert_eq!(evaluate(&text, place), *expected, "{path} at {}", place.1);
        }
    };
    let everywhere = [
        ("pipeline.stages.shop.spec.execution.steps.ship_1", "ship_1"),
        ("stages.shop.spec.execution.steps.ship_0", "ship_0"),
        (
            "pipeline.stages.shop.spec.execution.steps.ship<+\"_1\">",
            "ship_1",
        ),
        (
            "pipeline.stages.get(\"shop\").spec.execution.steps.get(\"ship_1\")",
            "ship_1",
        ),
        (
            "pipeline.stages[\"shop\"].spec.execution.steps[\"ship_1\"]",
            "ship_1",
        ),
        (
            "pipeline.stages.shop.spec.execution.steps.probe_1.steps.prepare",
            "g1.prepare",
        ),
        (
            "pipeline.stages.shop.spec.execution.steps.probe_0.steps.check_1",
            "g0.check1",
        ),
        (
            "pipeline.stages.shop.spec.execution.steps.probe_1.rollbackSteps.forget",
            "g1.forget",
        ),
        (
            "pipeline.stages.shop.spec.execution.rollbackSteps.undo.steps.restore",
            "restore",
        ),
        (
            "pipeline.stages.after.spec.execution.steps.report",
            "report",
        ),
    ];
    for place in [
        (0, "g1.check0"),
        (0, "ask"),
        (0, "tell"),
        (0, "g1.forget"),
        (1, "report"),
        (1, "regret"),
    ] {
        from(place, &everywhere);
    }
    from(
        (0, "g1.check0"),
        &[
            (
                "stage.spec.execution.steps.probe<+stepGroup.identifierPostFix>.steps.prepare",
                "g1.prepare",
            ),
            (
                "execution.steps.probe<+strategy.node.probe.identifierPostFix>.steps.check<+strategy.identifierPostFix>",
                "g1.check0",
            ),
            (
                "execution.steps.probe<+stepGroup.identifierPostFix>.steps.check<+step.identifierPostFix>",
                "g1.check0",
            ),
            ("stepGroup.steps.prepare", "g1.prepare"),
            ("steps.prepare", "g1.prepare"),
            ("steps.ship_1", "ship_1"),
        ],
    );
    from(
        (0, "g1.forget"),
        &[
            ("steps.prepare", "g1.prepare"),
            ("stepGroup.steps.prepare", "g1.prepare"),
            (
                "execution.steps.probe<+strategy.identifierPostFix>.steps.prepare",
                "g1.prepare",
            ),
        ],
    );
    from(
        (0, "tell"),
        &[
            ("execution.rollbackSteps.undo.steps.restore", "restore"),
            (
                "stage.spec.execution.rollbackSteps.undo.steps.restore",
                "restore",
            ),
            ("stepGroup.steps.restore", "restore"),
            ("steps.restore", "restore"),
            ("steps.ask", "ask"),
            ("execution.steps.ask", "ask"),
        ],
    );
}

#[test]
fn statuses_of_loops_are_told_after_them() {
    let table = [
        (
            "<+pipeline.stages.shop.spec.execution.steps.ship.status>",
            "SUCCEEDED",
        ),
        ("<+execution.steps.probe.status>", "SUCCEEDED"),
        ("<+execution.steps.probe_1.currentStatus>", "SUCCEEDED"),
        (
            "<+execution.steps.probe_1.steps.check.status>",
            "error: `execution.steps.probe_1.steps.check.status` is not defined here; check its spelling and that it exists before this point",
        ),
        ("<+strategy.node.ship.currentStatus>", "SUCCESS"),
        ("<+strategy.node.probe.currentStatus>", "SUCCESS"),
        ("<+execution.steps.ship_1.identifierPostFix>", "_1"),
        ("<+execution.steps.ship_1.matrix.axis>", "1"),
        (
            "<+pipeline.stages.shop.spec.execution.steps.ask.issue.\"Customer Name\">",
            "ACME",
        ),
        ("<+execution.steps.ask.spec.headers[\"x-auth\"]>", "t"),
        ("<+execution.steps.ask.spec.headers.get(\"a.b\")>", "dots"),
        ("<+execution.steps.ask.spec.headers[0].key>", "x-auth"),
        ("<+execution.steps.ask.spec.inputVariables.who>", "sam"),
        (
            "<+execution.steps.ask.spec.inputVariables.key>",
            "<+secrets.getValue(\\account.key\\)>",
        ),
        ("<+execution.steps.ask.startTs>", "1000"),
    ];
    for (text, expected) in table {
        for place in [(0, "tell"), (0, "restore")] {
            assert_eq!(evaluate(text, place), expected, "{text}");
        }
    }
}

/// While its own spec is being resolved, a step reads it as it is written (developer.harness.io, *Using HTTP requests in CD
/// pipelines*, "Input variables").
#[test]
fn a_step_reads_its_own_variables() {
    let mut ask = step("ask");
    if let Node::Step(step) = &mut ask {
        step.spec = json!({
            "url": "https://<+spec.inputVariables.host>",
            "inputVariables": [{"name": "host", "type": "String", "value": "<+spec.inputVariables.name>.example.com"},
                {"name": "name", "type": "String", "value": "web"}],
        });
    }
    let plan = plan(vec![vec![stage("shop", vec![ask])]]);
    let (run, node) = (run(&plan), NodeId::new("ask"));
    let mut begun = record("ask", json!({}));
    begun.spec = json!(null);
    let nodes = BTreeMap::from([(node.clone(), begun)]);
    let context = RunContext {
        plan: &plan,
        run: &run,
        nodes: &nodes,
        stage: plan.groups[0].first(),
        node: Some(&node),
    };
    for text in ["<+spec.url>", "<+step.spec.url>"] {
        let found = parse(text).unwrap().evaluate(&context, &Limits::default());
        assert_eq!(found.unwrap(), "https://web.example.com".into(), "{text}");
    }
}
