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
fn stages_that_loop_end_a_part_and_wait_in_waves() {
    let stage = |id: &str, strategy: &str, spec: &str| {
        format!(
            "{{stage: {{identifier: {id}, name: {id}, type: Custom{strategy}, spec: {{execution: {{steps: [{{parallel: [
              {{step: {{identifier: x, name: X, type: Wait, spec: {{duration: {spec}}}}}}},
              {{step: {{identifier: y, name: Y, type: Wait, spec: {{duration: 1s}}}}}}]}}]}}}}}}}}"
        )
    };
    let list = "'<+pipeline.stages.t.output.x>'";
    let waves = format!(
        ", strategy: {{matrix: {{a: {list}, maxConcurrency: 2, nodeName: 'for <+matrix.a>'}}, onFailure: SkipQueued}}"
    );
    let all = format!(", strategy: {{repeat: {{items: {list}}}}}");
    let stages = [
        stage("t", "", "1s"),
        format!(
            "{{parallel: [{}, {}]}}",
            stage("s", &waves, "'<+matrix.a>s'"),
            stage("u", "", "1s")
        ),
        stage("v", "", "1s"),
        stage("w", &all, "1s"),
    ];
    let pipeline = format!(
        "pipeline: {{identifier: web, name: P, stages: [{}]}}",
        stages.join(", ")
    );
    let plan = plan(&pipeline).unwrap();
    assert!(plan.has_run_loops());
    assert_eq!(plan.parts(), [0..1, 1..3, 3..4]);
    let brought = Brought(BTreeMap::from([(
        "pipeline.stages.t.output.x",
        serde_json::json!(["1", "2", "3"]),
    )]));
    let each = plan.groups[1][0].each.as_ref().expect("a loop");
    let found = turns(each, &brought).unwrap();
    let unrolled = plan.unrolled(&|known| (known.as_str() == "stages.s").then(|| found.clone()));
    insta::assert_snapshot!(text(&unrolled), @r#"
    pipeline web "P" (at most 30d)
      stage t "t": Custom (at most 30d)
        steps
          side by side
            step x "X": Wait (at most 10m)
              duration = "1s"
            step y "Y": Wait (at most 10m)
              duration = "1s"
      side by side
        2 turns of s at a time
        stage s_0 "for 1": Custom (at most 30d)
          turn 1 of 3 of s, a = "1"
          steps
            side by side
              step x "X": Wait (at most 10m)
                duration = "1s"
              step y "Y": Wait (at most 10m)
                duration = "1s"
        stage s_1 "for 2": Custom (at most 30d)
          turn 2 of 3 of s, a = "2"
          steps
            side by side
              step x "X": Wait (at most 10m)
                duration = "2s"
              step y "Y": Wait (at most 10m)
                duration = "1s"
        stage u "u": Custom (at most 30d)
          steps
            side by side
              step x "X": Wait (at most 10m)
                duration = "1s"
              step y "Y": Wait (at most 10m)
                duration = "1s"
      stage s_2 "for 3": Custom (at most 30d)
        turn 3 of 3 of s, a = "3"
        steps
          side by side
            step x "X": Wait (at most 10m)
              duration = "3s"
            step y "Y": Wait (at most 10m)
              duration = "1s"
      stage v "v": Custom (at most 30d)
        steps
          side by side
            step x "X": Wait (at most 10m)
              duration = "1s"
            step y "Y": Wait (at most 10m)
              duration = "1s"
      stage w "w": Custom (at most 30d)
        for each turn, known when it begins, of {"repeat":{"items":"<+pipeline.stages.t.output.x>"}}
        steps
          side by side
            step x "X": Wait (at most 10m)
              duration = "1s"
            step y "Y": Wait (at most 10m)
              duration = "1s"
    "#);
    assert_eq!(
        unrolled.parts().len(),
        2,
        "what has begun is no loop any more"
    );
    let stage = &plan.groups[1][0];
    assert_eq!(plan.check_stage_turns(stage, 252), Ok(()));
    insta::assert_snapshot!(plan.check_stage_turns(stage, 253).unwrap_err(), @"with 253 turns the run has more than 256 stages");
}

