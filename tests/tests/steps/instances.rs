//! The sweep that counts instances: what runs, whoever started it.

use std::time::Duration;

use serde_json::json;
use slipway_fn_instances::{Deps, Swept, sweep};
use slipway_sandbox::{Fault, FaultEffect, Pace};
use slipway_store::InstanceFilter;

use crate::world::{World, scope, service_definition, task_definition};

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
async fn f12_of_two_sweeps_that_overlap_one_does_nothing() {
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

#[tokio::test(start_paused = true)]
async fn f12_a_sweep_that_comes_late_and_twice_counts_nothing_twice() {
    let world = World::with_pace(Pace::brisk()).await;
    world.run("EcsRollingDeploy", json!({})).await.done();
    let deps = Deps {
        services: world.services.clone(),
    };
    // A sweep has died; its lease stays. The next comes while it lasts, the one after it 25 minutes late.
    let lease = Duration::from_secs(900);
    let taken = world
        .store
        .take_lease("instance-sweep", "dead", lease)
        .await;
    assert!(taken.expect("a lease"));
    world.clock.sleep(Duration::from_secs(600)).await;
    assert!(sweep(&deps).await.expect("a sweep").skipped);
    world.clock.sleep(Duration::from_secs(1_500)).await;
    for _ in 0..2 {
        assert_eq!(sweep(&deps).await.expect("a sweep").counted, 1);
        assert_eq!(keys(&world).await.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn f14_of_twenty_services_one_that_does_not_answer_hides_no_other() {
    let world = World::with_pace(Pace::brisk()).await;
    world.run("EcsRollingDeploy", json!({})).await.done();
    let deps = Deps {
        services: world.services.clone(),
    };
    let first = world.store.list_deployed().await.expect("a list").remove(0);
    let named = |n: usize| slipway_model::id::EntityId::new(format!("svc{n}"));
    for n in 1..20 {
        let mut deployed = slipway_store::record::DeployedRecord {
            service: named(n),
            ..first.clone()
        };
        if n == 7 {
            // Its region has no such cluster.
            deployed.target["cluster"] = "gone".into();
            deployed.counted = Some((3, 1));
        }
        world.store.put_deployed(&deployed).await.expect("noted");
    }
    let swept = sweep(&deps).await.expect("a sweep");
    let expected = Swept {
        counted: 19,
        failed: 1,
        skipped: false,
    };
    assert_eq!(swept, expected);
    for deployed in world.store.list_deployed().await.expect("a list") {
        let count = deployed.counted.map(|(count, _)| count);
        if deployed.service == named(7) {
            // What was known of it stays, and it is marked.
            assert_eq!(count, Some(3));
            let why = deployed.uncounted.expect("a reason");
            assert!(why.contains("gone"), "{why}");
        } else {
            assert_eq!((count, deployed.uncounted), (Some(2), None));
        }
    }
}

/// How many tasks are counted of each service, with the run of each.
async fn counted(world: &World) -> Vec<String> {
    let filter = InstanceFilter::default();
    let found = world.store.list_instances(&scope(), &filter).await;
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for instance in found.expect("a list") {
        let service = instance.info["serviceName"].as_str().unwrap_or("?");
        let run = instance.run.map_or("?".to_owned(), |run| run.to_string());
        *counts.entry(format!("{service} by {run}")).or_default() += 1;
    }
    let counts = counts.iter().map(|(name, count)| format!("{count} {name}"));
    counts.collect()
}

#[tokio::test(start_paused = true)]
async fn a_service_that_got_another_name_is_counted_until_it_is_gone() {
    let mut world = World::with_pace(Pace::brisk()).await;
    let deps = Deps {
        services: world.services.clone(),
    };
    let named = |name: &str| {
        let mut definition = service_definition(1);
        definition["serviceName"] = json!(name);
        definition
    };
    let mut all = Vec::new();
    for name in ["one", "three", "two"] {
        world.next_run();
        world.deploys(&task_definition("nginx:1"), &named(name));
        world.run("EcsRollingDeploy", json!({})).await.done();
        all.push(format!("1 {name} by {}", world.run));
        assert_eq!(counted(&world).await, all);
    }
    let log = world.log("EcsRollingDeploy", "Deploy").await;
    assert!(
        log.contains("Service three, deployed earlier, stays"),
        "{log}"
    );
    assert!(!log.contains("Service one, deployed"), "{log}");
    sweep(&deps).await.expect("a sweep");
    assert_eq!(counted(&world).await, all);

    // A first deployment under a name that is rolled back leaves the others what they are.
    world.next_run();
    world.deploys(&task_definition("nginx:missing"), &named("four"));
    world.run("EcsRollingDeploy", json!({})).await.failed();
    world.run("EcsRollingRollback", json!({})).await.done();
    assert_eq!(counted(&world).await, all);
    let noted = world.store.list_deployed().await.expect("a list").remove(0);
    assert_eq!(noted.target["serviceName"], "two");

    // One is taken away, another gets the next version.
    let deleted = world.ecs().delete_service().cluster("prod").service("one");
    deleted.force(true).send().await.expect("deleted");
    world.clock.sleep(Duration::from_secs(60)).await;
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &named("three"));
    world.run("EcsRollingDeploy", json!({})).await.done();
    let rest = [format!("1 three by {}", world.run), all[2].clone()];
    assert_eq!(counted(&world).await, rest);
    let noted = world.store.list_deployed().await.expect("a list").remove(0);
    let beside = noted.target["beside"].as_array().expect("a list");
    assert_eq!(beside.len(), 1, "what is gone is forgotten: {beside:?}");
}
