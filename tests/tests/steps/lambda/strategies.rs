//! Both strategies of functions on an AWS that refuses: what served before serves again.

use serde_json::{Value, json};
use slipway_model::status::{ErrorType, Failure};
use slipway_sandbox::{Fault, FaultEffect, Pace};

use crate::oidc::role;
use crate::world::{Ended, World};

/// A way to deploy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    Whole,
    Canary,
}

const ALL: [Strategy; 2] = [Strategy::Whole, Strategy::Canary];

impl Strategy {
    fn steps(self) -> Vec<(&'static str, Value)> {
        let share = |share: u32| {
            let spec = json!({"trafficPercentage": share});
            ("AwsLambdaTrafficShift", spec)
        };
        match self {
            Self::Whole => vec![("AwsLambdaDeploy", json!({}))],
            Self::Canary => vec![("AwsLambdaCanaryDeploy", json!({})), share(25), share(100)],
        }
    }

    fn rollback(self) -> &'static str {
        match self {
            Self::Whole => "AwsLambdaRollback",
            Self::Canary => "AwsLambdaCanaryRollback",
        }
    }

    /// An account in which version 1 serves, and version 2 is next.
    async fn served(self, store: &World) -> World {
        let mut world = store.beside(Pace::brisk()).await;
        world.deploys_package(1).await;
        self.run(&world).await.expect("version 1");
        world.next_run();
        world.deploys_package(2).await;
        world
    }

    /// Runs the steps of a deployment until one fails.
    async fn run(self, world: &World) -> Result<(), Failure> {
        for (attempt, (step, spec)) in (0..).zip(self.steps()) {
            if let Ended::Failed(failure) = world.attempt(step, spec, attempt).await {
                return Err(failure);
            }
        }
        Ok(())
    }
}

fn fault(operation: Option<&str>, (skip, count): (u32, Option<u32>), effect: FaultEffect) -> Fault {
    Fault {
        service: None,
        operation: operation.map(str::to_owned),
        skip,
        count,
        effect,
    }
}

/// The operations that were called so far.
fn operations(world: &World) -> Vec<String> {
    let calls = world.sandbox.calls().into_iter();
    let mut operations: Vec<String> = calls
        .filter(|call| call.service == "lambda")
        .map(|call| call.operation)
        .collect();
    operations.sort_unstable();
    operations.dedup();
    operations
}

const SECOND: &str = "absent, function shop package 2 timeout 6 Active, versions 1 2, live at 2";

