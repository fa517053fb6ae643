//! Traces of the failure strategies that repeat, undo or ask.

use proptest::prelude::{prop, proptest};
use serde_json::{Value, json};
use slipway_model::id::NodeId;
use slipway_model::status::{ErrorType, Status};
use slipway_plan::{FailureStrategy, Node};

use super::StopReason;
use super::tests::{World, any_node, number, with_rollback};
use crate::fixture::{With, group, on, parallel, retry, stage, step};
use crate::name::Lane;

fn again(count: u32, interval: &str, then: &str) -> FailureStrategy {
    on(
        "AllErrors",
        "RetryStepGroup",
        json!({
            "retryCount": count,
            "retryIntervals": [interval],
            "onRetryFailure": {"action": {"type": then}},
        }),
    )
}

fn ask(timeout: &str, then: &str) -> FailureStrategy {
    on(
        "AllErrors",
        "ManualIntervention",
        json!({"timeout": timeout, "onTimeout": {"action": {"type": then}}}),
    )
}

fn undone_by(node: Node, steps: Vec<Node>) -> Node {
    match node {
        Node::Group(mut group) => {
            group.rollback_steps = steps;
            Node::Group(group)
        }
        other => other,
    }
}

#[test]
fn a_group_runs_again_from_its_start() {
    let inner = vec![
        step("a"),
        step("b"),
        parallel("p", vec![step("c"), step("d")]),
    ];
    let stage = stage(
        "deploy",
        vec![
            group("g", inner).strategy(again(2, "10s", "Ignore")),
            step("e"),
        ],
    );
    let world = World::new(&stage).fails("d", ErrorType::Unknown, 1);
    insta::assert_snapshot!(world.story(), @"
     0 open g #0
     0 start a #0
     1 start b #0
     2 open p #0
     2 start c #0
     3 start d #0
     4 d #0 Failed
     4 close p Failed
     4 close g Failed
    14 open g #1
    14 start a #1
    15 start b #1
    16 open p #1
    16 start c #1
    17 start d #1
    18 close p Success
    18 close g Success
    18 start e #0
    19 lane Success
    19 end Success
    ");
}

#[test]
fn a_group_that_keeps_failing_falls_back() {
    let stage = with_rollback(stage(
        "deploy",
        vec![
            group("g", vec![step("a")]).strategy(again(1, "5s", "StageRollback")),
            step("e"),
        ],
    ));
    let world = World::new(&stage).fails("a", ErrorType::Unknown, 9);
    insta::assert_snapshot!(world.story(), @"
    0 open g #0
    0 start a #0
    1 a #0 Failed
    1 close g Failed
    6 open g #1
    6 start a #1
    7 a #1 Failed
    7 close g Failed
    7 lane Failed
    7 roll back
    ");
}

#[test]
fn retries_of_a_step_begin_anew_with_its_group() {
    let inner = step("a").strategy(retry(1, "1s", "MarkAsFailure"));
    // What is left of the step's own strategy says failed, which is no affair of the group.
    let plain = stage(
        "deploy",
        vec![group("g", vec![inner]).strategy(again(1, "1s", "Ignore"))],
    );
    let world = World::new(&plain).fails("a", ErrorType::Unknown, 9);
    insta::assert_snapshot!(world.story(), @"
    0 open g #0
    0 start a #0
    1 a #0 Failed
    2 start a #1
    3 a #1 Failed
    3 close g Failed
    3 lane Failed
    3 end Failed
    ");

    let inner = group(
        "i",
        vec![
            step("b"),
            step("a").strategy(retry(1, "1s", "RetryStepGroup")),
        ],
    );
    let outer = group("o", vec![step("c"), inner]).strategy(again(1, "1s", "Ignore"));
    let nested = stage("deploy", vec![outer, step("d")]);
    let world = World::new(&nested).fails("b", ErrorType::Unknown, 1);
    insta::assert_snapshot!(world.story(), @"
    0 open o #0
    0 start c #0
    1 open i #0
    1 start b #0
    2 b #0 Failed
    2 close i Failed
    2 close o Failed
    3 open o #1
    3 start c #1
    4 open i #1
    4 start b #1
    5 start a #0
    6 close i Success
    6 close o Success
    6 start d #0
    7 lane Success
    7 end Success
    ");
}

#[test]
fn a_group_is_rolled_back_by_its_own_steps() {
    let undo = vec![step("u"), parallel("p", vec![step("v"), step("w")])];
    let inner = group("g", vec![step("a"), step("b")]);
    let inner = undone_by(inner, undo).strategy(on("AllErrors", "StepGroupRollback", Value::Null));
    let stage = with_rollback(stage("deploy", vec![inner, step("c")]));
    let world = World::new(&stage).fails("b", ErrorType::Unknown, 9);
    insta::assert_snapshot!(world.story(), @"
    0 open g #0
    0 start a #0
    1 start b #0
    2 b #0 Failed
    2 start u #0
    3 open p #0
    3 start v #0
    4 start w #0
    5 close p Success
    5 close g Failed
    5 lane Failed
    5 end Failed
    ");

    let world =
        World::new(&stage)
            .fails("b", ErrorType::Unknown, 9)
            .fails("u", ErrorType::Unknown, 9);
    insta::assert_snapshot!(world.story(), @"
    0 open g #0
    0 start a #0
    1 start b #0
    2 b #0 Failed
    2 start u #0
    3 u #0 Failed
    3 close g Failed
    3 lane Failed
    3 end Failed
    ");
}

#[test]
fn a_person_is_asked_and_decides() {
    let asked = || step("a").strategy(ask("1h", "Abort"));
    let stage = with_rollback(stage("deploy", vec![asked(), step("b")]));
    let mut world = World::new(&stage).fails("a", ErrorType::Unknown, 2);
    world.answers = ["Retry", "Ignore"].into();
    insta::assert_snapshot!(world.story(), @"
      0 start a #0
      1 a #0 InterventionWaiting
     61 Retry is said of a
     61 settle a Failed
     61 start a #1
     62 a #1 InterventionWaiting
    122 Ignore is said of a
    122 settle a IgnoreFailed
    122 start b #0
    123 lane IgnoreFailed
    123 end IgnoreFailed
    ");

    for (word, end) in [
        ("MarkAsSuccess", "end Success"),
        ("MarkAsFailure", "end Failed"),
        ("StageRollback", "roll back"),
        ("Abort", "end Aborted"),
    ] {
        let mut world = World::new(&stage).fails("a", ErrorType::Unknown, 9);
        world.answers = [word].into();
        let story = world.story();
        assert!(story.ends_with(end), "{word}: {story}");
    }
}

#[test]
fn without_an_answer_the_fallback_counts() {
    let stage = with_rollback(stage(
        "deploy",
        vec![step("a").strategy(ask("1h", "StageRollback")), step("b")],
    ));
    let world = World::new(&stage).fails("a", ErrorType::Unknown, 9);
    insta::assert_snapshot!(world.story(), @"
       0 start a #0
       1 a #0 InterventionWaiting
    3601 settle a Failed
    3601 lane Failed
    3601 roll back
    ");
}

/// The time of the stage ends it; that of a group brings what nobody's answer brings.
#[test]
fn a_question_whose_time_is_up_expires() {
    let asked = || step("a").strategy(ask("1h", "StageRollback"));
    let late = stage("deploy", vec![asked(), step("b")]);
    let mut world = World::new(&late).fails("a", ErrorType::Unknown, 9);
    world.facts.deadline_ms = Some(600_000);
    let lane = Lane::steps(&late.id);
    assert_eq!(world.walk(&lane), Status::Expired);
    assert_eq!(world.facts.status(&NodeId::new("a")), Some(Status::Expired));
    world.now_ms = 7_200_000;
    assert_eq!(
        world.walk(&lane),
        Status::Expired,
        "looked at again after its own time"
    );

    let mut hurried = group("g", vec![asked(), step("b")]);
    if let Node::Group(hurried) = &mut hurried {
        hurried.timeout = Some(std::time::Duration::from_secs(600));
    }
    let hurried = with_rollback(stage("deploy", vec![hurried]));
    let world = World::new(&hurried).fails("a", ErrorType::Unknown, 9);
    insta::assert_snapshot!(world.story(), @"
      0 open g #0
      0 start a #0
      1 a #0 InterventionWaiting
    600 settle a Expired
    600 close g Expired
    600 lane Expired
    600 roll back
    ");
    let mut world = World::new(&hurried).fails("a", ErrorType::Unknown, 9);
    world.answers = ["Ignore"].into();
    let story = world.story();
    assert!(story.ends_with("end IgnoreFailed"), "{story}");
}

#[test]
fn a_paused_run_begins_nothing_and_goes_on() {
    let stage = stage("deploy", vec![step("a")]);
    let mut world = World::new(&stage);
    world.facts.paused = true;
    insta::assert_snapshot!(world.story(), @"
    0 start a #0
    1 lane Success
    1 end Success
    ");
}

#[test]
fn a_step_that_a_person_stops_fails_by_its_strategies() {
    let strategy = on("UserMarkedFailure", "Ignore", Value::Null);
    let stage = with_rollback(stage(
        "deploy",
        vec![step("a").strategy(strategy), step("b")],
    ));
    for (reason, end) in [
        (StopReason::MarkedAsFailed, "end IgnoreFailed"),
        (StopReason::MadeToExpire, "roll back"),
    ] {
        let mut world = World::new(&stage);
        world.stopped("a", 0, reason, 0);
        let story = world.story();
        assert!(story.ends_with(end), "{reason:?}: {story}");
    }
}

/// The last group first, those in a group before it, and none in which nothing ran; whatever becomes of each.
#[test]
fn a_group_is_rolled_back_after_the_groups_in_it() {
    let inner = |id: &'static str, undo: &'static str| {
        undone_by(
            group(id, vec![step(id.to_uppercase().leak())]),
            vec![step(undo)],
        )
    };
    let back = on("AllErrors", "StepGroupRollback", Value::Null);
    let mut outer = group(
        "o",
        vec![inner("i", "ui"), inner("j", "uj"), inner("k", "uk")],
    );
    if let Node::Group(outer) = &mut outer {
        outer.timeout = Some(std::time::Duration::from_secs(60));
    }
    let outer = undone_by(outer.strategy(back), vec![step("uo")]);
    let stage = stage("deploy", vec![outer, step("z")]);
    let world =
        World::new(&stage)
            .fails("J", ErrorType::Unknown, 1)
            .fails("uj", ErrorType::Unknown, 1);
    insta::assert_snapshot!(world.story(), @"
    0 open o #0
    0 open i #0
    0 start I #0
    1 close i Success
    1 open j #0
    1 start J #0
    2 J #0 Failed
    2 close j Failed
    2 start uj #0
    3 uj #0 Failed
    3 start ui #0
    4 start uo #0
    5 close o Failed
    5 lane Failed
    5 end Failed
    ");
}

#[test]
fn a_word_that_rolls_a_stage_back_asks_no_strategy() {
    let ignore = on("AllErrors", "Ignore", Value::Null);
    let stage = with_rollback(stage("deploy", vec![step("a").strategy(ignore), step("b")]));
    let mut world = World::new(&stage);
    let reason = StopReason::MarkedForRollback;
    world.stopped("a", 0, reason, 0);
    insta::assert_snapshot!(world.story(), @"
    0 start a #0
    0 stop a (MarkedForRollback)
    0 a #0 Failed
    0 lane Failed
    0 roll back
    ");
}

#[test]
fn an_attempt_that_is_stopped_before_its_time_is_not_waited_for() {
    let stage = stage(
        "deploy",
        vec![step("a").strategy(retry(1, "1h", "Ignore")), step("b")],
    );
    let mut world = World::new(&stage).fails("a", ErrorType::Unknown, 9);
    let reason = StopReason::MarkedAsFailed;
    world.stopped("a", 1, reason, 0);
    insta::assert_snapshot!(world.story(), @"
    0 start a #0
    1 a #0 Failed
    1 start a #1
    1 stop a (MarkedAsFailed)
    1 a #1 IgnoreFailed
    1 start b #0
    2 lane IgnoreFailed
    2 end IgnoreFailed
    ");
}

/// Gives groups a strategy, and rollback steps.
fn give(nodes: &mut [Node], kinds: &mut impl Iterator<Item = u8>, count: &mut usize) {
    for node in nodes {
        match node {
            Node::Step(_) => {}
            Node::Parallel(parallel) => give(&mut parallel.branches, kinds, count),
            Node::Group(group) => {
                *count += 1;
                let undo: &'static str = format!("u{count}").leak();
                group.rollback_steps = vec![step(undo)];
                group.failure_strategies = match kinds.next() {
                    Some(0) => vec![again(2, "3s", "StageRollback")],
                    Some(1) => vec![on("AllErrors", "StepGroupRollback", Value::Null)],
                    Some(2) => vec![ask("1m", "MarkAsFailure")],
                    Some(3) => vec![again(1, "1s", "Ignore")],
                    _ => Vec::new(),
                };
                give(&mut group.nodes, kinds, count);
            }
        }
    }
}

proptest! {
    #[test]
    fn lanes_with_any_strategies_end_and_stay_ended(
        mut nodes in prop::collection::vec(any_node(), 0..5),
        behaviour in prop::collection::vec(0..5u8, 64),
        kinds in prop::collection::vec(0..6u8, 64),
        deadline in proptest::option::of(0..200i64),
    ) {
        let mut ids = Vec::new();
        number(&mut nodes, &mut 0, &mut ids);
        give(&mut nodes, &mut kinds.into_iter(), &mut 0);
        let stage = with_rollback(stage("deploy", nodes));
        let mut world = World::new(&stage);
        for (id, kind) in ids.iter().zip(&behaviour) {
            world = match kind {
                0 => world.hangs(id),
                1 => world.fails(id, ErrorType::Unknown, 1),
                2 => world.fails(id, ErrorType::Timeout, 9),
                _ => world,
            };
        }
        world.facts.deadline_ms = deadline.map(|seconds| seconds * 1_000);
        let lane = Lane::steps(&stage.id);
        let first = world.walk(&lane);
        assert_eq!(world.walk(&lane), first, "asked again, the lane answers the same");
    }
}

/// Tries again where a condition holds; the tests say that `false` does not.
fn again_if(condition: &str, action: &str, then: Value) -> FailureStrategy {
    let spec = json!({"retryCount": 3, "condition": condition, "onRetryFailure": {"action": then}});
    on("AllErrors", action, spec)
}

#[test]
fn a_retry_whose_condition_does_not_hold_does_what_comes_after_all_retries() {
    let ignore = json!({"type": "Ignore"});
    let asks = json!({"type": "ManualIntervention", "spec": {"timeout": "1h", "onTimeout": {"action": {
        "type": "Retry", "spec": {"retryCount": 1, "condition": "false"}}}}});
    let inner = vec![step("d")];
    let stage = stage(
        "deploy",
        vec![
            step("a").strategy(again_if("true", "Retry", ignore.clone())),
            step("b").strategy(again_if("false", "Retry", ignore.clone())),
            group("g", inner).strategy(again_if("false", "RetryStepGroup", ignore)),
            step("c").strategy(again_if("false", "Retry", asks)),
        ],
    );
    let world = ["a", "b", "c", "d"]
        .iter()
        .fold(World::new(&stage), |world, step| {
            world.fails(step, ErrorType::Unknown, 1)
        });
    insta::assert_snapshot!(world.story(), @"
       0 start a #0
       1 a #0 Failed
       1 start a #1
       2 start b #0
       3 b #0 IgnoreFailed
       3 open g #0
       3 start d #0
       4 d #0 IgnoreFailed
       4 close g IgnoreFailed
       4 start c #0
       5 c #0 InterventionWaiting
    3605 settle c Failed
    3605 lane Failed
    3605 end Failed
    ");
}
