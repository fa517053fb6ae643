//! Loops, taken apart.

use std::fmt::Write as _;

use proptest::prelude::*;
use slipway_model::{Diagnostic, entity, yaml};

use super::tests::project;
use super::*;
use crate::{Iteration, Node, Snapshot};

fn planned(pipeline: &str) -> Result<Plan, Vec<Diagnostic>> {
    let pipeline = entity::parse("pipeline.yaml", pipeline)?;
    let inputs = yaml::parse("inputs.yaml", "pipeline: {}").unwrap();
    resolve(&Request {
        pipeline: &pipeline,
        inputs: &[&inputs],
        scope: &project(),
        entities: &Snapshot::default(),
        runnable: &|_| true,
        chosen: None,
        trigger: None,
    })
}

fn told(faults: Vec<Diagnostic>) -> String {
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

/// A pipeline with a step that loops.
fn step(strategy: &str) -> String {
    format!(
        "pipeline: {{identifier: p, name: P, variables: [
            {{name: csv, type: String, value: 'a,b'}},
            {{name: json, type: String, value: '{{\"l\": [{{\"n\": \"x\", \"v\": 1}}, {{\"n\": \"y\", \"v\": 2}}]}}'}},
            {{name: three, type: Number, value: 3}}],
          stages: [{{stage: {{identifier: s, name: S, type: Custom, spec: {{execution: {{steps: [
            {{step: {{identifier: w, name: W, type: Wait, spec: {{duration: 10s}}, strategy: {strategy}}}}}]}}}}}}}}]}}"
    )
}

fn shown(node: &Node, depth: usize, out: &mut String) {
    let (name, turn, below): (String, Option<&Iteration>, &[Node]) = match node {
        Node::Step(step) => (
            format!("{} {}", step.identifier, step.name),
            step.iteration.as_ref(),
            &[],
        ),
        Node::Group(group) => (
            format!("{} {}", group.identifier, group.name),
            group.iteration.as_ref(),
            &group.nodes,
        ),
        Node::Parallel(parallel) => (
            format!("{} at most {}", parallel.id, parallel.concurrency),
            None,
            &parallel.branches,
        ),
    };
    let _ = write!(out, "{:depth$}{name}", "");
    if let Some(turn) = turn {
        let _ = write!(out, " {}/{}", turn.index, turn.total);
        for (axis, value) in &turn.matrix {
            let _ = write!(out, " {axis}={value}");
        }
        let more = [("item", &turn.item), ("partition", &turn.partition)];
        for (name, value) in more {
            if let Some(value) = value {
                let _ = write!(out, " {name}={value}");
            }
        }
    }
    out.push('\n');
    below.iter().for_each(|node| shown(node, depth + 2, out));
}

fn steps(strategy: &str) -> String {
    let plan =
        planned(&step(strategy)).unwrap_or_else(|faults| panic!("{strategy}\n{}", told(faults)));
    let mut out = String::new();
    plan.groups[0][0]
        .steps
        .iter()
        .for_each(|node| shown(node, 0, &mut out));
    out
}

