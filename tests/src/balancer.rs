//! The load balancer `shop` of a sandbox account, for tests and benchmarks of deployments behind one.

use aws_credential_types::Credentials;
use aws_sdk_elasticloadbalancingv2::Client;
use aws_sdk_elasticloadbalancingv2::config::{BehaviorVersion, Region};
use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, ForwardActionConfig, ProtocolEnum, TargetGroupTuple, TargetTypeEnum,
};

use crate::LocalProcess;

/// ARNs of a listener and of its default rule.
pub struct Listener {
    /// Of the listener.
    pub arn: String,
    /// Of the rule.
    pub rule: String,
}

/// How requests reach the two target groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Each listener has a target group of its own.
    Apart,
    /// The rule of each listener has both, with these weights.
    Weighted([i32; 2]),
}

/// Makes the load balancer with its two target groups and a listener on each of `ports`, in their order.
///
/// # Panics
/// When the account refuses.
pub async fn open(
    local: &LocalProcess,
    targets: TargetTypeEnum,
    ports: &[i32],
    forwarding: Forwarding,
) -> Vec<Listener> {
    let elb = client(local);
    let made = elb.create_load_balancer().name("shop");
    let made = made.subnets("subnet-1").subnets("subnet-2").send().await;
    let made = made.expect("a load balancer").load_balancers()[0].clone();
    let balancer = made.load_balancer_arn.expect("an ARN");
    let mut groups = Vec::new();
    for name in ["one", "two"] {
        groups.push(group(&elb, name, targets.clone()).await);
    }
    let mut listeners = Vec::new();
    for (port, group) in ports.iter().zip(&groups) {
        let action = match forwarding {
            Forwarding::Weighted(weights) => weighted(&groups, weights),
            Forwarding::Apart => Action::builder()
                .r#type(ActionTypeEnum::Forward)
                .target_group_arn(group)
                .build(),
        };
        let listener = elb.create_listener().load_balancer_arn(&balancer);
        let listener = listener.port(*port).protocol(ProtocolEnum::Http);
        let listener = listener.default_actions(action).send().await;
        let listener = listener.expect("a listener").listeners()[0].clone();
        let arn = listener.listener_arn.expect("an ARN");
        let rules = elb.describe_rules().listener_arn(&arn).send().await;
        let rule = rules.expect("rules").rules()[0].clone();
        let rule = rule.rule_arn.expect("an ARN");
        listeners.push(Listener { arn, rule });
    }
    listeners
}

fn client(local: &LocalProcess) -> Client {
    let config = aws_sdk_elasticloadbalancingv2::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(local.url())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::for_tests());
    Client::from_conf(config.build())
}

async fn group(elb: &Client, name: &str, targets: TargetTypeEnum) -> String {
    let group = elb.create_target_group().name(name).vpc_id("vpc-1");
    let group = group.port(80).protocol(ProtocolEnum::Http);
    let group = group.target_type(targets).send().await;
    let group = group.expect("a target group").target_groups()[0].clone();
    group.target_group_arn.expect("an ARN")
}

/// Forwards to target groups by weight.
fn weighted(groups: &[String], weights: [i32; 2]) -> Action {
    let tuples = groups.iter().zip(weights).map(|(group, weight)| {
        let tuple = TargetGroupTuple::builder().target_group_arn(group);
        tuple.weight(weight).build()
    });
    let config = ForwardActionConfig::builder().set_target_groups(Some(tuples.collect()));
    Action::builder()
        .r#type(ActionTypeEnum::Forward)
        .forward_config(config.build())
        .build()
}
