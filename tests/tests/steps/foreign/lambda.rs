//! Functions.

use serde_json::json;
use slipway_sandbox::Pace;

use super::told;
use crate::tap::Mode;
use crate::world::{Ended, World};

const DEPLOY: &str = "AwsLambdaDeploy";
const ROLLBACK: &str = "AwsLambdaRollback";

/// An account with package 2, which this run deployed in the place of package 1.
async fn deployed() -> World {
    let mut world = World::with_pace(Pace::brisk()).await;
    for number in [1, 2] {
        world.next_run();
        world.deploys_package(number).await;
        world.run(DEPLOY, json!({})).await.done();
    }
    world
}

/// Digests are another with each package.
fn without_digest(told: &str) -> String {
    let words = told.split(' ');
    let mut digest = false;
    let words = words.map(|word| {
        let shown = if digest { "…," } else { word };
        digest = word == "digest";
        shown
    });
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn code_that_somebody_else_put_there_is_left_and_requests_come_back() {
    let world = deployed().await;
    world.somebody_changes_code().await;
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    insta::assert_snapshot!(without_digest(&failure.message), @"$LATEST of function shop in eu-west-1 (infrastructure prod_cluster) is left as it is: its code has the digest …, and this run put version 2 there in the place of version 1. Somebody or something else changed it since: look at who did. If version 1 is to come back, deploy it again or put it back by hand.");
    let account = world.account().await;
    assert!(account.contains("function shop package 99 "), "{account}");
    assert!(account.ends_with("live at 1"), "{account}");
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_somebody_else_set_is_left() {
    let world = deployed().await;
    let update = world
        .lambda()
        .update_function_configuration()
        .function_name("shop");
    update.timeout(77).send().await.expect("updated");
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    insta::assert_snapshot!(told(failure), @"
    $LATEST of function shop in eu-west-1 (infrastructure prod_cluster) is left as it is: it has another configuration, and this run put version 2 there in the place of version 1. Somebody or something else changed it since: look at who did. If version 1 is to come back, deploy it again or put it back by hand.
    left behind: $LATEST of function shop in eu-west-1 (infrastructure prod_cluster): it has another configuration; version 1 is not back
    ");
    let account = world.account().await;
    assert!(account.contains("timeout 77 "), "{account}");
}

#[tokio::test(start_paused = true)]
async fn a_first_function_that_somebody_else_changed_is_not_deleted() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    world.somebody_changes_code().await;
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    insta::assert_snapshot!(without_digest(&failure.message), @"$LATEST of function shop in eu-west-1 (infrastructure prod_cluster) is left as it is: its code has the digest …, and this run created it with version 1. Somebody or something else changed it since: look at who did. Delete it by hand if nobody needs it.");
    assert!(world.account().await.contains("function shop package 99 "));
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_was_cut_off_anywhere_is_our_own() {
    let store = World::new().await;
    for call in 1.. {
        let mut world = store.beside(Pace::brisk()).await;
        world.deploys_package(1).await;
        world.run(DEPLOY, json!({})).await.done();
        let before = world.account().await;
        world.next_run();
        world.deploys_package(2).await;
        world.tap.set(Mode::RefuseAfter(call));
        let ended = world.run(DEPLOY, json!({})).await;
        world.tap.set(Mode::Open);
        if let Ended::Done(_) = ended {
            assert!(call > 5, "refused {call} times only");
            break;
        }
        // The next attempt is refused at its first call: what the first one did is undone all the same.
        world.tap.set(Mode::RefuseAfter(0));
        world.attempt(DEPLOY, json!({}), 1).await.failed();
        world.tap.set(Mode::Open);
        world.run(ROLLBACK, json!({})).await.done();
        world.clock.sleep(std::time::Duration::from_secs(60)).await;
        assert_eq!(world.account().await, before, "refused after call {call}");
    }
}
