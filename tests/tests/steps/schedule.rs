//! Scheduled actions of Application Auto Scaling, which people and other tools make, through deployments and rollbacks.

use serde_json::json;
use slipway_sandbox::Pace;

use crate::balancer::Kind;
use crate::strategies::Strategy;
use crate::tap::Mode;
use crate::world::{Ended, World, service_definition, task_definition};

const DEPLOY: &str = "EcsRollingDeploy";
const ROLLBACK: &str = "EcsRollingRollback";

/// Somebody gives a service a nightly schedule, by hand.
async fn schedules(world: &World, service: &str) {
    let action = aws_sdk_applicationautoscaling::types::ScalableTargetAction::builder()
        .min_capacity(1)
        .max_capacity(2);
    let put = world
        .scaling()
        .put_scheduled_action()
        .service_namespace("ecs".into())
        .resource_id(format!("service/prod/{service}"))
        .scalable_dimension("ecs:service:DesiredCount".into())
        .scheduled_action_name("night")
        .schedule("cron(0 20 * * ? *)")
        .timezone("Europe/Rome")
        .scalable_target_action(action.build());
    put.send().await.expect("scheduled");
}

/// The schedules of the account: `name service schedule`.
async fn seen(world: &World) -> String {
    let asked = world.scaling().describe_scheduled_actions();
    let found = asked
        .service_namespace("ecs".into())
        .send()
        .await
        .expect("a list");
    let actions = found.scheduled_actions().iter().map(|action| {
        let service = action.resource_id().rsplit('/').next().unwrap_or("?");
        let zone = action.timezone().unwrap_or("?");
        format!(
            "{} {service} {} {zone}",
            action.scheduled_action_name(),
            action.schedule()
        )
    });
    actions.collect::<Vec<_>>().join(", ")
}

/// Found by a tester: operators suspend scaling in an incident, and a deployment let it go on without a word.
#[tokio::test(start_paused = true)]
async fn scaling_that_somebody_suspended_is_told_when_it_goes_on() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.scales();
    world.run(DEPLOY, json!({})).await.done();
    let suspended = |yes: bool| {
        let state = aws_sdk_applicationautoscaling::types::SuspendedState::builder();
        state.dynamic_scaling_in_suspended(yes).build()
    };
    for yes in [true, false] {
        let target = world.scaling().register_scalable_target();
        let set = target
            .service_namespace("ecs".into())
            .resource_id("service/prod/web")
            .scalable_dimension("ecs:service:DesiredCount".into())
            .min_capacity(1)
            .max_capacity(33)
            .suspended_state(suspended(yes));
        set.send().await.expect("set");
        world.next_run();
        world.run(DEPLOY, json!({})).await.done();
        let log = world.log(DEPLOY, "Prepare rollback data").await;
        let told = "is suspended (DynamicScalingInSuspended), and goes on after this deployment";
        assert_eq!(log.contains(told), yes, "{log}");
        let bounds = "The scalable target of service web allows 1 to 33 tasks, and ";
        assert!(log.contains(bounds), "{log}");
    }
}

/// Somebody sets the scalable target of a service by hand: other bounds, and no scaling in.
async fn suspends(world: &World, service: &str) {
    let state = aws_sdk_applicationautoscaling::types::SuspendedState::builder();
    let target = world.scaling().register_scalable_target();
    let set = target
        .service_namespace("ecs".into())
        .resource_id(format!("service/prod/{service}"))
        .scalable_dimension("ecs:service:DesiredCount".into())
        .min_capacity(1)
        .max_capacity(33)
        .suspended_state(state.dynamic_scaling_in_suspended(true).build());
    set.send().await.expect("set");
}

