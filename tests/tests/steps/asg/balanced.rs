//! A load balancer in front of the groups of a test.

use aws_sdk_elasticloadbalancingv2::Client;
use aws_sdk_elasticloadbalancingv2::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, AuthenticateOidcActionConfig, Certificate, ForwardActionConfig,
    ProtocolEnum, RuleCondition, TargetGroupAttribute, TargetGroupTuple, TargetTypeEnum,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_sandbox::{Requests, Sandbox};
use slipway_store::embedded::in_process;

/// Target groups `blue` and `green` behind the listeners of production and of stage.
#[derive(Clone)]
pub(crate) struct Balancer {
    elb: Client,
    sandbox: Sandbox,
    /// Listeners with their default rules, production first.
    pub(crate) listeners: Vec<(String, String)>,
    pub(crate) groups: Vec<String>,
    /// Whether the rules have both target groups.
    pub(crate) weighted: bool,
    /// Since when requests are counted.
    pub(crate) since: Timestamp,
}

fn forward(groups: &[(&String, i32)]) -> Action {
    let tuples = groups.iter().map(|(group, weight)| {
        TargetGroupTuple::builder()
            .target_group_arn(*group)
            .weight(*weight)
            .build()
    });
    let config = ForwardActionConfig::builder().set_target_groups(Some(tuples.collect()));
    Action::builder()
        .r#type(ActionTypeEnum::Forward)
        .forward_config(config.build())
        .build()
}

