//! Barriers that nobody passes.

use std::fmt::Write;

use super::tests::{entities, faults, plan_with};

fn gate(id: &str, name: &str, more: &str) -> String {
    format!(
        "{{step: {{identifier: {id}, name: N, type: Barrier, {more} spec: {{barrierRef: {name}}}}}}}"
    )
}

fn group(id: &str, more: &str, steps: &[String]) -> String {
    let steps = steps.join(", ");
    format!("{{stepGroup: {{identifier: {id}, name: N, {more} steps: [{steps}]}}}}")
}

fn beside(branches: &[String]) -> String {
    format!("{{parallel: [{}]}}", branches.join(", "))
}

fn stage(id: &str, more: &str, steps: &[String]) -> String {
    let steps = steps.join(", ");
    format!(
        "{{stage: {{identifier: {id}, name: N, type: Custom, {more} spec: {{execution: {{steps: [{steps}]}}}}}}}}"
    )
}

/// What is said of a pipeline with the barriers `a`, `b` and `c`: its faults, or its warnings.
fn told(stages: &[String]) -> String {
    told_of(stages, &entities())
}

fn told_of(stages: &[String], entities: &[String]) -> String {
    let barriers = ["a", "b", "c"].map(|id| format!("{{identifier: {id}, name: N}}"));
    let pipeline = format!(
        "pipeline: {{identifier: web, name: P, flowControl: {{barriers: [{}]}}, stages: [\n{}]}}",
        barriers.join(", "),
        stages.join(",\n")
    );
    match plan_with(&pipeline, entities, "pipeline: {identifier: web}") {
        Ok(plan) => plan
            .warnings
            .iter()
            .fold(String::new(), |mut all, warning| {
                let _ = writeln!(all, "warning: {warning}");
                all
            }),
        faulty => faults(faulty),
    }
}

fn one(id: &str) -> Vec<String> {
    vec![gate(id, "a", "")]
}

#[test]
fn places_that_are_reached_together_are_let_be() {
    let loops = "strategy: {repeat: {times: 3}},";
    let all = "strategy: {repeat: {times: 3, maxConcurrency: 3}},";
    for stages in [
        // A barrier with one place is passed at once.
        vec![
            stage("s", "", &one("x")),
            stage("t", "", &[gate("x", "b", "")]),
        ],
        vec![beside(&[
            stage("s", "", &one("x")),
            stage("t", "", &one("x")),
        ])],
        vec![stage(
            "s",
            "",
            &[beside(&[gate("x", "a", ""), group("g", "", &one("y"))])],
        )],
        vec![beside(&[
            stage("s", loops, &one("x")),
            stage("t", all, &one("y")),
        ])],
        vec![stage(
            "s",
            "",
            &[group("g", loops, &one("x")), gate("y", "b", "")],
        )],
        // In the same order.
        vec![beside(&[
            stage(
                "s",
                "",
                &[gate("x", "a", ""), gate("y", "b", ""), gate("z", "c", "")],
            ),
            stage("t", "", &[gate("x", "a", ""), gate("z", "c", "")]),
        ])],
    ] {
        assert_eq!(told(&stages), "");
    }
}

fn queue(id: &str, key: &str, scope: &str, more: &str) -> String {
    format!(
        "{{step: {{identifier: {id}, name: N, type: Queue, {more} spec: {{key: '{key}', scope: {scope}}}}}}}"
    )
}

