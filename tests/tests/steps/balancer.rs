//! A load balancer in the account: two target groups, `one` and `two`, behind rules for production and for the stage.

use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, FixedResponseActionConfig, ForwardActionConfig, LoadBalancerTypeEnum,
    ProtocolEnum, RuleCondition, TargetGroupTuple, TargetTypeEnum,
};
use serde_json::{Value, json};
use slipway_sandbox::Requests;

use crate::world::{World, service_definition, task_definition};

/// What a test needs to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Balancer {
    /// Of production and of the stage.
    pub(crate) listeners: [String; 2],
    /// Of production and of the stage.
    pub(crate) rules: [String; 2],
    pub(crate) groups: [String; 2],
    /// When it was ready.
    pub(crate) since: jiff::Timestamp,
}

/// Which rules the deployments use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Default rules of two listeners of an Application Load Balancer.
    Default,
    /// Rules of their own; other requests are refused.
    Own,
    /// Default rules of a Network Load Balancer.
    Network,
    /// One rule with both target groups, `one` with all of the weight; the stage has a rule for them, too.
    Weighted,
}

/// An action that forwards to groups by weight.
pub(crate) fn forward(groups: &[(&str, i32)]) -> Action {
    let forward = Action::builder().r#type(ActionTypeEnum::Forward);
    if let [(only, _)] = groups {
        return forward.target_group_arn(*only).build();
    }
    let tuples = groups.iter().map(|(group, weight)| {
        TargetGroupTuple::builder()
            .target_group_arn(*group)
            .weight(*weight)
            .build()
    });
    let config = ForwardActionConfig::builder().set_target_groups(Some(tuples.collect()));
    forward.forward_config(config.build()).build()
}

/// An action that answers with a status.
pub(crate) fn sorry(status: &str) -> Action {
    let response = FixedResponseActionConfig::builder().status_code(status);
    Action::builder()
        .r#type(ActionTypeEnum::FixedResponse)
        .fixed_response_config(response.build())
        .build()
}

/// A condition for requests to a path.
pub(crate) fn path(pattern: &str) -> RuleCondition {
    let path = RuleCondition::builder().field("path-pattern");
    path.values(pattern).build()
}

impl World {
    /// Gives the account a load balancer, and the service definition its place behind it.
    pub(crate) async fn balance(&mut self, kind: Kind) -> Balancer {
        let network = kind == Kind::Network;
        let balancer = self.elb().create_load_balancer().name("web");
        let balancer = balancer.subnets("subnet-1").subnets("subnet-2");
        let balancer = match network {
            true => balancer.r#type(LoadBalancerTypeEnum::Network),
            false => balancer,
        };
        let made = balancer.send().await.expect("a load balancer");
        let arn = made.load_balancers()[0].load_balancer_arn();
        let arn = arn.expect("an ARN").to_owned();
        self.clock.sleep(std::time::Duration::from_secs(10)).await;
        let protocol = if network {
            ProtocolEnum::Tcp
        } else {
            ProtocolEnum::Http
        };
        let groups = [
            self.group("one", &protocol).await,
            self.group("two", &protocol).await,
        ];
        let (one, two) = (groups[0].as_str(), groups[1].as_str());
        let actions = match kind {
            Kind::Weighted => [
                forward(&[(one, 100), (two, 0)]),
                forward(&[(one, 100), (two, 0)]),
            ],
            _ => [forward(&[(one, 1)]), forward(&[(two, 1)])],
        };
        let (mut listeners, mut rules) = (Vec::new(), Vec::new());
        for (port, action) in [80, 8080].into_iter().zip(actions) {
            let listener = self.elb().create_listener().load_balancer_arn(&arn);
            let listener = listener.port(port).protocol(protocol.clone());
            let default = match kind {
                Kind::Own => sorry("404"),
                _ => action.clone(),
            };
            let made = listener.default_actions(default).send().await;
            let made = made.expect("a listener");
            let listener = made.listeners()[0]
                .listener_arn()
                .expect("an ARN")
                .to_owned();
            if kind == Kind::Own {
                let rule = self.elb().create_rule();
                let rule = rule.listener_arn(&listener).priority(10);
                let rule = rule.conditions(path("/web/*")).actions(action);
                rule.send().await.expect("a rule");
            }
            let described = self.elb().describe_rules().listener_arn(&listener);
            let described = described.send().await.expect("rules");
            rules.push(described.rules()[0].rule_arn().expect("an ARN").to_owned());
            listeners.push(listener);
        }
        let balancer = Balancer {
            listeners: listeners.try_into().expect("two"),
            rules: rules.try_into().expect("two"),
            groups,
            since: self.clock.now(),
        };
        self.balancer = Some(balancer.clone());
        self.deploys(&task_definition("nginx:1"), &balanced_definition(2));
        balancer
    }

    async fn group(&self, name: &str, protocol: &ProtocolEnum) -> String {
        let group = self.elb().create_target_group().name(name).vpc_id("vpc-1");
        let group = group.port(80).protocol(protocol.clone());
        let made = group.target_type(TargetTypeEnum::Ip).send().await;
        let made = made.expect("a target group");
        let arn = made.target_groups()[0].target_group_arn();
        arn.expect("an ARN").to_owned()
    }

