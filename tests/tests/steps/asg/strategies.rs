//! Every strategy of Auto Scaling groups behind a load balancer, with images that do not work and an AWS that refuses: what
//! served before serves again, and every request is answered.

use serde_json::{Value, json};
use slipway_model::status::{ErrorType, Failure};
use slipway_sandbox::{Fault, FaultEffect};

use super::Groups;
use crate::world::Ended;

/// A step type and its spec.
type Steps = Vec<(&'static str, Value)>;

/// A way to deploy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    Rolling,
    Canary,
    Phased,
    Swap,
    Shift,
}

const ALL: [Strategy; 5] = [
    Strategy::Rolling,
    Strategy::Canary,
    Strategy::Phased,
    Strategy::Swap,
    Strategy::Shift,
];

fn select(percentage: u32) -> Value {
    json!({"instanceSelection": {"type": "Percentage", "spec": {"percentage": percentage}}})
}

impl Strategy {
    fn steps(self, groups: &Groups) -> Steps {
        let balancer = groups.balancer.as_ref().expect("a load balancer");
        let rolling = ("AsgRollingDeploy", json!({"instanceWarmup": 0}));
        match self {
            Self::Rolling => vec![rolling],
            Self::Canary => vec![
                ("AsgCanaryDeploy", select(50)),
                ("AsgCanaryDelete", json!({})),
                rolling,
            ],
            Self::Phased => vec![
                ("AsgSetup", json!({"resizeStrategy": "resize_new_first"})),
                ("AsgPhasedDeploy", select(50)),
                ("AsgPhasedDeploy", select(100)),
            ],
            Self::Swap => vec![
                ("AsgBlueGreenDeploy", balancer.swap_spec()),
                ("AsgBlueGreenSwapService", json!({"downsizeOldAsg": true})),
            ],
            Self::Shift => vec![
                ("AsgBlueGreenDeploy", balancer.shift_spec()),
                ("AsgShiftTraffic", json!({"weight": 30})),
                (
                    "AsgShiftTraffic",
                    json!({"weight": 100, "downsizeOldAsg": true}),
                ),
            ],
        }
    }

    fn rollback(self) -> &'static [&'static str] {
        match self {
            Self::Rolling => &["AsgRollingRollback"],
            Self::Canary => &["AsgCanaryDelete", "AsgRollingRollback"],
            Self::Phased => &["AsgRollback"],
            Self::Swap | Self::Shift => &["AsgBlueGreenRollback"],
        }
    }

    fn deploys(self, groups: &mut Groups, image: &str) {
        groups.deploys(image, 4);
        let blue_green = matches!(self, Self::Swap | Self::Shift);
        if let (Some(balancer), false) = (&groups.balancer, blue_green) {
            let content = &mut groups.world.manifests[1].files[0].1;
            let mut configuration: Value = serde_json::from_str(content).expect("JSON");
            configuration["TargetGroupARNs"] = json!([balancer.groups[0]]);
            configuration["HealthCheckType"] = json!("ELB");
            *content = configuration.to_string();
        }
    }

    /// An account in which version 1 serves.
    async fn served(self, groups: &Groups, brisk: bool) -> Groups {
        let mut groups = match brisk {
            true => groups.beside().await,
            false => Groups::new().await,
        };
        groups.balance(self == Self::Shift).await;
        self.deploys(&mut groups, "ami-1");
        self.run(&groups).await.expect("version 1");
        groups.quiet().await;
        groups.world.next_run();
        let now = groups.world.clock.now();
        if let Some(balancer) = &mut groups.balancer {
            balancer.since = now;
        }
        groups
    }

    /// Runs the steps of a deployment until one fails.
    async fn run(self, groups: &Groups) -> Result<(), Failure> {
        for (attempt, (step, spec)) in (0..).zip(self.steps(groups)) {
            // A repeated attempt of another step type is of no account.
            let attempt = match step {
                "AsgPhasedDeploy" | "AsgShiftTraffic" => attempt,
                _ => 0,
            };
            if let Ended::Failed(failure) = groups.world.attempt(step, spec, attempt).await {
                return Err(failure);
            }
        }
        Ok(())
    }

    async fn roll_back(self, groups: &Groups) {
        for step in self.rollback() {
            groups.world.attempt(step, json!({}), 9).await.done();
        }
        groups.quiet().await;
    }
}

