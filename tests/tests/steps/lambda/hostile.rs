//! Definitions that are wrong, and people who change functions at the same time.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_model::status::ErrorType;
use slipway_sandbox::{ImageBehaviour, ImageRule, Pace};

use super::world::{alias, definition, image};
use crate::world::{World, manifest};

const DEPLOY: &str = "AwsLambdaDeploy";
const ROLLBACK: &str = "AwsLambdaRollback";

fn without(name: &str) -> Value {
    let mut definition = definition();
    definition
        .as_object_mut()
        .expect("a mapping")
        .shift_remove(name);
    definition
}

fn with(name: &str, value: Value) -> Value {
    let mut definition = definition();
    definition[name] = value;
    definition
}

#[tokio::test(start_paused = true)]
async fn definitions_that_are_wrong_are_refused_before_any_call() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    let mut said = Vec::new();
    for wrong in [
        without("functionName"),
        without("role"),
        without("runtime"),
        with("functionNme", json!("x")),
        with("functionName", json!("x".repeat(65))),
        with(
            "functionName",
            json!("arn:aws:lambda:us-east-1:123456789012:function:shop"),
        ),
        with(
            "functionName",
            json!("arn:aws:lambda:eu-west-1:123456789012:function:shop:live"),
        ),
        with("timeout", json!("soon")),
        with("environment", json!(["A=1"])),
        with("imageConfig", json!({"command": ["x"]})),
        with("Timeout", json!(7)),
        json!(["a list"]),
    ] {
        world.deploys_function(&wrong, &[]);
        world.next_run();
        said.push(world.run(DEPLOY, json!({})).await.failed().message);
    }
    for aliases in [
        vec![alias("7")],
        vec![alias("a b")],
        vec![alias("live"), alias("live")],
        vec![json!({"nam": "x"})],
    ] {
        world.deploys_function(&definition(), &aliases);
        world.next_run();
        said.push(world.run(DEPLOY, json!({})).await.failed().message);
    }
    world.manifests.clear();
    world.next_run();
    said.push(world.run(DEPLOY, json!({})).await.failed().message);
    world.manifests = vec![manifest("AwsLambdaFunctionAliasDefinition", &alias("live"))];
    world.next_run();
    said.push(world.run(DEPLOY, json!({})).await.failed().message);
    world.deploys_function(&definition(), &[]);
    world.artifact = None;
    world.next_run();
    said.push(world.run(DEPLOY, json!({})).await.failed().message);
    world.deploys_object("");
    world.next_run();
    said.push(world.run(DEPLOY, json!({})).await.failed().message);
    world.run(ROLLBACK, json!({})).await.done();
    insta::assert_snapshot!(said.join("\n"), @r#"
    Invalid request: The AwsLambdaFunctionDefinition manifest is not right: `FunctionName` is missing.
    Invalid request: The AwsLambdaFunctionDefinition manifest is not right: `Role` is missing.
    Invalid request: The AwsLambdaFunctionDefinition manifest is not right: `Runtime` is missing.
    Invalid request: The manifest awslambdafunctiondefinition (AwsLambdaFunctionDefinition.yaml) does not fit CreateFunction: `functionNme` is not a field of CreateFunction; did you mean `FunctionName`?.
    Invalid request: The AwsLambdaFunctionDefinition manifest is not right: `FunctionName` has 65 characters, and 64 are allowed.
    Invalid request: `FunctionName` arn:aws:lambda:us-east-1:123456789012:function:shop is in us-east-1, and the stage deploys to eu-west-1 (infrastructure prod_cluster).
    Invalid request: The AwsLambdaFunctionDefinition manifest is not right: `FunctionName` arn:aws:lambda:eu-west-1:123456789012:function:shop:live names a version or an alias: name the function alone.
    Invalid request: The manifest awslambdafunctiondefinition (AwsLambdaFunctionDefinition.yaml) does not fit CreateFunction: `timeout` is a text; a whole number is expected.
    Invalid request: The manifest awslambdafunctiondefinition (AwsLambdaFunctionDefinition.yaml) does not fit CreateFunction: `environment` is a list; a mapping (Environment) is expected.
    Invalid request: The AwsLambdaFunctionDefinition manifest is not right: `ImageConfig` does not go with an artifact of package type Zip.
    Invalid request: The manifest awslambdafunctiondefinition (AwsLambdaFunctionDefinition.yaml) does not fit CreateFunction: `Timeout` is given twice, in two spellings.
    Invalid request: The manifest awslambdafunctiondefinition (AwsLambdaFunctionDefinition.yaml) is not a mapping.
    Invalid request: The AwsLambdaFunctionAliasDefinition manifests are not right: `Name` is "7": 1 to 128 letters, digits, hyphens and underscores are allowed, not only digits.
    Invalid request: The AwsLambdaFunctionAliasDefinition manifests are not right: `Name` is "a b": 1 to 128 letters, digits, hyphens and underscores are allowed, not only digits.
    Invalid request: The AwsLambdaFunctionAliasDefinition manifests are not right: two of them are named live.
    Invalid request: The manifest alias1 (AwsLambdaFunctionAliasDefinition.yaml) does not fit CreateAlias: `nam` is not a field of CreateAlias; did you mean `Name`?.
    Invalid request: No manifests found in stage deploy. AwsLambdaDeploy step requires a manifest defined in stage service definition
    Invalid request: Stage deploy needs exactly one AwsLambdaFunctionDefinition manifest in its service, and there are 0.
    Invalid request: service web has no primary artifact, and step AwsLambdaDeploy deploys one: a package in S3 (AmazonS3) or an image in ECR (Ecr).
    Invalid request: `filePath` of artifact primary is empty.
    "#);
    assert!(
        world
            .sandbox
            .calls()
            .iter()
            .all(|call| call.service != "lambda")
    );
}

