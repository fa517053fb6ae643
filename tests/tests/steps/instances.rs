//! The sweep that counts instances: what runs, whoever started it.

use std::time::Duration;

use serde_json::json;
use slipway_fn_instances::{Deps, Swept, sweep};
use slipway_sandbox::{Fault, FaultEffect, Pace};
use slipway_store::InstanceFilter;

use crate::world::{World, scope};

async fn keys(world: &World) -> Vec<String> {
    let found = world
        .store
        .list_instances(&scope(), &InstanceFilter::default())
        .await;
    found
        .expect("a list")
        .into_iter()
        .map(|instance| instance.key)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn tasks_that_others_started_are_counted_and_a_failed_count_keeps_the_last() {
    let world = World::with_pace(Pace::brisk()).await;
    world.run("EcsRollingDeploy", json!({})).await.done();
    let deps = Deps {
        services: world.services.clone(),
    };
    assert_eq!(keys(&world).await.len(), 2, "the step counts at its end");

    let scaled = world
        .ecs()
        .update_service()
        .cluster("prod")
        .service("web")
        .desired_count(5);
    scaled.send().await.expect("scaled by hand");
    world.clock.sleep(Duration::from_secs(60)).await;
    let counted = Swept {
        counted: 1,
        ..Swept::default()
    };
    assert_eq!(sweep(&deps).await.expect("a sweep"), counted);
    let five = keys(&world).await;
    assert_eq!(five.len(), 5);
    assert_eq!(sweep(&deps).await.expect("a sweep"), counted);
    assert_eq!(
        keys(&world).await.len(),
        5,
        "two sweeps count nothing twice"
    );

    world.sandbox.faults().add(Fault {
        service: None,
        operation: Some("ListTasks".to_owned()),
        skip: 0,
        count: None,
        effect: FaultEffect::ExpiredCredentials,
    });
    let failed = Swept {
        failed: 1,
        ..Swept::default()
    };
    assert_eq!(sweep(&deps).await.expect("a sweep"), failed);
    assert_eq!(keys(&world).await, five);
    let deployed = world.store.list_deployed().await.expect("a list").remove(0);
    assert_eq!(deployed.counted.map(|(count, _)| count), Some(5));
    let why = deployed.uncounted.expect("a reason");
    assert!(why.contains("credentials"), "{why}");

    world.sandbox.faults().clear();
    assert_eq!(sweep(&deps).await.expect("a sweep"), counted);
    let deployed = world.store.list_deployed().await.expect("a list").remove(0);
    assert_eq!(deployed.uncounted, None);
}

#[tokio::test(start_paused = true)]
async fn of_two_sweeps_that_overlap_one_does_nothing() {
    let world = World::with_pace(Pace::brisk()).await;
    world.run("EcsRollingDeploy", json!({})).await.done();
    let deps = Deps {
        services: world.services.clone(),
    };
    let (one, other) = tokio::join!(sweep(&deps), sweep(&deps));
    let mut skipped = [
        one.expect("a sweep").skipped,
        other.expect("a sweep").skipped,
    ];
    skipped.sort_unstable();
    assert_eq!(skipped, [false, true]);
    assert!(
        !sweep(&deps).await.expect("a sweep").skipped,
        "the lease was given back"
    );
}
