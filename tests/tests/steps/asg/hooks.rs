//! Lifecycle hooks of the configuration, in the first deployment and in later ones.

use serde_json::{Value, json};

use super::{Groups, configuration, list, template};
use crate::tap::Mode;
use crate::world::{Ended, manifest};

const DEPLOY: &str = "AsgRollingDeploy";
const ROLLBACK: &str = "AsgRollingRollback";

fn hook(name: &str, transition: &str, heartbeat: u32) -> Value {
    json!({
        "lifecycleHookName": name, "heartbeatTimeout": heartbeat, "defaultResult": "CONTINUE",
        "lifecycleTransition": format!("autoscaling:EC2_INSTANCE_{transition}"),
    })
}

/// The group is to have these hooks from now on; with `None` the configuration does not speak of them.
fn deploys(groups: &mut Groups, image: &str, hooks: Option<Value>) {
    let mut configuration = configuration(1);
    if let Some(hooks) = hooks {
        configuration["LifecycleHookSpecificationList"] = hooks;
    }
    groups.world.next_run();
    groups.world.manifests = vec![
        manifest("AsgLaunchTemplate", &template(image)),
        manifest("AsgConfiguration", &configuration),
    ];
}

/// The hooks of a group: name, transition's first letter, heartbeat.
async fn hooks_of(groups: &Groups, name: &str) -> String {
    let asked = json!({"AutoScalingGroupName": name});
    let found = groups.scaling("DescribeLifecycleHooks", asked).await;
    let hooks = list(&found["LifecycleHooks"]).iter().map(|hook| {
        let text = |field: &str| hook[field].as_str().unwrap_or("?").to_owned();
        let transition = text("LifecycleTransition");
        let transition = transition.rsplit('_').next().unwrap_or("?").to_lowercase();
        format!(
            "{} {transition} {}",
            text("LifecycleHookName"),
            text("HeartbeatTimeout")
        )
    });
    hooks.collect::<Vec<_>>().join(", ")
}

#[tokio::test(start_paused = true)]
async fn hooks_follow_the_configuration_and_come_back() {
    let mut groups = Groups::new().await.beside().await;
    let (warm, drain) = (
        hook("warm", "LAUNCHING", 30),
        hook("drain", "TERMINATING", 30),
    );
    deploys(&mut groups, "ami-1", Some(json!([warm, drain])));
    groups
        .world
        .run(DEPLOY, json!({"instanceWarmup": 0}))
        .await
        .done();
    let first = "drain terminating 30, warm launching 30";
    assert_eq!(hooks_of(&groups, "web").await, first);

    // The same again changes nothing.
    let put = groups.world.count("PutLifecycleHook");
    deploys(&mut groups, "ami-2", Some(json!([warm, drain])));
    groups
        .world
        .run(DEPLOY, json!({"instanceWarmup": 0}))
        .await
        .done();
    assert_eq!(groups.world.count("PutLifecycleHook"), put);

    // One is changed, one is new, one is gone.
    let changed = json!([
        hook("warm", "LAUNCHING", 45),
        hook("check", "LAUNCHING", 31)
    ]);
    deploys(&mut groups, "ami-3", Some(changed));
    groups
        .world
        .run(DEPLOY, json!({"instanceWarmup": 0}))
        .await
        .done();
    assert_eq!(
        hooks_of(&groups, "web").await,
        "check launching 31, warm launching 45"
    );
    let log = groups.world.log(DEPLOY, "Deploy").await;
    for line in [
        "Attached lifecycle hook with name: warm",
        "Attached lifecycle hook with name: check",
        "Detached lifecycle hook with name: drain",
    ] {
        assert!(log.contains(line), "{log}");
    }
    groups.world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(hooks_of(&groups, "web").await, first);
    groups.quiet().await;
    let account = groups.account().await;
    assert!(account.contains("web v2 1/1 of v2"), "{account}");
}

