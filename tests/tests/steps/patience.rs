//! Targets that are busy or away for longer than an SDK repeats a call: steps wait for them while their time lasts.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_model::status::ErrorType;
use slipway_sandbox::{Fault, FaultEffect, Pace};

use crate::asg::Groups;
use crate::oidc::role;
use crate::tap::Mode;
use crate::world::{World, service_definition, task_definition};

const DEPLOY: &str = "EcsRollingDeploy";
const ROLLBACK: &str = "EcsRollingRollback";
const WAITS: &str = "Waiting until AWS does it, at most until the step's timeout of 10m is up: ";

fn hits(world: &World, operation: &str, count: Option<u32>, effect: FaultEffect) {
    world.sandbox.faults().add(Fault {
        service: None,
        operation: Some(operation.to_owned()),
        skip: 0,
        count,
        effect,
    });
}

/// Calls that are repeated after a second each: how long a step waits does not depend on the dice of an SDK.
fn patient() -> Value {
    json!({
        "credential": {"type": "InheritFromDelegate"},
        "awsSdkClientBackOffStrategyOverride":
            {"type": "FixedDelayBackoffStrategy", "spec": {"fixedBackoff": 1000}},
    })
}

/// How often a log says something.
fn times(log: &str, what: &str) -> usize {
    log.matches(what).count()
}