/// One stage has the key and waits for the other, which waits for the key.
#[test]
fn places_behind_one_queue_are_refused() {
    let taken = |scope: &str, more: &str| queue("q", "line", scope, more);
    let meet = |first: Vec<String>, then: Vec<String>| {
        told(&[beside(&[stage("s", "", &first), stage("t", "", &then)])])
    };
    let behind = |scope: &str| vec![taken(scope, ""), gate("x", "a", "")];
    let sure = "barrier `a` cannot be passed: stages.s.spec.execution.steps.x waits there for \
                stages.t.spec.execution.steps.x, and both stand behind key `line` \
                (stages.s.spec.execution.steps.q and stages.t.spec.execution.steps.q), which a stage has to itself until it \
                ends; take the key after the barrier, or in a stage before them with `scope: Pipeline`";
    let told_sure = meet(behind("Stage"), behind("Stage"));
    assert!(told_sure.starts_with("pipeline.yaml:2:"), "{told_sure}");
    assert!(told_sure.contains(sure), "{told_sure}");
    // In a group, and in a branch that is over before.
    let deep = vec![
        group(
            "g",
            "",
            &[beside(&[
                taken("Stage", ""),
                queue("r", "other", "Stage", ""),
            ])],
        ),
        gate("x", "a", ""),
    ];
    let told_deep = meet(behind("Stage"), deep);
    assert!(
        told_deep.contains("`a` cannot be passed: stages.s"),
        "{told_deep}"
    );
    assert!(!told_deep.contains("`other`"), "{told_deep}");
    // Which of them comes first decides, or a condition.
    for mixed in [
        meet(behind("Stage"), behind("Pipeline")),
        meet(behind("Pipeline"), behind("Stage")),
    ] {
        let expected = "warning: pipeline.stages[0].parallel[1]";
        assert!(
            mixed.starts_with(expected) && mixed.contains("by which of them comes first"),
            "{mixed}"
        );
    }
    let asked = "when: {stageStatus: Success, condition: <+pipeline.name> == \"P\"},";
    let conditional = vec![taken("Stage", asked), gate("x", "a", "")];
    let told_maybe = meet(behind("Stage"), conditional);
    assert!(
        told_maybe.starts_with("warning: ")
            && told_maybe.contains("unless a condition leaves somebody out"),
        "{told_maybe}"
    );
    // Turns are stages.
    let turns = told(&[stage(
        "s",
        "strategy: {repeat: {times: 2}},",
        &behind("Stage"),
    )]);
    assert!(turns.contains("both stand behind key `line`"), "{turns}");
    // The run has it, the keys differ, or the key comes after.
    for (first, then) in [
        (behind("Pipeline"), behind("Pipeline")),
        (
            behind("Stage"),
            vec![queue("q", "other", "Stage", ""), gate("x", "a", "")],
        ),
        (
            behind("Stage"),
            vec![gate("x", "a", ""), taken("Stage", "")],
        ),
        (
            behind("Stage"),
            vec![beside(&[taken("Stage", ""), gate("x", "a", "")])],
        ),
        (
            behind("Stage"),
            vec![
                queue("q", "<+pipeline.name>", "Stage", ""),
                gate("x", "a", ""),
            ],
        ),
        (
            behind("Stage"),
            vec![taken("Stage", ""), gate("x", "b", "")],
        ),
    ] {
        assert_eq!(meet(first, then), "");
    }
}