    /// Deploys into the first target group, which serves, and then into the second.
    pub(crate) async fn fills_both(&mut self) {
        let balancer = self.balancer.clone().expect("a load balancer");
        let create = "EcsBlueGreenCreateService";
        self.run(create, balancer.shift_spec(0)).await.done();
        let all = inherit_spec(100);
        self.run("EcsBlueGreenTrafficShift", all).await.done();
        self.next_run();
        self.deploys(&task_definition("nginx:2"), &balanced_definition(2));
        self.run(create, balancer.shift_spec(1)).await.done();
        self.next_run();
    }

    /// What became of the requests of production since an instant.
    pub(crate) fn requests(&self, since: jiff::Timestamp) -> Requests {
        let balancer = self.balancer.as_ref().expect("a load balancer");
        let found = self.sandbox.traffic(&balancer.listeners[0], Some(since));
        let rules = found.expect("an account").expect("a listener");
        let rule = rules
            .into_iter()
            .find(|rule| rule.rule == balancer.rules[0]);
        rule.expect("the rule").requests(1.0)
    }
}

/// A service definition that a blue-green deployment can use.
pub(crate) fn balanced_definition(count: u32) -> Value {
    let mut definition = service_definition(count);
    definition["loadBalancers"] = json!([
        {"targetGroupArn": "<+targetGroupArn>", "containerName": "web", "containerPort": 80}
    ]);
    definition
}

impl Balancer {
    /// `spec` of `EcsBlueGreenCreateService` for a swap.
    pub(crate) fn swap_spec(&self) -> Value {
        json!({
            "loadBalancer": "web",
            "prodListener": self.listeners[0],
            "prodListenerRuleArn": self.rules[0],
            "stageListener": self.listeners[1],
            "stageListenerRuleArn": self.rules[1],
        })
    }

    /// The same for a traffic shift to the target group of that number.
    pub(crate) fn shift_spec(&self, group: usize) -> Value {
        json!({
            "loadBalancer": "web",
            "prodListener": self.listeners[0],
            "prodListenerRuleArn": self.rules[0],
            "isTrafficShift": true,
            "stageTargetGroupArn": self.groups[group],
        })
    }

    /// `spec` of a shift of the stage's rule that stands alone.
    pub(crate) fn standalone_spec(&self, one: i32, two: i32) -> Value {
        json!({"ecsTrafficShiftWrapper": {"type": "Standalone", "spec": {
            "loadBalancer": "web",
            "listener": self.listeners[1],
            "listenerRuleArn": self.rules[1],
            "forwardConfig": [
                {"targetGroupArn": self.groups[0], "weight": one},
                {"targetGroupArn": self.groups[1], "weight": two},
            ],
        }}})
    }

    /// A log with names in place of ARNs, and without the events of AWS.
    pub(crate) fn plain(&self, log: &str) -> String {
        let lines = log.lines().filter(|line| !line.starts_with("# AWS Event"));
        let mut log = lines.collect::<Vec<_>>().join("\n");
        for (arns, names) in [
            (&self.rules, ["PROD-RULE", "STAGE-RULE"]),
            (&self.listeners, ["PROD", "STAGE"]),
            (&self.groups, ["one", "two"]),
        ] {
            for (arn, name) in arns.iter().zip(names) {
                log = log.replace(arn, name);
            }
        }
        log
    }

    /// Where the rules forward to.
    pub(crate) async fn seen(&self, world: &World) -> String {
        let described = world.elb().describe_rules();
        let described = described.set_rule_arns(Some(self.rules.to_vec()));
        let described = described.send().await.expect("rules");
        let mut seen = String::new();
        for (name, arn) in ["prod", "stage"].iter().zip(&self.rules) {
            let mut rules = described.rules().iter();
            let rule = rules.find(|rule| rule.rule_arn() == Some(arn));
            let rule = rule.expect("a rule");
            let Some(config) = rule.actions()[0].forward_config() else {
                seen.push_str(&format!("; {name} to nothing"));
                continue;
            };
            let tuples = config.target_groups().iter().map(|tuple| {
                let group = tuple.target_group_arn().unwrap_or_default();
                let group = if group == self.groups[0] {
                    "one"
                } else {
                    "two"
                };
                match config.target_groups().len() {
                    1 => group.to_owned(),
                    _ => format!("{group} {}", tuple.weight().unwrap_or(1)),
                }
            });
            let mut tuples: Vec<String> = tuples.collect();
            tuples.sort_unstable();
            seen.push_str(&format!("; {name} to {}", tuples.join(" and ")));
        }
        seen
    }
}

/// `spec` of a shift that inherits its rule.
pub(crate) fn inherit_spec(weight: u32) -> Value {
    json!({"ecsTrafficShiftWrapper": {"type": "Inherit", "spec": {"weightPercentage": weight}}})
}

/// The account without the service of a blue-green deployment that was rolled back: it stays, without tasks.
pub(crate) fn without_stopped(account: &str) -> String {
    let account = account.replace(", beside it web__2 web:2 0/0 GREEN", "");
    account.replace(", beside it web__2 web:2 0/0", "")
}