#[test]
fn every_form_becomes_turns() {
    insta::assert_snapshot!(steps("{parallelism: 2}"), @r"
    stages.s.spec.execution.steps.w at most 0
      w_0 W_0 0/2
      w_1 W_1 1/2
    ");
    insta::assert_snapshot!(steps("{parallelism: <+pipeline.variables.three>, maxConcurrency: 2}"), @r"
    stages.s.spec.execution.steps.w at most 2
      w_0 W_0 0/3
      w_1 W_1 1/3
      w_2 W_2 2/3
    ");
    insta::assert_snapshot!(steps("{matrix: {a: [x, y], b: [1, 2], exclude: [{a: y, b: 1}], maxConcurrency: 1}}"), @r#"
    stages.s.spec.execution.steps.w at most 1
      w_0 W_0_0 0/3 a="x" b="1"
      w_1 W_0_1 1/3 a="x" b="2"
      w_2 W_1_1 2/3 a="y" b="2"
    "#);
    insta::assert_snapshot!(steps("{matrix: {a: [x, y, z], exclude: [{a: y}], nodeName: run_<+matrix.a>}}"), @r#"
    stages.s.spec.execution.steps.w at most 0
      w_0 run_x 0/2 a="x"
      w_1 run_z 1/2 a="z"
    "#);
    insta::assert_snapshot!(steps("{matrix: {a: '<+pipeline.variables.csv>.split(\",\")', b: ['<+pipeline.name>']}}"), @r#"
    stages.s.spec.execution.steps.w at most 0
      w_0 W_0_0 0/2 a="a" b="P"
      w_1 W_1_0 1/2 a="b" b="P"
    "#);
    insta::assert_snapshot!(steps("{matrix: {a: '<+json.list(\"l\", <+pipeline.variables.json>)>', nodeName: <+matrix.a.n>}}"), @r#"
    stages.s.spec.execution.steps.w at most 0
      w_0 x 0/2 a={"n":"x","v":1}
      w_1 y 1/2 a={"n":"y","v":2}
    "#);
    insta::assert_snapshot!(steps("{repeat: {items: [a, b, c, d, e], partitionSize: 2, maxConcurrency: 1}, onFailure: SkipQueued}"), @r#"
    stages.s.spec.execution.steps.w at most 1
      w_0 W_0 0/3 partition=["a","b"]
      w_1 W_1 1/3 partition=["c","d"]
      w_2 W_2 2/3 partition=["e"]
    "#);
    insta::assert_snapshot!(steps("{repeat: {items: [a, b, c], start: 50, end: 100, unit: Percentage}}"), @r#"
    stages.s.spec.execution.steps.w at most 0
      w_0 W_0 0/1 item="c"
    "#);
    insta::assert_snapshot!(steps("{repeat: {items: [a, b, c], start: 0, end: 1, unit: Count}}"), @r#"
    stages.s.spec.execution.steps.w at most 0
      w_0 W_0 0/1 item="a"
    "#);
    insta::assert_snapshot!(steps("{repeat: {times: 3, maxConcurrency: 2}, onFailure: SkipQueued}"), @r"
    stages.s.spec.execution.steps.w at most 2
      w_0 W_0 0/3
      w_1 W_1 1/3
      w_2 W_2 2/3
    ");
    insta::assert_snapshot!(steps("{matrix: {weight: [10, 50], nodeName: 'left_<+(100 - <+matrix.weight>)>'}}"), @r#"
    stages.s.spec.execution.steps.w at most 0
      w_0 left_90 0/2 weight="10"
      w_1 left_50 1/2 weight="50"
    "#);
    insta::assert_snapshot!(steps("{repeat: {items: []}}"), @"stages.s.spec.execution.steps.w at most 0");
    insta::assert_snapshot!(steps("{when: '<+pipeline.name> == \"Q\"', matrix: {a: [x]}}"), @"stages.s.spec.execution.steps.w at most 0");
}

#[test]
fn groups_and_stages_loop_too_and_loops_nest() {
    let pipeline = "pipeline: {identifier: p, name: P, stages: [
        {stage: {identifier: s, name: S, type: Custom, timeout: '<+matrix.t>m',
          strategy: {matrix: {t: [1, 2, 3], maxConcurrency: 2}, onFailure: SkipQueued},
          variables: [{name: v, type: String, value: <+matrix.t>}],
          spec: {execution: {steps: [
            {stepGroup: {identifier: g, name: G, strategy: {repeat: {items: [a, b]}}, steps: [
              {step: {identifier: w, name: W, type: Wait, timeout: '<+stage.matrix.t>h', spec: {duration: 10s},
                strategy: {matrix: {t: ['<+repeat.item>-<+stage.matrix.t>-<+strategy.identifierPostFix>']}}}}]}}]}}}}]}";
    let plan = planned(pipeline).map_err(told).unwrap();
    let mut out = String::new();
    for (number, group) in plan.groups.iter().enumerate() {
        for stage in group {
            let turn = stage.iteration.as_ref().unwrap();
            let _ = writeln!(
                out,
                "{number}: {} {} {:?} {}/{} at most {}",
                stage.id, stage.name, stage.timeout, turn.index, turn.total, turn.concurrency
            );
        }
    }
    shown(&plan.groups[0][1].steps[0], 0, &mut out);
    insta::assert_snapshot!(out, @r#"
    0: s_0 S_0 60s 0/3 at most 2
    0: s_1 S_1 120s 1/3 at most 2
    1: s_2 S_2 180s 2/3 at most 2
    stages.s_1.spec.execution.steps.g at most 0
      g_0 G_0 0/2 item="a"
        stages.s_1.spec.execution.steps.g_0.steps.w at most 0
          w_0 W_0 0/1 t="a-2-_0"
      g_1 G_1 1/2 item="b"
        stages.s_1.spec.execution.steps.g_1.steps.w at most 0
          w_0 W_0 0/1 t="b-2-_1"
    "#);
    let Node::Parallel(groups) = &plan.groups[1][0].steps[0] else {
        panic!("a loop is a block")
    };
    let Node::Group(group) = &groups.branches[1] else {
        panic!("of groups")
    };
    assert_eq!(group.id.as_str(), "stages.s_2.spec.execution.steps.g_1");
    let Node::Parallel(steps) = &group.nodes[0] else {
        panic!("of steps")
    };
    let Node::Step(step) = &steps.branches[0] else {
        panic!("one")
    };
    assert_eq!(
        step.id.as_str(),
        "stages.s_2.spec.execution.steps.g_1.steps.w_0"
    );
    assert_eq!(step.timeout.as_secs(), 3 * 3600);
}

/// Y10, Y11: loops out of bounds are refused before they are taken apart.
#[test]
fn y10_y11_loops_out_of_bounds_are_refused() {
    let long: String = (0..300).map(|n| format!("v{n},")).collect();
    let matrix = format!("{{matrix: {{a: [{long}], b: [{long}]}}}}");
    let one = format!("{{matrix: {{a: [{long}]}}}}");
    let cases = [
        (matrix.as_str(), "90000 turns; a loop has at most 256"),
        (one.as_str(), "300 turns; a loop has at most 256"),
        (
            "{repeat: {times: 1000000000}}",
            "1000000000 turns; a loop has at most 256",
        ),
        (
            "{parallelism: 2147483648}",
            "2147483648 turns; a loop has at most 256",
        ),
        (
            "{parallelism: -1}",
            "`-1` is not accepted here; expected a whole number of at least 0",
        ),
        ("{parallelism: NaN}", "`NaN` is not accepted here"),
        (
            "{parallelism: '<+pipeline.name>'}",
            "`P` is no whole number of at least 0",
        ),
        (
            "{repeat: {start: 0, end: 18446744073709551615}}",
            "is not accepted here",
        ),
        ("{matrix: {maxConcurrency: 2}}", "`matrix` has no axes"),
        (
            "{matrix: {a: <+pipeline.variables.csv>}}",
            "a text stands where a list is expected",
        ),
        (
            "{matrix: {a: <+pipeline.variables.list>}}",
            "the looping `strategy` of step `w`: what it goes over is not known: `<+pipeline.variables.list>`",
        ),
        (
            "{repeat: {items: ['<+secrets.getValue(\"key\")>']}}",
            "secrets cannot be looped over; loop over their names",
        ),
        (
            "{matrix: {a: [{k: 'x<+secrets.getValue(\"key\")>'}]}}",
            "secrets cannot be looped over; loop over their names",
        ),
        (
            "{repeat: {items: [x], maxConcurrency: -1}}",
            "`-1` is not accepted here; expected a whole number of at least 0",
        ),
        (
            "{repeat: {items: {a: x}}}",
            "a mapping stands where a list is expected",
        ),
        (
            "{matrix: {a: [x], nodeName: <+matrix.b>}}",
            "`matrix.b` is not defined",
        ),
    ];
    for (strategy, expected) in cases {
        let found = planned(&step(strategy)).map_or_else(told, |_| String::new());
        assert!(found.contains(expected), "{strategy}\n{found}");
    }
    // Loops inside of loops multiply.
    let inner = "{step: {identifier: w, name: W, type: Wait, spec: {duration: 10s}, strategy: {parallelism: 250}}}";
    let nested = step("{parallelism: 1}").replace(
        "{step: {identifier: w",
        &format!("{{stepGroup: {{identifier: g, name: G, strategy: {{parallelism: 250}}, steps: [{inner}]}}}}, {{step: {{identifier: w"),
    );
    let found = told(planned(&nested).unwrap_err());
    assert!(
        found.contains("with its loops the pipeline has more than 5000 steps"),
        "{found}"
    );
    let stage = "stage: {identifier: sN, name: S, type: Custom, strategy: {parallelism: 200}, spec: {execution: {steps: []}}}";
    let stages: String = (0..3)
        .map(|n| format!("{{{}}},", stage.replace("sN", &format!("s{n}"))))
        .collect();
    let found = told(
        planned(&format!(
            "pipeline: {{identifier: p, name: P, stages: [{stages}]}}"
        ))
        .unwrap_err(),
    );
    assert!(
        found.contains("with its loops the pipeline has more than 256 stages"),
        "{found}"
    );
}

#[test]
fn odd_loops_are_taken_as_they_are() {
    insta::assert_snapshot!(steps("{repeat: {items: [x, y], maxConcurrency: 0}}"), @r#"
    stages.s.spec.execution.steps.w at most 0
      w_0 W_0 0/2 item="x"
      w_1 W_1 1/2 item="y"
    "#);
    insta::assert_snapshot!(steps("{repeat: {items: [x, y], maxConcurrency: 2147483648}, onFailure: SkipQueued}"), @r#"
    stages.s.spec.execution.steps.w at most 2
      w_0 W_0 0/2 item="x"
      w_1 W_1 1/2 item="y"
    "#);
    insta::assert_snapshot!(steps("{repeat: {items: [x, y], maxConcurrency: '<+pipeline.variables.three>'}}"), @r#"
    stages.s.spec.execution.steps.w at most 2
      w_0 W_0 0/2 item="x"
      w_1 W_1 1/2 item="y"
    "#);
    insta::assert_snapshot!(steps("{matrix: {a: [x, y], exclude: [{b: x}, {a: y, b: z}, {}]}}"), @r#"
    stages.s.spec.execution.steps.w at most 0
      w_0 W_0 0/2 a="x"
      w_1 W_1 1/2 a="y"
    "#);
    insta::assert_snapshot!(steps("{matrix: {a: [x, y], nodeName: same}}"), @r#"
    stages.s.spec.execution.steps.w at most 0
      w_0 same 0/2 a="x"
      w_1 same 1/2 a="y"
    "#);
    insta::assert_snapshot!(steps("{repeat: {items: '<+json.list(\"l\", <+pipeline.variables.json>)>', nodeName: 'on <+repeat.item.n>'}}"), @r#"
    stages.s.spec.execution.steps.w at most 0
      w_0 on x 0/2 item={"n":"x","v":1}
      w_1 on y 1/2 item={"n":"y","v":2}
    "#);
    insta::assert_snapshot!(steps("{matrix: {a: []}}"), @"stages.s.spec.execution.steps.w at most 0");
}

#[test]
fn large_steps_in_loops_are_bounded() {
    let script = "x".repeat(100_000);
    let large = format!(
        "type: ShellScript, spec: {{shell: Bash, source: {{type: Inline, spec: {{script: {script}}}}}}}"
    );
    let text = step("{parallelism: 250}").replace("type: Wait, spec: {duration: 10s}", &large);
    let found = told(planned(&text).unwrap_err());
    assert!(
        found.contains("together have more than 16777216 bytes of text"),
        "{found}"
    );
}

#[test]
fn the_same_fault_of_every_turn_is_told_once() {
    let text = step("{parallelism: 50}")
        .replace("duration: 10s}", "duration: 10s}, timeout: <+nothing.here>");
    let faults = planned(&text).unwrap_err();
    assert_eq!(faults.len(), 1, "{}", told(faults));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_matrix_has_the_product_of_its_axes_less_the_excluded(a in 1..8usize, b in 1..8usize, out in 0..8usize) {
        let list = |n: usize| (0..n).map(|n| format!("v{n}")).collect::<Vec<_>>().join(",");
        let strategy = format!("{{matrix: {{a: [{}], b: [{}], exclude: [{{a: v{out}}}]}}}}", list(a), list(b));
        let plan = planned(&step(&strategy)).map_err(told).unwrap();
        let left = if out < a { a - 1 } else { a };
        let turns = match plan.groups[0][0].steps.as_slice() {
            [Node::Parallel(parallel)] => parallel.branches.len(),
            _ => 0,
        };
        prop_assert_eq!(turns, left * b);
    }

    #[test]
    fn parts_by_percent_leave_nothing_out(count in 0..40usize, cut in 0..101u32) {
        let items = (0..count).map(|n| format!("v{n}")).collect::<Vec<_>>().join(",");
        let turns = |start: u32, end: u32| {
            let strategy = format!("{{repeat: {{items: [{items}], start: {start}, end: {end}, unit: Percentage}}}}");
            match planned(&step(&strategy)).map_err(told).unwrap().groups[0][0].steps.as_slice() {
                [Node::Parallel(parallel)] => parallel.branches.len(),
                _ => 0,
            }
        };
        prop_assert_eq!(turns(0, cut) + turns(cut, 100), count);
    }

    #[test]
    fn no_strategy_breaks_the_planner(strategy in "\\{(matrix|repeat|parallelism|when): (\\{(a|items|times|start|end|partitionSize|unit|exclude): [\\PC]{0,10}\\}|[\\PC]{0,10})\\}") {
        let _ = planned(&step(&strategy));
    }
}

#[test]
fn loops_inside_of_loops_name_those_around() {
    let plan = planned(
        "pipeline: {identifier: p, name: P, stages: [{stage: {identifier: s, name: S, type: Custom,
          strategy: {matrix: {zone: [{name: eu, hosts: [a, b]}, {name: us, hosts: [c]}]}},
          spec: {execution: {steps: [{stepGroup: {identifier: g, name: G, strategy: {parallelism: 2}, steps: [
            {step: {identifier: w, name: W, type: Wait, spec: {duration: 10s}, strategy: {repeat: {
              items: <+strategy.node.s.matrix.zone.hosts>,
              nodeName: <+strategy.node.s.matrix.zone.name>/<+strategy.node.g.iteration>/<+strategy.node.w.repeat.item>}}}}]}}]}}}}]}",
    )
    .unwrap_or_else(|faults| panic!("{}", told(faults)));
    let mut out = String::new();
    for stage in plan.groups.iter().flatten() {
        stage.steps.iter().for_each(|node| shown(node, 0, &mut out));
    }
    insta::assert_snapshot!(out, @r#"
    stages.s_0.spec.execution.steps.g at most 0
      g_0 G_0 0/2
        stages.s_0.spec.execution.steps.g_0.steps.w at most 0
          w_0 eu/0/a 0/2 item="a"
          w_1 eu/0/b 1/2 item="b"
      g_1 G_1 1/2
        stages.s_0.spec.execution.steps.g_1.steps.w at most 0
          w_0 eu/1/a 0/2 item="a"
          w_1 eu/1/b 1/2 item="b"
    stages.s_1.spec.execution.steps.g at most 0
      g_0 G_0 0/2
        stages.s_1.spec.execution.steps.g_0.steps.w at most 0
          w_0 us/0/c 0/1 item="c"
      g_1 G_1 1/2
        stages.s_1.spec.execution.steps.g_1.steps.w at most 0
          w_0 us/1/c 0/1 item="c"
    "#);
}
