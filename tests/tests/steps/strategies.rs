//! Every ECS strategy behind a load balancer, with versions that do not work and an AWS that refuses: what served
//! before serves again, and every request is answered.

use serde_json::{Value, json};
use slipway_model::status::{ErrorType, Failure};
use slipway_sandbox::{Fault, FaultEffect, Pace};

use crate::balancer::{Kind, balanced_definition, inherit_spec, without_stopped};
use crate::world::{Ended, World, task_definition};

/// A step type and its spec.
type Steps = Vec<(&'static str, Value)>;

/// A way to deploy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    Rolling,
    Canary,
    Basic,
    Swap,
    Shift,
}

const ALL: [Strategy; 5] = [
    Strategy::Rolling,
    Strategy::Canary,
    Strategy::Basic,
    Strategy::Swap,
    Strategy::Shift,
];

impl Strategy {
    pub(crate) fn rules(self) -> Kind {
        match self {
            Self::Shift => Kind::Weighted,
            _ => Kind::Own,
        }
    }

    /// The steps of deployment `number`, from 0.
    pub(crate) fn steps(self, world: &World, number: usize) -> Steps {
        let balancer = world.balancer.as_ref().expect("a load balancer");
        let upgrade = |percent: u32| {
            let spec =
                json!({"newServiceInstanceCount": percent, "newServiceInstanceUnit": "Percentage"});
            ("EcsUpgradeContainer", spec)
        };
        match self {
            Self::Rolling => vec![("EcsRollingDeploy", json!({}))],
            Self::Canary => vec![
                ("EcsCanaryDeploy", json!({})),
                ("EcsCanaryDelete", json!({})),
                ("EcsRollingDeploy", json!({})),
            ],
            Self::Basic => vec![("EcsServiceSetup", json!({})), upgrade(50), upgrade(100)],
            Self::Swap => vec![
                ("EcsBlueGreenCreateService", balancer.swap_spec()),
                ("EcsBlueGreenSwapTargetGroups", json!({})),
            ],
            Self::Shift => vec![
                ("EcsBlueGreenCreateService", balancer.shift_spec(number % 2)),
                ("EcsBlueGreenTrafficShift", inherit_spec(30)),
                ("EcsBlueGreenTrafficShift", inherit_spec(100)),
            ],
        }
    }

    pub(crate) fn rollback(self) -> &'static [&'static str] {
        match self {
            Self::Rolling => &["EcsRollingRollback"],
            Self::Canary => &["EcsCanaryDelete", "EcsRollingRollback"],
            Self::Basic => &["EcsBasicRollback"],
            Self::Swap | Self::Shift => &["EcsBlueGreenRollback"],
        }
    }

    /// An account in which version 1 serves.
    async fn served(self, pace: Pace) -> World {
        let mut world = World::with_pace(pace).await;
        world.balance(self.rules()).await;
        self.deploys(&mut world, "nginx:1", false);
        self.run(&world, 0).await.expect("version 1");
        world.clock.sleep(std::time::Duration::from_secs(60)).await;
        world.next_run();
        world
    }

    pub(crate) fn deploys(self, world: &mut World, image: &str, breaker: bool) {
        let mut definition = balanced_definition(2);
        if breaker {
            definition["deploymentConfiguration"]["deploymentCircuitBreaker"] =
                json!({"enable": true, "rollback": true});
        }
        if !matches!(self, Self::Swap | Self::Shift) {
            let group = &world.balancer.as_ref().expect("a load balancer").groups[0];
            definition["loadBalancers"][0]["targetGroupArn"] = json!(group);
        }
        world.deploys(&task_definition(image), &definition);
    }

    /// Runs the steps of a deployment until one fails.
    pub(crate) async fn run(self, world: &World, number: usize) -> Result<(), Failure> {
        for (attempt, (step, spec)) in (0..).zip(self.steps(world, number)) {
            if let Ended::Failed(failure) = world.attempt(step, spec, attempt).await {
                return Err(failure);
            }
        }
        Ok(())
    }

    async fn roll_back(self, world: &World) {
        for step in self.rollback() {
            world.attempt(step, json!({}), 9).await.done();
        }
        world.clock.sleep(std::time::Duration::from_secs(300)).await;
    }
}

