//! Load balancers, listeners, rules and target groups: what is refused, and how things hang together.

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::support::{Aws, all_between, between};

/// An account with an Application Load Balancer, a listener on port 80, and target groups `one`, `two`.
pub(crate) struct Balanced {
    pub(crate) aws: Aws,
    pub(crate) balancer: String,
    pub(crate) listener: String,
    pub(crate) groups: [String; 2],
}

impl Balanced {
    /// The default rule forwards to `one`.
    pub(crate) async fn new() -> Self {
        Self::of(Aws::new()).await
    }

    pub(crate) async fn of(aws: Aws) -> Self {
        let made = aws
            .elb(
                "CreateLoadBalancer",
                "Name=web&Subnets.member.1=subnet-1&Subnets.member.2=subnet-2",
            )
            .await;
        let balancer = between(&made, "LoadBalancerArn").to_owned();
        assert_eq!(between(&made, "Code"), "provisioning");
        aws.pass(10).await;
        let groups = [group(&aws, "one").await, group(&aws, "two").await];
        let form = format!(
            "LoadBalancerArn={balancer}&Protocol=HTTP&Port=80&DefaultActions.member.1.Type=forward\
             &DefaultActions.member.1.TargetGroupArn={}",
            groups[0]
        );
        let made = aws.elb("CreateListener", &form).await;
        Self {
            listener: between(&made, "ListenerArn").to_owned(),
            aws,
            balancer,
            groups,
        }
    }

    /// Creates a rule for `/<path>` that forwards to `two`.
    pub(crate) async fn rule(&self, priority: u32, path: &str) -> String {
        let form = self.rule_form(priority, path);
        let made = self.aws.elb("CreateRule", &form).await;
        between(&made, "RuleArn").to_owned()
    }

    fn rule_form(&self, priority: u32, path: &str) -> String {
        format!(
            "ListenerArn={}&Priority={priority}&Conditions.member.1.Field=path-pattern\
             &Conditions.member.1.Values.member.1=/{path}&Actions.member.1.Type=forward\
             &Actions.member.1.TargetGroupArn={}",
            self.listener, self.groups[1]
        )
    }
}

/// Creates a target group for addresses.
pub(crate) async fn group(aws: &Aws, name: &str) -> String {
    let form = format!("Name={name}&Protocol=HTTP&Port=80&VpcId=vpc-1&TargetType=ip");
    let made = aws.elb("CreateTargetGroup", &form).await;
    between(&made, "TargetGroupArn").to_owned()
}

/// `ForwardConfig` of the first of `actions`, with these weights.
pub(crate) fn forward(actions: &str, weights: &[(&str, i64)]) -> String {
    let mut form = format!("{actions}.member.1.Type=forward");
    for (number, (group, weight)) in (1..).zip(weights) {
        let tuple = format!("{actions}.member.1.ForwardConfig.TargetGroups.member.{number}");
        form += &format!("&{tuple}.TargetGroupArn={group}&{tuple}.Weight={weight}");
    }
    form
}

#[tokio::test(start_paused = true)]
async fn the_default_rule_belongs_to_its_listener() {
    let balanced = Balanced::new().await;
    let (aws, listener) = (&balanced.aws, &balanced.listener);
    let own = balanced.rule(10, "api").await;
    let rules = aws
        .elb("DescribeRules", &format!("ListenerArn={listener}"))
        .await;
    assert_eq!(all_between(&rules, "Priority"), ["10", "default"]);
    assert_eq!(all_between(&rules, "IsDefault"), ["false", "true"]);
    let arns = all_between(&rules, "RuleArn");
    assert_eq!(arns[0], own);
    let default = arns[1].to_owned();
    assert!(default.starts_with(&listener.replace(":listener/", ":listener-rule/")));

    let change = forward("Actions", &[(&balanced.groups[1], 1)]);
    let refused = [
        aws.elb_refusal("ModifyRule", &format!("RuleArn={default}&{change}"))
            .await,
        aws.elb_refusal("DeleteRule", &format!("RuleArn={default}"))
            .await,
        aws.elb_refusal(
            "SetRulePriorities",
            &format!(
                "RulePriorities.member.1.RuleArn={default}&RulePriorities.member.1.Priority=1"
            ),
        )
        .await,
    ];
    for said in refused {
        assert!(said.starts_with("OperationNotPermitted: "), "{said}");
        assert!(said.contains(&default), "{said}");
    }

    let change = forward("DefaultActions", &[(&balanced.groups[1], 1)]);
    aws.elb(
        "ModifyListener",
        &format!("ListenerArn={listener}&{change}"),
    )
    .await;
    let rules = aws
        .elb("DescribeRules", &format!("RuleArns.member.1={default}"))
        .await;
    assert_eq!(between(&rules, "TargetGroupArn"), balanced.groups[1]);
}