#[tokio::test(start_paused = true)]
async fn each_call_of_a_deployment_and_its_rollback_may_be_turned_away_for_minutes() {
    let store = World::new().await;
    for effect in [
        FaultEffect::Throttle,
        FaultEffect::ServerError,
        FaultEffect::Cut { after: false },
        FaultEffect::Cut { after: true },
    ] {
        let mut world = store.beside(Pace::brisk()).await;
        world.connector = patient();
        world.run(DEPLOY, json!({})).await.done();
        world.next_run();
        world.deploys(&task_definition("nginx:2"), &service_definition(3));
        for operation in [
            "DescribeServices",
            "RegisterTaskDefinition",
            "UpdateService",
        ] {
            // A registration whose answer is lost is made again.
            let lost = effect == FaultEffect::Cut { after: true };
            if !(lost && operation == "RegisterTaskDefinition") {
                hits(&world, operation, Some(25), effect.clone());
            }
        }
        world.run(DEPLOY, json!({})).await.done();
        assert_eq!(world.account().await, "web:2 3/3 COMPLETED", "{effect:?}");
        // Told when it began and when it ended, and not each time.
        let log = world.log(DEPLOY, "Deploy").await;
        let fetched = world.log(DEPLOY, "Prepare rollback data").await;
        let log = format!("{fetched}{log}");
        assert_eq!(
            times(&log, WAITS),
            times(&log, "AWS did it after "),
            "{log}"
        );
        assert!((1..=3).contains(&times(&log, WAITS)), "{log}");
        assert_eq!(times(&log, "Prepared rollback data"), 1, "{log}");

        world.sandbox.faults().clear();
        for operation in ["DescribeServices", "UpdateService"] {
            hits(&world, operation, Some(25), effect.clone());
        }
        world.run(ROLLBACK, json!({})).await.done();
        assert_eq!(world.account().await, "web:1 2/2 COMPLETED", "{effect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_target_that_stays_busy_fails_the_step_at_the_end_of_its_time() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.connector = patient();
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &service_definition(2));
    let begun = world.clock.now();
    hits(&world, "UpdateService", None, FaultEffect::Throttle);
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert!(
        failure.message.contains("because of too many calls"),
        "{}",
        failure.message
    );
    let lasted = world.clock.now().duration_since(begun).unsigned_abs();
    let limit = Duration::from_secs(600);
    // Found by a tester: when the next wait would have been longer than what was left, the rest of the time was thrown away.
    assert!(
        (limit - Duration::from_secs(13)..=limit).contains(&lasted),
        "{lasted:?}"
    );
    // It asks ever more seldom: the attempts of one call, then a wait of five to thirty seconds.
    let asked = world.count("UpdateService");
    assert!((120..=220).contains(&asked), "asked {asked} times");
    let log = world.log(DEPLOY, "Deploy").await;
    assert_eq!(times(&log, WAITS), 1, "{log}");
    let (message, tried) = failure
        .message
        .split_once(" It was tried for ")
        .expect("for how long");
    assert_eq!(times(&log, message), 2, "{log}");
    assert!(tried.starts_with("9m"), "{tried}");

    // The rollback fails in the same way, and says what it left.
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    let left = failure.left_behind.unwrap_or_default();
    assert!(left.contains("may not be back on web:1"), "{left}");
    world.sandbox.faults().clear();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_passing_trouble_fails_at_once() {
    let world = World::with_pace(Pace::brisk()).await;
    let begun = world.clock.now();
    hits(&world, "CreateService", None, FaultEffect::AccessDenied);
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert_eq!(failure.error, ErrorType::Authorization);
    assert_eq!(world.count("CreateService"), 1);
    let lasted = world.clock.now().duration_since(begun).unsigned_abs();
    assert!(lasted < Duration::from_secs(10), "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_too_soon_is_taken_anew() {
    let statement = json!({"Effect": "Allow", "Action": "sts:AssumeRole",
        "Principal": {"AWS": "arn:aws:iam::123456789012:root"}});
    let trust = json!({"Version": "2012-10-17", "Statement": [statement]}).to_string();
    let mut world = World::with_pace(Pace::brisk()).await;
    role(&world, "target", &trust).await;
    let access = json!({"crossAccountRoleArn": "arn:aws:iam::123456789012:role/target"});
    world.connector =
        json!({"credential": {"type": "InheritFromDelegate", "crossAccountAccess": access}});
    for operation in [
        "DescribeServices",
        "RegisterTaskDefinition",
        "CreateService",
    ] {
        hits(&world, operation, Some(1), FaultEffect::ExpiredCredentials);
    }
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
    assert_eq!(world.count("AssumeRole"), 4);

    // Credentials that never work are not asked for without an end.
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &service_definition(2));
    hits(
        &world,
        "UpdateService",
        None,
        FaultEffect::ExpiredCredentials,
    );
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert_eq!(failure.error, ErrorType::Authentication);
    assert_eq!(world.count("UpdateService"), 4);
}

#[tokio::test(start_paused = true)]
async fn groups_and_functions_wait_too() {
    let mut groups = Groups::new().await.beside().await;
    groups.world.connector = patient();
    for number in 1..=2 {
        groups.world.next_run();
        groups.deploys(&format!("ami-{number}"), 2);
        for operation in [
            "DescribeAutoScalingGroups",
            "CreateAutoScalingGroup",
            "StartInstanceRefresh",
            "DescribeInstanceRefreshes",
        ] {
            hits(&groups.world, operation, Some(15), FaultEffect::Throttle);
        }
        groups.world.run("AsgRollingDeploy", json!({})).await.done();
        groups.world.sandbox.faults().clear();
    }
    assert_eq!(groups.account().await, "web v2 2/2 of v2 | web");

    let mut world = World::with_pace(Pace::brisk()).await;
    world.connector = patient();
    for number in 1..=2 {
        world.next_run();
        world.deploys_package(number).await;
        for operation in [
            "GetFunction",
            "PublishVersion",
            "UpdateFunctionCode",
            "UpdateAlias",
        ] {
            hits(&world, operation, Some(15), FaultEffect::Throttle);
        }
        let spec: Value = json!({});
        world.run("AwsLambdaDeploy", spec).await.done();
        world.sandbox.faults().clear();
    }
    assert_eq!(
        world.account().await,
        "absent, function shop package 2 timeout 6 Active, versions 1 2, live at 2"
    );
}

#[tokio::test(start_paused = true)]
async fn who_waits_may_be_killed() {
    let store = World::new().await;
    for call in (1..60).step_by(4) {
        let mut world = store.beside(Pace::brisk()).await;
        world.run(DEPLOY, json!({})).await.done();
        world.next_run();
        world.connector = patient();
        world.deploys(&task_definition("nginx:2"), &service_definition(3));
        hits(&world, "UpdateService", Some(25), FaultEffect::Throttle);
        world.tap.set(Mode::DieAfter(call));
        world.run(DEPLOY, json!({})).await.done();
        assert_eq!(world.account().await, "web:2 3/3 COMPLETED");
        let updated = world.sandbox.calls();
        let updated = updated
            .iter()
            .filter(|one| one.operation == "UpdateService" && one.error.is_none());
        assert_eq!(updated.count(), 1, "died after call {call}");
    }
}
