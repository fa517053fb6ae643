//! Aliases of Lambda functions and the versions behind them.

use serde_json::{Value, json};

use crate::support::Aws;

fn weights(version: &str, weight: f64) -> Value {
    json!({"AdditionalVersionWeights": {version: weight}})
}

#[tokio::test(start_paused = true)]
async fn an_alias_shares_requests_between_two_published_versions() {
    let aws = Aws::with_packages();
    aws.shop().await;
    assert_eq!(aws.publish("shop-1.zip").await, "1");
    assert_eq!(aws.publish("shop-2.zip").await, "2");
    let made = aws
        .lambda(
            "POST",
            "/shop/aliases",
            json!({"Name": "live", "FunctionVersion": "1"}),
        )
        .await;
    assert_eq!(
        made["AliasArn"],
        "arn:aws:lambda:us-east-1:123456789012:function:shop:live"
    );
    let shifted = aws
        .lambda(
            "PUT",
            "/shop/aliases/live",
            json!({"RoutingConfig": weights("2", 0.1)}),
        )
        .await;
    assert_eq!(shifted["RoutingConfig"], weights("2", 0.1));
    let mut said = Vec::new();
    for change in [
        json!({"RoutingConfig": weights("7", 0.1)}),
        json!({"RoutingConfig": weights("1", 0.1)}),
        json!({"RoutingConfig": weights("$LATEST", 0.1)}),
        json!({"RoutingConfig": weights("2", 1.5)}),
        json!({"RoutingConfig": {"AdditionalVersionWeights": {"1": 0.1, "2": 0.2}}}),
        json!({"FunctionVersion": "$LATEST"}),
        json!({"FunctionVersion": "9"}),
        json!({"FunctionVersion": "live"}),
        json!({"RevisionId": "old"}),
        json!({"Description": "x".repeat(257)}),
    ] {
        said.push(aws.refusal("PUT", "/shop/aliases/live", change).await);
    }
    for name in ["live", "7", "", "a b"] {
        let body = json!({"Name": name, "FunctionVersion": "1"});
        said.push(aws.refusal("POST", "/shop/aliases", body).await);
    }
    said.push(aws.refusal("GET", "/shop/aliases/none", Value::Null).await);
    said.push(
        aws.refusal("DELETE", "/shop?Qualifier=2", Value::Null)
            .await,
    );
    said.push(
        aws.refusal("DELETE", "/shop?Qualifier=$LATEST", Value::Null)
            .await,
    );
    insta::assert_snapshot!(said.join("\n"), @r"
    404 ResourceNotFoundException: Function not found: arn:aws:lambda:us-east-1:123456789012:function:shop:7
    400 InvalidParameterValueException: Invalid function version 1. Function version 1 is already included in routing configuration.
    400 InvalidParameterValueException: $LATEST is not supported for an alias pointing to more than 1 version
    400 ValidationException: 1 validation error detected: Value '1.5' at 'routingConfig.additionalVersionWeights' failed to satisfy constraint: Map values must satisfy constraint: [Member must have value between 0.0 and 1.0]
    400 InvalidParameterValueException: The number of additional versions in the routing configuration cannot exceed 1.
    400 InvalidParameterValueException: $LATEST is not supported for an alias pointing to more than 1 version
    404 ResourceNotFoundException: Function not found: arn:aws:lambda:us-east-1:123456789012:function:shop:9
    400 ValidationException: 1 validation error detected: Value 'live' at 'functionVersion' failed to satisfy constraint: Member must satisfy regular expression pattern: (\$LATEST|[0-9]+)
    412 PreconditionFailedException: The RevisionId provided does not match the latest RevisionId. Call the GetAlias API to retrieve the latest RevisionId for your resource.
    400 ValidationException: 1 validation error detected: Value 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' at 'description' failed to satisfy constraint: Member must have length less than or equal to 256
    409 ResourceConflictException: Alias already exists: arn:aws:lambda:us-east-1:123456789012:function:shop:live
    400 ValidationException: 1 validation error detected: Value '7' at 'name' failed to satisfy constraint: Member must have length between 1 and 128 and satisfy regular expression pattern: (?!^[0-9]+$)([a-zA-Z0-9-_]+)
    400 ValidationException: 1 validation error detected: Value '' at 'name' failed to satisfy constraint: Member must have length between 1 and 128 and satisfy regular expression pattern: (?!^[0-9]+$)([a-zA-Z0-9-_]+)
    400 ValidationException: 1 validation error detected: Value 'a b' at 'name' failed to satisfy constraint: Member must have length between 1 and 128 and satisfy regular expression pattern: (?!^[0-9]+$)([a-zA-Z0-9-_]+)
    404 ResourceNotFoundException: Cannot find alias arn: arn:aws:lambda:us-east-1:123456789012:function:shop:none
    409 ResourceConflictException: Unable to delete version because the following aliases reference it: [live]
    400 InvalidParameterValueException: $LATEST version cannot be deleted without deleting the function.
    ");

    let whole = json!({"FunctionVersion": "2", "RoutingConfig": {"AdditionalVersionWeights": {}}});
    let shifted = aws.lambda("PUT", "/shop/aliases/live", whole).await;
    assert_eq!(
        (&shifted["FunctionVersion"], &shifted["RoutingConfig"]),
        (&json!("2"), &Value::Null)
    );
    aws.lambda("DELETE", "/shop?Qualifier=1", Value::Null).await;
    let versions = aws.lambda("GET", "/shop/versions", Value::Null).await;
    let numbers: Vec<_> = versions["Versions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["Version"])
        .collect();
    assert_eq!(numbers, ["$LATEST", "2"]);
    let seen = aws
        .sandbox
        .alias_traffic("us-east-1", "shop")
        .expect("an account");
    let seen: Vec<String> = seen
        .iter()
        .map(|one| format!("{:?} {}", one.shares, one.ready))
        .collect();
    insta::assert_snapshot!(seen.join("\n"), @r#"
    {"1": 1.0} true
    {"1": 0.9, "2": 0.1} true
    {"2": 1.0} true
    "#);
    aws.lambda("DELETE", "/shop", Value::Null).await;
    assert!(
        aws.refusal("GET", "/shop/aliases/live", Value::Null)
            .await
            .starts_with("404")
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_not_ready_shows_in_the_traffic() {
    let aws = Aws::with_packages();
    aws.shop().await;
    aws.lambda("POST", "/shop/versions", json!({})).await;
    aws.lambda(
        "POST",
        "/shop/aliases",
        json!({"Name": "live", "FunctionVersion": "1"}),
    )
    .await;
    let seen = aws
        .sandbox
        .alias_traffic("us-east-1", "shop")
        .expect("an account");
    assert_eq!(
        seen.iter().map(|one| one.ready).collect::<Vec<_>>(),
        [false]
    );
}

#[tokio::test(start_paused = true)]
async fn versions_of_different_roles_cannot_share() {
    let aws = Aws::with_packages();
    aws.shop().await;
    aws.publish("shop-1.zip").await;
    let role = json!({"Role": "arn:aws:iam::123456789012:role/other"});
    aws.lambda("PUT", "/shop/configuration", role).await;
    aws.pass(10).await;
    aws.publish("shop-2.zip").await;
    let alias = json!({"Name": "live", "FunctionVersion": "1", "RoutingConfig": weights("2", 0.5)});
    insta::assert_snapshot!(aws.refusal("POST", "/shop/aliases", alias).await, @"400 InvalidParameterValueException: Both versions of an alias must have the same execution role: 1 and 2 have not.");
}
