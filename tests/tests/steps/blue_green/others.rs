//! Rules that no step names and that bring requests to one of the two target groups.

use serde_json::json;

use super::misuse::refused;
use super::{CREATE, SWAP, brisk, deploy, next};
use crate::balancer::{Kind, forward, inherit_spec, path};
use crate::world::World;

const SHIFT: &str = "EcsBlueGreenTrafficShift";
const PREPARE: &str = "Prepare rollback data";

/// A rule of a listener for another path; its ARN.
async fn another_path(world: &World, listener: &str, group: &str) -> String {
    let rule = world
        .elb()
        .create_rule()
        .listener_arn(listener)
        .priority(20);
    let rule = rule
        .conditions(path("/api/*"))
        .actions(forward(&[(group, 1)]));
    let made = rule.send().await.expect("a rule");
    made.rules()[0].rule_arn().expect("an ARN").to_owned()
}

/// The default rule of another listener; both ARNs.
async fn another_port(world: &World, group: &str) -> (String, String) {
    let balancer = world.elb().describe_load_balancers().send().await;
    let balancer = balancer
        .expect("a load balancer")
        .load_balancers
        .unwrap_or_default();
    let listener = world
        .elb()
        .create_listener()
        .port(443)
        .protocol("HTTP".into());
    let listener = listener.set_load_balancer_arn(balancer[0].load_balancer_arn.clone());
    let made = listener
        .default_actions(forward(&[(group, 1)]))
        .send()
        .await;
    let made = made.expect("a listener").listeners.unwrap_or_default();
    let listener = made[0].listener_arn().expect("an ARN").to_owned();
    let rules = world
        .elb()
        .describe_rules()
        .listener_arn(&listener)
        .send()
        .await;
    let rule = rules.expect("rules").rules()[0]
        .rule_arn()
        .expect("an ARN")
        .to_owned();
    (listener, rule)
}

/// Found by a tester: the service that `/api/*` still went to was left without a task.
#[tokio::test(start_paused = true)]
async fn what_another_rule_reaches_is_neither_emptied_nor_deleted() {
    for port in [false, true] {
        let (mut world, balancer) = brisk(Kind::Default).await;
        let [one, two] = &balancer.groups;
        deploy(&mut world, &balancer, "nginx:1").await;
        let (listener, rule) = match port {
            true => another_port(&world, one).await,
            false => {
                let listener = balancer.listeners[0].clone();
                let rule = another_path(&world, &listener, one).await;
                (listener, rule)
            }
        };
        // It brings requests to the target group of the next version.
        deploy(&mut world, &balancer, "nginx:2").await;
        let log = world.log(CREATE, PREPARE).await;
        assert!(
            log.contains("the new version gets them as soon as it runs"),
            "{log}"
        );
        assert_eq!(
            world.account().await,
            "absent, beside it web__1 web:1 0/0 GREEN, beside it web__2 web:2 2/2 BLUE; prod to one; stage to two"
        );

        let since = world.clock.now();
        deploy(&mut world, &balancer, "nginx:3").await;
        world.clock.sleep(std::time::Duration::from_secs(600)).await;
        assert_eq!(
            world.account().await,
            "absent, beside it web__1 web:3 2/2 BLUE, beside it web__2 web:2 2/2 GREEN; prod to two; stage to one"
        );
        let log = world.log(SWAP, "Swap Target Groups").await;
        let log = balancer
            .plain(&log)
            .replace(&rule, "RULE")
            .replace(&listener, "PROD");
        let kept = "Service web__2 keeps its tasks: listener rule RULE of listener PROD still sends requests to its target \
                    group one, and no step moves them. Let them forward to two, where the new version is, and scale the \
                    service down.";
        assert!(log.contains(kept), "{log}");
        let rules = world.sandbox.traffic(&listener, Some(since));
        let rules = rules.expect("an account").expect("a listener");
        let requests = rules
            .into_iter()
            .find(|one| one.rule == rule)
            .expect("the rule");
        let requests = requests.requests(1.0);
        assert!(
            requests.failed == 0.0 && requests.sent > 0.0,
            "{requests:?}"
        );

        next(&mut world, "nginx:4");
        let parts = ["service web__2 would be deleted, and it serves", &rule, two];
        refused(&mut world, balancer.swap_spec(), &parts).await;
        next(&mut world, "nginx:4");
        let call = world.elb().modify_listener().listener_arn(&listener);
        match port {
            true => drop(
                call.default_actions(forward(&[(two, 1)]))
                    .send()
                    .await
                    .expect("moved"),
            ),
            false => {
                let call = world.elb().modify_rule().rule_arn(&rule);
                call.actions(forward(&[(two, 1)]))
                    .send()
                    .await
                    .expect("moved");
            }
        }
        world.run(CREATE, balancer.swap_spec()).await.done();
        world.run(SWAP, json!({})).await.done();
    }
}

#[tokio::test(start_paused = true)]
async fn rules_of_the_stage_are_for_who_tries_the_stage() {
    let (mut world, balancer) = brisk(Kind::Default).await;
    another_path(&world, &balancer.listeners[1], &balancer.groups[0]).await;
    for image in ["nginx:1", "nginx:2", "nginx:3"] {
        deploy(&mut world, &balancer, image).await;
    }
    assert_eq!(
        world.account().await,
        "absent, beside it web__1 web:3 2/2 BLUE, beside it web__2 web:2 0/0 GREEN; prod to two; stage to one"
    );
}

#[tokio::test(start_paused = true)]
async fn a_shift_does_not_delete_what_another_rule_reaches() {
    let (mut world, balancer) = brisk(Kind::Weighted).await;
    for (group, image) in [(0, "nginx:1"), (1, "nginx:2")] {
        next(&mut world, image);
        world.run(CREATE, balancer.shift_spec(group)).await.done();
        world.run(SHIFT, inherit_spec(100)).await.done();
    }
    let rule = another_path(&world, &balancer.listeners[0], &balancer.groups[0]).await;
    next(&mut world, "nginx:3");
    let parts = [
        "service web__1 would be deleted, and it serves",
        rule.as_str(),
    ];
    refused(&mut world, balancer.shift_spec(0), &parts).await;

    // Where a step of the pipeline moves the requests, it is a rule for who tries the new version.
    let mut alone = balancer.standalone_spec(1, 0);
    let spec = &mut alone["ecsTrafficShiftWrapper"]["spec"];
    spec["listener"] = json!(balancer.listeners[0]);
    spec["listenerRuleArn"] = json!(rule);
    world.later = vec![(SHIFT, alone)];
    next(&mut world, "nginx:3");
    world.run(CREATE, balancer.shift_spec(0)).await.done();
    let log = world.log(CREATE, PREPARE).await;
    // The rule of the other listener, too.
    for rule in [&rule, &balancer.rules[1]] {
        let told = format!(
            "Listener rule {rule} of listener {} sends requests to the stage target group {}: service web__1 answers them, \
             and is deleted now",
            rule.replacen(":listener-rule/", ":listener/", 1)
                .rsplit_once('/')
                .expect("an ARN")
                .0,
            balancer.groups[0]
        );
        assert!(log.contains(&told), "{told}\n{log}");
    }
}