/// The task definition that gets the requests.
async fn live(world: &World) -> String {
    let since = world.clock.now();
    world.clock.sleep(std::time::Duration::from_secs(1)).await;
    let reached = world.requests(since).by_task_definition;
    assert_eq!(reached.len(), 1, "{reached:?}");
    reached.into_keys().next().expect("one")
}

#[tokio::test(start_paused = true)]
async fn a_version_that_does_not_work_is_undone_and_nobody_notices() {
    for strategy in ALL {
        for (image, breaker) in [
            ("nginx:missing", false),
            ("nginx:exits-1", false),
            ("nginx:unhealthy", false),
            ("nginx:missing", true),
        ] {
            let what = format!("{strategy:?} of {image}, circuit breaker {breaker}");
            let mut world = strategy.served(Pace::realistic()).await;
            let (before, since) = (world.account().await, world.clock.now());
            let live = live(&world).await;
            strategy.deploys(&mut world, image, breaker);
            let failure = strategy.run(&world, 1).await.expect_err(&what);
            assert!(
                failure.message.contains("Tasks stopped because"),
                "{what}: {}",
                failure.message
            );
            strategy.roll_back(&world).await;
            assert_eq!(without_stopped(&world.account().await), before, "{what}");
            let requests = world.requests(since);
            assert!(requests.failed == 0.0, "{what}: {requests:?}");
            let reached: Vec<_> = requests.by_task_definition.keys().collect();
            assert_eq!(reached, [&live], "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_calls_are_repeated_until_they_go_through() {
    for strategy in ALL {
        let mut world = strategy.served(Pace::brisk()).await;
        let (before, since) = (world.account().await, world.clock.now());
        let old = live(&world).await;
        strategy.deploys(&mut world, "nginx:2", false);
        let mut operations: Vec<String> = world
            .sandbox
            .calls()
            .into_iter()
            .map(|call| call.operation)
            .collect();
        operations.sort_unstable();
        operations.dedup();
        for operation in operations {
            world.sandbox.faults().add(Fault {
                service: None,
                operation: Some(operation),
                skip: 0,
                count: Some(3),
                effect: FaultEffect::Throttle,
            });
        }
        // The test itself looks past the faults, which are gone when the deployment has used them up.
        strategy
            .run(&world, 1)
            .await
            .unwrap_or_else(|failure| panic!("{strategy:?}: {failure:?}"));
        world.sandbox.faults().clear();
        let requests = world.requests(since);
        assert!(requests.failed == 0.0, "{strategy:?}: {requests:?}");
        let account = world.account().await;
        assert_ne!(account, before, "{strategy:?}");
        assert_ne!(live(&world).await, old, "{strategy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_expire_in_the_middle_leave_nothing_that_a_rollback_cannot_undo() {
    for strategy in ALL {
        for skip in (0..).step_by(11) {
            let what = format!("{strategy:?} after {skip} calls");
            let mut world = strategy.served(Pace::brisk()).await;
            let (before, since) = (world.account().await, world.clock.now());
            strategy.deploys(&mut world, "nginx:2", false);
            let fault = world.sandbox.faults().add(Fault {
                service: None,
                operation: None,
                skip,
                count: None,
                effect: FaultEffect::ExpiredCredentials,
            });
            let ended = strategy.run(&world, 1).await;
            world.sandbox.faults().remove(fault);
            let Err(failure) = ended else {
                assert!(skip > 0, "{what}");
                break;
            };
            assert_eq!(
                failure.error,
                ErrorType::Authentication,
                "{what}: {failure:?}"
            );
            strategy.roll_back(&world).await;
            assert_eq!(without_stopped(&world.account().await), before, "{what}");
            let requests = world.requests(since);
            assert!(requests.failed == 0.0, "{what}: {requests:?}");
        }
    }
}
