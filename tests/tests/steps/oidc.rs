//! Connectors of type `OidcAuthentication`: a token of Slipway's own against the account's STS, IAM provider and trust.

use std::time::Duration;

use aws_credential_types::Credentials;
use serde_json::{Value, json};
use slipway_model::status::ErrorType;

use crate::raw;
use crate::world::{PUBLIC_URL, World};

const ROLE: &str = "arn:aws:iam::123456789012:role/deployer";
const PROVIDER: &str = "slipway.example.com/ng/api/oidc/account/acme";
const DEPLOY: &str = "EcsRollingDeploy";

/// A call of the account's IAM.
pub(crate) async fn iam(world: &World, action: &str, members: &[(&str, &str)]) -> String {
    let mut form = format!("Action={action}&Version=2010-05-08");
    for (name, value) in members {
        let value =
            percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
        form.push_str(&format!("&{name}={value}"));
    }
    raw::answer(world, ("us-east-1", "iam"), raw::post(), form).await
}

/// A role that may pass every role on.
pub(crate) async fn role(world: &World, name: &str, trust: &str) {
    let members = [("RoleName", name), ("AssumeRolePolicyDocument", trust)];
    iam(world, "CreateRole", &members).await;
    let policy = r#"{"Statement": {"Effect": "Allow", "Action": "iam:PassRole", "Resource": "*"}}"#;
    let members = [
        ("RoleName", name),
        ("PolicyName", "pass"),
        ("PolicyDocument", policy),
    ];
    iam(world, "PutRolePolicy", &members).await;
}

fn trust(subject: &str) -> String {
    json!({"Version": "2012-10-17", "Statement": [{
        "Effect": "Allow",
        "Principal": {"Federated": format!("arn:aws:iam::123456789012:oidc-provider/{PROVIDER}")},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": {
            "StringEquals": {format!("{PROVIDER}:aud"): "sts.amazonaws.com"},
            "StringLike": {format!("{PROVIDER}:sub"): subject},
        },
    }]})
    .to_string()
}

/// An account that trusts tokens with a subject.
async fn trusting(subject: &str) -> World {
    let mut world = World::new().await;
    let url = format!("{PUBLIC_URL}/ng/api/oidc/account/acme");
    let members = [
        ("Url", url.as_str()),
        ("ClientIDList.member.1", "sts.amazonaws.com"),
    ];
    iam(&world, "CreateOpenIDConnectProvider", &members).await;
    role(&world, "deployer", &trust(subject)).await;
    world.connector = connector(json!({"iamRoleArn": ROLE}));
    world
}

fn connector(spec: Value) -> Value {
    json!({"credential": {"type": "OidcAuthentication", "spec": spec}})
}

async fn refused(world: &mut World) -> String {
    world.next_run();
    let failure = world.run(DEPLOY, json!({})).await.failed();
    let known = [ErrorType::Authentication, ErrorType::Authorization];
    assert!(known.contains(&failure.error), "{failure:?}");
    assert!(
        failure.message.contains("account.aws"),
        "{}",
        failure.message
    );
    failure.message
}

#[tokio::test(start_paused = true)]
async fn a_token_of_slipway_gives_a_session_that_is_renewed() {
    let mut world = trusting("account/acme:connector/aws").await;
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
    let calls = world.sandbox.calls();
    let created = calls.iter().find(|call| call.operation == "CreateService");
    let principal = &created.expect("a service was created").principal;
    assert_eq!(
        principal,
        "arn:aws:sts::123456789012:assumed-role/deployer/slipway"
    );
    let before = world.count("AssumeRoleWithWebIdentity");
    assert!(before > 0);

    world.clock.sleep(Duration::from_secs(11 * 60)).await;
    world.next_run();
    world.run(DEPLOY, json!({})).await.done();
    assert!(world.count("AssumeRoleWithWebIdentity") > before);
}

#[tokio::test(start_paused = true)]
async fn keys_are_renewed_and_sessions_go_on() {
    let mut world = trusting("account/acme:*").await;
    let issuer = world.services.aws.issuer().expect("an issuer").clone();
    let mut published = Vec::new();
    for _ in 0..5 {
        world.next_run();
        world.run(DEPLOY, json!({})).await.done();
        let keys = issuer.jwks().await.expect("keys");
        let keys = keys["keys"].as_array().expect("a list").iter();
        published.push(keys.map(|key| key["kid"].to_string()).collect::<Vec<_>>());
        world
            .clock
            .sleep(Duration::from_secs(46 * 24 * 3_600))
            .await;
    }
    let counts: Vec<usize> = published.iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 1, 2, 1, 2], "{published:?}");
    assert_ne!(published[0][0], published[3][0], "the first key is gone");
    assert_eq!(published[2][1], published[3][0], "the second one signs");
}

#[tokio::test(start_paused = true)]
async fn what_the_account_does_not_trust_is_refused_with_what_is_missing() {
    let mut world = World::new().await;
    world.connector = connector(json!({"iamRoleArn": ROLE}));
    let told = refused(&mut world).await;
    assert!(
        told.contains("No OpenIDConnect provider found") && told.contains(PROVIDER),
        "{told}"
    );

    let mut world = trusting("account/acme:connector/another").await;
    let told = refused(&mut world).await;
    assert!(
        told.contains("Not authorized to perform sts:AssumeRoleWithWebIdentity"),
        "{told}"
    );

    world.connector = connector(json!({"iamRoleArn": ROLE, "audience": "somebody"}));
    let told = refused(&mut world).await;
    assert!(told.contains("Incorrect token audience"), "{told}");

    world.connector = connector(json!({"iamRoleArn": "arn:aws:iam::123456789012:role/none"}));
    let told = refused(&mut world).await;
    assert!(told.contains("Not authorized"), "{told}");

    world.connector = connector(json!({}));
    let told = refused(&mut world).await;
    assert!(told.contains("no iamRoleArn"), "{told}");
    assert_eq!(world.count("DescribeServices"), 0);
}