#[tokio::test(start_paused = true)]
async fn a_configuration_without_hooks_leaves_those_of_others_and_an_empty_list_takes_them_away() {
    let mut groups = Groups::new().await.beside().await;
    deploys(&mut groups, "ami-1", None);
    groups
        .world
        .run(DEPLOY, json!({"instanceWarmup": 0}))
        .await
        .done();
    let others = json!({
        "AutoScalingGroupName": "web", "LifecycleHookName": "others", "HeartbeatTimeout": 30,
        "DefaultResult": "CONTINUE", "LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING",
    });
    groups.scaling("PutLifecycleHook", others).await;
    deploys(&mut groups, "ami-2", None);
    groups
        .world
        .run(DEPLOY, json!({"instanceWarmup": 0}))
        .await
        .done();
    assert_eq!(hooks_of(&groups, "web").await, "others launching 30");
    deploys(&mut groups, "ami-3", Some(json!([])));
    groups
        .world
        .run(DEPLOY, json!({"instanceWarmup": 0}))
        .await
        .done();
    assert_eq!(hooks_of(&groups, "web").await, "");
    groups.world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(hooks_of(&groups, "web").await, "others launching 30");
}

#[tokio::test(start_paused = true)]
async fn a_deployment_waits_for_instances_that_a_hook_holds() {
    let mut groups = Groups::new().await.beside().await;
    let warm = json!([hook("warm", "LAUNCHING", 120)]);
    deploys(&mut groups, "ami-1", Some(warm));
    let begun = groups.world.clock.now();
    groups
        .world
        .run(DEPLOY, json!({"instanceWarmup": 0}))
        .await
        .done();
    let took = groups.world.clock.now().duration_since(begun);
    assert!(took.as_secs() >= 120, "{took:?}");
    let account = groups.account().await;
    assert!(account.contains("web v1 1/1 of v1"), "{account}");
}

#[tokio::test(start_paused = true)]
async fn hooks_come_back_from_a_deployment_that_was_refused_anywhere() {
    let before = Groups::new().await;
    for call in 1.. {
        let mut groups = before.beside().await;
        deploys(
            &mut groups,
            "ami-1",
            Some(json!([hook("warm", "LAUNCHING", 30)])),
        );
        groups
            .world
            .run(DEPLOY, json!({"instanceWarmup": 0}))
            .await
            .done();
        deploys(
            &mut groups,
            "ami-2",
            Some(json!([hook("drain", "TERMINATING", 30)])),
        );
        groups.world.tap.set(Mode::RefuseAfter(call));
        let ended = groups.world.run(DEPLOY, json!({"instanceWarmup": 0})).await;
        groups.world.tap.set(Mode::Open);
        if let Ended::Done(_) = ended {
            assert!(call > 5, "refused {call} times only");
            break;
        }
        groups.world.run(ROLLBACK, json!({})).await.done();
        let hooks = hooks_of(&groups, "web").await;
        assert_eq!(hooks, "warm launching 30", "refused after call {call}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_groups_of_a_blue_green_deployment_have_them_too() {
    let mut groups = Groups::new().await.beside().await;
    groups.balance(false).await;
    for (number, heartbeat) in [(1, 30), (2, 31), (3, 32)] {
        deploys(
            &mut groups,
            &format!("ami-{number}"),
            Some(json!([hook("warm", "LAUNCHING", heartbeat)])),
        );
        let spec = groups
            .balancer
            .as_ref()
            .expect("a load balancer")
            .swap_spec();
        groups.world.run("AsgBlueGreenDeploy", spec).await.done();
        let swap = json!({"downsizeOldAsg": false});
        groups
            .world
            .run("AsgBlueGreenSwapService", swap)
            .await
            .done();
    }
    assert_eq!(hooks_of(&groups, "web__1").await, "warm launching 32");
    assert_eq!(hooks_of(&groups, "web__2").await, "warm launching 31");
    groups
        .world
        .run("AsgBlueGreenRollback", json!({}))
        .await
        .done();
    assert_eq!(hooks_of(&groups, "web__1").await, "warm launching 30");
}