#[tokio::test(start_paused = true)]
async fn rules_have_weights_and_an_order() {
    let balanced = Balanced::new().await;
    let aws = &balanced.aws;
    let rule = balanced.rule(10, "api").await;
    let [one, two] = balanced.groups.each_ref().map(String::as_str);
    let change = forward("Actions", &[(one, 0), (two, 999)]);
    let changed = aws
        .elb("ModifyRule", &format!("RuleArn={rule}&{change}"))
        .await;
    assert_eq!(all_between(&changed, "Weight"), ["0", "999"]);
    // With several groups none is named outside of the forward config.
    assert_eq!(all_between(&changed, "TargetGroupArn"), [one, two]);

    let other = balanced.rule(20, "other").await;
    let swap = format!(
        "RulePriorities.member.1.RuleArn={rule}&RulePriorities.member.1.Priority=20\
         &RulePriorities.member.2.RuleArn={other}&RulePriorities.member.2.Priority=10"
    );
    aws.elb("SetRulePriorities", &swap).await;
    let listed = format!("ListenerArn={}", balanced.listener);
    let rules = aws.elb("DescribeRules", &listed).await;
    assert_eq!(all_between(&rules, "RuleArn")[..2], [other.as_str(), &rule]);
    let first = aws
        .elb("DescribeRules", &format!("{listed}&PageSize=2"))
        .await;
    assert_eq!(all_between(&first, "Priority"), ["10", "20"]);
    let marker = between(&first, "NextMarker");
    let second = aws
        .elb(
            "DescribeRules",
            &format!("{listed}&PageSize=2&Marker={marker}"),
        )
        .await;
    assert_eq!(all_between(&second, "Priority"), ["default"]);
    assert_eq!(between(&second, "NextMarker"), "");
}

