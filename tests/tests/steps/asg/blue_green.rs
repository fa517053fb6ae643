//! `AsgBlueGreenDeploy`, `AsgBlueGreenSwapService`, `AsgShiftTraffic` and `AsgBlueGreenRollback`.

use serde_json::{Value, json};

use super::Groups;
use super::balanced::Balancer;
use crate::world::scope;

const DEPLOY: &str = "AsgBlueGreenDeploy";
const SWAP: &str = "AsgBlueGreenSwapService";
const SHIFT: &str = "AsgShiftTraffic";
const ROLLBACK: &str = "AsgBlueGreenRollback";

/// Runs steps in a new run, and gives the calls of each.
async fn deploy(groups: &mut Groups, image: &str, steps: &[(&str, Value)]) -> String {
    groups.world.next_run();
    groups.deploys(image, 2);
    let mut traces = Vec::new();
    for (step, spec) in steps {
        let before = groups.world.sandbox.calls().len();
        groups.world.run(step, spec.clone()).await.done();
        let trace = groups.world.trace(before).replace('\n', " ");
        traces.push(format!("{step}\n{trace}"));
    }
    traces.join("\n")
}

async fn balanced(weighted: bool) -> (Groups, Balancer) {
    let groups = Groups::new().await.beside().await;
    let now = groups.world.clock.now();
    let balancer = Balancer::new(&groups.world.sandbox, now, weighted).await;
    (groups, balancer)
}