impl Balancer {
    /// With `weighted`, both listeners have both target groups.
    pub(crate) async fn new(sandbox: &Sandbox, now: Timestamp, weighted: bool) -> Self {
        let config = aws_sdk_elasticloadbalancingv2::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::new("AKIATEST", "secret", None, None, "test"))
            .endpoint_url("http://sandbox.localhost")
            .http_client(in_process(sandbox.router()))
            .build();
        let elb = Client::from_conf(config);
        let balancer = elb.create_load_balancer().name("shop");
        let balancer = balancer
            .subnets("subnet-1")
            .subnets("subnet-2")
            .send()
            .await;
        let balancer = balancer.expect("a load balancer").load_balancers()[0].clone();
        let mut groups = Vec::new();
        for name in ["blue", "green"] {
            let made = elb
                .create_target_group()
                .name(name)
                .protocol(ProtocolEnum::Http)
                .port(80)
                .vpc_id("vpc-1")
                .target_type(TargetTypeEnum::Instance)
                .send()
                .await
                .expect("a target group");
            let arn = made.target_groups()[0]
                .target_group_arn()
                .expect("an ARN")
                .to_owned();
            let delay = TargetGroupAttribute::builder()
                .key("deregistration_delay.timeout_seconds")
                .value("20");
            elb.modify_target_group_attributes()
                .target_group_arn(&arn)
                .attributes(delay.build())
                .send()
                .await
                .expect("a delay");
            groups.push(arn);
        }
        let mut listeners = Vec::new();
        for (at, port) in [(0, 80), (1, 8080)] {
            let action = match weighted {
                true => forward(&[(&groups[0], 100), (&groups[1], 0)]),
                false => forward(&[(&groups[at], 1)]),
            };
            let made = elb
                .create_listener()
                .load_balancer_arn(balancer.load_balancer_arn().expect("an ARN"))
                .protocol(ProtocolEnum::Http)
                .port(port)
                .default_actions(action)
                .send()
                .await
                .expect("a listener");
            let listener = made.listeners()[0]
                .listener_arn()
                .expect("an ARN")
                .to_owned();
            let rules = elb.describe_rules().listener_arn(&listener).send().await;
            let rule = rules.expect("rules").rules()[0]
                .rule_arn()
                .expect("an ARN")
                .to_owned();
            listeners.push((listener, rule));
        }
        Self {
            elb,
            sandbox: sandbox.clone(),
            listeners,
            groups,
            weighted,
            since: now,
        }
    }

    /// A rule of production for another path, which forwards to `blue`; its ARN.
    pub(crate) async fn another_path(&self) -> String {
        let rule = self.elb.create_rule().listener_arn(&self.listeners[0].0);
        let path = RuleCondition::builder().field("path-pattern");
        let rule = rule.conditions(path.values("/api/*").build()).priority(20);
        let made = rule.actions(forward(&[(&self.groups[0], 1)])).send().await;
        let made = made.expect("a rule");
        made.rules()[0].rule_arn().expect("an ARN").to_owned()
    }

    /// Lets people sign in before their requests get to production.
    pub(crate) async fn sign_in(&self) {
        let provider = AuthenticateOidcActionConfig::builder()
            .issuer("https://id.example.com")
            .authorization_endpoint("https://id.example.com/authorize")
            .token_endpoint("https://id.example.com/token")
            .user_info_endpoint("https://id.example.com/me")
            .client_id("shop")
            .client_secret("not told");
        let sign_in = Action::builder()
            .r#type(ActionTypeEnum::AuthenticateOidc)
            .order(1)
            .authenticate_oidc_config(provider.build());
        let mut forward = forward(&[(&self.groups[0], 1)]);
        forward.order = Some(2);
        let certificate = Certificate::builder().certificate_arn(
            "arn:aws:acm:eu-west-1:123456789012:certificate/3f6b1f2c-0000-4000-8000-000000000000",
        );
        self.elb
            .modify_listener()
            .listener_arn(&self.listeners[0].0)
            .protocol(ProtocolEnum::Https)
            .certificates(certificate.build())
            .default_actions(sign_in.build())
            .default_actions(forward)
            .send()
            .await
            .expect("a changed listener");
    }

    /// Types of the actions of production, in their order.
    pub(crate) async fn actions(&self) -> Vec<ActionTypeEnum> {
        let rules = self.elb.describe_rules().rule_arns(&self.listeners[0].1);
        let rules = rules.send().await.expect("rules");
        let actions = rules.rules()[0].actions().iter();
        actions
            .filter_map(|action| action.r#type().cloned())
            .collect()
    }

    /// `spec` of `AsgBlueGreenDeploy` with two listeners.
    pub(crate) fn swap_spec(&self) -> Value {
        let mut spec = self.shift_spec();
        spec["loadBalancers"][0]["stageListener"] = json!(self.listeners[1].0);
        spec["loadBalancers"][0]["stageListenerRuleArn"] = json!(self.listeners[1].1);
        spec
    }

    /// The same with one.
    pub(crate) fn shift_spec(&self) -> Value {
        json!({"loadBalancers": [{
            "loadBalancer": "shop",
            "prodListener": self.listeners[0].0,
            "prodListenerRuleArn": self.listeners[0].1,
        }]})
    }

    /// Where the requests of both listeners go: `blue` or `blue 80 green 20`.
    pub(crate) async fn seen(&self) -> String {
        let mut seen = Vec::new();
        for (listener, _) in &self.listeners {
            let rules = self
                .elb
                .describe_rules()
                .listener_arn(listener)
                .send()
                .await;
            let rules = rules.expect("rules");
            let last = rules.rules()[0].actions().last().expect("an action");
            let config = last.forward_config().expect("a forward");
            let shares = config.target_groups().iter().map(|tuple| {
                let arn = tuple.target_group_arn().unwrap_or_default();
                let name = if arn == self.groups[0] {
                    "blue"
                } else {
                    "green"
                };
                match config.target_groups().len() {
                    1 => name.to_owned(),
                    _ => format!("{name} {}", tuple.weight().unwrap_or_default()),
                }
            });
            seen.push(shares.collect::<Vec<_>>().join(" "));
        }
        seen.join(" / ")
    }

    /// What became of the requests of production since then, at one a second.
    pub(crate) fn requests(&self) -> Requests {
        let rules = self.sandbox.traffic(&self.listeners[0].0, Some(self.since));
        let rules = rules.expect("an account").expect("a listener");
        rules.last().expect("the default rule").requests(1.0)
    }
}