/// A version that takes over from another one gets the scaling of its manifests: what the other one has beyond that is told.
#[tokio::test(start_paused = true)]
async fn scaling_that_the_next_version_does_not_get_is_told_by_every_strategy() {
    for strategy in [Strategy::Basic, Strategy::Swap, Strategy::Shift] {
        let mut world = World::with_pace(Pace::brisk()).await;
        world.balance(strategy.rules()).await;
        strategy.deploys(&mut world, "nginx:1", false);
        world.scales();
        strategy.run(&world, 0).await.expect("deployed");
        world.clock.sleep(std::time::Duration::from_secs(300)).await;
        suspends(&world, "web__1").await;
        for scaled in [true, false] {
            world.next_run();
            strategy.deploys(&mut world, "nginx:2", false);
            if scaled {
                world.scales();
            }
            let (step, spec) = strategy.steps(&world, 1).remove(0);
            world.attempt(step, spec, 0).await.done();
            let log = world.log(step, "Prepare rollback data").await;
            let suspended = "is suspended (DynamicScalingInSuspended), and not that of web__2, which takes over from it";
            assert_eq!(log.contains(suspended), scaled, "{strategy:?}: {log}");
            let bounds = "service web__1 allows 1 to 33 tasks, and that of web__2, which takes over from it, 1 to 8";
            assert_eq!(log.contains(bounds), scaled, "{strategy:?}: {log}");
            let lost =
                "takes over from web__1 without its scalable target and scaling policies P1: ";
            assert_eq!(log.contains(lost), !scaled, "{strategy:?}: {log}");
            for step in strategy.rollback() {
                world.attempt(step, json!({}), 9).await.done();
            }
        }
    }
}

const NIGHT: &str = "night web cron(0 20 * * ? *) Europe/Rome";

async fn scaled(store: &World) -> World {
    let mut world = store.beside(Pace::brisk()).await;
    world.scales();
    world.run(DEPLOY, json!({})).await.done();
    schedules(&world, "web").await;
    world.next_run();
    let scaling: Vec<_> = world.manifests.drain(..).skip(2).collect();
    world.deploys(&task_definition("nginx:2"), &service_definition(3));
    world.manifests.extend(scaling);
    world
}

#[tokio::test(start_paused = true)]
async fn a_schedule_outlives_deployments_and_rollbacks() {
    let store = World::new().await;
    let world = scaled(&store).await;
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(seen(&world).await, NIGHT);
    let log = world.log(DEPLOY, "Deploy").await;
    assert!(log.contains("Attached scheduled action night"), "{log}");
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(seen(&world).await, NIGHT);
    for call in 1.. {
        let world = scaled(&store).await;
        world.tap.set(Mode::RefuseAfter(call));
        let ended = world.run(DEPLOY, json!({})).await;
        world.tap.set(Mode::Open);
        if let Ended::Done(_) = ended {
            assert!(call > 5, "refused {call} times only");
            break;
        }
        world.run(ROLLBACK, json!({})).await.done();
        assert_eq!(seen(&world).await, NIGHT, "refused after call {call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_loses_its_scaling_is_told_in_the_run() {
    let store = World::new().await;
    let mut world = scaled(&store).await;
    world.manifests.truncate(2);
    world
        .run(DEPLOY, json!({"skipApplicationScaling": true}))
        .await
        .done();
    assert_eq!(seen(&world).await, NIGHT);
    world.next_run();
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(seen(&world).await, "");
    let log = world.log(DEPLOY, "Prepare rollback data").await;
    for part in [
        "loses its scalable target and scaling policies P1, scheduled actions night in this deployment",
        "set `skipApplicationScaling: true`",
    ] {
        assert!(log.contains(part), "{log}");
    }
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(seen(&world).await, NIGHT);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_goes_with_the_requests_and_comes_back() {
    for strategy in [Strategy::Basic, Strategy::Swap] {
        let mut world = World::with_pace(Pace::brisk()).await;
        world.balance(Kind::Own).await;
        for number in 0..2 {
            world.next_run();
            strategy.deploys(&mut world, &format!("nginx:{}", number + 1), false);
            world.scales();
            strategy.run(&world, number).await.expect("deployed");
            world.clock.sleep(std::time::Duration::from_secs(300)).await;
            if number == 0 {
                schedules(&world, "web__1").await;
            }
        }
        let of = |service: &str| NIGHT.replace(" web ", &format!(" {service} "));
        assert_eq!(seen(&world).await, of("web__2"), "{strategy:?}");
        for step in strategy.rollback() {
            world.attempt(step, json!({}), 9).await.done();
        }
        assert_eq!(seen(&world).await, of("web__1"), "{strategy:?}");
    }
}