#[tokio::test(start_paused = true)]
async fn what_aws_refuses_says_what_and_leaves_nothing() {
    let mut world = World::with_pace(Pace::brisk()).await;
    let mut said = Vec::new();
    for wrong in [
        with("role", json!("arn:aws:iam::123456789012:role/not-passable")),
        with("timeout", json!(901)),
    ] {
        world.deploys_package(1).await;
        world.deploys_function(&wrong, &[alias("live")]);
        world.next_run();
        let failure = world.run(DEPLOY, json!({})).await.failed();
        said.push(format!("{:?}: {}", failure.error, failure.message));
        world.run(ROLLBACK, json!({})).await.done();
    }
    world.deploys_package(1).await;
    world.deploys_object("none.zip");
    world.next_run();
    said.push(world.run(DEPLOY, json!({})).await.failed().message);
    world.run(ROLLBACK, json!({})).await.done();
    world.deploys_image("missing", &[]).await;
    world.next_run();
    said.push(world.run(DEPLOY, json!({})).await.failed().message);
    world.run(ROLLBACK, json!({})).await.done();
    insta::assert_snapshot!(said.join("\n"), @"
    Authorization: Cannot create function shop in eu-west-1 (infrastructure prod_cluster): User: arn:aws:iam::123456789012:root is not authorized to perform: iam:PassRole on resource: arn:aws:iam::123456789012:role/not-passable because no identity-based policy allows the iam:PassRole action (AccessDeniedException). Allow the action in the policies of the connector's role or user, service control policies included.
    Unknown: Cannot create function shop in eu-west-1 (infrastructure prod_cluster): 1 validation error detected: Value '901' at 'timeout' failed to satisfy constraint: Member must have value less than or equal to 900 (ValidationException).
    Cannot create function shop in eu-west-1 (infrastructure prod_cluster): Error occurred while GetObject. S3 Error Code: NoSuchKey. S3 Error Message: The object cannot be read. (InvalidParameterValueException).
    Cannot create function shop in eu-west-1 (infrastructure prod_cluster): Source image 123456789012.dkr.ecr.eu-west-1.amazonaws.com/shop:missing does not exist. Provide a valid source image. (InvalidParameterValueException).
    ");
    assert_eq!(world.account().await, "absent");
}

#[tokio::test(start_paused = true)]
async fn traffic_never_reaches_what_did_not_work() {
    let mut world = World::with_pace(Pace::brisk()).await;
    let rule = ImageRule {
        image: image("2"),
        behaviour: ImageBehaviour::Exits,
        exit_code: 1,
    };
    world.sandbox.set_image(rule).expect("a rule");
    world.deploys_image("1", &[alias("live")]).await;
    world.run(DEPLOY, json!({})).await.done();
    let before = world.account().await;
    world.next_run();
    world.deploys_image("2", &[alias("live")]).await;
    let failure = world.run(DEPLOY, json!({})).await.failed();
    for part in ["The update of the code of function shop", "InvalidImage"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(world.account().await, before);
    // And as the first deployment.
    let mut world = world.beside(Pace::brisk()).await;
    world.deploys_image("unhealthy", &[alias("live")]).await;
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert!(
        failure.message.contains("InvalidImage"),
        "{}",
        failure.message
    );
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(world.account().await, "absent");
    assert!(world.traffic_was_ready());
}

#[tokio::test(start_paused = true)]
async fn a_change_by_somebody_else_is_waited_for_before_and_told_in_the_middle() {
    let mut world = World::new().await;
    world.deploys_package(1).await;
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    world.deploys_package(2).await;
    world.somebody_changes_code().await;
    world.run(DEPLOY, json!({})).await.done();
    let log = world.log(DEPLOY, "Prepare Rollback").await;
    assert!(log.contains("is being changed"), "{log}");

    world.next_run();
    world.deploys_package(3).await;
    let before = world.account().await;
    let updates = world.count("UpdateFunctionCode");
    let meddler = async {
        // After the code of the deployment is there, and before its configuration is.
        while world.count("UpdateFunctionCode") == updates {
            world.clock.sleep(Duration::from_millis(50)).await;
        }
        loop {
            let call = world.lambda().update_function_code().function_name("shop");
            let package = aws_sdk_lambda::primitives::Blob::new(super::world::package(98));
            if call.zip_file(package).send().await.is_ok() {
                break;
            }
            world.clock.sleep(Duration::from_millis(10)).await;
        }
    };
    let limit = Duration::from_secs(900);
    let both = async { tokio::join!(world.run(DEPLOY, json!({})), meddler) };
    let (failed, ()) = tokio::time::timeout(limit, both).await.expect("both end");
    let failure = failed.failed();
    assert_eq!(failure.error, ErrorType::Unknown);
    for part in ["changed by somebody else", "digest"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    // What they put there stays, and no request reaches it: the alias never left its version.
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    for part in [
        "$LATEST of function shop",
        "is left as it is: its code has the digest",
    ] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    let account = world.account().await;
    assert!(account.contains("function shop package 98 "), "{account}");
    let alias = |account: &str| account.rsplit(", ").next().map(str::to_owned);
    assert_eq!(alias(&account), alias(&before));
}

#[tokio::test(start_paused = true)]
async fn an_alias_that_somebody_moved_is_left_to_them() {
    let mut world = World::with_pace(Pace::brisk()).await;
    for number in [1, 2, 3] {
        world.deploys_package(number).await;
        world.next_run();
        world.run(DEPLOY, json!({})).await.done();
    }
    let moved = world
        .lambda()
        .update_alias()
        .function_name("shop")
        .name("live");
    moved.function_version("1").send().await.expect("moved");
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    for part in [
        "Alias live of function shop in eu-west-1",
        "it points to version 1, and this run put version 3 there in the place of version 2",
    ] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    let left = failure.left_behind.expect("something is left");
    assert!(
        left.contains("function shop") && left.contains("version 2"),
        "{left}"
    );
    let account = world.account().await;
    assert!(account.ends_with("live at 1"), "{account}");
}

#[tokio::test(start_paused = true)]
async fn a_function_that_somebody_made_meanwhile_is_not_deleted() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    let theirs = async {
        while world.count("GetFunction") == 0 {
            world.clock.sleep(Duration::from_millis(1)).await;
        }
        let code = aws_sdk_lambda::types::FunctionCode::builder();
        let code = code.zip_file(aws_sdk_lambda::primitives::Blob::new(
            super::world::package(98),
        ));
        let made = world
            .lambda()
            .create_function()
            .function_name("shop")
            .code(code.build());
        let made = made
            .role("arn:aws:iam::123456789012:role/other")
            .handler("a.b");
        made.runtime("python3.13".into()).send().await
    };
    let (failed, made) = tokio::join!(world.run(DEPLOY, json!({})), theirs);
    if made.is_ok() {
        let failure = failed.failed();
        assert!(
            failure.message.contains("changed by somebody else"),
            "{}",
            failure.message
        );
        world.run(ROLLBACK, json!({})).await.done();
        world.clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(
            world.account().await,
            "absent, function shop package 98 timeout 3 Active, versions "
        );
    }
}

/// AWS ignores members that it does not know, so nobody would hear of them.
#[tokio::test(start_paused = true)]
async fn what_aws_has_calls_of_their_own_for_is_refused_with_the_command() {
    let mut world = World::with_pace(Pace::brisk()).await;
    world.deploys_package(1).await;
    for (field, command) in [
        ("reservedConcurrentExecutions", "put-function-concurrency"),
        ("ReservedConcurrentExecutions", "put-function-concurrency"),
        ("functionUrlConfig", "create-function-url-config"),
        ("urlConfig", "create-function-url-config"),
        ("eventSources", "create-event-source-mapping"),
        (
            "ProvisionedConcurrencyConfig",
            "put-provisioned-concurrency-config",
        ),
    ] {
        world.deploys_function(&with(field, json!(5)), &[]);
        world.next_run();
        let message = world.run(DEPLOY, json!({})).await.failed().message;
        let told = format!("set it with `aws lambda {command} --function-name shop`");
        assert!(message.contains(&told), "{message}");
        let named = message
            .to_lowercase()
            .contains(&format!("`{}`", field.to_lowercase()));
        assert!(named, "{message}");
    }
    let calls = world.sandbox.calls();
    assert!(calls.iter().all(|call| call.service != "lambda"));
}