#[tokio::test(start_paused = true)]
async fn what_load_balancing_refuses() {
    let balanced = Balanced::new().await;
    let aws = &balanced.aws;
    let rule = balanced.rule(10, "api").await;
    let [one, two] = balanced.groups.each_ref().map(String::as_str);
    let nowhere = format!("{one}0");
    let many: Vec<String> = (0..6).map(|number| format!("{one}{number}")).collect();
    let many: Vec<(&str, i64)> = many.iter().map(|arn| (arn.as_str(), 1)).collect();
    let weighted = |weights: &[(&str, i64)]| {
        let change = forward("Actions", weights);
        ("ModifyRule", format!("RuleArn={rule}&{change}"))
    };
    let rows = [
        (
            "CreateLoadBalancer",
            "Name=-x&Subnets.member.1=subnet-1".to_owned(),
        ),
        (
            "CreateLoadBalancer",
            "Name=x&Subnets.member.1=subnet-1".to_owned(),
        ),
        (
            "CreateLoadBalancer",
            "Name=web&Type=network&Subnets.member.1=subnet-1".to_owned(),
        ),
        (
            "CreateTargetGroup",
            "Name=one&Protocol=TCP&Port=1&VpcId=v".to_owned(),
        ),
        (
            "CreateTargetGroup",
            "Name=three&Protocol=HTTP&Port=1&VpcId=v&HealthCheckTimeoutSeconds=30".to_owned(),
        ),
        ("DeleteTargetGroup", format!("TargetGroupArn={one}")),
        ("DescribeLoadBalancers", "Names.member.1=nope".to_owned()),
        ("DescribeTargetGroups", "Names.member.1=nope".to_owned()),
        ("DescribeListeners", String::new()),
        ("DescribeRules", String::new()),
        ("CreateRule", balanced.rule_form(10, "again")),
        ("CreateRule", balanced.rule_form(0, "early")),
        weighted(&[(one, 1000)]),
        weighted(&[(one, 1), (one, 2)]),
        weighted(&[(&nowhere, 1)]),
        weighted(&many),
        ("ModifyRule", format!("RuleArn={rule}")),
        (
            "ModifyTargetGroupAttributes",
            format!(
                "TargetGroupArn={two}&Attributes.member.1.Key=deregistration_delay.timeout_seconds\
                 &Attributes.member.1.Value=3601"
            ),
        ),
        (
            "RegisterTargets",
            format!("TargetGroupArn={two}&Targets.member.1.Id=i-1"),
        ),
        ("ModifyRule", format!("RuleArn={rule}x")),
        ("Nope", String::new()),
    ];
    let mut said = Vec::new();
    for (operation, form) in rows {
        let refusal = aws.elb_refusal(operation, &form).await;
        let refusal = refusal
            .replace(one, "ONE")
            .replace(&balanced.balancer, "LB");
        said.push(format!("{operation}: {refusal}"));
    }
    insta::assert_snapshot!(said.join("\n"), @"
    CreateLoadBalancer: ValidationError: Load balancer name '-x' cannot begin or end with a hyphen(-)
    CreateLoadBalancer: ValidationError: At least two subnets in two different Availability Zones must be specified
    CreateLoadBalancer: DuplicateLoadBalancerName: A load balancer with the same name 'web' exists, but with different settings
    CreateTargetGroup: DuplicateTargetGroupName: A target group with the same name 'one' exists, but with different settings
    CreateTargetGroup: ValidationError: Health check interval must be greater than the timeout.
    DeleteTargetGroup: ResourceInUse: Target group 'ONE' is currently in use by a listener or a rule
    DescribeLoadBalancers: LoadBalancerNotFound: Load balancers '[nope]' not found
    DescribeTargetGroups: TargetGroupNotFound: One or more target groups not found
    DescribeListeners: ValidationError: You must specify either listener ARNs or a load balancer ARN
    DescribeRules: ValidationError: You must specify either listener ARN or rule ARNs
    CreateRule: PriorityInUse: Priority '10' is currently in use
    CreateRule: ValidationError: Priority '0' must be between 1 and 50000
    ModifyRule: ValidationError: Weight '1000' must be between 0 and 999
    ModifyRule: ValidationError: Target group 'ONE' is specified more than once in an action
    ModifyRule: TargetGroupNotFound: One or more target groups not found
    ModifyRule: ValidationError: An action can forward to at most '5' target groups
    ModifyRule: ValidationError: Either conditions or actions must be specified
    ModifyTargetGroupAttributes: ValidationError: Target group attribute 'deregistration_delay.timeout_seconds' cannot have the value '3601'
    RegisterTargets: ValidationError: 'i-1' is not a valid IP address
    ModifyRule: RuleNotFound: One or more rules not found
    Nope: InvalidAction: Could not find operation Nope for version 2015-12-01
    ");
}

#[tokio::test(start_paused = true)]
async fn a_target_group_is_on_one_load_balancer() {
    let balanced = Balanced::new().await;
    let aws = &balanced.aws;
    let form = "Name=other&Subnets.member.1=subnet-1&Subnets.member.2=subnet-2";
    let other = aws.elb("CreateLoadBalancer", form).await;
    let other = between(&other, "LoadBalancerArn");
    let listener = |group: &str| {
        format!(
            "LoadBalancerArn={other}&Protocol=HTTP&Port=80&{}",
            forward("DefaultActions", &[(group, 1)])
        )
    };
    let said = aws
        .elb_refusal("CreateListener", &listener(&balanced.groups[0]))
        .await;
    assert!(said.starts_with("TargetGroupAssociationLimit: "), "{said}");
    aws.elb("CreateListener", &listener(&balanced.groups[1]))
        .await;
    let of_other = format!("LoadBalancerArn={other}");
    let found = aws.elb("DescribeTargetGroups", &of_other).await;
    assert_eq!(all_between(&found, "TargetGroupName"), ["two"]);

    // Deleting a load balancer frees its target groups.
    let of_first = format!("LoadBalancerArn={}", balanced.balancer);
    aws.elb("DeleteLoadBalancer", &of_first).await;
    aws.elb("DeleteLoadBalancer", &of_first).await;
    let form = format!("TargetGroupArn={}", balanced.groups[0]);
    aws.elb("DeleteTargetGroup", &form).await;
    let said = aws
        .elb_refusal(
            "DescribeRules",
            &format!("ListenerArn={}", balanced.listener),
        )
        .await;
    assert!(said.starts_with("ListenerNotFound: "), "{said}");
}

#[tokio::test(start_paused = true)]
async fn health_of_targets_over_time() {
    let balanced = Balanced::new().await;
    let aws = &balanced.aws;
    let [one, two] = &balanced.groups;
    let health = async |group: &str| {
        let found = aws
            .elb("DescribeTargetHealth", &format!("TargetGroupArn={group}"))
            .await;
        all_between(&found, "State").join(" ")
    };
    let target = |group: &str| format!("TargetGroupArn={group}&Targets.member.1.Id=10.0.0.7");
    aws.elb("RegisterTargets", &target(one)).await;
    aws.elb("RegisterTargets", &target(two)).await;
    assert_eq!(health(one).await, "initial");
    assert_eq!(health(two).await, "unused");
    aws.pass(15).await;
    assert_eq!(health(one).await, "healthy");
    assert_eq!(health(two).await, "unused");
    balanced.rule(10, "api").await;
    assert_eq!(health(two).await, "initial");

    let delay = format!(
        "TargetGroupArn={one}&Attributes.member.1.Key=deregistration_delay.timeout_seconds\
         &Attributes.member.1.Value=20"
    );
    aws.elb("ModifyTargetGroupAttributes", &delay).await;
    aws.elb("DeregisterTargets", &target(one)).await;
    assert_eq!(health(one).await, "draining");
    aws.pass(19).await;
    assert_eq!(health(one).await, "draining");
    aws.pass(1).await;
    assert_eq!(health(one).await, "");
    let asked = aws.elb("DescribeTargetHealth", &target(one)).await;
    assert_eq!(between(&asked, "Reason"), "Target.NotRegistered");
}

#[tokio::test(start_paused = true)]
async fn bad_forms_get_an_answer() {
    let balanced = Balanced::new().await;
    let (aws, listener) = (&balanced.aws, &balanced.listener);
    let deep = "Actions.member.1.".repeat(1_000) + "Type=forward";
    for (operation, form, code) in [
        (
            "CreateRule",
            format!("ListenerArn={listener}&Priority=x"),
            "MalformedInput",
        ),
        (
            "CreateRule",
            format!("ListenerArn={listener}&Priority=1&{deep}"),
            "ValidationError",
        ),
        (
            "DescribeRules",
            "ListenerArn.member.1=x".to_owned(),
            "MalformedInput",
        ),
        (
            "DescribeTags",
            "ResourceArns=x".to_owned(),
            "MalformedInput",
        ),
        (
            "DescribeTags",
            "ResourceArns.member.1=x".to_owned(),
            "ValidationError",
        ),
        (
            "DescribeTargetGroups",
            "Marker=%00".to_owned(),
            "ValidationError",
        ),
        (
            "DescribeTargetGroups",
            "PageSize=0".to_owned(),
            "ValidationError",
        ),
        ("", String::new(), "InvalidAction"),
    ] {
        let said = aws.elb_refusal(operation, &form).await;
        assert!(said.starts_with(code), "{operation} {form:.80}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn traffic_on_http() {
    let balanced = Balanced::new().await;
    let get = async |path: String| {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let answer = balanced.aws.send(request).await;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.expect("a body");
        (status, body.to_bytes())
    };
    let listener = &balanced.listener;
    balanced.aws.pass(5).await;
    let (status, body) = get(format!("/_sandbox/traffic?listener={listener}&rate=10")).await;
    assert_eq!(status, 200);
    let rules: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(rules[0]["priority"], "default");
    assert_eq!(rules[0]["requests"]["failed"], 50.0);
    let (status, _) = get(format!("/_sandbox/traffic?listener={listener}0")).await;
    assert_eq!(status, 404);
    let (status, _) = get("/_sandbox/traffic".to_owned()).await;
    assert_eq!(status, 400);
}
