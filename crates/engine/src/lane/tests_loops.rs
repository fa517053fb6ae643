//! Turns of loops beside one another.

use slipway_model::status::ErrorType;
use slipway_plan::{Node, StagePlan};

use super::tests::{World, without_strategy};
use crate::fixture::{parallel, stage, step};

/// A loop of three steps, one at a time, and a step after it.
fn in_turns(skips_queued: bool) -> StagePlan {
    let turns = ["t_0", "t_1", "t_2"].into_iter().enumerate();
    let turns = turns.map(|(index, id)| {
        let mut node = step(id);
        if let Node::Step(step) = &mut node {
            step.iteration = Some(crate::fixture::turn("t", index, 3, 1));
        }
        node
    });
    let mut block = parallel("t", turns.collect());
    if let Node::Parallel(block) = &mut block {
        block.concurrency = 1;
        block.skips_queued = skips_queued;
    }
    without_strategy(stage("deploy", vec![block, step("after")]))
}

#[test]
fn turns_do_not_see_one_another_fail_unless_their_loop_gives_up_what_waits() {
    let all = in_turns(false);
    insta::assert_snapshot!(World::new(&all).fails("t_0", ErrorType::Unknown, 9).story(), @"
    0 open t #0
    0 start t_0 #0
    1 t_0 #0 Failed
    1 start t_1 #0
    2 start t_2 #0
    3 close t Failed
    3 skip after: something failed before, and its stageStatus is Success
    3 lane Failed
    3 end Failed
    ");
    let some = in_turns(true);
    insta::assert_snapshot!(World::new(&some).fails("t_0", ErrorType::Unknown, 9).story(), @"
    0 open t #0
    0 start t_0 #0
    1 t_0 #0 Failed
    1 skip t_1: an earlier turn failed, and its loop has onFailure: SkipQueued
    1 skip t_2: an earlier turn failed, and its loop has onFailure: SkipQueued
    1 close t Failed
    1 skip after: something failed before, and its stageStatus is Success
    1 lane Failed
    1 end Failed
    ");
    // What has begun when another fails goes on, and so does everything where nothing fails.
    insta::assert_snapshot!(World::new(&some).story(), @"
    0 open t #0
    0 start t_0 #0
    1 start t_1 #0
    2 start t_2 #0
    3 close t Success
    3 start after #0
    4 lane Success
    4 end Success
    ");
}
