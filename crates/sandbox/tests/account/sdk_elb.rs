//! Load balancing over loopback, as `aws-sdk-elasticloadbalancingv2` sees it.

use std::time::Duration;

use aws_sdk_elasticloadbalancingv2::Client;
use aws_sdk_elasticloadbalancingv2::client::Waiters;
use aws_sdk_elasticloadbalancingv2::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_elasticloadbalancingv2::error::ProvideErrorMetadata;
use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, ForwardActionConfig, LoadBalancerStateEnum, PathPatternConditionConfig,
    ProtocolEnum, RuleCondition, Tag, TargetDescription, TargetGroupTuple, TargetHealthStateEnum,
    TargetTypeEnum,
};
use slipway_sandbox::{Fault, FaultEffect};

use crate::sdk::serve;

fn client(endpoint: &str) -> Client {
    let config = aws_sdk_elasticloadbalancingv2::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("AKIATEST", "secret", None, None, "test"))
        .endpoint_url(endpoint)
        .build();
    Client::from_conf(config)
}

async fn group(elb: &Client, name: &str) -> String {
    let made = elb
        .create_target_group()
        .name(name)
        .protocol(ProtocolEnum::Http)
        .port(8080)
        .vpc_id("vpc-1")
        .target_type(TargetTypeEnum::Ip)
        .send()
        .await
        .expect("a target group");
    let arn = made.target_groups()[0].target_group_arn();
    arn.expect("an ARN").to_owned()
}

async fn balancer(elb: &Client) -> String {
    let made = elb
        .create_load_balancer()
        .name("web")
        .subnets("subnet-1")
        .subnets("subnet-2")
        .tags(Tag::builder().key("team").value("shop & co").build())
        .send()
        .await
        .expect("a load balancer");
    let arn = made.load_balancers()[0].load_balancer_arn();
    let arn = arn.expect("an ARN").to_owned();
    // The waiter looks every 15 s of real time; one look is to be enough.
    loop {
        let found = elb.describe_load_balancers().names("web").send().await;
        let found = found.expect("a load balancer").load_balancers()[0].clone();
        let state = found.state().and_then(|state| state.code().cloned());
        if state == Some(LoadBalancerStateEnum::Active) {
            break;
        }
    }
    elb.wait_until_load_balancer_available()
        .load_balancer_arns(&arn)
        .wait(Duration::from_secs(1))
        .await
        .expect("an active load balancer");
    arn
}

fn weighted(groups: &[(&str, i32)]) -> Action {
    let tuple = |&(arn, weight): &(&str, i32)| {
        TargetGroupTuple::builder()
            .target_group_arn(arn)
            .weight(weight)
            .build()
    };
    let config = ForwardActionConfig::builder()
        .set_target_groups(Some(groups.iter().map(tuple).collect()))
        .build();
    Action::builder()
        .r#type(ActionTypeEnum::Forward)
        .forward_config(config)
        .build()
}

#[tokio::test]
async fn balancing_through_the_sdk() {
    let (sandbox, endpoint) = serve().await;
    let elb = client(&endpoint);
    let balancer = balancer(&elb).await;
    let (one, two) = (group(&elb, "one").await, group(&elb, "two").await);
    let made = elb
        .create_listener()
        .load_balancer_arn(&balancer)
        .protocol(ProtocolEnum::Http)
        .port(80)
        .default_actions(weighted(&[(&one, 1)]))
        .send()
        .await
        .expect("a listener");
    let listener = made.listeners()[0].listener_arn().expect("an ARN");
    let paths = PathPatternConditionConfig::builder()
        .values("/api/*")
        .build();
    let condition = RuleCondition::builder()
        .field("path-pattern")
        .path_pattern_config(paths)
        .build();
    let made = elb
        .create_rule()
        .listener_arn(listener)
        .priority(10)
        .conditions(condition)
        .actions(weighted(&[(&one, 60), (&two, 40)]))
        .send()
        .await
        .expect("a rule");
    let rule = made.rules()[0].clone();
    assert_eq!(rule.conditions()[0].values(), ["/api/*"]);
    let config = rule.actions()[0].forward_config().expect("a config");
    let weights = config.target_groups().iter();
    let weights: Vec<i32> = weights.filter_map(TargetGroupTuple::weight).collect();
    assert_eq!(weights, [60, 40]);

    elb.register_targets()
        .target_group_arn(&two)
        .targets(TargetDescription::builder().id("10.0.0.9").build())
        .send()
        .await
        .expect("a target");
    loop {
        let health = elb.describe_target_health().target_group_arn(&two).send();
        let health = health.await.expect("health");
        let one = health.target_health_descriptions()[0].clone();
        assert_eq!(one.target().and_then(TargetDescription::port), Some(8080));
        let state = one.target_health().and_then(|health| health.state());
        if state == Some(&TargetHealthStateEnum::Healthy) {
            break;
        }
    }
    elb.wait_until_target_in_service()
        .target_group_arn(&two)
        .wait(Duration::from_secs(1))
        .await
        .expect("a target in service");
    let traffic = sandbox.traffic(listener, None).expect("an account");
    let traffic = traffic.expect("a listener");
    let last = traffic[0].spans.last().expect("a span");
    assert!((last.failing() - 0.6).abs() < 1e-9, "{last:?}");

    let tags = elb.describe_tags().resource_arns(&balancer).send().await;
    let tags = tags.expect("tags").tag_descriptions()[0].tags().to_vec();
    assert_eq!(tags[0].value(), Some("shop & co"));
}

#[tokio::test]
async fn refusals_through_the_sdk() {
    let (sandbox, endpoint) = serve().await;
    let elb = client(&endpoint);
    let missing = elb.describe_rules().rule_arns("arn").send().await;
    let missing = missing.expect_err("no rule");
    assert!(
        missing
            .as_service_error()
            .is_some_and(|error| error.is_rule_not_found_exception())
    );
    for number in 0..3 {
        group(&elb, &format!("group-{number}")).await;
    }
    let mut pages = elb
        .describe_target_groups()
        .page_size(2)
        .into_paginator()
        .send();
    let mut sizes = Vec::new();
    while let Some(page) = pages.next().await {
        sizes.push(page.expect("a page").target_groups().len());
    }
    assert_eq!(sizes, [2, 1]);

    // The SDK tries three times.
    sandbox.faults().add(Fault {
        service: Some("elasticloadbalancing".into()),
        operation: None,
        skip: 0,
        count: Some(3),
        effect: FaultEffect::Throttle,
    });
    let throttled = elb.describe_load_balancers().send().await;
    let throttled = throttled.expect_err("throttled");
    assert_eq!(throttled.code(), Some("Throttling"));
    let calls = sandbox.calls();
    let last = calls.last().expect("a call");
    assert_eq!(last.service, "elasticloadbalancing");
    assert_eq!(last.operation, "DescribeLoadBalancers");
}