/// The session of the token's role assumes the connector's second role.
#[tokio::test(start_paused = true)]
async fn a_token_and_then_a_role_of_another_account() {
    let mut world = trusting("account/acme:connector/aws").await;
    let trust = json!({"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": ROLE},
        "Condition": {"StringEquals": {"sts:ExternalId": "ours"}}}]});
    role(&world, "target", &trust.to_string()).await;
    let access = |id: &str| {
        json!({"credential": {"type": "OidcAuthentication", "spec": {"iamRoleArn": ROLE}, "crossAccountAccess":
            {"crossAccountRoleArn": "arn:aws:iam::123456789012:role/target", "externalId": id}}})
    };
    world.connector = access("theirs");
    let told = refused(&mut world).await;
    assert!(
        told.contains("is not authorized to perform: sts:AssumeRole on resource"),
        "{told}"
    );

    world.connector = access("ours");
    world.next_run();
    world.run(DEPLOY, json!({})).await.done();
    let calls = world.sandbox.calls();
    let created = calls.iter().find(|call| call.operation == "CreateService");
    let principal = &created.expect("a service was created").principal;
    assert_eq!(
        principal,
        "arn:aws:sts::123456789012:assumed-role/target/slipway"
    );
}

/// Tokens that are forged, of others or stale: SECURITY A2, as the account's STS must hold it.
#[tokio::test(start_paused = true)]
async fn forged_and_stale_tokens_are_refused_by_the_account() {
    let world = trusting("*").await;
    let issuer = world.services.aws.issuer().expect("an issuer").clone();
    let scope = slipway_world::scope();
    let connector = slipway_model::id::EntityId::new("aws");
    let token = issuer.token(slipway_steps::aws::oidc::Bearer {
        scope: &scope,
        connector: &connector,
        audience: "sts.amazonaws.com",
    });
    let token = secrecy::ExposeSecret::expose_secret(&token.await.expect("a token")).to_owned();
    let assume = async |token: &str| {
        let client = sts(&world);
        let call = client.assume_role_with_web_identity().role_arn(ROLE);
        let sent = call
            .role_session_name("test")
            .web_identity_token(token)
            .send()
            .await;
        let error = sent.map(drop).map_err(|error| {
            let error = error.into_service_error();
            let meta = error.meta();
            (
                meta.code().unwrap_or_default().to_owned(),
                meta.message().unwrap_or_default().to_owned(),
            )
        });
        error.map_or_else(
            |(code, message)| format!("{code}: {message}"),
            |()| "given".to_owned(),
        )
    };
    assert_eq!(assume(&token).await, "given");

    let [header, claims, signature]: [&str; 3] = token
        .split('.')
        .collect::<Vec<_>>()
        .try_into()
        .expect("three parts");
    let encode = |text: &str| {
        use base64::Engine;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
    };
    let none = encode(r#"{"alg":"none"}"#);
    let symmetric = encode(r#"{"alg":"HS256"}"#);
    let unknown = encode(r#"{"alg":"RS256","kid":"../../x"}"#);
    let other = encode(&format!(
        r#"{{"iss":"{PUBLIC_URL}/ng/api/oidc/account/acme","sub":"account/acme:connector/root","aud":"sts.amazonaws.com","iat":1,"exp":9999999999}}"#
    ));
    let elsewhere = encode(r#"{"iss":"https://evil.example","sub":"x","aud":"sts.amazonaws.com"}"#);
    let mut seen = Vec::new();
    for forged in [
        format!("{none}.{claims}."),
        format!("{none}.{claims}.{signature}"),
        format!("{symmetric}.{claims}.{signature}"),
        format!("{unknown}.{claims}.{signature}"),
        format!("{header}.{other}.{signature}"),
        format!("{header}.{elsewhere}.{signature}"),
        format!("{header}.{claims}"),
        "x".repeat(20_001),
    ] {
        seen.push(assume(&forged).await);
    }
    world.clock.sleep(Duration::from_secs(601)).await;
    seen.push(assume(&token).await);
    insta::assert_snapshot!(seen.join("\n"), @"
    InvalidIdentityToken: The token's signature algorithm is not supported.
    InvalidIdentityToken: The token's signature algorithm is not supported.
    InvalidIdentityToken: The token's signature algorithm is not supported.
    InvalidIdentityToken: Couldn't retrieve verification key from your identity provider, please reference AssumeRoleWithWebIdentity documentation for requirements
    InvalidIdentityToken: The token's signature is invalid.
    InvalidIdentityToken: No OpenIDConnect provider found in your account for https://evil.example
    InvalidIdentityToken: The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)
    InvalidIdentityToken: The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)
    ExpiredToken: Token expired: current date/time 1767226201 must be before the expiration date/time 1767226200
    ");
}

fn sts(world: &World) -> aws_sdk_sts::Client {
    let config = aws_sdk_sts::Config::builder()
        .behavior_version(aws_sdk_sts::config::BehaviorVersion::latest())
        .region(aws_sdk_sts::config::Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("a", "b", None, None, "test"))
        .endpoint_url("http://sandbox.localhost")
        .http_client(slipway_store::embedded::in_process(world.sandbox.router()))
        .build();
    aws_sdk_sts::Client::from_conf(config)
}