#[tokio::test(start_paused = true)]
async fn throttled_calls_are_repeated_until_they_go_through() {
    let store = World::with_pace(Pace::brisk()).await;
    for strategy in ALL {
        let world = strategy.served(&store).await;
        let before = world.account().await;
        for operation in operations(&world) {
            let throttled = fault(Some(&operation), (0, Some(3)), FaultEffect::Throttle);
            world.sandbox.faults().add(throttled);
        }
        let ended = strategy.run(&world).await;
        ended.unwrap_or_else(|failure| panic!("{strategy:?}: {failure:?}"));
        world.run(strategy.rollback(), json!({})).await.done();
        world.sandbox.faults().clear();
        assert_eq!(world.account().await, before, "{strategy:?}");
        assert!(world.traffic_was_ready(), "{strategy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_expire_in_the_middle_leave_nothing_that_a_rollback_cannot_undo() {
    let store = World::with_pace(Pace::brisk()).await;
    for strategy in ALL {
        let mut expired = 0;
        for skip in 0.. {
            let what = format!("{strategy:?} after {skip} calls");
            let world = strategy.served(&store).await;
            let before = world.account().await;
            let faults = world.sandbox.faults();
            let ends = fault(None, (skip, None), FaultEffect::ExpiredCredentials);
            let fault = faults.add(ends);
            let ended = strategy.run(&world).await;
            faults.remove(fault);
            let Err(failure) = ended else {
                break;
            };
            expired += 1;
            assert_eq!(
                failure.error,
                ErrorType::Authentication,
                "{what}: {failure:?}"
            );
            world.run(strategy.rollback(), json!({})).await.done();
            assert_eq!(world.account().await, before, "{what}");
            assert!(world.traffic_was_ready(), "{what}");
        }
        assert!(expired > 10, "{strategy:?}: {expired}");
    }
}

/// The rollback needs them too: it says what it left, and goes on when there are others.
#[tokio::test(start_paused = true)]
async fn credentials_that_expire_in_a_rollback_are_told_with_what_is_left() {
    let store = World::with_pace(Pace::brisk()).await;
    for strategy in ALL {
        let mut expired = 0;
        for skip in 0.. {
            let what = format!("{strategy:?} after {skip} calls");
            let world = strategy.served(&store).await;
            let before = world.account().await;
            strategy.run(&world).await.expect("version 2");
            let faults = world.sandbox.faults();
            let ends = fault(None, (skip, None), FaultEffect::ExpiredCredentials);
            let fault = faults.add(ends);
            let ended = world.run(strategy.rollback(), json!({})).await;
            faults.remove(fault);
            let Ended::Failed(failure) = ended else {
                break;
            };
            expired += 1;
            assert_eq!(
                failure.error,
                ErrorType::Authentication,
                "{what}: {failure:?}"
            );
            let left = failure.left_behind.unwrap_or_default();
            assert!(left.contains("function shop"), "{what}: {left}");
            let again = world.attempt(strategy.rollback(), json!({}), 1).await;
            again.done();
            assert_eq!(world.account().await, before, "{what}");
        }
        assert!(expired > 4, "{strategy:?}: {expired}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_too_soon_is_taken_anew_by_every_step() {
    let statement = json!({"Effect": "Allow", "Action": "sts:AssumeRole",
        "Principal": {"AWS": "arn:aws:iam::123456789012:root"}});
    let trust = json!({"Version": "2012-10-17", "Statement": [statement]}).to_string();
    let functions = json!({"Effect": "Allow", "Action": "sts:AssumeRole",
        "Principal": {"Service": "lambda.amazonaws.com"}});
    let of_functions = json!({"Version": "2012-10-17", "Statement": [functions]}).to_string();
    let access = json!({"crossAccountRoleArn": "arn:aws:iam::123456789012:role/target"});
    let store = World::with_pace(Pace::brisk()).await;
    for strategy in ALL {
        let all = {
            let world = strategy.served(&store).await;
            strategy.run(&world).await.expect("version 2");
            world.run(strategy.rollback(), json!({})).await.done();
            operations(&world)
        };
        assert!(all.iter().any(|one| one == "UpdateAlias"), "{all:?}");
        for operation in all {
            let what = format!("{strategy:?}, {operation}");
            let mut world = strategy.served(&store).await;
            let before = world.account().await;
            role(&world, "target", &trust).await;
            // An account that has roles knows which of them a function may have.
            role(&world, "shop", &of_functions).await;
            world.connector = json!({"credential":
                {"type": "InheritFromDelegate", "crossAccountAccess": access}});
            let once = || {
                fault(
                    Some(&operation),
                    (0, Some(1)),
                    FaultEffect::ExpiredCredentials,
                )
            };
            world.sandbox.faults().add(once());
            let ended = strategy.run(&world).await;
            ended.unwrap_or_else(|failure| panic!("{what}: {failure:?}"));
            world.sandbox.faults().clear();
            assert_eq!(world.account().await, SECOND, "{what}");
            let sessions = world.count("AssumeRole");
            world.sandbox.faults().add(once());
            world.run(strategy.rollback(), json!({})).await.done();
            world.sandbox.faults().clear();
            assert_eq!(world.account().await, before, "{what}");
            assert!(world.count("AssumeRole") >= sessions, "{what}");
        }
    }
}

/// Whoever moves an alias: the deployment, each shift, and each rollback.
#[tokio::test(start_paused = true)]
async fn an_alias_that_stays_throttled_fails_what_moves_it_and_nothing_is_half_moved() {
    let store = World::with_pace(Pace::brisk()).await;
    for strategy in ALL {
        let world = strategy.served(&store).await;
        let before = world.account().await;
        let throttled = || fault(Some("UpdateAlias"), (0, None), FaultEffect::Throttle);
        world.sandbox.faults().add(throttled());
        let failure = strategy.run(&world).await.expect_err("it stays throttled");
        for part in ["update alias live of function shop", "too many calls"] {
            assert!(failure.message.contains(part), "{}", failure.message);
        }
        let account = world.account().await;
        assert!(account.ends_with("live at 1"), "{strategy:?}: {account}");
        // The alias never left its version, so that the rollback need not move it.
        world.run(strategy.rollback(), json!({})).await.done();
        assert_eq!(world.account().await, before, "{strategy:?}");

        world.sandbox.faults().clear();
        let world = strategy.served(&store).await;
        strategy.run(&world).await.expect("version 2");
        world.sandbox.faults().add(throttled());
        let failure = world.run(strategy.rollback(), json!({})).await.failed();
        let left = failure.left_behind.unwrap_or_default();
        assert!(left.contains("function shop"), "{strategy:?}: {left}");
        let account = world.account().await;
        assert!(account.ends_with("live at 2"), "{strategy:?}: {account}");
        world.sandbox.faults().clear();
        let again = world.attempt(strategy.rollback(), json!({}), 1).await;
        again.done();
        assert_eq!(world.account().await, before, "{strategy:?}");
        assert!(world.traffic_was_ready(), "{strategy:?}");
    }
}