fn check_requests(balancer: &Balancer) {
    let requests = balancer.requests();
    assert!(requests.sent > 10.0, "{requests:?}");
    assert_eq!(requests.failed, 0.0, "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_the_first_the_second_and_the_third_deployment() {
    let (mut groups, mut balancer) = balanced(false).await;
    let steps = [
        (DEPLOY, balancer.swap_spec()),
        (SWAP, json!({"downsizeOldAsg": true})),
    ];
    let first = deploy(&mut groups, "ami-1", &steps).await;
    assert_eq!(groups.account().await, "web__1 v1 2/2 of v1 BLUE | web__1");
    assert_eq!(balancer.seen().await, "blue / green");
    insta::assert_snapshot!(first, @"
    AsgBlueGreenDeploy
    DescribeListeners DescribeRules DescribeAutoScalingGroups DescribeLaunchTemplates CreateLaunchTemplate DescribeAutoScalingGroups CreateAutoScalingGroup DescribeAutoScalingGroups DescribeTargetHealth DescribePolicies DescribeScheduledActions DescribeAutoScalingGroups
    AsgBlueGreenSwapService
    ");
    balancer.since = groups.world.clock.now();
    let second = deploy(&mut groups, "ami-2", &steps).await;
    insta::assert_snapshot!(second, @"
    AsgBlueGreenDeploy
    DescribeListeners DescribeRules DescribeAutoScalingGroups DescribeLaunchTemplates DescribePolicies DescribeScheduledActions CreateLaunchTemplate DescribeAutoScalingGroups CreateAutoScalingGroup DescribeAutoScalingGroups DescribeTargetHealth DescribePolicies DescribeScheduledActions DescribeAutoScalingGroups
    AsgBlueGreenSwapService
    DescribeRules ModifyListener DescribeRules ModifyListener CreateOrUpdateTags DescribeListeners DescribeRules DescribeAutoScalingGroups DescribePolicies DescribeScheduledActions UpdateAutoScalingGroup DescribeAutoScalingGroups
    ");
    groups.quiet().await;
    assert_eq!(
        groups.account().await,
        "web__1 v1 0/0 of  GREEN, web__2 v1 2/2 of v1 BLUE | web__1 web__2"
    );
    assert_eq!(balancer.seen().await, "green / blue");
    let third = deploy(&mut groups, "ami-3", &steps).await;
    insta::assert_snapshot!(third, @"
    AsgBlueGreenDeploy
    DescribeListeners DescribeRules DescribeAutoScalingGroups DescribeLaunchTemplates DescribePolicies DescribeScheduledActions DescribeLaunchTemplates DescribePolicies DescribeScheduledActions CreateLaunchTemplateVersion DescribeInstanceRefreshes DescribeAutoScalingGroups UpdateAutoScalingGroup CreateOrUpdateTags DescribeInstanceRefreshes StartInstanceRefresh DescribeInstanceRefreshes DescribeAutoScalingGroups DescribeTargetHealth DescribePolicies DescribeScheduledActions DescribeAutoScalingGroups
    AsgBlueGreenSwapService
    DescribeRules ModifyListener DescribeRules ModifyListener CreateOrUpdateTags DescribeListeners DescribeRules DescribeAutoScalingGroups DescribePolicies DescribeScheduledActions UpdateAutoScalingGroup DescribeAutoScalingGroups
    ");
    groups.quiet().await;
    assert_eq!(
        groups.account().await,
        "web__1 v2 2/2 of v2 BLUE, web__2 v1 0/0 of  GREEN | web__1 web__2"
    );
    assert_eq!(balancer.seen().await, "blue / green");
    assert_eq!(groups.counted().await, "2 web__1 v2");
    check_requests(&balancer);
}

/// As of ECS: what another path still goes to is live.
#[tokio::test(start_paused = true)]
async fn instances_that_another_rule_reaches_are_neither_replaced_nor_taken_away() {
    let (mut groups, balancer) = balanced(false).await;
    let downsize = (SWAP, json!({"downsizeOldAsg": true}));
    let steps = [(DEPLOY, balancer.swap_spec()), downsize];
    deploy(&mut groups, "ami-1", &steps).await;
    let rule = balancer.another_path().await;
    deploy(&mut groups, "ami-2", &steps).await;
    groups.quiet().await;
    assert_eq!(
        groups.account().await,
        "web__1 v1 2/2 of v1 GREEN, web__2 v1 2/2 of v1 BLUE | web__1 web__2"
    );
    assert_eq!(groups.counted().await, "2 web__1 v1, 2 web__2 v1");
    let log = groups.world.log(SWAP, "Swap Service").await;
    let told = format!("Asg web__1 keeps its instances: listener rule {rule} of listener ");
    assert!(log.contains(&told), "{log}");

    groups.world.next_run();
    groups.deploys("ami-3", 2);
    let before = groups.account().await;
    let failure = groups
        .world
        .run(DEPLOY, balancer.swap_spec())
        .await
        .failed();
    for part in ["group web__1", "and it serves", &rule, &balancer.groups[0]] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    groups.world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(groups.account().await, before);
}

#[tokio::test(start_paused = true)]
async fn people_who_must_sign_in_still_must_after_a_swap() {
    let (mut groups, balancer) = balanced(false).await;
    balancer.sign_in().await;
    let steps = [
        (DEPLOY, balancer.swap_spec()),
        (SWAP, json!({"downsizeOldAsg": true})),
    ];
    deploy(&mut groups, "ami-1", &steps).await;
    deploy(&mut groups, "ami-2", &steps).await;
    assert_eq!(balancer.seen().await, "green / blue");
    let kinds = balancer.actions().await;
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(kinds, ["authenticate-oidc", "forward"]);
}

/// The runs that put a group beside the one that serves, as the record of what is deployed has it.
async fn beside(groups: &Groups) -> Vec<String> {
    let noted = groups.world.store.list_deployed_in(&scope()).await;
    let noted = noted.expect("records");
    let groups = noted.iter().flat_map(|one| one.target["groups"].as_array());
    let beside = groups.flatten().filter(|one| one["by"]["green"] == true);
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    beside
        .map(|one| format!("{} by {}", text(&one["name"]), text(&one["by"]["run"])))
        .collect()
}

/// By that a run that never swapped is told from one that did, and may be rolled back.
#[tokio::test(start_paused = true)]
async fn a_version_that_serves_nothing_is_noted_as_such_until_it_serves_or_goes() {
    let (mut groups, balancer) = balanced(false).await;
    let up = (DEPLOY, balancer.swap_spec());
    let swap = (SWAP, json!({"downsizeOldAsg": false}));
    deploy(&mut groups, "ami-1", &[up.clone(), swap.clone()]).await;
    assert_eq!(beside(&groups).await, [""; 0]);
    deploy(&mut groups, "ami-2", std::slice::from_ref(&up)).await;
    let run = groups.world.run.to_string();
    assert_eq!(beside(&groups).await, [format!("web__2 by {run}")]);
    groups.world.run(ROLLBACK, json!({})).await.done();
    groups.quiet().await;
    assert_eq!(beside(&groups).await, [""; 0]);
    assert_eq!(groups.account().await, "web__1 v1 2/2 of v1 BLUE | web__1");

    // What another run puts there in its place is brought back with who put it there.
    deploy(&mut groups, "ami-3", std::slice::from_ref(&up)).await;
    let third = format!("web__2 by {}", groups.world.run);
    deploy(&mut groups, "ami-4", std::slice::from_ref(&up)).await;
    assert_eq!(
        beside(&groups).await,
        [format!("web__2 by {}", groups.world.run)]
    );
    groups.world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(beside(&groups).await, [third]);
    deploy(&mut groups, "ami-5", &[up, swap]).await;
    assert_eq!(beside(&groups).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn outputs_name_both_groups() {
    let (mut groups, mut balancer) = balanced(false).await;
    let steps = [
        (DEPLOY, balancer.swap_spec()),
        (SWAP, json!({"downsizeOldAsg": false})),
    ];
    deploy(&mut groups, "ami-1", &steps).await;
    balancer.since = groups.world.clock.now();
    groups.world.next_run();
    let outputs = groups.world.run(DEPLOY, balancer.swap_spec()).await.done();
    assert_eq!(
        outputs["output"]["prodAsg"]["autoScalingGroupName"],
        "web__1"
    );
    assert_eq!(
        outputs["output"]["stageAsg"]["autoScalingGroupName"],
        "web__2"
    );
    assert_eq!(groups.counted().await, "2 web__1 v1, 2 web__2 v1");
    let outputs = groups
        .world
        .run(SWAP, json!({"downsizeOldAsg": "false"}))
        .await
        .done();
    assert_eq!(
        outputs["output"]["prodAsg"]["autoScalingGroupName"],
        "web__2"
    );
    groups.quiet().await;
    assert_eq!(
        groups.account().await,
        "web__1 v1 2/2 of v1 GREEN, web__2 v1 2/2 of v1 BLUE | web__1 web__2"
    );
    check_requests(&balancer);
}

#[tokio::test(start_paused = true)]
async fn traffic_moves_by_weights_and_back() {
    let (mut groups, mut balancer) = balanced(true).await;
    deploy(&mut groups, "ami-1", &[(DEPLOY, balancer.shift_spec())]).await;
    balancer.since = groups.world.clock.now();
    let shift = |weight: u32, downsize: bool| {
        (SHIFT, json!({"weight": weight, "downsizeOldAsg": downsize}))
    };
    let steps = [(DEPLOY, balancer.shift_spec()), shift(20, true)];
    let trace = deploy(&mut groups, "ami-2", &steps).await;
    assert_eq!(balancer.seen().await, "blue 80 green 20 / blue 100 green 0");
    assert!(trace.ends_with("DescribeRules ModifyListener"), "{trace}");
    groups.world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(balancer.seen().await, "blue 100 green 0 / blue 100 green 0");
    assert_eq!(groups.account().await, "web__1 v1 2/2 of v1 BLUE | web__1");
    let steps = [(DEPLOY, balancer.shift_spec()), shift(30, false)];
    deploy(&mut groups, "ami-3", &steps).await;
    groups
        .world
        .attempt(SHIFT, shift(100, true).1, 1)
        .await
        .done();
    groups.quiet().await;
    assert_eq!(balancer.seen().await, "blue 0 green 100 / blue 100 green 0");
    assert_eq!(
        groups.account().await,
        "web__1 v1 0/0 of  GREEN, web__2 v1 2/2 of v1 BLUE | web__1 web__2"
    );
    // The next one goes the other way.
    let steps = [(DEPLOY, balancer.shift_spec()), shift(100, true)];
    deploy(&mut groups, "ami-4", &steps).await;
    groups.quiet().await;
    assert_eq!(balancer.seen().await, "blue 100 green 0 / blue 100 green 0");
    check_requests(&balancer);
}

/// Found by a tester: no step and no rollback led on, and no message said what does.
#[tokio::test(start_paused = true)]
async fn a_rule_that_sends_requests_to_both_versions_is_refused_with_what_leads_on() {
    let (mut groups, balancer) = balanced(true).await;
    deploy(&mut groups, "ami-1", &[(DEPLOY, balancer.shift_spec())]).await;
    let shift = (SHIFT, json!({"weight": 30, "downsizeOldAsg": false}));
    let steps = [(DEPLOY, balancer.shift_spec()), shift];
    deploy(&mut groups, "ami-2", &steps).await;
    let (run, shifted) = (groups.world.run.clone(), balancer.seen().await);
    assert_eq!(beside(&groups).await, [format!("web__2 by {run}")]);
    groups.world.next_run();
    let failure = groups.world.run(DEPLOY, balancer.shift_spec()).await;
    let told = failure.failed().message;
    for part in [
        "must have exactly two target groups of which one gets all requests, and it has: ",
        &format!("(`slipway rollback <run>`, here run {run})"),
        "`aws elbv2 modify-listener --region eu-west-1 --listener-arn arn:",
        r#"--default-actions '[{"Type":"forward","ForwardConfig":{"TargetGroups":[{"TargetGroupArn":"arn:"#,
        r#""Weight":100}"#,
        r#""Weight":0}"#,
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(balancer.seen().await, shifted);
}

#[tokio::test(start_paused = true)]
async fn a_rollback_after_the_swap_brings_old_instances_back_first() {
    let (mut groups, mut balancer) = balanced(false).await;
    let steps = [
        (DEPLOY, balancer.swap_spec()),
        (SWAP, json!({"downsizeOldAsg": true})),
    ];
    deploy(&mut groups, "ami-1", &steps).await;
    deploy(&mut groups, "ami-2", &steps).await;
    groups.quiet().await;
    let before = (groups.account().await, balancer.seen().await);
    balancer.since = groups.world.clock.now();
    deploy(&mut groups, "ami-3", &steps).await;
    groups.quiet().await;
    groups.world.run(ROLLBACK, json!({})).await.done();
    groups.quiet().await;
    assert_eq!((groups.account().await, balancer.seen().await), before);
    assert_eq!(groups.counted().await, "2 web__2 v1");
    check_requests(&balancer);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_never_works_gets_no_request() {
    let (mut groups, mut balancer) = balanced(false).await;
    let steps = [
        (DEPLOY, balancer.swap_spec()),
        (SWAP, json!({"downsizeOldAsg": true})),
    ];
    deploy(&mut groups, "ami-1", &steps).await;
    let before = (groups.account().await, balancer.seen().await);
    balancer.since = groups.world.clock.now();
    groups.world.next_run();
    groups.deploys("ami-0bad", 2);
    let failure = groups
        .world
        .run(DEPLOY, balancer.swap_spec())
        .await
        .failed();
    assert!(
        failure.message.contains("health check"),
        "{}",
        failure.message
    );
    // Nothing may be swapped after that.
    let failure = groups
        .world
        .run(SWAP, json!({"downsizeOldAsg": true}))
        .await
        .failed();
    assert!(
        failure.message.contains("has succeeded before"),
        "{}",
        failure.message
    );
    groups.world.run(ROLLBACK, json!({})).await.done();
    groups.quiet().await;
    assert_eq!((groups.account().await, balancer.seen().await), before);
    check_requests(&balancer);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_work_is_told_first() {
    let (mut groups, balancer) = balanced(false).await;
    let mut said = Vec::new();
    let mut no_rule = balancer.swap_spec();
    no_rule["loadBalancers"][0]["prodListenerRuleArn"] =
        json!(format!("{}0", balancer.listeners[0].1));
    let mut other = balancer.swap_spec();
    other["loadBalancers"][0]["prodListenerRuleArn"] = json!(balancer.listeners[1].1);
    let mut elsewhere = balancer.swap_spec();
    elsewhere["loadBalancers"][0]["loadBalancer"] = json!("cart");
    let mut same = balancer.swap_spec();
    same["loadBalancers"][0]["stageListener"] = json!(balancer.listeners[0].0);
    same["loadBalancers"][0]["stageListenerRuleArn"] = json!(balancer.listeners[0].1);
    for spec in [no_rule, other, elsewhere, same, balancer.shift_spec()] {
        groups.world.next_run();
        said.push(groups.world.run(DEPLOY, spec).await.failed().message);
    }
    let ids = |text: &str| {
        let words = text.split(' ');
        let words = words.map(|word| match word.rfind('/') {
            Some(at) if word.contains("arn:") => {
                &word[word
                    .find("listener")
                    .or(word.find("targetgroup"))
                    .unwrap_or(at)..]
            }
            _ => word,
        });
        words.collect::<Vec<_>>().join(" ")
    };
    insta::assert_snapshot!(ids(&said.join("\n")), @"
    Cannot look at listener rule listener-rule/app/shop/4bcc3fb0875767a6/4b5443657682d3b1/f55ac34710b31f7d0 in eu-west-1 (infrastructure prod_cluster): One or more rules not found (RuleNotFound). Correct the ARN of the listener rule: it must exist, in this account and region.
    Invalid request: listener rule listener-rule/app/shop/4bcc3fb0875767a6/ddd64dc1eeb42705/d1d33cf5c9379587 is not a rule of listener listener/app/shop/4bcc3fb0875767a6/4b5443657682d3b1.
    Invalid request: listener listener/app/shop/4bcc3fb0875767a6/4b5443657682d3b1 is not of load balancer cart, but of /4bcc3fb0875767a6.
    Invalid request: prod listener rule listener-rule/app/shop/4bcc3fb0875767a6/4b5443657682d3b1/f55ac34710b31f7d and stage listener rule listener-rule/app/shop/4bcc3fb0875767a6/4b5443657682d3b1/f55ac34710b31f7d send requests to the same target group, targetgroup/blue/0e136705d625b301. Give one of them the other target group.
    Invalid request: listener rule listener-rule/app/shop/4bcc3fb0875767a6/4b5443657682d3b1/f55ac34710b31f7d must have exactly two target groups of which one gets all requests, and it has: targetgroup/blue/0e136705d625b301 with weight 1. Give it a second one with weight 0, or name a stage listener and its rule.
    ");
    assert_eq!(groups.world.count("CreateLaunchTemplate"), 0);
    let step = slipway_steps::find(DEPLOY).expect("a step");
    let faults =
        step.check(&json!({"loadBalancers": [{"prodListener": "web", "stageListener": "<+a>"}]}));
    let shift = slipway_steps::find(SHIFT).expect("a step");
    let faults = [faults, shift.check(&json!({"weight": 101}))].concat();
    insta::assert_snapshot!(faults.join("\n"), @"
    `loadBalancer` of the load balancer is missing
    `prodListenerRuleArn` of the load balancer is missing
    `prodListener` must be an ARN with `:listener/`
    `stageListener` and `stageListenerRuleArn` belong together
    `weight` must be from 0 to 100
    ");
    // Two groups of which none serves cannot be told apart.
    for name in ["web__1", "web__2"] {
        groups
            .scaling("CreateAutoScalingGroup", foreign(&groups, name).await)
            .await;
    }
    groups.world.next_run();
    let failure = groups
        .world
        .run(DEPLOY, balancer.swap_spec())
        .await
        .failed();
    assert!(
        failure.message.contains("BG_VERSION=BLUE"),
        "{}",
        failure.message
    );
}

/// A group that Slipway did not make.
async fn foreign(groups: &Groups, name: &str) -> Value {
    let data = json!({"LaunchTemplateName": format!("{name}-own"), "LaunchTemplateData": {"ImageId": "ami-9"}});
    groups.ec2("CreateLaunchTemplate", data).await;
    json!({
        "AutoScalingGroupName": name, "MinSize": 0, "MaxSize": 1, "AvailabilityZones": ["eu-west-1a"],
        "LaunchTemplate": {"LaunchTemplateName": format!("{name}-own")},
    })
}

/// Somebody lets a group start its instances from an image of theirs, and replaces those that it has.
async fn updated(groups: &Groups, name: &str, image: &str) {
    let made = json!({"LaunchTemplateName": name,
        "LaunchTemplateData": {"ImageId": image, "InstanceType": "t3.micro"}});
    groups.ec2("CreateLaunchTemplateVersion", made).await;
    let update = json!({"AutoScalingGroupName": name,
        "LaunchTemplate": {"LaunchTemplateName": name, "Version": "2"}});
    groups.scaling("UpdateAutoScalingGroup", update).await;
    let all =
        json!({"InstanceWarmup": 0, "MinHealthyPercentage": 100, "MaxHealthyPercentage": 200});
    let start = json!({"AutoScalingGroupName": name, "Preferences": all});
    groups.scaling("StartInstanceRefresh", start).await;
}

#[tokio::test(start_paused = true)]
async fn what_served_comes_back_where_an_update_by_hand_did_not_come_up() {
    // One that has only begun has brought nothing yet, whatever it is going to bring.
    for (image, cancelled) in [("ami-0bad", true), ("ami-0bad", false), ("ami-7", false)] {
        let (mut groups, mut balancer) = balanced(false).await;
        let steps = [
            (DEPLOY, balancer.swap_spec()),
            (SWAP, json!({"downsizeOldAsg": true})),
        ];
        deploy(&mut groups, "ami-1", &steps).await;
        balancer.since = groups.world.clock.now();
        updated(&groups, "web__1", image).await;
        let of = json!({"AutoScalingGroupName": "web__1"});
        if cancelled {
            groups.scaling("CancelInstanceRefresh", of).await;
            groups.quiet().await;
        }
        deploy(&mut groups, "ami-3", &steps).await;
        let log = groups.world.log(DEPLOY, "Prepare rollback data").await;
        groups.quiet().await;
        groups.world.run(ROLLBACK, json!({})).await.done();
        groups.quiet().await;
        let account = groups.account().await;
        let serves = account.starts_with("web__1 v1 2/2 of v1 BLUE");
        assert!(serves, "{image} {cancelled}: {account}: {log}");
        let told = log.contains("a rollback brings back version 1.");
        assert!(told, "{image} {cancelled}: {log}");
        check_requests(&balancer);
    }
}
