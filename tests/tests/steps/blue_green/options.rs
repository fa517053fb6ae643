//! What the specs can say, and attempts that come again.

use serde_json::json;

use super::{CREATE, ROLLBACK, SWAP, brisk, deploy, next};
use crate::balancer::{Kind, balanced_definition};
use crate::tap::Mode;
use crate::world::{Ended, World, task_definition};

/// The services that have a scaling policy.
async fn who_scales(world: &World) -> Vec<String> {
    let policies = world.scaling().describe_scaling_policies();
    let policies = policies.service_namespace("ecs".into()).send().await;
    let policies = policies.expect("an answer");
    let names = policies.scaling_policies().iter();
    names
        .map(|policy| {
            policy
                .resource_id()
                .rsplit('/')
                .next()
                .unwrap_or("?")
                .to_owned()
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn scaling_moves_with_the_requests_and_comes_back() {
    for in_swap in [false, true] {
        let (mut world, balancer) = brisk(Kind::Default).await;
        let mut spec = balancer.swap_spec();
        spec["enableAutoScalingInSwapStep"] = json!(in_swap);
        world.scales();
        world.run(CREATE, spec.clone()).await.done();
        world.run(SWAP, json!({})).await.done();
        assert_eq!(who_scales(&world).await, ["web__1"]);
        next(&mut world, "nginx:2");
        world.scales();
        world.run(CREATE, spec.clone()).await.done();
        let expected: &[&str] = if in_swap {
            &["web__1"]
        } else {
            &["web__1", "web__2"]
        };
        assert_eq!(who_scales(&world).await, expected);
        world.run(SWAP, json!({})).await.done();
        assert_eq!(who_scales(&world).await, ["web__2"]);
        world.run(ROLLBACK, json!({})).await.done();
        assert_eq!(who_scales(&world).await, ["web__1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_number_of_tasks_may_be_that_of_what_runs() {
    let (mut world, balancer) = brisk(Kind::Default).await;
    let mut spec = balancer.swap_spec();
    spec["sameAsAlreadyRunningInstances"] = json!("true");
    world.run(CREATE, spec.clone()).await.done();
    world.run(SWAP, json!({})).await.done();
    let more = world
        .ecs()
        .update_service()
        .cluster("prod")
        .service("web__1");
    more.desired_count(5).send().await.expect("five tasks");
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    next(&mut world, "nginx:2");
    world.run(CREATE, spec).await.done();
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:1 5/5 BLUE, beside it web__2 web:2 5/5 GREEN; prod to two; stage to one"
    );
    // Scaled up by somebody between creation and swap: that is what a rollback brings back.
    let more = world
        .ecs()
        .update_service()
        .cluster("prod")
        .service("web__1");
    more.desired_count(6).send().await.expect("six tasks");
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    world.run(SWAP, json!({})).await.done();
    world.run(ROLLBACK, json!({})).await.done();
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:1 6/6 BLUE, beside it web__2 web:2 0/0 GREEN; prod to two; stage to one"
    );
}

#[tokio::test(start_paused = true)]
async fn the_green_service_is_updated_or_deleted_first() {
    for update in [false, true] {
        let (mut world, balancer) = brisk(Kind::Own).await;
        deploy(&mut world, &balancer, "nginx:1").await;
        deploy(&mut world, &balancer, "nginx:2").await;
        let deleted = world.count("DeleteService");
        next(&mut world, "nginx:3");
        let mut spec = balancer.swap_spec();
        spec["updateGreenService"] = json!(update);
        world.run(CREATE, spec).await.done();
        assert_eq!(world.count("DeleteService") - deleted, usize::from(!update));
        assert_eq!(
            world.account().await,
            "absent, beside it web__1 web:3 2/2 GREEN, beside it web__2 web:2 2/2 BLUE; prod to one; stage to two"
        );
        world.run(ROLLBACK, json!({})).await.done();
        world.clock.sleep(std::time::Duration::from_secs(60)).await;
        let green = if update { "web:1" } else { "web:3" };
        assert_eq!(
            world.account().await,
            format!(
                "absent, beside it web__1 {green} 0/0 GREEN, beside it web__2 web:2 2/2 BLUE; prod to one; stage to two"
            )
        );
        let log = world.log(ROLLBACK, "Rollback").await;
        assert_eq!(log.contains("does not come back"), !update, "{log}");
    }
}

/// An update of the green service that is refused, or killed, after each of its calls from its first change on.
#[tokio::test(start_paused = true)]
async fn an_update_that_is_cut_off_is_done_once_and_undone() {
    for kill in [true, false] {
        for call in 14.. {
            let (mut world, balancer) = brisk(Kind::Own).await;
            deploy(&mut world, &balancer, "nginx:1").await;
            deploy(&mut world, &balancer, "nginx:2").await;
            let before = world.account().await;
            let since = world.clock.now();
            next(&mut world, "nginx:3");
            let mut spec = balancer.swap_spec();
            spec["updateGreenService"] = json!(true);
            let updates = world.count("UpdateService");
            world.tap.set(if kill {
                Mode::DieAfter(call)
            } else {
                Mode::RefuseAfter(call)
            });
            let ended = world.run(CREATE, spec).await;
            let over = world.tap.calls() < call;
            world.tap.set(Mode::Open);
            match ended {
                Ended::Done(_) => {
                    assert_eq!(world.count("UpdateService") - updates, 1, "call {call}");
                    assert!(world.account().await.contains("web__1 web:3 2/2 GREEN"));
                    if !kill || over || call > 60 {
                        break;
                    }
                }
                Ended::Failed(_) => {
                    world.run(ROLLBACK, json!({})).await.done();
                    world.clock.sleep(std::time::Duration::from_secs(60)).await;
                    assert_eq!(world.account().await, before, "refused after call {call}");
                }
            }
            assert!(world.requests(since).failed == 0.0, "call {call}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_comes_again_is_undone_to_what_was_before_the_first() {
    let (mut world, balancer) = brisk(Kind::Own).await;
    deploy(&mut world, &balancer, "nginx:1").await;
    let before = world.account().await;
    next(&mut world, "nginx:missing");
    world
        .attempt(CREATE, balancer.swap_spec(), 0)
        .await
        .failed();
    world.deploys(&task_definition("nginx:3"), &balanced_definition(2));
    world.attempt(CREATE, balancer.swap_spec(), 1).await.done();
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:1 2/2 BLUE, beside it web__2 web:3 2/2 GREEN; prod to two; stage to one"
    );
    world.run(SWAP, json!({})).await.done();
    // Deployed again after the swap, what served before would be taken for what may be deleted.
    let failure = world
        .attempt(CREATE, balancer.swap_spec(), 2)
        .await
        .failed();
    for part in [
        "web__1 served when this stage began",
        "web__2 serves now",
        "Roll the stage back",
    ] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    world.run(ROLLBACK, json!({})).await.done();
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    let after = world.account().await;
    assert_eq!(
        after.replace(", beside it web__2 web:3 0/0 GREEN", ""),
        before
    );
}

#[tokio::test(start_paused = true)]
async fn both_versions_may_be_behind_one_rule() {
    let (mut world, balancer) = brisk(Kind::Own).await;
    let mut spec = balancer.swap_spec();
    spec["stageListener"] = spec["prodListener"].clone();
    spec["stageListenerRuleArn"] = spec["prodListenerRuleArn"].clone();
    for (image, expected) in [
        ("nginx:1", "web__1 web:1 2/2 BLUE"),
        (
            "nginx:2",
            "web__1 web:1 0/0 GREEN, beside it web__2 web:2 2/2 BLUE",
        ),
        (
            "nginx:3",
            "web__1 web:3 2/2 BLUE, beside it web__2 web:2 0/0 GREEN",
        ),
    ] {
        next(&mut world, image);
        let since = world.clock.now();
        world.run(CREATE, spec.clone()).await.done();
        world.run(SWAP, json!({})).await.done();
        world.clock.sleep(std::time::Duration::from_secs(60)).await;
        let account = world.account().await;
        assert_eq!(
            account,
            format!("absent, beside it {expected}; prod to one; stage to two")
        );
        assert!(image == "nginx:1" || world.requests(since).failed == 0.0);
    }
    assert_eq!(world.count("ModifyRule"), 0);
}