#[test]
fn what_a_stage_deploys_is_known_before_the_run() {
    let pipeline = "pipeline: {identifier: web, name: P, stages: [{stage: {identifier: s, name: S, type: Deployment,
      strategy: {matrix: {svc: '<+pipeline.stages.t.output.x>'}}, spec: {deploymentType: ECS, service: {serviceRef: '<+matrix.svc>'},
      environment: {environmentRef: prod, infrastructureDefinitions: [{identifier: '<+matrix.svc>'}]}, execution: {steps: []}}}}]}";
    insta::assert_snapshot!(faults(plan(pipeline)), @"
    pipeline.yaml:3:84: pipeline.stages[0].stage.spec.environment.infrastructureDefinitions[0].identifier: this must be known before the run begins: `<+matrix.svc>` cannot be evaluated: `matrix.svc` is not defined here; check its spelling and that it exists before this point
    pipeline.yaml:3:70: pipeline.stages[0].stage.spec.environment.infrastructureDefinitions: no infrastructure is named in `infrastructureDefinitions`
    pipeline.yaml:2:117: pipeline.stages[0].stage.spec.service.serviceRef: this must be known before the run begins: `<+matrix.svc>` cannot be evaluated: `matrix.svc` is not defined here; check its spelling and that it exists before this point
    ");
}

#[test]
fn a_turn_reads_the_inputs_that_it_was_given() {
    let pipeline = "pipeline: {identifier: web, name: P, stages: [{stage: {identifier: s, name: S, type: Custom,
      strategy: {repeat: {items: '<+pipeline.stages.t.output.x>'}}, variables: [{name: v, type: String, value: '<+input>.executionInput()'}],
      spec: {execution: {steps: [{step: {identifier: x, name: X, type: Wait, spec: {duration: 1s}}}]}}}}]}";
    let plan = plan(pipeline).unwrap();
    let each = plan.groups[0][0].each.as_ref().expect("a loop");
    let list = BTreeMap::from([("pipeline.stages.t.output.x", serde_json::json!(["a", "b"]))]);
    let found = turns(each, &Brought(list)).unwrap();
    let unrolled = plan.unrolled(&|_| Some(found.clone()));
    let value = &unrolled.groups[0][1].variables[0].value;
    assert_eq!(
        value.as_str(),
        Some("<+pipeline.stages.s_1.spec.execution.steps.__inputs.output.variables.v>")
    );
    assert_eq!(unrolled.groups[0][1].steps.len(), 2);
}

#[test]
fn a_group_in_a_turn_reads_the_inputs_that_it_was_given_there() {
    let pipeline = "pipeline: {identifier: web, name: P, stages: [{stage: {identifier: s, name: S, type: Custom,
      strategy: {repeat: {items: '<+pipeline.stages.t.output.x>'}}, spec: {execution: {steps: [{stepGroup: {identifier: g, name: G,
      strategy: {repeat: {items: '<+pipeline.stages.t.output.y>'}}, variables: [{name: v, type: String, value: '<+input>.executionInput()'}],
      steps: [{step: {identifier: x, name: X, type: Wait, spec: {duration: 1s}}}]}}]}}}}]}";
    let plan = plan(pipeline).unwrap();
    let each = plan.groups[0][0].each.as_ref().expect("a loop");
    let list = BTreeMap::from([("pipeline.stages.t.output.x", serde_json::json!(["a", "b"]))]);
    let found = turns(each, &Brought(list)).unwrap();
    let unrolled = plan.unrolled(&|_| Some(found.clone()));
    let Node::Parallel(block) = &unrolled.groups[0][1].steps[0] else {
        panic!("a loop");
    };
    let Node::Group(group) = &block.branches[1] else {
        panic!("a group");
    };
    assert_eq!(
        group.variables[0].value.as_str(),
        Some("<+pipeline.stages.s_1.spec.execution.steps.g_1.steps.__inputs.output.variables.v>")
    );
    assert_eq!(
        id_of(&group.nodes[0]),
        "stages.s_1.spec.execution.steps.g_1.steps.__inputs"
    );
}

fn id_of(node: &Node) -> &str {
    match node {
        Node::Step(step) => step.id.as_str(),
        Node::Group(group) => group.id.as_str(),
        Node::Parallel(parallel) => parallel.id.as_str(),
    }
}
