//! `AwsLambdaDeploy` and `AwsLambdaRollback`.

use serde_json::{Value, json};
use slipway_fn_instances::{Deps, sweep};
use slipway_sandbox::{Fault, FaultEffect, Pace};
use slipway_store::InstanceFilter;

use super::world::{alias, definition, image};
use crate::world::{PASSWORD, World, scope};

const DEPLOY: &str = "AwsLambdaDeploy";
const ROLLBACK: &str = "AwsLambdaRollback";

/// Function, version and run of each instance that is counted.
pub(crate) async fn counted(world: &World) -> Vec<String> {
    let found = world
        .store
        .list_instances(&scope(), &InstanceFilter::default())
        .await;
    let mut found: Vec<_> = found
        .expect("a list")
        .into_iter()
        .map(|instance| {
            let run = instance.run.map_or("?".to_owned(), |run| run.to_string());
            let text = |name: &str| instance.info[name].as_str().unwrap_or("?").to_owned();
            format!("{}:{} by {run}", text("functionName"), text("version"))
        })
        .collect();
    found.sort_unstable();
    found
}

/// The calls of a step.
pub(crate) async fn trace(world: &World, step: &str, spec: Value) -> String {
    let before = world.sandbox.calls().len();
    world.run(step, spec).await.done();
    format!("{step}\n{}", world.trace(before).replace('\n', " "))
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_the_first_the_second_and_the_third_deployment() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    insta::assert_snapshot!(trace(&world, DEPLOY, json!({})).await, @"
    AwsLambdaDeploy
    GetFunction CreateFunction GetFunctionConfiguration PublishVersion GetFunctionConfiguration GetAlias CreateAlias GetFunctionConfiguration
    ");
    world.next_run();
    world.deploys_package(2).await;
    let second = trace(&world, DEPLOY, json!({})).await;
    insta::assert_snapshot!(second, @"
    AwsLambdaDeploy
    GetFunction GetAlias GetFunctionConfiguration UpdateFunctionCode GetFunctionConfiguration UpdateFunctionConfiguration GetFunctionConfiguration PublishVersion GetFunctionConfiguration GetAlias UpdateAlias GetFunctionConfiguration
    ");
    world.next_run();
    world.deploys_package(3).await;
    assert_eq!(trace(&world, DEPLOY, json!({})).await, second);
    assert_eq!(
        world.account().await,
        "absent, function shop package 3 timeout 7 Active, versions 1 2 3, live at 3"
    );
    insta::assert_snapshot!(trace(&world, ROLLBACK, json!({})).await, @"
    AwsLambdaRollback
    GetAlias UpdateAlias GetFunctionConfiguration GetFunction UpdateFunctionCode GetFunctionConfiguration UpdateFunctionConfiguration GetFunctionConfiguration DeleteFunction GetFunctionConfiguration
    ");
    assert_eq!(
        world.account().await,
        "absent, function shop package 2 timeout 6 Active, versions 1 2, live at 2"
    );
    assert!(world.traffic_was_ready());
}

#[tokio::test(start_paused = true)]
async fn what_is_published_already_is_not_published_again_after_a_rollback() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    for package in [2, 3, 4] {
        world.next_run();
        world.deploys_package(package).await;
        world.run(DEPLOY, json!({})).await.done();
        world.run(ROLLBACK, json!({})).await.done();
        assert_eq!(
            world.account().await,
            "absent, function shop package 1 timeout 5 Active, versions 1, live at 1"
        );
    }
    // Somebody's change is not what was deployed: it is published, and that is told.
    let client = world.lambda();
    let change = client.update_function_configuration().function_name("shop");
    change.timeout(60).send().await.expect("changed");
    world.clock.sleep(std::time::Duration::from_secs(5)).await;
    world.next_run();
    world.deploys_package(5).await;
    world.run(DEPLOY, json!({})).await.done();
    let log = world.log(DEPLOY, "Prepare Rollback").await;
    assert!(
        log.contains("Published what is there as version 5, to come back to it"),
        "{log}"
    );
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(
        world.account().await,
        "absent, function shop package 1 timeout 60 Active, versions 1 5, live at 1"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_person_reads_and_expressions_see() {
    let mut world = World::new().await;
    world.deploys_package(1).await;
    let outputs = world.run(DEPLOY, json!({})).await.done();
    insta::assert_json_snapshot!(outputs, @r#"
    {
      "output": {
        "functionName": "shop",
        "functionArn": "arn:aws:lambda:eu-west-1:123456789012:function:shop:1",
        "version": "1",
        "deploymentInfoOutcome": {
          "serverInstanceInfoList": [
            {
              "type": "AwsLambdaServerInstanceInfo",
              "region": "eu-west-1",
              "functionName": "shop",
              "functionArn": "arn:aws:lambda:eu-west-1:123456789012:function:shop:1",
              "version": "1",
              "runtime": "nodejs22.x",
              "handler": "index.handler",
              "memorySize": 128,
              "packageType": "Zip",
              "lastModified": "2026-01-01T00:00:04.000+0000"
            }
          ]
        }
      },
      "deploymentInfoOutcome": {
        "serverInstanceInfoList": [
          {
            "type": "AwsLambdaServerInstanceInfo",
            "region": "eu-west-1",
            "functionName": "shop",
            "functionArn": "arn:aws:lambda:eu-west-1:123456789012:function:shop:1",
            "version": "1",
            "runtime": "nodejs22.x",
            "handler": "index.handler",
            "memorySize": 128,
            "packageType": "Zip",
            "lastModified": "2026-01-01T00:00:04.000+0000"
          }
        ]
      }
    }
    "#);
    insta::assert_snapshot!(world.log(DEPLOY, "Prepare Rollback").await, @"
    Fetching Function Details for function: shop
    Function shop does not exist: this is its first deployment
    Prepare Rollback Done.
    ");
    insta::assert_snapshot!(world.log(DEPLOY, "Deploy").await, @"
    Function: [shop] does not exist. Create and Publish.
    Verifying if status of function to be Successful
    function: [shop], status: [InProgress], reason: [The function is being created. (Creating)]
    Publishing new version
    Published new version: [1]
    Published function ARN: [arn:aws:lambda:eu-west-1:123456789012:function:shop:1]
    Verifying if status of function to be Successful
    function: [shop], status: [InProgress], reason: [The function is being created. (Creating)]
    Successfully deployed lambda function: [shop]
    Create or Update Aliases for function shop with version 1.
    Created Alias live for function shop with version 1.
    Done Creating Aliases
    Done
    ");
    world.next_run();
    world.deploys_package(2).await;
    world.run(DEPLOY, json!({})).await.done();
    insta::assert_snapshot!(world.log(DEPLOY, "Prepare Rollback").await, @r#"
    Fetching Function Details for function: shop
    Function Version: 1
    FunctionARN: arn:aws:lambda:eu-west-1:123456789012:function:shop:1
    CodeSha256: aunnfDHEjmX9KH4fQ+SXKCT9SvnMiXyzsL1zolJRiNo=
    Memory Size: 128
    Runtime: nodejs22.x
    CodeSize: 13
    Handler: index.handler
    Architecture: ["x86_64"]
    Prepare Rollback Done.
    "#);
    insta::assert_snapshot!(world.log(DEPLOY, "Deploy").await, @"
    Function: [shop] already exists. Update and Publish.
    Updating the code of the function to s3://packages/shop-2.zip
    Updated Function Code Sha256: [vttQ0O1+2O45sH54KGr4UMYsrLASOxOR0NvtDlJyBLs=]
    Verifying if status of function to be Successful
    function: [shop], status: [InProgress], reason: [The function is being created. (Creating)]
    Updated Function ARN: [arn:aws:lambda:eu-west-1:123456789012:function:shop]
    Verifying if status of function to be Successful
    function: [shop], status: [InProgress], reason: [The function is being created. (Creating)]
    Publishing new version
    Published new version: [2]
    Published function ARN: [arn:aws:lambda:eu-west-1:123456789012:function:shop:2]
    Verifying if status of function to be Successful
    function: [shop], status: [InProgress], reason: [The function is being created. (Creating)]
    Successfully deployed lambda function: [shop]
    Create or Update Aliases for function shop with version 2.
    Updated Alias live for function shop with version 2.
    Done Creating Aliases
    Done
    ");
    assert!(!world.everything_stored().await.contains(PASSWORD));
    world.run(ROLLBACK, json!({})).await.done();
    insta::assert_snapshot!(world.log(ROLLBACK, "Rollback").await, @"
    Updated Alias live for function shop with version 1.
    Bringing back the code of version 1
    Function [shop] in eu-west-1 (infrastructure prod_cluster) is being changed: waiting for the end of that
    Bringing back the configuration of the function
    Function [shop] in eu-west-1 (infrastructure prod_cluster) is being changed: waiting for the end of that
    Deleted version 2, which this run published
    Function shop is back on version 1: rolled back cleanly
    ");
    let kept = world
        .lambda()
        .get_function_configuration()
        .function_name("shop")
        .send()
        .await;
    let variables = kept
        .expect("an answer")
        .environment
        .and_then(|environment| environment.variables);
    let password = variables.and_then(|variables| variables.get("PASSWORD").cloned());
    assert_eq!(password.as_deref(), Some(PASSWORD));
}

#[tokio::test(start_paused = true)]
async fn one_version_is_one_instance() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    let first = world.run.to_string();
    assert_eq!(counted(&world).await, [format!("shop:1 by {first}")]);
    world.next_run();
    world.deploys_package(2).await;
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(counted(&world).await, [format!("shop:2 by {}", world.run)]);
    let deps = Deps {
        services: world.services.clone(),
    };
    let swept = sweep(&deps).await.expect("a sweep");
    assert_eq!((swept.counted, swept.failed), (1, 0), "{swept:?}");
    assert_eq!(counted(&world).await, [format!("shop:2 by {}", world.run)]);
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(counted(&world).await, [format!("shop:1 by {first}")]);
    world
        .lambda()
        .delete_function()
        .function_name("shop")
        .send()
        .await
        .expect("deleted");
    sweep(&deps).await.expect("a sweep");
    assert_eq!(counted(&world).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_image_is_deployed_and_brought_back_by_its_digest() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_image("1", &[]).await;
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    world.deploys_image("2", &[]).await;
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(
        world.account().await,
        "absent, function shop image 2 timeout 5 Active, versions 1 2"
    );
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(
        world.account().await,
        "absent, function shop image 1 timeout 5 Active, versions 1"
    );
    let found = world
        .lambda()
        .get_function()
        .function_name("shop")
        .send()
        .await
        .expect("the function");
    let code = found.code().and_then(|code| code.image_uri());
    assert!(
        code.is_some_and(|uri| uri.starts_with(&image("").replace(":", "")[..20])),
        "{code:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_new_publishes_nothing() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    let again = world.run(DEPLOY, json!({})).await.done();
    assert_eq!(again["output"]["version"], "1");
    let account = "absent, function shop package 1 timeout 5 Active, versions 1, live at 1";
    assert_eq!(world.account().await, account);
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(
        world.account().await,
        account,
        "the version was there before"
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_changed_by_hand_before_is_brought_back() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    world.somebody_changes_code().await;
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    world.next_run();
    world.deploys_package(2).await;
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(
        world.account().await,
        "absent, function shop package 2 timeout 6 Active, versions 1 2 3, live at 3"
    );
}

#[tokio::test(start_paused = true)]
async fn every_field_of_the_definition_reaches_aws() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    let mut wanted = definition();
    for (name, value) in [
        (
            "KmsKeyArn",
            json!("arn:aws:kms:eu-west-1:123456789012:key/1"),
        ),
        ("MemorySize", json!("512")),
        (
            "vpcConfig",
            json!({"securityGroupIds": ["sg-1"], "SubnetIds": ["subnet-1"]}),
        ),
        ("ephemeralStorage", json!({"size": 1024})),
        ("tags", json!({"team": "shop"})),
        ("architectures", json!(["arm64"])),
        ("quantumState", json!({"entangled": true})),
        ("publish", json!(true)),
        (
            "code",
            json!({"s3Bucket": "ignored", "sourceKMSKeyArn": "arn:aws:kms:x"}),
        ),
        ("layers", Value::Null),
    ] {
        wanted[name] = value;
    }
    world.deploys_function(&wanted, &[alias("live"), alias("test")]);
    world.run(DEPLOY, json!({})).await.done();
    let log = world.log(DEPLOY, "Fetch manifests").await;
    assert!(
        log.contains("`quantumState` is not a field of CreateFunction that this version"),
        "{log}"
    );
    let found = world
        .lambda()
        .get_function()
        .function_name("shop")
        .send()
        .await
        .expect("the function");
    let configuration = found.configuration().expect("a configuration");
    assert_eq!(
        configuration.kms_key_arn(),
        Some("arn:aws:kms:eu-west-1:123456789012:key/1")
    );
    assert_eq!(configuration.memory_size(), Some(512));
    assert_eq!(configuration.architectures()[0].as_str(), "arm64");
    assert_eq!(
        configuration.vpc_config().expect("a VPC").subnet_ids(),
        ["subnet-1"]
    );
    assert_eq!(found.tags().expect("tags")["team"], "shop");
    let account = world.account().await;
    assert!(account.ends_with("live at 1, test at 1"), "{account}");
    world.next_run();
    wanted["tags"] = json!({"team": "store", "new": "1"});
    wanted["vpcConfig"] = json!({"securityGroupIds": [], "subnetIds": []});
    world.deploys_function(&wanted, &[alias("live"), alias("test")]);
    world.run(DEPLOY, json!({})).await.done();
    world.run(ROLLBACK, json!({})).await.done();
    let found = world
        .lambda()
        .get_function()
        .function_name("shop")
        .send()
        .await
        .expect("the function");
    let configuration = found.configuration().expect("a configuration");
    assert_eq!(
        configuration.vpc_config().expect("a VPC").subnet_ids(),
        ["subnet-1"]
    );
    assert_eq!(found.tags().map(|tags| tags.len()), Some(1));
    assert_eq!(found.tags().expect("tags")["team"], "shop");
}

/// Found by a tester: what was noted before came back into the records, whatever the aliases pointed to.
#[tokio::test(start_paused = true)]
async fn after_a_rollback_the_instance_is_what_the_alias_points_to() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    world.somebody_moves_live().await;
    world.next_run();
    world.deploys_package(2).await;
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(counted(&world).await, [format!("shop:3 by {}", world.run)]);
    let log = world.log(DEPLOY, "Prepare Rollback").await;
    let told = "The aliases of function shop in eu-west-1 (infrastructure prod_cluster) point to version 2, and Slipway's \
                records say version 1: ";
    assert!(log.contains(told), "{log}");
    world.run(ROLLBACK, json!({})).await.done();
    let account = "absent, function shop package 1 timeout 9 Active, versions 1 2, live at 2";
    assert_eq!(world.account().await, account);
    // Whose it is nobody knows.
    assert_eq!(counted(&world).await, ["shop:2 by ?"]);
    let stored = world.store.list_deployed().await.expect("a list");
    assert_eq!(stored[0].artifact, None);

    // It is what the next deployment finds, and there is nothing to warn of.
    world.next_run();
    world.deploys_package(3).await;
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(counted(&world).await, [format!("shop:4 by {}", world.run)]);
    let log = world.log(DEPLOY, "Prepare Rollback").await;
    assert!(!log.contains("records say"), "{log}");
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(counted(&world).await, ["shop:2 by ?"]);
}

#[tokio::test(start_paused = true)]
async fn an_alias_at_latest_stays_with_what_that_was_and_comes_back_to_it() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    world.somebody_points_live_to_latest().await;
    for refused in [true, false] {
        world.next_run();
        world.deploys_package(2).await;
        if refused {
            world.sandbox.faults().add(Fault {
                service: Some("lambda".to_owned()),
                operation: Some("UpdateFunctionConfiguration".to_owned()),
                skip: 0,
                count: None,
                effect: FaultEffect::AccessDenied,
            });
            world.run(DEPLOY, json!({})).await.failed();
            world.sandbox.faults().clear();
            // The new code is there, and gets no requests.
            let account = world.account().await;
            assert!(account.contains("shop package 2 "), "{account}");
            assert!(account.ends_with("live at 2"), "{account}");
        } else {
            world.run(DEPLOY, json!({})).await.done();
            assert_eq!(counted(&world).await, [format!("shop:3 by {}", world.run)]);
        }
        let log = world.log(DEPLOY, "Prepare Rollback").await;
        let held = "Alias live of function shop in eu-west-1 (infrastructure prod_cluster) points to $LATEST, where code serves \
                    before it is seen to work: it points to version 2, which is the same, until the new version is ready. A \
                    rollback brings it back to $LATEST.";
        assert!(log.contains(held), "{log}");
        // What the records say is put right by the first rollback.
        let records = "point to version 2, and Slipway's records say version 1: ";
        assert_eq!(log.contains(records), refused, "{log}");
        world.run(ROLLBACK, json!({})).await.done();
        let account = world.account().await;
        assert!(
            account.starts_with("absent, function shop package 1 timeout 9 Active, versions 1 2"),
            "{account}"
        );
        assert!(account.ends_with("live at $LATEST"), "{account}");
        assert_eq!(counted(&world).await, ["shop:2 by ?"], "{refused}");
        assert!(world.traffic_was_ready());
    }
}
