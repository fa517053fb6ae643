//! The strategies of Lambda.

use serde_json::json;
use slipway_sandbox::Pace;

use super::{DEPLOYMENTS, Steps, part, told_each, undone};
use crate::world::World;

/// Deploys each version, rolls it back, and deploys it again for the next one.
async fn told_by(steps: Steps, rollback: &[&'static str]) -> String {
    let mut world = World::with_pace(Pace::brisk()).await;
    let mut parts = Vec::new();
    for number in 1..=DEPLOYMENTS {
        world.next_run();
        world.deploys_package(number).await;
        let deployed = told_each(&world, steps.clone()).await;
        let rolled_back = undone(&world, rollback).await;
        parts.push(part(number, &deployed, &rolled_back));
        world.next_run();
        told_each(&world, steps.clone()).await;
    }
    parts.join("\n\n")
}

#[tokio::test(start_paused = true)]
async fn all_at_once() {
    let steps = vec![("AwsLambdaDeploy", json!({}))];
    insta::assert_snapshot!("lambda", told_by(steps, &["AwsLambdaRollback"]).await);
}

#[tokio::test(start_paused = true)]
async fn canary() {
    let shift = |share: u32| ("AwsLambdaTrafficShift", json!({"trafficPercentage": share}));
    let steps = vec![("AwsLambdaCanaryDeploy", json!({})), shift(25), shift(100)];
    let told = told_by(steps, &["AwsLambdaCanaryRollback"]).await;
    insta::assert_snapshot!("lambda_canary", told);
}
