//! `AwsLambdaCanaryDeploy`, `AwsLambdaTrafficShift` and `AwsLambdaCanaryRollback`.

use serde_json::json;
use slipway_sandbox::{Fault, FaultEffect, Pace};
use slipway_store::InstanceFilter;

use super::deploy::{counted, trace};
use super::world::{alias, definition};
use crate::world::{World, scope};

const DEPLOY: &str = "AwsLambdaDeploy";
const CANARY: &str = "AwsLambdaCanaryDeploy";
const SHIFT: &str = "AwsLambdaTrafficShift";
const ROLLBACK: &str = "AwsLambdaCanaryRollback";

/// Canary, a quarter and all of the traffic for it; the calls of each.
async fn deploy(world: &mut World, number: u32) -> String {
    world.next_run();
    world.deploys_package(number).await;
    let mut traces = Vec::new();
    for (step, spec) in [
        (CANARY, json!({})),
        (SHIFT, json!({"trafficPercentage": 25})),
    ] {
        traces.push(trace(world, step, spec).await);
    }
    // The same step again is another attempt here, as it is another step in a pipeline.
    let before = world.sandbox.calls().len();
    world
        .attempt(SHIFT, json!({"trafficPercentage": 100}), 1)
        .await
        .done();
    traces.push(format!(
        "{SHIFT}\n{}",
        world.trace(before).replace('\n', " ")
    ));
    traces.join("\n")
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_the_first_the_second_and_the_third_deployment() {
    let mut world = World::with_pace(Pace::brisk()).await;
    let first = deploy(&mut world, 1).await;
    insta::assert_snapshot!(first, @"
    AwsLambdaCanaryDeploy
    GetFunction CreateFunction GetFunctionConfiguration PublishVersion GetFunctionConfiguration GetAlias GetFunctionConfiguration GetAlias CreateAlias GetFunctionConfiguration
    AwsLambdaTrafficShift
    GetFunctionConfiguration GetAlias
    AwsLambdaTrafficShift
    GetFunctionConfiguration GetAlias GetFunctionConfiguration
    ");
    let second = deploy(&mut world, 2).await;
    insta::assert_snapshot!(second, @"
    AwsLambdaCanaryDeploy
    GetFunction GetAlias GetFunctionConfiguration UpdateFunctionCode GetFunctionConfiguration UpdateFunctionConfiguration GetFunctionConfiguration PublishVersion GetFunctionConfiguration GetAlias GetFunctionConfiguration
    AwsLambdaTrafficShift
    GetFunctionConfiguration GetAlias UpdateAlias
    AwsLambdaTrafficShift
    GetFunctionConfiguration GetAlias UpdateAlias GetFunctionConfiguration
    ");
    assert_eq!(deploy(&mut world, 3).await, second);
    assert_eq!(
        world.account().await,
        "absent, function shop package 3 timeout 7 Active, versions 1 2 3, live at 3"
    );
    assert_eq!(counted(&world).await, [format!("shop:3 by {}", world.run)]);
    assert!(world.traffic_was_ready());
}

#[tokio::test(start_paused = true)]
async fn a_canary_gets_what_it_is_given_and_goes_again() {
    let mut world = World::new().await;
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    let first = world.run.to_string();
    world.next_run();
    world.deploys_package(2).await;
    let outputs = world.run(CANARY, json!({})).await.done();
    assert_eq!(
        (
            &outputs["output"]["functionName"],
            &outputs["output"]["version"]
        ),
        (&json!("shop"), &json!("2"))
    );
    let code = "absent, function shop package 2 timeout 6 Active, versions 1 2";
    assert_eq!(world.account().await, format!("{code}, live at 1"));
    let both = [
        format!("shop:1 by {first}"),
        format!("shop:2 by {}", world.run),
    ];
    assert_eq!(counted(&world).await, both);
    let shifted = world
        .run(SHIFT, json!({"trafficPercentage": "7.5"}))
        .await
        .done();
    assert_eq!(
        shifted["output"],
        json!({"functionName": "shop", "version": "2", "trafficPercentage": 7.5})
    );
    assert_eq!(
        world.account().await,
        format!("{code}, live at 1 and 0.075 at 2")
    );
    insta::assert_snapshot!(world.log(SHIFT, "Traffic Shift").await, @"
    Updated Alias live for function shop with version 1 and 7.5 % to version 2.
    Version 2 of function shop gets 7.5 % of the traffic
    ");
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(
        world.account().await,
        "absent, function shop package 1 timeout 5 Active, versions 1, live at 1"
    );
    assert_eq!(counted(&world).await, [format!("shop:1 by {first}")]);
    insta::assert_snapshot!(world.log(ROLLBACK, "Rollback").await, @"
    Updated Alias live for function shop with version 1.
    Bringing back the code of version 1
    Function [shop] in eu-west-1 (infrastructure prod_cluster) is being changed: waiting for the end of that
    Bringing back the configuration of the function
    Function [shop] in eu-west-1 (infrastructure prod_cluster) is being changed: waiting for the end of that
    Deleted version 2, which this run published
    Function shop is back on version 1: rolled back cleanly
    ");
    assert!(world.traffic_was_ready());
}

#[tokio::test(start_paused = true)]
async fn all_of_the_traffic_comes_back_too() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    let first = world.run.to_string();
    world.next_run();
    world.deploys_package(2).await;
    world.run(CANARY, json!({})).await.done();
    world
        .run(SHIFT, json!({"trafficPercentage": 100}))
        .await
        .done();
    assert_eq!(counted(&world).await, [format!("shop:2 by {}", world.run)]);
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(
        world.account().await,
        "absent, function shop package 1 timeout 5 Active, versions 1, live at 1"
    );
    assert_eq!(counted(&world).await, [format!("shop:1 by {first}")]);
}

#[tokio::test(start_paused = true)]
async fn a_new_alias_of_an_old_function_stays_with_the_old_version() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    world.deploys_package(2).await;
    let mut second = definition();
    second["timeout"] = json!(6);
    world.deploys_function(&second, &[alias("live"), alias("beta")]);
    world.run(CANARY, json!({})).await.done();
    let account = world.account().await;
    assert!(account.ends_with("beta at 1, live at 1"), "{account}");
    world.run(ROLLBACK, json!({})).await.done();
    let account = world.account().await;
    assert!(account.ends_with("versions 1, live at 1"), "{account}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_a_canary_is_refused_before_anything_is_changed() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    world.deploys_function(&definition(), &[]);
    let failure = world.run(CANARY, json!({})).await.failed();
    assert!(
        failure.message.contains("needs an alias"),
        "{}",
        failure.message
    );
    world.next_run();
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    // What is there was changed by hand since, and would be published to come back to it.
    let by_hand = world.lambda().update_function_configuration();
    let by_hand = by_hand.function_name("shop").timeout(9).send().await;
    by_hand.expect("changed");
    let published = world.count("PublishVersion");
    let mut other = definition();
    other["role"] = json!("arn:aws:iam::123456789012:role/other");
    world.deploys_function(&other, &[alias("live")]);
    let failure = world.run(CANARY, json!({})).await.failed();
    for part in ["another execution role", "version 1", "AwsLambdaDeploy"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    assert_eq!(world.count("UpdateFunctionCode"), 0);
    assert_eq!(world.count("PublishVersion"), published);
    world.run(ROLLBACK, json!({})).await.done();
    world.next_run();
    world.deploys_package(2).await;
    let latest = world
        .lambda()
        .update_alias()
        .function_name("shop")
        .name("live");
    latest
        .function_version("$LATEST")
        .send()
        .await
        .expect("an alias");
    let failure = world.run(CANARY, json!({})).await.failed();
    assert!(
        failure.message.contains("points to $LATEST"),
        "{}",
        failure.message
    );
    assert_eq!(world.count("UpdateFunctionCode"), 0);
    assert_eq!(world.count("PublishVersion"), published);
}

#[tokio::test(start_paused = true)]
async fn an_image_needs_no_alias_but_its_traffic_does() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_image("1", &[]).await;
    world.run(CANARY, json!({})).await.done();
    let failure = world
        .run(SHIFT, json!({"trafficPercentage": 10}))
        .await
        .failed();
    assert!(
        failure
            .message
            .contains("no AwsLambdaFunctionAliasDefinition"),
        "{}",
        failure.message
    );
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(world.account().await, "absent");
}

#[tokio::test(start_paused = true)]
async fn shares_that_make_no_sense_are_refused() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    let failure = world
        .run(SHIFT, json!({"trafficPercentage": 10}))
        .await
        .failed();
    assert!(
        failure.message.contains("no AwsLambdaCanaryDeploy step"),
        "{}",
        failure.message
    );
    world.next_run();
    world.run(CANARY, json!({})).await.done();
    let before = world.account().await;
    for (attempt, share) in [json!(0), json!(101), json!("much"), json!(null)]
        .into_iter()
        .enumerate()
    {
        let attempt = u32::try_from(attempt).expect("few");
        let failure = world
            .attempt(SHIFT, json!({"trafficPercentage": share}), attempt)
            .await
            .failed();
        assert!(
            failure.message.contains("`trafficPercentage`"),
            "{}",
            failure.message
        );
    }
    assert_eq!(world.account().await, before);
}

#[tokio::test(start_paused = true)]
async fn an_alias_that_is_throttled_is_shifted_later_or_not_at_all() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    world.deploys_package(2).await;
    world.run(CANARY, json!({})).await.done();
    let throttled = |count| Fault {
        service: Some("lambda".to_owned()),
        operation: Some("UpdateAlias".to_owned()),
        skip: 0,
        count,
        effect: FaultEffect::Throttle,
    };
    world.sandbox.faults().add(throttled(Some(3)));
    world
        .run(SHIFT, json!({"trafficPercentage": 10}))
        .await
        .done();
    assert_eq!(world.count("UpdateAlias"), 4);
    world.sandbox.faults().add(throttled(None));
    let failure = world
        .attempt(SHIFT, json!({"trafficPercentage": 50}), 1)
        .await
        .failed();
    for part in [
        "update alias live of function shop",
        "TooManyRequestsException",
        "too many calls",
    ] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    let account = world.account().await;
    assert!(account.ends_with("live at 1 and 0.1 at 2"), "{account}");
    world.sandbox.faults().clear();
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(
        world.account().await,
        "absent, function shop package 1 timeout 5 Active, versions 1, live at 1"
    );
}

/// Version, run and artifact of what is counted.
async fn artifacts(world: &World) -> Vec<String> {
    let filter = InstanceFilter::default();
    let found = world.store.list_instances(&scope(), &filter).await;
    let mut found: Vec<String> = found
        .expect("a list")
        .into_iter()
        .map(|one| {
            let version = one.info["version"].as_str().unwrap_or("?").to_owned();
            let run = one.run.map_or("?".to_owned(), |run| run.to_string());
            format!("{version} of {} by {run}", one.artifact.unwrap_or_default())
        })
        .collect();
    found.sort_unstable();
    found
}

#[tokio::test(start_paused = true)]
async fn what_shared_the_traffic_before_a_canary_shares_it_after_its_rollback() {
    let live = [alias("live")];
    for whole in [false, true] {
        let mut world = World::with_pace(Pace::brisk()).await;
        let shares = |share: u32| json!({"trafficPercentage": share});
        for tag in ["1", "2"] {
            world.next_run();
            world.deploys_image(tag, &live).await;
            world.run(DEPLOY, json!({})).await.done();
        }
        world.next_run();
        world.deploys_image("3", &live).await;
        world.run(CANARY, json!({})).await.done();
        world.run(SHIFT, shares(20)).await.done();
        let before = artifacts(&world).await;
        let versions: Vec<_> = before.iter().map(|one| &one[..1]).collect();
        assert_eq!(versions, ["2", "3"]);
        world.next_run();
        world.deploys_image("4", &live).await;
        world.run(CANARY, json!({})).await.done();
        assert_eq!(
            artifacts(&world).await.len(),
            3,
            "none has lost its traffic"
        );
        let share = if whole { 100 } else { 20 };
        world.run(SHIFT, shares(share)).await.done();
        let now = artifacts(&world).await;
        let versions: Vec<_> = now.iter().map(|one| &one[..1]).collect();
        let expected: &[&str] = if whole { &["4"] } else { &["2", "4"] };
        assert_eq!(versions, expected);
        world.run(ROLLBACK, json!({})).await.done();
        let account = world.account().await;
        assert!(account.ends_with("live at 2 and 0.2 at 3"), "{account}");
        assert_eq!(artifacts(&world).await, before);
    }
}
