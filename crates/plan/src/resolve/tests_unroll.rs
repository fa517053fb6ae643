//! Loops over what the run brings forth.

use std::collections::BTreeMap;

use slipway_expr::{Context, Segment, Value};

use super::tests::{faults, plan};
use crate::unroll::turns;
use crate::{Node, text};

/// What a run has brought forth.
struct Brought(BTreeMap<&'static str, serde_json::Value>);

impl Context for Brought {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        let path: Vec<_> = path.iter().filter_map(Segment::key).collect();
        self.0.get(path.join(".").as_str()).map(Value::from_json)
    }
}

fn looping(strategy: &str) -> String {
    format!(
        "pipeline: {{identifier: web, name: P, stages: [{{stage: {{identifier: s, name: S, type: Custom, spec: {{execution: {{steps: [
          {{step: {{identifier: x, name: X, type: Wait, spec: {{duration: 1s}}}}}},
          {{stepGroup: {{identifier: g, name: G, strategy: {strategy}, steps: [
            {{step: {{identifier: y, name: Y, type: Wait, spec: {{duration: '<+matrix.time>'}}}}}},
            {{step: {{identifier: z, name: Z, type: Wait, spec: {{duration: 1s}}, strategy: {{repeat: {{items: '<+steps.x.output.list>'}}}}}}}}]}}}}]}}}}}}}}]}}"
    )
}

#[test]
fn a_loop_is_taken_apart_when_it_begins() {
    let plan = plan(&looping(
        "{matrix: {time: '<+steps.x.output.times>', maxConcurrency: 1, nodeName: '<+matrix.time> long'}}",
    ));
    let plan = plan.unwrap();
    assert!(plan.has_run_loops());
    let [_, Node::Parallel(block)] = plan.groups[0][0].steps.as_slice() else {
        panic!("a block");
    };
    let brought = Brought(BTreeMap::from([(
        "steps.x.output.times",
        serde_json::json!(["1s", "2s"]),
    )]));
    let each = block.each.as_ref().expect("a loop");
    let found = turns(each, &brought).unwrap();
    let id = block.id.clone();
    let unrolled = plan.unrolled(&|known| (*known == id).then(|| found.clone()));
    insta::assert_snapshot!(text(&unrolled), @r#"
    pipeline web "P" (at most 30d)
      stage s "S": Custom (at most 30d)
        steps
          step x "X": Wait (at most 10m)
            duration = "1s"
          for each turn, known when it begins, of {"matrix":{"time":"<+steps.x.output.times>","maxConcurrency":1,"nodeName":"<+matrix.time> long"}}
            group g_0 "1s long"
              turn 1 of 2 of g, time = "1s"
              step y "Y": Wait (at most 10m)
                duration = "1s"
              for each turn, known when it begins, of {"repeat":{"items":"<+steps.x.output.list>"}}
                step z "Z": Wait (at most 10m)
                  duration = "1s"
            group g_1 "2s long"
              turn 2 of 2 of g, time = "2s"
              step y "Y": Wait (at most 10m)
                duration = "2s"
              for each turn, known when it begins, of {"repeat":{"items":"<+steps.x.output.list>"}}
                step z "Z": Wait (at most 10m)
                  duration = "1s"
    "#);
    let steps: Vec<String> = ["y", "z"]
        .iter()
        .map(|step| format!("stages.s.spec.execution.steps.g_1.steps.{step}"))
        .filter(|id| {
            unrolled
                .step(&slipway_model::id::NodeId::new(id.as_str()))
                .is_some()
        })
        .collect();
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert!(plan.check_turns(block, 10_000_000).is_err());
    let wrong = turns(each, &Brought(BTreeMap::new()));
    insta::assert_snapshot!(wrong.unwrap_err(), @"what it goes over is not known: `<+steps.x.output.times>` cannot be evaluated: `steps.x.output.times` is not defined here; check its spelling and that it exists before this point");
}

#[test]
fn stages_loop_over_what_is_known() {
    let pipeline = "pipeline: {identifier: web, name: P, stages: [{stage: {identifier: s, name: S, type: Custom,
      strategy: {matrix: {a: '<+pipeline.stages.t.output.x>'}}, spec: {execution: {steps: []}}}}]}";
    insta::assert_snapshot!(faults(plan(pipeline)), @"pipeline.yaml:2:30: pipeline.stages[0].stage.strategy.matrix.a: the looping `strategy` of stage `s`: what it goes over must be known before the run begins, only steps and step groups loop over what the run brings forth: `<+pipeline.stages.t.output.x>` cannot be evaluated: `pipeline.stages.t.output.x` is not defined here; check its spelling and that it exists before this point");
}