#[test]
fn places_that_follow_one_another_are_refused() {
    insta::assert_snapshot!(told(&[
        stage("s", "", &[gate("x", "a", ""), group("g", "", &one("y"))]),
    ]), @"pipeline.yaml:2:262: pipeline.stages[0].stage.spec.execution.steps[1].stepGroup.steps[0].step.spec.barrierRef: barrier `a` cannot be passed: stages.s.spec.execution.steps.x waits there for stages.s.spec.execution.steps.g.steps.y, which comes after it; let them run side by side, or give one of them a barrier of its own");
    insta::assert_snapshot!(told(&[
        beside(&[stage("s", "", &one("x")), stage("t", "", &one("x"))]),
        stage("u", "when: {pipelineStatus: All, condition: <+pipeline.name> == \"P\"},", &one("y")),
    ]), @"pipeline.yaml:3:207: pipeline.stages[1].stage.spec.execution.steps[0].step.spec.barrierRef: barrier `a` cannot be passed: stages.s.spec.execution.steps.x waits there for stages.u.spec.execution.steps.y, which comes after it; let them run side by side, or give one of them a barrier of its own");
    // Every turn says the same.
    insta::assert_snapshot!(told(&[
        stage("s", "strategy: {repeat: {times: 2}},", &[gate("x", "a", ""), gate("y", "a", "")]),
    ]), @"pipeline.yaml:2:247: pipeline.stages[0].stage.spec.execution.steps[1].step.spec.barrierRef: barrier `a` cannot be passed: stages.s_0.spec.execution.steps.x waits there for stages.s_0.spec.execution.steps.y, which comes after it; let them run side by side, or give one of them a barrier of its own");
    // Whoever a condition leaves out waits for nobody.
    insta::assert_snapshot!(told(&[
        stage("s", "when: {pipelineStatus: Failure},", &one("x")),
        stage("t", "", &[group("g", "when: {stageStatus: Success, condition: <+pipeline.name> == \"P\"},", &one("y")), gate("z", "a", "")]),
    ]), @"
    warning: pipeline.stages[1].stage.spec.execution.steps[1].step.spec.barrierRef: barrier `a` cannot be passed unless a condition leaves somebody out: stages.t.spec.execution.steps.g.steps.y waits there for stages.t.spec.execution.steps.z, which comes after it; let them run side by side, or give one of them a barrier of its own
    warning: pipeline.stages[1].stage.spec.execution.steps[1].step.spec.barrierRef: barrier `a` cannot be passed unless a condition leaves somebody out: stages.s.spec.execution.steps.x waits there for stages.t.spec.execution.steps.z, which comes after it; let them run side by side, or give one of them a barrier of its own
    ");
}

#[test]
fn turns_that_wait_for_their_time_are_waited_for_in_vain() {
    insta::assert_snapshot!(told(&[
        stage("s", "", &[group("g", "strategy: {matrix: {of: [1, 2, 3], maxConcurrency: 2}},", &one("x"))]),
    ]), @"pipeline.yaml:2:244: pipeline.stages[0].stage.spec.execution.steps[0].stepGroup.steps[0].step.spec.barrierRef: barrier `a` cannot be passed: stages.s.spec.execution.steps.g_0.steps.x waits there for every turn of `g`, and `maxConcurrency` lets 2 of 3 run at once; leave `maxConcurrency` out, or wait outside of the loop");
    insta::assert_snapshot!(told(&[
        beside(&[stage("s", "strategy: {parallelism: 3, maxConcurrency: 1},", &one("x")), stage("t", "", &one("y"))]),
    ]), @"pipeline.yaml:2:201: pipeline.stages[0].parallel[0].stage.spec.execution.steps[0].step.spec.barrierRef: barrier `a` cannot be passed: stages.s_0.spec.execution.steps.x waits there for every turn of `s`, and `maxConcurrency` lets 1 of 3 run at once; leave `maxConcurrency` out, or wait outside of the loop");
    insta::assert_snapshot!(told(&[
        stage("s", "strategy: {repeat: {times: 2, maxConcurrency: 1}, onFailure: SkipQueued},", &one("x")),
    ]), @"pipeline.yaml:2:216: pipeline.stages[0].stage.spec.execution.steps[0].step.spec.barrierRef: barrier `a` cannot be passed: stages.s_0.spec.execution.steps.x waits there for stages.s_1.spec.execution.steps.x, which comes after it; let them run side by side, or give one of them a barrier of its own");
    // How many turns there are, the run tells; whom a condition leaves out, too.
    insta::assert_snapshot!(told(&[
        stage("s", "", &[group("g", "strategy: {repeat: {items: <+steps.say.output.outputVariables.all>, maxConcurrency: 2}},", &one("x"))]),
        stage("t", "", &[group("g", "strategy: {repeat: {times: 3, maxConcurrency: 2}},", &[gate("x", "b", "when: {stageStatus: Success, condition: <+repeat.index> == 0},")])]),
    ]), @"
    warning: pipeline.stages[0].stage.spec.execution.steps[0].stepGroup.steps[0].step.spec.barrierRef: barrier `a` cannot be passed if `g` has more turns than its `maxConcurrency` lets run at once: stages.s.spec.execution.steps.g.steps.x waits there for every turn; leave `maxConcurrency` out, or wait outside of the loop
    warning: pipeline.stages[1].stage.spec.execution.steps[0].stepGroup.steps[0].step.spec.barrierRef: barrier `b` cannot be passed unless a condition leaves somebody out: stages.t.spec.execution.steps.g_0.steps.x waits there for every turn of `g`, and `maxConcurrency` lets 2 of 3 run at once; leave `maxConcurrency` out, or wait outside of the loop
    ");
}

#[test]
fn barriers_that_are_reached_in_different_orders_are_refused() {
    let there = [gate("x", "a", ""), gate("y", "b", "")];
    let back = [gate("x", "b", ""), gate("y", "a", "")];
    insta::assert_snapshot!(told(&[
        beside(&[stage("s", "", &there), stage("t", "", &back)]),
    ]), @"pipeline.yaml:2:454: pipeline.stages[0].parallel[1].stage.spec.execution.steps[1].step.spec.barrierRef: barriers `a`, `b` cannot be passed: stages.s.spec.execution.steps.x waits at `a` before stages.s.spec.execution.steps.y is reached at `b`, and stages.t.spec.execution.steps.x waits at `b` before stages.t.spec.execution.steps.y is reached at `a`; reach them in the same order everywhere");
    insta::assert_snapshot!(told(&[
        beside(&[
            stage("s", "", &there),
            stage("t", "when: {pipelineStatus: Success, condition: <+pipeline.name> == \"P\"},", &[gate("x", "b", ""), gate("y", "c", "")]),
            stage("u", "", &[gate("x", "c", ""), gate("y", "a", "")]),
        ]),
    ]), @"warning: pipeline.stages[0].parallel[2].stage.spec.execution.steps[1].step.spec.barrierRef: barriers `a`, `b`, `c` cannot be passed unless a condition leaves somebody out: stages.s.spec.execution.steps.x waits at `a` before stages.s.spec.execution.steps.y is reached at `b`, and stages.t.spec.execution.steps.x waits at `b` before stages.t.spec.execution.steps.y is reached at `c`, and stages.u.spec.execution.steps.x waits at `c` before stages.u.spec.execution.steps.y is reached at `a`; reach them in the same order everywhere");
}

#[test]
fn a_rollback_has_barriers_of_its_own() {
    let undo = |name: &str| {
        format!(
            "{{stage: {{identifier: s, name: N, type: Custom, spec: {{execution: {{steps: [{}], rollbackSteps: [{}]}}}}}}}}",
            gate("x", "a", ""),
            gate("u", name, "")
        )
    };
    insta::assert_snapshot!(told(&[
        beside(&[undo("a"), stage("t", "", &one("x"))]),
    ]), @"pipeline.yaml:2:244: pipeline.stages[0].parallel[0].stage.spec.execution.rollbackSteps[0].step.spec.barrierRef: barrier `a` is for both stages.s.spec.execution.steps.x and the rollback step stages.s.spec.execution.rollbackSteps.u, which never run together; give the rollback a barrier of its own");
    assert_eq!(told(&[beside(&[undo("b"), stage("t", "", &one("x"))])]), "");
}

#[test]
fn rollbacks_meet_as_steps_do() {
    let undo = |id: &str, more: &str, steps: &[String]| {
        format!(
            "{{stage: {{identifier: {id}, name: N, type: Custom, {more} spec: {{execution: {{steps: [{}], rollbackSteps: [{}]}}}}}}}}",
            gate("x", "b", ""),
            steps.join(", ")
        )
    };
    let meets = |id: &str| undo(id, "", &[gate("u", "a", "")]);
    assert_eq!(told(&[beside(&[meets("s"), meets("t")])]), "");
    // With one place it is passed at once, also in a group.
    let alone = "{stepGroup: {identifier: g, name: N, steps: [], rollbackSteps: [GATE]}}"
        .replace("GATE", &gate("u", "c", ""));
    assert_eq!(
        told(&[beside(&[
            meets("s"),
            stage("t", "", std::slice::from_ref(&alone)),
        ])]),
        ""
    );
    let after = told(&[
        meets("s"),
        meets("t").replace("barrierRef: b", "barrierRef: c"),
    ]);
    assert!(
        after.contains("rollbackSteps.u waits there for stages.s.spec.execution.rollbackSteps.u, which comes after it"),
        "{after}"
    );
    let twice = told(&[undo("s", "", &[gate("u", "a", ""), gate("v", "a", "")])]);
    assert!(
        twice.contains(
            "waits there for stages.s.spec.execution.rollbackSteps.v, which comes after it"
        ),
        "{twice}"
    );
    let turns = told(&[undo(
        "s",
        "strategy: {parallelism: 3, maxConcurrency: 2},",
        &[gate("u", "a", "")],
    )]);
    assert!(turns.contains("barrier `a` cannot be passed: stages.s_0.spec.execution.rollbackSteps.u waits there for every turn of `s`"), "{turns}");
    let of_group = alone.replace("barrierRef: c", "barrierRef: a");
    let group = told(&[beside(&[meets("s"), stage("t", "", &[of_group])])]);
    assert!(
        group.contains("a step group is rolled back when it fails itself"),
        "{group}"
    );
}

#[test]
fn stages_that_stand_in_one_line_do_not_meet() {
    let deploys = |id: &str, more: &str, place: &str| {
        format!(
            "{{stage: {{identifier: {id}, name: N, type: Deployment, failureStrategies: [], {more} spec: {{deploymentType: ECS, service: {{serviceRef: web, serviceInputs: {{serviceDefinition: {{type: ECS, spec: {{artifacts: {{primary: {{sources: [{{identifier: img, type: DockerRegistry, spec: {{tag: v1}}}}]}}}}}}}}}}}}, environment: {{environmentRef: account.prod, infrastructureDefinitions: [{{identifier: {place}, inputs: {{identifier: {place}, type: ECS, spec: {{cluster: main}}}}}}]}}, execution: {{steps: [{}]}}}}}}}}",
            gate("x", "a", "")
        )
    };
    let mut known = entities();
    let infrastructure = known.iter().find(|yaml| yaml.contains("identifier: ecs"));
    let other = infrastructure.map(|yaml| yaml.replace("identifier: ecs", "identifier: other"));
    known.extend(other);
    let told = |stages: &[String]| told_of(stages, &known);
    insta::assert_snapshot!(told(&[beside(&[
        deploys("s", "", "ecs"),
        stage("t", "", &one("x")),
        deploys("u", "", "ecs"),
    ])]), @"pipeline.yaml:2:1221: pipeline.stages[0].parallel[2].stage.spec.execution.steps[0].step.spec.barrierRef: barrier `a` cannot be passed: stages.s.spec.execution.steps.x waits there for stages.u.spec.execution.steps.x, and stages s and u both deploy service `web` to infrastructure `ecs` of environment `prod`, where one deployment runs at a time; wait in one of them only, deploy to different infrastructures, or set `allowSimultaneousDeployments: true` in the infrastructure");
    let when = "when: {pipelineStatus: Success, condition: <+pipeline.name> == \"P\"},";
    let maybe = told(&[beside(&[
        deploys("s", "", "ecs"),
        deploys("u", when, "ecs"),
    ])]);
    assert!(
        maybe.starts_with("warning: ") && maybe.contains("stages s and u both deploy"),
        "{maybe}"
    );
    let turns = told(&[deploys("s", "strategy: {parallelism: 3},", "ecs")]);
    assert!(
        turns.contains("stages s_0 and s_1 both deploy") && turns.lines().count() == 1,
        "{turns}"
    );
    assert_eq!(
        told(&[beside(&[
            deploys("s", "", "ecs"),
            deploys("t", "", "other")
        ])]),
        ""
    );
    let several: Vec<String> = known
        .iter()
        .map(|yaml| {
            yaml.replace(
                "allowSimultaneousDeployments: false",
                "allowSimultaneousDeployments: true",
            )
        })
        .collect();
    let stages = [beside(&[deploys("s", "", "ecs"), deploys("t", "", "ecs")])];
    assert_eq!(told_of(&stages, &several), "");
}