fn check_requests(groups: &Groups, what: &str) {
    let balancer = groups.balancer.as_ref().expect("a load balancer");
    let requests = balancer.requests();
    assert!(requests.sent > 0.0, "{what}: no time has passed");
    assert!(requests.failed == 0.0, "{what}: {requests:?}");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_does_not_work_is_undone_and_nobody_notices() {
    let store = Groups::new().await;
    for strategy in ALL {
        for image in ["ami-0bad", "ami-0dead"] {
            let what = format!("{strategy:?} of {image}");
            let mut groups = strategy.served(&store, false).await;
            let before = groups.account().await;
            strategy.deploys(&mut groups, image);
            strategy.run(&groups).await.expect_err(&what);
            strategy.roll_back(&groups).await;
            assert_eq!(groups.account().await, before, "{what}");
            check_requests(&groups, &what);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_calls_are_repeated_until_they_go_through() {
    let store = Groups::new().await;
    for strategy in ALL {
        let mut groups = strategy.served(&store, true).await;
        let before = groups.account().await;
        strategy.deploys(&mut groups, "ami-2");
        let calls = groups.world.sandbox.calls().into_iter();
        let mut operations: Vec<String> = calls.map(|call| call.operation).collect();
        operations.sort_unstable();
        operations.dedup();
        for operation in operations {
            groups.world.sandbox.faults().add(Fault {
                service: None,
                operation: Some(operation),
                skip: 0,
                count: Some(3),
                effect: FaultEffect::Throttle,
            });
        }
        let ended = strategy.run(&groups).await;
        ended.unwrap_or_else(|failure| panic!("{strategy:?}: {failure:?}"));
        groups.world.sandbox.faults().clear();
        assert_ne!(groups.account().await, before, "{strategy:?}");
        check_requests(&groups, &format!("{strategy:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_expire_in_the_middle_leave_nothing_that_a_rollback_cannot_undo() {
    let store = Groups::new().await;
    for strategy in ALL {
        for skip in (0..).step_by(7) {
            let what = format!("{strategy:?} after {skip} calls");
            let mut groups = strategy.served(&store, true).await;
            let before = groups.account().await;
            strategy.deploys(&mut groups, "ami-2");
            let fault = groups.world.sandbox.faults().add(Fault {
                service: None,
                operation: None,
                skip,
                count: None,
                effect: FaultEffect::ExpiredCredentials,
            });
            let ended = strategy.run(&groups).await;
            groups.world.sandbox.faults().remove(fault);
            let Err(failure) = ended else {
                assert!(skip > 0, "{what}");
                break;
            };
            assert_eq!(
                failure.error,
                ErrorType::Authentication,
                "{what}: {failure:?}"
            );
            strategy.roll_back(&groups).await;
            assert_eq!(groups.account().await, before, "{what}");
            check_requests(&groups, &what);
        }
    }
}

/// What people set of the group that serves is gone after the next deployment, unless manifests say it: that is told before.
#[tokio::test(start_paused = true)]
async fn what_scales_a_group_and_stands_in_no_manifest_is_told_when_it_goes() {
    let store = Groups::new().await;
    for strategy in [
        Strategy::Rolling,
        Strategy::Phased,
        Strategy::Swap,
        Strategy::Shift,
    ] {
        for said in [false, true] {
            let mut groups = strategy.served(&store, true).await;
            let (old, new) = match strategy {
                Strategy::Rolling => ("web", "web"),
                _ => ("web__1", "web__2"),
            };
            let by_hand = json!({"AutoScalingGroupName": old, "PolicyName": "by-hand",
                "AdjustmentType": "ChangeInCapacity", "ScalingAdjustment": 1});
            groups.scaling("PutScalingPolicy", by_hand).await;
            let process =
                json!({"AutoScalingGroupName": old, "ScalingProcesses": ["AlarmNotification"]});
            groups.scaling("SuspendProcesses", process).await;
            strategy.deploys(&mut groups, "ami-2");
            if said {
                groups.scales("by-hand");
            }
            let (step, spec) = strategy.steps(&groups).remove(0);
            groups.world.run(step, spec).await.done();
            let log = groups.world.log(step, "Prepare rollback data").await;
            let lost = match old == new {
                true => " loses scaling policy by-hand in this deployment: ",
                false => " takes over from web__1 without scaling policy by-hand: ",
            };
            assert_eq!(log.contains(lost), !said, "{strategy:?}: {log}");
            let suspended = format!(
                "are suspended (AlarmNotification), and not those of {new}, which takes over from it"
            );
            assert_eq!(log.contains(&suspended), old != new, "{strategy:?}: {log}");
        }
    }
}
