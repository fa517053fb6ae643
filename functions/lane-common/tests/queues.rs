//! Runs that take turns: in queues, and at what is deployed to.

use slipway_model::id::PrincipalId;
use slipway_model::status::Status;
use slipway_world::yaml::{pipeline, queue, stage, wait};
use slipway_world::{World, minutes};

#[tokio::test(start_paused = true)]
async fn a_stage_does_not_wait_for_what_its_own_run_holds() {
    let world = World::new().await;
    let stages = [
        stage("one", &queue("q", "Pipeline"), "", ""),
        stage("two", &queue("again", "Stage"), "", ""),
    ];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success, "{:?}", run.failure);
    assert_eq!(run.ended_ms, Some(run.started_ms));
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn runs_take_turns_in_a_queue_and_nobody_who_dies_keeps_it() {
    for (scope, most) in [("Stage", 4), ("Pipeline", 5)] {
        let world = World::new().await;
        let first = stage("deploy", &(queue("q", scope) + &wait("w", "1h")), "", "");
        let rest = stage("after", &wait("rest", "1h"), "", "");
        world.apply(&pipeline(&[first, rest])).await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(world.start("release").await);
            minutes(&world, 1).await;
        }
        // The second is stopped while it holds the queue.
        minutes(&world, if scope == "Stage" { 75 } else { 150 }).await;
        let who = PrincipalId::new("sam");
        slipway_engine::abort::abort_run(&world.runs, &ids[1], &who)
            .await
            .expect("aborted");
        let mut ended = Vec::new();
        for id in &ids {
            let run = world.finish(id).await;
            ended.push((
                run.status,
                (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000,
            ));
        }
        let statuses: Vec<_> = ended.iter().map(|(status, _)| *status).collect();
        assert_eq!(
            statuses,
            [Status::Success, Status::Aborted, Status::Success],
            "{scope}"
        );
        assert_eq!(ended[0].1, 2, "{scope}: the first waits for nobody");
        assert!(
            ended[2].1 < most,
            "{scope}: the third goes on when the second is stopped: {ended:?}"
        );
        world.assert_clean(&ids[2]).await;
    }
}
