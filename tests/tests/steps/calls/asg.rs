//! The strategies of Auto Scaling groups.

use serde_json::{Value, json};

use super::{DEPLOYMENTS, Steps, part, told_each, undone};
use crate::asg::Groups;

/// A way to deploy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Rolling,
    Canary,
    Phased,
    Swap,
    Shift,
}

impl Strategy {
    fn steps(self, groups: &Groups) -> Steps {
        let percent = |share: u32| json!({"instanceSelection": {"type": "Percentage", "spec": {"percentage": share}}});
        let balancer = groups.balancer.as_ref();
        let shift = |weight: u32, downsize: bool| {
            let spec = json!({"weight": weight, "downsizeOldAsg": downsize});
            ("AsgShiftTraffic", spec)
        };
        match self {
            Self::Rolling => vec![
                ("AsgRollingDeploy", json!({"instanceWarmup": 0})),
                ("AsgSteadyState", json!({})),
            ],
            Self::Canary => vec![
                ("AsgCanaryDeploy", percent(50)),
                ("AsgCanaryDelete", json!({})),
                ("AsgRollingDeploy", json!({"instanceWarmup": 0})),
            ],
            Self::Phased => vec![
                ("AsgSetup", json!({"resizeStrategy": "resize_new_first"})),
                ("AsgPhasedDeploy", percent(50)),
                ("AsgPhasedDeploy", percent(100)),
            ],
            Self::Swap => vec![
                (
                    "AsgBlueGreenDeploy",
                    balancer.map_or(Value::Null, |b| b.swap_spec()),
                ),
                ("AsgBlueGreenSwapService", json!({"downsizeOldAsg": true})),
            ],
            Self::Shift => vec![
                (
                    "AsgBlueGreenDeploy",
                    balancer.map_or(Value::Null, |b| b.shift_spec()),
                ),
                shift(30, false),
                shift(100, true),
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
}

/// Deploys each version, rolls it back, and deploys it again for the next one.
async fn told_by(strategy: Strategy) -> String {
    let mut groups = Groups::new().await.beside().await;
    if matches!(strategy, Strategy::Swap | Strategy::Shift) {
        groups.balance(strategy == Strategy::Shift).await;
    }
    let mut parts = Vec::new();
    for number in 1..=DEPLOYMENTS {
        groups.world.next_run();
        groups.deploys(&format!("ami-{number}"), 2);
        let deployed = told_each(&groups.world, strategy.steps(&groups)).await;
        let rolled_back = undone(&groups.world, strategy.rollback()).await;
        parts.push(part(number, &deployed, &rolled_back));
        groups.quiet().await;
        groups.world.next_run();
        told_each(&groups.world, strategy.steps(&groups)).await;
        groups.quiet().await;
    }
    parts.join("\n\n")
}

#[tokio::test(start_paused = true)]
async fn rolling() {
    insta::assert_snapshot!("asg_rolling", told_by(Strategy::Rolling).await);
}

#[tokio::test(start_paused = true)]
async fn canary() {
    insta::assert_snapshot!("asg_canary", told_by(Strategy::Canary).await);
}

#[tokio::test(start_paused = true)]
async fn phased() {
    insta::assert_snapshot!("asg_phased", told_by(Strategy::Phased).await);
}

#[tokio::test(start_paused = true)]
async fn blue_green() {
    insta::assert_snapshot!("asg_blue_green", told_by(Strategy::Swap).await);
}

#[tokio::test(start_paused = true)]
async fn traffic_shift() {
    insta::assert_snapshot!("asg_traffic_shift", told_by(Strategy::Shift).await);
}

#[tokio::test(start_paused = true)]
async fn sizes() {
    let mut groups = Groups::new().await.beside().await;
    let deploy = vec![("AsgRollingDeploy", json!({"instanceWarmup": 0}))];
    told_each(&groups.world, deploy).await;
    let mut parts = Vec::new();
    for number in 1..=DEPLOYMENTS {
        groups.world.next_run();
        let spec = json!({"asgName": "web", "instanceSelection": {"type": "Count", "spec": {"count": number + 2}}});
        let scaled = told_each(&groups.world, vec![("AsgScale", spec)]).await;
        parts.push(part(number, &scaled, &[]));
    }
    insta::assert_snapshot!("asg_sizes", parts.join("\n\n"));
}
